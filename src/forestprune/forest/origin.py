"""Where a forest came from, and what its trees add up to."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from forestprune.forest.classes import Label, check_classes

Link = Literal["identity", "log", "logit", "softmax", "signed_sqrt"]
Response = Literal["value", "class", "probability", "raw"]

_NOT_ON_THE_SCALE_OF_Y = ("quantile", "expectile", "hinge")


@dataclass(frozen=True)
class Origin:
    """Where a forest came from, as plain data: enough to write the same kind of model again.

    Attributes
    ----------
    library : str
        Key of the registry, such as "sklearn".
    model_class : str
        Name of the model's class.
    state : mapping
        What the library's module needs besides the trees. Holds only what JSON can hold.
    link : {"identity", "log", "logit", "softmax", "signed_sqrt"}
        Link function: what it makes of the model's prediction is the raw prediction, the sum of
        the trees. "softmax" stands for that of several classes, whose raw predictions are logs of
        probabilities but for a constant that they share. "signed_sqrt" is
        ``sign(y) * sqrt(abs(y))``.
    objective : str
        The loss that the model was trained for, under one name for all libraries: "squared_error",
        "absolute_error", "quantile", "expectile", "huber", "pseudo_huber", "log_cosh", "fair",
        "absolute_percentage_error", "squared_percentage_error", "squared_log_error", "lq",
        "poisson", "gamma", "tweedie", "log_loss", "cross_entropy", "hinge", "brier" (of averaged
        probabilities); "unknown" if the model does not say.
    objective_params : mapping of str to float
        As far as the model says: "level" of a quantile or expectile, "power" of Tweedie's variance,
        "sigmoid", by which LightGBM multiplies the raw prediction to get log-odds, and "delta",
        from which on Huber's loss is linear.
    averages : bool
        Whether the trees are averaged, each a model in itself, rather than added up.
    monotone : tuple of int
        For each column of the forest 1 if predictions never fall as it rises, -1 if they never
        rise, 0 if nothing is promised; empty if no column has a constraint.
    interactions : tuple of tuples of int, or "pairwise"
        The groups of columns within which alone features may meet on a way from root to leaf, or
        any two of them; empty if there is no such constraint. Prunings keep it by themselves.
    classes : tuple of str, int, float or bool
        Labels of a classifier, in their order; empty for other models. Of two classes the forest
        has one output, about the second: its log-odds (link "logit") or, in an average of
        distributions, its probability (link "identity"). Of more it has one output a class: with
        the link "softmax", or with "logit" if each class was trained against all others.
    classes_dtype : str
        Type of the labels, as numpy names it: "<U4", "int64", "bool", "object".
    class_weight : tuple of float, "balanced" or "sqrt_balanced"
        By what the rows of each class count in training; by what makes all classes count the same,
        or by its root; empty if all rows count the same.
    response : {"value", "class", "probability", "raw"}
        What the `predict` of the model itself returns: the prediction, a label, the probabilities
        of classes (of two, that of the second), or raw predictions.
    """

    library: str
    model_class: str
    state: Mapping[str, Any] = field(default_factory=dict)
    link: Link = "identity"
    objective: str = "unknown"
    objective_params: Mapping[str, float] = field(default_factory=dict)
    averages: bool = False
    monotone: tuple[int, ...] = ()
    interactions: tuple[tuple[int, ...], ...] | Literal["pairwise"] = ()
    classes: tuple[Label, ...] = ()
    classes_dtype: str = ""
    class_weight: tuple[float, ...] | Literal["balanced", "sqrt_balanced"] = ()
    response: Response = "value"

    def __post_init__(self) -> None:
        if not isinstance(self.averages, bool):
            raise TypeError(f"averages must be True or False, got {self.averages!r}.")
        for name in ("library", "model_class", "objective"):
            if not isinstance(getattr(self, name), str):
                raise TypeError(f"{name} must be a string, got {getattr(self, name)!r}.")
        if self.link not in get_args(Link):
            raise TypeError(f"link must be one of {', '.join(get_args(Link))}, got {self.link!r}.")
        # Lists, as JSON has them, are taken too.
        object.__setattr__(self, "monotone", tuple(map(int, self.monotone)))
        if self.interactions != "pairwise":
            groups = tuple(tuple(map(int, group)) for group in self.interactions)
            object.__setattr__(self, "interactions", groups)
        if not set(self.monotone) <= {-1, 0, 1}:
            raise ValueError(f"monotone must hold -1, 0 and 1 only, got {self.monotone!r}.")
        object.__setattr__(self, "classes", tuple(self.classes))
        if self.response not in get_args(Response):
            known = ", ".join(get_args(Response))
            raise TypeError(f"response must be one of {known}, got {self.response!r}.")
        if not isinstance(self.class_weight, str):
            object.__setattr__(self, "class_weight", tuple(map(float, self.class_weight)))
        elif self.class_weight not in ("balanced", "sqrt_balanced"):
            raise ValueError(
                "class_weight must be numbers, 'balanced' or 'sqrt_balanced', got "
                f"{self.class_weight!r}."
            )
        check_classes(self.classes, self.classes_dtype, self.class_weight)

    @property
    def adds_up_to_y(self) -> bool:
        """Whether the raw prediction estimates the middle of y itself."""
        if self.link != "identity" or self._is_score:
            return False
        return self.objective not in _NOT_ON_THE_SCALE_OF_Y

    @property
    def _is_score(self) -> bool:
        """Whether nothing is known of the raw prediction, as of rankers and one's own losses."""
        return self.link == "identity" and self.objective == "unknown" and self.response == "raw"

    @property
    def predicts(self) -> str:
        """What the raw prediction stands for, in words, for messages: "y" or a function of it."""
        if self.objective == "hinge":
            return "a margin whose sign tells the class"
        if self._is_score:
            return "a score of its own"
        if self.link == "softmax":
            return "the logs of the probabilities of classes, but for a constant"
        what = "the signed square root of y" if self.link == "signed_sqrt" else "y"
        if self.objective in ("quantile", "expectile"):
            level = self.objective_params.get("level")
            which = f"a {self.objective}" if level is None else f"the {level:g} {self.objective}"
            what = f"{which} of {what}"
        elif self.link == "log":
            what = "the mean of y"
        if self.link == "log":
            what = f"the log of {what}"
        elif self.link == "logit":
            what = f"the log-odds of {what}"
        factor = self.objective_params.get("sigmoid", 1.0)
        return what if factor == 1.0 else f"{what}, divided by {factor:g}"


def origin_from_metadata(metadata: Mapping[str, Any]) -> Origin:
    """Return the origin that a file describes.

    Older files hold `predicts`, words as :attr:`Origin.predicts` has them, in place of the link and
    the objective.
    """
    fields = dict(metadata)
    words = fields.pop("predicts", None)
    if words is None:
        return Origin(**fields)
    links: dict[str, Link] = {
        "the log of": "log",
        "log-odds": "logit",
        "signed square root": "signed_sqrt",
    }
    objectives = {"quantile": "quantile", "expectile": "expectile", "margin": "hinge"}
    params = {
        name: float(found[1])
        for name, pattern in (
            ("level", r"the ([\d.e-]+) (?:quantile|expectile)"),
            ("sigmoid", r"divided by (.*)"),
        )
        if (found := re.search(pattern, words))
    }
    return Origin(
        **fields,
        link=next((link for part, link in links.items() if part in words), "identity"),
        objective=next((name for part, name in objectives.items() if part in words), "unknown"),
        objective_params=params,
    )
