import copy
import pickle
from dataclasses import replace

import naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_forests import small
from strategies import forests, nodes, raw_tree, rows

from forestprune import Forest, InputSpec, InvalidForestError, Origin, UnsupportedModelError
from forestprune.forest.build import build_forest


def patched(name, node, entry):
    array = getattr(small(), name).copy()
    array[node] = entry
    return {name: array}


def test_sizes_and_shapes():
    forest = small()
    assert (forest.n_trees, forest.n_nodes, forest.n_outputs, forest.n_features) == (2, 8, 1, 2)
    assert forest.feature_names == ("a", "b")
    assert forest.max_depth == 2
    np.testing.assert_array_equal(forest.depths, [1, 2])
    np.testing.assert_array_equal(forest.layer_sizes(), [[2, 0], [2, 2]])
    np.testing.assert_array_equal(forest.node_depths, [0, 1, 1, 0, 1, 1, 2, 2])
    np.testing.assert_array_equal(forest.right, [2, -1, -1, 2, -1, 4, -1, -1])
    np.testing.assert_array_equal(forest.parent, [-1, 0, 0, -1, 0, 0, 2, 2])
    # One node: 4 + 4 + 8 + 1 + 8 + 8 bytes; three offsets, two scales, a base, one set offset.
    assert forest.memory == 8 * 33 + 8 * (3 + 2 + 1 + 1)


@given(forests())
def test_layers_are_those_of_the_trees(drawn):
    roots, forest = drawn
    sizes = [[len(layer) for layer in naive.layers(root)] for root in roots]
    assert [list(np.diff(bounds)) for bounds in forest.layers] == sizes
    assert list(forest.depths) == [len(layers) - 1 for layers in sizes]
    assert forest.layer_sizes().shape == (len(roots), max([0, *forest.depths]))
    for row, layers in zip(forest.layer_sizes(), sizes, strict=True):
        assert list(row[: len(layers) - 1]) == layers[1:]
        assert not row[len(layers) - 1 :].any()


def test_repr_says_what_it_is():
    assert repr(small()) == "Forest(2 trees, 8 nodes, depth 2, 2 features)"
    origin = Origin("sklearn", "RandomForestRegressor")
    assert repr(small(origin=origin)).endswith("from sklearn RandomForestRegressor)")
    two = small(base=[1.0, 2.0], value=np.zeros((8, 2)))
    assert "2 outputs" in repr(two)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (patched("left", 0, 0), "cycle.*Node 0 of tree 0 has left = 0"),
        (patched("left", 5, 1), "cycle.*Node 2 of tree 1 has left = 1"),
        (patched("left", 3, 3), "level order.*Node 0 of tree 1"),
        (patched("left", 0, 2), "same tree"),
        (patched("left", 1, -2), "same tree"),
        (patched("left", 5, -1) | patched("feature", 5, -1), "child of another.*Node 3 of tree 1"),
        (patched("feature", 0, 2), "below n_features.*feature = 2"),
        (patched("feature", 0, -1), "below n_features"),
        (patched("feature", 1, 0), "-1 at a leaf"),
        (patched("threshold", 0, np.nan), "threshold must be finite.*nan"),
        (patched("threshold", 3, np.inf), "threshold must be finite.*tree 1.*inf"),
        (patched("cover", 2, -1.0), "cover must be finite and not negative"),
        (patched("value", 2, np.nan), "value must be finite"),
        ({"scale": [1.0, np.inf]}, "scale must be finite"),
        ({"base": [np.nan]}, "base must be finite"),
        ({"base": [1.0, 2.0]}, "same number of outputs"),
        ({"base": []}, "at least one"),
        ({"scale": [1.0]}, "scale must have one entry a tree, that is 2, got 1"),
        ({"cover": [1.0]}, "cover must have one entry a node, that is 8, got 1"),
        ({"node_extras": {"x": np.ones(3)}}, "one entry a node"),
        ({"tree_extras": {"x": np.ones(3)}}, "one entry a tree"),
        ({"tree_extras": {"x": np.array([None, 1])}}, "must hold numbers"),
        ({"offsets": [0, 3, 3, 8]}, "rise by at least 1"),
        ({"offsets": [1, 3, 8]}, "start at 0"),
        ({"offsets": [0, 3]}, r"end at the length of left, 8; got \[0 3\]"),
        ({"offsets": []}, "start at 0"),
        ({"offsets": [0, 2**63 - 1, -2, 8]}, "start at 0"),
        ({"tree_extras": {"x": np.array(1)}}, "1 dimension"),
        ({"left": np.full(8, 2**32 - 1, np.uint32)}, "too large for int32"),
        ({"left": [1.0] * 8}, "left must be of type int32, got float64"),
        ({"left": [2**40] * 8}, "too large for int32"),
        ({"left": [[1]]}, "1 dimension"),
        ({"input": InputSpec(n_features=2, feature_names=("a",))}, "1 feature names"),
        ({"category_set": [0, -1, -1, -1, -1, -1, -1, -1]}, "number of a set"),
        (
            {
                "category_set": [-1, 0] + [-1] * 6,
                "set_offsets": [0, 1],
                "set_words": np.ones(1, np.uint32),
            },
            "-1 at a leaf",
        ),
        ({"set_offsets": [0, 2]}, "length of set_words"),
        ({"set_offsets": [0, 1, 0]}, "set_offsets must start at 0"),
    ],
)
def test_arrays_that_are_no_forest_are_refused(changes, message):
    with pytest.raises(InvalidForestError, match=message):
        small(**changes)


