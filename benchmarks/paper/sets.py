"""The paper's data sets: read, one-hot, shuffled, in five folds."""

from dataclasses import dataclass
from pathlib import Path
from typing import TypeGuard

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.datasets import load_diabetes
from sklearn.model_selection import KFold

import forestprune as fp

FOLDS = 5
BUNDLED = {"wine_quality": fp.load_wine_quality, "diabetes": load_diabetes}
"""What can be had without a folder: it comes with this package, or with scikit-learn."""

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

    def split(self, fold: int) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Return the numbers of the rows to train, to choose and to test with.

        To choose with there is a quarter of the rows of training, as in the paper's runs.
        """
        train, test = self.fold(fold)
        held_out = len(train) // 4
        return train[:-held_out], train[-held_out:], test

    def first(self, rows: int | None) -> "Table":
        """Return the first rows only; None for all of them."""
        return Table(self.name, self.X[:rows], self.y[:rows], self.columns)


def names(folder: Path | None) -> list[str]:
    """Return the data sets of the paper's experiments that are to be had, the smallest first.

    Without a folder, those that are bundled.
    """
    if not _is_there(folder):
        return list(BUNDLED)
    about = pd.read_csv(folder / "datasets.csv")
    of_paper = about[about.group.isin(["paper", "paper-substitute"])]
    return list(of_paper.sort_values("rows").name)


def load(folder: Path | None, name: str) -> Table:
    """Read a data set, categories one-hot, rows shuffled (seed 0)."""
    if not _is_there(folder):
        bundled = BUNDLED[name](as_frame=True)
        frame = bundled.data.assign(target=bundled.target).sample(frac=1.0, random_state=0)
        y = frame.pop("target").to_numpy(dtype=float)
        return Table(name, frame.to_numpy(dtype=float), y, list(frame.columns))
    about = pd.read_csv(folder / "datasets.csv").set_index("name").loc[name]
    categories = str(about.categorical_columns).split(";") if about.n_categorical else []
    frame = pd.read_csv(folder / f"{name}.csv.gz", dtype=dict.fromkeys(categories, str))
    frame = frame.sample(frac=1.0, random_state=0)
    y = frame.pop("target").to_numpy(dtype=float)
    frame = pd.get_dummies(frame, columns=categories).fillna(0)
    return Table(name, frame.to_numpy(dtype=float), y, list(frame.columns))


def _is_there(folder: Path | None) -> TypeGuard[Path]:
    return folder is not None and folder.exists()
