"""Compiled loops. Plain arrays in and out; nothing here knows what a Forest is.

Element by element: assigning arrays to slices takes numba seconds to compile.

A kernel is found here by its name, as in ``kernels.predict_rows(...)``, and its file is imported
when it is first called: numba would be the greater part of what importing this package adds to
importing scikit-learn.
"""

import importlib
from typing import Any

_FILES = {
    "add_up_rows": "sums",
    "add_leaves": "leaves",
    "assign_slots": "overlaps",
    "average_adds": "subtrees",
    "average_up": "sums",
    "best_subtrees": "subtrees",
    "choose_trunks": "trunks",
    "count_overlaps": "overlaps",
    "cut_trees": "layers",
    "encode_trees": "routing",
    "ends_at": "sketch",
    "fill_columns": "columns",
    "fill_subtree_tables": "columns",
    "fill_tables": "columns",
    "fill_trunks": "trunks",
    "first_fault": "structure",
    "gains_at_most": "coarse",
    "gains_of_whole": "trunks",
    "guess_layers": "layers",
    "keep_nodes": "structure",
    "level_order": "structure",
    "look_at_trees": "layers",
    "measure_layers": "layers",
    "number_all_ends": "trunks",
    "number_leaves": "leaves",
    "predict_rows": "routing",
    "price_choices": "layers",
    "refit_by_overlaps": "overlaps",
    "refit_values": "subtrees",
    "replace_columns": "columns",
    "set_subtrees": "subtrees",
    "sketch_layers": "sketch",
    "spread_below": "coarse",
    "square_rows": "coarse",
    "sum_leaves": "leaves",
    "sweep_layers": "layers",
    "sweep_subtrees": "subtrees",
}


def __getattr__(name: str) -> Any:
    if name not in _FILES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    kernel = getattr(importlib.import_module(f"{__name__}.{_FILES[name]}"), name)
    globals()[name] = kernel
    return kernel
