"""New splits for rows by the block: some rows choose them, and all rows what their leaves add."""

from dataclasses import replace

import numpy as np
import pytest
from effort import INTERPRETED
from sklearn.datasets import make_classification, make_friedman1
from sklearn.ensemble import (
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
)

import forestprune as fp
from forestprune import api
from forestprune.blocks.given import Batches
from forestprune.interop.source import Source
from forestprune.options import Options
from forestprune.polishing.leaf_rounds import ENOUGH
from forestprune.select import by_sample, resplit_by_block
from forestprune.select.all_rows import RowsByBlock
from forestprune.select.resplit_by_block import NewSplits
from forestprune.select.routed import RoutedRows
from forestprune.select.split_polish import Grown, SplitPolisher

pytestmark = pytest.mark.skipif(INTERPRETED, reason="whole prunings, left to the compiled run")

X, Y = make_friedman1(6_000, noise=1.0, random_state=0)
X_VAL, Y_VAL = make_friedman1(2_000, noise=1.0, random_state=1)
XC, C3 = make_classification(
    6_000, n_informative=6, n_classes=3, flip_y=0.1, class_sep=0.8, random_state=0
)
MODELS = {
    "boosting": (GradientBoostingRegressor(n_estimators=40, random_state=0), X, Y),
    "two classes": (GradientBoostingClassifier(n_estimators=30, random_state=0), XC, C3 > 0),
    "three classes": (GradientBoostingClassifier(n_estimators=12, random_state=0), XC, C3),
    "averages": (RandomForestClassifier(8, max_depth=5, random_state=0), XC, C3),
}


@pytest.fixture(autouse=True)
def _few(monkeypatch):
    monkeypatch.setattr(by_sample, "SAMPLE_ROWS", 1_500)
    monkeypatch.setattr(api, "PATH_ROWS", 3_000)
    monkeypatch.setattr(resplit_by_block, "SPLIT_ROWS", 2_500)


LONG = ("two classes", "three classes")
PARAMS = [pytest.param(name, marks=pytest.mark.long) if name in LONG else name for name in MODELS]


@pytest.fixture(scope="module", params=PARAMS)
def fitted(request):
    model, rows, target = MODELS[request.param]
    return model.fit(rows[:4_000], target[:4_000]), rows, target


@pytest.fixture(scope="module")
def boosted():
    return GradientBoostingRegressor(n_estimators=40, random_state=0).fit(X, Y)


def batches(rows, target, size=1_234):
    return [(rows[i : i + size], target[i : i + size]) for i in range(0, len(rows), size)]


def point_of(small):
    return small.path.points[small.index]


@pytest.mark.sampled(2)
def test_all_rows_fit_what_some_chose(fitted):
    model, rows, target = fitted
    asked = {"max_nodes": 80, "shrinkage": 30.0}
    plain = fp.prune(model, batches(rows, target), **asked)
    small = fp.prune(model, batches(rows, target), polish="split", **asked)
    assert 0 < small.n_nodes <= 80
    assert small.n_new_splits > 0
    point = point_of(small)
    assert point.report["rows"] == 6_000
    assert point.report["sample_rows"] == 2_500
    assert point.loss < point_of(plain).loss
    # What is said of it is what rows say, but for the best constant, which the sample says.
    assert small.path.score(rows, target)[small.index] == pytest.approx(1.0 - point.loss, abs=2e-3)
    if fp.Forest.from_model(model).averages_distributions:
        proba = small.predict_proba(rows)
        assert (proba >= 0.0).all()
        np.testing.assert_allclose(proba.sum(axis=1), 1.0)
        return
    assert point.report["gain_left"] <= ENOUGH
    # With these splits, all rows in memory find no better values, tree by tree.
    routed = RoutedRows.of(Source.of(model), rows, target, keep_matrix=True)
    polisher = SplitPolisher(routed, Options(polish="split", shrinkage=30.0), None)
    begun = Grown.of(routed.source.forest, point)
    by_all = polisher.polished(begun, point, 30.0, 30, values_only=True)[1]
    assert point.objective == pytest.approx(by_all.objective, rel=1e-3)
    assert by_all.forest.n_nodes == small.n_nodes


def test_blocks_of_any_size_make_the_same_model(boosted):
    asked = {"max_nodes": 60, "shrinkage": 30.0, "polish": "split"}
    first, second = (fp.prune(boosted, batches(X, Y, size), **asked) for size in (6_000, 777))
    assert point_of(first).objective == pytest.approx(point_of(second).objective, rel=1e-9)
    np.testing.assert_allclose(first.predict(X_VAL), second.predict(X_VAL))


