"""The paper's competitors for classifiers and other losses, against independent computation."""

from itertools import combinations

import numpy as np
import pytest
import scipy.optimize
from sklearn.datasets import make_classification
from sklearn.ensemble import (
    BaggingClassifier,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
)
from sklearn.metrics import log_loss, mean_poisson_deviance
from sklearn.tree import DecisionTreeClassifier

import forestprune as fp
from forestprune.baselines import best_trees, cost_complexity, fewer_trees, lasso

X, SEVERAL = make_classification(
    400, 6, n_informative=4, n_redundant=0, n_classes=3, flip_y=0.1, random_state=0
)
TWO = np.where(SEVERAL > 0, "yes", "no")
COUNTS = SEVERAL + (X[:, 0] > 0)
ROWS = slice(0, 250)
VAL = slice(250, 400)

MODELS = {
    "average of two": (RandomForestClassifier(9, max_depth=4, random_state=0), TWO),
    "average of several": (ExtraTreesClassifier(8, max_depth=4, random_state=0), SEVERAL),
    "bagging": (
        BaggingClassifier(DecisionTreeClassifier(max_depth=3), 5, random_state=0),
        SEVERAL,
    ),
    "sum of two": (GradientBoostingClassifier(n_estimators=9, max_depth=2, random_state=0), TWO),
    "sum of several": (
        GradientBoostingClassifier(n_estimators=5, max_depth=2, random_state=0),
        SEVERAL,
    ),
    "histograms": (HistGradientBoostingClassifier(max_iter=4, max_leaf_nodes=5), SEVERAL),
    "Poisson": (
        HistGradientBoostingRegressor(loss="poisson", max_iter=8, max_leaf_nodes=5),
        COUNTS,
    ),
}


def fitted(name):
    model, target = MODELS[name]
    return model.fit(X[ROWS], target[ROWS]), target


def said(name, model, rows):
    """Return probabilities, or what is predicted if there are none."""
    return model.predict(rows) if name == "Poisson" else model.predict_proba(rows)


def mean_loss(name, model, rows, target):
    """Return the loss that a model of that name is pruned for, as scikit-learn has it."""
    if name == "Poisson":
        return mean_poisson_deviance(target, model.predict(rows)) / 2
    proba, labels = model.predict_proba(rows), model.classes_
    if "sum" in name or name == "histograms":
        return log_loss(target, proba, labels=labels)
    return ((proba - (target[:, np.newaxis] == labels)) ** 2).sum(axis=1).mean()


def constant_loss(name, target):
    """Return the loss of the best constant."""
    if name == "Poisson":
        return mean_poisson_deviance(target, np.full(len(target), target.mean())) / 2
    shares = np.unique(target, return_counts=True)[1] / len(target)
    if "sum" in name or name == "histograms":
        return -(shares * np.log(shares)).sum()
    return 1.0 - (shares**2).sum()


# What all have in common


@pytest.mark.sampled(4)
@pytest.mark.parametrize("baseline", [fewer_trees, cost_complexity, lasso])
@pytest.mark.parametrize("name", MODELS)
def test_points_are_measured_validated_and_exported(name, baseline, tmp_path):
    model, target = fitted(name)
    held_out = {"X_val": X[VAL], "y_val": target[VAL]}
    options = {} if baseline is fewer_trees else {"n_alphas": 15, "eps": 1e-3}
    path = baseline(model, X[ROWS], target[ROWS], n_jobs=1, **held_out, **options)
    of_constant = constant_loss(name, target[ROWS])
    assert path.n_trees[0] == 0
    for small in path:
        found = mean_loss(
            name, small if name == "Poisson" else _Labelled(small), X[ROWS], target[ROWS]
        )
        assert small.loss == pytest.approx(found / of_constant, rel=1e-6)
        native = small.to_native()
        np.testing.assert_allclose(said(name, native, X[VAL]), said(name, small, X[VAL]), atol=1e-7)
        if name != "Poisson":
            proba = small.predict_proba(X)
            assert proba.min() >= -1e-12
            np.testing.assert_allclose(proba.sum(axis=1), 1.0)
    middle = path.select(max_nodes=60)
    assert 0 < middle.n_nodes <= 60
    path.save(tmp_path / "path.npz")
    again = fp.PruningPath.load(tmp_path / "path.npz")
    np.testing.assert_array_equal(said(name, again[-1], X), said(name, path[-1], X))
    if baseline is not lasso:  # whose last point has other weights than the model
        assert path.validation.scores[-1] == pytest.approx(path.validation.full, abs=0.05)


