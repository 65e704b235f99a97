"""The relaxed problem: all solvers agree, and no pruning is below their bound."""

import importlib.util
import itertools

import numpy as np
import pytest
from literal import Literal
from relaxation import SOLVED, SOLVERS
from sklearn.ensemble import RandomForestRegressor

from forestprune import Forest, encode
from forestprune.solve.problem import pose

ALPHA = 0.5


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    y = X[:, 0] * X[:, 1] + rng.normal(size=60)
    model = RandomForestRegressor(4, max_depth=3, random_state=0).fit(X, y)
    return pose(encode(Forest.from_model(model), X), y), X


def answer(solver, rows):
    pytest.importorskip(solver.partition("-")[0])
    form, solve = SOLVERS[solver]
    return solve(form(*rows, ALPHA))


@pytest.mark.parametrize("solver", ["ecos", "clarabel", "clarabel-gram"])
def test_the_bound_is_tight_and_below_the_best_cut(solver, rows):
    problem, X = rows
    literal = Literal(problem, X)
    cuts = [(np.arange(literal.depth) < k).astype(float) for k in range(literal.depth + 1)]
    choices = itertools.product(cuts, repeat=literal.n_trees)
    best = min(literal.objective(np.array(z), ALPHA) for z in choices)

    found = answer(solver, rows)
    assert found.status == SOLVED
    assert found.bound <= best
    assert found.bound == pytest.approx(found.objective, abs=1e-5)


@pytest.mark.parametrize("solver", ["ecos", "clarabel"])
def test_cone_program_and_gram_matrix_agree(solver, rows):
    gram, cone = answer("clarabel-gram", rows), answer(solver, rows)
    assert cone.objective == pytest.approx(gram.objective, abs=1e-6)


def test_the_bound_holds_wherever_a_solver_stops(rows):
    optimum = answer("clarabel-gram", rows)
    relaxation = SOLVERS["clarabel-gram"][0](*rows, ALPHA)
    for z in np.random.default_rng(0).normal(size=(20, relaxation.costs.size)):
        assert relaxation.answer(SOLVED, z).bound <= optimum.objective


@pytest.mark.parametrize("form", ["clarabel", "clarabel-gram"])
def test_the_objective_is_the_problem_s_own_and_its_gradient_is_right(form, rows):
    problem, X = rows
    relaxation = SOLVERS[form][0](problem, X, ALPHA)
    literal = Literal(problem, X)
    z, step = np.random.default_rng(0).random((2, relaxation.costs.size))
    value, gradient = relaxation.evaluate(z)
    assert value == pytest.approx(literal.objective(z.reshape(4, -1), ALPHA))
    ahead, behind = (relaxation.evaluate(z + s * step)[0] for s in (1e-4, -1e-4))
    assert gradient @ step == pytest.approx((ahead - behind) / 2e-4)


def test_mosek_without_a_licence_says_so(rows):
    if importlib.util.find_spec("mosek") is None:
        pytest.skip("MOSEK is not installed")
    assert answer("mosek", rows).status in (SOLVED, "not licensed")
