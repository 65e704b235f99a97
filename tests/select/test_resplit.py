"""Models with new splits beside those that are only pruned, and the choice between them."""

import numpy as np
import pytest
from monotone import turns
from sklearn.datasets import make_regression
from sklearn.ensemble import (
    GradientBoostingRegressor,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.metrics import r2_score

import forestprune as fp
from forestprune.polishing.split import memory
from forestprune.select import resplit, split_polish
from forestprune.select.path import PruningPath
from forestprune.select.preference import SURE


def data(m=600, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, 5))
    y = X[:, 0] + np.abs(X[:, 1]) + X[:, 2] * (X[:, 3] > 0) + 0.3 * rng.normal(size=m)
    return X, y


X, Y = data()
X_VAL, Y_VAL = data(seed=1)
HELD_OUT = {"X_val": X_VAL, "y_val": Y_VAL}


@pytest.fixture(scope="module")
def forest():
    return RandomForestRegressor(10, min_samples_leaf=3, random_state=0).fit(X, Y)


def r2(model, rows=X, y=Y):
    return r2_score(y, model.predict(rows))


def shrinkages_of(small):
    """Return the shrinkages by which models with new splits were made."""
    return {p.report["shrinkage"] for p in small.path.points if p.forest is not None}


def is_new(model):
    new = model.forest.node_extras.get("new_split")
    return new is not None and bool(new.any())


BUDGETS = {
    "nodes": {"max_nodes": 60},
    "trees": {"max_trees": 3},
    "depth": {"max_nodes": 100, "max_depth": 3},
    "bytes": {"max_bytes": 20_000, "format": "joblib"},
}


@pytest.mark.parametrize("validated", [False, True])
@pytest.mark.parametrize("name", BUDGETS)
def test_budgets_are_kept(forest, name, validated):
    budget = BUDGETS[name]
    choosing = HELD_OUT if validated else {"shrinkage": 30.0}
    small = fp.prune(forest, X, Y, polish="split", **budget, **choosing)
    assert small.n_nodes <= budget.get("max_nodes", np.inf)
    assert small.n_trees <= budget.get("max_trees", np.inf)
    assert small.forest.max_depth <= budget.get("max_depth", np.inf)
    assert small.n_bytes <= budget.get("max_bytes", np.inf)
    assert is_new(small) or validated
    limits = {what: most for what, most in budget.items() if what != "format"}
    chosen = small.path.select(**limits)
    assert chosen.n_nodes <= budget.get("max_nodes", np.inf)
    assert chosen.n_trees <= budget.get("max_trees", np.inf)
    np.testing.assert_allclose(small.to_native().predict(X), small.predict(X))


def test_without_validation_rows_some_rows_choose_the_shrinkage(forest):
    small = fp.prune(forest, X, Y, max_nodes=60, polish="split")
    assert is_new(small)
    (chosen,) = shrinkages_of(small)
    # What is put aside says the same as validation rows that are those very rows.
    order = np.random.default_rng(0).permutation(len(Y))
    held = np.arange(len(Y)) % 4 == 3
    some, others = np.sort(order[~held]), np.sort(order[held])
    native = fp.prune(forest, X, Y, max_nodes=60).to_native()
    parts = {"X_val": X[others], "y_val": Y[others]}
    path = fp.polish(native, X[some], Y[some], **parts).path
    scores = {
        point.report["shrinkage"]: score
        for point, score in zip(path.points, path.validation.scores, strict=True)
        if point.forest is not None
    }
    assert len(scores) == 3
    best = fp.polish(native, X, Y)
    assert shrinkages_of(best) == {max(scores, key=scores.get)}
    assert chosen in {6.0, 30.0, 150.0, 750.0}


@pytest.mark.parametrize(("best", "polished"), [(1, 1), (-1, 2)])
def test_a_wider_model_is_polished_only_if_part_of_the_rows_says_so(
    forest, monkeypatch, best, polished
):
    """The last of those to choose from is made of one; the first is the model as it is."""
    monkeypatch.setattr(resplit.Preference, "among", lambda _, points: points[best])
    small = fp.prune(forest, X, Y, max_nodes=60, polish="split")
    assert is_new(small)
    assert sum(point.forest is not None for point in small.path.points) == polished


def test_a_shrinkage_that_is_given_is_taken_without_validation_rows(forest):
    mine = fp.prune(forest, X, Y, max_nodes=60, polish="split", shrinkage=10.0)
    assert is_new(mine)
    assert shrinkages_of(mine) == {10.0}
    plain = fp.prune(forest, X, Y, max_nodes=60, shrinkage=10.0)
    assert r2(mine) > r2(plain)


