"""Monotone and interaction constraints of every library: read, kept by prunings, and shown."""

import json
from dataclasses import replace

import naive
import numpy as np
import pytest
from effort import EXAMPLES
from hypothesis import given, settings
from hypothesis import strategies as st
from monotone import turns
from sklearn.datasets import make_friedman1
from sklearn.ensemble import (
    BaggingRegressor,
    ExtraTreesRegressor,
    HistGradientBoostingRegressor,
    RandomForestRegressor,
)
from sklearn.tree import DecisionTreeRegressor

import forestprune as fp
from forestprune.text import constraints, constraints_in_words

# Not all of them agree with the data, so that refits pull at the constraints.
SIGNS = (1, 0, -1, 1, 0)
NAMES = ("a", "b", "c", "d", "e")
X, Y = make_friedman1(400, n_features=5, noise=2.0, random_state=0)
X_VAL, Y_VAL = make_friedman1(200, n_features=5, noise=2.0, random_state=1)

RULES = [
    {},
    {"refit": False},
    {"shrinkage": 0.0},
    {"polish": "ridge"},
    {"polish": "leaf"},
    {"rule": "subtree"},
    {"rule": "subtree", "polish": "leaf"},
    {"rule": "layer"},
    {"rule": "layer", "polish": "leaf"},
    {"rule": "layer", "polish": "ridge"},
    {"rule": "layer", "joint": "ridge"},
    {"rule": "layer", "joint": "subset"},
]


def scikit_learn(cls, **params):
    def train(X, y, signs, seed):
        return cls(**params, monotonic_cst=list(signs), random_state=seed).fit(X, y)

    return train


def bagging(X, y, signs, seed):
    tree = DecisionTreeRegressor(max_depth=6, monotonic_cst=list(signs))
    return BaggingRegressor(tree, 12, random_state=seed).fit(X, y)


def xgboost(X, y, signs, seed):
    library = pytest.importorskip("xgboost")
    params = {"n_estimators": 25, "max_depth": 5, "learning_rate": 0.2, "n_jobs": 1}
    model = library.XGBRegressor(**params, monotone_constraints=tuple(signs), random_state=seed)
    return model.fit(X, y)


def lightgbm(method):
    def train(X, y, signs, seed):
        library = pytest.importorskip("lightgbm")
        params = {"n_estimators": 25, "n_jobs": 1, "verbose": -1, "min_child_samples": 5}
        params |= {"monotone_constraints": list(signs), "monotone_constraints_method": method}
        return library.LGBMRegressor(**params, random_state=seed).fit(X, y)

    return train


def catboost(X, y, signs, seed):
    library = pytest.importorskip("catboost")
    params = {"iterations": 25, "depth": 4, "thread_count": 1, "verbose": 0}
    params |= {"monotone_constraints": list(signs), "allow_writing_files": False}
    return library.CatBoostRegressor(**params, random_seed=seed).fit(X, y)


TRAINED = {
    "random forest": scikit_learn(RandomForestRegressor, n_estimators=12, max_features=0.5),
    "extra trees": scikit_learn(ExtraTreesRegressor, n_estimators=12, max_depth=7),
    "bagging": bagging,
    "histogram boosting": scikit_learn(HistGradientBoostingRegressor, max_iter=25),
    "xgboost": xgboost,
    "lightgbm basic": lightgbm("basic"),
    "lightgbm intermediate": lightgbm("intermediate"),
    "lightgbm advanced": lightgbm("advanced"),
    "catboost": catboost,
}


@pytest.fixture(scope="module", params=TRAINED)
def model(request):
    return TRAINED[request.param](X, Y, SIGNS, 0)


@pytest.mark.sampled(8)
@pytest.mark.parametrize("how", RULES, ids=lambda how: " ".join(map(str, how.values())) or "plain")
def test_pruned_models_keep_their_constraints(model, how):
    rng = np.random.default_rng(0)
    assert fp.Forest.from_model(model).monotone.tolist() == list(SIGNS)
    assert turns(model.predict, X, SIGNS, rng=rng)[0] == 0
    for size in ({"max_nodes": 40}, {"max_nodes": 150, "X_val": X_VAL, "y_val": Y_VAL}):
        small = fp.prune(model, X, Y, n_alphas=15, **size, **how)
        assert small.n_trees
        for predict in (small.predict, small.to_native().predict):
            broken, lines = turns(predict, X, SIGNS, rng=rng)
            assert broken == 0, f"{broken} of {lines} lines turn back"


