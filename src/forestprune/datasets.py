"""The data set that comes with the package."""

import gzip
from importlib import resources

import numpy as np
from sklearn.utils import Bunch


def load_wine_quality(*, as_frame: bool = False) -> Bunch:
    """Return the wine quality data: 6,497 Portuguese wines, 11 measurements, a score by tasters.

    From the UCI Machine Learning Repository, under the CC BY 4.0 licence; `DESCR` has the
    attribution.

    Parameters
    ----------
    as_frame : bool
        Return `data` as a pandas data frame and `target` as a series. Needs pandas.

    Returns
    -------
    Bunch with `data` (6497, 11), `target` (6497,), `feature_names`, `target_names` and `DESCR`

    Examples
    --------
    >>> import forestprune as fp
    >>> fp.load_wine_quality().data.shape
    (6497, 11)
    """
    folder = resources.files("forestprune") / "data"
    text = gzip.decompress((folder / "wine_quality.csv.gz").read_bytes()).decode()
    header, *lines = text.splitlines()
    feature_names = header.split(",")[:-1]
    table = np.loadtxt(lines, delimiter=",")
    data, target = table[:, :-1], table[:, -1]
    if as_frame:
        try:
            import pandas as pd
        except ImportError as error:
            raise ImportError(
                "as_frame=True needs pandas, which is not installed: pip install pandas"
            ) from error
        data = pd.DataFrame(data, columns=feature_names)
        target = pd.Series(target, name="quality")
    return Bunch(
        data=data,
        target=target,
        feature_names=feature_names,
        target_names=["quality"],
        DESCR=(folder / "ATTRIBUTION.md").read_text(encoding="utf-8"),
    )
