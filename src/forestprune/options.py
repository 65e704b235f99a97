"""The options: their names, types, defaults and texts, for every way to call the package.

This is the one place where they are declared. Choices are those of an option's type. In texts,
``{name}`` stands for another option: Python and the command line spell them differently.
"""

import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from difflib import get_close_matches
from functools import partial
from numbers import Integral, Real
from types import NoneType, UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Literal,
    TypeAlias,
    Union,
    cast,
    get_args,
    get_origin,
)

from forestprune.exceptions import OptionError, OptionText, escaped, named

if TYPE_CHECKING:  # the command line says what options there are before numpy is loaded
    from numpy.typing import ArrayLike

Rule = Literal["subtree", "oblivious", "layer"]
Joint = Literal["ridge", "subset"]
Polish = Literal["ridge", "subset", "leaf", "split"]
NamedWeighting = Literal["node", "depth"]
Weighting: TypeAlias = "NamedWeighting | ArrayLike"
LocalSearch = Literal["random", "correlated"]
SolverName = Literal["heuristic", "exact", "scip", "gurobi"]
Deployed = Literal["onnx", "c", "c-float32", "c-int16", "c-int8"]
Format = Literal["joblib", "pkl", "pickle", "skops", "json", "ubj", "txt", "cbm", "npz", Deployed]

DEPLOYED: tuple[str, ...] = get_args(Deployed)
"""Formats that are no files of a library, but what a model is deployed as."""

SHRINKAGES = (100.0, 10.0, 1000.0)
"""What shrinkage is chosen from; the first where there is nothing to choose by."""

SIZE, HOW, PAPER = "How small", "How to prune", "The paper's own"
"""Groups of options: those that matter to everybody come first."""


@dataclass(frozen=True)
class About:
    """What is known of an option besides its type and default.

    One line of help, and what `more` there is to know; what None stands for, if it is the default
    (`unset`); its group; its type in words, if these do not follow from the type (`kind`); the
    smallest number that is allowed (`least`).
    """

    help: str
    more: str = ""
    unset: str = ""
    group: str = HOW
    kind: str = ""
    least: float | None = None


def choices(kind: Any) -> tuple[Any, ...]:
    """Return all values that a type allows, or none if they cannot be listed."""
    if kind in (NoneType, bool):
        return (None,) if kind is NoneType else (True, False)
    if get_origin(kind) is Literal:
        return get_args(kind)
    if get_origin(kind) in (Union, UnionType):
        parts = [choices(part) for part in get_args(kind)]
        found = [choice for part in parts for choice in part] if all(parts) else []
        return tuple(sorted(found, key=lambda choice: choice is not None))
    return ()


def _spelled(kind: Any) -> list[str]:
    """Return the types of an option in the words of docstrings."""
    if get_origin(kind) is Literal:
        return [f'"{choice}"' for choice in get_args(kind)]
    if get_origin(kind) in (Union, UnionType):
        return [word for part in get_args(kind) for word in _spelled(part)]
    if get_origin(kind) is not None:
        return [f"list of {_spelled(get_args(kind)[0])[0]}"]
    return ["None" if kind is NoneType else kind.__name__]


def _documented(cls: type) -> type:
    """Add the parameters of a dataclass of options to its docstring; its signature has types only.

    With all that is said of them, nobody could read what `help` prints.
    """
    lines = ["", "", "Parameters", "----------"]
    for each in fields(cls):
        kind, text = get_args(each.type)
        unset = f"None: {text.unset}." if text.unset else ""
        words = " ".join(filter(None, (text.help, text.more, unset)))
        as_code = OptionText(words).rendered(
            lambda name, value: f"`{name}`" if value is None else f"``{name}={value}``"
        )
        *others, last = [text.kind] if text.kind else _spelled(kind)
        lines.append(f"{each.name} : {' or '.join(filter(None, [', '.join(others), last]))}")
        lines += textwrap.wrap(as_code, 92, initial_indent="    ", subsequent_indent="    ")
    cls.__doc__ = f"{cls.__doc__}{textwrap.indent(chr(10).join(lines), '    ').rstrip()}\n    "
    types = {each.name: get_args(each.type)[0] for each in fields(cls)}
    types = {name: getattr(kind, "__forward_arg__", kind) for name, kind in types.items()}
    cast(Any, cls).__init__.__annotations__ = types | {"return": None}
    return cls


