"""best_subset against the slow obvious way: least squares on every support there is."""

import sys
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from forestprune.polishing.subset import best_subset as subset
from forestprune.polishing.subset import search as subset_search
from forestprune.polishing.subset.best_subset import best_subset

EXACT = ["scip", "gurobi"]


def value_on(X, y, support, penalty=0.0, ridge=0.0):
    """Return the least objective on `support`, from the columns themselves."""
    support = list(support)
    r = np.broadcast_to(np.asarray(ridge, dtype=float), X.shape[1])[support]
    columns = np.vstack([X[:, support], np.diag(np.sqrt(r))])
    target = np.concatenate([y, np.zeros(len(support))])
    weights = np.linalg.lstsq(columns, target, rcond=1e-9)[0]
    return float(-target @ columns @ weights + penalty * len(support))


def enumerated(X, y, max_trees=None, penalty=0.0, ridge=0.0):
    """Return the least objective of all supports."""
    p = X.shape[1]
    sizes = range(min(p, p if max_trees is None else max_trees) + 1)
    return min(
        value_on(X, y, support, penalty, ridge)
        for size in sizes
        for support in combinations(range(p), size)
    )


def solve(X, y, **kwargs):
    return best_subset(X.T @ X, X.T @ y, **kwargs)


def recomputed(X, y, weights, penalty=0.0, ridge=0.0):
    residual = y - X @ weights
    price = penalty * np.count_nonzero(weights) + np.sum(np.asarray(ridge) * weights**2)
    return float(residual @ residual - y @ y + price)


def neighbours(support, p, limit):
    """Yield every support that one drop, one addition or one exchange leads to."""
    support = frozenset(support)
    outside = [j for j in range(p) if j not in support]
    for i in support:
        yield support - {i}
        for j in outside:
            yield support - {i} | {j}
    if len(support) < limit:
        for j in outside:
            yield support | {j}


