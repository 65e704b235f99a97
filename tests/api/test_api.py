"""prune() and prune_path() as users call them."""

import copy
import pickle
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.compose import make_column_transformer
from sklearn.datasets import make_friedman1
from sklearn.ensemble import (
    BaggingRegressor,
    ExtraTreesRegressor,
    GradientBoostingRegressor,
    RandomForestRegressor,
)
from sklearn.exceptions import ConvergenceWarning
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import d2_pinball_score, mean_pinball_loss, r2_score
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeRegressor

import forestprune as fp

X, Y = make_friedman1(300, noise=1.0, random_state=0)
X_VAL, Y_VAL = make_friedman1(200, noise=1.0, random_state=1)
FOREST = RandomForestRegressor(12, max_depth=6, random_state=0).fit(X, Y)
MODELS = [
    FOREST,
    ExtraTreesRegressor(8, max_depth=6, random_state=0).fit(X, Y),
    BaggingRegressor(n_estimators=6, max_features=0.5, random_state=0).fit(X, Y),
    GradientBoostingRegressor(n_estimators=25, max_depth=4, random_state=0).fit(X, Y),
    DecisionTreeRegressor(random_state=0).fit(X, Y),
]


def name(model):
    return type(model).__name__


@pytest.mark.parametrize("model", MODELS, ids=name)
@pytest.mark.parametrize(
    "options",
    [{}, {"rule": "layer", "polish": "ridge"}, {"rule": "layer", "joint": "ridge"}],
    ids=str,
)
def test_a_small_model_of_the_same_class(model, options):
    before = pickle.dumps(model)
    full = fp.Forest.from_model(model)
    small = fp.prune(model, X, Y, alpha=0.3, **options)
    native = small.to_native()
    assert type(native) is type(model)
    assert 0 < small.n_nodes < full.n_nodes
    assert small.n_nodes == small.forest.n_nodes == fp.Forest.from_model(native).n_nodes
    np.testing.assert_allclose(native.predict(X_VAL), small.predict(X_VAL), rtol=1e-9)
    assert small.loss == pytest.approx(1 - r2_score(Y, native.predict(X)))
    assert pickle.dumps(model) == before
    assert small.n_iter >= 2


@pytest.mark.parametrize("model", MODELS, ids=name)
def test_without_a_price_everything_that_helps_is_kept(model):
    small = fp.prune(model, X, Y, alpha=0.0)
    assert small.loss <= 1 - model.score(X, Y) + 1e-9


def test_one_is_the_default_of_alpha():
    assert fp.prune(FOREST, X, Y).alpha == 1.0
    assert fp.prune(FOREST, X, Y, max_depth=2).alpha == 1.0


@pytest.mark.sampled(3)
@pytest.mark.parametrize("model", MODELS[:4], ids=name)
@pytest.mark.parametrize("polish", [None, "ridge"])
@pytest.mark.parametrize("limit", [15, 60, 200])
def test_budgets_of_nodes_are_kept_and_used(model, polish, limit):
    small = fp.prune(model, X, Y, max_nodes=limit, polish=polish, n_alphas=25)
    assert small.n_nodes <= limit
    assert fp.Forest.from_model(small.to_native()).n_nodes <= limit
    path = fp.prune_path(model, X, Y, polish=polish, n_alphas=25)
    assert small.loss <= path.select(max_nodes=limit).loss + 1e-12
    if limit > 15:
        assert small.n_nodes > 0.6 * limit


def test_other_budgets():
    model = MODELS[3]
    assert fp.prune(model, X, Y, max_trees=5, n_alphas=20).n_trees <= 5
    assert fp.prune(model, X, Y, max_depth=2, max_nodes=50, n_alphas=20).max_depth <= 2
    size = fp.prune(model, X, Y, alpha=1.0).n_bytes
    small = fp.prune(model, X, Y, max_bytes=size, n_alphas=20)
    assert small.n_bytes <= size
    assert small.n_trees > 0


