"""Compiled loops. Plain arrays in and out; nothing here knows what a Forest is.

A kernel is found here by its name, as in ``kernels.predict_rows(...)``, and its file is imported
when it is first called: numba would be the greater part of what importing this package adds to
importing scikit-learn.
"""

import importlib
from typing import Any

_FILES = {
    "add_up_rows": "sums",
    "average_up": "sums",
    "encode_trees": "routing",
    "first_fault": "structure",
    "keep_nodes": "structure",
    "level_order": "structure",
    "predict_rows": "routing",
}


def __getattr__(name: str) -> Any:
    if name not in _FILES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    kernel = getattr(importlib.import_module(f"{__name__}.{_FILES[name]}"), name)
    globals()[name] = kernel
    return kernel