class _Labelled:
    """A pruned classifier as scikit-learn's metrics take it."""

    def __init__(self, small):
        self.predict_proba, self.classes_ = small.predict_proba, small.classes_


@pytest.mark.parametrize("baseline", [fewer_trees, cost_complexity, lasso])
@pytest.mark.parametrize("name", ["average of several", "sum of two", "sum of several"])
def test_weights_count_as_repetitions(name, baseline):
    model, target = fitted(name)
    weights = np.random.default_rng(0).integers(0, 3, 250)
    rows = np.repeat(np.arange(250), weights)
    options = {"random_state": 0} if baseline is fewer_trees else {"n_alphas": 5, "eps": 1e-2}
    weighted = baseline(model, X[ROWS], target[ROWS], sample_weight=weights, n_jobs=1, **options)
    repeated = baseline(model, X[rows], target[rows], n_jobs=1, **options)
    np.testing.assert_allclose(weighted.alphas, repeated.alphas)
    np.testing.assert_allclose(weighted.losses, repeated.losses, rtol=1e-4)


# Fewer trees


@pytest.mark.parametrize("name", ["sum of two", "sum of several"])
def test_boosting_is_cut_by_rounds(name):
    model, target = fitted(name)
    path = fewer_trees(model, X[ROWS], target[ROWS])
    stages = [model.init_.predict_proba(X[VAL]), *model.staged_predict_proba(X[VAL])]
    assert path.n_trees.tolist() == [
        i * model.n_classes_ if "several" in name else i for i in range(len(stages))
    ]
    for small, expected in zip(path, stages, strict=True):
        np.testing.assert_allclose(small.predict_proba(X[VAL]), expected, atol=1e-7)


def test_a_part_of_an_average_is_the_average_of_its_trees():
    model, target = fitted("average of several")
    for small in list(fewer_trees(model, X[ROWS], target[ROWS], random_state=0))[1:]:
        alone = [model.estimators_[i].predict_proba(X[VAL]) for i in small.tree_numbers]
        np.testing.assert_allclose(small.predict_proba(X[VAL]), np.mean(alone, axis=0), atol=1e-12)


def test_an_average_of_rounds_loses_rounds():
    lightgbm = pytest.importorskip("lightgbm")
    rf = {"boosting_type": "rf", "subsample": 0.5, "subsample_freq": 1, "verbose": -1}
    model = lightgbm.LGBMClassifier(n_estimators=4, num_leaves=4, **rf).fit(X, SEVERAL)
    path = fewer_trees(model, X, SEVERAL, random_state=0)
    assert path.n_trees.tolist() == [0, 3, 6, 9, 12]
    each = [model.predict(X, raw_score=True, start_iteration=i, num_iteration=1) for i in range(4)]
    for small in list(path)[1:]:
        kept = np.flatnonzero(small.weights[::3])
        expected = np.mean([each[i] for i in kept], axis=0)
        np.testing.assert_allclose(small.decision_function(X), expected, atol=1e-6)


# Cost-complexity pruning


