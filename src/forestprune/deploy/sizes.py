"""How many bytes a forest takes where it is deployed."""

from typing import Any

from forestprune.deploy.c_header import to_c
from forestprune.deploy.onnx_model import to_onnx
from forestprune.forest.forest import Forest

C_OPTIONS: dict[str, dict[str, Any]] = {
    "c": {"dtype": "float64"},
    "c-float32": {"dtype": "float32"},
    "c-int16": {"dtype": "float32", "leaves": "int16"},
    "c-int8": {"dtype": "float32", "leaves": "int8"},
}
"""For each format that counts C, how a forest is written as such."""


def deployed_bytes(forest: Forest, format: str) -> int:  # noqa: A002
    """Return the bytes of a forest as ONNX, or of its program in C on a microcontroller."""
    if format == "onnx":
        return len(to_onnx(forest).SerializeToString())
    n_bytes = to_c(forest, **C_OPTIONS[format]).n_bytes
    assert n_bytes is not None  # noqa: S101 - tables have it
    return n_bytes
