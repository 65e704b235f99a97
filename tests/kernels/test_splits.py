"""The best split of a node, and what it is found by, against all splits there are."""

import naive_splits
import numpy as np
import pytest
from binned_nodes import NEXT_TO_NOTHING, NodeCase, node_cases
from hypothesis import given
from hypothesis import strategies as st
from naive_splits import NUMERIC, ONE_RIGHT, SETS

from forestprune import kernels
from forestprune.kernels.records import MOST_BINS, BinnedColumns, SplitPrice
from forestprune.polishing.split.tree import UNBOUNDED


@given(node_cases(), st.data())
def test_sums_by_bins_are_added_up(case, data):
    some = np.array(data.draw(st.lists(st.sampled_from(case.columns.tolist()), unique=True)), int)
    sums = np.full((case.about.first[-1], len(case.asked) + 1), 7.0)
    rows = np.arange(case.weight.size, dtype=np.int32)[::-1].copy()
    kernels.add_up_bins(
        some, case.about.first, case.bins, rows, case.asked[:, rows], case.weight[rows], sums
    )
    expected = np.full_like(sums, 7.0)
    for f in some:
        here = slice(case.about.first[f], case.about.first[f + 1])
        expected[here] = case.sums()[here]
    np.testing.assert_allclose(sums, expected, atol=1e-12)


@given(node_cases(), st.data())
def test_rows_are_parted_and_what_is_left_is_the_other_childs(case, data):
    n, outputs = case.weight.size, len(case.asked)
    goes_left = np.array([data.draw(st.booleans()) for _ in range(MOST_BINS)])
    rows = np.random.default_rng(n).permutation(n).astype(np.int32)
    # Only part of what is there, between others that must stay.
    first, last = sorted(data.draw(st.tuples(st.integers(0, n), st.integers(0, n))))
    here = slice(first, last)
    ordered, asked, weight = rows.copy(), case.asked[:, rows], case.weight[rows]
    spare = np.empty((outputs + 1, n))
    lefts = kernels.part_rows(
        case.bins[0],
        goes_left,
        ordered[here],
        asked[:, here],
        weight[here],
        np.empty(n, np.int32),
        spare,
    )
    to_left = goes_left[case.bins[0, rows[here]]]
    expected = [*rows[:first], *rows[here][to_left], *rows[here][~to_left], *rows[last:]]
    assert ordered.tolist() == expected
    assert lefts == to_left.sum()
    assert (asked == case.asked[:, ordered]).all()
    assert (weight == case.weight[ordered]).all()

    def sums_of(start, stop):
        sums = np.zeros((case.about.first[-1], outputs + 1))
        part = (ordered[start:stop], asked[:, start:stop], weight[start:stop])
        kernels.add_up_bins(case.columns, case.about.first, case.bins, *part, sums)
        return sums

    whole, left = sums_of(first, last), sums_of(first, first + lefts)
    kernels.take_from_bins(case.columns, case.about.first, left, whole)
    np.testing.assert_allclose(whole, sums_of(first + lefts, last), atol=1e-12)


def check(case):
    """Assert that the kernel finds a split as good as the best of all."""
    gain, column, border, goes_left = case.best()
    ends = case.ends if case.ends[0].size else None
    best = {
        f: naive_splits.best_question(
            case.bins, case.asked, case.weight, case.about, f, case.price, ends
        )
        for f in case.columns
    }
    # A set is the best of those that come first by what rows ask for; with a least weight, not all.
    exact = case.price.least_weight == NEXT_TO_NOTHING
    sure = [best[f] for f in case.columns if exact or case.about.kind[f] != SETS]
    lowest = -np.inf if case.price.linear else 0.0
    assert gain <= max(lowest, *best.values()) + 1e-9
    assert gain >= max([lowest, *sure]) - 1e-9
    if column < 0:
        return
    assert case.gain(column, goes_left) == pytest.approx(gain, abs=1e-9)
    assert gain > lowest
    about, kind = case.about, case.about.kind[column]
    count = about.first[column + 1] - about.first[column]
    lefts = set(np.flatnonzero(goes_left[:count]))
    if kind != NUMERIC:
        assert border == -1
        rest = count - 1
        if kind == ONE_RIGHT:
            assert len(lefts) == count - 1
        assert (rest in lefts) == (kind == ONE_RIGHT)
        return
    numbers = count - (about.missing[column] > -2)
    assert lefts - {numbers} == set(range(border + 1))
    assert 0 <= border < numbers - 1
    if about.missing[column] in (0, 1):
        assert (numbers in lefts) == about.missing[column]


