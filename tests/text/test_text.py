"""Words and formulas say what the forest predicts, whatever its features are called."""

import ast
import keyword
import math
from dataclasses import replace

import numpy as np
import pytest
from hand_made import AWKWARD, built, leaf, split
from hypothesis import given
from hypothesis import strategies as st
from naive import Node
from sklearn.ensemble import RandomForestRegressor
from strategies import NUMBERS, forests, probing_rows, rows
from xgboost import XGBRegressor

import forestprune as fp
from forestprune.text import identifiers, to_formula, to_text
from forestprune.text.additive import Additive, before_rounding
from forestprune.text.formula import MAX_DEPTH, MAX_TREES


def evaluated(formula, forest, matrix):
    code = compile(formula, "formula", "eval")
    names = identifiers(forest)
    # Names that are not features must not be found.
    return [
        eval(code, {"__builtins__": {}}, dict(zip(names, row, strict=True)))
        for row in matrix.astype(float).tolist()
    ]


@given(forests() | forests(categorical=False), rows(), st.data())
def test_a_formula_predicts(drawn, X, data):
    _, forest = drawn
    output = data.draw(st.integers(0, forest.n_outputs - 1))
    # A wrong turn must show, so no two leaves have the same value and no tree weighs nothing.
    apart = 100.0 * np.arange(forest.n_nodes)[:, np.newaxis]
    signs = np.where(forest.scale < 0, -1.0, 1.0)
    forest = replace(forest, value=forest.value + apart, scale=forest.scale + signs)
    X = probing_rows(forest, X)
    if forest.category_set.size:
        # Codes of categories are whole numbers.
        with_sets = np.unique(forest.feature[forest.category_set >= 0])
        X[:, with_sets] = np.floor(X[:, with_sets])
    expected = np.reshape(forest.predict(X), (len(X), -1))[:, output]
    formula = to_formula(forest, output=output)
    assert evaluated(formula, forest, forest.input.matrix(X)) == pytest.approx(expected, abs=1e-6)
    # Rounding to float32 is in the thresholds, so numbers can come as the user has them.
    assert evaluated(formula, forest, X) == pytest.approx(expected, abs=1e-6)


@given(st.sampled_from(NUMBERS) | st.floats(allow_nan=False, allow_infinity=False), st.data())
def test_thresholds_allow_for_rounding(threshold, data):
    largest = before_rounding(threshold)
    near = data.draw(st.floats(allow_nan=False))
    with np.errstate(over="ignore"):
        for x in (largest, math.nextafter(largest, math.inf), threshold, near):
            assert (x <= largest) == bool(np.float64(np.float32(x)) <= threshold)


def test_a_formula_takes_numbers_that_are_no_float32():
    # Rounded to float32, 0.1 is greater than 0.1, and the second number less than it is.
    below = float(np.nextafter(np.float32(0.1), np.float32(0)))
    for threshold, x, expected in ((0.1, 0.1, 2.0), (below, below + 1e-10, 0.0)):
        forest = built([split(0, threshold, leaf(-1.0), leaf(1.0))], dtype="float32")
        X = np.array([[x, 0, 0]])
        assert forest.predict(X).tolist() == [expected]
        assert evaluated(to_formula(forest), forest, X) == [expected]


def test_a_formula_of_xgboost():
    rng = np.random.default_rng(0)
    X = np.round(rng.normal(size=(300, 3)), 1)
    X[rng.random(X.shape) < 0.1] = np.nan
    y = np.nan_to_num(X[:, 0]) + (np.nan_to_num(X[:, 1]) < 0.3)
    forest = fp.Forest.from_model(XGBRegressor(n_estimators=20, max_depth=3).fit(X, y))
    assert forest.missing_left[forest.left >= 0].any()
    assert not forest.missing_left[forest.left >= 0].all()
    values = evaluated(to_formula(forest), forest, X)
    assert values == pytest.approx(forest.predict(X), abs=1e-6)


SENSIBLE = st.floats(-1e6, 1e6).filter(lambda x: x == 0 or abs(x) > 1e-29)


@given(SENSIBLE, st.integers(1, 6), st.data())
def test_rounded_thresholds_part_round_numbers_as_exact_ones_do(threshold, digits, data):
    forest = built([split(0, threshold, leaf(-1.0), leaf(1.0))])
    rounded, exact = to_formula(forest, digits=digits), to_formula(forest)
    near = data.draw(st.floats(0.9, 1.1).map(lambda factor: factor * threshold))
    for x in (threshold, near, data.draw(SENSIBLE)):
        round_number = float(f"{x:.{max(digits, len(f'{abs(x):.0f}'))}g}")
        rows = np.array([[round_number, 0.0, 0.0]])
        signs = [np.sign(evaluated(text, forest, rows)[0] - 1.0) for text in (rounded, exact)]
        assert signs[0] == signs[1]