def seeded(seed, p_min=1, p_max=8):
    """Return columns, a target and options, of one of five kinds: from easy to nearly singular."""
    rng = np.random.default_rng(seed)
    p = int(rng.integers(p_min, p_max + 1))
    n = int(rng.integers(p // 2 + 1, 3 * p + 1))
    X = rng.normal(size=(n, p))
    y = rng.normal(size=n)
    kind = seed % 5
    if kind == 1:
        X = 0.5 * X + rng.normal(size=(n, 1))
    elif kind == 2:
        X = rng.integers(-1, 2, size=(n, p)).astype(float)
    elif kind == 3:
        X[:, p // 2 :] = X[:, : p - p // 2] + 0.05 * X[:, p // 2 :]
        y = X @ rng.normal(size=p)
    elif kind == 4:
        X = X.cumsum(axis=1)
        y = X @ rng.choice([-1.0, 0.0, 1.0], p) + 0.1 * y
    options = {
        "max_trees": int(rng.integers(min(p, 2), p + 1)) if rng.random() < 0.8 else None,
        "penalty": float(rng.choice([0.0, 0.01, 0.1])) * float(y @ y),
        "ridge": float(rng.choice([0.0, 0.0, 0.1])),
    }
    return X, y, options


@st.composite
def small_problems(draw):
    n, p = draw(st.integers(1, 6)), draw(st.integers(0, 5))
    entries = st.integers(-3, 3)
    X = draw(hnp.arrays(np.int64, (n, p), elements=entries)).astype(float)
    y = draw(hnp.arrays(np.int64, n, elements=entries)).astype(float)
    options = {
        "max_trees": draw(st.none() | st.integers(1, 6)),
        "penalty": draw(st.sampled_from([0.0, 0.25, 1.0, 1000.0])),
        "ridge": draw(
            st.sampled_from([0.0, 0.5])
            | hnp.arrays(np.float64, p, elements=st.sampled_from([0.0, 1.0, 2.0]))
        ),
    }
    return X, y, options


def available(solver):
    """Skip the test unless `solver` is installed and, where it needs one, has a licence."""
    module = pytest.importorskip({"scip": "pyscipopt", "gurobi": "gurobipy"}[solver])
    if solver == "gurobi":
        try:
            module.Env(params={"OutputFlag": 0}).dispose()
        except module.GurobiError as error:
            pytest.skip(str(error))


def worse_start(self, further=()):
    """Return the one column that explains least, in place of the heuristic's fit."""
    return self.fit(np.argsort(np.abs(self.b))[:1])


# The heuristic


SEEDS = pytest.mark.parametrize(
    "seeds",
    [range(200), pytest.param(range(200, 2000), marks=pytest.mark.long)],
    ids=["few", "many"],
)


@SEEDS
def test_the_heuristic_is_nearly_always_optimal(seeds):
    hits, count = 0, len(seeds)
    for seed in seeds:
        X, y, options = seeded(seed, p_min=6)  # with fewer columns it is too easy
        best = enumerated(X, y, **options)
        found = solve(X, y, **options).objective
        tolerance = 1e-8 * float(y @ y)
        assert found >= best - tolerance, seed
        hits += found <= best + tolerance
    print(f"the heuristic found the optimum in {hits} of {count} cases")
    assert hits >= 0.98 * count


@given(small_problems())
def test_any_small_problem(problem):
    X, y, options = problem
    p = X.shape[1]
    solution = solve(X, y, **options)
    penalty, ridge = options["penalty"], options["ridge"]
    limit = p if options["max_trees"] is None else min(options["max_trees"], p)
    support = np.flatnonzero(solution.weights)
    assert support.size <= limit
    assert X[:, support].any(axis=0).all()  # no zero column
    assert solution.objective == pytest.approx(
        recomputed(X, y, solution.weights, penalty, ridge), abs=1e-9
    )
    assert solution.objective == pytest.approx(
        value_on(X, y, support, penalty, ridge), abs=1e-9
    )  # the best weights on that support
    assert solution.objective >= enumerated(X, y, **options) - 1e-9
    for other in neighbours(support, p, limit):
        assert value_on(X, y, other, penalty, ridge) >= solution.objective - 1e-8
    assert solution.status == solution.solver == "heuristic"
    assert np.isnan(solution.gap)


@pytest.mark.parametrize("penalty", [0.0, 0.3])
def test_no_single_move_improves_a_larger_problem(penalty):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(60, 30)) + rng.normal(size=(60, 1))
    y = X[:, ::3].sum(axis=1) + 3 * rng.normal(size=60)
    solution = solve(X, y, max_trees=8, penalty=penalty)
    support = np.flatnonzero(solution.weights)
    assert support.size == 8 or penalty
    for other in neighbours(support, 30, 8):
        assert value_on(X, y, other, penalty) >= solution.objective - 1e-8


def test_shaking_stops_where_it_becomes_too_much_work():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(60, 20)) + rng.normal(size=(60, 1))
    y = X[:, ::3].sum(axis=1) + 3 * rng.normal(size=60)
    search = subset.Problem.checked(X.T @ X, X.T @ y, max_trees=6).scaled()
    start = search.descend(search.fit([0]))
    # Dropping the first column and letting it back in does not help, but another one does.
    little, much = (search.value(search.shake(start.copy(), work)) for work in (0.0, np.inf))
    assert much < little - 1e-6
    assert little == search.value(start)


def test_the_same_input_gives_the_same_answer():
    X, y, options = seeded(1)
    first, second = (solve(X, y, **options) for _ in range(2))
    assert np.array_equal(first.weights, second.weights)


# What can be odd about the input


def test_least_squares_if_nothing_limits_it():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 6)), rng.normal(size=30)
    expected = np.linalg.lstsq(X, y, rcond=None)[0]
    for max_trees in (None, 6, 100):
        np.testing.assert_allclose(solve(X, y, max_trees=max_trees).weights, expected)


def test_ridge_is_that_of_ridge_regression():
    rng = np.random.default_rng(0)
    X, y, ridge = rng.normal(size=(30, 6)), rng.normal(size=30), np.arange(6.0)
    expected = np.linalg.solve(X.T @ X + np.diag(ridge), X.T @ y)
    solution = solve(X, y, ridge=ridge)
    np.testing.assert_allclose(solution.weights, expected)
    assert solution.objective == pytest.approx(recomputed(X, y, expected, ridge=ridge))


def test_of_duplicates_one_is_taken():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20, 3)), rng.normal(size=20)
    twice = np.hstack([X, X, 3 * X])
    solution = solve(twice, y)
    assert np.count_nonzero(solution.weights) == 3
    assert solution.objective == pytest.approx(enumerated(X, y))
    assert solve(twice, y, max_trees=2).objective == pytest.approx(enumerated(X, y, 2))