def test_limiting_the_depth_beats_looking_for_shallow_trees_on_the_path():
    shallow = fp.prune(FOREST, X, Y, max_depth=2, max_nodes=80, polish="ridge")
    found = fp.prune_path(FOREST, X, Y, polish="ridge").select(max_depth=2, max_nodes=80)
    assert shallow.max_depth <= 2
    assert shallow.loss <= found.loss + 1e-9
    path = fp.prune_path(FOREST, X, Y, max_depth=3, n_alphas=5)
    assert path.max_depths.max() == 3


def test_tolerance_and_one_standard_error_choose_on_validation_rows():
    held_out = {"X_val": X_VAL, "y_val": Y_VAL, "polish": "ridge"}
    full = FOREST.score(X_VAL, Y_VAL)
    close = fp.prune(FOREST, X, Y, tolerance=0.01, **held_out)
    loose = fp.prune(FOREST, X, Y, tolerance=0.2, **held_out)
    assert r2_score(Y_VAL, close.predict(X_VAL)) >= full - 0.01
    assert r2_score(Y_VAL, loose.predict(X_VAL)) >= full - 0.2
    assert loose.n_nodes < close.n_nodes
    near, best = (fp.prune(FOREST, X, Y, one_standard_error=se, **held_out) for se in (True, False))
    assert 0 < near.n_nodes < best.n_nodes


def test_picking_the_best_few_trees():
    model = MODELS[3]
    small = fp.prune(model, X, Y, alpha=0.5, polish="subset", max_trees=4)
    assert small.n_trees == 4
    assert np.count_nonzero(small.weights) == 4
    assert small.report["solver"] == "heuristic"
    assert small.loss <= fp.prune(model, X, Y, alpha=0.5, polish="subset", max_trees=3).loss
    penalised = fp.prune(model, X, Y, alpha=0.5, polish="subset", alpha2=0.02)
    assert 0 < penalised.n_trees < fp.prune(model, X, Y, alpha=0.5).n_trees
    budget = fp.prune(model, X, Y, max_nodes=40, polish="subset", max_trees=4, n_alphas=15)
    assert budget.n_trees <= 4
    assert budget.n_nodes <= 40


@pytest.mark.parametrize("solver", ["scip", "gurobi"])
def test_an_exact_subset_reports_its_gap(solver):
    pytest.importorskip({"scip": "pyscipopt", "gurobi": "gurobipy"}[solver])
    options = {"alpha": 0.5, "polish": "subset", "max_trees": 3}
    exact = fp.prune(MODELS[3], X, Y, solver=solver, time_limit=30, **options)
    assert exact.report["solver"] == solver
    assert exact.report["status"] in ("optimal", "time limit")
    assert exact.report["gap"] >= 0
    assert exact.loss <= fp.prune(MODELS[3], X, Y, **options).loss + 1e-9


def test_joint_weights_explain_more_for_the_same_price():
    model = MODELS[3]
    plain = fp.prune(model, X, Y, alpha=0.5, rule="layer")
    for joint in ("ridge", "subset"):
        small = fp.prune(model, X, Y, alpha=0.5, rule="layer", joint=joint, alpha2=1e-4)
        assert small.objective < plain.objective
        assert np.unique(small.weights).size > 2


def test_depth_weighting_keeps_fewer_trees_and_node_weighting_fewer_nodes():
    options = {"tolerance": 0.05, "X_val": X_VAL, "y_val": Y_VAL, "rule": "layer"}
    by_node = fp.prune(FOREST, X, Y, **options)
    by_depth = fp.prune(FOREST, X, Y, weighting="depth", **options)
    assert by_depth.n_trees <= by_node.n_trees
    assert by_node.n_nodes < by_depth.n_nodes


