"""Universal Binary JSON, as far as XGBoost writes and reads it.

XGBoost's own binary format: its numbers are exact, and an array of them is one copy of memory,
where JSON would be text and a Python object for every number.
"""

import struct
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

_CODES = {"i": "i1", "U": "u1", "I": ">i2", "l": ">i4", "L": ">i8", "d": ">f4", "D": ">f8"}
_TYPES = {marker.encode(): np.dtype(code) for marker, code in _CODES.items()}
_MARKERS = {dtype.newbyteorder("="): marker for marker, dtype in _TYPES.items()}
_CONSTANTS = {b"T": True, b"F": False, b"Z": None}


def loads(data: bytes | bytearray) -> Any:
    """Return what `data` holds; arrays that name the type of their numbers become numpy arrays."""
    return _Reader(bytes(data)).value()


class _Reader:
    """Reads one value after the other."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def take(self, count: int) -> bytes:
        """Return the next `count` bytes and step over them."""
        start, self.at = self.at, self.at + count
        if not start <= self.at <= len(self.data):
            raise ValueError("The data ends too early.")
        return self.data[start : self.at]

    def peek(self) -> bytes:
        return self.data[self.at : self.at + 1]

    def value(self) -> Any:
        marker = self.take(1)
        if marker == b"{":
            return self.mapping()
        if marker == b"[":
            return self.array()
        if marker == b"S":
            return self.text()
        if marker in _CONSTANTS:
            return _CONSTANTS[marker]
        return self.numbers(marker, 1)[0].item()

    def text(self) -> str:
        return self.take(self.value()).decode()

    def mapping(self) -> dict[str, Any]:
        result = {}
        while self.peek() != b"}":
            name = self.text()
            result[name] = self.value()
        self.at += 1
        return result

    def array(self) -> Any:
        if self.peek() == b"$":
            self.at += 1
            marker, _ = self.take(1), self.take(1)
            return self.numbers(marker, self.value())
        if self.peek() == b"#":
            self.at += 1
            return [self.value() for _ in range(self.value())]
        result = []
        while self.peek() != b"]":
            result.append(self.value())
        self.at += 1
        return result

    def numbers(self, marker: bytes, count: int) -> NDArray[Any]:
        if marker not in _TYPES:
            raise ValueError(f"There is no type {marker!r}.")
        dtype = _TYPES[marker]
        data = np.frombuffer(self.take(count * dtype.itemsize), dtype)
        return data.astype(dtype.newbyteorder("="))


def dumps(value: Any) -> bytearray:
    """Return `value` as XGBoost takes it: numpy arrays in their type, lists item by item."""
    out = bytearray()
    _write(value, out)
    return out


def _write(value: Any, out: bytearray) -> None:
    if isinstance(value, Mapping):
        out += b"{"
        for name, item in value.items():
            _write_text(name, out)
            _write(item, out)
        out += b"}"
    elif isinstance(value, np.ndarray):
        marker = _MARKERS[value.dtype]
        out += b"[$" + marker + b"#L" + struct.pack(">q", value.size)
        out += value.astype(_TYPES[marker]).tobytes()
    elif isinstance(value, list):
        out += b"[#L" + struct.pack(">q", len(value))
        for item in value:
            _write(item, out)
    elif isinstance(value, str):
        out += b"S"
        _write_text(value, out)
    elif isinstance(value, bool) or value is None:
        out += {True: b"T", False: b"F", None: b"Z"}[value]
    elif isinstance(value, int):
        out += b"L" + struct.pack(">q", value)
    else:
        out += b"d" + struct.pack(">f", value)


def _write_text(text: str, out: bytearray) -> None:
    data = text.encode()
    out += b"L" + struct.pack(">q", len(data)) + data
