"""The model to be pruned: a forest, and the pipeline around it, if any."""

import copy
import os
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from forestprune.exceptions import OptionError
from forestprune.forest import registry
from forestprune.forest.constraints import within_boxes
from forestprune.forest.forest import Forest
from forestprune.forest.symmetric import within_levels
from forestprune.interop.model_files import PICKLES
from forestprune.interop.sklearn_pipeline import with_step_names
from forestprune.options import DEPLOYED, require_choice


@dataclass(frozen=True, eq=False)
class Source:
    """A forest and the pipeline that it is the last step of, if any.

    Attributes
    ----------
    forest : Forest
        What is pruned.
    pipeline : Pipeline or None
    uncut : Forest or None
        The original forest, if `forest` is that one cut at a depth already, or with other values
        where its own would not keep constraints once it is pruned.
    max_depth : int or None
        That depth.
    ending : str
        Of the file that the pruned model will go to: the format in which its bytes are counted.
    """

    forest: Forest
    pipeline: Any = None
    uncut: Forest | None = None
    max_depth: int | None = None
    ending: str = ".joblib"

    @property
    def original(self) -> Forest:
        """The forest as it was."""
        return self.forest if self.uncut is None else self.uncut

    @classmethod
    def of(cls, model: Any, *, trust: bool = False) -> "Source":
        """Read a fitted model: a forest, or a pipeline that ends in one; frozen, in a file or not.

        See :meth:`Forest.from_file` for files, and for `trust`.
        """
        if isinstance(model, Source):
            return model
        if isinstance(model, str | os.PathLike):
            inside = cls.of(registry.load_model(model, trust=trust))
            return replace(inside, ending=Path(model).suffix.lower())
        while is_a(model, "sklearn.frozen", "FrozenEstimator"):
            model = model.estimator
        if isinstance(model, Forest):
            return cls.holding(model)
        if is_a(model, "sklearn.pipeline", "Pipeline"):
            inner = cls.of(model.steps[-1][1])._with_names_of(model)
            if inner.pipeline is not None:
                raise TypeError(
                    "A pipeline must end in a tree ensemble, but this one ends in another "
                    "pipeline. Put their steps into one."
                )
            return replace(inner, pipeline=model)
        return cls.holding(Forest.from_model(model))

    @classmethod
    def holding(cls, forest: Forest) -> "Source":
        """Return a forest to be pruned, its values such that all prunings keep its constraints."""
        inside = within_boxes(forest)
        return cls(inside, uncut=None if inside is forest else forest)

    def _with_names_of(self, pipeline: Any) -> "Source":
        uncut = None if self.uncut is None else with_step_names(self.uncut, pipeline)
        return replace(self, forest=with_step_names(self.forest, pipeline), uncut=uncut)

    def transform(self, X: Any) -> Any:
        """Return `X` as the forest sees it."""
        if self.pipeline is None or len(self.pipeline.steps) == 1:
            return X
        return self.pipeline[:-1].transform(X)

    @property
    def endings(self) -> tuple[str, ...]:
        """The endings of the files to which the pruned model can be saved."""
        origin = self.forest.origin
        if self.pipeline is not None:
            # Files of skops are for scikit-learn's own classes.
            own = origin is not None and origin.library == "sklearn"
            return registry.file_endings("sklearn") if own else PICKLES
        return (".npz",) if origin is None else (*registry.file_endings(origin.library), ".npz")

    def written_as(self, format: str | None) -> "Source":  # noqa: A002
        """Return this source with the format, if one is given, that its bytes are counted in."""
        if format is None:
            return self
        require_choice("format", format)
        if format not in DEPLOYED and f".{format}" not in self.endings:
            origin = self.forest.origin
            kind = "Forest" if origin is None else origin.model_class
            kind = kind if self.pipeline is None else f"Pipeline with a {kind}"
            known = [*(ending[1:] for ending in self.endings), *DEPLOYED]
            listed = " or ".join(map(repr, known))
            raise OptionError(f"{{format}} of a {kind} must be {listed}, got {format!r}.")
        return replace(self, ending=f".{format}")

    def wrap(self, native: Any) -> Any:
        """Put a model in the forest's place, in a copy of the pipeline."""
        if self.pipeline is None:
            return native
        steps = self.pipeline.steps
        pipeline = copy.copy(self.pipeline)
        pipeline.steps = [*copy.deepcopy(steps[:-1]), (steps[-1][0], native)]
        return pipeline

    def cut(self, depth: int) -> "Source":
        """Return this source with no tree deeper than `depth`."""
        forest = within_boxes(self.original.truncate(depth))
        return replace(self, forest=forest, uncut=self.original, max_depth=depth)

    def by_levels(self) -> "Source":
        """Return this source for a rule that keeps levels of symmetric trees.

        Constraints ask less of such trees than of others, so values can stay what they were.
        """
        if not self.forest.monotone.size:
            return self
        original = self.original
        cut = original if self.max_depth is None else original.truncate(self.max_depth)
        forest = within_levels(cut)
        return replace(self, forest=forest, uncut=None if forest is original else original)

    def surroundings(self) -> "Source | None":
        """Return the pipeline without the forest; None if there is no pipeline."""
        if self.pipeline is None:
            return None
        return Source(self.forest.truncate(0).compact(), self.wrap(None))


def is_a(model: Any, module: str, name: str) -> bool:
    """Tell whether `model` is an instance of a class, without importing what defines it."""
    # Somebody who has such an object has imported it; nobody else should have to.
    return module in sys.modules and isinstance(model, getattr(sys.modules[module], name))
