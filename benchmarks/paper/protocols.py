"""Who sees which rows, and in what scale: as the authors did it, and as one should.

*paper* follows the code published with the paper: train, validation and test rows are each
standardised on themselves, features and target. *clean* scales the target by the training rows
alone, and leaves the features, which trees do not mind; every choice looks at validation rows,
every score at test rows. There the bagging baseline is an average of the trees it keeps, LASSO's
selections are refitted with signs, and best subsets have a ridge penalty.

Where *paper* is not what the authors did: their solver stops after three quiet block updates in a
row and starts anew for a chosen alpha, ours descends until nothing changes, with our own local
search, along one path; best subsets have a shorter limit (`TIME_LIMIT`) than their 60 s,
but start from a heuristic; seeds of folds and models are not theirs.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
import pandas as pd
import sets
from sets import Floats, Table
from sklearn.ensemble import GradientBoostingRegressor, RandomForestRegressor
from sklearn.model_selection import train_test_split
from units import Settings, run_units

import forestprune as fp

Protocol = Literal["paper", "clean"]
PROTOCOLS: tuple[Protocol, ...] = ("paper", "clean")

TREES, BOOSTED_TREES = 100, 250
"""What a forest and a boosted model have."""


@dataclass(frozen=True, eq=False)
class Parts:
    """Rows to train and prune with, to choose by, and to score on."""

    X: Floats
    y: Floats
    X_val: Floats
    y_val: Floats
    X_test: Floats
    y_test: Floats

    def errors(self, model: Any) -> dict[str, float]:
        """Return what there is to know of a full model."""
        return {
            "full_nodes": fp.Forest.from_model(model).n_nodes,
            "full_val": float(np.mean((model.predict(self.X_val) - self.y_val) ** 2)),
            "full_test": float(np.mean((model.predict(self.X_test) - self.y_test) ** 2)),
        }

    @property
    def constant_error(self) -> float:
        """Test error of a model that says 0, the mean of the targets it was trained with."""
        return float(np.mean(self.y_test**2))


def run_folds(
    settings: Settings, name: str, one_fold: Callable[..., list[dict[str, Any]]], quick_rows: int
) -> pd.DataFrame:
    """Do what is not there yet of every data set, fold and protocol, and return all of it.

    ``one_fold(folder, most_rows, data, fold, protocol)`` returns the rows of one. To be quick, one
    fold of what is bundled is enough, with no more than `quick_rows` rows.
    """
    units = [
        {"data": data, "fold": fold, "protocol": protocol}
        for data in sets.names(settings.folder)
        for fold in range(1 if settings.quick else sets.FOLDS)
        for protocol in PROTOCOLS
    ]
    work = partial(one_fold, settings.folder, quick_rows if settings.quick else None)
    return run_units(settings.results / f"{name}.csv", units, work, settings.jobs)


def split(table: Table, fold: int, protocol: Protocol, model: str) -> Parts:
    """Return one fold of a data set in three parts.

    A quarter of the training rows validates; but the authors' boosting trains with all of them and
    halves the test rows instead, one half to choose by and one to score on.
    """
    train, test = table.fold(fold)
    if protocol == "paper" and model == "boosting":
        val, test = np.array_split(test, 2)
    else:
        train, val = train_test_split(train, test_size=0.25, random_state=fold)
    parts = [(table.X[rows], table.y[rows]) for rows in (train, val, test)]
    if protocol == "paper":
        parts = [(_standardised(X), _standardised(y)) for X, y in parts]
    else:
        mean, spread = parts[0][1].mean(), parts[0][1].std()
        parts = [(X, (y - mean) / spread) for X, y in parts]
    return Parts(*(array for pair in parts for array in pair))


def _standardised(values: Floats) -> Floats:
    spread = values.std(axis=0)
    return np.asarray((values - values.mean(axis=0)) / np.where(spread > 0, spread, 1.0))


def forest(parts: Parts, fold: int) -> RandomForestRegressor:
    """Return the bagging ensemble of the authors' code; the paper's text has 500 trees."""
    model = RandomForestRegressor(TREES, max_depth=20, max_features="sqrt", random_state=fold)
    return model.fit(parts.X, parts.y)


def boosting(parts: Parts, fold: int) -> GradientBoostingRegressor:
    """Return the paper's boosting ensemble."""
    model = GradientBoostingRegressor(
        n_estimators=BOOSTED_TREES,
        max_depth=5,
        learning_rate=0.1,
        subsample=0.25,
        random_state=fold,
    )
    return model.fit(parts.X, parts.y)
