"""Drawing rows: the same however they are divided, and more of those that few share leaves with."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import make_friedman1
from sklearn.ensemble import GradientBoostingRegressor

from forestprune import encode
from forestprune.blocks.given import Batches
from forestprune.blocks.lots import lots
from forestprune.interop.source import Source
from forestprune.select.sampling import Chances, drawn, survey, weights_of

X, Y = make_friedman1(700, noise=1.0, random_state=0)
MODEL = GradientBoostingRegressor(n_estimators=10, max_depth=4, random_state=0).fit(X, Y)
SOURCE = Source.of(MODEL)


def test_lots_are_spread_evenly():
    found = lots(np.arange(100_000))
    assert ((found > 0.0) & (found < 1.0)).all()
    counts = np.histogram(found, 20, (0.0, 1.0))[0]
    assert abs(counts - 5_000).max() < 5 * np.sqrt(5_000)
    assert abs(np.corrcoef(found[:-1], found[1:])[0, 1]) < 0.02


@given(cuts=st.lists(st.integers(0, 700), max_size=6), size=st.integers(1, 800))
def test_the_same_rows_are_drawn_however_they_are_divided(cuts, size):
    edges = [0, *sorted(cuts), 700]
    parts = [(X[a:b], Y[a:b]) for a, b in pairwise(edges)]
    whole = survey(SOURCE, Batches([(X, Y)]), size, "", 1)
    found = survey(SOURCE, Batches(parts), size, "", 1)
    assert found.n_rows == 700
    order, expected = np.argsort(found.numbers), np.argsort(whole.numbers)
    np.testing.assert_array_equal(found.numbers[order], whole.numbers[expected])
    np.testing.assert_array_equal(found.matrix[order], X.astype("f4")[np.sort(found.numbers)])
    np.testing.assert_array_equal(found.y[order, 0], Y[np.sort(found.numbers)])
    assert found.numbers.size == min(size, 700)


def test_chances_go_by_how_few_rows_share_a_leaf():
    forest = SOURCE.forest
    encoding = encode(forest, X)
    expected = np.zeros(len(X))
    leaves = 0
    for i in range(forest.n_trees):
        counts = np.bincount(encoding.codes[i])
        leaves += counts.size
        expected += len(X) / counts[encoding.codes[i]]
    expected = 0.5 + 0.5 * expected / leaves
    found = Chances(forest).of(encoding)
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    assert found.mean() == pytest.approx(1.0)


def test_weights_make_up_for_chances():
    chances = np.random.default_rng(0).choice([0.5, 1.0, 20.0], 50_000, p=[0.5, 0.45, 0.05])
    numbers = np.arange(chances.size)
    some = drawn(numbers, chances, 5_000)
    times = weights_of(some, chances[some])
    for chance in (0.5, 1.0, 20.0):
        total = times[chances[some] == chance].sum()
        assert total == pytest.approx((chances == chance).sum(), rel=0.08)
    assert times[chances[some] == 20.0].max() == pytest.approx(1.0)


def test_all_rows_are_taken_if_they_are_few():
    found = survey(SOURCE, Batches([(X, Y)]), 700, "", 1)
    rows = found.routed(SOURCE, 1, stand_for_all=True)
    assert rows.sample_weight is None
    np.testing.assert_array_equal(rows.target[0], Y)
