"""Intervals of nodes: whatever is kept of a tree, within them it is monotone."""

from dataclasses import replace

import naive
import numpy as np
import pytest
from hand_made import built, leaf, split
from hypothesis import given
from hypothesis import strategies as st
from strategies import N_FEATURES, forests

from forestprune import Forest
from forestprune.forest.checks import InvalidForestError
from forestprune.forest.constraints import kept_by_trees, node_boxes, within_boxes
from forestprune.forest.origin import Origin
from forestprune.rows.trees import read_trees

signs = st.lists(st.sampled_from([-1, 0, 1]), min_size=N_FEATURES, max_size=N_FEATURES)


def constrained(forest, monotone):
    return replace(forest, origin=Origin("sklearn", "Model", monotone=tuple(monotone)))


@given(drawn=forests(max_outputs=1), monotone=signs)
def test_boxes_are_those_of_the_twin(drawn, monotone):
    roots, forest = drawn
    found = node_boxes(constrained(forest, monotone))
    if not any(monotone):
        assert found is None
        return
    twin = [
        box
        for root, scale in zip(roots, forest.scale, strict=True)
        for box in naive.boxes(root, monotone, -1.0 if scale < 0 else 1.0)
    ]
    expected = np.reshape(np.array(twin, dtype=float), (-1, 2))
    np.testing.assert_array_equal(np.column_stack([b[:, 0] for b in found]), expected)


@given(drawn=forests(), monotone=signs)
def test_values_moved_inside_once_are_inside(drawn, monotone):
    forest = constrained(drawn[1], monotone)
    inside = within_boxes(forest)
    assert within_boxes(inside) is inside
    trees = read_trees(inside, np.empty(0))
    if any(monotone):
        slack = 1e-12 * (1 + np.abs(trees.origin))
        assert (trees.low <= trees.high).all()
        assert (trees.low - slack <= trees.origin).all()
        assert (trees.origin <= trees.high + slack).all()
    else:
        assert inside is forest
        assert trees.low.shape == (forest.n_outputs, 0)


@given(drawn=forests(categorical=False, max_outputs=1), monotone=signs, data=st.data())
def test_any_values_within_boxes_are_monotone(drawn, monotone, data):
    roots, forest = drawn
    forest = within_boxes(constrained(forest, monotone))
    boxes = node_boxes(forest)
    if boxes is None or not roots:
        return
    rng = np.random.default_rng(data.draw(st.integers(0, 1000)))
    wide = [np.clip(bound[:, 0], -20, 20) for bound in boxes]
    ends = np.sort(wide, axis=0) + 0.0  # without -0.0, which numpy takes to be below 0.0
    value = rng.choice([wide[0], wide[1], rng.uniform(*ends)])
    masks = [
        naive.kept_mask(root, data.draw(st.sampled_from(list(naive.prunings(root)))))
        for root in roots
    ]
    pruned = replace(forest, value=value[:, np.newaxis]).keep(np.concatenate(masks))
    for column, sign in enumerate(monotone):
        row = rng.choice([-1.0, 0.0, 0.3, 1.0, 2.2], size=N_FEATURES)
        line = np.tile(row, (40, 1))
        line[:, column] = np.sort(rng.uniform(-2, 3, 40))
        step = np.diff(np.reshape(pruned.predict(line), (40, -1)), axis=0)
        assert (sign * step >= 0).all()


def test_leaves_that_cross_a_bound_meet_halfway():
    # As LightGBM's finer methods have them: the left side reaches above the right one.
    tree = split(
        0,
        0.0,
        split(1, 0.0, leaf(0.0), leaf(2.0)),
        split(1, 0.0, leaf(1.0), leaf(3.0)),
    )
    forest = constrained(built([tree]), (1, 0, 0))
    inside = within_boxes(forest)
    assert inside.value[:, 0].tolist() == [1.5, 1.0, 2.0, 0.0, 1.5, 1.5, 3.0]


def test_categories_have_no_order_to_keep():
    tree = split(0, 0.0, leaf(3.0), leaf(1.0), categories=frozenset({1}))
    assert within_boxes(constrained(built([tree]), (1, 0, 0))).value[1, 0] == 3.0


@pytest.mark.parametrize(
    ("second", "expected"), [((-1.0, 1.0), (1, 0, 0)), ((1.0, -1.0), ()), ((2.0, 2.0), (1, 0, 0))]
)
def test_what_all_trees_keep_counts_if_nothing_else_is_known(second, expected):
    trees = [split(0, t, leaf(-1.0), leaf(1.0)) for t in (0.0, 1.0)]
    trees.append(split(0, 0.5, *map(leaf, second)))
    forest = built(trees)
    assert kept_by_trees(forest, least=3) == expected
    assert kept_by_trees(forest, least=4) == ()


def test_constraints_survive_files_and_must_fit(tmp_path):
    forest = built([split(0, 0.0, leaf(0.0), leaf(1.0))])
    origin = Origin("sklearn", "Model", monotone=(1, 0, -1), interactions=((0, 1), (2,)))
    replace(forest, origin=origin).save(tmp_path / "forest.npz")
    again = Forest.load(tmp_path / "forest.npz")
    assert again.origin == origin
    assert again.monotone.tolist() == [1, 0, -1]
    with pytest.raises(InvalidForestError, match="3 features, but 2 monotone constraints"):
        constrained(forest, (1, 0))
    with pytest.raises(ValueError, match="-1, 0 and 1"):
        Origin("sklearn", "Model", monotone=(2,))
    for strange in ((0, 3), (-1,)):
        with pytest.raises(InvalidForestError, match="columns 0 to 2"):
            replace(forest, origin=replace(origin, interactions=(strange,)))
