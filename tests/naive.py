"""Slow, obvious twins of what the package does fast: trees as linked nodes, one row at a time."""

import math
from dataclasses import dataclass, replace
from itertools import combinations, pairwise

import numpy as np


@dataclass
class Node:
    value: list[float]
    cover: float = 1.0
    feature: int = -1
    threshold: float = 0.0
    missing_left: bool = False
    categories: frozenset[int] | None = None  # those that go left, at a categorical split
    left: "Node | None" = None
    right: "Node | None" = None

    @property
    def is_leaf(self):
        return self.left is None


def goes_left(node, row, dtype):
    x = float(np.dtype(dtype).type(row[node.feature]))
    if math.isnan(x):
        return node.missing_left
    if node.categories is not None:
        return any(c <= x < c + 1 for c in node.categories)
    return x <= node.threshold


def visited(root, row, dtype):
    """Return the nodes that `row` passes, from the root to its leaf."""
    nodes = [root]
    while not nodes[-1].is_leaf:
        at = nodes[-1]
        nodes.append(at.left if goes_left(at, row, dtype) else at.right)
    return nodes


def layers(root):
    """Return the nodes of each layer, left to right."""
    result = [[root]]
    while below := [c for node in result[-1] if not node.is_leaf for c in (node.left, node.right)]:
        result.append(below)
    return result


def level_order(root):
    return [node for layer in layers(root) for node in layer]


def leaf_rank(root, row, dtype):
    leaves = [node for node in level_order(root) if node.is_leaf]
    reached = visited(root, row, dtype)[-1]
    return next(rank for rank, leaf in enumerate(leaves) if leaf is reached)


def predict(roots, X, scale, base, dtype, outputs=None):
    """Return raw predictions; `outputs` names the one output that each tree adds to, if so."""
    result = []
    for row in X:
        total = list(base)
        for i, root in enumerate(roots):
            value = visited(root, row, dtype)[-1].value
            for k in range(len(value)):
                total[k if outputs is None else outputs[i]] += scale[i] * value[k]
        result.append(total)
    return np.array(result)


def depth_difference(root, row, width, dtype):
    """Return one row of the tree's matrix: Algorithm 1 of the paper, word for word."""
    means = [np.array(node.value) for node in visited(root, row, dtype)]
    differences = [means[0], *(after - before for before, after in pairwise(means))]
    padding = [np.zeros_like(means[0])] * (width - len(differences))
    return np.array(differences + padding)


def truncated(root, depth):
    """Return a copy of the tree that ends at `depth`."""
    if depth == 0 or root.is_leaf:
        return Node(root.value, root.cover)
    left, right = (truncated(child, depth - 1) for child in (root.left, root.right))
    return replace(root, left=left, right=right)


def prunings(root):
    """Yield every pruning of the tree: each split is kept or made a leaf."""
    yield Node(root.value, root.cover)
    if root.is_leaf:
        return
    rights = list(prunings(root.right))
    for left in prunings(root.left):
        for right in rights:
            yield replace(root, left=left, right=right)


def leaves_of(root):
    """Return the number of leaves."""
    return 1 if root.is_leaf else leaves_of(root.left) + leaves_of(root.right)


def kept_mask(root, pruned):
    """Return which nodes of `root`, in level order, are in its pruning `pruned`."""
    kept = {id(root)}

    def follow(full, part):
        if not part.is_leaf:
            kept.update((id(full.left), id(full.right)))
            follow(full.left, part.left)
            follow(full.right, part.right)

    follow(root, pruned)
    return [id(node) in kept for node in level_order(root)]


def node_sums(root, X, amounts, dtype):
    """Return, in level order, the total of `amounts` over the rows that pass each node."""
    passed = [{id(node) for node in visited(root, row, dtype)} for row in X]
    return [
        sum(amount for amount, nodes in zip(amounts, passed, strict=True) if id(node) in nodes)
        for node in level_order(root)
    ]