def test_next_to_nothing_is_zero():
    tiny = 1.0000000180025095e-35  # as LightGBM parts what is above zero from what is not
    forest = built([split(0, tiny, leaf(-1.0), leaf(1.0)), split(1, -tiny, leaf(-1.0), leaf(1.0))])
    assert "if x0 <= 0, else" in to_text(forest)
    assert "if x1 < 0, else" in to_text(forest)
    assert "1.0000000180025095e-35" in to_formula(forest)
    both = built([split(0, x, leaf(-1.0), leaf(1.0)) for x in (-tiny, tiny, 2.5000000000000004)])
    for condition in ("x0 < 0", "x0 <= 0", "x0 <= 2.5"):
        assert f"if {condition}, else" in to_text(both, digits=3)


def test_what_is_below_a_whole_number_is_not_rounded_up_to_it():
    X = np.repeat([1949.0, 1950.0, 1951.0, 1952.0], 50)[:, None]
    old = XGBRegressor(n_estimators=1, max_depth=1).fit(X, X[:, 0] < 1951)
    text = to_text(fp.Forest.from_model(old))
    assert "x0 < 1951" in text
    formula = to_formula(fp.Forest.from_model(old), digits=4)
    assert "x0 < 1951" in formula or "x0 >= 1951" in formula


def test_a_stump_reads_as_one_line():
    forest = built([split(0, 40.0, leaf(-0.3), leaf(1.2))], ("age", "b", "c"))
    root = forest.value[0, 0]
    assert to_formula(forest, digits=3) == (
        f"(\n    {1 + root:.3g}\n    + (-0.75 if age <= 40 else +0.75)\n)"
    )
    assert "  -0.75 (50 %) if age <= 40, else +0.75 (50 %)" in to_text(forest).splitlines()


def test_missing_values_are_spoken_of_where_they_can_be():
    stump = split(1, 0.5, leaf(-1.0), leaf(1.0), missing_left=True)
    open_, closed = built([stump]), built([stump], ensure_all_finite=True)
    assert "A missing value goes where the condition is met." in to_text(open_)
    assert "missing" not in to_text(closed)
    assert "if x1 > 0.5 else" in to_formula(open_)
    assert "if x1 <= 0.5 else" in to_formula(closed)


RULES = {
    'A missing value goes to "else"': lambda left, right: False,
    "A missing value goes where the condition is met": lambda left, right: True,
    "A missing value goes the way of more training rows": lambda left, right: left > right,
}


@given(st.lists(st.tuples(st.sampled_from([1.0, 2.0, 3.0]), st.booleans()), min_size=1, max_size=6))
def test_a_reader_knows_where_missing_values_go(stumps):
    roots = [
        split(0, 0.5, leaf(-1.0, cover), leaf(1.0, 2.0), missing_left=left)
        for cover, left in stumps
    ]
    lines = to_text(built(roots)).splitlines()
    rule, _, exceptions = lines[2].rstrip(".").partition(", unless the condition says ")
    spoken = []
    for number, (cover, left) in enumerate(stumps):
        line = lines[lines.index(f"Tree {number}") + 1]
        added = [words for words in ("or missing", "and not missing") if f"0.5 {words}," in line]
        assert added or cover != 2.0 or "more" not in rule
        assert left == (added[0] == "or missing" if added else RULES[rule](cover, 2.0))
        spoken += [words for words in added if words not in spoken]
    assert exceptions == " or ".join(f'"{words}"' for words in spoken)


@pytest.mark.parametrize(
    ("model", "rule"),
    [
        (
            RandomForestRegressor(5, bootstrap=False, max_depth=2, random_state=0),
            "the way of more training rows",
        ),
        (XGBRegressor(n_estimators=5, max_depth=3), 'to "else"'),
    ],
)
def test_libraries_that_saw_no_missing_value_keep_to_a_rule(model, rule):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(301, 3))
    lines = to_text(fp.Forest.from_model(model.fit(X, X[:, 0] * X[:, 1]))).splitlines()
    assert lines[2] == f"A missing value goes {rule}."
    assert not any("missing" in line for line in lines[3:])