def test_weights_of_rows_are_rows():
    rng = np.random.default_rng(0)
    weights = rng.integers(0, 3, len(Y)).astype(float)
    rows = np.repeat(np.arange(len(Y)), weights.astype(int))
    for options in ({}, {"polish": "ridge"}, {"rule": "layer", "joint": "subset"}):
        weighted = fp.prune(FOREST, X, Y, alpha=0.5, sample_weight=weights, **options)
        repeated = fp.prune(FOREST, X[rows], Y[rows], alpha=0.5, **options)
        np.testing.assert_array_equal(weighted.depths, repeated.depths)
        np.testing.assert_allclose(weighted.weights, repeated.weights, rtol=1e-6)
        assert weighted.objective == pytest.approx(repeated.objective)


def test_several_outputs():
    targets = np.column_stack([Y, X[:, 0] * 10, -Y])
    model = RandomForestRegressor(6, max_depth=5, random_state=0).fit(X, targets)
    small = fp.prune(model, X, targets, max_nodes=100, polish="ridge", X_val=X, y_val=targets)
    assert small.n_nodes <= 100
    np.testing.assert_allclose(small.to_native().predict(X_VAL), small.predict(X_VAL), rtol=1e-9)
    error = ((targets - small.predict(X)) ** 2).mean(axis=0).sum()
    assert small.loss == pytest.approx(error / targets.var(axis=0).sum())


def test_pipelines_come_back_as_pipelines():
    frame = pd.DataFrame(X[:, :5], columns=list("abcde"))
    frame["kind"] = np.where(X[:, 5] > 0.5, "red", "blue")
    pipeline = Pipeline(
        [
            ("code", make_column_transformer((OneHotEncoder(), ["kind"]), remainder="passthrough")),
            ("scale", StandardScaler()),
            ("forest", RandomForestRegressor(8, max_depth=5, random_state=0)),
        ]
    ).fit(frame, Y)
    forest, predicted = pipeline[-1], pipeline.predict(frame)
    small = fp.prune(pipeline, frame, Y, max_nodes=80, polish="ridge")
    native = small.to_native()
    assert isinstance(native, Pipeline)
    assert list(native.named_steps) == list(pipeline.named_steps)
    assert isinstance(native[-1], RandomForestRegressor)
    np.testing.assert_allclose(native.predict(frame), small.predict(frame))
    assert pipeline[-1] is forest
    np.testing.assert_array_equal(pipeline.predict(frame), predicted)
    assert fp.prune_path(pipeline, frame, Y, n_alphas=5).score(frame, Y).size >= 5
    alone = make_pipeline(RandomForestRegressor(4, max_depth=4, random_state=0)).fit(X, Y)
    assert isinstance(fp.prune(alone, X, Y).to_native(), Pipeline)


def test_pipelines_in_pipelines_are_refused():
    nested = make_pipeline(StandardScaler(), make_pipeline(copy.deepcopy(FOREST)))
    nested.fit(X, Y)
    with pytest.raises(TypeError, match="Put their steps into one"):
        fp.prune(nested, X, Y)


def test_frozen_models_and_forests_are_taken_as_well():
    expected = fp.prune(FOREST, X, Y, alpha=0.5)
    for model in (FrozenEstimator(FOREST), fp.Forest.from_model(FOREST)):
        small = fp.prune(model, X, Y, alpha=0.5)
        np.testing.assert_array_equal(small.depths, expected.depths)
        assert isinstance(small.to_native(), RandomForestRegressor)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_frames(frame):
    columns = {f"x{i}": X[:, i] for i in range(X.shape[1])}
    data = frame(columns)
    model = RandomForestRegressor(5, max_depth=4, random_state=0).fit(data, Y)
    target = pd.Series(Y) if frame is pd.DataFrame else pl.Series(Y)
    small = fp.prune(model, data, target, max_nodes=50, X_val=data, y_val=target)
    assert small.n_nodes <= 50
    np.testing.assert_allclose(small.to_native().predict(data), small.predict(data))


