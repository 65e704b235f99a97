"""Sweeps over the trees of a forest: what is promised of them, for every loss."""

from contextlib import contextmanager
from dataclasses import replace
from unittest.mock import patch

import numpy as np
import pytest
from effort import INTERPRETED, examples
from hypothesis import given, settings
from hypothesis import strategies as st
from loss_cases import LOSSES
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from strategies import N_FEATURES, NUMBERS, forests

import forestprune as fp
from forestprune import kernels
from forestprune.forest.new_splits import new_splits, split_limits
from forestprune.loss import BrierScore, SquaredError
from forestprune.polishing.split import descent as module
from forestprune.polishing.split.convert import binned_trees
from forestprune.polishing.split.descent import SplitDescent, SplitRows
from forestprune.polishing.split.tree import BinnedTree
from forestprune.rows import bins as bins_module
from forestprune.rows.bins import make_bins

SHRINKAGES = st.sampled_from([0.0, 0.5, 20.0])


@contextmanager
def least_rows(number):
    """Let few rows do on either side of a split."""
    with patch.object(module, "LEAST_ROWS", number):
        yield


def some_rows(rng, m):
    """Return rows with ties, numbers that differ little, and NaN."""
    X = rng.choice(NUMBERS[:-6], size=(m, N_FEATURES))
    dense = rng.random(N_FEATURES) < 0.5
    X[:, dense] = rng.normal(size=(m, int(dense.sum())))
    codes = rng.random(N_FEATURES) < 0.3
    X[:, codes] = rng.choice([0, 1, 2, 31, 32, 40, 3], size=(m, int(codes.sum())))
    X[rng.random(X.shape) < 0.1] = np.nan
    return X


def some_weights(rng, m):
    """Return weights of rows, many of which are 0; or None."""
    if rng.random() < 0.4:
        return None
    weight = rng.integers(0, 3, m).astype(float)
    weight[0] = 1.0
    return weight


def begun(forest, X, target, weight, loss, shrinkage, **how):
    """Return a descent, and the bins it goes by."""
    matrix = forest.input.matrix(X)
    limits = split_limits(forest)
    bins = make_bins(forest, matrix, limits)
    rows = SplitRows(bins.of(matrix), target, weight)
    descent = SplitDescent(
        forest,
        fp.encode(forest, X),
        rows,
        bins,
        limits,
        loss.prepared(target, weight),
        shrinkage=shrinkage,
        **how,
    )
    return descent, bins


def raw_of(forest, X):
    """Return what a forest predicts, (n_outputs, m)."""
    return np.ascontiguousarray(forest.predict(X).reshape(len(X), -1).T)


def penalty(forest, loss, target, weight, shrinkage):
    """Return half the penalty on what leaves add."""
    leaves = forest.scaled_value[forest.left < 0]
    return 0.5 * shrinkage * loss.curvature(target, weight) * (leaves**2).sum()


def check(descent, before, X, target, weight, loss, shrinkage):
    """Assert that what a descent says of the forest is so; return it."""
    forest = descent.forest()
    expected = loss.value(target, raw_of(forest, X), weight)
    assert descent.loss() == pytest.approx(expected, rel=1e-9, abs=1e-9)
    expected += penalty(forest, loss, target, weight, shrinkage)
    assert descent.objective() == pytest.approx(expected, rel=1e-9, abs=1e-9)
    assert forest.n_nodes <= before.n_nodes
    sizes = zip(np.diff(forest.offsets), np.diff(before.offsets), strict=True)
    assert all(now <= then for now, then in sizes)
    return forest


