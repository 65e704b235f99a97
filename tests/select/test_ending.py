"""Where a path ends: not before everything is kept, a budget is filled, or it does not pay."""

from itertools import islice

import numpy as np
import pytest
from sklearn.datasets import make_friedman1
from sklearn.ensemble import GradientBoostingRegressor, RandomForestRegressor
from sklearn.metrics import r2_score

import forestprune as fp
from forestprune.select.ending import LEAST, PAYS, Falling
from forestprune.select.path import breaks_off


def rows(seed, noise, n=400):
    """Return rows whose first feature explains nearly everything: alphas span many decades."""
    X, y = make_friedman1(n, noise=noise, random_state=seed)
    return X, y + 300.0 * X[:, 5]


X, Y = rows(0, 0.3)
X_VAL, Y_VAL = rows(1, 0.3)
X_NOISY, Y_NOISY = rows(0, 30.0)
X_NOISY_VAL, Y_NOISY_VAL = rows(1, 30.0)
MODEL = GradientBoostingRegressor(n_estimators=150, max_depth=4, random_state=0).fit(X, Y)
NOISY = RandomForestRegressor(20, random_state=0).fit(X_NOISY, Y_NOISY)


def best_of_a_long_path(model, X, y, X_val, y_val, shrinkage):
    """Return the best validation score of a path that nothing ends, and its standard error."""
    first = fp.prune_path(model, X, y, n_alphas=2, shrinkage=shrinkage).alphas[0]
    alphas = np.geomspace(first, 1e-10 * first, 300)
    path = fp.prune_path(model, X, y, alphas=alphas, shrinkage=shrinkage, X_val=X_val, y_val=y_val)
    best = np.argmax(path.validation.scores)
    return path.validation.scores[best], path.validation.standard_errors[best]


def test_alphas_fall_faster_beyond_the_grid():
    grid = np.geomspace(10.0, 1e-4, 100)
    alphas = np.array(list(islice(Falling(grid), 120)))
    np.testing.assert_array_equal(alphas[:100], grid)
    step = grid[1] / grid[0]
    np.testing.assert_allclose(alphas[100:] / alphas[99:-1], step**5)
    assert len(Falling(grid)) == 100
    # Never by more than a half, unless the grid does.
    for given, expected in (([4.0, 2.8], 0.5), ([4.0, 1.0], 0.25), ([4.0], 0.5)):
        after = list(islice(Falling(np.array(given)), len(given) + 1))[-2:]
        assert after[1] / after[0] == pytest.approx(expected)
    assert list(Falling(np.zeros(1))) == [0.0]


def test_a_path_goes_on_until_it_is_as_good_as_the_full_model():
    path = fp.prune_path(MODEL, X, Y, n_alphas=30)
    beyond = path.alphas < 1e-5 * path.alphas[0] * (1 - 1e-9)
    assert beyond[:-1].sum() >= 3
    assert path.n_nodes[~beyond].max() < 0.8 * path.n_nodes[beyond][:-1].max()
    last, before, full = path.points[-2], path.points[-3], path.points[-1]
    assert last.loss <= full.loss or last.alpha <= max(PAYS * last.loss, LEAST)
    assert before.loss > full.loss
    assert before.alpha > max(PAYS * before.loss, LEAST)


def test_a_budget_is_filled_though_the_full_model_fits_no_better():
    full = fp.Forest.from_model(NOISY)
    small = fp.prune(NOISY, X_NOISY, Y_NOISY, max_nodes=full.n_nodes, shrinkage=0.01)
    assert small.loss < 0.9 * (1 - NOISY.score(X_NOISY, Y_NOISY))


