"""The subtree rule as a user meets it: models, budgets, paths, estimators, refusals."""

import re

import joblib
import numpy as np
import pytest
from sklearn.datasets import make_friedman1
from sklearn.ensemble import ExtraTreesRegressor, GradientBoostingRegressor, RandomForestRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import r2_score
from sklearn.model_selection import train_test_split

import forestprune as fp
from forestprune.solve.point import kept_leaves

X_ALL, Y_ALL = make_friedman1(600, noise=1.0, random_state=0)
X, X_VAL, Y, Y_VAL = train_test_split(X_ALL, Y_ALL, test_size=0.5, random_state=0)
MODELS = {
    "forest": RandomForestRegressor(20, max_features=0.5, random_state=0).fit(X, Y),
    "extra": ExtraTreesRegressor(20, max_depth=8, random_state=0).fit(X, Y),
    "boosted": GradientBoostingRegressor(n_estimators=40, subsample=0.5, random_state=0).fit(X, Y),
}
WAYS = [
    {"refit": False},
    {"refit": True, "shrinkage": 5.0},
    {"refit": False, "polish": "ridge"},
    {"refit": False, "polish": "leaf", "shrinkage": 5.0},
    {"refit": True, "polish": "ridge"},
    {"refit": True, "polish": "subset", "alpha2": 0.001},
    {"refit": True, "polish": "leaf"},
]


@pytest.fixture(params=MODELS)
def model(request):
    return MODELS[request.param]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("way", WAYS, ids=str)
def test_a_small_model_of_the_same_class(model, way, tmp_path):
    before = joblib.hash(model)
    small = fp.prune(model, X, Y, max_nodes=60, rule="subtree", **way)
    assert joblib.hash(model) == before
    assert 3 <= small.n_nodes <= 60
    native = small.to_native()
    assert type(native) is type(model)
    np.testing.assert_allclose(native.predict(X_VAL), small.predict(X_VAL), rtol=1e-6)
    trees = np.ravel(native.estimators_)
    assert sum(tree.tree_.node_count for tree in trees) == small.n_nodes
    joblib.dump(native, tmp_path / "small")
    assert (tmp_path / "small").stat().st_size == small.n_bytes
    assert small.loss == pytest.approx(1 - r2_score(Y, small.predict(X)), rel=1e-9)
    np.testing.assert_array_equal(small.depths > 0, small.weights != 0)
    assert small.max_depth == small.depths.max()


def test_subtrees_need_fewer_nodes_than_layers(model):
    errors = {}
    for name, way in {
        "layer": {"rule": "layer", "polish": "ridge"},
        "subtree": {"rule": "subtree", "refit": True, "shrinkage": 5.0},
    }.items():
        small = fp.prune(model, X, Y, max_nodes=100, **way)
        errors[name] = np.mean((small.predict(X_VAL) - Y_VAL) ** 2)
    assert errors["subtree"] < 0.9 * errors["layer"]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("limit", [60, 100, 200])
@pytest.mark.parametrize("refit", [False, True])
def test_budgets_are_used_up(model, limit, refit):
    way = {"refit": True, "shrinkage": 5.0} if refit else {"refit": False}
    small = fp.prune(model, X, Y, max_nodes=limit, **way)
    assert 0.8 * limit <= small.n_nodes <= limit
    path = fp.prune_path(model, X, Y, **way)
    assert small.loss <= path.select(max_nodes=limit).loss


@pytest.mark.sampled(2)
@pytest.mark.parametrize("way", WAYS, ids=str)
def test_the_points_of_a_path_are_what_its_arrays_say(model, way, tmp_path):
    path = fp.prune_path(model, X, Y, n_alphas=12, rule="subtree", X_val=X_VAL, y_val=Y_VAL, **way)
    assert path.n_nodes[0] == 0
    for i in (0, 3, 7, len(path) - 1):
        small = path[i]
        assert small.n_nodes == path.n_nodes[i]
        assert small.n_trees == path.n_trees[i]
        assert small.max_depth == path.max_depths[i]
        np.testing.assert_array_equal(small.depths, path.depths[i])
        score = r2_score(Y_VAL, small.predict(X_VAL))
        assert path.validation.scores[i] == pytest.approx(score, abs=1e-9)
        assert path.losses[i] == pytest.approx(1 - r2_score(Y, small.predict(X)), abs=1e-9)
    path.save(tmp_path / "path.npz")
    again = fp.PruningPath.load(tmp_path / "path.npz")
    np.testing.assert_array_equal(again.n_nodes, path.n_nodes)
    np.testing.assert_allclose(again[5].predict(X_VAL), path[5].predict(X_VAL), rtol=1e-12)