def test_few_rows_are_no_reason_for_new_splits(forest):
    some = slice(79)
    assert not is_new(fp.prune(forest, X[some], Y[some], max_nodes=60, polish="split"))


def test_validation_rows_take_new_splits_only_if_they_are_better_for_sure(forest):
    small = fp.prune(forest, X, Y, max_nodes=60, polish="split", **HELD_OUT)
    plain = fp.prune(forest, X, Y, max_nodes=60, **HELD_OUT)
    assert is_new(small)
    losses = [(each.predict(X_VAL) - Y_VAL) ** 2 for each in (plain, small)]
    gained = losses[0] - losses[1]
    assert gained.mean() > SURE * gained.std() / np.sqrt(gained.size)


def test_polish_keeps_a_model_that_is_better_as_it_is():
    """Rows to polish with that have nothing to do with those that judge."""
    model = GradientBoostingRegressor(n_estimators=5, random_state=0).fit(X_VAL, Y_VAL)
    noise = np.random.default_rng(0).permutation(Y)
    same = fp.polish(model, X, noise, **HELD_OUT)
    assert not is_new(same)
    np.testing.assert_allclose(same.predict(X), model.predict(X))
    assert is_new(fp.polish(model, X, noise))
    assert is_new(fp.polish(model, X, Y, shrinkage=5.0))


@pytest.mark.parametrize("tolerance", [0.1, 0.02])
def test_the_smallest_model_that_is_good_enough_after_polishing_comes_back(forest, tolerance):
    small = fp.prune(forest, X, Y, tolerance=tolerance, polish="split", **HELD_OUT)
    plain = fp.prune(forest, X, Y, tolerance=tolerance, **HELD_OUT)
    full = r2(forest, X_VAL, Y_VAL)
    assert r2(small, X_VAL, Y_VAL) >= full - tolerance - 1e-12
    assert small.n_nodes <= plain.n_nodes
    path = small.path
    enough = [
        point.n_nodes
        for point, score in zip(path.points, path.validation.scores, strict=True)
        if point.forest is not None and score >= full - tolerance
    ]
    assert small.n_nodes == min([plain.n_nodes, *enough])


def test_a_path_has_models_of_both_kinds(forest, tmp_path):
    path = fp.prune_path(forest, X, Y, n_alphas=15, polish="split", **HELD_OUT)
    new = [point for point in path.points if point.forest is not None]
    assert new
    assert len(new) < len(path)
    for budget in (20, 100, 400):
        chosen = path.select(max_nodes=budget)
        assert chosen.n_nodes <= budget
        within = [p.n_nodes <= budget for p in path.points]
        assert chosen.validation.score == path.validation.scores[within].max()
    assert path.select(tolerance=0.05).validation.score >= r2(forest, X_VAL, Y_VAL) - 0.05
    path.save(tmp_path / "path.npz")
    again = PruningPath.load(tmp_path / "path.npz")
    for i, point in enumerate(path.points):
        assert (point.forest is None) == (again.points[i].forest is None)
        np.testing.assert_array_equal(again[i].predict(X), path[i].predict(X))


# Promises of the original


def test_monotone_models_stay_monotone():
    signs = [1, 0, 0, -1, 0]
    model = HistGradientBoostingRegressor(max_iter=8, monotonic_cst=signs).fit(X, Y)
    classifier = RandomForestClassifier(
        6, min_samples_leaf=5, monotonic_cst=signs, random_state=0
    ).fit(X, Y > 1)
    rng = np.random.default_rng(0)
    for each, y in ((model, Y), (classifier, (Y > 1).astype(int))):
        for small in (
            fp.polish(each, X, y, shrinkage=2.0),
            fp.prune(each, X, y, max_nodes=80, polish="split", shrinkage=2.0),
        ):
            assert is_new(small)
            raw = small.forest.predict
            broken, total = turns(raw, X, signs, rng=rng)
            assert total
            assert broken == 0


@pytest.mark.parametrize("groups", [[{0, 1}, {2, 3, 4}], "pairwise"])
def test_columns_that_must_not_meet_do_not(groups):
    model = HistGradientBoostingRegressor(max_iter=8, interaction_cst=groups).fit(X, Y)
    small = fp.polish(model, X, Y, shrinkage=2.0)
    assert is_new(small)
    f = small.forest
    for tree in range(f.n_trees):
        first = f.offsets[tree]
        ways = [(0, frozenset())]
        while ways:
            v, met = ways.pop()
            if f.left[first + v] < 0:
                most = 2 if groups == "pairwise" else 5
                assert len(met) <= most
                assert groups == "pairwise" or any(met <= group for group in groups)
                continue
            below = met | {int(f.feature[first + v])}
            child = int(f.left[first + v])
            ways += [(child, below), (child + 1, below)]