@st.composite
def scaled_forests(draw, outputs, *, categorical, by_class):
    """Draw a forest that adds a little to `outputs` outputs."""
    columns = 1 if by_class else outputs
    forest = draw(
        forests(max_trees=4, min_trees=1, max_outputs=columns, categorical=categorical).filter(
            lambda drawn: drawn[1].n_outputs == columns
        )
    )[1]
    rng = np.random.default_rng(forest.n_nodes)
    scale = 0.1 * rng.choice([-2.0, 0.5, 1.0, 2.0], forest.n_trees)
    if draw(st.integers(0, 3)) == 0:
        scale[0] = 0.0
    base = rng.normal(size=outputs)
    of_class = rng.integers(0, outputs, forest.n_trees).astype(np.int32)
    changes = {"tree_output": of_class} if by_class else {}
    return replace(forest, scale=scale, base=base, **changes)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("categorical", [False, True])
@pytest.mark.parametrize("name", LOSSES)
@settings(max_examples=examples(24))
@given(data=st.data())
def test_the_objective_never_rises_and_is_that_of_the_forest(name, categorical, data):
    loss, targets = LOSSES[name]
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    m = 40
    outputs = data.draw(st.integers(1, 2))
    target = targets(rng, outputs, m)
    by_class = data.draw(st.booleans())
    forest = data.draw(scaled_forests(len(target), categorical=categorical, by_class=by_class))
    X, weight, shrinkage = some_rows(rng, m), some_weights(rng, m), data.draw(SHRINKAGES)
    loss = loss.prepared(target, weight)
    # With few borders, splits of the forest lie between those.
    own, most = data.draw(st.sampled_from([(200, 254), (2, 3), (0, 1)]))
    with (
        least_rows(2),
        patch.object(bins_module, "MOST_OWN", own),
        patch.object(bins_module, "MOST_BORDERS", most),
    ):
        descent, _ = begun(
            forest, X, target, weight, loss, shrinkage, n_jobs=data.draw(st.sampled_from([1, 2]))
        )
        rest = (X, target, weight, loss, shrinkage)
        before = descent.objective()
        check(descent, forest, *rest)
        for sweep in range(1, 5):
            descent.sweep()
            now = descent.objective()
            assert now <= before + 1e-9 * abs(before) + 1e-9
            assert descent.sweeps == sweep
            before = now
            check(descent, forest, *rest)


