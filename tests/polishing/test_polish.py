"""Tables, predictions along a path, and new weights for cut trees."""

import itertools
from dataclasses import replace

import naive
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn.datasets import make_friedman1
from sklearn.ensemble import GradientBoostingRegressor, RandomForestRegressor
from strategies import cases

from forestprune import Forest, encode
from forestprune.options import Options
from forestprune.polishing.ridge import ridge_weights
from forestprune.polishing.subset_weights import subset_weights
from forestprune.polishing.tree_equations import TreeEquations
from forestprune.select.solver import everything
from forestprune.solve.contributions import Predictions, predict_codes
from forestprune.solve.point import pack_splits, splits_within
from forestprune.solve.problem import pose


def cut_at(problem, depths, weights=None):
    """Return trees cut at depths as a point."""
    kept = pack_splits(splits_within(problem.encoding.forest, depths))
    weights = np.where(depths > 0, 1.0 if weights is None else weights, 0.0)
    return replace(everything(problem), kept=kept, depths=depths, weights=weights)


def ridge(problem, depths, alpha2):
    return ridge_weights(TreeEquations(problem), cut_at(problem, depths), alpha2)


def drawn_cut(case, data):
    depths = [data.draw(st.integers(0, depth)) for depth in case.depths]
    weights = [data.draw(st.sampled_from([1.0, 0.0, 0.5, -2.0])) for _ in depths]
    return np.array(depths, dtype=np.int64), np.array(weights)


@given(cases(), st.data())
def test_predictions_follow_the_cut(case, data):
    problem = case.pose()
    predictions = Predictions(problem.encoding, problem.trees)
    constant = naive.intercept(case.roots, case.forest.scale, case.forest.base)
    for _ in range(3):
        depths, weights = drawn_cut(case, data)
        predictions.move_to(cut_at(problem, depths, weights))
        expected = naive.pruned_predictions(
            case.roots, case.X, case.forest.scale, case.forest.base, depths, weights, case.dtype
        )
        scale = 1e-9 * (1 + np.abs(expected).max())
        np.testing.assert_allclose(predictions.values.T + constant, expected, atol=scale)


@given(cases())
def test_codes_tell_what_the_whole_forest_predicts(case):
    expected = np.reshape(case.forest.predict(case.X), (len(case.X), -1)).T
    np.testing.assert_array_equal(predict_codes(encode(case.forest, case.X)), expected)


def columns(case, depths):
    """Return what each kept tree adds, outputs one below the other: shape (m * o, kept)."""
    kept = np.flatnonzero(depths)
    adds = [
        naive.contribution(case.roots[i], case.X, case.forest.scale[i], depths[i], case.dtype)
        for i in kept
    ]
    rows = case.y.size
    return kept, np.array([add.T.ravel() for add in adds]).T.reshape(rows, kept.size)


def least_squares(case, depths, penalty):
    """Return weights and intercept by least squares, penalties as further rows.

    The columns are centred, which a free intercept would do, and scaled, so that even a forest
    that adds next to nothing is solved exactly.
    """
    kept, Q = columns(case, depths)
    m, outputs = case.y.shape
    row_weights = np.ones(m) if case.weights is None else case.weights

    def centred(columns):
        parts = columns.reshape(outputs, m, -1)
        means = np.average(parts, axis=1, weights=row_weights)
        return (parts - means[:, None]).reshape(outputs * m, -1), means

    Q, means = centred(Q)
    y, y_means = centred(case.y.T.reshape(-1, 1))
    root = np.sqrt(np.tile(row_weights, outputs))[:, None]
    A = np.vstack([root * Q, np.diag(np.sqrt(penalty))])
    target = np.concatenate([(root * y)[:, 0], np.zeros(kept.size)])
    size = np.linalg.norm(A, axis=0)
    size[size == 0] = 1.0
    weights = np.linalg.lstsq(A / size, target, rcond=1e-13)[0] / size
    return kept, weights, y_means[:, 0] - means @ weights


@given(cases(), st.data(), st.sampled_from([1e-3, 0.01, 1.0]))
def test_ridge_solves_its_equations_for_one_cut_after_another(case, data, alpha2):
    problem = case.pose()
    # Where the targets hardly differ, rounding of the targets themselves is all there is to see.
    assume(problem.variation > 1e-8 * (case.y**2).sum())
    equations = TreeEquations(problem)
    row_weights = np.ones(len(case.X)) if case.weights is None else case.weights
    for _ in range(3):
        depths, _ = drawn_cut(case, data)
        polished = ridge_weights(equations, cut_at(problem, depths), alpha2)
        kept = np.flatnonzero(depths)
        full = np.array(
            [
                (
                    row_weights[:, None]
                    * naive.contribution(r, case.X, s, naive.tree_depth(r), case.dtype) ** 2
                ).sum()
                for r, s in zip(case.roots, case.forest.scale, strict=True)
            ]
        )
        _, weights, intercept = least_squares(case, depths, alpha2 * full[kept])
        # Weights of trees that add next to nothing are not determined; predictions are.
        _, Q = columns(case, depths)
        outputs = case.y.shape[1]
        mine = Q @ polished.weights[kept] + np.repeat(polished.intercept, len(case.X))
        theirs = Q @ weights + np.repeat(intercept, len(case.X))
        shown = np.tile(row_weights > 0, outputs)
        scale = 1e-6 * (1 + np.abs(case.y).max())
        np.testing.assert_allclose(mine[shown], theirs[shown], atol=scale)
        error = (np.tile(row_weights, outputs) * (case.y.T.ravel() - mine) ** 2).sum()
        assert polished.loss == pytest.approx(error / problem.variation, rel=1e-6, abs=1e-9)
        assert (polished.weights[depths == 0] == 0.0).all()


