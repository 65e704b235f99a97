"""How the full and the small model do, above all on rows that were held out."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from forestprune.cli.work import Work
    from forestprune.select.pruned import PrunedForest


ENOUGH = 100
"""Rows from which on R squared says something of others."""


def scores(work: "Work", small: "PrunedForest") -> tuple[float | None, float | None]:
    """Return R squared of both, or None where no rows were held out.

    Without a target the full model is right by definition.
    """
    rows = work.held_out
    if rows is None or len(rows) < 2:  # of one row there is no R squared
        return None, None
    full = work.source.original.predict(work.source.transform(rows.X))
    target = full if rows.y is None else rows.y
    return _score(target, full, rows.weight), _score(target, small.predict(rows.X), rows.weight)


def score_of_some(work: "Work") -> float | None:
    """Return R squared of the full model on some of the rows to prune with, if they tell."""
    rows = work.rows.some()
    weighed = rows.weight is None or bool(rows.weight.any())
    if rows.y is None or len(rows) < ENOUGH or not weighed or not rows.y.std():
        return None
    return _score(rows.y, work.source.original.predict(work.source.transform(rows.X)), rows.weight)


def _score(target: Any, said: Any, weight: Any) -> float:
    from sklearn.metrics import r2_score

    return float(r2_score(target, said, sample_weight=weight, multioutput="variance_weighted"))