def noisy(seed, m=600, forest=None):
    """Return a model of few trees, and rows it was trained on."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, 4)).round(2)
    y = X[:, 0] * (X[:, 1] > 0) + np.abs(X[:, 2]) + 0.3 * rng.normal(size=m)
    X[rng.random(X.shape) < 0.05] = np.nan
    model = RandomForestRegressor(3, max_depth=5, random_state=0) if forest is None else forest
    return model.fit(X, y), X, y


class NoGrowth:
    """In place of `Growth`: a root, so that other forms of a tree are better."""

    def __init__(self, finder, asked, *rest, bounded, **how):
        self._root = BinnedTree.blank(1, len(asked.sums), bounded=bounded)

    def grow(self, leaf):
        leaf[:] = 0
        return self._root


def test_splits_between_borders_become_those_that_rows_are_sent_by(monkeypatch):
    """Of a forest with more thresholds than there can be borders, not one row may be misplaced."""
    monkeypatch.setattr(module, "Growth", NoGrowth)
    monkeypatch.setattr(bins_module, "MOST_OWN", 3)
    monkeypatch.setattr(bins_module, "MOST_BORDERS", 20)
    model, X, y = noisy(0)
    forest = fp.Forest.from_model(model)
    with least_rows(5):
        descent, _ = begun(forest, X, y[np.newaxis], None, SquaredError(), 5.0)
        for _ in range(3):
            assert descent.sweep()
            check(descent, forest, X, y[np.newaxis], None, SquaredError(), 5.0)
    polished = descent.forest()
    new = polished.node_extras["new_split"]
    assert 0 < new.sum() < (polished.left >= 0).sum()


def test_values_alone_are_those_of_least_penalised_squares():
    model, X, y = noisy(3)
    forest = fp.Forest.from_model(model)
    rest = (X, y[np.newaxis], None, SquaredError(), 5.0)
    descent, _ = begun(forest, *rest, values_only=True)
    assert descent.sweep() == 0
    for _ in range(300):
        descent.sweep()
    refitted = check(descent, forest, *rest)
    for name in ("left", "feature", "threshold", "missing_left"):
        np.testing.assert_array_equal(getattr(refitted, name), getattr(forest, name))
    assert not new_splits(refitted).any()
    # All leaves at once: a column for each says which rows are in it, and one is the constant.
    leaf = [codes == code for codes in fp.encode(forest, X).codes for code in np.unique(codes)]
    columns = np.column_stack([np.ones(len(y)), *leaf])
    equations = columns.T @ columns
    equations[np.arange(1, len(equations)), np.arange(1, len(equations))] += 5.0
    best = columns @ np.linalg.solve(equations, columns.T @ y)
    np.testing.assert_allclose(refitted.predict(X), best, atol=1e-6)


def test_new_rows_go_where_bins_send_them():
    model, X, y = noisy(1)
    forest = fp.Forest.from_model(model)
    with least_rows(5):
        descent, bins = begun(forest, X, y[np.newaxis], None, SquaredError(), 5.0)
        descent.descend(4)
    polished = descent.forest()
    rng = np.random.default_rng(2)
    others = rng.normal(size=(3000, 4)).round(2)
    others[rng.random(others.shape) < 0.1] = np.nan
    others[::7] = np.float32(rng.choice(polished.threshold, (429, 4)))
    matrix = polished.input.matrix(others)
    of_rows, codes = bins.of(matrix), fp.encode(polished, others).codes
    for tree, code in zip(binned_trees(polished, bins), codes, strict=True):
        assert tree.exact.all()
        leaf = np.empty(len(others), np.int32)
        how = (tree.left, tree.feature, tree.goes_left, 0)
        kernels.reach_leaves(of_rows, np.arange(len(others), dtype=np.int32), *how, leaf)
        assert (tree.leaves[code] == leaf).all()


def averaged(classes, seed, m=200):
    """Return a pruned classifier that averages distributions, its rows, and their target."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, 4)).round(1)
    y = np.digitize(X[:, 0] + X[:, 1] * X[:, 2] + 0.5 * rng.normal(size=m), range(classes - 1))
    y[:classes] = range(classes)
    model = RandomForestClassifier(5, max_depth=4, random_state=seed).fit(X, y)
    target = (y == np.arange(classes)[:, np.newaxis]).astype(float)
    return model, X, y, target[1:] if classes == 2 else target


@pytest.mark.skipif(INTERPRETED, reason="whole prunings, left to the compiled run")
@pytest.mark.parametrize("classes", [2, 3])
@settings(max_examples=examples(12))
@given(seed=st.integers(0, 1000), shrinkage=SHRINKAGES)
def test_averages_stay_those_of_distributions(classes, seed, shrinkage):
    model, X, y, target = averaged(classes, seed)
    forest = fp.prune(model, X, y, max_nodes=60).forest
    weight = some_weights(np.random.default_rng(seed), len(X))
    loss = BrierScore()
    with least_rows(3):
        descent, _ = begun(forest, X, target, weight, loss, shrinkage)
        # Leaves of the original may be surer than these rows allow; from then on none is.
        descent.sweep()
        before = descent.objective()
        for _ in range(3):
            descent.sweep()
            assert descent.objective() <= before + 1e-9
            before = descent.objective()
            polished = check(descent, forest, X, target, weight, loss, shrinkage)
            leaves = polished.n_trees * polished.scaled_value[polished.left < 0] + polished.base
            assert (leaves >= -1e-9).all()
            assert (leaves <= 1.0 + 1e-9).all()
            if classes > 2:
                np.testing.assert_allclose(leaves.sum(axis=1), 1.0)
    shares = polished.predict(X).reshape(len(X), -1)
    assert (shares >= -1e-9).all()
    assert (shares <= 1.0 + 1e-9).all()
