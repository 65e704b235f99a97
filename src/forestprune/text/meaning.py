"""What the sums of a model stand for, and what predictions are made of them, in words."""

from dataclasses import dataclass

from forestprune.forest.classes import Label
from forestprune.forest.origin import Origin


@dataclass(frozen=True)
class Meaning:
    """What trees add up to.

    Attributes
    ----------
    total : str
        That of the whole model: "y", "the log-odds of 'yes'", "the probabilities of 3 classes".
    kind : str
        That of one class where there are several, before its name: "probability of".
    prediction : str
        What the prediction is, given that; empty if it is just that.
    classes : tuple of labels
        The classes that have an output each; empty if there is one output, or no class.
    """

    total: str
    kind: str = ""
    prediction: str = ""
    classes: tuple[Label, ...] = ()

    def of_output(self, output: int) -> str:
        """Return what the trees of one output add up to."""
        if not self.classes:
            return self.total
        return f"the {self.kind} {label_in_words(self.classes[output])}"

    def named(self, output: int) -> str:
        """Return which output this is: the name of its class, or its number."""
        return label_in_words(self.classes[output]) if self.classes else f"output {output}"


def meaning(origin: Origin | None) -> Meaning:
    """Return what the trees of a model add up to."""
    if origin is None:
        return Meaning("y")
    if not origin.classes or origin.objective == "hinge":
        return Meaning(origin.predicts, prediction=_value(origin))
    if len(origin.classes) == 2 and origin.link != "softmax":
        return _of_second(origin)
    return _of_several(origin)


def label_in_words(label: Label) -> str:
    """Return the name of a class such that it reads as one: texts in quotes."""
    return repr(label) if isinstance(label, str) else f"class {label}"


def capitalised(words: str) -> str:
    """Return words as the beginning of a sentence, without the article."""
    bare = words.removeprefix("the ").removeprefix("a ")
    return bare[:1].upper() + bare[1:]


def _value(origin: Origin) -> str:
    """Return the prediction of a number, given the raw prediction."""
    if origin.response == "raw":
        return ""
    return {
        "log": "The prediction is exp(sum)",
        "logit": f"The prediction is {_logistic(origin)}",
        "signed_sqrt": "The prediction is the square of the sum, with its sign",
    }.get(origin.link, "")


def _of_second(origin: Origin) -> Meaning:
    name = label_in_words(origin.classes[1])
    if origin.link == "identity":
        above = f"{name[:1].upper()}{name[1:]} is predicted if the sum is above 0.5"
        return Meaning(f"the probability of {name}", prediction=above)
    above = f"{name[:1].upper()}{name[1:]} is predicted if the sum is above 0"
    total = f"the log-odds of {name}{_divided(origin)}"
    return Meaning(total, prediction=f"{above}; its probability is {_logistic(origin)}")


def _of_several(origin: Origin) -> Meaning:
    classes = origin.classes
    of_all, largest = f"of {len(classes)} classes", "The class with the largest sum is predicted"
    if origin.link == "softmax":
        shares = "probabilities are exp(sum), divided by the total of these over all classes"
        return Meaning(
            f"the raw predictions {of_all}", "raw prediction of", f"{largest}; {shares}", classes
        )
    if origin.link == "logit":
        total = f"the log-odds of each {of_all}{_divided(origin)}"
        return Meaning(total, "log-odds of", largest, classes)
    return Meaning(f"the probabilities {of_all}", "probability of", largest, classes)


def _divided(origin: Origin) -> str:
    factor = origin.objective_params.get("sigmoid", 1.0)
    return "" if factor == 1.0 else f", divided by {factor:g}"


def _logistic(origin: Origin) -> str:
    factor = origin.objective_params.get("sigmoid", 1.0)
    return f"1 / (1 + exp(-{'' if factor == 1.0 else f'{factor:g} * '}sum))"
