"""Model files with something wrong in them: one clear line or a model, whatever was done to them.

Libraries may end the process that reads a damaged file, so these are read in a real one.
"""

import json
import os
import random
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from effort import DEEP
from shops import MODELS, friedman, need, shop  # noqa: F401

import forestprune as fp

ROUNDS = 60 if DEEP else 12
"""Accidents that happen to each kind of file."""

# Copies of one process, each for a file: to start a new one takes longer than to read a file.
READ_ALL = """
    import importlib, os, sys
    from pathlib import Path
    from forestprune.cli import models, summary
    from forestprune.cli.app import app
    from forestprune.forest.forest import Forest
    from forestprune.system import processes

    Forest.load(sys.argv[3])  # so that copies find numba and what it has compiled
    library = sys.argv[2]
    importlib.import_module(f"forestprune.interop.{library}")
    importlib.import_module("skops.io" if library == "sklearn" else library)
    processes.alone = True
    for path in sorted(Path(sys.argv[1]).iterdir()):
        copy = os.fork()
        if copy == 0:
            code = app(["inspect", str(path), "--trust", "--json"], standalone_mode=False)
            sys.stdout.flush()
            os._exit(code or 0)
        print(f"{path.name} ended with {os.waitstatus_to_exitcode(os.waitpid(copy, 0)[1])}")
        sys.stdout.flush()
"""


def damaged(content, seed):
    """Return what is left of a file after an accident."""
    rng = random.Random(seed)
    content = bytearray(content)
    at = rng.randrange(len(content))
    kind = rng.choice(["cut", "bit", "bits", "byte", "again", "gap", "zeros", "digit"])
    if kind == "cut":
        del content[at:]
    elif kind == "bit":
        content[at] ^= 1 << rng.randrange(8)
    elif kind == "bits":
        for _ in range(20):
            content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
    elif kind == "byte":
        content[at] = rng.randrange(256)
    elif kind == "again":
        content[at:at] = content[at : at + rng.randrange(1, 200)]
    elif kind == "gap":
        del content[at : at + rng.randrange(1, 200)]
    elif kind == "zeros":
        content[at : at + 20] = bytes(len(content[at : at + 20]))
    else:
        digits = [j for j, byte in enumerate(content) if chr(byte).isdigit()]
        content[rng.choice(digits)] = rng.choice(b"0123456789-")
    return bytes(content)


# A damaged pickle can do anything, also end the process: --trust is said by those who know.
SOME = [("sklearn", "npz"), ("lightgbm", "txt")]
DATA_ONLY = [
    (library, ending)
    for library, ending in MODELS
    if ending not in ("joblib", "pkl", "pickle") and (ending != "npz" or library == "sklearn")
]


@pytest.mark.deep
@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere files are not tried first")
@pytest.mark.parametrize(
    ("library", "ending"),
    [
        pytest.param(*kind, id="-".join(kind), marks=() if kind in SOME else pytest.mark.long)
        for kind in DATA_ONLY
    ],
)
def test_damaged_files_get_one_line_each(library, ending, shop, tmp_path):  # noqa: F811
    need(library, ending)
    need(library, "skops")
    content = (shop / f"{library}.{ending}").read_bytes()
    for seed in range(ROUNDS):
        (tmp_path / f"{seed:03}.{ending}").write_bytes(damaged(content, f"{library}-{seed}"))
    result = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(READ_ALL), tmp_path, library, shop / "sklearn.npz"],
        capture_output=True,
        text=True,
        timeout=300,
        env=os.environ | {"PYTHONPATH": str(Path(fp.__file__).parent.parent)},
    )
    assert result.returncode == 0, result.stderr
    lines = result.stdout.splitlines()
    ended = [line for line in lines if " ended with " in line]
    documents = [json.loads(line) for line in lines if " ended with " not in line]
    failed = [line.split()[0] for line in ended if line.endswith("ended with 1")]
    assert len(failed) + len(documents) == len(ended) == ROUNDS
    assert len(failed) > ROUNDS / 4  # else these were no accidents
    errors = result.stderr.splitlines()
    assert len(errors) == len(failed), result.stderr
    for name, error in zip(failed, errors, strict=True):
        assert error.startswith("forestprune: ")
        assert str(tmp_path / name) in error
        assert "FORESTPRUNE_DEBUG" not in error


def inspected_by(script, model):
    """Let a script inspect a model, in a process of its own."""
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script), "inspect", model],
        capture_output=True,
        text=True,
        timeout=200,
        env=os.environ | {"PYTHONPATH": str(Path(fp.__file__).parent.parent)},
    )


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere files are not tried first")
@pytest.mark.parametrize(
    ("accident", "told"),
    [
        ("os.kill(os.getpid(), signal.SIGSEGV)", "ended the process that tried to (SIGSEGV)"),
        ("time.sleep(300)", "has not come to an end after 1 seconds"),
    ],
)
def test_a_file_that_its_library_does_not_survive(accident, told, tmp_path):
    script = f"""
        import os, signal, time
        from forestprune.cli import main
        from forestprune.interop.source import Source
        from forestprune.system import processes

        def read(path, *, trust):
            os.write(2, b"a library that falls over")
            {accident}

        processes.PATIENCE = 1.0
        Source.of = read
        main()
    """
    model = tmp_path / "m.ubj"
    model.write_bytes(b"{}")
    result = inspected_by(script, model)
    assert result.returncode == 1
    assert result.stdout == ""
    assert result.stderr == (
        f"forestprune: {model} is damaged: the library that reads it {told}. Write the model "
        "again.\n"
    )


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere files are not tried first")
def test_a_file_that_asks_for_all_memory(tmp_path):
    script = """
        import numpy
        from forestprune.cli import main
        from forestprune.interop.source import Source

        Source.of = lambda path, trust: numpy.zeros(10**10)
        main()
    """
    model = tmp_path / "m.cbm"
    model.write_bytes(b"{}")
    result = inspected_by(script, model)
    assert result.returncode == 1
    assert result.stderr.startswith(f"forestprune: {model} cannot be used: it is damaged")
    assert "MemoryError" in result.stderr
    assert result.stderr.count("\n") == 1


def test_what_a_library_writes_past_python_is_not_seen():
    script = """
        import os, sys
        from forestprune.system.processes import silent_libraries
        print("before", flush=True)
        with silent_libraries():
            os.write(1, b"noise")
            os.write(2, b"noise")
            print("progress", file=sys.stderr)
        print("after", file=sys.stderr)
        os.write(2, b"end")
        print("after")
    """
    result = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": str(Path(fp.__file__).parent.parent)},
    )
    assert result.stdout == "before\nafter\n"
    assert result.stderr == "progress\nafter\nend"