def test_missing_values():
    holes = X.copy()
    holes[np.random.default_rng(0).random(X.shape) < 0.2] = np.nan
    model = RandomForestRegressor(5, max_depth=5, random_state=0).fit(holes, Y)
    small = fp.prune(model, holes, Y, alpha=0.5, polish="ridge")
    np.testing.assert_allclose(small.to_native().predict(holes), small.predict(holes))


# Degenerate input gives a sensible result.


def test_a_constant_target_leaves_a_constant():
    constant = np.full(len(Y), 3.0)
    model = RandomForestRegressor(4, random_state=0).fit(X, constant)
    for options in ({"alpha": 1.0}, {"alpha": 1.0, "polish": "ridge"}):
        small = fp.prune(model, X, constant, **options)
        assert small.n_trees == 0
        np.testing.assert_allclose(small.to_native().predict(X_VAL), 3.0)
    path = fp.prune_path(model, X, constant)
    assert len(path) == 1
    np.testing.assert_array_equal(path.score(X_VAL, np.full(len(Y_VAL), 3.0)), 1.0)
    np.testing.assert_array_equal(path.score(X_VAL, np.full(len(Y_VAL), 4.0)), 0.0)


def test_a_forest_pruned_for_a_constant_target_it_was_not_trained_for():
    small = fp.prune(FOREST, X, np.full(len(Y), 3.0), alpha=1.0, polish="ridge")
    np.testing.assert_allclose(small.predict(X), 3.0, atol=1e-6)


def test_one_row():
    joint = {"rule": "layer", "joint": "ridge"}
    for options in ({"alpha": 1.0}, {"max_nodes": 30, "polish": "ridge"}, joint):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            small = fp.prune(FOREST, X[:1], Y[:1], **options)
        assert np.isfinite(small.predict(X_VAL)).all()


def test_one_tree():
    model = RandomForestRegressor(1, max_depth=4, random_state=0).fit(X, Y)
    small = fp.prune(model, X, Y, max_nodes=9)
    assert 3 <= small.n_nodes <= 9
    path = fp.prune_path(model, X, Y, rule="layer")
    assert set(path.n_nodes) <= {
        0,
        *(fp.Forest.from_model(model).truncate(k).n_nodes for k in range(5)),
    }


def test_trees_that_are_the_same():
    model = RandomForestRegressor(6, bootstrap=False, max_depth=4, random_state=0).fit(X, Y)
    model.estimators_ = [model.estimators_[0]] * 6
    for options in ({}, {"polish": "ridge"}, {"polish": "subset", "max_trees": 2}):
        small = fp.prune(model, X, Y, alpha=0.5, **options)
        assert np.isfinite(small.predict(X)).all()
        assert small.loss < 1


def test_trees_that_are_only_roots():
    model = RandomForestRegressor(3, min_samples_leaf=len(Y), random_state=0).fit(X, Y)
    small = fp.prune(model, X, Y, alpha=0.1, polish="ridge")
    assert small.n_trees == 0
    np.testing.assert_allclose(small.predict(X_VAL), Y.mean())
    assert len(fp.prune_path(model, X, Y)) == 1


def test_rows_without_weight_do_not_count():
    weights = np.zeros(len(Y))
    weights[:50] = 1.0
    garbage = Y.copy()
    garbage[50:] = 1e9
    small = fp.prune(FOREST, X, garbage, alpha=0.5, sample_weight=weights)
    expected = fp.prune(FOREST, X[:50], Y[:50], alpha=0.5)
    np.testing.assert_array_equal(small.depths, expected.depths)


