"""The model to be pruned: a forest, and whatever stands around it."""

import copy
from dataclasses import dataclass, replace
from typing import Any

from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline

from forestprune.forest import Forest


@dataclass(frozen=True, eq=False)
class Source:
    """A forest and the pipeline that it is the last step of, if any."""

    forest: Forest
    pipeline: Pipeline | None = None

    @classmethod
    def of(cls, model: Any) -> "Source":
        """Read a fitted model: a forest, or a pipeline that ends in one; frozen or not."""
        while isinstance(model, FrozenEstimator):
            model = model.estimator
        if isinstance(model, Forest):
            return cls(model)
        if isinstance(model, Pipeline):
            inner = cls.of(model.steps[-1][1])
            if inner.pipeline is not None:
                raise TypeError(
                    "A pipeline must end in a tree ensemble, but this one ends in another "
                    "pipeline. Put their steps into one."
                )
            return cls(inner.forest, model)
        return cls(Forest.from_model(model))

    def transform(self, X: Any) -> Any:
        """Return `X` as the forest sees it."""
        if self.pipeline is None or len(self.pipeline.steps) == 1:
            return X
        return self.pipeline[:-1].transform(X)

    def wrap(self, native: Any) -> Any:
        """Put a model in the forest's place in a copy of the pipeline."""
        if self.pipeline is None:
            return native
        pipeline = copy.copy(self.pipeline)
        pipeline.steps = [*self.pipeline.steps[:-1], (self.pipeline.steps[-1][0], native)]
        return pipeline

    def with_forest(self, forest: Forest) -> "Source":
        """Return this source with another forest."""
        return replace(self, forest=forest)
