"""Leaves that are fitted to all rows by a sample of them: what all rows at once would say."""

from dataclasses import replace

import numpy as np
import pytest
from effort import INTERPRETED
from sklearn.datasets import make_classification, make_friedman1
from sklearn.ensemble import (
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingRegressor,
    RandomForestRegressor,
)

import forestprune as fp
from forestprune import api
from forestprune.interop.source import Source
from forestprune.options import Options
from forestprune.polishing.leaf_rounds import ENOUGH
from forestprune.select import by_sample, leaf_polish, request
from forestprune.select.all_rows import RowsInMemory
from forestprune.select.by_sample import BySample
from forestprune.select.pruned import forest_at
from forestprune.select.routed import RoutedRows
from forestprune.select.solver import Solver
from forestprune.solve.point import kept_leaves

pytestmark = pytest.mark.skipif(INTERPRETED, reason="whole prunings, left to the compiled run")

X, Y = make_friedman1(6_000, noise=1.0, random_state=0)
X_VAL, Y_VAL = make_friedman1(2_000, noise=1.0, random_state=1)
XC, C3 = make_classification(
    6_000, n_informative=6, n_classes=3, flip_y=0.1, class_sep=0.8, random_state=0
)
RISING = [0, 0, 0, 1, 1] + [0] * 5
MODELS = {
    "boosting": (GradientBoostingRegressor(n_estimators=40, random_state=0), X, Y),
    "forest": (RandomForestRegressor(15, max_depth=9, max_features=0.4, random_state=0), X, Y),
    "two targets": (
        RandomForestRegressor(9, max_depth=6, max_features=0.4, random_state=0),
        X,
        np.column_stack([Y, X[:, 0] - 0.1 * Y]),
    ),
    "poisson": (HistGradientBoostingRegressor(loss="poisson", max_iter=25), X, np.rint(Y + 9)),
    "two classes": (GradientBoostingClassifier(n_estimators=30, random_state=0), XC, C3 > 0),
    "three classes": (GradientBoostingClassifier(n_estimators=12, random_state=0), XC, C3),
    "rising": (HistGradientBoostingRegressor(max_iter=20, monotonic_cst=RISING), X, Y),
}
KINKS = {
    "absolute": (
        GradientBoostingRegressor(n_estimators=30, loss="absolute_error", random_state=0),
        X,
        Y,
    ),
}


@pytest.fixture(autouse=True)
def _few(monkeypatch):
    monkeypatch.setattr(by_sample, "SAMPLE_ROWS", 1_500)
    monkeypatch.setattr(api, "PATH_ROWS", 3_000)


def batches(rows, target, size=1_234):
    return [(rows[i : i + size], target[i : i + size]) for i in range(0, len(rows), size)]


def point_of(small):
    return small.path.points[small.index]


def pruned(model, rows, target, weights, shrinkage):
    """Return rows, their problem, and a point of its path that no polishing has changed."""
    routed = RoutedRows.of(
        Source.of(model.fit(rows, target)), rows, target, weights, keep_matrix=True
    )
    problem = routed.problem(1)
    solver = Solver(problem, Options(shrinkage=shrinkage))
    path = solver.path(solver.grid(40), lambda point: point.n_nodes > 110)
    return routed, problem, path[-1]


def objective(routed, problem, point, shrinkage):
    """Return the loss of a point on all rows and its penalty, as the options describe them."""
    forest = routed.source.forest
    raw = forest_at(forest, point).predict_matrix(routed.kept_matrix).T
    shift = point.values - problem.trees.origin[:, kept_leaves(forest, point.splits(forest))]
    penalty = problem.curvature * shrinkage * (shift**2).sum() / problem.variation
    return problem.unexplained_by(raw) + penalty


def fitted(routed, problem, point, shrinkage, most):
    """Return what a sample makes of a point in so many passes, and the rounds of that."""
    everything = RowsInMemory(routed)
    engine = BySample(everything.sample(1_500), everything, None, Options(shrinkage=shrinkage))
    # What is minimised is then the same as with all rows, not just nearly.
    same = {"curvature": problem.curvature, "variation": problem.variation}
    engine._problem = replace(engine._problem, **same)
    rounds = engine.leaf_rounds(point, shrinkage)
    engine.fit([rounds], most)
    return engine, rounds


