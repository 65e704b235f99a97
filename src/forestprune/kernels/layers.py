"""Cutting trees at a depth: the `layer` rule of the paper, alone or with a free weight a tree.

Tree i cut at depth k and weighted by beta adds `beta * q_k` to the prediction, where q_k is the sum
of the first k columns of its depth-difference matrix, times its scale. Those columns are never
built. All rows in a node share its step (its value minus its parent's, times the scale), so with
S_v the residual and N_v the weight summed over the rows in node v,

    q_k . r   = sum of step_v * S_v    over the nodes of layers 1..k,
    q_k . q_k = sum of add_v^2 * N_v   over the nodes where rows end if the tree is cut at k,

add_v being the sum of the steps from the root down to v. Inner products are weighted by the rows'
weights; residuals are kept times these weights, one line of `residual` for each output.

Choices are compared by `-2 beta q_k.r + beta^2 (q_k.q_k + ridge) + penalty_k`, r being the residual
without tree i: the part of the objective that depends on tree i, times the target's total
variation. With a free weight the best is `beta = q_k.r / (q_k.q_k + ridge)`.
"""

import numpy as np

from forestprune.kernels.jit import kernel
from forestprune.kernels.sketch import SLACK


@kernel
def write_adds(steps, i, depth, weight, out):
    """Write into out[v] what tree i, cut at `depth`, adds for the rows that pass node v.

    Below the cut that is what the ancestor at the cut adds.
    """
    a = steps.offsets[i]
    bounds = steps.bounds[steps.first_bound[i] : steps.first_bound[i + 1]]
    outputs = out.shape[1]
    for o in range(outputs):
        out[0, o] = 0.0
    for k in range(bounds.size - 2):
        factor = weight if k < depth else 0.0
        for v in range(bounds[k], bounds[k + 1]):
            c = steps.left[a + v]
            if c >= 0:
                for o in range(outputs):
                    out[c, o] = out[v, o] + factor * steps.step[a + c, o]
                    out[c + 1, o] = out[v, o] + factor * steps.step[a + c + 1, o]


@kernel
def measure_layers(first, last, steps):
    """Fill in `square` and `reach` of trees first..last."""
    outputs = steps.step.shape[1]
    for i in range(first, last):
        a, b = steps.offsets[i], steps.offsets[i + 1]
        bounds = steps.bounds[steps.first_bound[i] : steps.first_bound[i + 1]]
        depth = bounds.size - 2
        add = np.empty((b - a, outputs))
        write_adds(steps, i, depth, 1.0, add)
        square, reach = 0.0, 0.0
        steps.square[i, 0] = 0.0
        steps.reach[i, 0] = 0.0
        for k in range(1, depth + 1):
            layer = 0.0
            for v in range(bounds[k], bounds[k + 1]):
                for o in range(outputs):
                    step, above = steps.step[a + v, o], add[v, o] - steps.step[a + v, o]
                    square += steps.weight[a + v] * step * (step + 2.0 * above)
                    layer += steps.weight[a + v] * step * step
            reach += np.sqrt(layer)
            steps.square[i, k] = max(square, 0.0)
            steps.reach[i, k] = reach


