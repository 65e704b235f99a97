"""Paths of symmetric trees: the default rule for them, files, and files that are damaged."""

from itertools import pairwise

import numpy as np
import pytest
from monotone import turns
from sklearn.datasets import make_friedman1

import forestprune as fp
from forestprune.exceptions import OptionError
from forestprune.forest.symmetric import is_symmetric
from forestprune.loss import loss_for
from forestprune.select.path import PruningPath
from forestprune.select.pruned import PrunedForest
from forestprune.solve.costs import level_costs
from forestprune.solve.levels import first_levels, leaf_origins, levels_of
from forestprune.solve.problem import pose

catboost = pytest.importorskip("catboost")

X, Y = make_friedman1(300, n_features=6, noise=1.0, random_state=0)
X_VAL, Y_VAL = make_friedman1(150, n_features=6, noise=1.0, random_state=1)
QUIET = {"iterations": 25, "verbose": 0, "allow_writing_files": False, "thread_count": 1}
MODEL = catboost.CatBoostRegressor(depth=4, **QUIET).fit(X, Y)


def by_levels(path):
    """Tell whether levels were chosen; the full model, which ends a path, need not say any."""
    return any(point.levels is not None for point in path.points)


@pytest.fixture(scope="module", params=[{}, {"refit": False}, {"polish": "leaf"}], ids=str)
def path(request):
    return fp.prune_path(MODEL, X, Y, n_alphas=12, X_val=X_VAL, y_val=Y_VAL, **request.param)


def test_symmetric_models_of_catboost_stay_symmetric(path):
    moved = 0
    for i, small in enumerate(path):
        assert is_symmetric(small.forest)
        assert small.n_nodes == path.n_nodes[i] == path.points[i].n_nodes
        np.testing.assert_allclose(small.to_native().predict(X), small.predict(X), rtol=1e-12)
        score = 1.0 - np.mean((small.predict(X_VAL) - Y_VAL) ** 2) / Y_VAL.var()
        assert path.validation.scores[i] == pytest.approx(score, abs=1e-9)
        loss = np.mean((small.predict(X) - Y) ** 2) / Y.var()
        assert small.loss == pytest.approx(loss, rel=1e-9)
        forest, point = path.source.forest, path.points[i]
        moved += int((levels_of(forest, point) != first_levels(forest, point.depths)).sum())
    assert moved  # trees lose levels from their middle, too


def test_others_are_pruned_from_below_unless_told():
    grown = catboost.CatBoostRegressor(grow_policy="Depthwise", depth=3, **QUIET).fit(X, Y)
    for model, how in ((grown, {}), (MODEL, {"rule": "subtree"}), (MODEL, {"rule": "layer"})):
        assert not by_levels(fp.prune_path(model, X, Y, n_alphas=5, **how))
    with pytest.raises(OptionError, match=r"needs symmetric trees.*Use rule='subtree'"):
        fp.prune(grown, X, Y, rule="oblivious")
    stumps = fp.Forest.from_model(MODEL).truncate(1)
    assert by_levels(fp.prune_path(stumps, X, Y, n_alphas=5, rule="oblivious"))


def test_what_levels_cost():
    costs = np.ones((25, 4))
    cheap = fp.prune_path(MODEL, X, Y, rule="oblivious", weighting=costs, n_alphas=8)
    depth = fp.prune_path(MODEL, X, Y, rule="oblivious", weighting="depth", n_alphas=8)
    np.testing.assert_allclose(cheap.losses, depth.losses)
    nodes = fp.Forest.from_model(MODEL).n_nodes
    with pytest.raises(OptionError, match=r"must have shape \(25, 4\).*rule='subtree'"):
        fp.prune_path(MODEL, X, Y, rule="oblivious", weighting=np.ones(nodes))
    with pytest.raises(OptionError, match="joint='ridge' needs rule='layer'"):
        fp.prune(MODEL, X, Y, rule="oblivious", joint="ridge")


def test_a_saved_path_comes_back(path, tmp_path):
    path.save(tmp_path / "path.npz")
    again = PruningPath.load(tmp_path / "path.npz")
    np.testing.assert_array_equal(again.score(X_VAL, Y_VAL), path.score(X_VAL, Y_VAL))
    for point, same, small in zip(path.points, again.points, again, strict=True):
        levels = (levels_of(path.source.forest, each) for each in (same, point))
        np.testing.assert_array_equal(*levels)
        assert small.n_nodes == point.n_nodes
    np.testing.assert_array_equal(again[-1].predict(X), path[-1].predict(X))


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("levels", lambda a: a[:, :1]),
        ("levels", lambda a: a | 16),
        ("levels", lambda a: a << 4),
        ("levels", lambda a: a ^ 1),
        ("levels", lambda a: ~a),
        ("levels", lambda a: a * 0),
        ("levels", lambda a: a.astype(np.int64) - 100),
        ("levels", lambda a: a.astype(float)),
        ("levels", lambda a: np.full(a.shape, 2**32 - 1, np.uint32)),
        ("refitted", lambda a: ~a),
        ("depths", lambda a: a + (a > 0)),
    ],
)
def test_damaged_paths_are_refused(path, tmp_path, name, change):
    path.save(tmp_path / "path.npz")
    with np.load(tmp_path / "path.npz") as archive:
        arrays = dict(archive)
    arrays[name] = change(arrays[name])
    np.savez(tmp_path / "path.npz", **arrays)
    with pytest.raises(fp.InvalidForestError, match="does not hold a pruning path"):
        PruningPath.load(tmp_path / "path.npz")


