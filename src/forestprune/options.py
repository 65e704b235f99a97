"""How to prune: the options that every way to call the package shares."""

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import partial
from numbers import Integral, Real
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

Joint = Literal["ridge", "subset"]
Polish = Literal["ridge", "subset"]
Weighting = Literal["node", "depth"] | ArrayLike

_CHOICES: dict[str, tuple[Any, ...]] = {
    "rule": ("layer",),
    "joint": (None, "ridge", "subset"),
    "polish": (None, "ridge", "subset"),
    "local_search": (True, False, "random", "correlated"),
    "solver": ("heuristic", "scip", "gurobi"),
}


@dataclass(frozen=True, kw_only=True, eq=False)
class Options:
    """How to prune. All are keyword arguments of `prune`, `prune_path` and the estimators.

    Parameters
    ----------
    rule : "layer"
        How one tree is pruned: cut at a depth, as in the paper.
    weighting : "node", "depth" or array-like
        What keeping a layer of a tree costs. "node": its number of nodes; gives the smallest
        models. "depth": 1; gives fewer trees. Or your own costs, not negative: an array of shape
        (n_trees, max_depth), one a layer below the root, or (n_nodes,), one a node of the
        ``Forest``, where roots count for nothing.
    joint : None, "ridge" or "subset"
        Choose the weight of each tree along with its depth (section 3.4 of the paper), with a
        penalty on the squares of the weights or on their number. None leaves the weights at 1.
    alpha2 : float
        Penalty of the weights, for `joint` and `polish`; it has no unit. For "ridge" relative to
        the size of each tree's contribution; for "subset" the share of the target's variance that
        a tree must explain to be kept.
    polish : None, "ridge" or "subset"
        Refit the weights of the trees once they are cut, and the intercept. "ridge" reweights all
        of them; "subset" keeps the best `max_trees`, or, without that, those worth `alpha2`.
    local_search : bool, "random" or "correlated"
        Try to get out of solutions that no single tree can improve. True: the most promising moves,
        deterministically. "random": as in the paper, drop a random tree and let the first absent
        one in. "correlated": the same, but in comes the tree most correlated with the residual.
    max_iter : int
        Sweeps over all trees at most, for each alpha; a local search has as many for each move.
    solver : "heuristic", "scip" or "gurobi"
        How the best subset is found: by iterative hard thresholding and swaps, or exactly by
        mixed-integer programming (``pip install "forestprune[mip]"``, or ``gurobipy``).
    time_limit : float
        Seconds for an exact solver, for each model that it polishes: on a path that is each point.
    random_state : int, RandomState or None
        For the random local search.
    n_jobs : int or None
        Threads; None takes every core.
    """

    rule: Literal["layer"] = "layer"
    weighting: Weighting = "node"
    joint: Joint | None = None
    alpha2: float = 0.01
    polish: Polish | None = None
    local_search: bool | Literal["random", "correlated"] = True
    max_iter: int = 1000
    solver: Literal["heuristic", "scip", "gurobi"] = "heuristic"
    time_limit: float = 60.0
    random_state: Any = None
    n_jobs: int | None = None

    def __post_init__(self) -> None:
        for name, choices in _CHOICES.items():
            listed = " or ".join(map(repr, choices))
            require(name, getattr(self, name), listed, partial(_is_among, choices))
        if isinstance(self.weighting, str):
            listed = "'node', 'depth' or an array of costs"
            require("weighting", self.weighting, listed, partial(_is_among, ("node", "depth")))
        require_number("alpha2", self.alpha2)
        require("max_iter", self.max_iter, "a whole number, at least 1", partial(_is_count, 1))
        require_number("time_limit", self.time_limit)
        if self.time_limit == 0:
            raise ValueError("time_limit must be positive, got 0.")
        if self.n_jobs is not None:
            require("n_jobs", self.n_jobs, "None or a whole number but 0", _is_job_count)

    @classmethod
    def of(cls, given: dict[str, Any]) -> "Options":
        """Return the options given by name; a name that is none of them is refused."""
        known = [field.name for field in fields(cls)]
        unknown = sorted(set(given) - set(known))
        if unknown:
            raise TypeError(
                f"There is no option {', '.join(map(repr, unknown))}. Options are: "
                f"{', '.join(known)}."
            )
        return cls(**given)


def require(name: str, value: Any, required: str, holds: Callable[[Any], bool]) -> None:
    """Raise an error that says what `name` must be, unless `holds(value)`."""
    if not holds(value):
        raise ValueError(f"{name} must be {required}, got {value!r}.")


def require_number(name: str, value: Any) -> None:
    """Raise an error unless `value` is a finite number, not negative."""
    require(name, value, "a finite number, not negative", _is_number)


def require_count(name: str, value: Any, least: int, why: str = "") -> None:
    """Raise an error unless `value` is None or a whole number, at least `least`."""
    if value is not None:
        require(name, value, f"a whole number, at least {least}{why}", partial(_is_count, least))


def _is_among(choices: tuple[Any, ...], value: Any) -> bool:
    if isinstance(value, (bool, np.bool_)):
        return any(choice is bool(value) for choice in choices)
    # Anything but None and strings could equal True, or be an array.
    return (value is None or isinstance(value, str)) and value in choices


def _is_number(value: Any) -> bool:
    is_real = isinstance(value, Real) and not isinstance(value, (bool, np.bool_))
    return is_real and 0.0 <= float(value) < np.inf


def _is_count(least: int, value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= least


def _is_job_count(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool) and value != 0