def test_without_y_the_model_itself_is_the_target():
    said = FOREST.predict(X)
    small = fp.prune(FOREST, X, max_nodes=100, X_val=X_VAL)
    told = fp.prune(FOREST, X, said, max_nodes=100, X_val=X_VAL, y_val=FOREST.predict(X_VAL))
    np.testing.assert_allclose(small.predict(X_VAL), told.predict(X_VAL), rtol=1e-9)
    assert small.loss == pytest.approx(1 - r2_score(said, small.predict(X)))
    path = fp.prune_path(FOREST, X, n_alphas=5)
    expected = path.score(X_VAL, FOREST.predict(X_VAL))
    np.testing.assert_allclose(path.score(X_VAL), expected, rtol=1e-9)
    chosen = path.select(tolerance=0.3, X=X_VAL)
    assert chosen.n_nodes == path.select(tolerance=0.3, X=X_VAL, y=FOREST.predict(X_VAL)).n_nodes
    # Rows without y can be pruned with, those with y chosen by.
    assert fp.prune(FOREST, X, max_nodes=50, X_val=X_VAL, y_val=Y_VAL).n_nodes <= 50


def test_models_are_pruned_in_their_own_loss():
    model = GradientBoostingRegressor(loss="quantile", alpha=0.8, random_state=0).fit(X, Y)
    small = fp.prune(model, X, Y, max_nodes=100, X_val=X_VAL, y_val=Y_VAL)
    assert small.validation.name == "D squared"
    expected = d2_pinball_score(Y_VAL, small.predict(X_VAL), alpha=0.8)
    assert small.validation.score == pytest.approx(expected)
    squares = fp.prune(model, X, max_nodes=100)
    loss = {"y_true": Y, "alpha": 0.8}
    assert mean_pinball_loss(y_pred=small.predict(X), **loss) < mean_pinball_loss(
        y_pred=squares.predict(X), **loss
    )


def test_models_whose_loss_is_not_known_are_pruned_without_y():
    forest = fp.Forest.from_model(FOREST)
    unknown = replace(forest, origin=replace(forest.origin, objective="expectile"))
    with pytest.raises(ValueError, match="Leave y out"):
        fp.prune(unknown, X, Y, max_nodes=100)
    with pytest.raises(ValueError, match="Leave y out"):
        fp.prune(unknown, X, max_nodes=100, X_val=X_VAL, y_val=Y_VAL)
    path = fp.prune_path(unknown, X)
    with pytest.raises(ValueError, match="Leave y out"):
        path.score(X_VAL, Y_VAL)
    assert path.select(max_nodes=100).n_nodes <= 100


def test_quantiles_are_pruned_towards_themselves_without_y():
    model = GradientBoostingRegressor(loss="quantile", alpha=0.8, random_state=0).fit(X, Y)
    small = fp.prune_path(model, X).select(max_nodes=200).to_native()
    assert abs(np.mean(small.predict(X_VAL) >= Y_VAL) - 0.8) < 0.15
    assert r2_score(model.predict(X_VAL), small.predict(X_VAL)) > 0.7


def test_nothing_within_a_budget_is_told():
    empty = fp.prune_path(FOREST, X, Y, alphas=[1e9])[0].n_bytes
    asked = {"max_bytes": empty + 10, "n_alphas": 5}
    with pytest.warns(UserWarning, match=r"Only a constant keeps to max_bytes.*Allow more\.$"):
        fp.prune(FOREST, X, Y, **asked)
    with pytest.warns(UserWarning, match=r"Allow more, or refit leaves \(rule='subtree'\)"):
        fp.prune(FOREST, X, Y, **asked, rule="layer")
    validation = {"X_val": X_VAL, "y_val": Y_VAL, "n_alphas": 5}
    with pytest.warns(UserWarning, match="A constant comes within tolerance=9 of the full model"):
        fp.prune(FOREST, X, Y, tolerance=9, **validation)
    useless = {"X_val": X_VAL, "y_val": np.random.default_rng(0).normal(size=len(Y_VAL))}
    with pytest.warns(UserWarning, match="A constant does best on the validation rows"):
        fp.prune(FOREST, X, Y, max_nodes=5000, n_alphas=5, **useless)
    few = {"X_val": X_VAL[:3], "y_val": [0.0, 1.0, 50.0], "n_alphas": 5}
    with pytest.warns(UserWarning, match="within one standard error of the best model"):
        fp.prune(FOREST, X, Y, one_standard_error=True, **few)


