"""The paper's competitors against independent computation: scikit-learn, and enumeration."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from naive import end_of_row, kept_mask, leaves_of, prunings
from sklearn.datasets import make_friedman1
from sklearn.ensemble import (
    BaggingRegressor,
    ExtraTreesRegressor,
    GradientBoostingRegressor,
    RandomForestRegressor,
)
from sklearn.linear_model import Ridge, lasso_path
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeRegressor
from strategies import cases

import forestprune as fp
from forestprune.baselines import best_trees, cost_complexity, fewer_trees, lasso
from forestprune.solve.point import kept_mask as mask_of

X, y = make_friedman1(300, n_features=6, noise=1.0, random_state=0)
X_VAL, Y_VAL = make_friedman1(200, n_features=6, noise=1.0, random_state=1)
PATHS = [fewer_trees, lasso, cost_complexity]


def forest(n=12, **options):
    options = {"max_depth": 5, "random_state": 0} | options
    return RandomForestRegressor(n, **options).fit(X, y)


def boosting(n=15, **options):
    return GradientBoostingRegressor(n_estimators=n, random_state=0, **options).fit(X, y)


def columns(model, rows):
    """Return what each tree of a scikit-learn model adds to its prediction, one column a tree."""
    if isinstance(model, GradientBoostingRegressor):
        trees = [model.learning_rate * tree[0].predict(rows) for tree in model.estimators_]
    else:
        trees = [tree.predict(rows) / len(model.estimators_) for tree in model.estimators_]
    return np.column_stack(trees)


# Fewer trees


def test_a_part_of_a_forest_is_the_average_of_its_trees():
    model = forest()
    path = fewer_trees(model, X, y, random_state=3)
    assert path.n_trees.tolist() == list(range(13))
    np.testing.assert_allclose(path.alphas, 1 - np.arange(13) / 12)
    alone = columns(model, X_VAL) * 12
    for small in list(path)[1:]:
        kept = small.weights != 0
        expected = alone[:, kept].mean(axis=1)
        np.testing.assert_allclose(small.predict(X_VAL), expected)
        native = small.to_native()
        assert native.n_estimators == kept.sum()
        np.testing.assert_allclose(native.predict(X_VAL), expected)
    roots = [tree.tree_.value[0, 0, 0] for tree in model.estimators_]
    np.testing.assert_allclose(path[0].predict(X_VAL), np.mean(roots))


def test_without_rescaling_the_rest_counts_as_zero():
    model = forest()
    for small in fewer_trees(model, X, y, rescale=False, random_state=0):
        expected = columns(model, X_VAL)[:, small.weights != 0].sum(axis=1)
        np.testing.assert_allclose(small.predict(X_VAL), expected, atol=1e-12)


def test_boosting_is_cut_at_its_end():
    model = boosting()
    path = fewer_trees(model, X, y)
    stages = [np.full(200, y.mean()), *model.staged_predict(X_VAL)]
    for small, expected in zip(path, stages, strict=True):
        np.testing.assert_allclose(small.predict(X_VAL), expected)


def test_seeds_and_the_number_of_points():
    model = forest(30)
    path = fewer_trees(model, X, y, n_points=4, random_state=0)
    assert path.n_trees.tolist() == [0, 10, 20, 30]
    again = fewer_trees(model, X, y, n_points=4, random_state=0)
    other = fewer_trees(model, X, y, n_points=4, random_state=1)
    assert np.array_equal(path.weights, again.weights)
    assert not np.array_equal(path.weights, other.weights)
    # As a sum, it is taken in order.
    summed = fewer_trees(model, X, y, n_points=4, averages=False)
    assert np.flatnonzero(summed[1].weights).tolist() == list(range(10))


@pytest.mark.parametrize(
    ("model", "averages"),
    [
        (forest(2), True),
        (ExtraTreesRegressor(2).fit(X, y), True),
        (BaggingRegressor(n_estimators=2).fit(X, y), True),
        (boosting(2), False),
    ],
)
def test_the_library_says_whether_trees_are_averaged(model, averages, tmp_path):
    read = fp.Forest.from_model(model)
    assert read.origin.averages is averages
    read.save(tmp_path / "forest.npz")
    assert fp.Forest.load(tmp_path / "forest.npz").origin.averages is averages


def test_xgboost_and_lightgbm_say_so_too():
    xgboost = pytest.importorskip("xgboost")
    lightgbm = pytest.importorskip("lightgbm")
    rf = {"boosting_type": "rf", "subsample": 0.5, "subsample_freq": 1}
    for model, averages in (
        (xgboost.XGBRFRegressor(n_estimators=3), True),
        (xgboost.XGBRegressor(n_estimators=3), False),
        (lightgbm.LGBMRegressor(n_estimators=3, verbose=-1, **rf), True),
        (lightgbm.LGBMRegressor(n_estimators=3, verbose=-1), False),
    ):
        assert fp.Forest.from_model(model.fit(X, y)).origin.averages is averages


# LASSO


@pytest.mark.parametrize("model", [forest(), boosting()], ids=["average", "sum"])
def test_lasso_is_that_of_scikit_learn(model):
    path = lasso(model, X, y, refit=False, n_alphas=20)
    inner, outer = columns(model, X), columns(model, X_VAL)
    middle = inner.mean(axis=0)
    alphas, expected, _ = lasso_path(
        inner - middle, y - y.mean(), alphas=path.alphas, tol=1e-10, max_iter=100_000
    )
    np.testing.assert_allclose(alphas, path.alphas)
    np.testing.assert_allclose(path.weights, expected.T, atol=1e-4 * np.abs(expected).max())
    assert path.n_trees[0] == 0
    assert path.n_trees[1] == 1
    for small, beta in zip(path, expected.T, strict=True):
        said = y.mean() + (outer - middle) @ beta
        np.testing.assert_allclose(small.predict(X_VAL), said, atol=1e-3)


def test_lasso_refits_what_it_selects():
    model = boosting()
    path = lasso(model, X, y, n_alphas=20, alpha2=0.05)
    free = lasso(model, X, y, n_alphas=20, alpha2=0.0)
    assert (lasso(model, X, y, n_alphas=20, refit=False).losses >= free.losses - 1e-9).all()
    inner, outer = columns(model, X), columns(model, X_VAL)
    for small in path:
        kept = small.weights != 0
        if not kept.any():
            continue
        # A ridge whose penalty on each weight is 0.05 times its tree's sum of squares, without the
        # root's value, which moves to the intercept.
        roots = [0.1 * tree[0].tree_.value[0, 0, 0] for tree in model.estimators_]
        size = np.sqrt(((inner - roots) ** 2).sum(axis=0))[kept]
        ridge = Ridge(alpha=0.05).fit(inner[:, kept] / size, y)
        np.testing.assert_allclose(ridge.predict(outer[:, kept] / size), small.predict(X_VAL))


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_lasso_of_trees_that_are_the_same(sign):
    # Three pairs of twins: which of them gets how much weight does not matter.
    model = BaggingRegressor(DecisionTreeRegressor(max_depth=3), 3, random_state=0).fit(X, y)
    model.estimators_ = model.estimators_ * 2
    model.estimators_features_ = model.estimators_features_ * 2
    model._seeds = np.tile(model._seeds, 2)
    twins = fp.Forest.from_model(model)
    twins = replace(twins, scale=twins.scale * np.repeat([1.0, sign], 3))
    path = lasso(twins, X, y, refit=False, n_alphas=10)
    one_each = columns(model, X)[:, :3]
    middle = one_each.mean(axis=0)
    _, expected, _ = lasso_path(one_each - middle, y - y.mean(), alphas=path.alphas, tol=1e-10)
    for small, beta in zip(path, expected.T, strict=True):
        said = y.mean() + (one_each - middle) @ beta
        # Its gap is at most 1e-6 of the variation, and so are half the squares of this.
        assert np.mean((small.predict(X) - said) ** 2) <= 2e-6 * y.var()


def test_nothing_is_selected_for_a_constant_target():
    constant = np.full(len(X), 3.3)
    for model in (forest(), RandomForestRegressor(3, random_state=0).fit(X, constant)):
        path = lasso(model, X, constant)
        assert path.n_trees.tolist() == [0]
        small = best_trees(model, X, constant, max_nodes=1000, solver="heuristic")
        assert small.n_trees == 0
        for said in (path[0].predict(X_VAL), small.predict(X_VAL)):
            np.testing.assert_allclose(said, 3.3)


# Cost-complexity pruning


def between(alphas, n=8):
    """Return alphas half-way between those at which something changes, where nothing ties."""
    middles = np.sqrt(alphas[1:-1] * alphas[2:])
    return np.unique(middles[np.linspace(0, middles.size - 1, n).astype(int)])


def test_one_tree_is_pruned_as_by_scikit_learn():
    tree = DecisionTreeRegressor(random_state=0).fit(X, y)
    known = tree.cost_complexity_pruning_path(X, y).ccp_alphas
    path = cost_complexity(tree, X, y, alphas=between(known))
    for small in path:
        own = DecisionTreeRegressor(random_state=0, ccp_alpha=small.alpha).fit(X, y)
        assert small.n_nodes == own.tree_.node_count
        np.testing.assert_allclose(small.predict(X_VAL), own.predict(X_VAL))
    grid = cost_complexity(tree, X, y, n_alphas=5, eps=1e-3)
    np.testing.assert_allclose(grid.alphas, np.geomspace(known[-1], 1e-3 * known[-1], 5))
    assert grid.n_nodes[0] == 0
    assert cost_complexity(tree, X, y, alphas=[0.999 * known[-1]]).n_nodes[0] >= 3


def test_a_forest_is_pruned_as_by_scikit_learn():
    options = {"bootstrap": False, "max_features": 0.5}
    model = forest(**options)
    path = cost_complexity(model, X, y, alphas=[0.3, 0.05, 0.011])
    for small in path:
        own = forest(ccp_alpha=small.alpha, **options)
        assert small.n_nodes == sum(tree.tree_.node_count for tree in own.estimators_)
        np.testing.assert_allclose(small.predict(X_VAL), own.predict(X_VAL))


def test_trees_with_two_outputs_are_pruned_as_by_scikit_learn():
    two = np.column_stack([y, 10 * X[:, 0] * X[:, 1]])
    tree = DecisionTreeRegressor(random_state=0, max_depth=7).fit(X, two)
    for small in cost_complexity(tree, X, two, alphas=[0.5, 0.11, 0.031]):
        own = DecisionTreeRegressor(random_state=0, max_depth=7, ccp_alpha=small.alpha).fit(X, two)
        assert small.n_nodes == own.tree_.node_count
        np.testing.assert_allclose(small.predict(X_VAL), own.predict(X_VAL))


@pytest.mark.parametrize("model", [forest(5), boosting(5)], ids=["average", "sum"])
def test_targets_far_from_zero_are_pruned_like_others(model):
    near = cost_complexity(model, X, y, n_alphas=20)
    read = fp.Forest.from_model(model)
    if read.origin.averages:
        moved = replace(read, value=read.value + 1e8)
    else:
        moved = replace(read, base=read.base + 1e8)
    far = cost_complexity(moved, X, y + 1e8, alphas=near.alphas)
    assert np.abs(near.n_nodes - far.n_nodes).max() <= 2


def test_weights_of_rows_count_in_the_price():
    weights = np.random.default_rng(0).uniform(0.5, 2.0, len(y))
    tree = DecisionTreeRegressor(random_state=0, max_depth=6).fit(X, y, sample_weight=weights)
    own = DecisionTreeRegressor(random_state=0, max_depth=6, ccp_alpha=0.1)
    own.fit(X, y, sample_weight=weights)
    small = cost_complexity(tree, X, y, alphas=[0.1], sample_weight=weights)[0]
    np.testing.assert_allclose(small.predict(X_VAL), own.predict(X_VAL))


@given(cases(max_trees=3), st.booleans(), st.sampled_from([0.0, 0.03, 0.7, 4.0]))
def test_each_tree_keeps_its_best_part(case, averages, alpha):
    small = cost_complexity(
        case.forest, case.X, case.y, alphas=[alpha], averages=averages, sample_weight=case.weights
    ).points[0]
    weights = np.ones(len(case.X)) if case.weights is None else case.weights
    left = case.y - np.array(case.forest.base)
    scale = case.forest.scale * (case.forest.n_trees if averages else 1.0)
    kept = mask_of(case.forest, small.splits(case.forest))
    for i, root in enumerate(case.roots):

        def price(pruned, root=root, i=i, left=left):
            ends = [np.array(end_of_row(root, pruned, row, case.dtype).value) for row in case.X]
            squares = ((left - scale[i] * np.array(ends)) ** 2).mean(axis=1)  # over outputs
            return weights @ squares / weights.sum() + alpha * leaves_of(pruned)

        own = kept[case.forest.offsets[i] : case.forest.offsets[i + 1]]
        best = min(price(pruned) for pruned in prunings(root))
        mine = price(_pruned(root, list(own)))
        assert mine == pytest.approx(best, rel=1e-9, abs=1e-9 * (1 + np.abs(left).max() ** 2))
        if not averages:
            full = [np.array(end_of_row(root, root, row, case.dtype).value) for row in case.X]
            left = left - scale[i] * np.array(full)


def _pruned(root, mask):
    """Return the pruning of a tree that has the nodes of `mask`, which is in level order."""
    return next(part for part in prunings(root) if kept_mask(root, part) == mask)


# Best subset tree selection


@pytest.mark.sampled(3)
@pytest.mark.parametrize("model", [forest(7, max_depth=3), boosting(7)], ids=["average", "sum"])
@pytest.mark.parametrize("solver", ["heuristic", "scip"])
@pytest.mark.parametrize(
    "max_nodes", [20, 47, *(pytest.param(most, marks=pytest.mark.long) for most in (14, 33, 70))]
)
@pytest.mark.parametrize("alpha2", [0.0, 0.2])
@pytest.mark.parametrize("weighted", [False, True])
def test_best_trees_are_those_of_enumeration(model, solver, max_nodes, alpha2, weighted):
    if solver == "scip":
        pytest.importorskip("pyscipopt")
    weights = np.random.default_rng(1).integers(0, 3, len(y)) if weighted else None
    options = {"alpha2": alpha2, "solver": solver, "sample_weight": weights}
    small = best_trees(model, X, y, max_nodes=max_nodes, **options)
    rows = np.arange(len(y)) if weights is None else np.repeat(np.arange(len(y)), weights)
    inner, target = columns(model, X[rows]), y[rows]
    read = fp.Forest.from_model(model)
    sizes = np.diff(read.offsets)
    roots = read.scale * read.value[read.offsets[:-1], 0]
    size = ((inner - roots) ** 2).sum(axis=0)

    def price(trees, beta):
        left = target - target.mean() - (inner - inner.mean(axis=0))[:, trees] @ beta
        return left @ left + alpha2 * size[trees] @ beta**2

    def best_price(trees):
        if not trees:
            return price(trees, np.zeros(0))
        centred = (inner - inner.mean(axis=0))[:, trees]
        penalised = centred.T @ centred + np.diag(alpha2 * size[trees])
        moments = centred.T @ (target - target.mean())
        return price(trees, np.linalg.lstsq(penalised, moments, rcond=None)[0])

    supports = [list(s) for k in range(8) for s in combinations(range(7), k)]
    best = min(best_price(s) for s in supports if sizes[s].sum() <= max_nodes)
    kept = np.flatnonzero(small.weights)
    assert small.n_nodes == sizes[kept].sum() <= max_nodes
    assert price(kept, small.weights[kept]) == pytest.approx(best, rel=1e-6)
    left = target - small.predict(X[rows])
    assert small.loss == pytest.approx((left**2).mean() / target.var(), rel=1e-6)
    if solver == "scip":
        assert small.report["status"] == "optimal"
        assert small.report["gap"] < 1e-4


def test_without_a_tree_that_is_small_enough_a_constant_is_left():
    small = best_trees(forest(), X, y, max_nodes=3, solver="heuristic")
    assert small.n_trees == 0
    np.testing.assert_allclose(small.predict(X_VAL), y.mean())


def test_a_penalty_shrinks_the_weights():
    free, drawn = (
        best_trees(boosting(), X, y, max_nodes=100, alpha2=alpha2, solver="heuristic")
        for alpha2 in (0.0, 1.0)
    )
    assert free.loss < drawn.loss
    assert np.abs(drawn.weights).sum() < np.abs(free.weights).sum()


def test_best_trees_can_be_exported():
    small = best_trees(forest(), X, -y, max_nodes=300, solver="heuristic")
    assert (small.weights < 0).any()
    np.testing.assert_allclose(small.to_native().predict(X_VAL), small.predict(X_VAL))


def test_a_pruned_average_is_a_sum():
    # Its trees are no models of their own any more, and are not to be scaled like such.
    small = fp.prune(forest(), X, y, max_nodes=200)
    assert small.forest.origin.averages is False
    again = fewer_trees(small.forest, X, y)
    assert again.losses[-1] == pytest.approx(small.loss)
    assert again.losses[-2] < 2 * small.loss
    assert fp.Forest.from_model(small.to_native()).origin.averages is True


# What all have in common


@pytest.mark.parametrize("baseline", PATHS)
@pytest.mark.parametrize("model", [forest(), boosting()], ids=["average", "sum"])
class TestEveryPath:
    def test_loss_and_validation_are_those_of_predictions(self, baseline, model):
        path = baseline(model, X, y, X_val=X_VAL, y_val=Y_VAL)
        for small, score in zip(path, path.validation.scores, strict=True):
            assert small.loss == pytest.approx(((y - small.predict(X)) ** 2).mean() / y.var())
            error = ((Y_VAL - small.predict(X_VAL)) ** 2).mean()
            assert score == pytest.approx(1 - error / Y_VAL.var())
        assert path.validation.full == pytest.approx(model.score(X_VAL, Y_VAL))

    def test_budgets_and_files(self, baseline, model, tmp_path):
        path = baseline(model, X, y, X_val=X_VAL, y_val=Y_VAL)
        small = path.select(max_nodes=150)
        assert 0 < small.n_nodes <= 150
        np.testing.assert_allclose(small.to_native().predict(X_VAL), small.predict(X_VAL))
        path.save(tmp_path / "path.npz")
        again = fp.PruningPath.load(tmp_path / "path.npz")
        for one, other in zip(path, again, strict=True):
            np.testing.assert_array_equal(one.predict(X_VAL), other.predict(X_VAL))

    def test_weights_count_as_repetitions(self, baseline, model):
        weights = np.random.default_rng(0).integers(0, 3, len(y))
        options = {"random_state": 0} if baseline is fewer_trees else {"n_alphas": 10}
        weighted = baseline(model, X, y, sample_weight=weights, **options)
        rows = np.repeat(np.arange(len(y)), weights)
        repeated = baseline(model, X[rows], y[rows], **options)
        np.testing.assert_allclose(weighted.alphas, repeated.alphas)
        np.testing.assert_allclose(weighted.losses, repeated.losses, rtol=1e-4)
        np.testing.assert_allclose(weighted.weights, repeated.weights, atol=1e-3)

    def test_pipelines_and_rows_without_targets(self, baseline, model):
        pipeline = make_pipeline(StandardScaler(), type(model)(**model.get_params())).fit(X, y)
        path = baseline(pipeline, X)
        small = path.select(max_nodes=200)
        said = pipeline.predict(X)
        error = ((said - small.predict(X)) ** 2).mean()
        assert small.loss == pytest.approx(error / said.var())
        assert type(small.to_native()) is type(pipeline)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda m: fewer_trees(m, X, y, n_points=1), "n_points must be a whole number"),
        (lambda m: lasso(m, X, y, eps=1.0), "eps must be a number between 0 and 1"),
        (lambda m: lasso(m, X, y, alpha2=-1), "alpha2 must be a finite number"),
        (lambda m: cost_complexity(m, X, y, n_alphas=0), "n_alphas must be a whole number"),
        (lambda m: cost_complexity(m, X, y, alphas=[-1.0]), "alphas must be a list of finite"),
        (lambda m: best_trees(m, X, y, max_nodes=0), "max_nodes must be a whole number"),
        (lambda m: best_trees(m, X, y, max_nodes=9, solver="none"), "solver must be one of"),
        (lambda m: fewer_trees(m, X, y, X_val=X), "X_val and y_val must be given together"),
        (lambda m: fewer_trees(m, X, y, averages="no"), "averages must be True, False or None"),
        (lambda m: fewer_trees(m, X, y, rescale="no"), "rescale must be True or False"),
        (lambda m: lasso(m, X, y, refit="maybe"), "refit must be True or False"),
        (lambda m: lasso(m, X, y, eps="x"), "eps must be a number between 0 and 1"),
        (lambda m: best_trees(m, X, y, max_nodes=9, time_limit="a"), "time_limit must be a finite"),
    ],
)
def test_what_cannot_be_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call(boosting(2))
