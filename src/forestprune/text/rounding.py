"""How numbers are written: to some digits, or exactly."""

import numpy as np

from forestprune.forest.forest import Forest
from forestprune.text.additive import Condition

NEAR_ZERO = 1e-30
"""Below it a number is rounded to 0. LightGBM writes 1e-35 to separate rows above zero."""

_ALL_DIGITS = 17


def rounded_sign(threshold: float, written: float) -> str:
    """Return how x is to be compared with a threshold as it is `written`, which may be rounded.

    Values as round as the written threshold stay on their side of it: of 10.6 and 10.7, separated
    at 10.65, only the first is "< 10.7".
    """
    return "<" if written > threshold else "<="


class Rounding:
    """Writes the numbers of a forest to some digits, or exactly if `digits` is None.

    Thresholds of one feature get as many more digits as they need to stay different.
    """

    def __init__(self, forest: Forest, digits: int | None) -> None:
        self.digits = digits
        self._threshold_digits: dict[int, int] = {}
        if digits is None:
            return
        thresholds: dict[int, set[float]] = {}
        for node in np.flatnonzero(forest.left >= 0):
            condition = Condition.of(forest, int(node))
            if condition.categories is None:
                thresholds.setdefault(condition.feature, set()).add(condition.threshold)
        for feature, numbers in thresholds.items():
            self._threshold_digits[feature] = _digits_to_tell_apart(numbers, digits)

    @property
    def in_words(self) -> str:
        """What a reader has to know about the numbers."""
        if self.digits is None:
            return ""
        more = any(digits > self.digits for digits in self._threshold_digits.values())
        but = ", thresholds to more where they would be the same" if more else ""
        return f" Numbers are rounded to {self.digits} digits{but}."

    def plain(self, x: float) -> str:
        """Return a number."""
        return _number(x, self.digits)

    def signed(self, x: float) -> str:
        """Return a number with its sign."""
        text = self.plain(x + 0.0)  # turns a negative zero into zero
        return text if text.startswith("-") else f"+{text}"

    def threshold(self, condition: Condition) -> tuple[str, str]:
        """Return how a feature is compared, and with which number."""
        return _compared(condition.threshold, self._threshold_digits.get(condition.feature))


def _number(x: float, digits: int | None) -> str:
    if digits is None:
        return repr(x)
    if abs(x) < NEAR_ZERO:
        return "0"
    # 12345 to three digits is 12345: zeros would be no shorter.
    whole = 10.0**digits <= abs(x) < 1e15
    return f"{x:.0f}" if whole else f"{x:.{digits}g}"


def _digits_to_tell_apart(numbers: set[float], digits: int) -> int:
    """Return to how many digits, at least `digits`, numbers stay different when rounded."""
    while digits < _ALL_DIGITS and len({_compared(x, digits) for x in numbers}) < len(numbers):
        digits += 1
    return digits


def _compared(threshold: float, digits: int | None) -> tuple[str, str]:
    """Return how x is compared with a threshold, and the threshold as it is written."""
    text = _number(threshold, digits)
    return rounded_sign(threshold, float(text)), text
