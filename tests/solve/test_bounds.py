"""Bounds are never above the best of all prunings, and meet it where they can."""

from dataclasses import replace

import naive
import numpy as np
import pytest
from effort import DEEP, EXAMPLES, INTERPRETED
from every_pruning import everything, of_layers, of_levels, of_tree
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from loss_cases import LOSSES
from scipy.optimize import minimize
from sklearn.datasets import make_classification, make_friedman1
from sklearn.ensemble import (
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from strategies import N_FEATURES, alphas, cases, symmetric_nodes

from forestprune import Forest, InputSpec, encode
from forestprune.forest.origin import Origin
from forestprune.kernels.records import MUST, MUST_NOT
from forestprune.options import Options
from forestprune.rows.encoding import Encoding
from forestprune.select.solver import Solver, make_rule
from forestprune.select.solver import everything as full_model
from forestprune.solve.descent import Descent
from forestprune.solve.dual.bound import Dual, hindrance
from forestprune.solve.dual.mixtures import Mixtures
from forestprune.solve.exact import BranchAndBound
from forestprune.solve.problem import pose

pytestmark = pytest.mark.deep
tiny = {"max_trees": 2, "depth": 2, "joint": (None,), "min_trees": 1}
many = settings(max_examples=4 * EXAMPLES if not INTERPRETED else 5)
shrinkages = st.sampled_from([0.1, 1.0, 10.0])


@st.composite
def constrained_cases(draw, **options):
    """Draw symmetric trees with constraints, which they need not keep as they are."""
    case = draw(cases(trees=symmetric_nodes, categorical=False, max_outputs=1, **options))
    signs = draw(st.lists(st.sampled_from([-1, 0, 1]), min_size=N_FEATURES, max_size=N_FEATURES))
    assume(any(signs) and case.forest.n_trees)
    origin = Origin("catboost", "Model", {"symmetric": True}, monotone=tuple(signs))
    return replace(case, forest=replace(case.forest, origin=origin))


def node_costs(case, rng):
    """Return what each node costs, or None if all cost the same."""
    return None if rng.random() < 0.5 else rng.integers(0, 4, case.forest.n_nodes).astype(float)


def prices(case, costs):
    """Return for each tree what one of its prunings costs, over the cost of everything."""
    forest = case.forest
    costs = np.ones(forest.n_nodes) if costs is None else np.array(costs)
    costs[forest.offsets[:-1]] = 0.0
    total = costs.sum() or 1.0
    found = []
    for a, b in zip(forest.offsets[:-1], forest.offsets[1:], strict=True):
        splits = np.flatnonzero(forest.left[a:b] >= 0)
        left = a + forest.left[a:b][splits]
        pairs = (costs[left] + costs[left + 1]) / total
        found.append(lambda each, pairs=pairs: float(pairs @ each.splits))
    return found


def layer_prices(case):
    of_layers, total = naive.layer_costs(case.roots, case.weighting)
    return [lambda each, own=own: sum(own[: each.depth]) / (total or 1) for own in of_layers]


def slack(objective):
    """Return how much rounding may add to a bound."""
    return 1e-7 * (1.0 + abs(objective))


def point_of(rule, alpha, start):
    """Return a point to begin at: what is kept now, or everything."""
    if start == "everything":
        full = full_model(rule.problem)
        rule.move_to(full)
    return rule.point(alpha)


starts = st.sampled_from(["as it is", "everything"])


def bounds_of(rule, alpha, start, rounds=(0, 1, 20)):
    """Yield bounds, higher and higher, and what mixtures come down to."""
    dual = Dual(rule, point_of(rule, alpha, start))
    for count in rounds:
        for _ in range(count):
            dual.sweep(2, 1e-9)
            dual.look()
        yield dual.best, dual.upper


@many
@given(cases(**tiny), alphas, st.none() | shrinkages, starts, st.data())
def test_no_subtrees_are_better_than_the_bound(case, alpha, shrinkage, start, data):
    costs = node_costs(case, np.random.default_rng(data.draw(st.integers(0, 999))))
    options = Options(
        refit=shrinkage is not None,
        shrinkage=shrinkage,
        weighting="node" if costs is None else costs,
    )
    problem = case.pose()
    rule = make_rule(problem, options)
    found = everything(problem, case, alpha, prices(case, costs), shrinkage)
    best = min(found)
    for bound, upper in bounds_of(rule, alpha, start):
        assert bound <= best + slack(best)
        assert bound <= upper + slack(upper)


@many
@given(cases(**tiny | {"depth": 3}), alphas, starts)
def test_no_layers_are_better_than_the_bound(case, alpha, start):
    problem, rule = case.pose(), case.layer_rule()
    found = everything(problem, case, alpha, layer_prices(case), None, of_layers)
    best = min(found)
    for bound, _ in bounds_of(rule, alpha, start):
        assert bound <= best + slack(best)


@many
@given(cases(**tiny, trees=symmetric_nodes), alphas, st.none() | shrinkages, starts)
def test_no_levels_are_better_than_the_bound(case, alpha, shrinkage, start):
    weighting = case.weighting if np.ndim(case.weighting) < 1 or case.forest.max_depth else "node"
    how = {"refit": shrinkage is not None, "shrinkage": shrinkage, "weighting": weighting}
    problem = case.pose()
    rule = make_rule(problem, Options(rule="oblivious", **how))
    costs = [lambda each, own=own: float(own[each.depth]) for own in rule.costs]
    best = min(everything(problem, case, alpha, costs, shrinkage, of_levels))
    for bound, upper in bounds_of(rule, alpha, start):
        assert bound <= best + slack(best)
        assert bound <= upper + slack(upper)


@given(constrained_cases(max_trees=2, depth=2, joint=(None,)), alphas, st.none() | shrinkages)
def test_no_levels_that_keep_constraints_are_better_than_the_bound(case, alpha, shrinkage):
    """Held to what the rule finds, from nothing and from everything: values have to be in order."""
    how = {"refit": shrinkage is not None, "shrinkage": shrinkage}
    rule = make_rule(case.pose(), Options(rule="oblivious", **how))
    for start in ("as it is", "everything"):
        point_of(rule, 0.0, start)
        Descent(rule).descend(alpha, 50)
        found = rule.point(alpha)
        for bound, _ in bounds_of(rule, alpha, "as it is"):
            assert bound <= found.objective + slack(found.objective)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("layers", [False, True], ids=["subtrees", "layers"])
@pytest.mark.parametrize("name", LOSSES)
@settings(max_examples=max(EXAMPLES // 2, 4))
@given(cases(**tiny), alphas, st.none() | shrinkages, st.data())
def test_bounds_hold_for_every_loss(name, layers, case, alpha, shrinkage, data):
    shrinkage = None if layers else shrinkage
    loss, targets = LOSSES[name]
    rng = np.random.default_rng(data.draw(st.integers(0, 999)))
    outputs = case.forest.n_outputs
    assume(name != "softmax" or outputs > 1)
    target = targets(rng, outputs - (name == "softmax"), len(case.X))
    # Predictions of the size that links can take.
    forest = replace(case.forest, scale=0.1 * case.forest.scale, base=0.1 * case.forest.base)
    case = replace(case, forest=forest)
    encoding = encode(forest, case.X)
    problem = pose(encoding, target.T, sample_weight=case.weights, loss=loss)
    refit = {"refit": shrinkage is not None, "shrinkage": shrinkage}
    how = {"rule": "layer", "weighting": case.weighting} if layers else refit
    rule = make_rule(problem, Options(**how))
    price = layer_prices(case) if layers else prices(case, None)
    found = everything(problem, case, alpha, price, shrinkage, of_layers if layers else of_tree)
    best = min(found)
    for bound, upper in bounds_of(rule, alpha, "everything"):
        assert bound <= best + slack(best)
        assert bound <= upper + slack(upper)


@given(cases(**tiny), alphas, shrinkages | st.none(), st.data())
def test_the_lowest_prunings_are_those_of_all(case, alpha, shrinkage, data):
    """The twin of `lowest_prunings`: with any residual, and whatever is said of splits."""
    options = Options(refit=shrinkage is not None, shrinkage=shrinkage)
    layers = shrinkage is None and data.draw(st.booleans())
    problem = case.pose()
    rule = case.layer_rule(problem) if layers else make_rule(problem, options)
    trees = [(of_layers if layers else of_tree)(case, i) for i in range(len(case.roots))]
    rng = np.random.default_rng(data.draw(st.integers(0, 999)))
    residual = rng.normal(size=problem.target.shape)
    mixtures = Mixtures(rule, rule.point(alpha), trace=True)
    price = alpha * problem.variation
    costs = layer_prices(case) if layers else prices(case, None)

    def objective(tree, each):
        total = residual @ each.inside
        f = each.origin.T
        if shrinkage is not None:
            f = f + total / shrinkage
        shift = (shrinkage or 0.0) * float(((f - each.origin.T) ** 2).sum())
        return price * costs[tree](each) + shift - 2.0 * float((f * total).sum())

    def least(allowed):
        return sum(
            min(objective(tree, each) for each, ok in zip(own, oks, strict=True) if ok)
            for tree, (own, oks) in enumerate(zip(trees, allowed, strict=True))
        )

    everything_goes = [[True] * len(own) for own in trees]
    expected = least(everything_goes)
    assert mixtures.lowest(residual) == pytest.approx(expected, rel=1e-9, abs=1e-9 * (1 + price))
    # What one pruning keeps must be, in part; what another one leaves out must not.
    said = []
    for own in trees:
        chosen = own[rng.integers(len(own))].splits
        some = rng.random(chosen.size) < 0.5
        said.append(np.where(some, np.where(chosen, MUST, MUST_NOT), 0))
    allowed = [
        [
            not (((words == MUST) & ~each.splits) | ((words == MUST_NOT) & each.splits)).any()
            for each in own
        ]
        for own, words in zip(trees, said, strict=True)
    ]
    closed = [
        np.select(
            [
                np.all([e.splits for e, ok in zip(own, oks, strict=True) if ok], axis=0),
                ~np.any([e.splits for e, ok in zip(own, oks, strict=True) if ok], axis=0),
            ],
            [MUST, MUST_NOT],
            0,
        )
        for own, oks in zip(trees, allowed, strict=True)
    ]
    mixtures.limit(np.concatenate([np.empty(0), *closed]).astype(np.int8))
    assert mixtures.lowest(residual) == pytest.approx(
        least(allowed), rel=1e-9, abs=1e-9 * (1 + price)
    )
    kept = np.split(mixtures.kept(), np.cumsum([own[0].splits.size for own in trees])[:-1])
    for share, words in zip(kept, closed, strict=True):
        assert (share[words == MUST] > 1.0 - 1e-9).all()
        assert (share[words == MUST_NOT] < 1e-9).all()


@settings(max_examples=max(EXAMPLES // 2, 4))
@given(cases(**tiny), alphas)
def test_mixtures_come_down_to_the_best_of_all_mixtures(case, alpha):
    problem = case.pose()
    rule = make_rule(problem, Options(refit=False))
    trees = [of_tree(case, i) for i in range(len(case.roots))]
    costs = prices(case, None)
    sizes = np.cumsum([len(own) for own in trees])[:-1]
    away = (problem.target - problem.intercept[:, None]).T
    weights = np.ones(len(away)) if case.weights is None else case.weights

    def value(flat):
        left, cost = away, 0.0
        for own, price, part in zip(trees, costs, np.split(flat, sizes), strict=True):
            left = left - sum(s * e.adds for s, e in zip(part, own, strict=True))
            cost += sum(s * price(e) for s, e in zip(part, own, strict=True))
        return float((weights[:, None] * left**2).sum()) / problem.variation + alpha * cost

    n = sum(len(own) for own in trees)
    start = np.concatenate([np.eye(len(own))[0] for own in trees])
    sums = [
        {"type": "eq", "fun": lambda flat, i=i: np.split(flat, sizes)[i].sum() - 1.0}
        for i in range(len(trees))
    ]
    found = minimize(value, start, bounds=[(0, 1)] * n, constraints=sums, method="SLSQP")
    dual = Dual(rule, point_of(rule, alpha, "everything"))
    for _ in range(2_000):  # two trees that add nearly the same take turns for long
        dual.sweep(5, 1e-12)
        dual.look()
        if dual.best >= dual.upper - 0.001 * (1.0 + dual.upper):
            break
    assert dual.best <= dual.upper + slack(dual.upper)
    assert dual.best >= dual.upper - 0.01 * (1.0 + dual.upper)
    assert dual.best <= found.fun + slack(found.fun)
    if found.success:
        assert dual.upper <= found.fun + 0.01 * (1.0 + found.fun)


@pytest.mark.parametrize("refit", [False, True])
@given(cases(**tiny), alphas, shrinkages)
def test_branch_and_bound_finds_the_best_of_all(refit, case, alpha, shrinkage):
    shrinkage = shrinkage if refit else None
    problem = case.pose()
    rule = make_rule(problem, Options(refit=refit, shrinkage=shrinkage))
    best = min(everything(problem, case, alpha, prices(case, None), shrinkage))
    proved = BranchAndBound(rule, rule.point(alpha), 100, 30.0).solve()
    assert not proved.timed_out
    assert proved.point.objective == pytest.approx(best, rel=2e-6, abs=1e-9)
    assert best * (1.0 - 2e-6) - 1e-9 <= proved.bound <= best + slack(best)


@given(cases(**tiny | {"depth": 3}), alphas)
def test_branch_and_bound_finds_the_best_layers(case, alpha):
    problem, rule = case.pose(), case.layer_rule()
    found = everything(problem, case, alpha, layer_prices(case), None, of_layers)
    best = min(found)
    proved = BranchAndBound(rule, rule.point(alpha), 100, 30.0).solve()
    assert proved.point.objective == pytest.approx(best, rel=2e-6, abs=1e-9)
    assert proved.bound <= best + slack(best)


X, Y = make_friedman1(300, noise=1.0, random_state=0)
CLASSES_X, CLASSES_Y = make_classification(
    300, 8, n_informative=6, n_redundant=0, n_classes=3, random_state=0
)
compiled_only = pytest.mark.skipif(INTERPRETED, reason="whole forests, left to the compiled run")


def gap_of(model, alpha, X=X, Y=Y, **options):
    problem = pose(encode(Forest.from_model(model), X), Y)
    solver = Solver(problem, Options(**options))
    point = solver.solve_alone(alpha, 30)
    bound = Dual(solver.rule, point).raise_bound(point.objective)
    return (point.objective - bound) / point.objective


@compiled_only
@pytest.mark.parametrize("how", [{"rule": "layer"}, {"refit": False}], ids=str)
def test_gaps_of_original_values_are_small(how):
    forest = RandomForestRegressor(30, min_samples_leaf=3, random_state=0).fit(X, Y)
    boosted = GradientBoostingRegressor(n_estimators=50, random_state=0).fit(X, Y)
    assert 0.0 <= gap_of(forest, 0.5, **how) <= 0.001
    assert 0.0 <= gap_of(boosted, 0.5, **how) <= 0.003


@compiled_only
def test_gaps_of_new_values_are_a_few_per_cent():
    forest = RandomForestRegressor(30, min_samples_leaf=3, random_state=0).fit(X, Y)
    assert 0.0 < gap_of(forest, 0.5, shrinkage=100.0) <= 0.05
    # The more values are drawn to the original ones, the less is left to guess.
    drawn = gap_of(forest, 0.5, shrinkage=1000.0)
    assert 0.0 <= drawn <= 0.02


@compiled_only
def test_trees_of_each_class_have_a_bound():
    model = GradientBoostingClassifier(n_estimators=1, max_depth=2, random_state=0)
    model.fit(CLASSES_X, CLASSES_Y)
    forest = Forest.from_model(model)
    problem = pose(
        encode(forest, CLASSES_X),
        np.eye(3)[CLASSES_Y],
        loss=LOSSES["softmax"][0],
    )
    for options in (Options(refit=False), Options(shrinkage=5.0), Options(rule="layer")):
        rule = make_rule(problem, options)
        for alpha in (0.05, 0.3, 1.0):
            bound = Dual(rule, rule.point(alpha)).raise_bound(1.0)
            best = min(_of_classes(rule, problem, alpha))
            assert best * 0.7 <= bound <= best + slack(best)


def _of_classes(rule, problem, alpha):
    """Yield objectives of all prunings of trees of classes, as far as their values are found."""
    forest = problem.encoding.forest
    first = [0, *np.cumsum(np.diff(forest.offsets) // 2)]
    choices = []
    for start, stop, depths in zip(
        first[:-1], first[1:], np.split(forest.node_depths, forest.offsets[1:-1]), strict=True
    ):
        size = stop - start
        assert depths.max() == 2
        own = [np.zeros(size, bool)]
        own += [np.r_[True, np.array(rest, bool)] for rest in np.ndindex(*(2,) * (size - 1))]
        choices.append(own)
    for chosen in np.ndindex(*(len(own) for own in choices)):
        splits = np.concatenate([own[k] for own, k in zip(choices, chosen, strict=True)])
        point = _kept(rule, forest, splits, alpha)
        if point is not None:
            yield point.objective


def _kept(rule, forest, splits, alpha):
    from forestprune.solve.point import Point, kept_depths, kept_leaves, pack_splits, splits_within

    depths = kept_depths(forest, splits)
    if not rule.parts[0].rule.__class__.__name__.startswith("Sub") and not np.array_equal(
        splits, splits_within(forest, depths)
    ):
        return None
    values = None
    if getattr(rule.parts[0].rule, "refits", False):
        leaves = kept_leaves(forest, splits)
        values = (
            forest.scaled_value[leaves].T
            - np.repeat(forest.scaled_value[forest.offsets[:-1]], np.diff(forest.offsets), axis=0)[
                leaves
            ].T
        )
    point = Point(
        alpha,
        pack_splits(splits),
        depths,
        (depths > 0).astype(float),
        np.array(rule.problem.intercept),
        0.0,
        0.0,
        values,
    )
    rule.move_to(point)
    # A little nearer to the best values.
    if values is not None:
        rule.refine(alpha, rule.order, 5)
    return rule.point(alpha)


@compiled_only
@pytest.mark.parametrize("n_classes", [2, 3])
def test_leaves_that_stay_distributions_have_a_bound(n_classes):
    labels = CLASSES_Y if n_classes == 3 else (CLASSES_Y > 0).astype(int)
    model = RandomForestClassifier(8, max_depth=3, random_state=0).fit(CLASSES_X, labels)
    forest = Forest.from_model(model)
    target = np.eye(3)[labels] if n_classes == 3 else labels.astype(float)
    problem = pose(encode(forest, CLASSES_X), target, loss=LOSSES["Brier"][0])
    for shrinkage in (0.0, 5.0):
        options = Options(shrinkage=shrinkage)
        solver = Solver(problem, options)
        assert hindrance(solver.rule, options) is None
        for alpha in (3.0, 0.3, 0.01):
            point = solver.solve_alone(alpha, 10) if alpha == 3.0 else solver.solve(alpha)
            bound = Dual(solver.rule, point).raise_bound(point.objective)
            assert bound <= point.objective + slack(point.objective)


@compiled_only
def test_constraints_are_kept_to_by_what_is_bounded():
    from sklearn.ensemble import HistGradientBoostingRegressor

    model = HistGradientBoostingRegressor(max_iter=10, max_depth=3, monotonic_cst=[1] + [0] * 9)
    forest = Forest.from_model(model.fit(X, Y))
    assert forest.monotone.size
    problem = pose(encode(forest, X), Y)
    solver = Solver(problem, Options(shrinkage=5.0))
    for alpha in (1.0, 0.1, 0.01):
        point = solver.solve(alpha)
        bound = Dual(solver.rule, point).raise_bound(point.objective)
        assert bound <= point.objective


def test_deep_draws_thousands():
    assert not DEEP or 4 * EXAMPLES * 2 + len(LOSSES) * 2 * (EXAMPLES // 2) > 2000


def test_forests_without_trees_or_splits_have_bounds():
    for roots in (0, 2):
        forest = Forest(
            offsets=np.arange(roots + 1),
            left=np.full(roots, -1),
            feature=np.full(roots, -1),
            threshold=np.zeros(roots),
            missing_left=np.zeros(roots, bool),
            value=np.ones((roots, 1)),
            cover=np.ones(roots),
            scale=np.ones(roots),
            base=np.array([3.0]),
            input=InputSpec(n_features=X.shape[1]),
        )
        for options in (Options(refit=False), Options(), Options(rule="layer")):
            rule = make_rule(pose(encode(forest, X), Y), options)
            point = rule.point(1.0)
            assert Dual(rule, point).raise_bound(point.objective) == pytest.approx(point.objective)


def test_a_constant_has_itself_as_a_bound():
    forest = Forest.from_model(RandomForestRegressor(2, max_depth=2, random_state=0).fit(X, Y))
    encoding = Encoding(forest, encode(forest, X).codes)
    rule = make_rule(pose(encoding, Y), Options(refit=False))
    point = rule.point(1e6)
    assert Dual(rule, point).best == pytest.approx(point.objective, rel=1e-9)
