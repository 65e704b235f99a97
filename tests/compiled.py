"""Headers in C, compiled and called: many of them by one call of the compiler."""

import ctypes
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import pytest

GCC = shutil.which("gcc")
needs_gcc = pytest.mark.skipif(GCC is None, reason="needs gcc, which is not installed")

STRICT = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic"]

RUN = """
void run_{name}_{what}(const {number} *rows, long n_rows, {result} *out)
{{
    long i;
    for (i = 0; i < n_rows; i++)
        {call};
}}
"""


class Compiled:
    """Some headers, whose functions take matrices. Each must have another name."""

    def __init__(self, headers, flags=("-O0",)):
        self.found = {}
        parts = []
        for header in headers:
            for line in re.findall(r"^static inline (.*)\)$", header, re.M):
                self._function(header, line, parts)
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            for place, header in enumerate(headers):
                (folder / f"{place}.h").write_text(header, encoding="ascii")
            includes = [f'#include "{place}.h"\n' for place in range(len(headers))]
            (folder / "all.c").write_text("".join(includes + parts))
            call = [GCC, *STRICT, *flags, "-shared", "-fPIC", "-o", "all.so", "all.c", "-lm"]
            done = subprocess.run(call, cwd=folder, capture_output=True, text=True)
            assert not done.returncode, done.stderr[:3000]
            self.library = ctypes.CDLL(str(folder / "all.so"))

    def _function(self, header, line, parts):
        match = re.fullmatch(r"(\w+) (\w+?)_(raw|predict|predict_proba)\(const (\w+) \*x(.*)", line)
        if match is None:
            return
        returned, name, what, number, more = match.groups()
        (width,) = re.findall(rf"{name}_n_(?:classes|outputs) = (\d+)", header)
        (n_features,) = re.findall(rf"{name}_n_features = (\d+)", header)
        if what == "raw" and int(width) == 2 and not more:
            width = 1  # of two classes there is one sum
        result = returned if returned != "void" else number
        row = f"rows + i * {n_features}"
        call = (
            f"{name}_{what}({row}, out + i * {width})" if more else f"out[i] = {name}_{what}({row})"
        )
        parts.append(RUN.format(name=name, what=what, number=number, result=result, call=call))
        types = {"double": np.float64, "float": np.float32, "int": np.int32}
        shape = (int(width),) if more else ()
        self.found[name, what] = (types[number], types[result], shape)

    def __call__(self, name, what, X):
        number, result, shape = self.found[name, what]
        with np.errstate(over="ignore", under="ignore"):
            rows = np.ascontiguousarray(X, dtype=number)
        out = np.empty((len(rows), *shape), dtype=result)
        function = getattr(self.library, f"run_{name}_{what}")
        function(
            ctypes.c_void_p(rows.ctypes.data),
            ctypes.c_long(len(rows)),
            ctypes.c_void_p(out.ctypes.data),
        )
        return out
