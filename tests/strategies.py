"""What Hypothesis draws: forests, rows, and fitted scikit-learn models."""

from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st
from naive import Node, layers, level_order

from forestprune import Forest, InputSpec, encode
from forestprune.forest.build import RawTree, build_forest
from forestprune.options import Options
from forestprune.solve.layers.rule import LayerRule
from forestprune.solve.layers.tuning import Tuning
from forestprune.solve.problem import pose

N_FEATURES = 3
# Numbers that float32 cannot hold, its neighbours, halves that tie, zeros of both signs.
NUMBERS = [0.0, -0.0, 0.1, 0.3, 1 / 3, 0.5, 1.0, 2.0, 2.5, -1.0, 16777217.0, 1e-40, 1e-300, 1e30]
NUMBERS += [
    float(np.nextafter(np.float32(x), np.float32(y))) for x in (0.1, 0.3, 1) for y in (-9, 9)
]
CATEGORIES = [0, 1, 2, 31, 32, 40]

numbers = st.sampled_from(NUMBERS)
values = st.floats(-10, 10, width=32)


@st.composite
def nodes(draw, depth=3, outputs=1, categorical=True):
    """Draw a tree as linked nodes."""
    value = draw(st.lists(values, min_size=outputs, max_size=outputs))
    cover = float(draw(st.integers(0, 5)))
    if depth == 0 or draw(st.integers(0, 3)) == 0:
        return Node(value, cover)
    return Node(
        value,
        cover,
        feature=draw(st.integers(0, N_FEATURES - 1)),
        threshold=draw(numbers),
        missing_left=draw(st.booleans()),
        categories=draw(st.none() | st.frozensets(st.sampled_from(CATEGORIES)))
        if categorical
        else None,
        left=draw(nodes(depth - 1, outputs, categorical)),
        right=draw(nodes(depth - 1, outputs, categorical)),
    )


def raw_tree(root, shuffle=None):
    """Return linked nodes as arrays, in an order that `shuffle` picks but for the root."""
    others = level_order(root)[1:]
    if shuffle is not None:
        shuffle(others)
    order = [root, *others]
    place = {id(node): i for i, node in enumerate(order)}
    return RawTree(
        left=np.array([-1 if n.is_leaf else place[id(n.left)] for n in order]),
        right=np.array([-1 if n.is_leaf else place[id(n.right)] for n in order]),
        # What a library keeps at leaves must not matter.
        feature=np.array([99 if n.is_leaf else n.feature for n in order]),
        threshold=np.array([np.nan if n.is_leaf else n.threshold for n in order]),
        missing_left=np.array([n.is_leaf or n.missing_left for n in order]),
        cover=np.array([n.cover for n in order]),
        value=np.array([n.value for n in order]),
        left_categories={
            i: sorted(n.categories) for i, n in enumerate(order) if n.categories is not None
        },
        extras={"tag": np.array([id(n) % 97 for n in order])},
    )


@st.composite
def forests(
    draw, max_trees=3, depth=3, categorical=True, *, min_trees=0, max_outputs=2, trees=nodes
):
    """Draw linked trees and the Forest made of them."""
    outputs = draw(st.integers(1, max_outputs))
    tree = trees(depth, outputs, categorical)
    roots = draw(st.lists(tree, min_size=min_trees, max_size=max_trees))
    random = draw(st.randoms(use_true_random=False))
    raw = [raw_tree(root, random.shuffle) for root in roots]
    forest = build_forest(
        raw,
        n_nodes=sum(tree.left.size for tree in raw),
        scale=draw(st.lists(values, min_size=len(roots), max_size=len(roots))),
        base=draw(st.lists(values, min_size=outputs, max_size=outputs)),
        input=InputSpec(
            n_features=N_FEATURES,
            dtype=draw(st.sampled_from(["float32", "float64"])),
            ensure_all_finite="allow-nan",
        ),
        tree_extras={"number": np.arange(len(roots))},
    )
    return roots, forest


