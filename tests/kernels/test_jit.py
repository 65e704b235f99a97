"""How kernels are compiled: whether or not machine code can be kept, and never a stale one."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numba
import pytest
from effort import INTERPRETED

import forestprune
from forestprune.kernels import jit


@pytest.mark.parametrize("can_cache", [True, False])
@pytest.mark.parametrize("compiled", [jit.kernel, jit.inner])
def test_kernels_compile_whether_or_not_they_can_be_kept(monkeypatch, can_cache, compiled):
    asked = []

    def njit(*, cache=False, **flags):
        asked.append(cache)
        if cache and not can_cache:
            raise RuntimeError("cannot cache function: no locator available")
        assert flags.pop("nogil")
        return numba.njit(nogil=True)

    monkeypatch.setattr(jit, "njit", njit)
    assert compiled(lambda x: x + 1)(1) == 2
    assert asked == ([True] if can_cache else [True, False])


SCRIPT = """
import numpy as np
from forestprune import kernels
value = np.array([[0.0], [1.0], [2.0]])
kernels.average_up(np.array([1, -1, -1], np.int32), np.ones(3), value)
fault, _ = kernels.keep_nodes(
    np.array([0, 3]), np.array([1, -1, -1], np.int32), np.array([False, True, True]),
    np.empty(2, np.int64), np.empty(2, np.int64), np.empty(2, np.int32),
)
print(value[0, 0], fault)
"""


@pytest.mark.skipif(INTERPRETED, reason="interpreted, nothing is kept")
def test_an_edit_in_one_file_of_kernels_reaches_callers_in_others(tmp_path):
    package = tmp_path / "forestprune"
    shutil.copytree(
        Path(forestprune.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__")
    )
    environment = os.environ | {"PYTHONPATH": str(tmp_path)}
    environment.pop("NUMBA_CACHE_DIR", None)

    def run():
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout.split()

    assert run() == ["1.5", "1"]
    # keep_nodes, in another file, returns this number; its own file stays as it is.
    faults = package / "kernels" / "faults.py"
    text = faults.read_text().replace("ROOT_DROPPED = 1", "ROOT_DROPPED = 7")
    assert text != faults.read_text()
    faults.write_text(text)
    assert run() == ["1.5", "7"]


@pytest.mark.skipif(INTERPRETED, reason="interpreted, nothing is kept")
def test_two_processes_that_compile_at_once_never_swap_their_code(tmp_path):
    def kept():
        return jit.KeptCode(str(tmp_path), "kernel", "stamp")

    one, other = kept(), kept()
    # Each has read an index without the other's entry when it writes its own.
    indices = {one: one._load_index(), other: other._load_index()}
    for each in indices:
        each._load_index = lambda each=each: dict(indices[each])
    one.save("of small numbers", "code for small numbers")
    other.save("of large numbers", "code for large numbers")
    one._save_data(one._data_name(1), "anything")
    found = {key: kept().load(key) for key in ("of small numbers", "of large numbers")}
    assert found["of large numbers"] == "code for large numbers"
    assert found["of small numbers"] in (None, "code for small numbers")
    kept().save("of small numbers", "code for small numbers")
    found = {key: kept().load(key) for key in found}
    assert found == {key: f"code for {key.removeprefix('of ')}" for key in found}
