"""How to prune: the options that every way to call the package shares."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from difflib import get_close_matches
from functools import partial
from numbers import Integral, Real
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import ArrayLike

Joint = Literal["ridge", "subset"]
Polish = Literal["ridge", "subset", "leaf"]
Rule = Literal["layer", "subtree"]
Weighting = Literal["node", "depth"] | ArrayLike

SHRINKAGES = (100.0, 10.0, 1000.0)
"""What shrinkage is chosen from; the first where there is nothing to choose by."""

_CHOICES: dict[str, tuple[Any, ...]] = {
    "rule": ("subtree", "layer"),
    "refit": (None, True, False),
    "joint": (None, "ridge", "subset"),
    "polish": (None, "ridge", "subset", "leaf"),
    "local_search": (True, False, "random", "correlated"),
    "solver": ("heuristic", "scip", "gurobi"),
}


_ASKED = (
    *("alpha", "max_nodes", "max_trees", "max_depth", "max_bytes", "tolerance"),
    *("one_standard_error", "n_alphas", "X_val", "y_val", "sample_weight", "sample_weight_val"),
)
"""Other names that may be meant."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Options:
    """How to prune. All are keyword arguments of `prune`, `prune_path` and the estimators.

    Parameters
    ----------
    rule : "subtree" or "layer"
        How one tree is pruned: "subtree" keeps any part of it that hangs together from the root;
        "layer" cuts it at a depth, as in the paper.
    refit : bool or None
        Whether leaves get new values along with their choice. None: with the rule "subtree" they
        do, with "layer" they cannot (but see `polish`).
    shrinkage : float, list of float or None
        How strongly new values of leaves (`refit`, or ``polish="leaf"``) are drawn to those that
        the nodes have in the original, in rows: a leaf with as many rows, or as much of their
        weight, goes half of the way. 0 leaves them free, which overfits noisy data. From a list,
        validation rows or folds choose. None: 100; where `prune` has validation rows, or an
        estimator rows or folds to choose by, the best of 10, 100 and 1000. Weights of rows count
        as repetitions; if yours sum to 1, give a shrinkage to match.
    weighting : "node", "depth" or array-like
        What keeping a layer of a tree costs. "node": its number of nodes; gives the smallest
        models. "depth": 1; gives fewer trees. Or your own costs, not negative: an array of shape
        (n_trees, max_depth), one a layer below the root, or (n_nodes,), one a node of the
        ``Forest``, where roots count for nothing. The rule "subtree" takes "node" or one a node.
    joint : None, "ridge" or "subset"
        Choose the weight of each tree along with its depth (section 3.4 of the paper), with a
        penalty on the squares of the weights or on their number. None leaves the weights at 1.
    alpha2 : float
        Penalty of the weights, for `joint` and `polish`; it has no unit. For "ridge" relative to
        the size of each tree's contribution; for "subset" the share of the target's variance that
        a tree must explain to be kept.
    polish : None, "ridge", "subset" or "leaf"
        Refit the weights of the trees once they are pruned, and the intercept. "ridge" reweights
        all of them; "subset" keeps the best `max_trees`, or, without that, those worth `alpha2`;
        "leaf" refits the values of all their leaves.
    local_search : bool, "random" or "correlated"
        Try to get out of solutions that no single tree can improve. True: the most promising moves,
        deterministically. "random": as in the paper, drop a random tree and let the first absent
        one in. "correlated": the same, but in comes the tree most correlated with the residual.
        For the rule "layer"; subtrees have so many neighbours that there is no need.
    max_iter : int
        Sweeps over all trees at most, for each alpha; a local search has as many for each move.
    solver : "heuristic", "scip" or "gurobi"
        How the best subset is found: by iterative hard thresholding and swaps, or exactly by
        mixed-integer programming (``pip install pyscipopt``, or ``gurobipy``).
    time_limit : float
        Seconds for an exact solver, for each model that it polishes: on a path that is each point.
    random_state : int, RandomState or None
        For the random local search.
    n_jobs : int or None
        Threads; None takes every core.
    """

    rule: Rule = "subtree"
    refit: bool | None = None
    shrinkage: float | Sequence[float] | None = None
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
        for shrinkage in self.shrinkages:
            require("shrinkage", shrinkage, "a finite number, not negative, or a list", _is_number)
        if not self.shrinkages:
            raise ValueError("shrinkage must be a number, or a list of at least one; got none.")
        self._check_rule()
        require("max_iter", self.max_iter, "a whole number, at least 1", partial(_is_count, 1))
        require_number("time_limit", self.time_limit)
        if self.time_limit == 0:
            raise ValueError("time_limit must be positive, got 0.")
        if self.n_jobs is not None:
            require("n_jobs", self.n_jobs, "None or a whole number but 0", _is_job_count)

    @property
    def refits(self) -> bool:
        """Whether leaves get new values along with their choice."""
        return self.rule == "subtree" if self.refit is None else bool(self.refit)

    @property
    def new_values(self) -> bool:
        """Whether leaves get new values at all, for which shrinkage is."""
        return self.refits or self.polish == "leaf"

    @property
    def shrinkages(self) -> list[Any]:
        """The values of `shrinkage` to choose from, if one can choose; else the first counts."""
        if self.shrinkage is None:
            return list(SHRINKAGES if self.new_values else SHRINKAGES[:1])
        is_list = isinstance(self.shrinkage, (Sequence, np.ndarray)) and np.ndim(self.shrinkage)
        return list(cast(Any, self.shrinkage)) if is_list else [self.shrinkage]

    def _check_rule(self) -> None:
        """Refuse options that the rule cannot heed."""
        if self.shrinkage is not None and not self.new_values:
            raise ValueError(
                f"shrinkage={self.shrinkage!r} is about new values of leaves, but none are given: "
                "use it with refit=True (rule='subtree') or polish='leaf'."
            )
        if self.rule == "layer" and self.refit:
            raise ValueError(
                "refit=True needs rule='subtree'. With rule='layer', polish='leaf' gives leaves "
                "new values once the trees are cut."
            )
        if self.rule == "subtree" and self.joint is not None:
            raise ValueError(
                f"joint={self.joint!r} needs rule='layer'. With rule='subtree', refit=True gives "
                "every leaf a value of its own, and polish='ridge' reweights the trees."
            )
        if self.rule == "subtree" and isinstance(self.weighting, str) and self.weighting != "node":
            raise ValueError(
                "weighting='depth' charges for whole layers, but rule='subtree' keeps parts of "
                "them. Use weighting='node', or an array with one cost a node; or rule='layer'."
            )
        if self.rule == "subtree" and isinstance(self.local_search, str):
            raise ValueError(
                f"local_search={self.local_search!r} needs rule='layer': it is about whole trees."
            )

    @classmethod
    def of(cls, given: dict[str, Any]) -> "Options":
        """Return the options given by name; a name that is none of them is refused."""
        known = [field.name for field in fields(cls)]
        unknown = sorted(set(given) - set(known))
        if unknown:
            meant = get_close_matches(unknown[0], [*known, *_ASKED], 1)
            hint = f" Is {meant[0]!r} meant?" if meant else ""
            raise TypeError(
                f"There is no option {', '.join(map(repr, unknown))}.{hint} How to prune is said "
                f"by: {', '.join(known)}."
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


def require_flag(name: str, value: Any, *, or_none: bool = False) -> None:
    """Raise an error unless `value` is True or False, or None if that is allowed."""
    required = "True, False or None" if or_none else "True or False"
    allowed = (True, False, None) if or_none else (True, False)
    require(name, value, required, partial(_is_among, allowed))


def require_share(name: str, value: Any) -> None:
    """Raise an error unless `value` is a number between 0 and 1."""
    require(name, value, "a number between 0 and 1", lambda v: _is_number(v) and 0.0 < v < 1.0)


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