def test_it_never_changes():
    value = np.ones((8, 1))
    forest = small(value=value, node_extras={"x": np.zeros(8)})
    value[:] = 7
    assert (forest.value == 1).all()
    for array in (forest.left, forest.value, forest.scale, forest.node_extras["x"]):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1
    with pytest.raises(AttributeError):
        forest.left = np.zeros(8)
    with pytest.raises(TypeError):
        forest.node_extras["y"] = np.zeros(8)
    with pytest.raises(TypeError):
        hash(forest)


def test_a_read_only_view_of_somebody_elses_array_is_copied():
    value = np.ones((8, 1))
    view = value.view()
    view.flags.writeable = False
    forest = small(value=view)
    value[:] = 7
    assert (forest.value == 1).all()


def test_a_read_only_view_of_a_buffer_is_copied():
    buffer = bytearray(np.ones(8).tobytes())
    view = np.frombuffer(buffer)
    view.flags.writeable = False
    forest = small(cover=view)
    buffer[:] = bytes(len(buffer))
    assert (forest.cover == 1).all()


def test_what_is_cached_never_changes_either():
    forest = small()
    with pytest.raises(ValueError, match="read-only"):
        forest.layers[0][0] = 1


def test_equality_looks_at_everything():
    assert small() == small()
    assert small() != "forest"
    for change in (
        patched("threshold", 0, 0.75),
        patched("value", 7, 1.0),
        {"base": [11.0]},
        {"origin": Origin("sklearn", "X")},
        {"input": InputSpec(n_features=3)},
        {"tree_extras": {"x": np.ones(2)}},
    ):
        assert small(**change) != small()
    assert small(tree_extras={"x": np.ones(2)}) != small(tree_extras={"x": np.zeros(2)})
    assert small(tree_extras={"x": np.full(2, np.nan)}) == small(
        tree_extras={"x": np.full(2, np.nan)}
    )


@given(forests())
def test_copies_and_files_give_the_same_forest(tmp_path_factory, drawn):
    forest = replace(
        drawn[1],
        origin=Origin("sklearn", "X", {"params": {"a": [1, None, "ü"]}}),
        input=replace(drawn[1].input, feature_names=("a", "b", "ç")),
    )
    path = tmp_path_factory.mktemp("forest") / "any.name"
    forest.save(path)
    for twin in (Forest.load(path), pickle.loads(pickle.dumps(forest)), copy.deepcopy(forest)):
        assert twin == forest
        assert not twin.value.flags.writeable