def test_without_refitting_a_path_ends_near_the_full_model(model):
    path = fp.prune_path(model, X, Y, rule="subtree", refit=False)
    assert (np.diff(path.objectives[:-1]) <= 1e-9).all()  # the last is the full model itself
    assert path.losses[-2] <= 1 - model.score(X, Y) + 1e-3


def test_a_pruned_model_can_be_pruned_again(model):
    small = fp.prune(model, X, Y, max_nodes=200, rule="subtree", refit=True, shrinkage=5.0)
    smaller = fp.prune(small.to_native(), X, Y, max_nodes=50, rule="subtree", refit=True)
    assert smaller.n_nodes <= 50
    assert smaller.loss < 0.6
    kept = fp.prune(small.forest, X, Y, alpha=0.0, rule="layer", local_search=False)
    assert kept.loss <= small.loss + 1e-9


def test_the_weights_of_rows_are_rows(model):
    rng = np.random.default_rng(0)
    weights = rng.integers(0, 4, len(Y))
    options = {"rule": "subtree", "refit": True, "shrinkage": 6.0, "alpha": 3.0}
    weighted = fp.prune(model, X, Y, sample_weight=weights, **options)
    repeated = fp.prune(model, np.repeat(X, weights, axis=0), np.repeat(Y, weights), **options)
    assert weighted.n_nodes == repeated.n_nodes
    np.testing.assert_allclose(weighted.predict(X), repeated.predict(X), rtol=1e-6)


def test_several_outputs_and_missing_values():
    Y_two = np.column_stack([Y, X[:, 0] * X[:, 5]])
    X_gaps = np.where(np.random.default_rng(0).random(X.shape) < 0.1, np.nan, X)
    model = RandomForestRegressor(10, max_depth=6, random_state=0).fit(X_gaps, Y_two)
    for way in ({"refit": False}, {"refit": True}, {"refit": True, "polish": "leaf"}):
        small = fp.prune(model, X_gaps, Y_two, max_nodes=80, rule="subtree", **way)
        assert small.n_nodes <= 80
        native = small.to_native()
        np.testing.assert_allclose(native.predict(X_gaps), small.predict(X_gaps), rtol=1e-6)
        assert native.predict(X_gaps).shape == (len(Y), 2)


@pytest.mark.parametrize("refit", [False, True])
def test_degenerate_cases(refit):
    options = {"rule": "subtree", "refit": refit}
    constant = np.full(len(Y), 3.0)
    model = RandomForestRegressor(5, random_state=0).fit(X, constant)
    small = fp.prune(model, X, constant, **options)
    assert small.n_trees == 0
    np.testing.assert_allclose(small.predict(X_VAL), 3.0)
    one_row = fp.prune(MODELS["forest"], X[:1], Y[:1], **options)
    assert np.isfinite(one_row.predict(X_VAL)).all()
    single = RandomForestRegressor(1, random_state=0).fit(X, Y)
    assert fp.prune(single, X, Y, max_nodes=15, **options).n_nodes <= 15
    stump = RandomForestRegressor(2, max_depth=1, random_state=0).fit(X, Y)
    assert fp.prune(stump, X, Y, alpha=0.0, **options).n_nodes <= 6
    roots = RandomForestRegressor(2, min_samples_leaf=len(Y), random_state=0).fit(X, Y)
    assert fp.prune(roots, X, Y, **options).n_nodes == 0
    with pytest.warns(UserWarning, match="No tree of the model explains anything"):
        fp.prune(roots, X, Y, max_nodes=15, **options)


