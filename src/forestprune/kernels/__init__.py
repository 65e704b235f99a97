"""Compiled loops. Plain arrays in and out; nothing here knows what a Forest is.

Element by element: assigning arrays to slices takes numba seconds to compile.

A kernel is found here by its name, as in ``kernels.predict_rows(...)``, and its file is imported
when it is first called: numba would be the greater part of what importing this package adds to
importing scikit-learn.
"""

import importlib
from collections.abc import Callable
from typing import Any

_FILES = {
    "add_leaves": "leaves",
    "add_up_bins": "histograms",
    "add_up_children": "sums",
    "add_up_rows": "sums",
    "average_up": "sums",
    "best_prunings": "subtrees",
    "best_split": "splits",
    "bound_nodes": "constraints",
    "count_overlaps": "overlaps",
    "cut_trees": "layers",
    "encode_trees": "routing",
    "ends_at": "sketch",
    "fill_active": "active",
    "fill_columns": "columns",
    "first_fault": "structure",
    "gains_at_most": "screening",
    "gains_by_levels": "oblivious",
    "guess_layers": "layers",
    "keep_levels": "oblivious",
    "keep_nodes": "structure",
    "level_order": "structure",
    "look_at_trees": "layers",
    "lowest_levels": "level_mixtures",
    "lowest_prunings": "mixtures",
    "measure_layers": "layers",
    "measure_mixtures": "mixtures",
    "fall_at_leaves": "regrowing",
    "number_all_leaves": "leaves",
    "number_level_leaves": "oblivious",
    "order_rows": "regrowing",
    "part_rows": "histograms",
    "predict_rows": "routing",
    "price_choices": "layers",
    "project_leaves": "distributions",
    "reach_leaves": "regrowing",
    "refit_by_overlaps": "overlaps",
    "refit_levels": "oblivious",
    "refit_values": "subtrees",
    "replace_columns": "columns",
    "settle_leaves": "oblivious",
    "share_leaves": "leaves",
    "sketch_layers": "sketch",
    "spread_below": "screening",
    "square_rows": "screening",
    "sum_leaves": "leaves",
    "sweep_layers": "layers",
    "sweep_level_mixtures": "level_mixtures",
    "sweep_levels": "oblivious",
    "sweep_mixtures": "mixtures",
    "sweep_subtrees": "subtrees",
    "tabulate_cells": "oblivious",
    "take_from_bins": "histograms",
    "total_of_rows": "histograms",
}


awaited: dict[str, Callable[[], object]] = {}
"""For kernels that another process compiles now, what to call before they are used here."""


def __getattr__(name: str) -> Any:
    if name not in _FILES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    wait = awaited.pop(name, None)
    if wait is not None:
        wait()
    kernel = getattr(importlib.import_module(f"{__name__}.{_FILES[name]}"), name)
    globals()[name] = kernel
    return kernel