def test_running_out_of_sweeps_is_told():
    with pytest.warns(ConvergenceWarning, match=r"after max_iter=1 sweeps.*raise max_iter"):
        fp.prune(FOREST, X, Y, alpha=0.5, max_iter=1, local_search=False)


def test_the_same_call_gives_the_same_model():
    layer = {"rule": "layer"}
    random = layer | {"local_search": "random", "random_state": 3}
    for options in ({}, random, layer | {"joint": "ridge"}):
        first, second = (fp.prune(MODELS[3], X, Y, alpha=0.3, **options) for _ in range(2))
        np.testing.assert_array_equal(first.predict(X_VAL), second.predict(X_VAL))
        one_thread = fp.prune(MODELS[3], X, Y, alpha=0.3, n_jobs=1, **options)
        np.testing.assert_array_equal(first.depths, one_thread.depths)


@pytest.mark.parametrize(
    ("call", "error", "complaint"),
    [
        ({"alpha": -1.0}, ValueError, "alpha must be a finite number, not negative, got -1.0"),
        ({"alpha": np.nan}, ValueError, "alpha must be a finite number"),
        ({"alpha": "1"}, ValueError, "alpha must be a finite number"),
        ({"alpha": 1.0, "max_nodes": 10}, ValueError, "alpha and max_nodes exclude each other"),
        ({"alpha": 1.0, "tolerance": 0.1}, ValueError, "alpha and tolerance exclude"),
        ({"max_nodes": 2}, ValueError, "a root and two leaves, got 2"),
        ({"max_trees": 0}, ValueError, "max_trees must be a whole number, at least 1"),
        ({"max_depth": 0}, ValueError, "max_depth must be a whole number, at least 1"),
        ({"max_nodes": True}, ValueError, "max_nodes must be a whole number"),
        ({"tolerance": 0.1}, ValueError, "need validation rows"),
        ({"max_nodes": 10, "X_val": X}, ValueError, "X_val and y_val must be given together"),
        ({"n_alphas": 0, "max_nodes": 9}, ValueError, "n_alphas must be a whole number"),
        ({"rule": "leaf"}, ValueError, "rule must be None or 'subtree' or 'oblivious' or"),
        ({"weighting": "leaf"}, ValueError, "weighting must be 'node', 'depth' or an array"),
        ({"joint": "lasso"}, ValueError, "joint must be None or 'ridge' or 'subset'"),
        ({"polish": True}, ValueError, "polish must be None or"),
        ({"local_search": 1}, ValueError, "local_search must be True or False or"),
        ({"alpha2": -0.1}, ValueError, "alpha2 must be a finite number, not negative"),
        ({"max_iter": 0}, ValueError, "max_iter must be a whole number, at least 1"),
        ({"solver": "cplex"}, ValueError, "solver must be 'heuristic' or"),
        ({"n_jobs": 0}, ValueError, "n_jobs must be None or a whole number but 0"),
        ({"alpah": 1.0}, TypeError, "no option 'alpah'. Is 'alpha' meant. How .*: rule, refit"),
        ({"sample_weight": np.ones(3)}, ValueError, "one entry for each of the 300 rows"),
        ({"sample_weight": -np.ones(300)}, ValueError, "not negative"),
    ],
    ids=str,
)
def test_bad_calls_are_refused_with_a_reason(call, error, complaint):
    with pytest.raises(error, match=complaint):
        fp.prune(FOREST, X, Y, **call)


