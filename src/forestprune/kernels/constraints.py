"""The interval of each node within which its value keeps what a monotone constraint promises.

At a split on a constrained feature everything on one side must stay below everything on the other.
So between the largest value on the lower side and the smallest on the upper one there is a bound,
and it is passed on to all nodes below. Whatever of a tree is kept, and whatever its values within
these intervals are, two rows that differ in a constrained feature alone part at a split on it, and
end on the right sides of its bound.

Intervals may be stretched and moved, all those of a tree alike: low and high become c low + d and
c high + d with c > 0, which changes no order. A tree that is left alone by others has more to add
than it had among them, so the c and d that fit it best are tried beside those it has.
"""

import numpy as np

from forestprune.kernels.jit import inner, kernel
from forestprune.kernels.nodes import leaves_of


@kernel
def bound_nodes(offsets, left, direction, value, low, high):
    """Write the interval of each node's value into `low` and `high`, all (n_nodes, n_outputs).

    direction[v] is 1 at a split whose left side must not be above its right one, -1 the other way
    round, 0 elsewhere. Where values are on the wrong side of each other, the bound is halfway
    between them.
    """
    least, most = value.copy(), value.copy()
    for i in range(offsets.size - 1):
        a = offsets[i]
        for v in range(offsets[i + 1] - 1, a - 1, -1):
            if left[v] >= 0:
                c = a + left[v]
                for k in range(value.shape[1]):
                    least[v, k] = min(least[v, k], least[c, k], least[c + 1, k])
                    most[v, k] = max(most[v, k], most[c, k], most[c + 1, k])
        for k in range(value.shape[1]):
            low[a, k], high[a, k] = -np.inf, np.inf
            for v in range(a, offsets[i + 1]):
                if left[v] >= 0:
                    c = a + left[v]
                    for child in range(c, c + 2):
                        low[child, k], high[child, k] = low[v, k], high[v, k]
                    if direction[v]:
                        lower = c if direction[v] > 0 else c + 1
                        upper = c + 1 if direction[v] > 0 else c
                        bound = 0.5 * most[lower, k] + 0.5 * least[upper, k]
                        bound = min(max(bound, low[v, k]), high[v, k])
                        high[lower, k] = bound
                        low[upper, k] = bound


@inner
def within(trees, stretch, o, v, f):
    """Return what is nearest to f in the interval of node v, stretched, for output o."""
    c, d = stretch[o, 0], stretch[o, 1]
    return min(max(f, c * trees.low[o, v] + d), c * trees.high[o, v] + d)


@inner
def fit_stretch(trees, i, total, stretch):
    """Write by what tree i, times c and plus d, would fit best; return whether it should be tried.

    total[o, v] is the residual without the tree, summed over the rows in its leaf v.
    """
    a, leaf = trees.offsets[i], leaves_of(trees, i)
    for o in range(total.shape[0]):
        rows, sums, values, products, squares = 0.0, 0.0, 0.0, 0.0, 0.0
        for rank in range(leaf.size):
            v = leaf[rank]
            n, f = trees.weight[a + v], trees.origin[o, a + v]
            rows += n
            sums += total[o, v]
            values += n * f
            products += total[o, v] * f
            squares += n * f * f
        spread = squares - values * values / rows if rows > 0.0 else 0.0
        if not spread > 1e-12 * squares:
            return False
        c = (products - sums * values / rows) / spread
        if not c > 0.0:
            return False
        stretch[o, 0], stretch[o, 1] = c, (sums - c * values) / rows
    return True
