"""Benchmarks that no test runs: that they find what they measure."""

import importlib
from pathlib import Path

import literal
import million_rows
import numpy as np
import pytest
import timing
from sklearn.datasets import make_friedman1
from sklearn.ensemble import RandomForestRegressor

import forestprune as fp

FOLDER = Path(literal.__file__).parent
SCRIPTS = sorted(file.stem for file in FOLDER.glob("*.py"))


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_finds_what_it_imports(name):
    try:
        assert Path(importlib.import_module(name).__file__).parent == FOLDER
    except ModuleNotFoundError as error:
        if str(error.name).startswith("forestprune"):
            raise
        pytest.skip(f"{error.name} is not installed")


@pytest.mark.parametrize("phase", million_rows.PHASES)
def test_a_phase_is_a_function_of_the_package(phase):
    module, function = million_rows.PHASES[phase]
    assert callable(getattr(importlib.import_module(module), function))


def test_solves_are_timed_from_the_same_beginning_and_the_twin_sweeps_as_the_literal_one():
    X, y = make_friedman1(300, noise=1.0, random_state=0)
    forest = fp.Forest.from_model(RandomForestRegressor(8, max_depth=4, random_state=0).fit(X, y))
    problem, layers, *taken = timing.prepare(forest, X, y)
    assert layers.square[:, -1].all()
    assert min(taken) > 0.0
    solve = timing.solves(problem)
    first, again = ((rule.point(1.0), descent.looks) for rule, descent in (solve(), solve()))
    small = fp.prune(forest, X, y, alpha=1.0, rule="layer", local_search=False)
    assert first[0].objective == again[0].objective == pytest.approx(small.objective, rel=1e-12)
    assert first[1] == again[1] > 0
    # Sampled, the literal one's time is that of an update times those of the twin.
    words = literal.Literal(problem, X)
    twin = timing.twin_of(problem, np.array([1.0, 0.1]))
    z = np.zeros((words.n_trees, words.depth))
    assert twin.sweeps == sum(words.descend(z, alpha) for alpha in (1.0, 0.1))
