from itertools import pairwise

import naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.ensemble import ExtraTreesRegressor
from small_forests import small
from strategies import forests, rows

import forestprune as fp
from forestprune.kernels import routing
from forestprune.rows.encoding import checked_weights


@given(forests(), rows(), st.sampled_from([1, 2, 5]))
def test_codes_are_leaf_ranks(drawn, X, n_jobs):
    roots, forest = drawn
    encoding = fp.encode(forest, X, n_jobs=n_jobs)
    expected = [[naive.leaf_rank(root, row, forest.input.dtype) for row in X] for root in roots]
    assert encoding.codes.shape == (len(roots), len(X))
    assert encoding.n_rows == len(X)
    assert encoding.codes.dtype == np.uint8
    assert encoding.codes.tolist() == expected


@given(forests(depth=5, categorical=False), rows())
def test_both_walks_agree(drawn, X):
    """A row alone walks straight through the forest; many, more than nodes, go packed."""
    _, forest = drawn
    times = 1 + forest.n_nodes // len(X)
    packed = fp.encode(forest, np.tile(X, (times, 1)), n_jobs=1).codes[:, : len(X)]
    straight = [fp.encode(forest, row[np.newaxis], n_jobs=1).codes for row in X]
    np.testing.assert_array_equal(packed, np.concatenate(straight, axis=1))


def test_many_rows_go_through_several_blocks_and_pieces():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2 * routing.BLOCK + 17, 3))
    X[rng.random(X.shape) < 0.1] = np.nan
    model = ExtraTreesRegressor(7, max_depth=6, random_state=0).fit(X, rng.normal(size=len(X)))
    forest = fp.Forest.from_model(model)
    leaves = [np.flatnonzero(forest.left[a:b] < 0) for a, b in pairwise(forest.offsets)]
    native = model.apply(X).T
    for n_jobs in (1, 2, 3, None):
        codes = fp.encode(forest, X, n_jobs=n_jobs).codes
        for i in range(7):
            # The same rows share a leaf in both numberings.
            pairs = set(zip(leaves[i][codes[i]], native[i], strict=True))
            assert len(pairs) == len({a for a, _ in pairs}) == len({b for _, b in pairs})
        np.testing.assert_allclose(forest.predict(X, n_jobs=n_jobs), model.predict(X), rtol=1e-12)


@pytest.mark.parametrize(
    ("leaves", "dtype"),
    [(1, np.uint8), (256, np.uint8), (257, np.uint16), (65536, np.uint16), (65537, np.uint32)],
)
def test_the_smallest_type_is_chosen(leaves, dtype):
    n = 2 * leaves - 1
    is_split = np.arange(n) < leaves - 1
    forest = fp.Forest(
        offsets=np.array([0, n]),
        left=np.where(is_split, 2 * np.arange(n) + 1, -1),
        feature=np.where(is_split, 0, -1),
        threshold=np.zeros(n),
        missing_left=np.zeros(n, dtype=bool),
        value=np.zeros((n, 1)),
        cover=np.zeros(n),
        scale=np.ones(1),
        base=np.zeros(1),
        input=fp.InputSpec(n_features=1),
    )
    X = np.array([[-1.0], [1.0]])
    codes = fp.encode(forest, X).codes
    assert codes.dtype == dtype
    last = 0
    while is_split[last]:
        last = 2 * last + 2
    assert codes[0, 1] == np.count_nonzero(~is_split[:last])


@given(forests(), rows(), st.data())
def test_amounts_are_added_up_over_the_rows_of_nodes(drawn, X, data):
    roots, forest = drawn
    drawn_amounts = st.lists(st.integers(-5, 5), min_size=len(X), max_size=len(X))
    amounts = np.array(data.draw(drawn_amounts), dtype=float)
    found = fp.encode(forest, X).node_sums(amounts, data.draw(st.sampled_from([1, 2, None])))
    expected = [s for r in roots for s in naive.node_sums(r, X, amounts, forest.input.dtype)]
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("weights", [[1.0], [1.0, -1.0], [0.0, 0.0], [np.nan, 1.0], [[1.0, 1.0]]])
def test_weights_are_checked(weights):
    with pytest.raises(ValueError, match="sample_weight must"):
        checked_weights(weights, 2)


def test_a_forest_without_trees():
    empty = small(input=fp.InputSpec(n_features=2)).truncate(0).compact()
    encoding = fp.encode(empty, np.zeros((3, 2)))
    assert encoding.codes.shape == (0, 3)
    assert encoding.node_sums(np.ones(3)).shape == (0,)
    np.testing.assert_array_equal(empty.predict(np.zeros((3, 2))), [11.0] * 3)


def test_a_model_has_to_be_read_first():
    with pytest.raises(TypeError, match=r"Forest\.from_model"):
        fp.encode(ExtraTreesRegressor(), np.zeros((2, 2)))


def test_an_encoding_checks_what_kernels_will_index_by():
    forest = small(input=fp.InputSpec(n_features=2))
    encoding = fp.encode(forest, np.zeros((4, 2)))
    with pytest.raises(ValueError, match="read-only"):
        encoding.codes[0] = 0
    for codes in (
        np.zeros((1, 4), np.uint8),
        np.zeros((2, 4), np.int64),
        np.array([[0, 0], [0, 3]], np.uint8),
        np.zeros(4, np.uint8),
    ):
        with pytest.raises(ValueError, match="codes must"):
            fp.Encoding(forest, codes)
    for amounts in (np.ones(3), np.ones((4, 1)), 1.0):
        with pytest.raises(ValueError, match="one amount for each of the 4 rows"):
            encoding.node_sums(amounts)
    np.testing.assert_array_equal(encoding.take(np.array([1, 3])).codes, encoding.codes[:, 1::2])
