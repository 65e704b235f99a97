"""Block coordinate descent: sweeps over the trees until none of them changes any more."""

from collections.abc import Sequence

import numpy as np

from forestprune.solve.rule import Rule


class Descent:
    """The way down from what a rule keeps now.

    Each sweep gives every tree, one after another, the pruning that is best given the others; the
    objective never rises, and after a sweep without a change no single tree can improve it, by more
    than the rule's tolerance.

    Attributes
    ----------
    rule : Rule
    sweeps, looks : int
        Sweeps made so far, and how often the rows of a tree were gone through in them.
    """

    def __init__(self, rule: Rule) -> None:
        self.rule = rule
        self.sweeps = 0
        self.looks = 0

    def descend(self, alpha: float, max_iter: int, *, held: Sequence[int] = ()) -> bool:
        """Sweep until no tree changes.

        Parameters
        ----------
        alpha : float
        max_iter : int
            Sweeps at most.
        held : sequence of int
            Trees that must not change.

        Returns
        -------
        bool
            Whether a sweep without a change was reached.
        """
        rule = self.rule
        order = rule.order[~np.isin(rule.order, held)] if len(held) else rule.order
        rule.begin(alpha, order)
        last = self.sweeps + max_iter
        while self.sweeps < last:
            changed, looked = rule.sweep(alpha, order)
            self.sweeps += 1
            self.looks += looked
            if changed:
                # Trees that are kept answer to each other's changes before all are asked again.
                sweeps, looked = rule.refine(alpha, order, last - self.sweeps)
                self.sweeps += sweeps
                self.looks += looked
            elif rule.holds(alpha, order):
                return True
        return False