@given(node_cases())
def test_the_best_split_is_the_best_of_all(case):
    check(case)


@given(node_cases(kinds=(NUMERIC,)))
def test_the_best_split_on_numbers_is_the_best_of_all(case):
    check(case)


@given(node_cases(kinds=(SETS,)))
def test_the_best_set_is_the_best_of_all(case):
    check(case)


@given(node_cases(linear=True))
def test_the_best_split_above_subtrees_sends_left_what_says_most(case):
    check(case)


def test_categories_are_in_the_order_of_their_means_whatever_the_shrinkage():
    about = BinnedColumns(*(np.array(each) for each in ([0, 4], [SETS], [0], [-2])))
    bins = np.repeat([0, 1, 2], [1, 9, 1]).astype(np.uint8)[np.newaxis]
    asked = np.repeat([-5.0, -1 / 3, -1.0], [1, 9, 1])[np.newaxis]
    price = SplitPrice(5.0, NEXT_TO_NOTHING, False)
    case = NodeCase(about, bins, asked, np.ones(11), price, UNBOUNDED)
    check(case)
    assert case.best()[3][:3].tolist() in ([True, False, True], [False, True, False])


def numbers_case(bins, asked, *, missing=-2, sign=0, **price):
    """Return a node whose rows have bins 0 to 9 of one column, and one for what is missing."""
    bins = np.array([bins], np.uint8)
    count = 10 + (missing > -2)
    about = BinnedColumns(
        np.array([0, count]), np.zeros(1, np.int8), np.array([sign], np.int8), np.array([missing])
    )
    asked = np.array([asked], float)
    how = {"shrinkage": 0.0, "least_weight": 1.0, "linear": False} | price
    return NodeCase(about, bins, asked, np.ones(bins.size), SplitPrice(**how), UNBOUNDED)


@pytest.mark.parametrize("outputs", [1, 2])
def test_between_bins_without_rows_the_border_is_in_the_middle(outputs):
    case = numbers_case([1, 1, 7, 7], [-1, -1, 1, 1])
    case.asked = np.repeat(case.asked, outputs, axis=0)
    assert case.best()[1:3] == (0, (1 + 6) // 2)
    case.bins[:] = [0, 0, 1, 1]
    assert case.best()[1:3] == (0, 0)
    case.bins[:] = [8, 8, 9, 9]
    assert case.best()[1:3] == (0, 8)


@pytest.mark.parametrize("outputs", [1, 2])
def test_what_is_missing_goes_where_it_is_best_and_else_with_most(outputs):
    for bins, expected in (([0, 0, 10, 5, 5], True), ([0, 0, 5, 5, 10], False)):
        case = numbers_case(bins, [-1, -1, -1, 1, 1], missing=-1)
        case.asked = np.repeat(case.asked, outputs, axis=0)
        if bins[-1] == 10:
            case.asked[:, 2] = 1.0
        assert case.best()[3][10] == expected
        for always in (0, 1):
            case.about.missing[:] = always
            assert case.best()[3][10] == always
    for bins, expected in (([0, 0, 0, 5, 5], True), ([0, 0, 5, 5, 5], False)):
        case = numbers_case(bins, [-1, -1, -1, 1, 1], missing=-1)
        case.asked = np.repeat(case.asked, outputs, axis=0)
        assert case.best()[3][10] == expected
        for always in (0, 1):
            case.about.missing[:] = always
            assert case.best()[3][10] == always


def test_signs_hold_without_bounds():
    rising = numbers_case([0, 0, 5, 5], [1, 1, -1, -1], sign=-1)
    assert rising.best()[1] == 0
    rising.about.sign[:] = 1
    assert rising.best()[1] == -1


@pytest.mark.parametrize("outputs", [1, 2])
def test_what_is_missing_is_parted_from_all_numbers_where_a_border_allows_it(outputs):
    case = numbers_case([10, 10, 5, 7], [-1, -1, 1, 1], missing=1)
    case.asked = np.repeat(case.asked, outputs, axis=0)
    assert case.best()[:3] == (pytest.approx(2.0 * outputs), 0, 2)  # between 0 and 5
    case.about.missing[:] = 0
    assert case.best()[:3] == (pytest.approx(2.0 * outputs), 0, 7)