@kernel
def _look(codes, steps, cut, i, correlation, add, total):
    """Write into correlation[k] what q_k . r is, r being the residual without tree i."""
    a, b = steps.offsets[i], steps.offsets[i + 1]
    bounds = steps.bounds[steps.first_bound[i] : steps.first_bound[i + 1]]
    outputs = steps.step.shape[1]
    in_leaf = np.zeros((outputs, (b - a + 1) // 2))
    code = codes[i]
    for o in range(outputs):
        sums, residual = in_leaf[o], cut.residual[o]
        for x in range(residual.size):
            sums[code[x]] += residual[x]
    present = cut.depth[i] > 0
    if present:
        write_adds(steps, i, cut.depth[i], cut.weight[i], add)
    rank = in_leaf.shape[1]
    for k in range(bounds.size - 2, -1, -1):
        layer = 0.0
        for v in range(bounds[k + 1] - 1, bounds[k] - 1, -1):
            c = steps.left[a + v]
            if c < 0:
                rank -= 1
            for o in range(outputs):
                if c >= 0:
                    total[v, o] = total[c, o] + total[c + 1, o]
                else:
                    total[v, o] = in_leaf[o, rank]
                    if present:
                        total[v, o] += steps.weight[a + v] * add[v, o]
                layer += steps.step[a + v, o] * total[v, o]
        correlation[k] = layer
    correlation[0] = 0.0
    for k in range(1, bounds.size - 1):
        correlation[k] += correlation[k - 1]


@kernel
def _renew(codes, steps, cut, i, add, total):
    """Look at tree i, and remember what was seen and when."""
    _look(codes, steps, cut, i, cut.correlation[i], add, total)
    for j in range(cut.moved.size):
        cut.moved_then[i, j] = cut.moved[j]
    for j in range(cut.drift.size):
        cut.drift_then[i, j] = cut.drift[j]


@kernel
def _worth(steps, cut, price, i, correlation):
    """Return what tree i's part of the objective is now, if q_k . r is correlation[k]."""
    k, beta = cut.depth[i], cut.weight[i]
    if k == 0:
        return 0.0
    square = steps.square[i, k] + price.ridge[i]
    return beta * (beta * square - 2.0 * correlation[k]) + price.penalty[i, k]


@kernel
def _choice(steps, price, i, k, correlation):
    """Return what tree i's part of the objective would be if cut at depth k >= 1, and the weight.

    `correlation` is q_k . r.
    """
    square = steps.square[i, k] + price.ridge[i]
    beta = 1.0
    if price.free:
        beta = correlation / square if square > 0.0 else 0.0
    return beta * (beta * square - 2.0 * correlation) + price.penalty[i, k], beta


@kernel
def _best(steps, cut, price, i, correlation):
    """Return what the best depth and weight of tree i gain over the present ones, and which.

    correlation[k] is q_k . r.
    """
    best, depth, weight = 0.0, 0, 1.0
    for k in range(1, steps.first_bound[i + 1] - steps.first_bound[i] - 1):
        worth, beta = _choice(steps, price, i, k, correlation[k])
        if worth < best:
            best, depth, weight = worth, k, beta
    return _worth(steps, cut, price, i, correlation) - best, depth, weight


@kernel
def price_choices(steps, cut, price, worth, weight):
    """Write each tree's part of the objective if cut at each depth, and the weights.

    Depths that a tree does not have are infinitely bad. Goes by what is known of the trees.
    """
    for i in range(cut.depth.size):
        for k in range(worth.shape[1]):
            worth[i, k] = np.inf if k else 0.0
            weight[i, k] = 1.0
        for k in range(1, steps.first_bound[i + 1] - steps.first_bound[i] - 1):
            worth[i, k], weight[i, k] = _choice(steps, price, i, k, cut.correlation[i, k])


@kernel
def _may_gain(steps, cut, price, i, correlation, reach, moved):
    """Return what a change of tree i gains at most if q_k . r is near correlation[k].

    It is off by at most reach[k] * moved (Cauchy-Schwarz), and the difference of two by at most
    |reach[k] - reach[j]| * moved.
    """
    at, beta = cut.depth[i], cut.weight[i]
    now = _worth(steps, cut, price, i, correlation)
    off = 2.0 * moved * abs(beta) * reach[at]
    most = now + off
    for k in range(1, steps.first_bound[i + 1] - steps.first_bound[i] - 1):
        square = steps.square[i, k] + price.ridge[i]
        if not price.free:
            gain = now - (square - 2.0 * correlation[k] + price.penalty[i, k])
            gain += 2.0 * moved * abs(reach[k] - reach[at])
        elif square <= 0.0:
            continue
        elif k == at:
            # The same cut with a better weight: what it is and what it could be move together.
            lack = abs(correlation[k] - beta * square) + moved * reach[k]
            gain = lack * lack / square
        else:
            top = abs(correlation[k]) + moved * reach[k]
            gain = now + off + top * top / square - price.penalty[i, k]
        most = max(most, gain)
    return most


@kernel
def _estimate(steps, cut, i, out):
    """Write into out[k] what q_k . r should be by now, going by the sketch of the residual."""
    depth = steps.first_bound[i + 1] - steps.first_bound[i] - 2
    layers = min(steps.share.shape[2], depth)
    for k in range(depth + 1):
        out[k] = 0.0
    for j in range(cut.drift.size):
        by = cut.drift[j] - cut.drift_then[i, j]
        for k in range(layers):
            out[k + 1] += by * steps.share[i, j, k]
    for k in range(1, depth + 1):
        out[k] += out[k - 1]
    for k in range(1, depth + 1):
        out[k] += cut.correlation[i, k]


@kernel
def _certainly_stays(steps, cut, price, i, estimate):
    """Tell, without looking at the rows, whether tree i would not change if it were looked at.

    First by how far the residual has moved since the tree was last looked at; then, less crudely,
    by where to: the sketch says by how much q_k . r has changed but for the rest. Half of `least`
    leaves room for rounding.
    """
    enough = 0.5 * price.least
    moved = cut.moved[0] - cut.moved_then[i, 0]
    if _may_gain(steps, cut, price, i, cut.correlation[i], steps.reach[i], moved) <= enough:
        return True
    if not cut.drift.size:
        return False
    _estimate(steps, cut, i, estimate)
    moved = cut.moved[1] - cut.moved_then[i, 1]
    return _may_gain(steps, cut, price, i, estimate, steps.rest[i], moved) <= enough


@kernel
def _drift(steps, cut, i, depth, weight):
    """Carry the sketch of the residual along as tree i changes; return the square of the move.

    Its own moves do not count for tree i: what is known of it is about the residual without it.
    """
    square = 0.0
    for j in range(cut.drift.size):
        along = 0.0
        for k in range(steps.share.shape[2]):
            factor = (weight if k < depth else 0.0) - (cut.weight[i] if k < cut.depth[i] else 0.0)
            along += factor * steps.share[i, j, k]
        cut.drift[j] -= along
        cut.drift_then[i, j] -= along
        square += along * along
    return square


@kernel
def _change(codes, row_weight, steps, cut, i, depth, weight, old, new):
    """Cut tree i at `depth` with `weight`, and carry the residual along."""
    a, b = steps.offsets[i], steps.offsets[i + 1]
    outputs = steps.step.shape[1]
    write_adds(steps, i, cut.depth[i], cut.weight[i], old)
    write_adds(steps, i, depth, weight, new)
    by_leaf = np.empty((outputs, (b - a + 1) // 2))
    rank = 0
    square = 0.0
    for v in range(b - a):
        if steps.left[a + v] < 0:
            for o in range(outputs):
                by = new[v, o] - old[v, o]
                by_leaf[o, rank] = by
                square += steps.weight[a + v] * by * by
            rank += 1
    code = codes[i]
    for o in range(outputs):
        residual, by = cut.residual[o], by_leaf[o]
        if row_weight.size:
            for x in range(residual.size):
                residual[x] -= row_weight[x] * by[code[x]]
        else:
            for x in range(residual.size):
                residual[x] -= by[code[x]]
    known = _drift(steps, cut, i, depth, weight)
    move = np.sqrt(square)
    rest = np.sqrt(max(square - known, 0.0) + SLACK * square)
    cut.moved[0] += move
    cut.moved[1] += rest
    cut.moved_then[i, 0] += move
    cut.moved_then[i, 1] += rest
    cut.depth[i] = depth
    cut.weight[i] = weight


@kernel
def _scratch(steps):
    """Return two arrays with room for the nodes of any tree."""
    largest = 0
    for i in range(steps.offsets.size - 1):
        largest = max(largest, steps.offsets[i + 1] - steps.offsets[i])
    shape = (largest, steps.step.shape[1])
    return np.empty(shape), np.empty(shape)


@kernel
def look_at_trees(codes, steps, cut, trees):
    """Renew what is known of some trees."""
    add, total = _scratch(steps)
    for i in trees:
        _renew(codes, steps, cut, i, add, total)


@kernel
def doubtful_trees(steps, cut, price):
    """Return the trees that might change if they were looked at."""
    estimate = np.empty(steps.square.shape[1])
    trees = np.empty(cut.depth.size, np.int64)
    count = 0
    for i in range(trees.size):
        if not _certainly_stays(steps, cut, price, i, estimate):
            trees[count] = i
            count += 1
    return trees[:count]


@kernel
def guess_layers(steps, cut, price, order, max_iter):
    """Descend as `sweep_layers` would if there were nothing but the sketch; no row is looked at.

    `cut` must be a copy whose residual is not used: depths, weights and sketch change, the residual
    does not.
    """
    estimate = np.empty(steps.square.shape[1])
    for _ in range(max_iter):
        changed = False
        for i in order:
            _estimate(steps, cut, i, estimate)
            gain, depth, weight = _best(steps, cut, price, i, estimate)
            if gain > price.least:
                _drift(steps, cut, i, depth, weight)
                cut.depth[i] = depth
                cut.weight[i] = weight
                changed = True
        if not changed:
            break


@kernel
def sweep_layers(codes, row_weight, steps, cut, price, order, lazy):
    """Update the trees in `order`, each to its best cut given the others.

    Returns how many changed and how many were looked at. If `lazy`, a tree that certainly stays as
    it is is passed over. Otherwise it is looked at all the same, and changed if that was wrong;
    nothing else depends on it.
    """
    old, new = _scratch(steps)
    estimate = np.empty(steps.square.shape[1])
    changed, looked = 0, 0
    for i in order:
        if not _certainly_stays(steps, cut, price, i, estimate):
            _renew(codes, steps, cut, i, old, new)
            gain, depth, weight = _best(steps, cut, price, i, cut.correlation[i])
        elif lazy:
            continue
        else:
            _look(codes, steps, cut, i, estimate, old, new)
            gain, depth, weight = _best(steps, cut, price, i, estimate)
        looked += 1
        if gain > price.least:
            _change(codes, row_weight, steps, cut, i, depth, weight, old, new)
            changed += 1
    return changed, looked


@kernel
def cut_trees(codes, row_weight, steps, cut, depths, weights):
    """Cut all trees at given depths with given weights."""
    old, new = _scratch(steps)
    for i in range(depths.size):
        if depths[i] != cut.depth[i] or weights[i] != cut.weight[i]:
            _change(codes, row_weight, steps, cut, i, depths[i], weights[i], old, new)