@pytest.mark.long
def test_few_rows_are_polished_with_as_ever(boosted):
    some = X[:1_000], Y[:1_000]
    asked = {"max_nodes": 40, "polish": "split"}
    small, expected = fp.prune(boosted, batches(*some), **asked), fp.prune(boosted, *some, **asked)
    np.testing.assert_array_equal(small.predict(X_VAL), expected.predict(X_VAL))
    small, expected = fp.polish(boosted, batches(*some)), fp.polish(boosted, *some)
    np.testing.assert_array_equal(small.predict(X_VAL), expected.predict(X_VAL))


@pytest.mark.long
def test_validation_rows_choose(boosted):
    held_out = {"X_val": batches(X_VAL, Y_VAL)}
    plain = fp.prune(boosted, batches(X, Y), max_nodes=60, **held_out)
    small = fp.prune(boosted, batches(X, Y), max_nodes=60, polish="split", **held_out)
    assert small.n_nodes <= 60
    assert small.n_new_splits > 0
    assert small.validation.n_rows == 2_000
    assert small.validation.score > plain.validation.score
    assert {point.report.get("polish") for point in small.path.points} == {None, "split"}
    asked = {"tolerance": 0.03, **held_out}
    good = fp.prune(boosted, batches(X, Y), polish="split", **asked)
    assert good.validation.shortfall <= 0.03
    assert good.n_nodes <= fp.prune(boosted, batches(X, Y), **asked).n_nodes
    told = [point for point in good.path.points if point.forest is not None]
    assert all(point.report["rows"] == 6_000 for point in told)


def test_what_all_rows_do_not_bear_out_is_given_up(boosted):
    source = Source.of(boosted)
    everything = RowsByBlock(source, Batches(batches(X, Y)), None)
    new_splits = NewSplits.of(everything, Options(polish="split"))
    assert not new_splits.has_all
    sizes = (20, 90)
    few, many = (
        point_of(fp.prune(boosted, batches(X, Y), max_nodes=size, shrinkage=30.0)) for size in sizes
    )
    polisher = SplitPolisher(new_splits.rows, Options(polish="split", shrinkage=30.0), None)
    small, large = (
        polisher.polished(Grown.of(source.forest, point), point, 30.0)[1] for point in (few, many)
    )
    assert new_splits.settle([small, large], many) != []
    assert new_splits.passes >= 2
    [kept] = new_splits.settle([small, large], replace(many, report={}))
    assert kept.n_nodes == large.n_nodes
    assert len(new_splits.settle([small, large], few)) == 2
    assert len(new_splits.settle([small, large], None)) == 2


@pytest.mark.long
def test_weights_count(boosted):
    weights = np.tile([0.0, 1.0, 2.0], 2_000)
    cuts = range(0, 6_000, 900)
    parts = [(X[i : i + 900], Y[i : i + 900], weights[i : i + 900]) for i in cuts]
    asked = {"max_nodes": 60, "shrinkage": 30.0, "polish": "split"}
    point = point_of(small := fp.prune(boosted, parts, **asked))
    score = small.path.score(X, Y, sample_weight=weights)[small.index]
    assert point.loss == pytest.approx(1.0 - score, rel=2e-3)


@pytest.mark.long
def test_promises_hold():
    model = HistGradientBoostingRegressor(max_iter=20, monotonic_cst=[0, 0, 0, 1, 1] + [0] * 5)
    small = fp.prune(model.fit(X, Y), batches(X, Y), max_nodes=80, polish="split", shrinkage=30.0)
    assert small.n_new_splits > 0
    row = np.repeat(X_VAL[:200], 2, axis=0)
    row[1::2, 3] += 0.3
    predicted = small.predict(row)
    assert (predicted[1::2] >= predicted[::2] - 1e-12).all()


@pytest.mark.long
def test_paths_and_models_as_they_are(boosted):
    path = fp.prune_path(boosted, batches(X, Y), n_alphas=8, polish="split", shrinkage=30.0)
    plain = [point for point in path.points if point.forest is None]
    told = [point for point in path.points if point.forest is not None]
    assert len(told) >= 3
    assert all(point.report["rows"] == 6_000 for point in (*plain, *told))
    assert path.n_new_splits.max() > 0
    small = GradientBoostingRegressor(n_estimators=15, random_state=0).fit(X[:1_000], Y[:1_000])
    better = fp.polish(small, batches(X, Y), X_val=batches(X_VAL, Y_VAL))
    assert better.n_new_splits > 0
    assert better.validation.score > better.validation.full_score
    full = better.path.points[-1]
    assert full.loss == pytest.approx(1.0 - small.score(X, Y), rel=1e-3)