def test_costs_of_nodes(model):
    forest = fp.Forest.from_model(model)
    dear = np.where(forest.feature == 3, 1e6, 1.0)
    dear_children = np.ones(forest.n_nodes)
    starts = np.repeat(forest.offsets[:-1], np.diff(forest.offsets))
    splits = np.flatnonzero(forest.left >= 0)
    for side in (0, 1):
        dear_children[(starts + forest.left)[splits] + side] = dear[splits]
    plain = fp.prune(model, X, Y, max_nodes=60, rule="subtree", refit=True)
    cheap = fp.prune(model, X, Y, max_nodes=60, rule="subtree", refit=True, weighting=dear_children)
    assert 3 in plain.forest.feature
    assert 3 not in cheap.forest.feature


def test_validation_rows_choose_the_shrinkage():
    noisy = Y + 5.0 * np.random.default_rng(0).normal(size=len(Y))
    model = RandomForestRegressor(20, random_state=0).fit(X, noisy)
    options = {"rule": "subtree", "refit": True, "max_nodes": 400, "X_val": X_VAL, "y_val": Y_VAL}
    each = {s: fp.prune(model, X, noisy, shrinkage=s, **options) for s in (0.0, 30.0)}
    scores = {s: r2_score(Y_VAL, small.predict(X_VAL)) for s, small in each.items()}
    chosen = fp.prune(model, X, noisy, shrinkage=[0.0, 30.0], **options)
    assert r2_score(Y_VAL, chosen.predict(X_VAL)) == pytest.approx(max(scores.values()))
    smallest = fp.prune(
        model, X, noisy, shrinkage=[0.0, 30.0], **{**options, "max_nodes": None, "tolerance": 0.1}
    )
    alone = fp.prune(
        model, X, noisy, shrinkage=30.0, **{**options, "max_nodes": None, "tolerance": 0.1}
    )
    assert smallest.n_nodes <= alone.n_nodes


def test_folds_choose_the_shrinkage():
    noisy = Y + 5.0 * np.random.default_rng(0).normal(size=len(Y))
    small = fp.ForestPruneRegressorCV(
        RandomForestRegressor(10, random_state=0),
        cv=3,
        n_alphas=15,
        rule="subtree",
        refit=True,
        shrinkage=[0.0, 20.0],
    ).fit(X, noisy)
    assert small.shrinkage_ == 20.0
    assert small.scores_.shape == (len(small.path_), 3)
    best = np.argmax(small.path_.validation.scores)
    assert small.path_.validation.scores[best] == pytest.approx(
        small.path_.validation.scores[small.path_.alphas.tolist().index(small.alpha_)]
    )
    assert small.score(X_VAL, Y_VAL) > 0.0


def test_held_out_rows_are_neither_fitted_nor_pruned_with():
    options = {"rule": "subtree", "refit": True, "shrinkage": [1.0, 10.0]}
    inner = RandomForestRegressor(10, random_state=0)
    small = fp.ForestPruneRegressor(inner, validation_fraction=0.25, random_state=0, **options)
    small.fit(X, Y)
    X_fit, X_held, y_fit, y_held = train_test_split(X, Y, test_size=0.25, random_state=0)
    by_hand = fp.prune(inner.fit(X_fit, y_fit), X_fit, y_fit, X_val=X_held, y_val=y_held, **options)
    np.testing.assert_array_equal(small.predict(X_VAL), by_hand.predict(X_VAL))
    assert small.pruned_.loss == pytest.approx(1 - r2_score(y_fit, small.predict(X_fit)))
    assert small.score(X_VAL, Y_VAL) > 0.5


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"rule": "subtree", "weighting": "depth"}, "weighting='depth' charges for whole layers"),
        ({"rule": "subtree", "weighting": np.ones((20, 3))}, "one cost a node"),
        ({"rule": "subtree", "joint": "ridge"}, "joint='ridge' needs rule='layer'"),
        ({"rule": "subtree", "local_search": "random"}, "local_search='random' needs rule='layer'"),
        ({"rule": "layer", "refit": True}, "refit=True needs rule='subtree'"),
        ({"rule": "subtree", "shrinkage": -1.0}, "shrinkage must be a finite number"),
        ({"rule": "subtree", "shrinkage": []}, "at least one"),
        ({"rule": "subtree", "shrinkage": [1.0, "2"]}, "shrinkage must be a finite number"),
        ({"rule": "subtree", "shrinkage": [1.0, 2.0]}, "needs validation rows"),
        ({"refit": False, "shrinkage": 10.0}, "about new values of leaves"),
        ({"rule": "layer", "polish": "ridge", "shrinkage": 10.0}, "about new values of leaves"),
        ({"weighting": np.ones(5)}, "one cost a node; got (5,). Costs of layers need rule='layer'"),
        ({"rule": "subtree", "refit": "yes"}, "refit must be None or True or False"),
    ],
)
def test_what_does_not_go_together_is_refused(options, complaint):
    with pytest.raises(ValueError, match=re.escape(complaint)):
        fp.prune(MODELS["forest"], X, Y, max_nodes=50, **options)