def test_levels_of_trees_that_are_not_symmetric_are_refused(tmp_path):
    path = fp.prune_path(MODEL, X, Y, n_alphas=6, rule="subtree")
    path.save(tmp_path / "path.npz")
    with np.load(tmp_path / "path.npz") as archive:
        arrays = dict(archive)
    depths = arrays["depths"]
    arrays["levels"] = (((1 << depths) - 1) << (4 - depths)).astype(np.uint32)
    np.savez(tmp_path / "path.npz", **arrays)
    with pytest.raises(fp.InvalidForestError, match="must be cut at depths"):
        PruningPath.load(tmp_path / "path.npz")


@pytest.mark.parametrize("how", [{}, {"polish": "ridge"}, {"polish": "subset", "max_trees": 4}])
def test_budgets_are_kept_to(how):
    size = {} if "max_trees" in how else {"max_nodes": 100}
    small = fp.prune(MODEL, X, Y, X_val=X_VAL, y_val=Y_VAL, **size, **how)
    assert is_symmetric(small.forest)
    assert small.n_nodes > 0
    if size:
        assert small.n_nodes <= 100
        assert fp.prune(MODEL, X, Y, max_depth=2, **size, **how).max_depth == 2


@pytest.mark.parametrize("how", [{"depth": 11}, {"depth": 9, "monotone_constraints": [1] * 6}])
def test_trees_of_many_levels_drop_them_one_by_one(how):
    deep = catboost.CatBoostRegressor(**how, **QUIET | {"iterations": 4}).fit(X, Y)
    path = fp.prune_path(deep, X, Y, n_alphas=6, shrinkage=1.0)
    chosen = [point for point in path.points if point.levels is not None]
    assert chosen[-1].max_depth > 3
    assert (np.diff([point.loss for point in chosen]) <= 1e-12).all()
    for point, small in zip(path.points, path, strict=True):
        loss = np.mean((small.predict(X) - Y) ** 2) / Y.var()
        assert point.loss == pytest.approx(loss, rel=1e-9)


@pytest.mark.parametrize("loss", ["MultiClass", "MultiClassOneVsAll", "MultiRMSE"])
def test_levels_of_trees_that_add_to_all_outputs(loss):
    targets = np.column_stack([Y > 16, (Y > 12) & (Y <= 16), Y <= 12]).astype(float)
    model = catboost.CatBoost({"loss_function": loss, "depth": 4, **QUIET})
    y = targets if loss == "MultiRMSE" else targets.argmax(axis=1)
    model.fit(X, y)
    path = fp.prune_path(model, X, y, n_alphas=10, shrinkage=5.0)
    forest = path.source.forest
    judge = loss_for(forest.origin, labelled=True)
    problem = pose(fp.encode(forest, X), targets, loss=judge)
    best = judge.best_constant(targets.T, None)[:, np.newaxis]
    of_constant = judge.value(targets.T, best, None)
    costs, trees = level_costs(forest, "node"), np.arange(forest.n_trees)

    def objective(point, alpha):
        shift = ((point.values - leaf_origins(problem, point)) ** 2).sum()
        penalty = problem.curvature * 5.0 * shift / (2.0 * of_constant)
        return point.loss + alpha * costs[trees, point.depths].sum() + penalty

    chosen = [(i, point) for i, point in enumerate(path.points) if point.levels is not None]
    assert len(chosen) >= 8
    for i, point in chosen:
        raw = np.reshape(path[i].to_native().predict(X), (len(X), 3))
        assert point.loss == pytest.approx(judge.value(targets.T, raw.T, None) / of_constant)
        assert point.objective == pytest.approx(objective(point, point.alpha))
        assert all(point.objective <= objective(other, point.alpha) + 0.02 for _, other in chosen)
    for (_, before), (_, point) in pairwise(chosen):
        assert point.objective <= objective(before, point.alpha) + 1e-9


@pytest.mark.parametrize("signs", [[0] * 6, [1, 1, 0, 1, 0, -1]])
def test_folds_choose_among_levels(signs):
    given = f"({','.join(map(str, signs))})"  # scikit-learn cannot clone lists
    model = catboost.CatBoostRegressor(depth=3, monotone_constraints=given, **QUIET)
    pruned = fp.ForestPruneRegressorCV(model, cv=3, n_alphas=10, max_depth=2, max_nodes=40)
    pruned.fit(X, Y)
    assert by_levels(pruned.path_)
    assert is_symmetric(pruned.pruned_.forest)
    assert pruned.score(X_VAL, Y_VAL) > 0.4
    rng = np.random.default_rng(0)
    for point in pruned.path_.points:
        assert (
            turns(PrunedForest.of(pruned.path_.source, point).predict, X, signs, rng=rng, lines=5)[
                0
            ]
            == 0
        )
