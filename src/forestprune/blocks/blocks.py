"""What rows by the block are: they come one block after another, as often as they are asked for."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Protocol, Self, TypeVar

from forestprune.system.progress import track

ABOUT_BLOCK = "That is about"
"""How errors begin to say which block they are about."""


class Summand(Protocol):
    """What a block yields, and several blocks together."""

    def __add__(self, other: Self) -> Self: ...


Found = TypeVar("Found", bound=Summand)


@dataclass(frozen=True, eq=False)
class Block:
    """Some rows.

    Attributes
    ----------
    X, y, weight
        As :func:`forestprune.prune` takes them.
    where : str
        What errors call the block.
    first : int
        How many rows there are before it.
    """

    X: Any
    y: Any
    weight: Any
    where: str
    first: int

    def __len__(self) -> int:
        return int(self.X.shape[0] if hasattr(self.X, "shape") else len(self.X))


class Blocks(ABC):
    """Rows by the block.

    Attributes
    ----------
    labelled : bool
        Whether they have a target.
    parallel : bool
        Whether several blocks are worked on at the same time, each by one thread.
    """

    labelled: bool
    parallel: bool = False

    def with_features(
        self,
        names: Sequence[str] | None,  # noqa: ARG002 - for those that can leave columns out
        *,
        underscores: bool = False,  # noqa: ARG002
    ) -> Self:
        """Return the same rows with the columns that a model knows by name, as far as possible.

        `underscores` tells that the model has these in place of spaces.
        """
        return self

    @abstractmethod
    def add_up(
        self, function: Callable[[Block], Found], description: str, n_rows: int | None = None
    ) -> Found:
        """Go through all rows, and return the sum of what `function` makes of each block.

        `n_rows` is how many there are, if that is known by now.
        """


class LocalBlocks(Blocks):
    """Rows by the block that come to this process, the next one while the last is worked on."""

    @abstractmethod
    def blocks(self) -> Iterator[Block]:
        """Yield all blocks, in an order that is always the same."""

    def add_up(
        self, function: Callable[[Block], Found], description: str, n_rows: int | None = None
    ) -> Found:
        """Go through all rows, and return the sum of what `function` makes of each block."""
        total: Found | None = None
        with closing(_ahead(self.blocks())) as blocks:
            for block in _counted(blocks, description, n_rows):
                if len(block):
                    found = named(function, block)
                    total = found if total is None else total + found
                    del found
                del block
        if total is None:
            raise ValueError("There are no rows: every block is empty.")
        return total


def named(function: Callable[[Block], Found], block: Block) -> Found:
    """Return what a function makes of a block; errors say which block it is."""
    try:
        return function(block)
    except (TypeError, ValueError) as error:
        error.add_note(f"{ABOUT_BLOCK} {block.where}.")
        raise


def _counted(blocks: Iterable[Block], description: str, n_rows: int | None) -> Iterator[Block]:
    """Yield blocks; show how many of the rows have been gone through."""
    if n_rows is None:
        yield from track(blocks, description, None)
        return
    from forestprune.system.progress import bar

    with bar(description, n_rows) as show:
        for block in blocks:
            show(block.first)
            yield block


def _ahead(blocks: Iterator[Block]) -> Generator[Block, None, None]:
    """Yield blocks, each fetched by another thread while the one before is worked on."""
    with ThreadPoolExecutor(1) as pool:
        coming = pool.submit(next, blocks, None)
        while (block := coming.result()) is not None:
            coming = pool.submit(next, blocks, None)
            yield block
            del block
