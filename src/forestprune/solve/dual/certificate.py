"""What a bound says of a solution: how far from the least objective it can be at most."""

import math
from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

Status = Literal["optimal", "bounded", "time limit", "unknown"]

OPTIMAL = 1e-6
"""Up to which gap a solution counts as optimal: objectives are not known much better."""


@dataclass(frozen=True)
class Certificate:
    """How far from the least objective a pruned model can be at most, and how that is known.

    About the objective that :func:`forestprune.prune` minimises, at the alpha of the model and on
    the rows that it was pruned with; it says nothing about errors on other rows.

    Attributes
    ----------
    bound : float or None
        No pruned model has a lower objective at this alpha. None if no bound is known.
    gap : float or None
        ``(objective - bound) / objective``, as solvers of mixed-integer programs print it.
    status : "optimal", "bounded", "time limit" or "unknown"
        Whether the gap is closed, but for a millionth; or there is a bound; or ``solver="exact"``
        ran out of time, and the bound is what is proved by then; or none is known.
    reason : str or None
        Why no bound is known.
    seconds : float
        How long it took.
    """

    bound: float | None
    gap: float | None
    status: Status
    reason: str | None
    seconds: float

    @classmethod
    def of(
        cls, objective: float, bound: float, seconds: float, *, timed_out: bool = False
    ) -> "Certificate":
        """Return what a bound says of a solution with this objective."""
        # No loss and no penalty is below 0; and what is found above the objective is rounding.
        objective, bound = float(objective), float(min(max(bound, 0.0), objective))
        gap = (objective - bound) / objective if objective > 0.0 else 0.0
        status: Status = "time limit" if timed_out else "bounded"
        return cls(bound, gap, "optimal" if gap <= OPTIMAL else status, None, seconds)

    @classmethod
    def none(cls, reason: str) -> "Certificate":
        """Return that no bound is known, and why."""
        return cls(None, None, "unknown", reason, 0.0)

    def to_dict(self) -> dict[str, Any]:
        """Return the attributes, as files hold them."""
        return asdict(self)

    @classmethod
    def from_dict(cls, known: dict[str, Any]) -> "Certificate":
        """Return what :meth:`to_dict` gave, checked."""
        found = cls(**known)
        numbers = [found.seconds, *(x for x in (found.bound, found.gap) if x is not None)]
        if not all(type(x) in (int, float) and math.isfinite(x) for x in numbers):
            raise ValueError("the numbers of a certificate must be finite")
        if found.status not in get_args(Status) or (found.bound is None) != (found.gap is None):
            raise ValueError("a certificate must have a known status, and a gap with its bound")
        return found

    def in_words(self) -> str:
        """Return what this says, as a sentence for readers who have not read of gaps."""
        if self.gap is None or self.bound is None:
            return f"How far from the best pruning this is at most is not known: {self.reason}."
        at = "at its alpha, on the rows it was pruned with"
        if self.status == "optimal":
            return f"This is the best pruning {at}: proved in {self.seconds:.1f} s."
        late = " by the time limit" if self.status == "time limit" else ""
        return (
            f"The best pruning {at}, has an objective that is lower by at most "
            f"{gap_in_words(self.gap)}: proved in {self.seconds:.1f} s{late}."
        )

    def __str__(self) -> str:
        took = f"{self.seconds:.1f} s"
        if self.bound is None or self.gap is None:
            return f"no bound: {self.reason}"
        if self.status == "optimal":
            return f"optimal, proved in {took}"
        late = ", stopped by the time limit" if self.status == "time limit" else ""
        return f"gap {gap_in_words(self.gap)}, bound {self.bound:.6g}, {took}{late}"


def gap_in_words(gap: float) -> str:
    """Return a gap in per cent, never less than it is."""
    if gap <= 0.0:
        return "0 %"
    step = 10.0 ** (math.floor(math.log10(100.0 * gap)) - 1)
    return f"{math.ceil(100.0 * gap / step) * step:.2g} %"