@pytest.mark.parametrize("options", [{}, {"rule": "layer"}, {"refit": False}, {"polish": "leaf"}])
def test_the_full_model_comes_last(options):
    path = fp.prune_path(MODEL, X, Y, n_alphas=8, X_val=X_VAL, y_val=Y_VAL, **options)
    assert path.n_nodes[-1] == fp.Forest.from_model(MODEL).n_nodes
    np.testing.assert_allclose(path[-1].predict(X_VAL), MODEL.predict(X_VAL))
    assert path.validation.scores[-1] == pytest.approx(path.validation.full)
    assert path.losses[-1] == pytest.approx(1 - MODEL.score(X, Y))
    assert (path.n_nodes == path.n_nodes[-1]).sum() <= 2


def test_no_tolerance_is_out_of_reach():
    for tolerance in (0.01, 1e-4, 1e-6, 0.0):
        small = fp.prune(MODEL, X, Y, tolerance=tolerance, X_val=X_VAL, y_val=Y_VAL)
        assert r2_score(Y_VAL, small.predict(X_VAL)) >= (
            MODEL.score(X_VAL, Y_VAL) - tolerance - 1e-8
        )


def test_out_of_reach_within_a_budget_says_what_would_do():
    sized = {"X_val": X_VAL, "y_val": Y_VAL, "tolerance": 1e-4}
    needed = fp.prune(MODEL, X, Y, **sized).n_nodes
    with pytest.raises(ValueError, match="No model within max_nodes=15 comes within") as caught:
        fp.prune(MODEL, X, Y, max_nodes=15, **sized)
    assert "which needs tolerance=0." in str(caught.value)
    # Nothing beyond the budget was looked for, so how many nodes it takes is not known.
    assert str(caught.value).endswith(
        "Leave max_nodes=15 out for the smallest that comes as close."
    )
    path = fp.prune_path(MODEL, X, Y, X_val=X_VAL, y_val=Y_VAL)
    smallest = path.select(tolerance=1e-4).n_nodes
    with pytest.raises(ValueError, match=f"as close has {smallest:,} nodes"):
        path.select(tolerance=1e-4, max_nodes=15)
    assert needed <= smallest


def test_a_path_breaks_off_where_a_budget_or_a_tolerance_is_reached():
    held_out = {"X_val": X_VAL, "y_val": Y_VAL}
    for wanted in (
        {"max_nodes": 100},
        {"max_nodes": 100, **held_out},
        {"tolerance": 0.1, **held_out},
    ):
        small = fp.prune(MODEL, X, Y, **wanted)
        assert breaks_off(small.path)
        assert small.path.n_nodes[-1] == fp.Forest.from_model(MODEL).n_nodes
        assert not breaks_off(small.path[:-1])
    for sized in ({}, held_out):
        assert not breaks_off(fp.prune_path(MODEL, X, Y, n_alphas=30, **sized))
    assert not breaks_off(fp.baselines.fewer_trees(MODEL, X, Y))
    noisy = {"X_val": X_NOISY_VAL, "y_val": Y_NOISY_VAL}
    assert not breaks_off(fp.prune(NOISY, X_NOISY, Y_NOISY, tolerance=0.0, **noisy).path)


@pytest.mark.parametrize("model", [MODEL, NOISY], ids=["clear", "noisy"])
def test_nothing_is_better_further_on(model):
    data = (X, Y, X_VAL, Y_VAL) if model is MODEL else (X_NOISY, Y_NOISY, X_NOISY_VAL, Y_NOISY_VAL)
    taken = fp.prune(model, *data[:2], shrinkage=100.0, X_val=data[2], y_val=data[3])
    longest, error = best_of_a_long_path(model, *data, 100.0)
    assert r2_score(data[3], taken.predict(data[2])) >= longest - 0.5 * error


