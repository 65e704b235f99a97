"""Two processes compile in a new installation; whatever happens to the other, this one goes on."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from effort import INTERPRETED

import forestprune as fp

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(INTERPRETED, reason="interpreted, nothing is compiled"),
]

PRUNE = """
import numpy as np
from sklearn.tree import DecisionTreeRegressor
import forestprune as fp
from forestprune import kernels
X = np.arange(200.0)[:, np.newaxis]
y = np.sin(X[:, 0] / 9)
model = DecisionTreeRegressor(max_depth=4).fit(X, y)
small = fp.prune(model, X, y, max_nodes=9, n_jobs=2)
assert 0 < small.n_nodes <= 9
assert "sweep_subtrees" not in kernels.awaited
print("pruned")
"""


def pruned(folder, before="", after="", patience=100):
    """Prune in a process that has compiled nothing; return what it printed."""
    script = "\n".join(map(textwrap.dedent, (before, PRUNE, after)))
    (folder / "script.py").write_text(script)
    (folder / "work").mkdir()
    environment = os.environ | {
        "PYTHONPATH": str(Path(fp.__file__).parent.parent),
        "NUMBA_CACHE_DIR": str(folder / "cache"),
    }
    command = [sys.executable, str(folder / "script.py")]
    run = subprocess.run(
        command,
        cwd=folder / "work",
        env=environment,
        capture_output=True,
        text=True,
        timeout=patience,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    return run.stdout.split()


def test_two_processes_compile_and_the_second_time_none(tmp_path):
    counted = """
        from forestprune.solve.subtrees import ahead
        import subprocess
        started = []
        class Counted(subprocess.Popen):
            def __init__(self, *args, **how):
                started.append(args)
                super().__init__(*args, **how)
        subprocess.Popen = Counted
    """
    shown = "print(len(started))"
    assert pruned(tmp_path, counted, shown) == ["pruned", "1"]
    (tmp_path / "work").rmdir()
    assert pruned(tmp_path, counted, shown) == ["pruned", "0"]


@pytest.mark.parametrize(
    "trouble",
    [
        "import sys, pathlib; sys.path.append(pathlib.Path('.'))",
        "import sys; sys.executable = '/nonexistent'",
        "import sys; sys.executable = '/bin/true'",
        """
        import sys, pathlib
        from forestprune.solve.subtrees import ahead
        ahead.PATIENCE = 1.0
        sleeper = pathlib.Path(__file__).with_name("sleeper")
        sleeper.write_text("#!/bin/sh\\nsleep 300\\n")
        sleeper.chmod(0o700)
        sys.executable = str(sleeper)
        """,
    ],
    ids=["a path that is no string", "no such program", "another program", "one that never ends"],
)
def test_without_the_other_process_this_one_compiles_it_all(tmp_path, trouble):
    assert pruned(tmp_path, trouble) == ["pruned"]


def test_modules_of_the_working_folder_are_not_run(tmp_path):
    before = """
        import pathlib
        pathlib.Path("numpy.py").write_text("import pathlib; pathlib.Path('ran').touch()")
    """
    after = "import pathlib; print(pathlib.Path('ran').exists())"
    assert pruned(tmp_path, before, after) == ["pruned", "False"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are not copied here")
def test_a_copy_of_the_process_waits_for_nobody(tmp_path):
    before = """
        import os
        import numpy as np
        from sklearn.tree import DecisionTreeRegressor
        import forestprune as fp
        model = DecisionTreeRegressor().fit(np.eye(3), np.arange(3.0))
        try:
            fp.prune(model, np.eye(3), np.full(3, np.nan), max_nodes=3, n_jobs=2)
        except ValueError:
            pass
        child = os.fork()
        if child:
            _, status = os.waitpid(child, 0)
            assert status == 0
            raise SystemExit
    """
    assert pruned(tmp_path, before) == ["pruned"]