def average_of_leaves(node):
    """Return the mean of the leaves' values, weighted by cover at every split on the way."""
    if node.is_leaf:
        return np.array(node.value), node.cover
    (a, wa), (b, wb) = (
        (average_of_leaves(child)[0], child.cover) for child in (node.left, node.right)
    )
    share = wa / (wa + wb) if wa + wb > 0 else 0.5
    return share * a + (1 - share) * b, node.cover


def from_forest(forest):
    """Return the trees of a Forest as linked nodes."""
    right, roots = forest.right, []
    for a in forest.offsets[:-1]:

        def grow(v, a=a):
            node = Node(list(forest.value[a + v]), float(forest.cover[a + v]))
            if forest.left[a + v] < 0:
                return node
            node.feature = int(forest.feature[a + v])
            node.threshold = float(forest.threshold[a + v])
            node.missing_left = bool(forest.missing_left[a + v])
            if forest.category_set.size and (s := forest.category_set[a + v]) >= 0:
                words = forest.set_words[forest.set_offsets[s] : forest.set_offsets[s + 1]]
                bits = [
                    32 * w + c for w, word in enumerate(words) for c in range(32) if word >> c & 1
                ]
                node.categories = frozenset(bits)
            node.left, node.right = grow(forest.left[a + v]), grow(right[a + v])
            return node

        roots.append(grow(0))
    return roots


def cut_value(root, row, depth, dtype):
    """Return the value of the node at which `row` ends if the tree is cut at `depth`."""
    nodes = visited(root, row, dtype)
    return np.array(nodes[min(depth, len(nodes) - 1)].value)


def intercept(roots, scale, base):
    """Return the constant with more digits than float64 has: predictions may differ in the last."""
    values = [s * exactly(r.value) for s, r in zip(scale, roots, strict=True)]
    return exactly(base) + sum(values)


def exactly(numbers):
    return np.array(numbers, dtype=np.longdouble)


def contribution(root, X, scale, depth, dtype):
    """Return what a tree cut at `depth` adds, without its root: shape (m, n_outputs)."""
    return np.array(
        [scale * (cut_value(root, row, depth, dtype) - np.array(root.value)) for row in X]
    )


def pruned_predictions(roots, X, scale, base, depths, weights, dtype):
    result = np.tile(intercept(roots, scale, base), (len(X), 1))
    for root, s, depth, weight in zip(roots, scale, depths, weights, strict=True):
        result += weight * contribution(root, X, s, depth, dtype)
    return result


def tree_depth(root):
    return len(layers(root)) - 1


def layer_costs(roots, weighting):
    """Return the cost of each layer below the root of each tree, and K."""
    sizes = [[len(layer) for layer in layers(root)[1:]] for root in roots]
    deepest = max(map(len, sizes), default=0)
    if isinstance(weighting, str) and weighting == "node":
        return sizes, sum(map(sum, sizes))
    if isinstance(weighting, str):
        return [[1] * len(tree) for tree in sizes], len(roots) * deepest
    costs = [[weighting[i][k] for k in range(len(tree))] for i, tree in enumerate(sizes)]
    return costs, sum(map(sum, costs))


def variance(y, row_weights):
    mean = np.average(exactly(y), axis=0, weights=row_weights)
    return float(np.average(((y - mean) ** 2).sum(axis=1), weights=row_weights))


def rounding(case):
    """Return what a loss is uncertain by because targets are known to 16 digits only.

    It matters where they differ by hardly more than that: losses are in units of their variance.
    """
    row_weights = np.ones(len(case.X)) if case.weights is None else case.weights
    unit = variance(case.y, row_weights)
    return 10.0 * (np.finfo(float).eps * np.abs(case.y).max()) ** 2 / unit if unit > 0.0 else 0.0


def uncertainty(case, problem, weights, objective):
    """Return what an objective is uncertain by: targets and trees are known to 16 digits only.

    It matters where targets hardly vary beside that.
    """
    forest = case.forest
    size = np.abs(forest.value).max(initial=0.0) * np.abs(np.array(weights) * forest.scale).sum()
    size += np.abs(case.y).max() + np.abs(forest.base).max()
    share = 10 * np.finfo(float).eps * size / np.sqrt(problem.variation)
    return 1e-12 + share * (2 * np.sqrt(objective) + share)


