"""Numbers that both experiments report: changes in per cent, and sizes at equal error."""

from collections.abc import Callable

import numpy as np
import pandas as pd
from systems import COMPETITORS, OURS

ORDER = ("layer + ridge", *OURS, *COMPETITORS)
UNIT = ["data", "fold", "protocol"]


def over_full(rows: pd.DataFrame) -> pd.Series:
    """Return the increase of test error over the full model, in %."""
    return 100.0 * (rows.test / rows.full_test - 1.0)


def over_paper(rows: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """Return the rows of other methods, with the increase of test error over the paper's in %."""
    paper = rows[rows.method == "layer + ridge"].set_index(keys).test.rename("of_paper")
    others = rows[rows.method != "layer + ridge"].join(paper, on=keys)
    return others.assign(increase=100.0 * (others.test / others.of_paper - 1.0))


def common_sets(files: pd.DataFrame, rows: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Leave the data sets that the authors have too; all of ours if there are no such files."""
    common = set(files.dataset) & set(rows.data)
    if not common:
        return files, rows
    return files[files.dataset.isin(common)], rows[rows.data.isin(common)]


def mean_curve(rows: pd.DataFrame, data: str, protocol: str, method: str) -> pd.Series:
    """Return the mean test error over folds by budget of nodes."""
    mine = rows[
        (rows.by == "curve")
        & (rows.data == data)
        & (rows.protocol == protocol)
        & (rows.method == method)
    ]
    return mine.groupby("budget").test.mean()


def nodes_for(curve: pd.Series, error: float) -> float:
    """Return the smallest budget at which the mean error is no more than `error`, else infinity."""
    good = curve.index[curve.to_numpy() <= error]
    return float(good[0]) if len(good) else np.inf


def error_at(curve: pd.Series, nodes: float) -> float:
    """Return the mean error at a size, between those of the budgets below and above it."""
    return float(np.interp(np.log(nodes), np.log(curve.index.to_numpy()), curve.to_numpy()))


def percent(number: float) -> str:
    return (
        "-"
        if np.isnan(number)
        else f"{number:+,.0f} %"
        if abs(number) >= 10
        else f"{number:+.1f} %"
    )


def count(number: float) -> str:
    return "-" if np.isnan(number) else "never" if np.isinf(number) else f"{number:,.0f}"


def median_cells(
    rows: pd.DataFrame, method: str, column: str, levels: tuple, show: Callable[[float], str]
) -> list[str]:
    """Return the median over data sets of a method's median over folds, for each level."""
    folds = rows[rows.method == method].groupby([column, "data"]).value.median()
    mine = folds.groupby(level=0).median()
    return [show(mine.get(level, np.nan)) for level in levels]
