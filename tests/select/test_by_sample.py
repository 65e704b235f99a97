"""Pruning by a sample that all rows correct: as good as with all rows, wherever these are."""

import numpy as np
import pandas as pd
import pytest
from effort import INTERPRETED
from sklearn.datasets import make_classification, make_friedman1
from sklearn.ensemble import (
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import forestprune as fp
from forestprune import api
from forestprune.blocks.given import Batches
from forestprune.options import Options
from forestprune.select import by_sample, request
from forestprune.select.budget import Budget
from forestprune.select.by_sample import SETTLED
from forestprune.select.choose import Wanted
from forestprune.select.routed import HeldOut

pytestmark = pytest.mark.skipif(INTERPRETED, reason="whole prunings, left to the compiled run")

X, Y = make_friedman1(6_000, noise=1.0, random_state=0)
X_VAL, Y_VAL = make_friedman1(2_000, noise=1.0, random_state=1)
XC, C3 = make_classification(
    6_000, n_informative=6, n_classes=3, flip_y=0.1, class_sep=0.8, random_state=0
)
C2 = np.where(C3 == 0, "no", "yes")
MODELS = {
    "boosting": (GradientBoostingRegressor(n_estimators=40, random_state=0), X, Y),
    "forest": (RandomForestRegressor(15, max_depth=9, max_features=0.4, random_state=0), X, Y),
    "poisson": (HistGradientBoostingRegressor(loss="poisson", max_iter=25), X, np.rint(Y + 9)),
    "two classes": (GradientBoostingClassifier(n_estimators=30, random_state=0), XC, C2),
    "three classes": (GradientBoostingClassifier(n_estimators=12, random_state=0), XC, C3),
    "averages": (RandomForestClassifier(12, max_depth=7, random_state=0), XC, C3),
    "two averages": (
        RandomForestClassifier(12, max_depth=7, class_weight="balanced", random_state=0),
        XC,
        C2,
    ),
}


@pytest.fixture(autouse=True)
def _few(monkeypatch):
    monkeypatch.setattr(by_sample, "SAMPLE_ROWS", 1_500)
    monkeypatch.setattr(api, "PATH_ROWS", 3_000)


@pytest.fixture(scope="module", params=MODELS)
def fitted(request):
    model, rows, target = MODELS[request.param]
    return model.fit(rows, target), rows, target


def batches(rows, target, weights=None, size=1_234):
    cuts = range(0, len(rows), size)
    if weights is None:
        return [(rows[i : i + size], target[i : i + size]) for i in cuts]
    return [(rows[i : i + size], target[i : i + size], weights[i : i + size]) for i in cuts]


def point_of(small):
    return small.path.points[small.index]


def best_by_all(model, rows, target, **asked):
    return point_of(fp.prune(model, rows, target, **asked))


@pytest.mark.sampled(3)
def test_no_tree_can_improve_what_comes_out_and_all_rows_do_no_better(fitted):
    model, rows, target = fitted
    small = fp.prune(model, batches(rows, target), max_nodes=120, shrinkage=20.0)
    assert small.n_nodes <= 120
    point = point_of(small)
    assert point.report["rows"] == 6_000
    assert point.report["sample_rows"] == 1_500
    assert point.report["gain_left"] <= 10 * SETTLED
    # At the same price, a descent by all rows is not better by more than solutions differ.
    alone = best_by_all(model, rows, target, alpha=point.alpha, shrinkage=20.0)
    assert point.objective <= 1.02 * alone.objective
    # What is said of it is what all rows say.
    again = fp.prune_path(model, rows, target, alphas=[1e9]).score(rows, target)  # of a constant
    assert again[0] <= small.path.score(rows, target)[small.index] + 1e-9
    score = small.path.score(rows, target)[small.index]
    assert point.loss == pytest.approx((1.0 - score) / (1.0 - again[0]), rel=0.02)


@pytest.mark.sampled(3)
def test_rows_in_memory_or_by_the_block_make_the_same_model(fitted, monkeypatch):
    model, rows, target = fitted
    monkeypatch.setattr(request, "LARGE_ROWS", 2_000)
    in_memory = fp.prune(model, rows, target, max_nodes=80, shrinkage=20.0)
    for size in (6_000, 777):
        small = fp.prune(model, batches(rows, target, size=size), max_nodes=80, shrinkage=20.0)
        np.testing.assert_allclose(small.predict(rows[:50]).astype(str) == "", False)
        assert point_of(small).objective == pytest.approx(point_of(in_memory).objective, rel=1e-9)
        assert small.n_nodes == in_memory.n_nodes


def test_threads_that_try_shrinkages_change_nothing(boosted):
    how = {"max_nodes": 60, "X_val": X_VAL, "y_val": Y_VAL}
    one, three = (fp.prune(boosted, batches(X, Y), n_jobs=n, **how) for n in (1, 3))
    assert one.index == three.index
    assert one.path.to_frame().equals(three.path.to_frame())
    np.testing.assert_array_equal(one.predict(X_VAL), three.predict(X_VAL))


@pytest.mark.sampled(3)
def test_one_alpha_and_paths(fitted):
    model, rows, target = fitted
    path = fp.prune_path(model, batches(rows, target), n_alphas=12, shrinkage=20.0)
    by_all = fp.prune_path(model, rows, target, n_alphas=12, shrinkage=20.0)
    assert (np.diff(path.alphas) < 0.0).all()
    # The last is the full model, of which both say the same.
    assert path.losses[-1] == pytest.approx(by_all.losses[-1], rel=2e-3)
    middle = next(point for point in path.points[::-1] if point.n_nodes <= 120)
    small = fp.prune(model, batches(rows, target), alpha=middle.alpha, shrinkage=20.0)
    assert point_of(small).objective <= 1.02 * middle.objective
    chosen = fp.prune_path(
        model, batches(rows, target), alphas=[middle.alpha, 2 * middle.alpha], shrinkage=20.0
    )
    assert len(chosen) == 2


@pytest.fixture(scope="module")
def boosted():
    return GradientBoostingRegressor(n_estimators=40, random_state=0).fit(X, Y)


def test_a_whole_path_ends_where_the_sample_can_tell_no_more():
    """Beyond, models of the corrected sample may be anything: reports must not show them."""
    model = RandomForestRegressor(15, max_depth=9, max_features=0.4, random_state=0).fit(X, Y)
    wanted = Wanted(budget=Budget(max_nodes=60), whole=True)
    blocks, held_out = Batches(batches(X, Y)), HeldOut.of(X_VAL, Y_VAL, None, labelled=True)
    options = Options(shrinkage=20.0)
    path, place = request.choose(model, blocks, None, None, wanted, held_out, options)
    nodes, scores = path.n_nodes, path.validation.scores
    assert path.points[place].n_nodes <= 60
    assert np.count_nonzero(nodes > 100) > 3  # beyond the budget, to look at
    # All but the full model and the one by which the path was ended.
    assert np.sort(nodes)[-3] <= 2 * 1_500 / by_sample.ROWS_A_LEAF
    assert scores[nodes > 60].min() > scores[place] - 0.05


def test_tolerance_and_validation_rows_by_the_block(boosted):
    by_block = {"X_val": batches(X_VAL, Y_VAL)}
    small = fp.prune(boosted, batches(X, Y), tolerance=0.02, **by_block)
    assert small.validation.n_rows == 2_000
    assert small.validation.shortfall <= 0.02 + 1e-9
    smaller = fp.prune(boosted, X, Y, tolerance=0.02, X_val=X_VAL, y_val=Y_VAL)
    assert small.n_nodes <= 1.4 * smaller.n_nodes
    best = fp.prune(boosted, batches(X, Y), **by_block)
    assert best.validation.score >= small.validation.score


def test_weights_count_as_rows_that_are_there_more_often(boosted):
    weights = np.tile([0.0, 1.0, 2.0], 2_000)
    small = fp.prune(boosted, batches(X, Y, weights), max_nodes=80, shrinkage=20.0)
    point = point_of(small)
    score = small.path.score(X, Y, sample_weight=weights)[small.index]
    assert point.loss == pytest.approx(1.0 - score, rel=2e-3)
    twice = np.repeat(np.arange(6_000), weights.astype(int))
    other = fp.prune(boosted, X[twice], Y[twice], alpha=point.alpha, shrinkage=20.0)
    assert point.objective == pytest.approx(point_of(other).objective, rel=0.03)


def test_without_a_target_the_model_itself_is_followed(boosted):
    parts = [(rows, None) for rows, _ in batches(X, Y)]
    small = fp.prune(boosted, parts, max_nodes=150)
    said = boosted.predict(X_VAL)
    assert np.corrcoef(said, small.predict(X_VAL))[0, 1] > 0.95


def test_few_rows_are_pruned_with_as_ever(boosted):
    small = fp.prune(boosted, batches(X[:1_000], Y[:1_000]), max_nodes=60)
    expected = fp.prune(boosted, X[:1_000], Y[:1_000], max_nodes=60)
    np.testing.assert_array_equal(small.predict(X_VAL), expected.predict(X_VAL))


def test_constraints_hold(boosted):
    model = HistGradientBoostingRegressor(max_iter=20, monotonic_cst=[0, 0, 0, 1, 1] + [0] * 5)
    small = fp.prune(model.fit(X, Y), batches(X, Y), max_nodes=100)
    row = np.repeat(X_VAL[:200], 2, axis=0)
    row[1::2, 3] += 0.3
    predicted = small.predict(row)
    assert (predicted[1::2] >= predicted[::2] - 1e-12).all()


def test_frames_and_pipelines():
    names = [f"x{j}" for j in range(10)]
    frame = pd.DataFrame(X, columns=names)
    model = make_pipeline(StandardScaler(), GradientBoostingRegressor(n_estimators=10))
    model.fit(frame, Y)
    small = fp.prune(model, batches(frame, Y), max_nodes=40)
    assert small.to_native().predict(frame[:5]).shape == (5,)


def test_what_cannot_be_done_is_refused(boosted):
    once = ((rows, target) for rows, target in batches(X, Y))
    with pytest.raises(TypeError, match="can be gone through once"):
        fp.prune(boosted, once, max_nodes=50)
    for options in ({"rule": "layer"}, {"polish": "ridge"}, {"joint": "ridge", "rule": "layer"}):
        with pytest.raises(ValueError, match="Rows by the block are for"):
            fp.prune(boosted, batches(X, Y), max_nodes=50, **options)
    with pytest.raises(ValueError, match="leave y out"):
        fp.prune(boosted, batches(X, Y), Y, max_nodes=50)
    with pytest.raises(ValueError, match="X_val and y_val must be given together"):
        fp.prune(boosted, batches(X, Y), X_val=[(rows, None) for rows, _ in batches(X, Y)])
    with pytest.raises(TypeError, match="Each batch must be"):
        fp.prune(boosted, Batches([*batches(X, Y), X[:5]]), max_nodes=50)


def test_alphas_that_the_sample_is_too_small_for_are_refused():
    model = RandomForestRegressor(15, max_depth=9, max_features=0.4, random_state=0).fit(X, Y)
    with pytest.raises(ValueError, match=r"At alphas=1e-05 .* can tell of 300 at most"):
        fp.prune_path(model, batches(X, Y), alphas=[100.0, 1e-5])


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_errors_name_the_block(boosted, bad):
    parts = batches(X, Y)
    target = parts[3][1].copy()
    target[7] = bad
    parts[3] = (parts[3][0], target)
    with pytest.raises(ValueError, match="y must be finite") as caught:
        fp.prune(boosted, parts, max_nodes=50)
    assert "batch 3" in caught.value.__notes__[0]


def test_labels_that_appear_late_are_named():
    model = RandomForestClassifier(5, max_depth=4, random_state=0).fit(XC, C2)
    parts = batches(XC, C2)
    parts[-1] = (parts[-1][0], np.where(np.arange(len(parts[-1][1])) == 3, "maybe", parts[-1][1]))
    with pytest.raises(ValueError, match="'maybe'") as caught:
        fp.prune(model, parts, max_nodes=50)
    assert f"batch {len(parts) - 1}" in caught.value.__notes__[0]
    alone = [(rows, np.full(len(rows), "no")) for rows, _ in batches(XC, C2)]
    with pytest.raises(ValueError, match="two classes"):
        fp.prune(model, alone, max_nodes=50)


def test_empty_batches_are_passed_over(boosted):
    parts = batches(X, Y)
    small = fp.prune(boosted, parts, max_nodes=50)
    padded = [(X[:0], Y[:0]), *parts[:2], (X[:0], Y[:0]), *parts[2:]]
    expected = fp.prune(boosted, padded, max_nodes=50)
    assert point_of(small).objective == point_of(expected).objective
    with pytest.raises(ValueError, match="no rows"):
        fp.prune(boosted, [(X[:0], Y[:0])], max_nodes=50)
