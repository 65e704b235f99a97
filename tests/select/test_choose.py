"""What choosing leaves behind: no solver, no thread, rows routed once, a path that comes back."""

import gc
import threading
import time
import weakref
from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import make_friedman1
from sklearn.ensemble import GradientBoostingRegressor, RandomForestRegressor

import forestprune as fp
from forestprune.select import solver
from forestprune.select.path import PruningPath
from forestprune.solve.subtrees.rule import SubtreeRule
from forestprune.solve.subtrees.tuning import Tuning
from forestprune.system import threads

X, Y = make_friedman1(400, noise=1.0, random_state=0)
X_VAL, Y_VAL = make_friedman1(200, noise=1.0, random_state=1)
VALIDATION = {"X_val": X_VAL, "y_val": Y_VAL}


def test_solvers_and_threads_are_gone_when_a_deep_forest_is_pruned(monkeypatch):
    rules = []

    class Watched(SubtreeRule):
        def __init__(self, problem, options):
            # As large forests: active nodes, screening, and threads.
            tuning = Tuning(large=0, deep=0.0, screened_rows=1e-9, gram_rows=0, shared=0)
            super().__init__(problem, options, tuning)
            rules.append(weakref.ref(self))

    monkeypatch.setitem(solver.RULES, "subtree", Watched)
    model = RandomForestRegressor(10, random_state=0).fit(X, Y)
    before = threading.active_count()
    gc.collect()
    gc.disable()  # what nobody refers to must be gone by itself
    try:
        small = fp.prune(model, X, Y, max_nodes=300, n_alphas=15, n_jobs=3, **VALIDATION)
        alive = [rule() for rule in rules]
    finally:
        gc.enable()
    assert small.n_trees > 0
    assert alive == [None] * 3
    patience = time.monotonic() + 10  # threads that are told to end take a moment
    while threading.active_count() > before and time.monotonic() < patience:
        time.sleep(0.01)
    assert threading.active_count() <= before


def test_a_path_cut_at_a_depth_is_scored_the_same_when_it_comes_back(tmp_path):
    model = RandomForestRegressor(10, random_state=0).fit(X, Y)
    path = fp.prune_path(model, X, Y, n_alphas=8, max_depth=2, **VALIDATION)
    path.save(tmp_path / "path.npz")
    again = PruningPath.load(tmp_path / "path.npz")
    now, then = again.validate(X_VAL, Y_VAL), path.validate(X_VAL, Y_VAL)
    assert now.full == then.full == pytest.approx(model.score(X_VAL, Y_VAL))
    np.testing.assert_array_equal(now.scores, then.scores)
    assert again.source.max_depth == 2
    np.testing.assert_array_equal(again[-1].predict(X_VAL), path[-1].predict(X_VAL))


@pytest.mark.parametrize(
    "options",
    [{}, {"rule": "layer"}, {"polish": "ridge"}, {"max_depth": 3}, {"polish": "leaf"}],
    ids=str,
)
def test_one_job_is_one_thread(monkeypatch, options):
    def refuse(*_):
        raise AssertionError("a thread was asked for")

    monkeypatch.setattr(threads, "ThreadPoolExecutor", refuse)
    model = GradientBoostingRegressor(n_estimators=30, random_state=0).fit(X, Y)
    fp.prune(model, X, Y, max_nodes=60, n_alphas=10, n_jobs=1, **VALIDATION, **options)
    folds = fp.ForestPruneRegressorCV(model, cv=2, n_alphas=5, n_jobs=1, **options)
    folds.fit(X, Y).predict(X)


@pytest.mark.parametrize("options", [{}, {"shrinkage": [1.0, 10.0, 100.0]}, {"rule": "layer"}])
def test_rows_are_routed_once(monkeypatch, options):
    routed = []
    original = fp.Forest.row_pieces

    def counted(forest, rows, **how):
        routed.append(rows)
        return original(forest, rows, **how)

    model = GradientBoostingRegressor(n_estimators=30, random_state=0).fit(X, Y)
    monkeypatch.setattr(fp.Forest, "row_pieces", counted)
    fp.prune(model, X, Y, max_nodes=60, n_alphas=10, **VALIDATION, **options)
    assert routed == [len(X), len(X_VAL)]
    routed.clear()
    fp.ForestPruneRegressorCV(model, cv=3, n_alphas=5, **options).fit(X, Y)
    assert routed == [len(X)]


def test_a_budget_is_refined_without_building_forests(monkeypatch):
    model = GradientBoostingRegressor(n_estimators=30, random_state=0).fit(X, Y)
    built = []
    original = fp.PrunedForest.of.__func__

    def counted(cls, source, point):
        built.append(point.n_nodes)
        return original(cls, source, point)

    monkeypatch.setattr(fp.PrunedForest, "of", classmethod(counted))
    small = fp.prune(model, X, Y, max_nodes=60, n_alphas=10, **VALIDATION)
    assert built == [small.n_nodes]


def test_numbers_may_underflow_whatever_numpy_is_told():
    model = GradientBoostingRegressor(n_estimators=10, random_state=0).fit(X, Y)
    forest, tiny = fp.Forest.from_model(model), 1e-153
    forest = replace(forest, scale=tiny * forest.scale, base=tiny * forest.base)
    with np.errstate(all="raise"):
        small = fp.prune(forest, X, tiny * Y, max_nodes=30, n_alphas=5)
    assert 0 < small.n_nodes <= 30