def objective(case, depths, weights, alpha):
    """Return the objective of the paper, equation by equation."""
    roots, scale, base, dtype = case.roots, case.forest.scale, case.forest.base, case.dtype
    row_weights = np.ones(len(case.X)) if case.weights is None else case.weights
    error = case.y - pruned_predictions(roots, case.X, scale, base, depths, weights, dtype)
    total = row_weights.sum()
    size = max(
        np.abs(np.average(case.y, axis=0, weights=row_weights)).max(),
        np.abs(intercept(roots, scale, base)).max(),
    )
    unit = variance(case.y, row_weights)
    unit = 1.0 if unit <= (1e-15 * size) ** 2 else unit
    value = float((row_weights[:, None] * error**2).sum()) / total / unit
    costs, K = layer_costs(roots, case.weighting)
    value += alpha / (K or 1) * sum(sum(cost[:k]) for cost, k in zip(costs, depths, strict=True))
    for root, s, k, beta in zip(roots, scale, depths, weights, strict=True):
        if case.joint == "ridge" and k:
            full = contribution(root, case.X, s, tree_depth(root), dtype)
            size = float((row_weights[:, None] * full**2).sum()) / total / unit
            value += case.alpha2 * beta**2 * size
        elif case.joint == "subset":
            value += case.alpha2 * (k > 0)
    return value


def end_of_row(root, pruned, row, dtype):
    """Return the node of the full tree `root` at which `row` ends in its pruning `pruned`."""
    while not pruned.is_leaf:
        side = "left" if goes_left(root, row, dtype) else "right"
        root, pruned = getattr(root, side), getattr(pruned, side)
    return root


def ends_of(root, pruned):
    """Return the nodes of a tree that are leaves of what is kept of it."""
    if pruned.is_leaf:
        return [root]
    return ends_of(root.left, pruned.left) + ends_of(root.right, pruned.right)


def subtree_objective(case, i, pruned, rest, shrinkage, boxes=None):
    """Return how tree i, pruned, changes the sum of squares that `rest` has without it.

    With the penalty of changed values, but not the cost of nodes; and what it adds, row by row.
    `shrinkage` is None if leaves keep their values. `boxes` has the least and the most that a node
    may add, by its id.
    """
    root, scale = case.roots[i], case.forest.scale[i]
    weights = np.ones(len(case.X)) if case.weights is None else case.weights
    adds = np.zeros_like(rest)
    change = 0.0
    if pruned.is_leaf:
        return change, adds
    ends = [end_of_row(root, pruned, row, case.dtype) for row in case.X]
    for leaf in ends_of(root, pruned):  # also those that no row reaches: intervals may move them
        rows = [x for x, end in enumerate(ends) if end is leaf]
        w, r = weights[rows], rest[rows]
        origin = scale * (np.array(leaf.value) - np.array(root.value))
        value = origin
        if shrinkage is not None and w.sum() + shrinkage > 0:
            value = (w @ r + shrinkage * origin) / (w.sum() + shrinkage)
        if boxes is not None:
            value = np.clip(value, *boxes[id(leaf)])
        adds[rows] = value
        change += float((w[:, None] * ((r - value) ** 2 - r**2)).sum())
        change += (shrinkage or 0.0) * float(((value - origin) ** 2).sum())
    return change, adds


def tree_depth_of_mask(root, mask):
    """Return the depth of the deepest node kept, `mask` being in level order."""
    levels = [k for k, layer in enumerate(layers(root)) for _ in layer]
    return max(k for k, kept in zip(levels, mask, strict=True) if kept)


