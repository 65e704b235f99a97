"""How far each row moves a score: what standard errors are worked out from.

A score is, to first order, a mean over rows of something, and how that scatters tells its standard
error at the price of one look at the rows. Of a mean over rows that is exact; of an area, a recall
or a root it is the first term of an expansion, as in the delta method. What is returned may be off
by a constant, which does not matter: only differences between rows count.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy

from forestprune.loss.class_metrics import LEAST

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Predicted:
    """Numbers that are predicted for some rows, and those that are true.

    Attributes
    ----------
    numbers, target : float64 array of shape (m, n_outputs)
    share : float64 array of shape (m,)
        The weight of each row; they add up to 1.
    """

    numbers: Floats
    target: Floats
    share: Floats

    @property
    def squares(self) -> Floats:
        """Squared errors of each row and output."""
        return (self.target - self.numbers) ** 2

    def mean(self, values: Floats) -> Floats:
        """Return the weighted mean over rows."""
        return np.asarray(self.share @ values)


@dataclass(frozen=True, eq=False)
class Told:
    """Probabilities that are predicted for some rows, and the classes that these are of.

    Attributes
    ----------
    probabilities : float64 array of shape (m, n_classes)
        They add up to 1 in each row.
    classes : int64 array of shape (m,)
        The number of each row's class.
    share : float64 array of shape (m,)
        The weight of each row; they add up to 1.
    positive : int
        The number of the class that scores of one class are about.
    """

    probabilities: Floats
    classes: NDArray[np.int64]
    share: Floats
    positive: int = 1

    @property
    def predicted(self) -> NDArray[np.int64]:
        """The number of the most likely class."""
        return np.asarray(np.argmax(self.probabilities, axis=1))

    @property
    def right(self) -> NDArray[np.bool_]:
        """Whether the most likely class is the true one."""
        return np.asarray(self.predicted == self.classes)

    @property
    def own(self) -> Floats:
        """The probability of the true class."""
        return self.probabilities[np.arange(self.classes.size), self.classes]


def _accuracy(said: Told) -> Floats:
    return said.right.astype(np.float64)


def _balanced_accuracy(said: Told) -> Floats:
    in_class = np.bincount(said.classes, said.share)
    hits = np.bincount(said.classes, said.share * said.right)
    there = np.count_nonzero(in_class)
    some = np.where(in_class > 0.0, in_class, 1.0)
    return np.asarray((said.right - (hits / some)[said.classes]) / (some[said.classes] * there))


def _log_probability(said: Told) -> Floats:
    return np.log(np.clip(said.own, LEAST, 1.0))


def _brier(said: Told) -> Floats:
    squares = (said.probabilities**2).sum(axis=1) - 2.0 * said.own + 1.0
    return np.asarray(-squares / (2.0 if said.probabilities.shape[1] == 2 else 1.0))


def _areas(said: Told) -> Floats:
    """Of the area under the curve of each class against all others; of two, of the second."""
    n_classes = said.probabilities.shape[1]
    of_classes = [1] if n_classes == 2 else range(n_classes)
    found = [_area(said.probabilities[:, k], said.classes == k, said.share) for k in of_classes]
    return np.asarray(np.mean(found, axis=0))


def _area(score: Floats, positive: NDArray[np.bool_], share: Floats) -> Floats:
    """Of the share of pairs in which the positive row has the higher score, ties by half.

    What a row adds to is the share of rows of the other kind that it wins against.
    """
    level: NDArray[np.int64] = np.unique(score, return_inverse=True)[1]
    won = np.empty(score.size)
    for ours in (positive, ~positive):
        others = np.bincount(level, np.where(ours, 0.0, share))
        below = (np.cumsum(others) - 0.5 * others) / others.sum()
        won[ours] = (below if ours is positive else 1.0 - below)[level[ours]]
    area = share[positive] @ won[positive] / share[positive].sum()
    weight = np.where(positive, share[positive].sum(), share[~positive].sum())
    return np.asarray((won - area) / weight)


def _average_precision(said: Told) -> Floats:
    """Of the mean precision down to each positive row; of several classes the mean of them."""
    n_classes = said.probabilities.shape[1]
    of_classes = [said.positive] if n_classes == 2 else range(n_classes)
    found = [
        _precisions(said.probabilities[:, k], said.classes == k, said.share) for k in of_classes
    ]
    return np.asarray(np.mean(found, axis=0))


def _precisions(score: Floats, positive: NDArray[np.bool_], share: Floats) -> Floats:
    """Of the mean over positive rows of the precision down to the score of each.

    A row is in that mean, if positive, and in the precision down to its own score and lower ones.
    """
    level: NDArray[np.int64] = np.unique(-score, return_inverse=True)[1]
    own = np.bincount(level, np.where(positive, share, 0.0))
    size = np.bincount(level, share)
    above = np.maximum(np.cumsum(size), np.finfo(float).tiny)
    precision = np.cumsum(own) / above
    total = own.sum()
    # From each level on downwards: what the precisions there move by, if one more row is above.
    down = np.cumsum((own / above)[::-1])[::-1]
    lost = np.cumsum((own * precision / above)[::-1])[::-1]
    moved = positive * (precision[level] - own @ precision / total + down[level]) - lost[level]
    return np.asarray(moved / total)


def _ratio(kind: str, average: str) -> Callable[[Told], Floats]:
    """Return what tells it of a ratio of counts: "precision", "recall", "f1" or "jaccard".

    `average` is that over classes as scikit-learn names it; "binary" is of the positive one.
    """

    def moved(said: Told) -> Floats:
        classes = np.arange(said.probabilities.shape[1])[:, np.newaxis]
        true = np.asarray(said.classes == classes, dtype=np.float64)
        told = np.asarray(said.predicted == classes, dtype=np.float64)
        met = true * told
        over, under = {
            "precision": (met, told),
            "recall": (met, true),
            "f1": (2.0 * met, true + told),
            "jaccard": (met, true + told - met),
        }[kind]
        if average == "binary":
            over, under = over[[said.positive]], under[[said.positive]]
        if average == "micro":
            over, under = over.sum(axis=0, keepdims=True), under.sum(axis=0, keepdims=True)
        size = (under @ said.share)[:, np.newaxis]
        size[size == 0.0] = 1.0
        ratio = (over @ said.share)[:, np.newaxis] / size
        each = (over - ratio * under) / size
        if average == "weighted":
            return np.asarray(
                (each * (true @ said.share)[:, np.newaxis] + ratio * true).sum(axis=0)
            )
        there = np.count_nonzero((true + told) @ said.share) if average == "macro" else 1
        return np.asarray(each.sum(axis=0) / there)

    return moved


def _minus_absolute(said: Predicted) -> Floats:
    return np.asarray(-np.abs(said.target - said.numbers).mean(axis=1))


def _minus_squared(said: Predicted) -> Floats:
    return np.asarray(-said.squares.mean(axis=1))


def _minus_root(said: Predicted) -> Floats:
    root = np.sqrt(said.mean(said.squares))
    return np.asarray(-(said.squares / np.where(root > 0.0, 2.0 * root, 1.0)).mean(axis=1))


def _r_squared(said: Predicted) -> Floats:
    around = (said.target - said.mean(said.target)) ** 2
    variance = said.mean(around)
    variance = np.where(variance > 0.0, variance, 1.0)
    unexplained = said.mean(said.squares) / variance
    return np.asarray(((unexplained * around - said.squares) / variance).mean(axis=1))


def _poisson(said: Predicted) -> Floats:
    y, mean = said.target, said.numbers
    return np.asarray((-2.0 * (xlogy(y, y / mean) - y + mean)).mean(axis=1))


def _gamma(said: Predicted) -> Floats:
    ratio = said.target / said.numbers
    return np.asarray((-2.0 * (ratio - 1.0 - np.log(ratio))).mean(axis=1))


OF_CLASSES: dict[str, Callable[[Told], Floats]] = {
    "accuracy": _accuracy,
    "average_precision": _average_precision,
    "balanced_accuracy": _balanced_accuracy,
    "neg_brier_score": _brier,
    "neg_log_loss": _log_probability,
    "roc_auc": _areas,
    "roc_auc_ovr": _areas,
}
for _kind in ("f1", "jaccard", "precision", "recall"):
    OF_CLASSES[_kind] = _ratio(_kind, "binary")
    for _average in ("macro", "micro", "weighted"):
        OF_CLASSES[f"{_kind}_{_average}"] = _ratio(_kind, _average)
OF_NUMBERS: dict[str, Callable[[Predicted], Floats]] = {
    "neg_mean_absolute_error": _minus_absolute,
    "neg_mean_gamma_deviance": _gamma,
    "neg_mean_poisson_deviance": _poisson,
    "neg_mean_squared_error": _minus_squared,
    "neg_root_mean_squared_error": _minus_root,
    "r2": _r_squared,
}
"""The scores of scikit-learn of which it is known how far each row moves them."""
