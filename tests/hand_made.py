"""Forests put together by hand, and names of features that are hard to write."""

from naive import Node
from strategies import raw_tree

import forestprune as fp
from forestprune.forest.build import build_forest

AWKWARD = [
    "a",
    "a",
    "a_2",
    "x 1",
    "x-1",
    "x_1",
    "$x_1$",
    "",
    "7",
    "if",
    "a\nb",
    "None",
    "__debug__",
]
AWKWARD += ["{x}", "ﬁ", "fi", "x" * 400, "'q'", '"', "\\", "a[0]", "or missing", "\u202eevil", "é"]


def built(roots, names=None, n_features=3, scale=None, base=(1.0,), **spec):
    raw = [raw_tree(root) for root in roots]
    return build_forest(
        raw,
        n_nodes=sum(tree.left.size for tree in raw),
        scale=[1.0] * len(roots) if scale is None else scale,
        base=list(base),
        input=fp.InputSpec(n_features, names, **spec),
    )


def split(feature, threshold, left, right, **more):
    value = (left.cover * left.value[0] + right.cover * right.value[0]) / (left.cover + right.cover)
    return Node(
        [value], left.cover + right.cover, feature, threshold, left=left, right=right, **more
    )


def leaf(value, cover=1.0):
    return Node([value], cover)