@_documented
@dataclass(frozen=True, kw_only=True)
class Size:
    """How small the model is to be. All are keyword arguments of `prune`."""

    max_nodes: Annotated[
        int | None, About("Nodes at most, roots and leaves included.", group=SIZE, least=3)
    ] = None
    max_trees: Annotated[
        int | None,
        About(
            "Trees at most.",
            'With ``polish="subset"``, how many trees to pick.',
            group=SIZE,
            least=1,
        ),
    ] = None
    max_bytes: Annotated[int | None, About("Size of the file at most.", group=SIZE, least=1)] = None
    format: Annotated[
        Format | None,
        About(
            "Format of the file that {max_bytes} counts, by its ending.",
            'Any that the model can be written in: "json", "ubj" (XGBoost), "txt" (LightGBM), '
            '"cbm", "json" (CatBoost), "skops" (scikit-learn), "joblib", "pkl" (any), "npz" (a '
            '``Forest``), or what it is deployed as: "onnx"; "c", the program in C on a '
            'microcontroller, "c-float32", with numbers in single precision, "c-int16" and '
            '"c-int8", with leaves of 16 or 8 bits besides.',
            unset="that of the file which the model was read from, else joblib",
            group=SIZE,
        ),
    ] = None
    max_depth: Annotated[
        int | None,
        About("Depth of every tree at most; goes with all the others.", group=SIZE, least=1),
    ] = None
    alpha: Annotated[
        float | None,
        About(
            "What keeping everything costs, in units of the loss of the best constant.",
            group=SIZE,
            least=0,
        ),
    ] = None
    tolerance: Annotated[
        float | None,
        About(
            "The smallest model whose score falls by no more than this on validation rows.",
            "In units of R squared, or of D squared or {scoring}.",
            group=SIZE,
            least=0,
        ),
    ] = None
    confidence: Annotated[
        float | None,
        About(
            "How sure, from 0.5 to below 1, validation rows must make that {tolerance} is kept to.",
            "With 0.95, a model is good enough if what the score loses on validation rows, plus "
            "1.64 of its standard errors, is within {tolerance}: the upper end of a one-sided "
            "confidence interval. It is the standard error of the difference between both models "
            "on the same rows.",
            unset="0.5, the loss as measured",
            group=SIZE,
            least=0.5,
        ),
    ] = None
    one_standard_error: Annotated[
        bool,
        About(
            "The smallest model within one standard error of the best on validation rows.",
            group=SIZE,
        ),
    ] = False
    n_alphas: Annotated[
        int,
        About(
            "How fine the path is: points for the first five decades of alpha.", group=SIZE, least=1
        ),
    ] = 100


