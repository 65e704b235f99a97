"""Local search against enumeration, and against the paper's algorithm taken literally."""

import itertools
from dataclasses import replace

import naive
import numpy as np
import pytest
from hypothesis import assume, given
from literal import Literal
from sklearn.datasets import make_friedman1, make_regression
from sklearn.ensemble import (
    ExtraTreesRegressor,
    GradientBoostingRegressor,
    RandomForestRegressor,
)
from strategies import alphas, cases

from forestprune import Forest, encode, prune, prune_path
from forestprune.options import Options
from forestprune.solve.descent import Descent
from forestprune.solve.layers.rule import LayerRule
from forestprune.solve.problem import pose


def rule_of(forest, X, y, **options):
    return LayerRule(pose(encode(forest, X), y), Options(rule="layer", **options))


def enumerated(rule, X, alpha):
    """Return the least objective over all cuts of all trees."""
    literal = Literal(rule.problem, X, rule.options.weighting)
    ladder = np.arange(literal.depth)
    choices = [range(depth + 1) for depth in rule.full_depths]
    best = np.inf
    for depths in itertools.product(*choices):
        z = (ladder < np.array(depths)[:, None]).astype(float)
        best = min(best, literal.objective(z, alpha))
    return best


def small_problem(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(30, 3))
    y = X[:, 0] * X[:, 1] + rng.normal(size=30)
    if seed % 2:
        model = RandomForestRegressor(4, max_depth=3, random_state=seed)
    else:
        model = GradientBoostingRegressor(
            n_estimators=5, max_depth=2, learning_rate=0.5, subsample=0.5, random_state=seed
        )
    forest = Forest.from_model(model.fit(X, y))
    weighting = ("node", "depth")[seed // 2 % 2]
    alpha = float(rng.choice([0.05, 0.2, 0.5, 1.0, 2.0]))
    return rule_of(forest, X, y, weighting=weighting), X, alpha


@pytest.mark.parametrize(
    "seeds", [range(60), pytest.param(range(60, 1000), marks=pytest.mark.long)], ids=["few", "many"]
)
def test_small_problems_are_solved_to_the_global_optimum(seeds, capsys):
    counts = {"descent": 0, "with local search": 0}
    total = len(seeds)
    for seed in seeds:
        rule, X, alpha = small_problem(seed)
        best = enumerated(rule, X, alpha)
        descent = Descent(rule)
        descent.descend(alpha, 1000)
        plain = rule.objective(alpha)
        rule.search(descent, alpha, 1000, on_path=False)
        searched = rule.objective(alpha)
        assert best - 1e-9 <= searched <= plain + 1e-12
        counts["descent"] += plain <= best + 1e-9
        counts["with local search"] += searched <= best + 1e-9
    with capsys.disabled():
        shares = ", ".join(f"{name} {count / total:.1%}" for name, count in counts.items())
        print(f"\nglobal optimum in {total} small problems: {shares}")
    assert counts["with local search"] >= 0.97 * total


MODELS = {
    "forest": RandomForestRegressor(30, max_depth=5, max_features=0.5, random_state=0),
    "boosting": GradientBoostingRegressor(
        n_estimators=40, max_depth=4, subsample=0.5, random_state=0
    ),
    "extra trees": ExtraTreesRegressor(15, max_depth=6, random_state=0),
}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("weighting", ["node", "depth"])
@pytest.mark.parametrize("data", ["friedman", pytest.param("linear", marks=pytest.mark.long)])
def test_never_worse_than_the_literal_algorithm(name, weighting, data):
    if data == "friedman":
        X, y = make_friedman1(200, noise=1.0, random_state=0)
    else:
        X, y = make_regression(200, 8, noise=5.0, random_state=0)
    forest = Forest.from_model(MODELS[name].fit(X, y))
    literal = Literal(pose(encode(forest, X), y), X, weighting)
    steps = np.geomspace(20, 0.02, 10)
    path = prune_path(forest, X, y, alphas=steps, rule="layer", weighting=weighting)
    assert len(path) > 5  # it ends once everything is kept
    theirs = literal.path(steps, np.random.default_rng(0))
    for point, z in zip(path.points, theirs, strict=False):
        least = literal.objective(z, point.alpha)
        assert point.objective <= least + 1e-9
        alone = prune(forest, X, y, alpha=point.alpha, rule="layer", weighting=weighting)
        cold = literal.objective(
            literal.solve(point.alpha, random=np.random.default_rng(1)), point.alpha
        )
        assert alone.objective <= cold + 1e-9


@given(cases(joint=(None,), min_trees=1, max_outputs=1), alphas)
def test_the_literal_algorithm_minimises_the_same_objective(case, alpha):
    assume(any(case.depths))
    case.weights = None
    rule = case.layer_rule()
    literal = Literal(rule.problem, case.X, case.weighting)
    z = literal.solve(alpha)
    depths = z.sum(axis=1).astype(int)
    # Rows of z beyond a tree's own depth have nothing to cut.
    depths = np.minimum(depths, case.depths)
    expected = naive.objective(case, depths, [1.0] * len(depths), alpha)
    slack = naive.uncertainty(case, rule.problem, np.ones(len(depths)), expected)
    assert literal.objective(z, alpha) == pytest.approx(expected, rel=1e-9, abs=slack)


@given(cases(max_trees=4), alphas)
def test_searching_never_makes_it_worse(case, alpha):
    for local_search in (True, "random", "correlated"):
        rule = case.layer_rule()
        rule.options = replace(rule.options, local_search=local_search, random_state=0)
        descent = Descent(rule)
        descent.descend(alpha, 100)
        before = rule.objective(alpha)
        rule.search(descent, alpha, 100, on_path=False)
        after = rule.objective(alpha)
        assert after <= before + 1e-12
        expected = naive.objective(case, rule.depths, rule.weights, alpha)
        slack = naive.uncertainty(case, rule.problem, rule.weights, expected)
        assert after == pytest.approx(expected, rel=1e-9, abs=slack)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("local_search", ["random", "correlated"])
def test_the_random_search_finds_more_and_depends_on_the_seed_only(local_search):
    X, y = make_friedman1(200, noise=1.0, random_state=1)
    model = GradientBoostingRegressor(n_estimators=60, max_depth=3, random_state=0).fit(X, y)

    def solve(seed, search=local_search):
        found = prune(
            model,
            X,
            y,
            alpha=0.3,
            rule="layer",
            joint="ridge",
            local_search=search,
            random_state=seed,
        )
        return found.objective, found.depths.tolist()

    plain = solve(0, False)[0]
    assert solve(0) == solve(0)
    assert all(solve(seed)[0] <= plain for seed in range(3))
    assert min(solve(seed)[0] for seed in range(3)) < plain
    assert len({str(solve(seed)) for seed in range(4)}) > 1


def test_what_comes_in_is_the_first_absent_tree_or_the_most_correlated(monkeypatch):
    X, y = make_friedman1(200, noise=1.0, random_state=1)
    forest = Forest.from_model(
        GradientBoostingRegressor(n_estimators=30, max_depth=3, random_state=0).fit(X, y)
    )
    for local_search in ("random", "correlated"):
        rule = rule_of(forest, X, y, local_search=local_search, random_state=0)
        descent = Descent(rule)
        descent.descend(1.0, 100)
        kept, absent = np.flatnonzero(rule.depths), np.flatnonzero(rule.depths == 0)
        rest = rule.save().residual[0]
        moves, original = [], rule.cut_at
        monkeypatch.setattr(
            rule, "cut_at", lambda d, w, m=moves, o=original: (m.append(d.copy()), o(d, w))
        )
        rule.search(descent, 1.0, 100, on_path=False)
        depths = moves[0]
        assert (depths[kept] == 0).sum() == 1
        (entered,) = absent[depths[absent] > 0]
        assert depths[entered] == forest.depths[entered]
        if local_search == "random":
            assert entered == absent[0]
            continue
        full = [
            naive.contribution(root, X, scale, 99, "float32")[:, 0]
            for root, scale in zip(naive.from_forest(forest), forest.scale, strict=True)
        ]
        likeness = [abs(full[i] @ rest) / np.linalg.norm(full[i]) for i in absent]
        assert entered == absent[int(np.argmax(likeness))]