def test_bad_data_is_refused_with_a_reason():
    with pytest.raises(ValueError, match=r"y must have shape \(300,\)"):
        fp.prune(FOREST, X, Y[:-1])
    with pytest.raises(ValueError, match="y must be finite"):
        fp.prune(FOREST, X, np.where(np.arange(len(Y)) == 3, np.nan, Y))
    with pytest.raises(ValueError, match=r"y must be at most 1e\+140 in size"):
        fp.prune(FOREST, X, 1e300 * Y)
    assert fp.prune(FOREST, X, 1e130 * Y, max_nodes=20).n_nodes <= 20
    labels = np.where(Y > 15, "high", "low")
    for wrong in (labels, labels.astype(object), Y.astype(str), Y + 1j, Y.astype("M8[D]")):
        with pytest.raises(ValueError, match="y must hold numbers, as this model predicts them"):
            fp.prune(FOREST, X, wrong)
    with pytest.raises(ValueError, match="3 columns, but the model was trained on 10"):
        fp.prune(FOREST, X[:, :3], Y)
    with pytest.raises(fp.UnsupportedModelError):
        fp.prune(["a model"], X, Y)
    with pytest.raises(FileNotFoundError, match="there is no file a model"):
        fp.prune("a model", X, Y)


@pytest.mark.parametrize("alphas", [[], [-1.0], [np.inf], [[1.0]], 3.0])
def test_bad_alphas_are_refused(alphas):
    with pytest.raises(ValueError, match="alphas must be a list of finite numbers"):
        fp.prune_path(FOREST, X, Y, alphas=alphas)


def test_a_path_takes_max_trees_only_to_pick_trees():
    with pytest.raises(ValueError, match=r"use path.select\(max_trees=...\)"):
        fp.prune_path(FOREST, X, Y, max_trees=3)


def test_pruned_forests_can_be_shown_and_pickled():
    small = fp.prune(FOREST, X, Y, alpha=0.5)
    assert repr(small).startswith(f"PrunedForest({small.n_trees} of 12 trees, ")
    again = pickle.loads(pickle.dumps(small))
    np.testing.assert_array_equal(again.predict(X), small.predict(X))


def test_trees_that_are_constant_on_the_rows_are_polished_away():
    model = GradientBoostingRegressor(
        n_estimators=60, max_depth=2, learning_rate=0.3, subsample=0.5, random_state=1
    ).fit(X, Y)
    near = np.flatnonzero((X[:, 3] < 0.4) & (X[:, 0] < 0.5))
    for seed in range(6):
        rows = np.random.default_rng(seed).permutation(near)[:25]
        assert any(np.ptp(tree.predict(X[rows])) == 0.0 for tree in model.estimators_[:, 0])
        for options in ({"polish": "subset"}, {"polish": "ridge", "alpha2": 0.0}):
            small = fp.prune(model, X[rows], Y[rows], alpha=0.01, **options)
            loss = 1 - r2_score(Y[rows], small.predict(X[rows]))
            assert small.loss == pytest.approx(loss, abs=1e-6)


def test_a_budget_of_trees_does_not_cut_them_to_stumps():
    small = fp.prune(FOREST, X, Y, max_trees=3, polish="ridge")
    assert small.n_trees <= 3
    assert small.max_depth > 2
    assert small.loss < 0.3


def test_a_tolerance_of_zero_takes_what_is_as_good_as_the_full_model():
    small = fp.prune(MODELS[3], X, Y, tolerance=0, X_val=X_VAL, y_val=Y_VAL)
    assert r2_score(Y_VAL, small.predict(X_VAL)) >= MODELS[3].score(X_VAL, Y_VAL) - 1e-8


def test_a_tolerance_is_about_the_original_even_if_the_depth_is_limited():
    path = fp.prune_path(FOREST, X, Y, max_depth=2, X_val=X_VAL, y_val=Y_VAL, n_alphas=5)
    assert path.validation.full == pytest.approx(FOREST.score(X_VAL, Y_VAL))
    with pytest.raises(ValueError, match="which needs tolerance="):
        fp.prune(FOREST, X, Y, max_depth=1, tolerance=0.02, X_val=X_VAL, y_val=Y_VAL)