@pytest.mark.deep
@settings(max_examples=max(EXAMPLES // 10, 3))
@given(
    name=st.sampled_from(list(TRAINED)),
    signs=st.lists(st.sampled_from([-1, 0, 1]), min_size=5, max_size=5).filter(any),
    how=st.sampled_from(RULES),
    seed=st.integers(0, 1000),
    nodes=st.integers(5, 400),
)
def test_whatever_is_drawn_is_kept(name, signs, how, seed, nodes):
    rng = np.random.default_rng(seed)
    rows = rng.integers(0, len(X), 150)
    model = TRAINED[name](X[rows], Y[rows] - X[rows] @ rng.normal(0, 10, 5), signs, seed)
    weight = rng.integers(0, 3, 150) if seed % 2 else None
    target = None if seed % 3 == 0 else Y[rows]
    small = fp.prune(
        model, X[rows], target, max_nodes=nodes, sample_weight=weight, n_alphas=10, **how
    )
    assert turns(small.to_native().predict, X, signs, rng=rng)[0] == 0


def test_without_boxes_refits_would_break_constraints():
    """What is tested above can fail: a model that does not say what it promised is not spared."""
    forest = fp.Forest.from_model(TRAINED["random forest"](X, Y, SIGNS, 0))
    silent = replace(forest, origin=replace(forest.origin, monotone=()))
    small = fp.prune(silent, X, Y, max_nodes=300, shrinkage=0.0)
    assert turns(small.predict, X, SIGNS, rng=np.random.default_rng(0))[0] > 0


def test_what_cannot_keep_a_constraint_is_refused():
    model = TRAINED["xgboost"](X, Y, SIGNS, 0)
    with pytest.raises(ValueError, match=r"monotone in 'x0', 'x3', 'x2'.*polish='ridge'"):
        fp.prune(model, X, Y, max_trees=3, polish="subset")
    with pytest.raises(ValueError, match="this baseline could break"):
        fp.baselines.best_trees(model, X, Y, max_nodes=50, solver="heuristic")


@pytest.mark.parametrize("name", ["fewer_trees", "cost_complexity", "lasso", "global_refinement"])
def test_baselines_keep_their_constraints(name):
    model = TRAINED["xgboost"](X, Y, SIGNS, 0)
    options = {"share": 0.5} if name == "global_refinement" else {}
    path = getattr(fp.baselines, name)(model, X, Y, **options)
    for max_nodes in (100, 300):
        small = path.select(max_nodes=max_nodes)
        assert small.n_trees
        assert small.weights.min() >= 0.0
        assert turns(small.predict, X, SIGNS, rng=np.random.default_rng(0))[0] == 0


@pytest.mark.parametrize("ending", [".json", ".ubj"])
def test_xgboost_files_do_not_say_but_trees_do(tmp_path, ending):
    model = TRAINED["xgboost"](X, Y, SIGNS, 0)
    model.save_model(tmp_path / f"model{ending}")
    forest = fp.Forest.from_file(tmp_path / f"model{ending}")
    assert [s for s, given in zip(forest.monotone, SIGNS, strict=True) if given] == [1, -1, 1]
    small = fp.prune(tmp_path / f"model{ending}", X, Y, max_nodes=150)
    assert turns(small.predict, X, SIGNS, rng=np.random.default_rng(0))[0] == 0


def test_trained_in_this_process_xgboost_says_itself():
    library = pytest.importorskip("xgboost")
    stumps = {"n_estimators": 30, "max_depth": 1, "n_jobs": 1}
    assert not fp.Forest.from_model(library.XGBRegressor(**stumps).fit(X, X[:, 0])).monotone.size


def test_columns_of_bagged_subsets_are_not_those_of_the_model():
    tree = DecisionTreeRegressor(max_depth=4, monotonic_cst=[1, 0])
    # So many that each column is the first in some tree, and the second in another.
    model = BaggingRegressor(tree, 30, max_features=2, random_state=0).fit(X, Y)
    assert not fp.Forest.from_model(model).monotone.size


def test_what_bagged_subsets_agree_on_is_kept():
    tree = DecisionTreeRegressor(max_depth=4, monotonic_cst=[1, 1])
    model = BaggingRegressor(tree, 12, max_features=2, random_state=0).fit(X, Y)
    signs = fp.Forest.from_model(model).monotone.tolist()
    assert signs == [1, 1, 1, 1, 1]
    small = fp.prune(model, X, -Y, max_nodes=100, shrinkage=0.0)
    assert turns(small.predict, X, signs, rng=np.random.default_rng(0))[0] == 0


def frame():
    pd = pytest.importorskip("pandas")
    return pd.DataFrame(X, columns=list(NAMES))


def named(library):
    """Return a model whose constraints are given by names, or are about interactions."""
    if library == "histogram boosting":
        return HistGradientBoostingRegressor(
            max_iter=5, monotonic_cst={"c": -1, "a": 1}, interaction_cst=[[0, 1], [2, 3]]
        ).fit(frame(), Y)
    if library == "xgboost":
        xgb = pytest.importorskip("xgboost")
        return xgb.XGBRegressor(
            n_estimators=5,
            max_depth=4,
            monotone_constraints={"c": -1, "a": 1},
            interaction_constraints=[["a", "b"], ["c", "d"], ["e"]],
        ).fit(frame(), Y)
    if library == "lightgbm":
        lgb = pytest.importorskip("lightgbm")
        return lgb.LGBMRegressor(
            n_estimators=5,
            verbose=-1,
            monotone_constraints=[1, 0, -1, 0, 0],
            interaction_constraints=[[0, 1], [2, 3], [4]],
        ).fit(frame(), Y)
    cat = pytest.importorskip("catboost")
    quiet = {"verbose": 0, "allow_writing_files": False, "iterations": 5}
    return cat.CatBoostRegressor(**quiet, monotone_constraints={"c": -1, "a": 1}).fit(frame(), Y)


@pytest.mark.parametrize("library", ["histogram boosting", "xgboost", "lightgbm", "catboost"])
def test_constraints_are_read_and_said_by_name(library):
    forest = fp.Forest.from_model(named(library))
    assert forest.monotone.tolist() == [1, 0, -1, 0, 0]
    found = constraints(forest)
    json.dumps(found)
    assert found["monotone"] == {"rising": ["a"], "falling": ["c"]}
    words = "only rising with a; only falling with c"
    if library == "catboost":
        assert found["interactions"] == []
        assert constraints_in_words(forest) == words
        return
    assert found["interactions"] == [["a", "b"], ["c", "d"], ["e"]]
    assert constraints_in_words(forest) == f"{words}; features meet only within (a, b), (c, d), (e)"


@pytest.mark.parametrize("library", ["histogram boosting", "xgboost", "lightgbm"])
@pytest.mark.parametrize("how", [{}, {"polish": "leaf"}, {"rule": "layer"}])
def test_interaction_constraints_hold_by_themselves(library, how):
    groups = [{0, 1}, {2, 3}, {4}]
    small = fp.prune(named(library), frame(), Y, max_nodes=60, **how)
    forest = fp.Forest.from_model(small.to_native())
    met = set()
    for root in naive.from_forest(forest):
        for features in ways(root):
            assert any(features <= group for group in groups)
            met |= {len(features)}
    assert max(met) == 2


def ways(node, features=frozenset()):
    """Yield the features that are asked on the way to each leaf."""
    if node.is_leaf:
        yield features
        return
    for child in (node.left, node.right):
        yield from ways(child, features | {node.feature})


@pytest.mark.parametrize("given", ["pairwise", "no_interactions"])
def test_interactions_by_a_word(given):
    model = HistGradientBoostingRegressor(max_iter=2, interaction_cst=given).fit(X, Y)
    forest = fp.Forest.from_model(model)
    if given == "pairwise":
        assert forest.origin.interactions == "pairwise"
        assert constraints_in_words(forest) == "no more than two features meet in a tree"
    else:
        assert forest.origin.interactions == ((0,), (1,), (2,), (3,), (4,))