def test_rounding_keeps_thresholds_apart():
    roots = [split(0, x, leaf(-1.0), leaf(1.0)) for x in (20000.7, 20000.9, 20001.2)]
    roots.append(split(1, 0.123456, leaf(-1.0), leaf(1.0)))
    text, formula = to_text(built(roots), digits=3), to_formula(built(roots), digits=3)
    for shown in (text, formula):
        assert all(x in shown for x in ("20000.7", "20000.9", "20001.2"))
        assert "0.123 " in shown or "0.123," in shown
    assert "rounded to 3 digits, thresholds to more where they would be the same." in text
    assert "rounded to 3 digits.\n" in to_text(built(roots[2:]), digits=3)


def test_a_formula_says_how_features_are_called():
    forest = built([split(1, 0.5, leaf(-1.0), leaf(1.0))], ("a", "größe\n# x", "not used"))
    formula = to_formula(forest)
    assert "\n    # gr_e_x: 'größe\\n# x'\n" in formula
    assert "not" not in formula
    plain = replace(forest, input=replace(forest.input, feature_names=None))
    assert "#" not in to_formula(plain)
    X = np.array([[0.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    assert evaluated(formula, forest, X) == plain.predict(X).tolist()


def test_categories_are_named_where_the_model_knows_their_names():
    stump = split(1, 0.0, leaf(-1.0), leaf(1.0), categories=frozenset({0, 2, 4}))
    labels = (None, ("red", "a, b", 7.5), None)
    forest = built([stump], categories=labels)
    # The model has no name for code 4, which it has seen all the same.
    assert "if x1 in {'red', 7.5, 4}, else" in to_text(forest)
    assert "if x1 in {0, 2, 4}, else" in to_text(built([stump]))
    assert "if x1 in {0, 2, 4} else" in to_formula(forest)


def test_a_formula_says_what_codes_stand_for():
    stump = split(1, 0.0, leaf(-1.0), leaf(1.0), categories=frozenset({0, 2, 4}))
    names = tuple(f"category\n# {number}" for number in range(30))
    other = split(0, 0.0, leaf(-1.0), leaf(1.0), categories=frozenset(range(29)))
    forest = built([stump, other], categories=(names, ("red", "a, b", 7.5), None))
    formula = to_formula(forest)
    assert "    # x1: 0 is 'red', 2 is 7.5; others are any other number\n" in formula
    assert "28 is 'category\\n# 28'; others" in " ".join(formula.split()).replace(" # ", " ")
    assert all(line.lstrip().startswith("#") for line in formula.splitlines() if " is " in line)
    X = np.array([[28.0, 1.0, 0.0], [29.0, 4.0, 0.0]])
    assert evaluated(formula, forest, X) == forest.predict(X).tolist()
    assert "#" not in to_formula(built([stump, other]))


def test_an_empty_set_of_categories_holds_nothing():
    stump = split(0, 0.0, leaf(-1.0), leaf(1.0), categories=frozenset(), missing_left=True)
    forest = built([stump])
    X = np.array([[0.0, 0, 0], [np.nan, 0, 0]])
    assert evaluated(to_formula(forest), forest, X) == [2.0, 0.0] == forest.predict(X).tolist()


def test_the_tree_that_matters_most_comes_first_under_its_own_number():
    weak, strong = split(0, 0.0, leaf(-1.0), leaf(1.0)), split(1, 0.0, leaf(-2.0), leaf(2.0))
    forest = built([weak, strong])
    assert Additive.of(forest).order == (1, 0)
    heads = [line for line in to_text(forest, numbers=[4, 9]).splitlines() if "Tree" in line]
    assert heads == ["Tree 9", "Tree 4"]
    # By what it adds: the weight counts.
    assert Additive.of(replace(forest, scale=np.array([-3.0, 1.0]))).order == (0, 1)


def test_roots_are_in_the_constant():
    root = split(0, 0.0, leaf(3.0, 1), leaf(7.0, 3))
    view = Additive.of(built([root], scale=[0.5], base=[1.0]))
    assert view.constant == 1 + 0.5 * 6
    assert view.contributions.tolist() == [0.0, -1.5, 0.5]
    assert view.shares.tolist() == [1.0, 0.25, 0.75]


def test_nothing_is_added_without_a_sign_that_puzzles():
    forest = built([Node([0.0], 2.0, 0, 0.5, left=leaf(-0.0), right=leaf(1.0))])
    assert "-" not in to_formula(forest) + to_text(forest)


def test_a_constant_is_text_and_formula_too():
    forest = built([], base=[2.5])
    assert to_formula(forest) == "2.5"
    assert to_text(forest) == "Prediction = 2.5. No tree is left."


def test_what_the_sum_stands_for_is_said():
    forest = built([], base=[2.5])
    origin = fp.Origin("sklearn", "HistGradientBoostingRegressor", link="log")
    assert to_text(replace(forest, origin=origin)).startswith(
        "Log of the mean of y = 2.5.\nThe prediction is exp(sum). No tree"
    )


@given(st.lists(st.sampled_from(AWKWARD) | st.text(max_size=8), min_size=1, max_size=12))
def test_features_never_share_a_name(names):
    n = len(names)
    stumps = [split(i, 0.5, leaf(-1.0), leaf(float(2**i))) for i in range(n)]
    forest = built(stumps, tuple(names), n_features=n)
    found = identifiers(forest)
    assert len(set(found)) == n
    for name, identifier in zip(names, found, strict=True):
        assert identifier.isascii()
        assert identifier.isidentifier()
        assert not keyword.iskeyword(identifier)
        plain = name.isascii() and name.isidentifier() and not keyword.iskeyword(name)
        if plain and names.count(name) == 1 and name != "__debug__":
            assert identifier == name
    used = {node.id for node in ast.walk(ast.parse(to_formula(forest))) if hasattr(node, "id")}
    assert used == set(found)
    X = np.eye(n)
    nameless = replace(forest, input=fp.InputSpec(n))
    assert evaluated(to_formula(forest), forest, X) == pytest.approx(nameless.predict(X))
    # One line for a stump, so names cannot break lines; and all of them differ.
    lines = [line for line in to_text(forest).splitlines() if " if " in line]
    conditions = {line.partition(" if ")[2].rpartition(", else ")[0] for line in lines}
    assert len(lines) == len(conditions) == n
    assert all(line.isprintable() for line in to_text(forest).splitlines())


def test_names_are_made_identifiers_as_documented():
    forest = built([], tuple(AWKWARD[:13]), n_features=13)
    assert identifiers(forest) == (
        "a", "a_3", "a_2", "x_1_2", "x_1_3", "x_1", "_x_1_", "_", "_7", "if_", "a_b", "None_",
        "__debug___",
    )  # fmt: skip


def test_long_and_deep_formulas_are_still_parsed():
    chain = leaf(0.0)
    for i in range(MAX_DEPTH):
        sides = (leaf(float(i)), chain) if i % 2 else (chain, leaf(float(i)))
        chain = split(i % 3, float(i % 7), *sides)
    stumps = [split(0, 0.5, leaf(-1.0), leaf(1.0))] * (MAX_TREES - 1)
    forest = built([chain, *stumps])
    X = np.array([[0.0, 3.0, 9.0], [5.0, 5.0, 5.0]])
    assert evaluated(to_formula(forest), forest, X) == pytest.approx(forest.predict(X))


def test_formulas_that_no_parser_takes_are_refused():
    stump = split(0, 0.5, leaf(-1.0), leaf(1.0))
    with pytest.raises(ValueError, match=r"1,000 trees of depth 80.*max_trees"):
        to_formula(built([stump] * (MAX_TREES + 1)))
    chain = leaf(0.0)
    for i in range(MAX_DEPTH + 1):
        chain = split(0, float(-i), leaf(1.0), chain)
    with pytest.raises(ValueError, match="of depth 81"):
        to_formula(built([chain]))
    # Words have no such limit.
    assert len(to_text(built([chain])).splitlines()) > 2 * MAX_DEPTH


@pytest.mark.parametrize("write", [to_text, to_formula])
def test_which_output_must_be_said_and_be_one(write):
    forest = built([], base=[1.0, 2.0])
    with pytest.raises(ValueError, match=r"2 outputs; say which one.*output=1"):
        write(forest)
    with pytest.raises(ValueError, match="from 0 to 1, got 2"):
        write(forest, output=2)
    assert "2" in write(forest, output=1)
    with pytest.raises(ValueError, match="digits"):
        write(forest, output=0, digits=0)


def test_a_pruned_forest_says_what_it_predicts():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(200, 4))
    y = X[:, 0] + (X[:, 1] > 0.3) * X[:, 2]
    model = XGBRegressor(n_estimators=15, max_depth=3).fit(X, y)
    small = fp.prune(model, X, y, max_trees=4, max_nodes=40)
    assert 0 < small.n_trees <= 4
    values = evaluated(small.to_formula(), small.forest, X)
    assert values == pytest.approx(small.predict(X), abs=1e-9)
    numbers = [int(line[5:]) for line in small.to_text().splitlines() if line.startswith("Tree")]
    assert sorted(numbers) == np.flatnonzero(small.depths).tolist()
    assert len(small.to_formula(digits=2)) < len(small.to_formula())
