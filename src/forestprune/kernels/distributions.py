"""Leaves that must be distributions over classes, in an average of trees.

In an average of n trees, leaf v of one of them adds f_v to the intercept b if its distribution is
q_v = n f_v + b. The objective of a leaf, as in subtrees.py, has the same curvature in all classes,
so its best distribution is the projection of its best vector onto the simplex: the nearest one
whose entries are not negative and sum to 1. Of two classes there is one output, the probability of
the second, and the projection is a cut at 0 and 1.

A class that none of N rows has is not impossible: as if one more row were there, whose class is
drawn from b, each class keeps at least b / (N + 1). So leaves go from b at most N / (N + 1) of the
way to a distribution, and the set they are projected onto is a smaller simplex around b. Of a
forest with monotone constraints they may go all the way, lest what is in order be cut apart.

While trees are chosen, n is how many may be kept at most. If fewer are, then b, which is a
distribution too, stands in for those that are not there, so that in an average of those that are
leaves are still distributions.
"""

import numpy as np

from forestprune.kernels.jit import inner, kernel


@inner
def project(q):
    """Replace q by the nearest distribution; by the nearest number from 0 to 1 if it has one."""
    if q.size == 1:
        q[0] = min(max(q[0], 0.0), 1.0)
        return
    # What entries that stay positive give up alike. Each round leaves out those that would not, at
    # least one until none is left to leave out: rounding must not let them take turns.
    lift, count = -np.inf, q.size + 1
    for _ in range(q.size):
        total, now = 0.0, 0
        for k in range(q.size):
            if q[k] > lift:
                total += q[k]
                now += 1
        if now >= count:
            break
        count = now
        lift = (total - 1.0) / now
    total = 0.0
    for k in range(q.size):
        q[k] = max(q[k] - lift, 0.0)
        total += q[k]
    for k in range(q.size):
        q[k] /= total


@inner
def way(trees, v):
    """Return how far from the intercept to a certain class node v may go as a leaf."""
    weight = trees.weight[v]
    return 1.0 if trees.low.shape[1] else weight / (weight + 1.0)


@inner
def to_distribution(trees, price, v, q):
    """Replace q, what node v would add to the intercept, by the nearest that it may add."""
    far = way(trees, v)
    if far == 0.0:
        q[:] = 0.0
        return
    for o in range(q.size):
        q[o] = q[o] * price.most_trees / far + price.centre[o]
    project(q)
    for o in range(q.size):
        q[o] = (q[o] - price.centre[o]) * far / price.most_trees


@inner
def best_distribution(trees, price, v, weight, total, u, q):
    """Write into q what node v best adds as a leaf that is a distribution.

    Its rows have this weight and the sums total[:, u].
    """
    n = weight + price.shrinkage
    for o in range(q.size):
        q[o] = trees.origin[o, v]
        if n > 0.0:
            q[o] = (total[o, u] + price.shrinkage * q[o]) / n
    to_distribution(trees, price, v, q)


@kernel
def project_leaves(value, centre, n_trees):
    """Replace what leaves add, (n_outputs, n_leaves), by the nearest that keeps distributions.

    In an average of `n_trees` trees whose intercept is `centre`.
    """
    q = np.empty(centre.size)
    for j in range(value.shape[1]):
        for o in range(q.size):
            q[o] = n_trees * value[o, j] + centre[o]
        project(q)
        for o in range(q.size):
            value[o, j] = (q[o] - centre[o]) / n_trees