def test_a_path_has_one_shrinkage():
    with pytest.raises(ValueError, match="one shrinkage"):
        fp.prune_path(MODELS["forest"], X, Y, rule="subtree", shrinkage=[1.0, 2.0])


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("kept", lambda a: a[::-1]),
        ("kept", lambda a: ~a),
        ("kept", lambda a: a[:, :-1]),
        ("kept", lambda a: a.astype(np.int64)),
        ("values", lambda a: a * np.nan),
        ("values", lambda a: a[:, :-1]),
        ("values", lambda a: np.tile(a, 2)),
        ("refitted", lambda a: ~a),
        ("refitted", lambda a: a[:-1]),
    ],
)
def test_damaged_paths_are_refused(name, change, tmp_path):
    path = fp.prune_path(MODELS["boosted"], X, Y, n_alphas=5, rule="subtree", refit=True)
    path.save(tmp_path / "path.npz")
    with np.load(tmp_path / "path.npz") as file:
        arrays = dict(file)
    np.savez(tmp_path / "path.npz", **arrays)
    assert len(fp.PruningPath.load(tmp_path / "path.npz")) == len(path)
    arrays[name] = change(arrays[name])
    np.savez(tmp_path / "path.npz", **arrays)
    with pytest.raises(fp.InvalidForestError):
        fp.PruningPath.load(tmp_path / "path.npz")


def test_one_standard_error_is_that_of_the_best_of_all_shrinkages():
    noisy = Y + 3.0 * np.random.default_rng(0).normal(size=len(Y))
    model = RandomForestRegressor(20, max_depth=8, random_state=0).fit(X, noisy)
    shrinkages = [100.0, 0.0, 1e6]
    options = {"n_alphas": 20, "X_val": X_VAL, "y_val": Y_VAL}
    paths = [fp.prune_path(model, X, noisy, shrinkage=s, **options) for s in shrinkages]
    validations = [path.validation for path in paths]
    best = max(validations, key=lambda v: v.scores.max())
    i = best.scores.argmax()
    small = fp.prune(model, X, noisy, shrinkage=shrinkages, one_standard_error=True, **options)
    least = best.scores[i] - best.standard_errors[i]
    assert r2_score(Y_VAL, small.predict(X_VAL)) >= least - 1e-9
    # And it is the smallest of all that are good enough.
    enough = [p.n_nodes[p.validation.scores >= least].min(initial=10**9) for p in paths]
    assert small.n_nodes == min(enough)
    folds = fp.ForestPruneRegressorCV(
        RandomForestRegressor(10, max_depth=6, random_state=0),
        cv=4,
        n_alphas=12,
        one_standard_error=True,
        shrinkage=np.array([100.0, 0.0, 1000.0]),
    ).fit(X, noisy)
    assert folds.shrinkage_ != 0.0


