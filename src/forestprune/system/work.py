"""How much of some work is done, if it goes in steps and a step is work of its own."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

SHARE = 0.7
"""Share of what is left of a step that work within it is taken for, until a step has shown it."""

QUICK = 0.2
"""Seconds; work within a step that takes less counts for nothing until a step has shown it."""


@dataclass(eq=False)
class Work:
    """Some work that is under way.

    Parameters
    ----------
    description : str
    total : float or None
        How much there is to do, or a guess; None if nobody knows.
    power : float
        1 if all steps take equally long. With 2, half of the steps take a quarter of the time: for
        steps that become slower.
    """

    description: str
    total: float | None
    power: float = 1.0
    begun: float = field(default_factory=time.monotonic)
    _done: float = 0.0
    _step_begun: float = field(default_factory=time.monotonic)
    _part_done: float = 0.0
    _part: tuple[float, float] = (0.0, 1.0)
    _took: dict[str, tuple[float, float]] = field(default_factory=dict)
    _takes: dict[str, tuple[float, float]] = field(default_factory=dict)

    def advance(self, done: float) -> None:
        """Note how much is done; if that is more than before, a step has ended."""
        if done > self._done:
            now = time.monotonic()
            whole = max(now - self._step_begun, 1e-9)
            self._takes = {name: (a / whole, b / whole) for name, (a, b) in self._took.items()}
            self._step_begun, self._part_done, self._took = now, 0.0, {}
        self._done = done

    def begin(self, inner: "Work") -> None:
        """Let some work within the present step begin.

        It is taken for the part of the step that work of this name was in the step before; in the
        first step, for most of what is left.
        """
        rest = 1.0 - self._part_done
        first_guess = (self._part_done, self._part_done + SHARE * rest)
        inner._part = self._takes.get(inner.description, first_guess)

    def end(self, inner: "Work") -> None:
        """Let some work within the present step end."""
        now = time.monotonic()
        begun, _ = self._took.get(inner.description, (inner.begun - self._step_begun, 0.0))
        self._took[inner.description] = (begun, now - self._step_begun)
        if now - inner.begun > QUICK or inner.description in self._takes:
            self._part_done = max(self._part_done, inner._part[1])

    def _share(self, part: float) -> float:
        """Return how much is done, from 0 to 1, if this part of the present step is."""
        if not self.total or self.total <= 0.0:
            return 0.0
        return float(min(1.0, (self._done + part) / self.total) ** self.power)


def share_done(works: Sequence[Work]) -> float | None:
    """Return how much of the first work is done, each being within a step of the one before.

    None if nobody knows, or if there was more to do than had been guessed.
    """
    if not works or works[0].total is None:
        return None
    share = works[-1]._share(works[-1]._part_done)
    for work, inner in zip(works[-2::-1], works[:0:-1], strict=True):
        first, last = inner._part
        share = work._share(first + (last - first) * share)
    return share if share < 1.0 else None


def time_left(share: float, elapsed: float) -> str:
    """Return in words how long the rest will take if it goes on like this; '' if too early."""
    if share < 0.01:
        return ""
    seconds = elapsed * (1.0 - share) / share
    if seconds < 10.0:
        return "some seconds left"
    if seconds < 55.0:
        return f"about {5 * round(seconds / 5)} s left"
    if seconds < 3570.0:
        return f"about {round(seconds / 60)} min left"
    return f"about {seconds / 3600:.1f} h left"