def test_other_files_are_refused(tmp_path):
    path = tmp_path / "file.npz"
    for content in (b"", b"not an archive", pickle.dumps({"a": 1})):
        path.write_bytes(content)
        with pytest.raises(InvalidForestError, match="not a file written by forestprune"):
            Forest.load(path)
    np.savez(path, a=np.ones(3))
    with pytest.raises(InvalidForestError, match="not a file written by forestprune"):
        Forest.load(path)
    np.savez(path, metadata=np.frombuffer(b'{"format": 99}', np.uint8))
    with pytest.raises(InvalidForestError, match="file format 99"):
        Forest.load(path)
    np.savez(path, metadata=np.frombuffer(b'{"format": 1}', np.uint8))
    with pytest.raises(InvalidForestError, match="does not hold a forest"):
        Forest.load(path)
    with pytest.raises(FileNotFoundError):
        Forest.load(tmp_path / "nothing")


def test_a_file_that_claims_too_much_or_nests_too_deep_is_refused(tmp_path):
    path = tmp_path / "forest.npz"
    np.save(tmp_path / "plain.npy", np.ones(3))
    with pytest.raises(InvalidForestError, match="not a file written by forestprune"):
        Forest.load(tmp_path / "plain.npy")
    for text in (b"[1]", b"[" * 100_000, b"null"):
        np.savez(path, metadata=np.frombuffer(text, np.uint8))
        with pytest.raises(InvalidForestError, match="not a file written by forestprune"):
            Forest.load(path)
    small().save(path)
    content = path.read_bytes()
    for end in range(0, len(content), 53):
        path.write_bytes(content[:end])
        with pytest.raises(InvalidForestError):
            Forest.load(path)


@pytest.mark.parametrize(
    "change",
    [
        {"left": np.full(8, 1000)},
        {"feature": np.full(8, 1000)},
        {"offsets": np.array([0, 3, 1000])},
        {"offsets": np.array([0, 2**63 - 1, -2, 8])},
        {"value": np.ones((8, 0))},
        {"value": np.ones((4, 1))},
        {"scale": np.ones(1)},
        {"threshold": np.ones(7)},
        {"missing_left": np.ones(7, dtype=bool)},
        {"category_set": np.full(8, 5)},
        {"category_set": np.zeros(3, dtype=int)},
        {"set_offsets": np.array([0, 10])},
        {"set_offsets": np.array([0, -5, 0])},
        {"nonsense": np.ones(3)},
        {"nonsense/x": np.ones(3)},
    ],
)
def test_a_file_cannot_make_a_kernel_read_where_it_must_not(tmp_path, change):
    path = tmp_path / "forest.npz"
    small().save(path)
    np.savez(path, **(dict(np.load(path)) | change))
    with pytest.raises(InvalidForestError):
        Forest.load(path)


def test_only_what_came_from_a_library_goes_back():
    with pytest.raises(UnsupportedModelError, match="has no origin"):
        small().to_native()
    with pytest.raises(UnsupportedModelError, match="not among the registered"):
        small(origin=Origin("nosuchlibrary", "Model")).to_native()


@given(forests(), rows())
def test_predictions_are_those_of_the_twin(drawn, X):
    roots, forest = drawn
    expected = naive.predict(roots, X, forest.scale, forest.base, forest.input.dtype)
    predicted = forest.predict(X)
    assert predicted.shape == ((len(X),) if forest.n_outputs == 1 else (len(X), 2))
    np.testing.assert_allclose(predicted.reshape(len(X), -1), expected, rtol=1e-12, atol=1e-12)


@given(forests(), rows(), st.data())
def test_cutting_at_depths(drawn, X, data):
    roots, forest = drawn
    depths = data.draw(st.lists(st.integers(0, 4), min_size=len(roots), max_size=len(roots)))
    cut = forest.truncate(np.array(depths, dtype=int))
    cut_roots = [naive.truncated(r, d) for r, d in zip(roots, depths, strict=True)]
    assert naive.from_forest(cut) == cut_roots
    leaf = cut.left < 0
    assert not cut.threshold[leaf].any()
    assert not cut.missing_left[leaf].any()
    expected = naive.predict(cut_roots, X, forest.scale, forest.base, forest.input.dtype)
    np.testing.assert_allclose(cut.predict(X).reshape(len(X), -1), expected, rtol=1e-12, atol=1e-12)
    assert forest.truncate(4) == forest