@st.composite
def symmetric_nodes(draw, depth=3, outputs=1, categorical=True):
    """Draw a tree as linked nodes that ask the same in all nodes of a level."""
    cover = st.integers(0, 5).map(float)
    value = st.lists(values, min_size=outputs, max_size=outputs)
    levels = [
        {
            "feature": draw(st.integers(0, N_FEATURES - 1)),
            "threshold": draw(numbers),
            "missing_left": draw(st.booleans()),
            "categories": draw(st.none() | st.frozensets(st.sampled_from(CATEGORIES)))
            if categorical
            else None,
        }
        for _ in range(draw(st.integers(0, depth)))
    ]

    def grown(level):
        if level == len(levels):
            return Node(draw(value), draw(cover))
        left, right = grown(level + 1), grown(level + 1)
        return Node(draw(value), left.cover + right.cover, **levels[level], left=left, right=right)

    return grown(0)


@st.composite
def rows(draw, most=12):
    """Draw a matrix with ties, NaN, categories, and categories that no set knows."""
    cell = (
        numbers | st.just(np.nan) | st.sampled_from([*CATEGORIES, 3, 33, 64, 1000, -1]).map(float)
    )
    row = st.lists(cell, min_size=N_FEATURES, max_size=N_FEATURES)
    return np.array(draw(st.lists(row, min_size=1, max_size=most)))


@st.composite
def training_sets(draw, missing, outputs=1):
    """Draw X, y and sample weights; some columns constant, some with NaN, many ties."""
    m = draw(st.integers(2, 40))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    X = rng.choice(NUMBERS, size=(m, N_FEATURES))
    dense = rng.random(N_FEATURES) < 0.5
    X[:, dense] = rng.normal(size=(m, int(dense.sum())))
    X[:, rng.random(N_FEATURES) < 0.2] = 0.3
    if missing:
        X[rng.random(X.shape) < draw(st.sampled_from([0.0, 0.2, 0.7]))] = np.nan
    y = rng.normal(size=(m, outputs)) if draw(st.booleans()) else rng.integers(0, 3, (m, outputs))
    weight = rng.integers(1, 4, m).astype(float) if draw(st.booleans()) else None
    return X, y[:, 0] if outputs == 1 else y, weight


def probing_rows(forest, X):
    """Return `X` and copies of its rows moved onto, just below and just above thresholds."""
    probes = [X]
    for v in np.flatnonzero(forest.left >= 0):
        # A threshold beyond all numbers, either way, has no neighbours that the library takes.
        t = np.clip(forest.threshold[v], -1e38, 1e38)
        single = np.float32(t)
        for x in (
            t,
            single,
            np.nextafter(single, np.float32(-np.inf)),
            np.nextafter(single, np.float32(np.inf)),
        ):
            row = X[v % len(X)].copy()
            row[forest.feature[v]] = x
            probes.append(row[np.newaxis])
    return np.concatenate(probes)


@dataclass
class Case:
    """A pruning problem in plain terms."""

    roots: list
    forest: Forest
    X: np.ndarray
    y: np.ndarray
    weights: np.ndarray | None
    weighting: object
    joint: str | None
    alpha2: float

    @property
    def dtype(self):
        return self.forest.input.dtype

    @property
    def depths(self):
        return [len(layers(root)) - 1 for root in self.roots]

    def pose(self):
        return pose(encode(self.forest, self.X), self.y, sample_weight=self.weights)

    def layer_rule(self, problem=None, **tuning):
        options = Options(
            rule="layer", weighting=self.weighting, joint=self.joint, alpha2=self.alpha2
        )
        return LayerRule(problem or self.pose(), options, Tuning(**tuning))


@st.composite
def cases(draw, max_trees=3, depth=3, joint=(None, "ridge", "subset"), **options):
    """Draw a forest whose leaves have something to do with the targets, and how to prune it."""
    roots, forest = draw(forests(max_trees=max_trees, depth=depth, **options))
    X = draw(rows())
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    noise = draw(st.sampled_from([0.0, 0.1, 3.0]))
    y = np.reshape(forest.predict(X), (len(X), -1))
    y = y + noise * rng.normal(size=y.shape)
    weights = draw(st.none() | st.just(rng.integers(0, 3, len(X)).astype(float)))
    if weights is not None and not weights.any():
        weights[0] = 1.0
    custom = rng.integers(0, 3, (forest.n_trees, forest.max_depth)).astype(float)
    weighting = draw(st.sampled_from(["node", "depth", "custom"]))
    return Case(
        roots,
        forest,
        X,
        y,
        weights,
        custom if weighting == "custom" else weighting,
        draw(st.sampled_from(joint)),
        draw(st.sampled_from([0.0, 0.01, 0.3])),
    )


alphas = st.sampled_from([0.0, 0.01, 0.1, 0.5, 1.0, 3.0])
