"""Global refinement against optimisation and counting by hand."""

import numpy as np
import pytest
import scipy.optimize
from sklearn.datasets import make_classification
from sklearn.ensemble import (
    BaggingClassifier,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

import forestprune as fp
from forestprune import kernels
from forestprune.baselines import global_refinement
from forestprune.baselines.refinement import Refinement
from forestprune.baselines.setting import Setting
from forestprune.forest.checks import seal
from forestprune.polishing.distribution_fit import DistributionFit
from forestprune.polishing.leaf_fit import Leaves
from forestprune.rows.trees import read_trees

X, SEVERAL = make_classification(
    200, 6, n_informative=4, n_redundant=0, n_classes=3, flip_y=0.2, random_state=0
)
TWO = np.where(SEVERAL > 0, "yes", "no")
COUNTS = SEVERAL + (X[:, 0] > 0)
NUMBERS = X[:, 0] * X[:, 1] + X[:, 2]
BOTH = np.column_stack([NUMBERS, X[:, 3] - X[:, 1]])
WEIGHTS = np.random.default_rng(0).uniform(0.5, 2.0, 200)


def boosted(cls, n=3, **options):
    return cls(n_estimators=n, max_depth=2, random_state=0, **options)


MODELS = {
    "regression": (boosted(GradientBoostingRegressor), NUMBERS),
    "two outputs": (ExtraTreesRegressor(3, max_depth=3, random_state=0), BOTH),
    "log-loss": (boosted(GradientBoostingClassifier), TWO),
    "softmax": (boosted(GradientBoostingClassifier, 2), SEVERAL),
    "Poisson": (
        HistGradientBoostingRegressor(loss="poisson", max_iter=3, max_leaf_nodes=4),
        COUNTS,
    ),
    "average of two": (RandomForestClassifier(3, max_depth=3, random_state=0), TWO),
    "average of several": (RandomForestClassifier(3, max_depth=2, random_state=0), SEVERAL),
}


def indicators(forest, rows):
    """Return for each tree a matrix that is 1 where a row is in a leaf."""
    codes = fp.encode(forest, rows).codes
    counts = (np.diff(forest.offsets) + 1) // 2
    return [np.eye(n)[code] for n, code in zip(counts, codes, strict=True)]


def added_of(forest):
    """Return what the leaves of each tree add: (n_leaves, columns of values)."""
    ends = forest.offsets[1:-1]
    is_leaf = np.split(forest.left < 0, ends)
    return [v[own] for v, own in zip(np.split(forest.scaled_value, ends), is_leaf, strict=True)]


def losses_of(name, raw, target):
    """Return the loss of each row by the formulas of textbooks."""
    if name == "log-loss":
        return np.logaddexp(0.0, raw[:, 0]) - (target == "yes") * raw[:, 0]
    if name == "softmax":
        return np.logaddexp.reduce(raw, axis=1) - raw[np.arange(len(raw)), target]
    if name == "Poisson":
        return np.exp(raw[:, 0]) - target * raw[:, 0]
    return ((np.reshape(target, (len(raw), -1)) - raw) ** 2).sum(axis=1) / 2


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["plain", "weighted"])
@pytest.mark.parametrize("name", ["regression", "two outputs", "log-loss", "softmax", "Poisson"])
def test_values_are_the_best(name, weights):
    model, target = MODELS[name]
    model.fit(X, target)
    path = global_refinement(model, X, target, l2=0.5, share=0.3, sample_weight=weights)
    rows = np.ones(200) if weights is None else weights
    whole = fp.Forest.from_model(model)
    curvature = 1.0
    if name in ("log-loss", "softmax"):
        labels = (target == "yes")[:, np.newaxis] if name == "log-loss" else np.eye(3)[target]
        p = np.average(labels, axis=0, weights=rows)
        # Of several classes by the bound that stands for the Hessian.
        curvature = ((1 if name == "log-loss" else 2) * p * (1 - p)).mean()
    elif name == "Poisson":
        curvature = np.average(target, weights=rows)
    penalty = 0.5 * whole.n_trees * curvature
    for small in list(path)[1::3]:
        forest = small.forest
        matrices, added = indicators(forest, X), added_of(forest)
        outputs = forest.tree_output if forest.tree_output.size else np.full(forest.n_trees, -1)

        def price(x, matrices=matrices, added=added, outputs=outputs, k=forest.n_outputs):
            raw = np.tile(x[:k], (200, 1))
            start = k
            for matrix, like, output in zip(matrices, added, outputs, strict=True):
                values = x[start : start + like.size].reshape(like.shape)
                raw[:, [output] if output >= 0 else slice(None)] += matrix @ values
                start += like.size
            return rows @ losses_of(name, raw, target) + penalty * (x[k:] ** 2).sum() / 2

        mine = np.concatenate([forest.base, *(each.ravel() for each in added)])
        best = scipy.optimize.minimize(price, mine, method="BFGS", options={"gtol": 1e-4})
        nothing = price(np.zeros(mine.size))
        assert price(mine) <= best.fun + 2e-5 * abs(nothing - best.fun)


