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
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import r2_score
from threadpoolctl import threadpool_info, threadpool_limits

import forestprune as fp
from forestprune.options import Options
from forestprune.select import solver
from forestprune.select.budget import Budget
from forestprune.select.choose import Wanted
from forestprune.select.path import PruningPath
from forestprune.select.request import choose
from forestprune.select.routed import HeldOut
from forestprune.solve.layers.rule import LayerRule
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


@pytest.mark.parametrize("options", [{}, {"polish": "leaf"}], ids=str)
@pytest.mark.parametrize("wish", [("max_nodes", 60), ("max_trees", 5), ("tolerance", 0.05)])
def test_shrinkages_give_the_same_path_however_many_threads_try_them(wish, options):
    model = GradientBoostingRegressor(n_estimators=30, random_state=0).fit(X, Y)
    how = dict([wish]) | options | VALIDATION
    one, three = (fp.prune(model, X, Y, n_alphas=10, n_jobs=n, **how) for n in (1, 3))
    assert one.index == three.index
    assert one.path.to_frame().equals(three.path.to_frame())
    for alone, at_once in zip(one.path.points, three.path.points, strict=True):
        np.testing.assert_array_equal(alone.kept, at_once.kept)
        np.testing.assert_array_equal(alone.values, at_once.values)


def test_warnings_of_threads_point_at_the_caller_and_come_in_order():
    model = GradientBoostingRegressor(n_estimators=30, random_state=0).fit(X, Y)
    found = []
    for n_jobs in (1, 3):
        with pytest.warns(ConvergenceWarning) as warned:
            fp.prune(model, X, Y, max_nodes=60, max_iter=1, n_jobs=n_jobs, **VALIDATION)
        assert {each.filename for each in warned} == {__file__}
        found.append([str(each.message) for each in warned])
    assert found[0] == found[1]


def test_if_one_thread_fails_others_give_up(monkeypatch):
    model = GradientBoostingRegressor(n_estimators=30, random_state=0).fit(X, Y)
    failed, after = threading.Event(), []
    original = SubtreeRule.sweep

    def fail(rule, alpha, order):
        if rule.shrinkage == 10.0:
            failed.set()
            raise MemoryError("of the first")
        assert failed.wait(10)
        after.append(rule.shrinkage)
        return original(rule, alpha, order)

    monkeypatch.setattr(SubtreeRule, "sweep", fail)
    with pytest.raises(MemoryError, match="of the first"):
        fp.prune(model, X, Y, max_nodes=60, n_alphas=100, n_jobs=3, **VALIDATION)
    assert len(after) < 30  # where whole paths of two others take hundreds


def test_threads_leave_those_of_linear_algebra_as_they_were():
    model = GradientBoostingRegressor(n_estimators=30, random_state=0).fit(X, Y)
    with threadpool_limits(2, user_api="blas"):
        before = [each["num_threads"] for each in threadpool_info()]
        fp.prune(model, X, Y, max_nodes=60, polish="ridge", n_jobs=3, **VALIDATION)
        assert [each["num_threads"] for each in threadpool_info()] == before


def test_a_scorer_of_ones_own_is_called_by_one_thread():
    model = GradientBoostingRegressor(n_estimators=30, random_state=0).fit(X, Y)
    callers = set()

    def score(model, X, y):
        callers.add(threading.get_ident())
        return r2_score(y, model.predict(X))

    fp.prune(model, X, Y, max_nodes=60, n_jobs=3, scoring=score, **VALIDATION)
    assert callers == {threading.get_ident()}


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

    def counted(cls, source, point, *place):
        built.append(point.n_nodes)
        return original(cls, source, point, *place)

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


@pytest.mark.parametrize("options", [{}, {"rule": "layer", "polish": "ridge"}], ids=str)
def test_every_point_has_its_own_score(options):
    model = GradientBoostingRegressor(n_estimators=30, max_depth=4, random_state=0).fit(X, Y)
    weights = np.random.default_rng(0).integers(0, 3, len(Y_VAL)).astype(float)
    held_out = HeldOut(X_VAL, Y_VAL, weights)
    wanted = Wanted(budget=Budget(max_nodes=60), n_alphas=12)
    path, taken = choose(model, X, Y, None, wanted, held_out, Options.of(options))
    assert (np.diff(path.alphas) <= 0).all()
    assert path.points[-1].n_nodes == fp.Forest.from_model(model).n_nodes
    shrinkages = {point.report.get("shrinkage") for point in path.points[:-1]}
    assert len(shrinkages) == (1 if options else 3)
    # The gap between the last that fits and the next is halved again and again; what is better on
    # validation rows than that next one, by chance, is left out.
    assert len(path) >= len(shrinkages) * 8
    for small, score, error in zip(
        path, path.validation.scores, path.validation.standard_errors, strict=True
    ):
        squares = (Y_VAL - small.predict(X_VAL)) ** 2
        assert score == pytest.approx(
            r2_score(Y_VAL, small.predict(X_VAL), sample_weight=weights), abs=1e-12
        )
        mean = np.average(squares, weights=weights)
        scatter = np.average((squares - mean) ** 2, weights=weights)
        variance = np.average((Y_VAL - np.average(Y_VAL, weights=weights)) ** 2, weights=weights)
        rows = weights.sum() ** 2 / (weights**2).sum()
        assert error == pytest.approx(np.sqrt(scatter / rows) / variance)
    fits = path.n_nodes <= 60
    assert path.validation.scores[taken] == path.validation.scores[fits].max()


