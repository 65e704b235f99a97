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

from forestprune.kernels.jit import inner, kernel
from forestprune.kernels.nodes import largest_tree, leaves_of, splits_of
from forestprune.kernels.sketch import SLACK
from forestprune.kernels.sums import subtract


@inner
def write_contributions(layers, i, o, before, after, out):
    """Write into out[v] how tree i's part of output o changes for the rows that pass node v.

    `before` and `after` are cuts: (depth, weight). Below a cut the rows share what is added at it.
    """
    step = layers.step[o, layers.offsets[i] : layers.offsets[i + 1]]
    bounds = layers.bounds[layers.first_bound[i] : layers.first_bound[i + 1]]
    split = splits_of(layers, i)
    out[0] = 0.0
    for k in range(bounds.size - 2):
        factor = after[1] if k < after[0] else 0.0
        if k < before[0]:
            factor -= before[1]
        for s in range(bounds[k + 1] // 2, bounds[k + 2] // 2):
            above = out[split[s]]
            out[2 * s + 1] = above + factor * step[2 * s + 1]
            out[2 * s + 2] = above + factor * step[2 * s + 2]


@inner
def _project(layers, i, o, total, out):
    """Add to out[k] what q_k . x is in output o, total[v] being the sum of x over the rows in v.

    It need be known for the leaves only; the others are filled in.
    """
    a, b = layers.offsets[i], layers.offsets[i + 1]
    step = layers.step[o, a:b]
    bounds = layers.bounds[layers.first_bound[i] : layers.first_bound[i + 1]]
    split = splits_of(layers, i)
    for s in range(split.size - 1, -1, -1):
        total[split[s]] = total[2 * s + 1] + total[2 * s + 2]
    sum_so_far = 0.0
    for k in range(1, bounds.size - 1):
        layer = 0.0
        for v in range(bounds[k], bounds[k + 1], 2):
            layer += step[v] * total[v] + step[v + 1] * total[v + 1]
        sum_so_far += layer
        out[k] += sum_so_far


@kernel
def measure_layers(first, last, layers):
    """Fill in `square` and `reach` of trees first..last."""
    for i in range(first, last):
        a, b = layers.offsets[i], layers.offsets[i + 1]
        bounds = layers.bounds[layers.first_bound[i] : layers.first_bound[i + 1]]
        depth = bounds.size - 2
        weight = layers.weight[a:b]
        add = np.empty(b - a)
        layer = np.zeros(depth + 1)
        for k in range(depth + 1):
            layers.square[i, k] = 0.0
        for o in range(layers.step.shape[0]):
            step = layers.step[o, a:b]
            write_contributions(layers, i, o, (0, 0.0), (depth, 1.0), add)
            square = 0.0
            for k in range(1, depth + 1):
                for v in range(bounds[k], bounds[k + 1]):
                    square += weight[v] * step[v] * (2.0 * add[v] - step[v])
                    layer[k] += weight[v] * step[v] * step[v]
                layers.square[i, k] += square
        layers.reach[i, 0] = 0.0
        for k in range(1, depth + 1):
            layers.square[i, k] = max(layers.square[i, k], 0.0)
            layers.reach[i, k] = layers.reach[i, k - 1] + np.sqrt(layer[k])


@inner
def _look(codes, layers, cut, i, correlation, in_leaf, total):
    """Write into correlation[k] what q_k . r is, r being the residual without tree i."""
    for k in range(layers.first_bound[i + 1] - layers.first_bound[i] - 1):
        correlation[k] = cut.own[i, k]
    code, leaf = codes[i], leaves_of(layers, i)
    for o in range(layers.step.shape[0]):
        sums, residual = in_leaf[o], cut.residual[o]
        for rank in range(leaf.size):
            sums[rank] = 0.0
        for x in range(residual.size):
            sums[code[x]] += residual[x]
        for rank in range(leaf.size):
            total[leaf[rank]] = sums[rank]
        _project(layers, i, o, total, correlation)


@inner
def _renew(codes, layers, cut, i, in_leaf, total):
    """Look at tree i, and remember what was seen and when."""
    _look(codes, layers, cut, i, cut.correlation[i], in_leaf, total)
    for j in range(cut.moved.size):
        cut.moved_then[i, j] = cut.moved[j]
    for j in range(cut.drift.size):
        cut.drift_then[i, j] = cut.drift[j]


@inner
def _objective(layers, cut, price, i, correlation):
    """Return what tree i's part of the objective is now, if q_k . r is correlation[k]."""
    k, beta = cut.depth[i], cut.weight[i]
    if k == 0:
        return 0.0
    square = layers.square[i, k] + price.ridge[i]
    return beta * (beta * square - 2.0 * correlation[k]) + price.penalty[i, k]


@inner
def _choice(layers, price, i, k, correlation):
    """Return what tree i's part of the objective would be if cut at depth k >= 1, and the weight.

    `correlation` is q_k . r.
    """
    square = layers.square[i, k] + price.ridge[i]
    beta = 1.0
    if price.free:
        beta = correlation / square if square > 0.0 else 0.0
        if not price.signed:
            beta = max(beta, 0.0)
    return beta * (beta * square - 2.0 * correlation) + price.penalty[i, k], beta


@inner
def _best(layers, cut, price, i, correlation):
    """Return what the best depth and weight of tree i gain over the present ones, and which.

    correlation[k] is q_k . r.
    """
    best, depth, weight = 0.0, 0, 1.0
    for k in range(1, layers.first_bound[i + 1] - layers.first_bound[i] - 1):
        objective, beta = _choice(layers, price, i, k, correlation[k])
        if objective < best:
            best, depth, weight = objective, k, beta
    return _objective(layers, cut, price, i, correlation) - best, depth, weight


@kernel
def price_choices(layers, cut, price, objective, weight):
    """Write each tree's part of the objective if cut at each depth, and the weights.

    Depths that a tree does not have are infinitely bad. Goes by what is known of the trees.
    """
    for i in range(cut.depth.size):
        for k in range(objective.shape[1]):
            objective[i, k] = np.inf if k else 0.0
            weight[i, k] = 1.0
        for k in range(1, layers.first_bound[i + 1] - layers.first_bound[i] - 1):
            objective[i, k], weight[i, k] = _choice(layers, price, i, k, cut.correlation[i, k])


@inner
def _may_gain(layers, cut, price, i, correlation, reach, moved):
    """Return what a change of tree i gains at most if q_k . r is near correlation[k].

    It is off by at most reach[k] * moved (Cauchy-Schwarz), and the difference of two by at most
    |reach[k] - reach[j]| * moved.
    """
    at, beta = cut.depth[i], cut.weight[i]
    now = _objective(layers, cut, price, i, correlation)
    off = 2.0 * moved * abs(beta) * reach[at]
    most = now + off
    for k in range(1, layers.first_bound[i + 1] - layers.first_bound[i] - 1):
        square = layers.square[i, k] + price.ridge[i]
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


@inner
def _estimate(layers, cut, i, out):
    """Write into out[k] what q_k . r should be by now, going by the sketch of the residual."""
    depth = layers.first_bound[i + 1] - layers.first_bound[i] - 2
    sketched = min(layers.share.shape[2], depth)
    for k in range(depth + 1):
        out[k] = 0.0
    for j in range(cut.drift.size):
        by = cut.drift[j] - cut.drift_then[i, j]
        for k in range(sketched):
            out[k + 1] += by * layers.share[i, j, k]
    for k in range(1, depth + 1):
        out[k] += out[k - 1]
    for k in range(1, depth + 1):
        out[k] += cut.correlation[i, k]


@inner
def _certainly_stays(layers, cut, price, i, estimate):
    """Tell, without looking at the rows, whether tree i would not change if it were looked at.

    First by how far the residual has moved since the tree was last looked at; then, less crudely,
    by where to: the sketch says by how much q_k . r has changed but for the rest. Half of
    `min_gain` leaves room for rounding.
    """
    enough = 0.5 * price.min_gain
    moved = cut.moved[0] - cut.moved_then[i, 0]
    if _may_gain(layers, cut, price, i, cut.correlation[i], layers.reach[i], moved) <= enough:
        return True
    if not cut.drift.size:
        return False
    _estimate(layers, cut, i, estimate)
    moved = cut.moved[1] - cut.moved_then[i, 1]
    return _may_gain(layers, cut, price, i, estimate, layers.rest[i], moved) <= enough


@inner
def _drift(layers, cut, i, depth, weight):
    """Carry the sketch of the residual along as tree i changes; return the square of the move.

    Its own moves do not count for tree i: what is known of it is about the residual without it.
    """
    square = 0.0
    for j in range(cut.drift.size):
        along = 0.0
        for k in range(layers.share.shape[2]):
            factor = (weight if k < depth else 0.0) - (cut.weight[i] if k < cut.depth[i] else 0.0)
            along += factor * layers.share[i, j, k]
        cut.drift[j] -= along
        cut.drift_then[i, j] -= along
        square += along * along
    return square


@inner
def _alter(layers, cut, i, depth, weight, by_leaf, total):
    """Cut tree i at `depth` with `weight`; write what that adds in each leaf into by_leaf.

    What remains is to take it from the residual.
    """
    leaf = leaves_of(layers, i)
    node_weight = layers.weight[layers.offsets[i] : layers.offsets[i + 1]]
    square = 0.0
    for k in range(cut.own.shape[1]):
        cut.own[i, k] = 0.0
    for o in range(layers.step.shape[0]):
        by = by_leaf[o]
        write_contributions(layers, i, o, (cut.depth[i], cut.weight[i]), (depth, weight), total)
        for rank in range(leaf.size):
            v = leaf[rank]
            by[rank] = total[v]
            square += node_weight[v] * total[v] * total[v]
        if depth:
            # Afresh each time, not by what changes: weights may go far and come back.
            write_contributions(layers, i, o, (0, 0.0), (depth, weight), total)
            for rank in range(leaf.size):
                total[leaf[rank]] *= node_weight[leaf[rank]]
            _project(layers, i, o, total, cut.own[i])
    known = _drift(layers, cut, i, depth, weight)
    move = np.sqrt(square)
    rest = np.sqrt(max(square - known, 0.0) + SLACK * square)
    cut.moved[0] += move
    cut.moved[1] += rest
    cut.moved_then[i, 0] += move
    cut.moved_then[i, 1] += rest
    cut.depth[i] = depth
    cut.weight[i] = weight


@inner
def _change(codes, row_weight, layers, cut, i, depth, weight, by_leaf, total):
    """Cut tree i at `depth` with `weight`, and carry the residual along."""
    _alter(layers, cut, i, depth, weight, by_leaf, total)
    code = codes[i]
    for o in range(layers.step.shape[0]):
        subtract(by_leaf[o], code, row_weight, cut.residual[o])


@inner
def _scratch(layers):
    """Return arrays with room for the leaves and for the nodes of any tree."""
    nodes = largest_tree(layers)
    return np.empty((layers.step.shape[0], (nodes + 1) // 2)), np.empty(nodes)


@kernel
def look_at_trees(codes, layers, cut, trees):
    """Renew what is known of some trees."""
    in_leaf, total = _scratch(layers)
    for i in trees:
        _renew(codes, layers, cut, i, in_leaf, total)


@kernel
def guess_layers(layers, cut, price, order, max_iter):
    """Descend as `sweep_layers` would if there were nothing but the sketch; no row is looked at.

    `cut` must be a copy whose residual is not used: depths, weights and sketch change, the residual
    does not.
    """
    estimate = np.empty(layers.square.shape[1])
    for _ in range(max_iter):
        changed = False
        for i in order:
            _estimate(layers, cut, i, estimate)
            gain, depth, weight = _best(layers, cut, price, i, estimate)
            if gain > price.min_gain:
                _drift(layers, cut, i, depth, weight)
                cut.depth[i] = depth
                cut.weight[i] = weight
                changed = True
        if not changed:
            break


@kernel
def sweep_layers(codes, row_weight, layers, cut, price, order, lazy):
    """Update the trees in `order`, each to its best cut given the others.

    Returns how many changed and how many were looked at. If `lazy`, a tree that certainly stays as
    it is is passed over. Otherwise it is looked at all the same, and changed if that was wrong;
    nothing else depends on it.
    """
    in_leaf, total = _scratch(layers)
    estimate = np.empty(layers.square.shape[1])
    changed, looked = 0, 0
    for i in order:
        if not _certainly_stays(layers, cut, price, i, estimate):
            _renew(codes, layers, cut, i, in_leaf, total)
            gain, depth, weight = _best(layers, cut, price, i, cut.correlation[i])
        elif lazy:
            continue
        else:
            _look(codes, layers, cut, i, estimate, in_leaf, total)
            gain, depth, weight = _best(layers, cut, price, i, estimate)
        looked += 1
        if gain > price.min_gain:
            _change(codes, row_weight, layers, cut, i, depth, weight, in_leaf, total)
            changed += 1
    return changed, looked


@kernel
def cut_trees(codes, row_weight, layers, cut, depths, weights):
    """Cut all trees at given depths with given weights."""
    by_leaf, total = _scratch(layers)
    by_2, by_3, by_4 = np.empty_like(by_leaf), np.empty_like(by_leaf), np.empty_like(by_leaf)
    trees = np.empty(depths.size, np.int64)
    count = 0
    for i in range(depths.size):
        if depths[i] != cut.depth[i] or weights[i] != cut.weight[i]:
            trees[count] = i
            count += 1
    # Four at a time: the residual is read and written once instead of four times.
    for j in range(0, count - 3, 4):
        i, i_2, i_3, i_4 = trees[j], trees[j + 1], trees[j + 2], trees[j + 3]
        _alter(layers, cut, i, depths[i], weights[i], by_leaf, total)
        _alter(layers, cut, i_2, depths[i_2], weights[i_2], by_2, total)
        _alter(layers, cut, i_3, depths[i_3], weights[i_3], by_3, total)
        _alter(layers, cut, i_4, depths[i_4], weights[i_4], by_4, total)
        code, code_2, code_3, code_4 = codes[i], codes[i_2], codes[i_3], codes[i_4]
        for o in range(layers.step.shape[0]):
            residual = cut.residual[o]
            b, b_2, b_3, b_4 = by_leaf[o], by_2[o], by_3[o], by_4[o]
            for x in range(residual.size):
                by = (b[code[x]] + b_2[code_2[x]]) + (b_3[code_3[x]] + b_4[code_4[x]])
                residual[x] -= row_weight[x] * by if row_weight.size else by
    for j in range(count // 4 * 4, count):
        i = trees[j]
        _change(codes, row_weight, layers, cut, i, depths[i], weights[i], by_leaf, total)
