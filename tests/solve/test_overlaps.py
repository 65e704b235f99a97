"""Refitting by overlaps: the counts, and that it ends where passes over the rows do."""

import numpy as np
import pytest
from conftest import INTERPRETED
from forestprune.solve.subtrees.descent import SubtreeDescent
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import make_friedman1
from sklearn.ensemble import RandomForestRegressor
from small_problems import pose
from strategies import alphas, cases

from forestprune import Forest, encode
from forestprune.solve import problem
from forestprune.solve.subtrees import descent as subtree_descent

ROWS, TREES = (60, 4) if INTERPRETED else (400, 12)


@pytest.fixture(autouse=True)
def _few_rows_are_many(monkeypatch):
    monkeypatch.setattr(subtree_descent, "MANY_ROWS", 0)


@given(case=cases(), steps=st.lists(alphas, min_size=1, max_size=4), data=st.data())
def test_overlaps_are_the_rows_that_leaves_share(case, steps, data):
    descent = SubtreeDescent(pose(case, data.draw(st.sampled_from([0.0, 5.0]))))
    weights = np.ones(len(case.X)) if case.weights is None else case.weights
    for alpha in steps:
        descent.descend(alpha, 20)
        order = np.flatnonzero(descent.depths > 0)
        cut, trunks, overlaps = descent._cut, descent._trunks, descent._overlaps
        descent._refit(descent._price(alpha), order)
        slots, rows = np.empty(0, np.int64), []
        for i in order:
            first = trunks.trees.first_leaf[i]
            for number, end in enumerate(cut.ends[first : first + cut.n_ends[i]]):
                node = trunks.nodes[trunks.trees.offsets[i] + end]
                slots = np.append(slots, overlaps.slot_of[node] - 1)
                assert overlaps.node[slots[-1]] == node
                rows.append(cut.column[i] == number)
        assert len(set(slots)) == len(slots)
        assert np.count_nonzero(overlaps.node >= 0) == len(slots)
        member = np.array(rows, dtype=float).reshape(len(rows), len(case.X))
        expected = member * weights @ member.T
        np.testing.assert_allclose(overlaps.weight[np.ix_(slots, slots)], expected, atol=1e-9)


@pytest.mark.parametrize("kind", ["plain", "weighted", "two outputs"])
def test_refitting_by_overlaps_ends_where_passes_over_the_rows_do(kind, monkeypatch):
    X, y = make_friedman1(ROWS, noise=1.0, random_state=0)
    if kind == "two outputs":
        y = np.column_stack([y, X[:, 0] * X[:, 5]])
    model = RandomForestRegressor(TREES, max_depth=6, max_features=0.5, random_state=0)
    forest = Forest.from_model(model.fit(X, y))
    weights = np.random.default_rng(0).random(ROWS) if kind == "weighted" else None
    encoding = encode(forest, X, sample_weight=weights)
    posed = problem.pose(encoding, y, rule="subtree", refit=True, shrinkage=5.0)
    by_overlaps = SubtreeDescent(posed)
    # So few that some solutions have more, and then less again.
    monkeypatch.setattr(subtree_descent, "FEW_LEAVES", 10)
    some_by_rows = SubtreeDescent(posed)
    monkeypatch.setattr(subtree_descent, "FEW_LEAVES", 1)
    by_rows = SubtreeDescent(posed)
    highest, _ = by_rows.alpha_range()
    leaves = []
    for alpha in highest * np.array([0.5, 0.1, 0.02, 0.1, 0.5, 0.1]):
        solutions = []
        for few, descent in ((1024, by_overlaps), (10, some_by_rows), (1, by_rows)):
            monkeypatch.setattr(subtree_descent, "FEW_LEAVES", few)
            assert descent.descend(alpha, 1000)
            solutions.append(descent.solution(alpha))
        leaves.append(by_rows._cut.n_ends.sum())
        for solution in solutions[:2]:
            then = solutions[2].subtrees
            np.testing.assert_array_equal(solution.subtrees.nodes, then.nodes)
            np.testing.assert_allclose(solution.subtrees.adds, then.adds, rtol=1e-7, atol=1e-9)
        residuals = [d._cut.residual for d in (by_overlaps, some_by_rows, by_rows)]
        np.testing.assert_allclose(residuals[0], residuals[2], atol=1e-8)
        np.testing.assert_allclose(residuals[1], residuals[2], atol=1e-8)
        # No further than the steps that passes over the rows add up.
        assert by_overlaps._cut.moved[0] <= by_rows._cut.moved[0] * (1 + 1e-9)
    assert min(leaves) < 10 < max(leaves)