CASES = [
    ("boosting", False),
    ("two targets", False),
    ("poisson", True),
    ("three classes", True),
    ("rising", False),
]
MORE = [(name, weighted) for name in MODELS for weighted in (False, True)]
MORE = [pytest.param(*case, marks=pytest.mark.long) for case in MORE if case not in CASES]


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("name", "weighted"), [*CASES, *MORE])
def test_few_passes_lead_to_what_all_rows_at_once_lead_to(name, weighted):
    model, rows, target = MODELS[name]
    weights = np.random.default_rng(0).integers(0, 3, len(rows)) * 1.0 if weighted else None
    routed, problem, point = pruned(model, rows, target, weights, 20.0)
    by_all = Solver(problem, Options(shrinkage=20.0, polish="leaf"))._polisher.polish(point)
    engine, rounds = fitted(routed, problem, point, 20.0, 8)
    assert rounds.done
    assert rounds.left <= ENOUGH
    assert engine.passes <= 5
    best = rounds.best
    found, expected, before = (
        objective(routed, problem, each, 20.0) for each in (best, by_all, point)
    )
    # In memory it ends once a step gains little, so that it may be the one that is behind.
    assert found <= (1.0 + 2.0 * ENOUGH) * expected
    assert found >= (1.0 - 1e-4) * expected
    assert found < before
    assert 0.5 * found * problem.variation == pytest.approx(rounds.objective, rel=1e-4)


@pytest.mark.parametrize("name", ["boosting", pytest.param("forest", marks=pytest.mark.long)])
def test_squared_error_is_solved(name):
    """Against equations of all rows, which few leaves allow to be solved at once."""
    model, rows, target = MODELS[name]
    routed, problem, point = pruned(model, rows, target, None, 20.0)
    _, rounds = fitted(routed, problem, point, 20.0, 8)
    forest = routed.source.forest
    leaves = kept_leaves(forest, point.splits(forest))
    encoding = problem.encoding
    columns = [np.ones(encoding.n_rows)]
    for leaf in leaves:
        tree = int(np.searchsorted(forest.offsets, leaf, side="right")) - 1
        below = leaves_below(forest, leaf)
        columns.append(np.isin(encoding.codes[tree], below).astype(float))
    A = np.column_stack(columns)
    pull = np.sqrt(20.0) * np.eye(len(leaves) + 1)[1:]
    origin = problem.trees.origin[0, leaves]
    right = np.concatenate([routed.target[0], np.sqrt(20.0) * origin])
    best = np.linalg.lstsq(np.vstack([A, pull]), right, rcond=None)[0]
    least = ((np.vstack([A, pull]) @ best - right) ** 2).sum() / problem.variation
    found = objective(routed, problem, rounds.best, 20.0)
    assert least - 1e-12 <= found <= (1.0 + 2.0 * ENOUGH) * least


def leaves_below(forest, node):
    """Return which leaves of its tree are below a node, by their rank among these."""
    tree = int(np.searchsorted(forest.offsets, node, side="right")) - 1
    start = forest.offsets[tree]
    left = forest.left[start : forest.offsets[tree + 1]]
    below, stack = [], [node - start]
    while stack:
        each = stack.pop()
        if left[each] >= 0:
            stack += [left[each], left[each] + 1]
        else:
            below.append(int(np.count_nonzero(left[:each] < 0)))
    return below


@pytest.mark.parametrize("name", KINKS)
def test_losses_with_kinks_fall_in_every_round(name):
    """There the sample says less of what lies ahead, and steps become shorter."""
    model, rows, target = KINKS[name]
    routed, problem, point = pruned(model, rows, target, None, 20.0)
    by_all = Solver(problem, Options(shrinkage=20.0, polish="leaf"))._polisher.polish(point)
    engine, rounds = fitted(routed, problem, point, 20.0, 1)
    falls = [rounds.objective]
    while not rounds.done and engine.passes < 8:
        engine.fit([rounds], 1)
        falls.append(rounds.objective)
    assert (np.diff(falls) <= 0.0).all()
    found = objective(routed, problem, rounds.best, 20.0)
    assert found <= objective(routed, problem, by_all, 20.0) * (1.0 + 2e-4)


@pytest.fixture(
    scope="module",
    params=["boosting", "two classes", pytest.param("three classes", marks=pytest.mark.long)],
)
def fit_model(request):
    model, rows, target = MODELS[request.param]
    return model.fit(rows, target), rows, target


@pytest.mark.sampled(2)
def test_leaves_are_polished_by_the_block(fit_model):
    model, rows, target = fit_model
    asked = {"max_nodes": 120, "shrinkage": 20.0}
    plain = fp.prune(model, batches(rows, target), **asked)
    small = fp.prune(model, batches(rows, target), polish="leaf", **asked)
    point, before = point_of(small), point_of(plain)
    assert small.n_nodes == plain.n_nodes
    assert point.loss < before.loss
    assert point.objective < before.objective
    assert point.report["gain_left"] <= ENOUGH
    assert point.report["passes"] - before.report["passes"] <= 4
    # What is said of it is what rows say, and all rows at once could do no better.
    assert small.path.score(rows, target)[small.index] == pytest.approx(1.0 - point.loss, abs=2e-3)
    routed = RoutedRows.of(Source.of(model), rows, target, keep_matrix=True)
    problem = routed.problem(1)
    by_all = Solver(problem, Options(shrinkage=20.0, polish="leaf"))._polisher.polish(before)
    found, expected = (objective(routed, problem, each, 20.0) for each in (point, by_all))
    # The sample knows nearly by how much leaves are drawn to what they were, in units of the loss.
    assert found == pytest.approx(expected, rel=1e-4)


