"""What a pruned model may take."""

from dataclasses import asdict, dataclass

import numpy as np

from forestprune.exceptions import OptionError, named
from forestprune.options import is_number, require, require_count, require_flag, require_number
from forestprune.solve.point import Point


@dataclass(frozen=True, kw_only=True)
class Budget:
    """What a pruned forest may take. None means as much as it likes."""

    max_nodes: int | None = None
    max_trees: int | None = None
    max_depth: int | None = None
    max_bytes: int | None = None

    def __post_init__(self) -> None:
        require_count("max_nodes", self.max_nodes, 3, ", a root and two leaves")
        require_count("max_trees", self.max_trees, 1)
        require_count("max_depth", self.max_depth, 1)
        require_count("max_bytes", self.max_bytes, 1)

    def __bool__(self) -> bool:
        return any(limit is not None for limit in asdict(self).values())

    def allows(self, point: Point) -> bool:
        """Tell whether a point keeps to the budget, bytes left aside."""
        return (
            (self.max_nodes is None or point.n_nodes <= self.max_nodes)
            and (self.max_trees is None or point.n_trees <= self.max_trees)
            and (self.max_depth is None or point.max_depth <= self.max_depth)
        )

    @property
    def named(self) -> str:
        """What is limited, as messages about options name it."""
        given = {name: limit for name, limit in asdict(self).items() if limit is not None}
        return ", ".join(named(name, limit) for name, limit in given.items())

    def __str__(self) -> str:
        return str(OptionError(self.named))


def check_quality(
    tolerance: float | None, one_standard_error: bool, confidence: float | None = None
) -> None:
    """Refuse what cannot be chosen by."""
    if tolerance is not None:
        require_number("tolerance", tolerance)
    if not isinstance(one_standard_error, (bool, np.bool_)):
        require_flag("one_standard_error", one_standard_error)
    if tolerance is not None and one_standard_error:
        raise OptionError("{tolerance} and {one_standard_error} exclude each other; give one.")
    if confidence is None:
        return
    required = "a number from 0.5 to below 1, such as 0.95"
    require("confidence", confidence, required, lambda c: is_number(c) and 0.5 <= c < 1.0)
    if tolerance is None:
        raise OptionError(
            f"{named('confidence', confidence)} is how sure it must be that a tolerance is kept "
            "to: give {tolerance} too."
        )