@_documented
@dataclass(frozen=True, kw_only=True, eq=False)
class Options:
    """How to prune. All are keyword arguments of `prune`, `prune_path` and the estimators."""

    rule: Annotated[
        Rule | None,
        About(
            "Keep any part of a tree from its root on, any levels of symmetric trees, or cut trees "
            "at depths.",
            'The last is the rule of the paper. What "oblivious" leaves of symmetric trees is '
            "symmetric.",
            unset="oblivious for symmetric models of CatBoost, else subtree",
        ),
    ] = None
    refit: Annotated[
        bool | None,
        About(
            "Give leaves new values as they are chosen.",
            'The rule "layer" cannot, but see {polish}.',
            unset="with all rules but layer",
        ),
    ] = None
    shrinkage: Annotated[
        float | Sequence[float] | None,
        About(
            "How strongly new leaf values are drawn to the original ones, in rows; several, to "
            "choose from.",
            "New values come from {refit} or {polish}. A leaf with as many rows, or as "
            "much of their weight, goes half of the way. 0 leaves them free, which overfits noisy "
            "data. From a list, validation rows or folds choose. Weights of rows count as "
            "repetitions; if yours sum to 1, give a shrinkage to match.",
            unset="100, or the best of 10, 100 and 1000 where validation rows or folds choose; for "
            "new splits, whose leaves are drawn to 0, the best of 30, 150 and 6 or 750",
            least=0,
        ),
    ] = None
    polish: Annotated[
        Polish | None,
        About(
            "After pruning, refit tree weights or leaf values, or choose the splits anew.",
            'The intercept too. "ridge" reweights all trees; "subset" keeps the best {max_trees}, '
            'or, without that, those worth {alpha2}; "leaf" refits the values of all leaves. '
            '"split" gives the trees other splits than the original\'s where that lowers the loss, '
            "and new values: best where a random forest becomes small. Validation rows choose "
            "between models with and without.",
        ),
    ] = None
    scoring: Annotated[
        Any,
        About(
            "What validation rows choose by and {tolerance} is measured in.",
            'Any scorer of scikit-learn by its name, such as "accuracy", "balanced_accuracy", '
            '"roc_auc", "neg_log_loss" or "neg_mean_absolute_error", or a function as '
            "``make_scorer`` makes them. Greater is better.",
            unset="the share of the loss explained: R squared for squared error, else D squared",
            kind="str, callable or None",
        ),
    ] = None
    weighting: Annotated[
        Weighting,
        About(
            "What is charged for: nodes, or depth ({rule='layer'} only).",
            '"node" gives the smallest models; "depth" charges 1 a layer and gives fewer trees. Or '
            "your own costs, not negative: an array of shape (n_nodes,), one a node of the "
            '``Forest``, where roots count for nothing; or, with the rule "layer", of shape '
            "(n_trees, max_depth), one a layer below the root.",
            kind='"node", "depth" or array-like',
        ),
    ] = "node"
    certify: Annotated[
        bool,
        About(
            "Say how far from the least objective the model can be at most.",
            "Afterwards ``small.gap`` is that, ``small.bound`` what no pruning at this alpha is "
            "below, and ``small.certificate`` says more. It takes about as long as pruning.",
        ),
    ] = False
    max_iter: Annotated[
        int,
        About(
            "Sweeps over all trees at most, for each alpha.",
            "A local search has as many for each move.",
            least=1,
        ),
    ] = 1000
    n_jobs: Annotated[int | None, About("Threads to use.", unset="every core")] = None
    joint: Annotated[
        Joint | None,
        About(
            "Choose the weight of each tree along with its depth ({rule='layer'} only).",
            "Section 3.4 of the paper, with a penalty on the squares of the weights or on their "
            "number. None leaves the weights at 1.",
            group=PAPER,
        ),
    ] = None
    alpha2: Annotated[
        float,
        About(
            "Penalty on the weights of trees, for {joint} and {polish}.",
            'It has no unit: for "ridge" relative to the size of each tree\'s contribution, for '
            '"subset" the share of the target\'s variance that a tree must explain to be kept.',
            group=PAPER,
            least=0,
        ),
    ] = 0.01
    local_search: Annotated[
        bool | LocalSearch,
        About(
            "How to get out of local optima (random, correlated: {rule='layer'} only).",
            'True: the most promising moves, deterministically. "random": as in the paper, drop a '
            'random tree and let the first absent one in. "correlated": the same, but in comes the '
            "tree most correlated with the residual. Subtrees are not searched: each alpha is "
            "solved from a higher one.",
            group=PAPER,
        ),
    ] = True
    solver: Annotated[
        SolverName,
        About(
            "What proves a solution to be the best: exact, for small models; others for "
            "{polish='subset'}.",
            'With "exact", pruning itself: by branch and bound, if there are a few hundred splits '
            'or layers to choose from and {alpha} is given. For a best subset of trees "scip" and '
            '"gurobi", by mixed-integer programming (``pip install pyscipopt``, or ``gurobipy``).',
            group=PAPER,
        ),
    ] = "heuristic"
    time_limit: Annotated[
        float,
        About(
            "Seconds for an exact solver, for each model that it solves for.",
            "On a path that is each point.",
            group=PAPER,
            least=0.001,
        ),
    ] = 60.0
    random_state: Annotated[
        Any, About("For the random local search.", group=PAPER, kind="int, RandomState or None")
    ] = None

    def __post_init__(self) -> None:
        for each in fields(self):
            allowed = choices(get_args(each.type)[0])
            if allowed:
                listed = " or ".join(map(repr, allowed))
                require(each.name, getattr(self, each.name), listed, partial(_is_among, allowed))
        if isinstance(self.weighting, str):
            known = get_args(NamedWeighting)
            listed = f"{', '.join(map(repr, known))} or an array of costs"
            require("weighting", self.weighting, listed, partial(_is_among, known))
        require_number("alpha2", self.alpha2)
        for shrinkage in self.shrinkages:
            require("shrinkage", shrinkage, "a finite number, not negative, or a list", is_number)
        if not self.shrinkages:
            raise OptionError("{shrinkage} must be a number, or a list of at least one; got none.")
        self._check_rule()
        if self.polish == "split" and not isinstance(self.weighting, str):
            raise OptionError(
                "{weighting} must be 'node' with {polish='split'}, got an array: its costs are "
                "those of the model's own nodes, and splits that are chosen anew make others."
            )
        require("max_iter", self.max_iter, "a whole number, at least 1", partial(_is_count, 1))
        require("time_limit", self.time_limit, "a positive, finite number", _is_positive)
        if self.n_jobs is not None:
            require("n_jobs", self.n_jobs, "None or a whole number but 0", _is_job_count)

    @property
    def refits(self) -> bool:
        """Whether leaves get new values as they are chosen."""
        return self.rule != "layer" if self.refit is None else bool(self.refit)

    @property
    def new_values(self) -> bool:
        """Whether leaves get new values at all, which is what shrinkage is for."""
        return self.refits or self.polish in ("leaf", "split")

    @property
    def plain(self) -> "Options":
        """How to prune what gets new splits afterwards."""
        return replace(self, polish=None, shrinkage=self.shrinkage if self.refits else None)

    @property
    def shrinkages(self) -> list[Any]:
        """The values of `shrinkage` to choose from, if one can choose; else the first counts."""
        given: Any = self.shrinkage
        if given is None:
            return list(SHRINKAGES if self.new_values else SHRINKAGES[:1])
        several = isinstance(given, Sequence) and not isinstance(given, str)
        return list(given) if several or getattr(given, "ndim", False) else [given]

    def _check_rule(self) -> None:
        """Refuse options that do not go with the rule."""
        if self.shrinkage is not None and not self.new_values:
            raise OptionError(
                f"{named('shrinkage', self.shrinkage)} is about new values of leaves, but they "
                "get none: use it with {refit=True} ({rule='subtree'}) or {polish='leaf'}."
            )
        if self.solver == "exact" and self.polish is not None:
            raise OptionError(
                f"{named('solver', repr(self.solver))} finds the best pruning, and what "
                f"{named('polish', repr(self.polish))} then makes of it is none. Leave one of them "
                "out; a best subset of trees is found by 'scip' or 'gurobi'."
            )
        if self.rule == "layer" and self.refit:
            raise OptionError(
                "{refit=True} needs {rule='subtree'}. With {rule='layer'}, {polish='leaf'} gives "
                "leaves new values once the trees are cut."
            )
        if self.rule == "layer":
            return
        if self.joint is not None:
            raise OptionError(
                f"{named('joint', repr(self.joint))} needs {{rule='layer'}}. With "
                "{rule='subtree'}, {refit=True} gives every leaf a value of its own, and "
                "{polish='ridge'} reweights the trees."
            )
        by_depth = isinstance(self.weighting, str) and self.weighting != "node"
        if by_depth and self.rule != "oblivious":
            raise OptionError(
                "{weighting='depth'} charges for whole layers, but {rule='subtree'} keeps parts of "
                "them. Use {weighting='node'}, or an array with one cost a node; or "
                "{rule='layer'}, or, if trees are symmetric, {rule='oblivious'}."
            )
        if isinstance(self.local_search, str):
            raise OptionError(
                f"{named('local_search', repr(self.local_search))} needs {{rule='layer'}}: it is "
                "about whole trees."
            )

    @classmethod
    def of(cls, given: dict[str, Any]) -> "Options":
        """Return the options given by name; unknown names are refused."""
        known = [each.name for each in fields(cls)]
        unknown = sorted(set(given) - set(known))
        if unknown:
            meant = get_close_matches(unknown[0], [*known, *_ELSEWHERE], 1)
            hint = f" Is {meant[0]!r} meant?" if meant else ""
            raise TypeError(
                f"There is no option {', '.join(map(repr, unknown))}.{hint} How to prune is said "
                f"by: {', '.join(known)}."
            )
        return cls(**given)