@pytest.mark.parametrize("rule", ["subtree", "layer"])
@pytest.mark.parametrize("polish", [None, "subset"])
def test_budgets_of_trees_and_nodes_together(rule, polish):
    options = {"rule": rule, "polish": polish, "n_alphas": 25, "local_search": False}
    few = {"max_trees": 3} if polish else {}
    small = fp.prune(MODELS["forest"], X, Y, max_nodes=150, max_trees=3, **options)
    path = fp.prune_path(MODELS["forest"], X, Y, **options, **few)
    assert small.n_nodes <= 150
    assert small.n_trees <= 3
    assert small.loss <= path.select(max_nodes=150, max_trees=3).loss + 1e-12


@pytest.mark.sampled(2)
@pytest.mark.parametrize("way", WAYS, ids=str)
def test_objectives_can_be_recomputed_from_the_model(model, way):
    weights = np.random.default_rng(0).integers(0, 3, len(Y)).astype(float)
    path = fp.prune_path(model, X, Y, n_alphas=8, sample_weight=weights, **way)
    assert len(path) > 4
    forest = fp.Forest.from_model(model)
    roots = np.repeat(forest.value[forest.offsets[:-1]], np.diff(forest.offsets), axis=0)
    origin = ((forest.value - roots) * np.repeat(forest.scale, np.diff(forest.offsets))[:, None])[
        :, 0
    ]
    K = forest.n_nodes - forest.n_trees
    variation = float(weights @ (Y - np.average(Y, weights=weights)) ** 2)
    for i, small in enumerate(path):
        error = float(weights @ (Y - small.predict(X)) ** 2) / variation
        assert small.loss == pytest.approx(error, rel=1e-9, abs=1e-12)
        point = path.points[i]
        expected = error + small.alpha * (point.n_nodes - point.n_trees) / K
        if way["refit"]:
            leaves = kept_leaves(forest, point.splits(forest))
            owner = np.searchsorted(forest.offsets, leaves, side="right") - 1
            values = origin[leaves] if point.values is None else point.values[0]
            change = (values * small.weights[owner] - origin[leaves]) ** 2
            expected += way.get("shrinkage", 100.0) * change.sum() / variation
        assert path.objectives[i] == pytest.approx(expected, rel=1e-9)


def test_paths_that_do_not_fit_their_trees_are_refused(tmp_path):
    path = fp.prune_path(MODELS["boosted"], X, Y, n_alphas=5)
    path.save(tmp_path / "path.npz")
    with np.load(tmp_path / "path.npz") as file:
        arrays = dict(file)
    np.savez(tmp_path / "flat.npz", **arrays | {"depths": 0 * arrays["depths"]})
    with pytest.raises(fp.InvalidForestError, match="depths of the trees"):
        fp.PruningPath.load(tmp_path / "flat.npz")
    rest = {name: array for name, array in arrays.items() if name != "kept"}
    np.savez(tmp_path / "rest.npz", **rest)
    with pytest.raises(fp.InvalidForestError, match="kept"):
        fp.PruningPath.load(tmp_path / "rest.npz")


def test_several_shrinkages_need_something_to_choose_by():
    class Unfittable(RandomForestRegressor):
        def fit(self, X, y, sample_weight=None):
            raise AssertionError("must be refused before the forest is fitted")

    with pytest.raises(ValueError, match="validation_fraction"):
        fp.ForestPruneRegressor(Unfittable(), max_nodes=50, shrinkage=[1.0, 2.0]).fit(X, Y)
    with pytest.raises(ValueError, match="with alpha, give one number"):
        fp.prune(MODELS["forest"], X, Y, alpha=1.0, shrinkage=[1.0, 2.0])
    small = fp.prune(
        MODELS["boosted"], X, Y, shrinkage=range(1, 3), max_nodes=30, X_val=X_VAL, y_val=Y_VAL
    )
    assert small.n_nodes <= 30


def test_warnings_point_at_the_caller():
    for call in (
        lambda: fp.prune(MODELS["forest"], X, Y, max_nodes=100, max_iter=1),
        lambda: fp.prune(MODELS["forest"], X, Y, alpha=0.1, max_iter=1),
        lambda: fp.prune_path(MODELS["forest"], X, Y, n_alphas=5, max_iter=1, rule="layer"),
    ):
        with pytest.warns(ConvergenceWarning) as caught:
            call()
        assert {warning.filename for warning in caught} == {__file__}