def test_costs_made_for_the_forest_can_be_used_with_a_limit_of_depth():
    forest = fp.Forest.from_model(FOREST)
    a_layer, a_node = np.ones((12, 6)), np.ones(forest.n_nodes)
    for rule, costs in (("layer", a_layer), ("layer", a_node), ("subtree", a_node)):
        small = fp.prune(FOREST, X, Y, alpha=0.2, max_depth=2, rule=rule, weighting=costs)
        assert 0 < small.max_depth <= 2


def test_the_result_does_not_depend_on_the_number_of_threads():
    rows, target = make_friedman1(4200, noise=3.0, random_state=0)
    model = RandomForestRegressor(24, max_depth=7, max_features=1, random_state=0, n_jobs=2)
    model.fit(rows, target)
    results = [
        fp.prune(
            model,
            rows,
            target,
            alpha=0.1,
            rule="layer",
            joint="ridge",
            local_search=False,
            n_jobs=n,
        )
        for n in (1, 2, 5)
    ]
    for other in results[1:]:
        np.testing.assert_array_equal(other.depths, results[0].depths)
        np.testing.assert_array_equal(other.weights, results[0].weights)


def test_a_small_pipeline_neither_holds_the_large_forest_nor_shares_its_transformers():
    pipeline = make_pipeline(StandardScaler(), RandomForestRegressor(30, random_state=0)).fit(X, Y)
    small = fp.prune(pipeline, X, Y, max_nodes=50)
    assert len(pickle.dumps(small)) < 0.1 * len(pickle.dumps(pipeline))
    means = pipeline[0].mean_.copy()
    small.to_native().fit(X + 100, Y)
    np.testing.assert_array_equal(pipeline[0].mean_, means)


def test_validation_rows_alone_choose_the_best():
    small = fp.prune(MODELS[3], X, Y, X_val=X_VAL, y_val=Y_VAL, shrinkage=10.0)
    path = fp.prune_path(MODELS[3], X, Y, shrinkage=10.0)
    assert small.alpha == path.alphas[np.argmax(path.score(X_VAL, Y_VAL))]
    weights = np.where(X_VAL[:, 0] > 0.5, 1.0, 0.0)
    garbage = np.where(weights > 0, Y_VAL, 1e6)
    picks = [
        fp.prune(MODELS[3], X, Y, X_val=X_VAL, y_val=y, sample_weight_val=weights)
        for y in (Y_VAL, garbage)
    ]
    assert picks[0].alpha == picks[1].alpha
    with pytest.raises(ValueError, match="alpha and X_val exclude each other"):
        fp.prune(FOREST, X, Y, alpha=1.0, X_val=X_VAL, y_val=Y_VAL)


def test_an_exact_solver_that_is_missing_is_told_at_once(monkeypatch):
    from forestprune.polishing.subset import exact as subset_exact

    monkeypatch.setitem(subset_exact.EXACT, "scip", ("no_such_module", "pip install it"))
    monkeypatch.setattr(fp.Forest, "from_model", lambda model: pytest.fail("too late"))
    with pytest.raises(ImportError, match="pip install it"):
        fp.prune(FOREST, X, Y, polish="subset", solver="scip")


def test_what_is_inside_a_path_cannot_be_changed():
    small = fp.prune_path(FOREST, X, Y, n_alphas=4)[2]
    for array in (small.depths, small.weights):
        with pytest.raises(ValueError, match="read-only"):
            array[:] = 0


@pytest.mark.parametrize("asked", [{"tolerance": 0.1}, {"one_standard_error": True}])
def test_who_validates_with_the_rows_to_prune_with_is_warned(asked):
    with pytest.warns(UserWarning, match="give rows that it was not trained on"):
        fp.prune(FOREST, X, Y, X_val=X, y_val=Y, n_alphas=5, **asked)
    fp.prune(FOREST, X, Y, X_val=X_VAL, y_val=Y_VAL, n_alphas=5, **asked)  # which does not warn