@pytest.mark.sampled(2)
def test_rows_in_memory_or_by_the_block_make_the_same_model(fit_model, monkeypatch):
    model, rows, target = fit_model
    asked = {"max_nodes": 80, "shrinkage": 20.0, "polish": "leaf"}
    monkeypatch.setattr(request, "LARGE_ROWS", 2_000)
    in_memory = fp.prune(model, rows, target, **asked)
    assert point_of(in_memory).report["sample_rows"] == 1_500
    for size in (6_000, 777):
        small = fp.prune(model, batches(rows, target, size), **asked)
        assert point_of(small).objective == pytest.approx(point_of(in_memory).objective, rel=1e-8)
        assert small.n_nodes == in_memory.n_nodes


def test_validation_rows_choose_what_is_polished():
    model, rows, target = MODELS["boosting"]
    model.fit(rows, target)
    held_out = {"X_val": batches(X_VAL, Y_VAL)}
    best = fp.prune(model, batches(rows, target), max_nodes=120, polish="leaf", **held_out)
    plain = fp.prune(model, batches(rows, target), max_nodes=120, **held_out)
    assert best.n_nodes <= 120
    assert best.validation.score >= plain.validation.score
    assert point_of(best).report["gain_left"] <= ENOUGH
    small = fp.prune(model, batches(rows, target), tolerance=0.03, polish="leaf", **held_out)
    assert small.validation.shortfall <= 0.03
    by_all = fp.prune(model, rows, target, tolerance=0.03, polish="leaf", X_val=X_VAL, y_val=Y_VAL)
    assert small.n_nodes <= 1.4 * by_all.n_nodes


def test_a_model_that_is_better_without_stays_so(monkeypatch):
    """Validation rows may say that leaves were fitted to chance."""
    model = MODELS["boosting"][0].fit(X, Y)
    worse = X_VAL[:300], model.predict(X_VAL[:300])  # which the original has as they are
    held_out = dict(zip(("X_val", "y_val"), worse, strict=True))
    asked = {"max_nodes": 130, "shrinkage": 1e9, **held_out}  # values hardly change by pruning
    rng = np.random.default_rng(0)
    noisy = Y + 30.0 * rng.standard_normal(len(Y))
    monkeypatch.setattr(
        leaf_polish.LeafPolish, "_shrinkages", lambda *_: [1e-3]
    )  # fitted to noise with nothing to hold it back
    small = fp.prune(model, batches(X, noisy), polish="leaf", **asked)
    plain = fp.prune(model, batches(X, noisy), **asked)
    assert small.validation.score == pytest.approx(plain.validation.score)
    assert len(small.path) == len(plain.path) + 1  # the other one is there to be looked at


def test_paths_are_polished():
    model, rows, target = MODELS["boosting"]
    model.fit(rows, target)
    asked = {"n_alphas": 10, "shrinkage": 20.0}
    plain = fp.prune_path(model, batches(rows, target), **asked)
    path = fp.prune_path(model, batches(rows, target), polish="leaf", **asked)
    np.testing.assert_array_equal(path.alphas, plain.alphas)
    np.testing.assert_array_equal(path.n_nodes, plain.n_nodes)
    kept = (path.n_trees > 0) & (path.n_nodes <= 300)
    kept[-1] = False  # the full model
    assert kept.sum() > 4
    assert (path.losses[kept] < plain.losses[kept]).all()
    assert (path.losses[~kept] == plain.losses[~kept]).all()


def test_promises_hold():
    model, rows, target = MODELS["rising"]
    small = fp.prune(model.fit(rows, target), batches(rows, target), max_nodes=100, polish="leaf")
    row = np.repeat(X_VAL[:200], 2, axis=0)
    row[1::2, 3] += 0.3
    predicted = small.predict(row)
    assert (predicted[1::2] >= predicted[::2] - 1e-12).all()


@pytest.mark.long
def test_values_of_the_original_can_be_fitted_afterwards():
    model, rows, target = MODELS["boosting"]
    model.fit(rows, target)
    held_out = {"X_val": X_VAL, "y_val": Y_VAL}
    asked = {"max_nodes": 120, "refit": False, **held_out}
    plain = fp.prune(model, batches(rows, target), **asked)
    small = fp.prune(model, batches(rows, target), polish="leaf", **asked)
    assert small.validation.score > plain.validation.score
    assert point_of(small).report["shrinkage"] in (10.0, 100.0, 1000.0)
