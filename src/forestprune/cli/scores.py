"""How the full and the small model do on rows that were held out."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from forestprune.cli.work import Work
    from forestprune.pruned import PrunedForest


def scores(work: "Work", small: "PrunedForest") -> tuple[float | None, float | None]:
    """Return R squared of both, or None where no rows were held out.

    Without a target the full model is right by definition.
    """
    from sklearn.metrics import r2_score

    rows = work.held_out
    if rows is None or len(rows) < 2:  # of one row there is no R squared
        return None, None
    full = work.source.original.predict(work.source.transform(rows.X))
    target = full if rows.y is None else rows.y
    full_score, small_score = (
        float(
            r2_score(target, prediction, sample_weight=rows.weight, multioutput="variance_weighted")
        )
        for prediction in (full, small.predict(rows.X))
    )
    return full_score, small_score