def test_the_layer_rule_gains_by_neighbours_on_its_path(monkeypatch):
    rows, y = make_friedman1(60, noise=1.0, random_state=1)
    model = GradientBoostingRegressor(n_estimators=40, subsample=0.5, random_state=1).fit(rows, y)
    searched = fp.prune_path(model, rows, y, n_alphas=12, rule="layer").objectives
    monkeypatch.setattr(solver.Solver, "_compare_neighbours", lambda *_: None)
    plain = fp.prune_path(model, rows, y, n_alphas=12, rule="layer").objectives
    assert (searched <= plain + 1e-9).all()
    assert (searched < plain - 1e-6).any()


@pytest.mark.parametrize("local_search", [True, False])
def test_a_single_alpha_is_solved_from_nothing_and_if_searched_from_everything(
    monkeypatch, local_search
):
    model = GradientBoostingRegressor(n_estimators=20, random_state=0).fit(X, Y)
    beginnings, original = [], LayerRule.move_to

    def moved(rule, point):
        beginnings.append(point.n_nodes)
        original(rule, point)

    monkeypatch.setattr(LayerRule, "move_to", moved)
    fp.prune(model, X, Y, alpha=0.4, rule="layer", local_search=local_search)
    assert beginnings == ([fp.Forest.from_model(model).n_nodes] if local_search else [])


def test_a_budget_in_bytes_counts_before_one_standard_error():
    model = RandomForestRegressor(10, max_depth=6, random_state=0).fit(X, Y)
    path = fp.prune_path(model, X, Y, n_alphas=25, **VALIDATION)
    limit = int(np.median([small.n_bytes for small in path if small.n_trees]))
    within = np.array([small.n_bytes <= limit for small in path])
    scores, errors = path.validation.scores, path.validation.standard_errors
    best = np.flatnonzero(within)[np.argmax(scores[within])]
    good = within & (scores >= scores[best] - errors[best])
    small = path.select(max_bytes=limit, one_standard_error=True)
    assert small.n_nodes == path.n_nodes[good].min()


def test_what_cannot_be_is_refused_before_a_forest_is_fitted():
    class Unfittable(RandomForestRegressor):
        def fit(self, X, y, sample_weight=None):
            raise AssertionError("must be refused before the forest is fitted")

    for options, complaint in (
        ({"alpha": 1.0, "max_nodes": 30}, "alpha and max_nodes exclude each other"),
        ({"alpha": 1.0, "validation_fraction": 0.3}, "alpha and validation_fraction exclude"),
        ({"n_alphas": 0}, "n_alphas must be a whole number"),
    ):
        with pytest.raises(ValueError, match=complaint):
            fp.ForestPruneRegressor(Unfittable(), **options).fit(X, Y)
    with pytest.raises(ValueError, match="n_alphas must be a whole number"):
        fp.ForestPruneRegressorCV(Unfittable(), n_alphas=2.5).fit(X, Y)


def test_weights_of_rows_need_rows_to_select_by():
    path = fp.prune_path(RandomForestRegressor(3, random_state=0).fit(X, Y), X, Y, n_alphas=4)
    with pytest.raises(ValueError, match="X must be given with y and sample_weight"):
        path.select(max_nodes=100, sample_weight=np.ones(3))


def test_a_row_that_is_no_table_is_refused_as_such():
    model = RandomForestRegressor(3, random_state=0).fit(X, Y)
    with pytest.raises(ValueError, match="X must be a table with a column for each of the"):
        fp.prune(model, np.array(5.0), Y, max_nodes=9)


def test_y_in_the_place_of_x_is_told():
    model = RandomForestRegressor(3, random_state=0).fit(X, Y)
    with pytest.raises(ValueError, match="Have X and y changed places") as caught:
        fp.prune(model, Y, X, max_nodes=9)
    assert not getattr(caught.value, "__notes__", None)


@pytest.mark.parametrize("rows", [(Y, X), (X[:, :-1], Y), (X, Y[:-1])])
def test_errors_about_validation_rows_say_so(rows):
    model = RandomForestRegressor(3, random_state=0).fit(X, Y)
    with pytest.raises(ValueError, match=r"must|columns") as caught:
        fp.prune(model, X, Y, max_nodes=9, X_val=rows[0], y_val=rows[1])
    assert caught.value.__notes__ == ["X and y are those of validation here: X_val and y_val."]