@pytest.mark.parametrize("name", ["average of two", "average of several"])
def test_the_best_values_of_averages_are_distributions(name):
    model, target = MODELS[name]
    model.fit(X, target)
    two = name == "average of two"
    hits = (target == "yes")[:, np.newaxis] if two else np.eye(3)[target]
    shares = hits.mean(axis=0)
    path = global_refinement(model, X, target, share=0.25, l2=2.0)
    for small in list(path)[1::4]:
        forest, n = small.forest, small.n_trees
        np.testing.assert_allclose(forest.base, shares)
        matrices, added = indicators(forest, X), added_of(forest)
        leaves = n * np.concatenate(added) + shares
        assert leaves.min() >= -1e-12
        if two:
            assert leaves.max() <= 1.0 + 1e-12
        else:
            np.testing.assert_allclose(leaves.sum(axis=1), 1.0)
        columns = np.hstack(matrices)

        def price(x, columns=columns, n=n, like=leaves):
            beyond = (x.reshape(like.shape) - shares) / n
            left = hits - shares - columns @ beyond
            return (left**2).sum() / 2 + 2.0 * 3 * (beyond**2).sum() / 2

        sums = {"type": "eq", "fun": lambda x, like=leaves: x.reshape(like.shape).sum(axis=1) - 1}
        best = scipy.optimize.minimize(
            price,
            np.tile(shares, (len(leaves), 1)).ravel(),
            method="SLSQP",
            bounds=[(0.0, 1.0)] * leaves.size,
            constraints=[] if two else [sums],
            options={"maxiter": 500, "ftol": 1e-12},
        )
        assert price(leaves.ravel()) <= best.fun * (1 + 1e-5)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("share", [0.1, 0.6])
def test_the_pairs_that_are_merged_are_the_smallest(name, share):
    model, target = MODELS[name]
    setting = Setting(model.fit(X, target), X, target, None, 1)
    forest = setting.source.forest
    refinement = Refinement(setting, 1.0)
    split_nodes = np.flatnonzero(forest.left >= 0)
    starts = forest.offsets[forest.tree_of_node[split_nodes]]
    while refinement.n_splits:
        refinement.fit()
        splits, values = refinement.splits, refinement.values
        point = setting.point(
            0.0, np.ones(forest.n_trees), refinement.constant, splits=splits, values=values
        )
        assert point.n_nodes == refinement.n_nodes
        children = (starts + forest.left[split_nodes])[:, np.newaxis] + np.arange(2)
        split_now = np.zeros(forest.n_nodes, bool)
        split_now[split_nodes[splits]] = True
        ends = sorted(set(children[splits].ravel()) - set(split_nodes[splits]))
        column = {node: j for j, node in enumerate(ends)}
        pairs = [s for s in np.flatnonzero(splits) if not split_now[children[s]].any()]
        sizes = [np.linalg.norm([values[:, column[child]] for child in children[s]]) for s in pairs]
        count = int(np.ceil(share * len(pairs)))
        refinement.merge(share)
        gone = np.flatnonzero(splits & ~refinement.splits)
        assert not (refinement.splits & ~splits).any()
        assert len(gone) == count
        merged = [size for s, size in zip(pairs, sizes, strict=True) if s in gone]
        np.testing.assert_allclose(sorted(merged), sorted(sizes)[:count])


@pytest.mark.parametrize("weighted", [False, True])
def test_leaves_that_are_merged_say_what_they_did_on_average(weighted):
    model, target = MODELS["regression"]
    weights = WEIGHTS if weighted else None
    setting = Setting(model.fit(X, target), X, target, weights, 1)
    refinement = Refinement(setting, 1.0)
    refinement.fit()

    def said():
        ones = np.ones(len(setting.sizes))
        left, values = refinement.splits, refinement.values
        point = setting.point(0.0, ones, refinement.constant, splits=left, values=values)
        small = fp.PruningPath(setting.source, (point,))[0]
        return np.average(small.predict(X), weights=weights)

    before = said()
    refinement.merge(0.99)
    assert said() == pytest.approx(before)


