"""What the paper says, and what the result files say that were published with it."""

from pathlib import Path

import pandas as pd

BAGGING_TEXT = {
    "fewer trees": (220, 250, 250),
    "LASSO": (130, 190, 220),
    "best subset": (5, 40, 80),
    "cost-complexity": (78, 78, 110),
}
"""Increase of test error over the paper's method in %, median, for phi 0.01, 0.025 and 0.05."""

COLUMNS = {"fewer trees": "base", "LASSO": "lasso", "best subset": "l0"}
"""How the files for bagging call the competitors."""

BUDGET_COLUMNS = {"fewer trees": "baseline", "LASSO": "lasso", "best subset": "l0"}
"""How the file for boosting calls them."""


def published(folder: Path | None, name: str) -> pd.DataFrame:
    """Return one of the published files, a line for each data set; empty if it is not there."""
    if folder is None or not (folder / f"{name}.csv").exists():
        return pd.DataFrame(columns=["dataset", "phi"])
    return pd.read_csv(folder / f"{name}.csv")