@pytest.mark.parametrize("kind", ["bagged", "boosted"])
def test_ridge_does_not_depend_on_the_number_of_rows_or_the_scale(kind):
    X, y = make_friedman1(150, noise=1.0, random_state=0)
    if kind == "bagged":
        model = RandomForestRegressor(10, max_depth=4, random_state=0).fit(X, y)
    else:
        model = GradientBoostingRegressor(n_estimators=20, random_state=0).fit(X, y)
    forest = Forest.from_model(model)
    depths = np.minimum(forest.depths, 2)
    results = []
    for unit, inner, times in ((1, 1, 1), (1000, 1, 1), (1, 64, 1), (1, 1, 3)):
        changed = replace(
            forest,
            value=forest.value * unit * inner,
            scale=forest.scale / inner,
            base=forest.base * unit,
        )
        encoding = encode(changed, np.tile(X, (times, 1)))
        problem = pose(encoding, np.tile(y * unit, times))
        results.append(ridge(problem, depths, 0.01))
    for result in results[1:]:
        np.testing.assert_allclose(result.weights, results[0].weights, rtol=1e-6)
        assert result.loss == pytest.approx(results[0].loss)


def test_ridge_shares_out_between_trees_that_are_the_same():
    X, y = make_friedman1(100, random_state=0)
    model = RandomForestRegressor(3, bootstrap=False, max_depth=2, random_state=0).fit(X, y)
    model.estimators_ = [model.estimators_[0]] * 3
    forest = Forest.from_model(model)
    weights = ridge(pose(encode(forest, X), y), forest.depths, 0.0).weights
    np.testing.assert_allclose(weights, weights[0], rtol=1e-3)
    assert weights.sum() == pytest.approx(3.0, rel=1e-6)


def test_blocks_of_rows_do_not_matter():
    X, y = make_friedman1(500, noise=1.0, random_state=0)
    forest = Forest.from_model(RandomForestRegressor(8, max_depth=4, random_state=0).fit(X, y))
    problem = pose(encode(forest, X), y)
    point = cut_at(problem, forest.depths)
    whole = ridge_weights(TreeEquations(problem), point, 0.01)
    pieces = ridge_weights(TreeEquations(problem, block_bytes=1), point, 0.01)
    np.testing.assert_allclose(whole.weights, pieces.weights, rtol=1e-9)


def test_the_best_subset_of_trees_by_enumeration():
    X, y = make_friedman1(120, noise=1.0, random_state=0)
    forest = Forest.from_model(
        GradientBoostingRegressor(n_estimators=8, max_depth=3, subsample=0.5, random_state=0).fit(
            X, y
        )
    )
    problem = pose(encode(forest, X), y)
    depths = np.minimum(forest.depths, 2)
    depths[0] = 0
    equations, point = TreeEquations(problem), cut_at(problem, depths)
    adds = [
        naive.contribution(root, X, scale, depth, "float32")[:, 0]
        for root, scale, depth in zip(naive.from_forest(forest), forest.scale, depths, strict=True)
    ]

    def loss(trees):
        A = np.column_stack([np.ones(len(y)), *(adds[i] for i in trees)])
        rest = y - A @ np.linalg.lstsq(A, y, rcond=None)[0]
        return rest @ rest / problem.variation

    subsets = [c for k in range(8) for c in itertools.combinations(range(1, 8), k)]
    losses = {trees: loss(trees) for trees in subsets}
    for k in (1, 2, 4, 7):
        polished = subset_weights(equations, point, Options(polish="subset", alpha2=9.0), k)
        assert polished.loss == pytest.approx(min(v for t, v in losses.items() if len(t) <= k))
        assert np.count_nonzero(polished.weights[depths > 0]) <= k
    for price in (0.2, 0.05, 0.001):
        options = Options(polish="subset", alpha2=price)
        polished = subset_weights(equations, point, options, None)
        count = np.count_nonzero(polished.weights[depths > 0])
        best = min(value + price * len(trees) for trees, value in losses.items())
        assert polished.loss + price * count == pytest.approx(best)
    assert polished.report["solver"] == "heuristic"
