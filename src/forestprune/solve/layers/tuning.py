"""Numbers that decide how fast the layer rule is, and how hard it searches."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Tuning:
    """See the layer rule.

    Attributes
    ----------
    lazy : bool
        Pass over trees that certainly would not change. The result is the same, bit for bit.
    rounding : float
        A depth changes only if the objective falls by more than this: less may be rounding.
    weight_tolerance : float
        The same where weights are free, which could be improved for ever by less and less.
    smallest_alpha : float
        Where a grid of alphas ends at the latest, relative to where it begins.
    guesses : int
        Sweeps over the sketch at most; they are guesses, so it need not have converged.
    cells, cell_layers : int
        Cells of a sketch, and layers they are made by; deeper ones differ too much from tree to
        tree.
    sketch_rows : int
        With fewer rows than this, looking at the rows themselves is as cheap as a sketch.
    sketch_share : float
        What the cells must explain of the trees' layers to be worth their while.
    probed_trees : int
        Trees that show how much that is.
    sampled_rows, sampled_trees : int
        Rows and trees from which cells are made.
    patience : int
        Failures in a row after which the random search of the paper gives up.
    tries, tries_of_weights : int
        Moves tried at most by the deterministic search; free weights have more ways to get stuck.
    search_budget : float
        How many moves of how large a problem, in rows times trees, are tried at each alpha, about.
    on_path : float
        On a path it is less by this factor: each solution begins with what the last one found.
    """

    lazy: bool = True
    rounding: float = 1e-11
    weight_tolerance: float = 1e-8
    smallest_alpha: float = 1e-6
    guesses: int = 100
    cells: int = 128
    cell_layers: int = 6
    sketch_rows: int = 4096
    sketch_share: float = 0.3
    probed_trees: int = 8
    sampled_rows: int = 4096
    sampled_trees: int = 16
    patience: int = 5
    tries: int = 16
    tries_of_weights: int = 32
    search_budget: float = 1.6e7
    on_path: float = 4