def test_no_depths_for_no_trees():
    empty = small().truncate(0).compact()
    assert empty.truncate([]) == empty


def test_depths_must_be_whole_and_fit():
    for wrong in (1.5, [1, 2, 3], "deep", [[1, 2]]):
        with pytest.raises(ValueError, match="one for each of the 2 trees"):
            small().truncate(wrong)
    with pytest.raises(ValueError, match="negative"):
        small().truncate(-1)


@given(nodes(depth=3))
def test_every_pruning_can_be_kept(root):
    raw = raw_tree(root)
    forest = build_forest(
        [raw], n_nodes=raw.left.size, scale=[1.0], base=[0.0], input=InputSpec(n_features=3)
    )
    for count, pruned in enumerate(naive.prunings(root)):
        kept = forest.keep(np.array(naive.kept_mask(root, pruned)))
        assert naive.from_forest(kept) == [pruned]
        assert kept.set_offsets.size - 1 == np.count_nonzero(kept.category_set >= 0)
        if count > 100:
            break


@pytest.mark.parametrize(
    ("dropped", "message"),
    [
        ([0, 1, 2], "every root.*node 0 of tree 0"),
        ([4], "both children.*node 0 of tree 1"),
        ([4, 5], "all its ancestors.*node 2 of tree 1"),
    ],
)
def test_masks_that_leave_no_trees_are_refused(dropped, message):
    mask = np.ones(8, dtype=bool)
    mask[dropped] = False
    with pytest.raises(ValueError, match=message):
        small().keep(mask)


def test_masks_must_be_bool_and_fit():
    for wrong in (np.ones(8), np.ones(7, dtype=bool), True):
        with pytest.raises(ValueError, match="type bool and shape"):
            small().keep(wrong)


@given(forests(), rows())
def test_compacting_changes_no_prediction(drawn, X):
    _, forest = drawn
    small_ones = forest.compact()
    assert small_ones.n_trees == np.count_nonzero(forest.depths)
    assert (small_ones.depths > 0).all()
    np.testing.assert_array_equal(small_ones.tree_extras["number"], np.flatnonzero(forest.depths))
    np.testing.assert_allclose(small_ones.predict(X), forest.predict(X), rtol=1e-12, atol=1e-12)


def test_a_chain_a_thousand_deep():
    depth = 1000
    offsets = np.array([0, 2 * depth + 1])
    is_split = np.zeros(2 * depth + 1, dtype=bool)
    is_split[0] = True
    is_split[2 : 2 * depth : 2] = True
    left = np.where(is_split, 2 * np.cumsum(is_split) - 1, -1)
    forest = Forest(
        offsets=offsets,
        left=left,
        feature=np.where(is_split, 0, -1),
        threshold=np.where(is_split, np.cumsum(is_split) - 0.5, 0.0),
        missing_left=np.zeros(left.size, dtype=bool),
        value=np.arange(left.size, dtype=float)[:, np.newaxis],
        cover=np.ones(left.size),
        scale=np.ones(1),
        base=np.zeros(1),
        input=InputSpec(n_features=1),
    )
    assert forest.max_depth == depth
    X = np.arange(0, depth + 1, dtype=float)[:, np.newaxis]
    expected = np.append(np.arange(1, 2 * depth, 2), 2 * depth)
    np.testing.assert_array_equal(forest.predict(X), expected)
    np.testing.assert_array_equal(forest.truncate(500).predict(X)[:500], expected[:500])


@given(forests(max_trees=4))
def test_thresholds_and_features_are_counted(drawn):
    roots, forest = drawn
    found = set()
    todo = [*roots]
    while todo:
        node = todo.pop()
        if not node.is_leaf:
            asked = node.threshold if node.categories is None else frozenset(node.categories)
            found.add((node.feature, asked))
            todo += [node.left, node.right]
    assert forest.n_thresholds == len(found)
    assert forest.n_features_used == len({feature for feature, _ in found})
