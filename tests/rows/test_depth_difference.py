import naive
import numpy as np
from hypothesis import given
from strategies import forests, rows

import forestprune as fp


@given(forests(), rows())
def test_it_is_algorithm_1(drawn, X):
    roots, forest = drawn
    matrices = fp.depth_difference(forest, X)
    width, dtype = forest.max_depth + 1, forest.input.dtype
    expected = np.array(
        [[naive.depth_difference(root, row, width, dtype) for row in X] for root in roots]
    ).reshape(len(roots), len(X), width, forest.n_outputs)
    if forest.n_outputs == 1:
        expected = expected[..., 0]
    np.testing.assert_array_equal(matrices, expected)


@given(forests(), rows())
def test_partial_sums_are_the_cut_trees(drawn, X):
    _, forest = drawn
    matrices = fp.depth_difference(forest, X)
    for k in range(forest.max_depth + 1):
        trees = matrices[:, :, : k + 1].sum(axis=2)
        total = np.tensordot(forest.scale, trees, 1) + forest.base
        if forest.n_outputs == 1:
            total = total.reshape(len(X))
        np.testing.assert_allclose(forest.truncate(k).predict(X), total, rtol=1e-9, atol=1e-9)