def trained(name, rows):
    """Return a model of any kind of trees, trained on some rows, and the target of all rows."""
    if name == "bagging":
        trees = DecisionTreeClassifier(max_depth=3)
        model, target = BaggingClassifier(trees, 4, random_state=0), SEVERAL
    elif name == "pipeline":
        forest = RandomForestClassifier(4, random_state=0)
        model, target = make_pipeline(StandardScaler(), forest), TWO
    elif name in ("xgboost", "lightgbm"):
        library = pytest.importorskip(name)
        options = {"n_estimators": 4, "max_depth": 3}
        if name == "xgboost":
            model, target = library.XGBClassifier(**options), SEVERAL
        else:
            model, target = library.LGBMClassifier(verbose=-1, **options), SEVERAL
    else:
        model, target = MODELS[name]
    return model.fit(X[rows], target[rows]), target


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", [*MODELS, "bagging", "pipeline", "xgboost", "lightgbm"])
def test_points_are_measured_validated_and_exported(name, tmp_path):
    inner, outer = slice(0, 140), slice(140, 200)
    model, target = trained(name, inner)
    held_out = {"X_val": X[outer], "y_val": target[outer]}
    path = global_refinement(model, X[inner], target[inner], share=0.3, **held_out)
    assert path.n_nodes[0] == 0
    assert (np.diff(path.n_nodes) > 0).all()
    assert (np.diff(path.alphas) < 0).all()
    assert path.alphas[-1] == 0.0
    assert path.losses[0] == pytest.approx(1.0, abs=1e-6)
    assert path.losses[-1] < 0.8
    way = "predict_proba" if hasattr(model, "predict_proba") else "predict"
    for small, score in list(zip(path, path.validation.scores, strict=True))[::3]:
        said = getattr(small, way)(X[outer])
        np.testing.assert_allclose(getattr(small.to_native(), way)(X[outer]), said, atol=2e-6)
        assert path.score(X[outer], target[outer])[small.index] == pytest.approx(score)
        if way == "predict_proba":
            assert said.min() >= -1e-12
            np.testing.assert_allclose(said.sum(axis=1), 1.0)
    small = path.select(max_nodes=20)
    assert 0 < small.n_nodes <= 20
    limited = global_refinement(model, X[inner], target[inner], share=0.3, max_nodes=20)
    assert limited.validation is None
    np.testing.assert_array_equal(limited.n_nodes, path.n_nodes[path.n_nodes <= 20])
    np.testing.assert_allclose(limited.losses, path.losses[: len(limited)])
    if name != "pipeline":
        path.save(tmp_path / "path.npz")
        again = fp.PruningPath.load(tmp_path / "path.npz")
        np.testing.assert_array_equal(again[-1].predict(X), path[-1].predict(X))


@pytest.mark.parametrize("outputs", [1, 2, 4])
def test_the_projection_is_that_of_each_leaf(outputs):
    rng = np.random.default_rng(outputs)
    value = rng.normal(0.0, 0.3, (outputs, 50))
    centre = rng.dirichlet(np.ones(outputs)) if outputs > 1 else np.array([0.3])
    found = value.copy()
    kernels.project_leaves(found, centre, 5.0)
    for given, ours in zip(value.T, found.T, strict=True):
        q = 5.0 * given + centre
        if outputs == 1:
            nearest = np.clip(q, 0.0, 1.0)
        else:
            # All give up as much as makes those that stay positive sum to 1.
            lift = scipy.optimize.brentq(
                lambda lift, q=q: np.maximum(q - lift, 0.0).sum() - 1.0, q.min() - 1.0, q.max()
            )
            nearest = np.maximum(q - lift, 0.0)
        np.testing.assert_allclose(5.0 * ours + centre, nearest, atol=1e-9)


def test_a_fit_of_distributions_ends_early_if_told_to():
    model, target = MODELS["average of several"]
    setting = Setting(model.fit(X, target), X, target, None, 1)
    problem, forest = setting.problem, setting.source.forest
    trees = read_trees(forest, seal(np.array(problem.node_weights)))
    leaves = Leaves.of(problem.encoding.codes, trees, np.ones(trees.split.size, bool))
    shares = problem.loss.best_constant(problem.target, None)
    found = []
    for most in (1, 10, 1000):
        value = np.zeros((3, leaves.node.size))
        residual = problem.target - shares[:, np.newaxis]
        fit = DistributionFit(leaves, np.empty(0), residual, value, 1.0, shares)
        fit.iterate(most, 1e-12)
        rise = np.zeros_like(residual)
        leaves.add_to(value, rise)
        np.testing.assert_allclose(
            residual, problem.target - shares[:, np.newaxis] - rise, atol=1e-9
        )
        found.append((residual**2).sum() + (value**2).sum())
    assert found[0] > found[1] + 0.1
    assert found[1] > found[2]


@pytest.mark.parametrize("loss", ["absolute_error", "quantile", "huber"])
def test_in_the_end_the_best_constant_is_left(loss):
    model = boosted(GradientBoostingRegressor, loss=loss).fit(X, NUMBERS)
    path = global_refinement(model, X, NUMBERS, share=0.5)
    assert path.losses[0] == pytest.approx(1.0)
    assert path.losses[-1] < 0.95
    if loss == "absolute_error":
        np.testing.assert_allclose(path[0].predict(X), np.median(NUMBERS), atol=0.05)


def test_a_constant_target_leaves_a_constant():
    model = MODELS["regression"][0].fit(X, NUMBERS)
    path = global_refinement(model, X, np.full(200, 3.5))
    for small in path:
        np.testing.assert_allclose(small.predict(X), 3.5, atol=1e-6)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"share": 0.0}, "share must be a number between 0 and 1"),
        ({"l2": -1.0}, "l2 must be a finite number"),
        ({"max_nodes": 2}, "max_nodes must be a whole number"),
        ({"X_val": X}, "X_val and y_val must be given together"),
    ],
)
def test_what_cannot_be_is_refused(options, message):
    model = MODELS["regression"][0].fit(X, NUMBERS)
    with pytest.raises(ValueError, match=message):
        global_refinement(model, X, NUMBERS, **options)