def test_more_columns_than_rows():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(5, 40)), rng.normal(size=5)
    solution = solve(X, y)
    assert solution.objective == pytest.approx(-y @ y)
    assert np.count_nonzero(solution.weights) <= 5


def test_a_zero_column_never_gets_a_weight():
    X = np.array([[1.0, 0.0, 2.0], [0.0, 0.0, 1.0]])
    y = np.array([1.0, 2.0])
    assert solve(X, y).weights[1] == 0
    assert solve(X, y, ridge=1.0).weights[1] == 0
    assert best_subset(np.zeros((2, 2)), np.ones(2)).weights.tolist() == [0, 0]


def test_moments_of_no_target_still_give_a_finite_answer():
    # Unbounded below; but dependent columns are not selected together.
    solution = best_subset([[1.0, 1.0], [1.0, 1.0]], [1.0, 2.0])
    assert solution.weights.tolist() == [0, 2]


@pytest.mark.parametrize("penalty", [0.0, 1.0])
@pytest.mark.parametrize("max_trees", [None, 2])
def test_no_moments_no_weights(penalty, max_trees):
    solution = best_subset(np.eye(3), np.zeros(3), max_trees=max_trees, penalty=penalty)
    assert solution.weights.tolist() == [0, 0, 0]
    assert solution.objective == 0


@pytest.mark.parametrize("penalty", [0.0, 1.0])
def test_no_columns(penalty):
    solution = best_subset(np.zeros((0, 0)), np.zeros(0), max_trees=3, penalty=penalty)
    assert solution.weights.shape == (0,)
    assert solution.objective == 0


def test_one_column():
    assert best_subset([[4.0]], [2.0]).weights.tolist() == [0.5]
    assert best_subset([[4.0]], [2.0], penalty=0.9).objective == pytest.approx(-0.1)
    assert best_subset([[4.0]], [2.0], penalty=1.1).weights.tolist() == [0.0]


@pytest.mark.parametrize("penalty", [0.0, 0.05])
@pytest.mark.parametrize("of_target", [1e-12, 1.0, 1e12])
@pytest.mark.parametrize("of_columns", [1e-12, 1e12, None])
def test_units_do_not_matter(of_columns, of_target, penalty):
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(40, 8)), rng.normal(size=40)
    plain = solve(X, y, max_trees=4, penalty=penalty * (y @ y))
    units = np.logspace(-12, 12, 8) if of_columns is None else np.full(8, of_columns)
    scaled = solve(X * units, y * of_target, max_trees=4, penalty=penalty * (y @ y) * of_target**2)
    np.testing.assert_allclose(scaled.weights * units / of_target, plain.weights, atol=1e-12)
    assert scaled.objective == pytest.approx(plain.objective * of_target**2, rel=1e-9)


def test_moments_so_small_that_their_squares_are_zero():
    solution = best_subset(np.eye(2), [1e-200, 2e-200], max_trees=1)
    np.testing.assert_allclose(solution.weights, [0, 2e-200])
    assert best_subset(np.eye(2), [1e-200, 2e-200], penalty=1.0).weights.tolist() == [0, 0]


# Exact solvers


@pytest.mark.parametrize("solver", EXACT)
def test_an_exact_solver_finds_the_optimum(solver):
    available(solver)
    for seed in range(25):
        X, y, options = seeded(seed, p_max=7)
        solution = solve(X, y, solver=solver, **options)
        assert solution.objective == pytest.approx(
            enumerated(X, y, **options), abs=1e-7 * float(y @ y)
        ), seed
        assert solution.solver == solver
        assert solution.status == "optimal"
        assert 0 <= solution.gap < 1e-5
        assert solution.objective == pytest.approx(
            recomputed(X, y, solution.weights, options["penalty"], options["ridge"]),
            abs=1e-9 * float(y @ y),
        )


@pytest.mark.parametrize("solver", EXACT)
def test_an_exact_solver_needs_no_good_start(solver, monkeypatch):
    available(solver)
    monkeypatch.setattr(subset.Search, "best", worse_start)
    monkeypatch.setattr(subset.Search, "descend", lambda self, fit: fit)
    for seed in range(25):
        X, y, options = seeded(seed, p_max=7)
        solution = solve(X, y, solver=solver, **options)
        assert solution.objective == pytest.approx(
            enumerated(X, y, **options), abs=1e-6 * float(y @ y)
        ), seed