@pytest.mark.parametrize("target", [TWO, SEVERAL], ids=["two", "several"])
def test_one_tree_is_pruned_by_the_gini_impurity(target):
    weights = np.random.default_rng(0).uniform(0.5, 2.0, len(X))
    tree = DecisionTreeClassifier(random_state=0).fit(X, target, sample_weight=weights)
    known = tree.cost_complexity_pruning_path(X, target, sample_weight=weights).ccp_alphas
    known = known[known > 1e-6]
    alphas = np.sqrt(known[:-1] * known[1:])[::4]
    for small in cost_complexity(tree, X, target, alphas=alphas, sample_weight=weights):
        own = DecisionTreeClassifier(random_state=0, ccp_alpha=small.alpha)
        own.fit(X, target, sample_weight=weights)
        assert small.n_nodes == own.tree_.node_count
        np.testing.assert_allclose(small.predict_proba(X), own.predict_proba(X), atol=1e-12)


def parts_of(tree, node=0):
    """Return every pruning of a scikit-learn tree, as the sets of its splits."""
    left, right = tree.children_left[node], tree.children_right[node]
    if left < 0:
        return [frozenset()]
    below = [a | b | {node} for a in parts_of(tree, left) for b in parts_of(tree, right)]
    return [frozenset(), *below]


def mean_of_leaves(tree, node):
    """Return the mean of the leaves below a node; a split of boosting says nothing of its own."""
    if tree.children_left[node] < 0:
        return tree.value[node, 0, 0]
    below = [tree.children_left[node], tree.children_right[node]]
    means = [mean_of_leaves(tree, child) for child in below]
    return np.average(means, weights=tree.weighted_n_node_samples[below])


def pruned_values(tree, splits, rows):
    """Return what a tree says to rows if it keeps some splits."""
    said = []
    for row in rows.astype(np.float32):
        node = 0
        while node in splits:
            goes_left = row[tree.feature[node]] <= tree.threshold[node]
            node = (tree.children_left if goes_left else tree.children_right)[node]
        said.append(mean_of_leaves(tree, node))
    return np.array(said)


@pytest.mark.parametrize("alpha", [0.0, 0.002, 0.02])
@pytest.mark.parametrize("name", ["sum of two", "sum of several"])
def test_each_tree_of_a_sum_keeps_its_best_part(name, alpha):
    model, target = fitted(name)
    rows, labels = X[:80], target[:80]
    small = cost_complexity(model, rows, labels, alphas=[alpha], n_jobs=1)[0]
    raw = model._raw_predict_init(rows)
    numbers = np.searchsorted(model.classes_, labels)
    kept = np.bincount(small.tree_numbers, np.diff(small.forest.offsets), small.depths.size)
    for i, trees in enumerate(model.estimators_):
        after = raw.copy()
        for k, estimator in enumerate(trees):
            tree = estimator.tree_

            def price(splits, k=k, tree=tree, raw=raw):
                at = raw.copy()
                at[:, k] += model.learning_rate * pruned_values(tree, splits, rows)
                if at.shape[1] == 1:
                    at = np.column_stack([np.zeros(len(at)), at[:, 0]])
                losses = np.logaddexp.reduce(at, axis=1) - at[np.arange(len(at)), numbers]
                return losses.mean() + alpha * (len(splits) + 1)

            own, sizes = zip(*[(price(s), len(s)) for s in parts_of(tree)], strict=True)
            left = int(kept[i * len(trees) + k])
            mine = [
                p
                for p, size in zip(own, sizes, strict=True)
                if size == (left - 1) // 2 or (left == 0 and size == 0)
            ]
            assert min(mine) == pytest.approx(min(own), rel=1e-9)
            after[:, k] += model.learning_rate * tree.predict(rows.astype(np.float32))[:, 0]
        raw = after


# LASSO


def columns_of(model, rows):
    """Return what each tree of a boosted model adds: shape (n_trees, m), rounds first."""
    return np.array(
        [
            model.learning_rate * estimator.predict(rows)
            for trees in model.estimators_
            for estimator in trees
        ]
    )


