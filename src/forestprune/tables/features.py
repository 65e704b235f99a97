"""What a model wants to know of a row, and which columns of a table that is."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from forestprune.exceptions import TableError
from forestprune.forest.frames import listed
from forestprune.tables.files import Table

if TYPE_CHECKING:
    from forestprune.interop.source import Source


@dataclass(frozen=True)
class Features:
    """What a model wants to know of a row.

    Attributes
    ----------
    names, count
        Its columns, if it knows their names, and how many it takes, if that is known.
    dtype : str or None
        The precision in which it compares; None if something else comes before its trees, which
        takes columns as they are.
    categories : mapping
        By the number of a column what stands in it, if these are categories.
    marked, likely
        In place of these: the categories of columns of which the model only knows the order, and
        the numbers that these columns probably have.
    underscores : bool
        Whether its names have underscores in place of spaces.
    refuses_unseen : bool
        Whether a category that it does not know is an error.
    """

    names: Sequence[str] | None
    count: int | None
    dtype: str | None = None
    categories: Mapping[int, Sequence[Any]] = field(default_factory=dict)
    marked: Sequence[Sequence[Any]] = ()
    likely: Sequence[int] = ()
    underscores: bool = False
    refuses_unseen: bool = False

    @classmethod
    def of(cls, source: "Source") -> "Features":
        """Return what the model in `source` takes."""
        pipeline = source.pipeline
        if pipeline is not None and len(pipeline.steps) > 1:
            names = getattr(pipeline, "feature_names_in_", None)
            count = getattr(pipeline, "n_features_in_", None)
            return cls(None if names is None else [str(name) for name in names], count)
        spec = source.forest.input
        if spec.hashed is not None:
            raise TableError(
                "The model has CatBoost's categories, which files of rows cannot be given for yet.",
                "Prune it in Python: forestprune.prune(model, table, y).",
            )
        known = spec.known_categories
        marked = () if known else spec.marked_categories or ()
        return cls(
            spec.feature_names,
            spec.n_features,
            spec.dtype,
            known,
            marked,
            spec.truncated if len(spec.truncated) == len(marked) else (),
            spec.underscores,
            spec.unseen == "refuse",
        )

    @property
    def any_categories(self) -> bool:
        """Whether any column holds categories."""
        return bool(self.marked) or any(self.categories.values())

    def find(self, table: Table, taken: Sequence[str]) -> list[str]:
        """Return the columns of a table that are the features, in their order.

        `taken` are columns that are something else.
        """
        if self.names is None:
            found = [name for name in table.columns if name not in taken]
            if self.count is not None and len(found) != self.count:
                raise TableError(
                    f"The model takes {self.count:,} features and does not know their names, but "
                    f"{table.path} has {len(found):,} columns besides {listed(list(taken))}: "
                    f"{listed(found)}.",
                    "Leave the others out with {ignored}."
                    if len(found) > self.count
                    else "All that it was trained with must be there, in the same order.",
                )
            return found
        known = {self._as_written(name): name for name in reversed(table.columns)}
        missing = [name for name in self.names if name not in known]
        if missing:
            raise TableError(
                f"{table.path} lacks features of the model: {with_hints(missing, table)}."
            )
        return [known[name] for name in self.names]

    def _as_written(self, name: str) -> str:
        return name.replace(" ", "_") if self.underscores else name


def with_hints(missing: Sequence[str], table: Table) -> str:
    """Return columns that are missing, and those that may be meant or all that there are."""
    meant = _meant(missing[0], table.columns)
    if meant is not None:
        return f"{listed(missing)} (is {meant!r} meant?)"
    some = listed(table.columns)
    last = repr(table.columns[-1])  # often what is to be predicted
    return f"{listed(missing)} (it has {some}{'' if last in some else f'; the last is {last}'})"


def _meant(name: str, columns: Sequence[str]) -> str | None:
    """Return the column that is most like a name, also if only its beginning is."""
    plain = {column.casefold(): column for column in columns}
    close = get_close_matches(name.casefold(), plain, 1)
    begun = [column for column in plain if column.startswith(name.casefold())]
    return plain[(close or begun)[0]] if name and (close or begun) else None
