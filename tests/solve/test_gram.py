"""Refitting by the rows that leaves share: the counts, and that it ends where passes do."""

import numpy as np
import pytest
from effort import INTERPRETED
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import make_friedman1
from sklearn.ensemble import RandomForestRegressor
from small_problems import subtree_rule
from strategies import alphas, cases

from forestprune import Forest, encode
from forestprune.polishing.leaf_fit import Leaves
from forestprune.solve.descent import Descent
from forestprune.solve.point import kept_leaves
from forestprune.solve.problem import pose

ROWS, TREES = (60, 4) if INTERPRETED else (400, 12)


@given(
    case=cases(),
    steps=st.lists(alphas, min_size=1, max_size=4),
    shrinkage=st.sampled_from([0.0, 5.0]),
)
def test_what_leaves_share_is_the_weight_of_their_rows(case, steps, shrinkage):
    problem = case.pose()
    rule = subtree_rule(problem, shrinkage)
    descent = Descent(rule)
    weights = np.ones(len(case.X)) if case.weights is None else case.weights
    for alpha in steps:
        descent.descend(alpha, 20)
        rule.refine(alpha, rule.order, 1)
        splits = rule.point(alpha).splits(case.forest)
        leaves = kept_leaves(case.forest, splits)
        member = Leaves.of(problem.encoding.codes, problem.trees, splits).matrix().toarray()
        expected = member.T * weights @ member
        np.testing.assert_allclose(rule.gram.shared(leaves), expected, atol=1e-9)


@pytest.mark.parametrize("kind", ["plain", "weighted", "two outputs"])
def test_refitting_by_shared_rows_ends_where_passes_over_the_rows_do(kind):
    X, y = make_friedman1(ROWS, noise=1.0, random_state=0)
    if kind == "two outputs":
        y = np.column_stack([y, X[:, 0] * X[:, 5]])
    model = RandomForestRegressor(TREES, max_depth=6, max_features=0.5, random_state=0)
    forest = Forest.from_model(model.fit(X, y))
    weights = np.random.default_rng(0).random(ROWS) if kind == "weighted" else None
    problem = pose(encode(forest, X), y, sample_weight=weights)
    # With 10 leaves at most some solutions have more, and then less again.
    by_gram, some_by_rows, by_rows = (
        Descent(subtree_rule(problem, 5.0, gram_leaves=most)) for most in (1024, 10, 1)
    )
    highest, _ = by_rows.rule.alpha_range()
    leaves = []
    for alpha in highest * np.array([0.5, 0.1, 0.02, 0.1, 0.5, 0.1]):
        points = []
        for descent in (by_gram, some_by_rows, by_rows):
            assert descent.descend(alpha, 1000)
            points.append(descent.rule.point(alpha))
        leaves.append(points[2].values.shape[1])
        for point in points[:2]:
            np.testing.assert_array_equal(point.kept, points[2].kept)
            np.testing.assert_allclose(point.values, points[2].values, rtol=1e-7, atol=1e-9)
            assert point.loss == pytest.approx(points[2].loss, rel=1e-8)
    assert min(leaves) < 10 < max(leaves)