TABLE = {each.name: each for table in (Size, Options) for each in fields(cast(Any, table))}
"""All options, by their names."""

_ELSEWHERE = (
    *(each.name for each in fields(cast(Any, Size))),
    *("X_val", "y_val", "sample_weight", "sample_weight_val"),
)
"""Keyword arguments of `prune` that say something else than how to prune."""


def default(name: str) -> Any:
    """Return the default of an option."""
    return TABLE[name].default


def about(name: str) -> About:
    """Return what is known of an option besides its type and default."""
    return cast(About, get_args(TABLE[name].type)[1])


def require(name: str, value: Any, required: str, holds: Callable[[Any], bool]) -> None:
    """Raise an error that says what `name` must be, unless `holds(value)`."""
    if not holds(value):
        raise OptionError(f"{{{name}}} must be {required}, got {escaped(repr(value))}.")


def require_number(name: str, value: Any) -> None:
    """Raise an error unless `value` is a finite number, not negative."""
    require(name, value, "a finite number, not negative", is_number)


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
    require(name, value, "a number between 0 and 1", lambda v: is_number(v) and 0.0 < v < 1.0)


def require_choice(name: str, value: Any) -> None:
    """Raise an error unless `value` is one of those that the type of an option lists."""
    allowed = choices(get_args(TABLE[name].type)[0])
    require(name, value, " or ".join(map(repr, allowed)), partial(_is_among, allowed))


def require_heuristic(options: Options) -> None:
    """Refuse an exact solver where many alphas are solved for."""
    if options.solver == "exact":
        raise OptionError(
            "{solver='exact'} finds the best model for one {alpha}: give both to prune(). For what "
            "a path has, {certify=True} tells how far from the best it can be at most."
        )


def _is_among(allowed: tuple[Any, ...], value: Any) -> bool:
    import numpy as np

    if isinstance(value, (bool, np.bool_)):
        return any(choice is bool(value) for choice in allowed)
    # Anything but None and strings could equal True, or be an array.
    return (value is None or isinstance(value, str)) and value in allowed


def is_number(value: Any) -> bool:
    """Tell whether `value` is a finite number, not negative."""
    # numpy's truth values are not registered as numbers, Python's are.
    is_real = isinstance(value, Real) and not isinstance(value, bool)
    return is_real and 0.0 <= float(value) < float("inf")


def _is_positive(value: Any) -> bool:
    return is_number(value) and value > 0


def _is_count(least: int, value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= least


def _is_job_count(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool) and value != 0