# Thin input


@pytest.mark.parametrize(
    ("name", "rows", "y"),
    [
        ("one row", 1, None),
        ("fewer rows than leaves", 7, None),
        ("constant target", 300, 2.0),
        ("constant columns", 300, None),
        ("one row that weighs", 300, None),
        ("few rows that weigh", 300, None),
    ],
)
@pytest.mark.parametrize("classes", [False, True])
@pytest.mark.filterwarnings("ignore:Only a constant keeps:UserWarning")
def test_little_to_go_by(name, rows, y, classes):
    if classes and name in ("one row", "constant target", "one row that weighs"):
        pytest.skip("one class is refused")
    some = np.full_like(X[:rows], 0.5) if name == "constant columns" else X[:rows]
    target = np.full(rows, y) if y is not None else Y[:rows]
    weight = None
    if "that weigh" in name:
        weight = np.zeros(rows)
        weight[5 : 6 if name.startswith("one") else 60] = 1.0
    if classes:
        model = RandomForestClassifier(5, random_state=0).fit(X, Y > 1)
        target = target > 1
    else:
        model = RandomForestRegressor(5, random_state=0).fit(X, Y)
    for small in (
        fp.polish(model, some, target, sample_weight=weight, shrinkage=1.0),
        fp.prune(model, some, target, sample_weight=weight, max_nodes=40, polish="split"),
    ):
        assert np.isfinite(small.forest.predict(X)).all()
        native = small.to_native()
        assert (native.predict(X) == small.predict(X)).all() or not classes


def test_a_model_that_is_only_roots_stays_so():
    model = RandomForestRegressor(3, max_leaf_nodes=2, min_samples_leaf=0.5).fit(X[:3], Y[:3])
    roots = fp.Forest.from_model(model).truncate(0)
    small = fp.polish(roots, X, Y)
    np.testing.assert_allclose(small.predict(X), roots.predict(X))
    assert small.n_trees == 0


def test_a_tree_alone_gets_better_splits():
    more, target = make_regression(400, 5, random_state=0)
    model = GradientBoostingRegressor(n_estimators=1, learning_rate=1.0).fit(more, target)
    small = fp.polish(model, more, target, shrinkage=0.0)
    assert r2(small, more, target) >= r2(model, more, target)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("validated", [True, False])
def test_what_new_splits_make_of_a_model_must_keep_to_the_budget_too(
    forest, monkeypatch, validated
):
    """It may take more bytes than the model did, though it has no more nodes."""
    how = HELD_OUT if validated else {"shrinkage": 30.0}
    sizes = []

    def keeps_to(source, budget, point):
        assert budget.max_bytes == 20_000
        sizes.append(point.n_nodes)
        return point.n_nodes <= most

    monkeypatch.setattr(resplit, "keeps_to", keeps_to)
    most = 10_000
    wide = fp.prune(forest, X, Y, max_bytes=20_000, polish="split", **how)
    most = wide.n_nodes // 2
    small = fp.prune(forest, X, Y, max_bytes=20_000, polish="split", **how)
    assert is_new(small)
    assert 0.6 * most < small.n_nodes <= most
    most, sizes = -1, []
    assert not is_new(fp.prune(forest, X, Y, max_bytes=20_000, polish="split", **how))
    assert len(sizes) > 1


def test_what_does_not_fit_into_memory_is_refused_before_it_is_taken(forest, monkeypatch):
    monkeypatch.setattr(memory, "_free_memory", lambda: 1_000)
    monkeypatch.setattr(split_polish, "make_bins", None)  # which is not reached
    wanted = rf"for {len(Y)} rows of {X.shape[1]} columns .* has 0.0 GB left. Give fewer rows"
    with pytest.raises(ValueError, match=wanted):
        fp.prune(forest, X, Y, max_nodes=60, polish="split", **HELD_OUT)


def test_columns_of_few_bins_need_less_memory(forest, monkeypatch):
    monkeypatch.setattr(memory, "_free_memory", lambda: 10**8)
    source = fp.Forest.from_model(forest)
    memory.require_memory(source, len(Y), 1_000)
    with pytest.raises(ValueError, match="GB left"):
        memory.require_memory(source, len(Y), 10**7)