@pytest.mark.parametrize("solver", EXACT)
def test_an_exact_solver_on_singular_matrices(solver, monkeypatch):
    available(solver)
    monkeypatch.setattr(subset.Search, "best", worse_start)
    monkeypatch.setattr(subset.Search, "descend", lambda self, fit: fit)
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(12, 3)), rng.normal(size=12)
    zero = np.zeros((12, 1))
    for columns in (np.hstack([X, zero, -X]), np.hstack([X, X @ rng.normal(size=(3, 4))])):
        for options in ({"max_trees": 2}, {"penalty": 0.02 * float(y @ y)}, {"max_trees": 1}):
            solution = solve(columns, y, solver=solver, **options)
            best = enumerated(columns, y, **options)
            assert solution.objective == pytest.approx(best, abs=1e-6 * float(y @ y))


@pytest.mark.parametrize("solver", EXACT)
def test_an_exact_solver_with_nothing_to_search(solver):
    available(solver)
    for gram, moments, options in (
        (np.zeros((0, 0)), np.zeros(0), {}),
        (np.zeros((2, 2)), np.ones(2), {}),
        (np.eye(2), np.zeros(2), {"max_trees": 1}),
        (np.eye(2), np.ones(2), {}),
        (np.eye(2), np.ones(2), {"penalty": 5.0}),
        ([[4.0]], [2.0], {"penalty": 0.5}),
    ):
        solution = best_subset(gram, moments, solver=solver, **options)
        assert solution.objective == best_subset(gram, moments, **options).objective
        assert (solution.status, solution.gap) == ("optimal", 0.0)


@pytest.mark.parametrize("solver", EXACT)
def test_an_exact_solver_out_of_time(solver, capfd):
    available(solver)
    rng = np.random.default_rng(0)
    y = rng.normal(size=200)
    X = y[:, None] + rng.normal(size=(200, 60))
    heuristic = solve(X, y, max_trees=15)
    solution = solve(X, y, max_trees=15, solver=solver, time_limit=0.3)
    assert solution.status == "time limit"
    assert solution.objective <= heuristic.objective
    # The bound that it proved lies above what all columns together explain.
    everything = value_on(X, y, range(60))
    bound = solution.objective - solution.gap * abs(solution.objective)
    assert solution.gap > 0
    assert everything * (1 + 1e-6) <= bound <= solution.objective
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("solver", "module", "command"),
    [
        ("scip", "pyscipopt", "pip install pyscipopt"),
        ("gurobi", "gurobipy", "pip install gurobipy"),
    ],
)
def test_a_solver_that_is_not_installed(solver, module, command, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ImportError, match=f'solver="{solver}" needs {module}.*{command}'):
        best_subset(np.eye(2), np.ones(2), solver=solver)


# Errors


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"gram": np.ones((2, 3))}, r"gram must be a square matrix, got shape \(2, 3\)"),
        ({"gram": np.ones(2)}, r"gram must be a square matrix, got shape \(2,\)"),
        ({"moments": np.ones(3)}, r"one entry for each of the 2 columns of gram, got shape \(3,\)"),
        ({"moments": np.ones((2, 1))}, r"moments must have one entry .* got shape \(2, 1\)"),
        ({"gram": [[1.0, np.nan], [0.0, 1.0]]}, "gram must be finite"),
        ({"moments": [1.0, np.inf]}, "moments must be finite"),
        ({"ridge": np.inf}, "ridge must be finite"),
        ({"ridge": -1.0}, "ridge must not be negative, got -1.0"),
        ({"ridge": np.ones(3)}, r"ridge must be one number, .* got shape \(3,\)"),
        ({"penalty": -0.5}, "penalty must be finite and not negative, got -0.5"),
        ({"penalty": np.nan}, "penalty must be finite and not negative, got nan"),
        ({"max_trees": 0}, "max_trees must be a whole number of at least 1, or None.* got 0"),
        ({"max_trees": 1.5}, "max_trees must be a whole number .* got 1.5"),
        ({"time_limit": 0.0}, "time_limit must be a positive number of seconds, got 0.0"),
        ({"time_limit": -1}, "time_limit must be a positive .* got -1"),
        ({"time_limit": np.nan}, "time_limit must be a positive .* got nan"),
        ({"solver": "cplex"}, "solver must be one of 'heuristic', 'scip', 'gurobi'; got 'cplex'"),
        ({"gram": [[1.0, 0.5], [0.0, 1.0]]}, "gram must be symmetric"),
        ({"gram": [[1.0, 2.0], [2.0, 1.0]]}, "gram must be positive semidefinite"),
        ({"gram": [[1.0, 0.0], [0.0, -1.0]]}, "gram must be positive semidefinite"),
        ({"gram": [[0.0, 1.0], [1.0, 1.0]]}, "gram must be positive semidefinite"),
    ],
)
def test_errors(changed, message):
    arguments = {"gram": np.eye(2), "moments": np.ones(2)} | changed
    with pytest.raises(ValueError, match=message):
        best_subset(arguments.pop("gram"), arguments.pop("moments"), **arguments)


