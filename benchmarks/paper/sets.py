"""The paper's data sets: read, one-hot, shuffled, in five folds."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.model_selection import KFold

FOLDS = 5

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Table:
    """A data set, its rows in random order.

    Missing values are 0, which for categories means none of them.
    """

    name: str
    X: Floats
    y: Floats
    columns: list[str]

    def fold(self, fold: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the numbers of the rows to train with, and of those to test with."""
        return list(KFold(FOLDS).split(self.X))[fold]


def names(folder: Path) -> list[str]:
    """Return the data sets of the paper's experiments that are to be had, the smallest first."""
    about = pd.read_csv(folder / "datasets.csv")
    of_paper = about[about.group.isin(["paper", "paper-substitute"])]
    return list(of_paper.sort_values("rows").name)


def load(folder: Path, name: str) -> Table:
    """Read a data set, categories one-hot, rows shuffled (seed 0)."""
    about = pd.read_csv(folder / "datasets.csv").set_index("name").loc[name]
    categories = str(about.categorical_columns).split(";") if about.n_categorical else []
    frame = pd.read_csv(folder / f"{name}.csv.gz", dtype=dict.fromkeys(categories, str))
    frame = frame.sample(frac=1.0, random_state=0)
    y = frame.pop("target").to_numpy(dtype=float)
    frame = pd.get_dummies(frame, columns=categories).fillna(0)
    return Table(name, frame.to_numpy(dtype=float), y, list(frame.columns))