@pytest.mark.parametrize("name", ["sum of two", "sum of several"])
def test_lasso_weights_meet_the_conditions_of_the_optimum(name):
    model, target = fitted(name)
    rows, labels = X[ROWS], target[ROWS]
    path = lasso(model, rows, labels, refit=False, n_alphas=8, eps=3e-2, n_jobs=1)
    columns = columns_of(model, rows)
    many = "several" in name
    output = np.arange(len(columns)) % 3 if many else np.ones(len(columns), int)
    assert path.n_trees[0] == 0
    assert path.n_trees[1] > 0
    for small in path:
        gradient = small.predict_proba(rows) - (labels[:, np.newaxis] == model.classes_)
        slope = (columns * gradient[:, output].T).mean(axis=1)
        np.testing.assert_allclose(gradient.mean(axis=0), 0.0, atol=2e-4)
        inside, tolerance = small.weights == 0.0, 0.02 * path.alphas[0]
        assert np.abs(slope[inside]).max(initial=0.0) <= small.alpha + tolerance
        expected = -small.alpha * np.sign(small.weights[~inside])
        np.testing.assert_allclose(slope[~inside], expected, atol=tolerance)


def test_refitted_weights_explain_more():
    model, target = fitted("sum of two")
    options = {"n_alphas": 6, "eps": 1e-2, "n_jobs": 1}
    own = lasso(model, X[ROWS], target[ROWS], refit=False, **options)
    again = lasso(model, X[ROWS], target[ROWS], alpha2=0.0, **options)
    assert (again.losses <= own.losses + 1e-6).all()
    assert again.losses[1] < own.losses[1] - 0.01
    np.testing.assert_array_equal(own.n_trees, again.n_trees)


@pytest.mark.parametrize("name", ["average of two", "average of several"])
def test_lasso_weights_of_an_average_are_shares(name):
    model, target = fitted(name)
    rows, labels = X[ROWS], target[ROWS]
    path = lasso(model, rows, labels, refit=False, n_alphas=10)
    hits = labels[:, np.newaxis] == model.classes_
    some = slice(1, None) if "two" in name else slice(None)
    shares = hits.mean(axis=0)
    each = np.array([tree.predict_proba(rows) - shares for tree in model.estimators_])[:, :, some]
    target_of = (hits - shares)[:, some]

    def price(weights, alpha):
        left = target_of - np.tensordot(weights, each, 1)
        return 0.5 * (left**2).sum(axis=1).mean() + alpha * weights.sum()

    assert path.n_trees[0] == 0
    for small in list(path)[::3]:
        found = small.weights / len(each)
        assert found.min() >= 0.0
        assert found.sum() <= 1.0 + 1e-9
        expected = shares + np.tensordot(
            found, [t.predict_proba(X[VAL]) - shares for t in model.estimators_], 1
        )
        np.testing.assert_allclose(small.predict_proba(X[VAL]), expected, atol=1e-9)
        best = scipy.optimize.minimize(
            price,
            np.full(len(each), 0.5 / len(each)),
            args=(small.alpha,),
            bounds=[(0.0, 1.0)] * len(each),
            constraints={"type": "ineq", "fun": lambda weights: 1.0 - weights.sum()},
            options={"ftol": 1e-12, "maxiter": 1000},
        )
        assert price(found, small.alpha) <= best.fun + 1e-6
    assert path[-1].weights.sum() == pytest.approx(len(each))
    with pytest.raises(fp.UnsupportedModelError, match="must hold a probability for each class"):
        path[-1].to_native()
    # Beyond, where the penalty is lower still, nothing changes.
    lower = lasso(model, rows, labels, refit=False, alphas=[path.alphas[-1] / 100])
    np.testing.assert_allclose(lower[0].weights, path[-1].weights, atol=1e-3)
    alike = lasso(model, rows, labels, alphas=path.alphas)
    for small, own in zip(alike, path, strict=True):
        np.testing.assert_array_equal(small.tree_numbers, own.tree_numbers)
        if small.n_trees:
            kept = [model.estimators_[i].predict_proba(X[VAL]) for i in small.tree_numbers]
            np.testing.assert_allclose(
                small.predict_proba(X[VAL]), np.mean(kept, axis=0), atol=1e-12
            )