# Columns of different sizes


def sized(seed):
    X, y, options = seeded(seed, p_min=5)
    rng = np.random.default_rng(seed + 1000)
    sizes = rng.integers(1, 9, X.shape[1])
    return X, y, sizes, int(rng.integers(1, sizes.sum() + 1)), options["ridge"]


def enumerated_within(X, y, sizes, limit, ridge):
    """Return the least objective of all supports whose sizes add up to no more than the limit."""
    p = X.shape[1]
    supports = [s for k in range(p + 1) for s in combinations(range(p), k)]
    return min(value_on(X, y, s, ridge=ridge) for s in supports if sizes[list(s)].sum() <= limit)


@SEEDS
def test_the_heuristic_keeps_to_sizes_and_is_mostly_optimal(seeds):
    hits, count = 0, len(seeds)
    for seed in seeds:
        X, y, sizes, limit, ridge = sized(seed)
        solution = solve(X, y, sizes=sizes, max_size=limit, ridge=ridge)
        best = enumerated_within(X, y, sizes, limit, ridge)
        tolerance = 1e-8 * float(y @ y)
        assert sizes[solution.weights != 0].sum() <= limit
        assert solution.objective >= best - tolerance, seed
        hits += solution.objective <= best + tolerance
    print(f"the heuristic found the optimum in {hits} of {count} cases")
    assert hits >= 0.95 * count


@pytest.mark.parametrize("solver", EXACT)
def test_an_exact_solver_with_sizes(solver, monkeypatch):
    available(solver)
    monkeypatch.setattr(subset_search.Search, "best", worse_start)
    for seed in range(30):
        X, y, sizes, limit, ridge = sized(seed)
        best = enumerated_within(X, y, sizes, limit, ridge)
        solution = solve(X, y, sizes=sizes, max_size=limit, ridge=ridge, solver=solver)
        assert solution.objective == pytest.approx(best, abs=1e-6 * float(y @ y)), seed
        assert sizes[solution.weights != 0].sum() <= limit
        assert solution.status == "optimal"


def test_a_start_is_used(monkeypatch):
    X, y, sizes, limit, _ = sized(3)
    search = subset.Problem.checked(X.T @ X, X.T @ y, sizes=sizes, max_size=limit).scaled()
    selected = search.selection(np.arange(len(sizes))[::-1])  # cut off where it is too large
    assert 0 < sizes[search.columns[selected]].sum() <= limit < sizes.sum()
    monkeypatch.setattr(subset_search.Search, "threshold", lambda self, start: np.array([], int))
    for step in ("descend", "shake"):
        monkeypatch.setattr(subset_search.Search, step, lambda self, fit, *_: fit)
    assert sorted(search.best([selected]).support) == sorted(search.fit(selected).support)
    assert not search.best().support


@pytest.mark.parametrize(
    "options",
    [
        {"sizes": [1, 2, 3]},
        {"max_size": 3},
        {"sizes": [1, 2, 3], "max_size": 3, "max_trees": 2},
        {"sizes": [1, 0, 3], "max_size": 3},
        {"sizes": [1.0, 2.0, 3.0], "max_size": 3},
        {"sizes": [1, 2], "max_size": 3},
        {"sizes": [1, 2, 3], "max_size": -5},
        {"sizes": [1, 2, 3], "max_size": 3.7},
        {"sizes": [1, 2, 3], "max_size": True},
    ],
)
def test_sizes_that_make_no_sense_are_refused(options):
    with pytest.raises(ValueError, match="sizes"):
        best_subset(np.eye(3), np.ones(3), **options)


@pytest.mark.parametrize("start", [[3], [-1], [True, False, True], [0.5], [[0]]])
def test_starts_that_are_no_columns_are_refused(start):
    with pytest.raises(ValueError, match="starts must be numbers of columns, 0 to 2"):
        best_subset(np.eye(3), np.ones(3), starts=[start])