def boxes(root, monotone, sign=1.0):
    """Return, in level order, between what the value of each node must be; one output.

    `monotone` has 1, -1 or 0 for each feature; `sign` is that of the tree's scale.
    """
    found = {}

    def values_from(node):
        below = [] if node.is_leaf else values_from(node.left) + values_from(node.right)
        return [node.value[0], *below]

    def bound(node, low, high):
        found[id(node)] = low, high
        if node.is_leaf:
            return
        left = right = (low, high)
        direction = 0 if node.categories is not None else sign * monotone[node.feature]
        lower, upper = (node.left, node.right) if direction > 0 else (node.right, node.left)
        if direction:
            middle = 0.5 * max(values_from(lower)) + 0.5 * min(values_from(upper))
            middle = min(max(middle, low), high)
            left, right = (low, middle), (middle, high)
            if direction < 0:
                left, right = right, left
        bound(node.left, *left)
        bound(node.right, *right)

    bound(root, -math.inf, math.inf)
    return [found[id(node)] for node in level_order(root)]


def level_choices(root):
    """Return all choices of levels of a symmetric tree, as tuples of depths."""
    depths = range(tree_depth(root))
    return [kept for k in range(len(depths) + 1) for kept in combinations(depths, k)]


def cells_of(root, kept):
    """Return the leaves that become one if only some levels are kept, by the sides taken there."""
    found = {}

    def visit(node, sides):
        if node.is_leaf:
            found.setdefault(tuple(sides[k] for k in kept), []).append(node)
        else:
            visit(node.left, [*sides, 0])
            visit(node.right, [*sides, 1])

    visit(root, [])
    return found


def mean_of_leaves(leaves):
    """Return the mean value of leaves, weighted by cover; where there is none, the plain mean."""
    weights = [leaf.cover for leaf in leaves]
    return np.average(
        [leaf.value for leaf in leaves], axis=0, weights=weights if any(weights) else None
    )


def level_objective(case, i, kept, rest, shrinkage, settle=None):
    """Return how tree i with some levels changes the sum of squares that `rest` has without it.

    With the penalty of changed values, but not the cost of levels; and what it adds, row by row,
    and cell by cell. `settle` brings free values into order, given these and their weights.
    """
    root, scale = case.roots[i], case.forest.scale[i]
    weights = np.ones(len(case.X)) if case.weights is None else case.weights
    adds, change, found = np.zeros_like(rest), 0.0, {}
    if not kept:
        return change, adds, found
    cells = cells_of(root, kept)
    ends = [visited(root, row, case.dtype)[-1] for row in case.X]
    rates, origins, rows_of = {}, {}, {}
    for cell, leaves in cells.items():
        rows = [x for x, end in enumerate(ends) if any(end is leaf for leaf in leaves)]
        w, r = weights[rows], rest[rows]
        origin = scale * (mean_of_leaves(leaves) - np.array(root.value))
        value, rate = origin, sum(leaf.cover for leaf in leaves)
        if shrinkage is not None:
            rate = w.sum() + shrinkage
            value = (w @ r + shrinkage * origin) / rate if rate > 0 else origin
        found[cell], rates[cell], origins[cell], rows_of[cell] = value, rate, origin, rows
    if settle is not None:
        found = settle(found, rates, kept)
    for cell, value in found.items():
        rows = rows_of[cell]
        adds[rows] = value
        w, r = weights[rows], rest[rows]
        change += float((w[:, None] * ((r - value) ** 2 - r**2)).sum())
        change += (shrinkage or 0.0) * float(((value - origins[cell]) ** 2).sum())
    return change, adds, found


def isotonic(value, weight, signs):
    """Return the nearest values that keep an order, by the formula of greatest and least means.

    Keys are tuples of 0 and 1; along axis k values must rise if signs[k] is 1, fall if it is -1.
    """
    cells = list(value)

    def below(a, b):
        pairs = list(zip(a, b, signs, strict=True))
        return all(x == y if s == 0 else s * (y - x) >= 0 for x, y, s in pairs)

    sets = [set(chosen) for k in range(len(cells) + 1) for chosen in combinations(cells, k)]
    uppers = [s for s in sets if all(b in s for a in s for b in cells if below(a, b))]
    lowers = [s for s in sets if all(a in s for b in s for a in cells if below(a, b))]

    def mean(some):
        return sum(weight[c] * value[c] for c in some) / sum(weight[c] for c in some)

    return {
        c: max(min(mean(u & low) for low in lowers if c in low) for u in uppers if c in u)
        for c in cells
    }