@pytest.mark.parametrize("model", [MODEL, NOISY], ids=["clear", "noisy"])
def test_a_larger_budget_is_no_worse_on_validation_rows(model):
    data = (X, Y, X_VAL, Y_VAL) if model is MODEL else (X_NOISY, Y_NOISY, X_NOISY_VAL, Y_NOISY_VAL)
    everything, scores = fp.Forest.from_model(model).n_nodes, []
    for budget in (30, 100, 300, 1000, everything):
        small = fp.prune(model, *data[:2], max_nodes=budget, X_val=data[2], y_val=data[3])
        assert small.n_nodes <= budget
        scores.append(r2_score(data[3], small.predict(data[2])))
    assert (np.diff(scores) >= 0).all()


@pytest.mark.parametrize("options", [{}, {"refit": False}, {"polish": "ridge"}])
def test_a_single_alpha_gives_what_the_path_has_there(options):
    path = fp.prune_path(MODEL, X, Y, n_alphas=20, **options)
    for i in (0, 5, 12, 19, len(path) - 2):
        alone = fp.prune(MODEL, X, Y, alpha=path.alphas[i], n_alphas=20, **options)
        assert alone.n_nodes == path.n_nodes[i]
        assert alone.objective == pytest.approx(path.objectives[i], rel=1e-9)
        np.testing.assert_allclose(alone.predict(X), path[i].predict(X), rtol=1e-9)


def test_between_two_alphas_it_is_as_good_as_the_path():
    path = fp.prune_path(MODEL, X, Y)
    for i in (20, 50, 80):
        alpha = float(np.sqrt(path.alphas[i] * path.alphas[i + 1]))
        alone = fp.prune(MODEL, X, Y, alpha=alpha)
        cost = (path.n_nodes[i] - path.n_trees[i]) / (path.n_nodes[-1] - path.n_trees[-1])
        # What the path has a step before, at this alpha, is no better.
        assert alone.objective <= path.objectives[i] - (path.alphas[i] - alpha) * cost + 1e-9


def test_a_grid_that_hardly_falls_is_left_as_fast_as_others():
    # Cut at depths, the trees of a forest all want to enter, and to be whole, at the same alpha.
    X, y = make_friedman1(100, noise=0.3, random_state=0)
    model = RandomForestRegressor(3, random_state=0).fit(X, y)
    assert len(fp.prune_path(model, X, y, rule="layer", n_alphas=30)) < 100
    for grid in (np.geomspace(4.0, 4.0 * (1 - 1e-9), 100), np.full(100, 4.0)):
        after = list(islice(Falling(grid), 102))[-2:]
        assert after[1] / after[0] == pytest.approx(1e-5 ** (5 / 99))


@pytest.mark.parametrize("wanted", [{}, {"max_nodes": 10**6}, {"one_standard_error": True}])
def test_the_full_model_is_scored_where_the_path_comes_to_it(wanted):
    model = GradientBoostingRegressor(n_estimators=5, random_state=0).fit(X, Y)
    small = fp.prune(model, X, Y, refit=False, X_val=X_VAL, y_val=Y_VAL, **wanted)
    path = small.path
    assert path.n_nodes.max() == fp.Forest.from_model(model).n_nodes
    assert path.validation.scores == pytest.approx(path.score(X_VAL, Y_VAL))


@pytest.mark.parametrize("options", [{}, {"refit": False}, {"rule": "layer"}])
@pytest.mark.parametrize("budget", [{"max_trees": 2}, {"max_trees": 5}, {"max_nodes": 60}])
def test_a_tolerance_that_a_budget_leaves_room_for_is_met(options, budget):
    sized = {"n_alphas": 25, "X_val": X_VAL, "y_val": Y_VAL} | budget | options
    model = GradientBoostingRegressor(n_estimators=20, random_state=0).fit(X, Y)
    shortfall = fp.prune(model, X, Y, **sized).validation.shortfall
    tolerance = max(shortfall, 0.0) + 1e-6
    small = fp.prune(model, X, Y, tolerance=tolerance, **sized)
    assert small.validation.shortfall <= tolerance
    assert small.n_trees <= budget.get("max_trees", 20)
    assert small.n_nodes <= budget.get("max_nodes", 10**6)
