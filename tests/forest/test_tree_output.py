"""Forests in which each tree adds to one output, as boosting for several classes grows them."""

import copy
import pickle
from dataclasses import replace

import naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_forests import small
from strategies import N_FEATURES, nodes, raw_tree, rows, values

import forestprune as fp
from forestprune.forest.build import average_of_leaves, build_forest, with_a_tree


@st.composite
def forests_by_output(draw):
    """Draw linked trees, the output of each, and the Forest made of them."""
    roots = draw(st.lists(nodes(), min_size=1, max_size=4))
    base = draw(st.lists(values, min_size=1, max_size=3))
    outputs = draw(
        st.lists(st.integers(0, len(base) - 1), min_size=len(roots), max_size=len(roots))
    )
    raw = [raw_tree(root) for root in roots]
    forest = build_forest(
        raw,
        n_nodes=sum(tree.left.size for tree in raw),
        scale=draw(st.lists(values, min_size=len(roots), max_size=len(roots))),
        base=base,
        tree_output=outputs,
        input=fp.InputSpec(n_features=N_FEATURES),
    )
    return roots, outputs, forest


def three(**changes):
    """Return the small forest with three outputs, whose trees add to the last and the first."""
    return small(**{"base": [1.0, 2.0, 3.0], "tree_output": [2, 0]} | changes)


@given(forests_by_output(), rows(), st.data())
def test_predictions_are_those_of_the_twin(drawn, X, data):
    roots, outputs, forest = drawn
    depths = data.draw(st.lists(st.integers(0, 4), min_size=len(roots), max_size=len(roots)))
    cut = forest.truncate(np.array(depths))
    cut_roots = [naive.truncated(r, d) for r, d in zip(roots, depths, strict=True)]
    expected = naive.predict(cut_roots, X, forest.scale, forest.base, "float64", outputs)
    for same in (cut, cut.compact(), with_a_tree(cut), pickle.loads(pickle.dumps(cut))):
        predicted = same.predict(X).reshape(len(X), -1)
        np.testing.assert_allclose(predicted, expected, rtol=1e-12, atol=1e-12)
    assert list(cut.compact().tree_output) == [
        o for o, depth in zip(outputs, cut.depths, strict=True) if depth
    ]


@given(forests_by_output(), rows())
def test_it_is_the_forest_with_a_column_for_each_output(drawn, X):
    _, _, forest = drawn
    tree = np.repeat(np.arange(forest.n_trees), np.diff(forest.offsets))
    value = np.zeros((forest.n_nodes, forest.n_outputs))
    value[np.arange(forest.n_nodes), forest.tree_output[tree]] = forest.value[:, 0]
    joint = replace(forest, value=value, tree_output=np.empty(0, np.int32))
    np.testing.assert_array_equal(joint.predict(X), forest.predict(X))
    means = average_of_leaves(forest).truncate(1)
    joint_means = average_of_leaves(joint).truncate(1)
    np.testing.assert_allclose(joint_means.predict(X), means.predict(X), rtol=1e-12, atol=1e-12)


def test_copies_and_files_keep_it(tmp_path):
    forest = three()
    forest.save(tmp_path / "forest.npz")
    for twin in (
        fp.Forest.load(tmp_path / "forest.npz"),
        pickle.loads(pickle.dumps(forest)),
        copy.deepcopy(forest),
        forest.truncate(9),
        forest.keep(np.ones(8, dtype=bool)),
    ):
        assert twin == forest
        assert twin.tree_output.dtype == np.int32
        assert not twin.tree_output.flags.writeable
    assert three(tree_output=[0, 2]) != forest


@pytest.mark.parametrize(
    "changes",
    [
        {"tree_output": [0]},
        {"tree_output": [0, 3]},
        {"tree_output": [-1, 0]},
        {"tree_output": [0.0, 1.0]},
        {"value": np.zeros((8, 3))},
        {"tree_output": []},
    ],
)
def test_what_does_not_fit_is_refused(changes, tmp_path):
    with pytest.raises(fp.InvalidForestError, match=r"tree_output|number of outputs"):
        three(**changes)
    three().save(tmp_path / "forest.npz")
    contents = dict(np.load(tmp_path / "forest.npz"))
    contents |= {name: np.array(array) for name, array in changes.items()}
    np.savez(tmp_path / "forest.npz", **contents)
    with pytest.raises(fp.InvalidForestError):
        fp.Forest.load(tmp_path / "forest.npz")


def test_without_trees_nothing_says_which_output_they_add_to():
    constant = three().truncate(0).compact()
    assert constant.tree_output.size == 0
    assert constant.value.shape == (0, 3)
    np.testing.assert_array_equal(constant.base, [1.5, 2.0, 3.5])


X = np.zeros((4, 2))


@pytest.mark.parametrize(
    "use",
    [
        lambda forest: fp.depth_difference(forest, X),
        *(
            lambda forest, library=library, name=name: replace(
                forest, origin=fp.Origin(library, name)
            ).to_native()
            for library, name in [
                ("sklearn", "RandomForestRegressor"),
                ("sklearn", "HistGradientBoostingRegressor"),
                ("catboost", "CatBoostRegressor"),
            ]
        ),
    ],
)
@pytest.mark.filterwarnings("ignore:X has no column names")
def test_what_cannot_use_it_says_so(use):
    with pytest.raises(fp.UnsupportedModelError, match="tree adds to one of 3 outputs"):
        use(three())