# Best subset tree selection


@pytest.mark.parametrize("name", ["average of two", "average of several"])
@pytest.mark.parametrize(("max_nodes", "alpha2"), [(40, 0.01), (75, 0.0), (200, 0.5)])
def test_the_best_average_is_that_of_enumeration(name, max_nodes, alpha2):
    model, target = fitted(name)
    rows, labels = X[ROWS], target[ROWS]
    small = best_trees(model, rows, labels, max_nodes=max_nodes, alpha2=alpha2, solver="heuristic")
    trees = model.estimators_
    sizes = np.array([tree.tree_.node_count for tree in trees])
    hits = labels[:, np.newaxis] == model.classes_
    some = slice(1, None) if "two" in name else slice(None)
    each = np.array([tree.predict_proba(rows) for tree in trees])[:, :, some]
    beyond = each - np.array([tree.tree_.value[0] for tree in trees])[:, :, some]
    squares = (beyond**2).sum(axis=(1, 2))

    def price(chosen):
        left = hits[:, some] - each[list(chosen)].mean(axis=0)
        return (left**2).sum() + alpha2 * squares[list(chosen)].sum() / len(chosen) ** 2

    subsets = [s for k in range(1, len(trees) + 1) for s in combinations(range(len(trees)), k)]
    best = min(price(s) for s in subsets if sizes[list(s)].sum() <= max_nodes)
    assert small.n_nodes == sizes[small.tree_numbers].sum() <= max_nodes
    assert price(small.tree_numbers.tolist()) == pytest.approx(best, rel=1e-9)
    kept = np.mean([trees[i].predict_proba(X[VAL]) for i in small.tree_numbers], axis=0)
    np.testing.assert_allclose(small.predict_proba(X[VAL]), kept, atol=1e-12)
    np.testing.assert_allclose(small.to_native().predict_proba(X[VAL]), kept, atol=1e-12)
    assert small.report["status"] == "heuristic"


def test_without_a_tree_that_is_small_enough_shares_are_left():
    model, target = fitted("average of several")
    small = best_trees(model, X[ROWS], target[ROWS], max_nodes=3, solver="heuristic")
    assert small.n_trees == 0
    shares = np.bincount(target[ROWS]) / 250
    np.testing.assert_allclose(small.predict_proba(X[VAL]), np.tile(shares, (150, 1)))


@pytest.mark.parametrize(
    ("name", "solver", "message"),
    [
        ("sum of two", "heuristic", "this model has another loss"),
        ("Poisson", "heuristic", "this model has another loss"),
        ("average of two", "scip", "its trees must count the same. Use solver='heuristic'"),
    ],
)
def test_best_trees_are_refused_where_their_problem_is_none(name, solver, message):
    if solver == "scip":
        pytest.importorskip("pyscipopt")
    model, target = fitted(name)
    with pytest.raises((fp.UnsupportedModelError, ValueError), match=message):
        best_trees(model, X[ROWS], target[ROWS], max_nodes=20, solver=solver)


def test_trees_of_each_output_are_weighted_but_not_selected():
    xgboost = pytest.importorskip("xgboost")
    targets = np.column_stack([X[:, 0] * X[:, 1], X[:, 2] + X[:, 0]])
    model = xgboost.XGBRegressor(n_estimators=5, max_depth=2, learning_rate=0.5).fit(X, targets)
    with pytest.raises(fp.UnsupportedModelError, match="each adds to one of 2 outputs"):
        best_trees(model, X, targets, max_nodes=20, solver="heuristic")
    for baseline in (fewer_trees, cost_complexity, lasso):
        path = baseline(model, X, targets, n_jobs=1)
        for small in list(path)[:: len(path) // 4]:
            left = ((targets - small.predict(X)) ** 2).mean(axis=0).sum()
            assert small.loss == pytest.approx(left / targets.var(axis=0).sum(), rel=1e-5)
            np.testing.assert_allclose(small.to_native().predict(X), small.predict(X), atol=1e-5)
