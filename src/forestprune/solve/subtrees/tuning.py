"""Numbers that decide how fast the subtree rule is, and when it stops."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Tuning:
    """See the subtree rule.

    Attributes
    ----------
    lazy : bool
        Pass over trees that certainly would not change. The result is the same, bit for bit.
    rounding : float
        Trees change only if the objective falls by more than this: less may be rounding.
    value_tolerance : float
        The same where leaf values are refitted, which could be improved for ever by less and less.
    smallest_alpha : float
        Where a grid of alphas ends, relative to where it begins.
    value_sweeps : int
        Sweeps at most that refit values only, between two that may change the shape of trees.
    ahead : float
        How far alpha may fall until active nodes are chosen anew.
    deep : float
        Nodes a tree, relative to rows, from which on active nodes pay: a node takes longer than a
        row.
    large : int
        Nodes of all trees from which on they pay: in a new installation they have to be compiled.
    screened_rows : float
        Screening pays if it leaves out what is below nodes of so many rows, or more.
    gram_leaves : int
        Leaves kept up to which values are refitted by how many rows they share.
    gram_rows : int
        Rows times trees from which on that pays: in a new installation it has to be compiled.
    again : float
        How far alpha must fall until one more tree is tried again, where that did not pay.
    shared : int
        Rows and nodes, all trees together, from which on going through them is shared by threads.
    """

    lazy: bool = True
    rounding: float = 1e-11
    value_tolerance: float = 1e-6
    smallest_alpha: float = 1e-5
    value_sweeps: int = 25
    ahead: float = 0.1
    deep: float = 0.2
    large: int = 100_000
    screened_rows: float = 15.0
    gram_leaves: int = 1024
    gram_rows: int = 100_000
    again: float = 0.8
    shared: int = 50_000

    def is_deep(self, n_nodes: int, n_codes: int) -> bool:
        """Tell whether active nodes pay, given nodes of all trees, and rows times trees."""
        return n_nodes > max(self.large, self.deep * n_codes)
