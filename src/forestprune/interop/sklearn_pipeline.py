"""Pipelines of scikit-learn: the forest at their end, and what its columns are called there."""

from dataclasses import replace
from typing import Any

from forestprune.forest.forest import Forest


def forest_of_pipeline(pipeline: Any) -> Forest:
    """Return the forest of the last step, with the names that the other steps give its columns."""
    return with_step_names(Forest.from_model(pipeline.steps[-1][1]), pipeline)


def with_step_names(forest: Forest, pipeline: Any) -> Forest:
    """Return a forest with names to show its columns by, if the model at the end knows none."""
    spec = forest.input
    if spec.feature_names is not None or spec.display_names is not None:
        return forest
    names = _step_names(pipeline)
    if names is None or len(names) != spec.n_features:
        return forest
    return replace(forest, input=replace(spec, display_names=names))


def _step_names(pipeline: Any) -> tuple[str, ...] | None:
    """Return what columns are called after all steps but the last, if every step can say."""
    if len(pipeline.steps) == 1:
        return None
    try:
        return tuple(str(name) for name in pipeline[:-1].get_feature_names_out())
    except Exception:
        # Steps may be anybody's, and names are only for show.
        return None
