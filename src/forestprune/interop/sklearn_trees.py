"""scikit-learn's Tree, the table of nodes in every fitted tree estimator, to arrays and back."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from forestprune.exceptions import UnsupportedModelError
from forestprune.forest.build import RawTree
from forestprune.forest.forest import Forest
from forestprune.forest.new_splits import NewTree
from forestprune.interop.thresholds import as_finite, as_infinite

_NODE_EXTRAS = ("impurity", "n_node_samples")
"""What is known of a node besides, and follows it through pruning."""

_NODE_FIELDS = {"left_child", "right_child", "feature", "threshold", "missing_go_to_left"}
_NODE_FIELDS |= {"weighted_n_node_samples", *_NODE_EXTRAS}


def read_tree(tree: Any, columns: NDArray[np.int64] | None) -> RawTree:
    """Return a scikit-learn Tree as arrays; its features are those that `columns` lists, or all."""
    state = tree.__getstate__()
    nodes = state["nodes"]
    for name in set(nodes.dtype.names) - _NODE_FIELDS:
        if nodes[name][nodes["left_child"] >= 0].any():
            raise UnsupportedModelError(
                f"The trees of this scikit-learn store {name!r} for their splits, which this "
                "version of forestprune does not know. Use an older scikit-learn."
            )
    feature = nodes["feature"]
    if columns is not None:
        feature = columns[np.maximum(feature, 0)]
    return RawTree(
        left=nodes["left_child"],
        right=nodes["right_child"],
        feature=feature,
        threshold=as_finite(nodes["threshold"], nan=-1),  # older versions send all right by NaN
        missing_left=nodes["missing_go_to_left"],
        cover=nodes["weighted_n_node_samples"],
        value=state["values"][:, :, 0],
        extras={
            "impurity": nodes["impurity"],
            "n_node_samples": nodes["n_node_samples"].astype(np.int32),
        },
    )


def write_tree(
    like: Any,
    forest: Forest,
    nodes: slice,
    depth: int,
    values: NDArray[np.float64],
    columns: NDArray[np.int64] | None,
) -> Any:
    """Return a scikit-learn Tree of the given nodes, made as `like` is made.

    `values` has the shape that scikit-learn gives it: nodes, outputs, and classes or 1.
    """
    constructor, arguments, state = like.__reduce__()
    left, feature = forest.left[nodes], forest.feature[nodes]
    is_split = left >= 0
    if columns is not None:
        local = np.full(forest.n_features, -1, dtype=np.int32)
        local[columns] = np.arange(columns.size)
        feature = local[feature]
        if (feature[is_split] < 0).any():
            raise UnsupportedModelError(
                "Each tree splits on the columns that bagging drew for it; the tree of "
                f"{forest.locate(nodes.start)} splits on others."
            )
    table = np.zeros(left.size, dtype=state["nodes"].dtype)
    for name in _NODE_EXTRAS:
        table[name] = forest.node_extras[name][nodes]
    table["left_child"] = left
    table["right_child"] = np.where(is_split, left + 1, -1)
    table["feature"] = np.where(is_split, feature, -2)
    table["threshold"] = np.where(is_split, as_infinite(forest.threshold[nodes]), -2.0)
    table["missing_go_to_left"] = forest.missing_left[nodes]
    table["weighted_n_node_samples"] = forest.cover[nodes]
    tree = constructor(*arguments)
    tree.__setstate__(
        state
        | {
            "max_depth": depth,
            "node_count": left.size,
            "nodes": table,
            "values": np.ascontiguousarray(values),
        }
    )
    return tree


def new_node_extras(forest: Forest, tree: NewTree) -> dict[str, NDArray[Any]]:
    """Return what scikit-learn keeps of the nodes of a new tree."""
    impurity = _variance_of_leaves(tree)
    if forest.averages_distributions and forest.n_outputs == 1:
        impurity *= 2.0  # there are two classes, and as much of it in the other
    return {"impurity": impurity, "n_node_samples": tree.rows}


def _variance_of_leaves(tree: NewTree) -> NDArray[np.float64]:
    """Return for each node the variance of the leaves below it, weighted by cover.

    That is the impurity that splits take away, from which the importance of features comes; what
    remains within leaves only the rows could tell. Of shares of classes, it is Gini's impurity.
    """
    weight, mean = np.array(tree.cover, np.float64), np.array(tree.value, np.float64)
    total = np.zeros(weight.size)  # variance times weight
    for node in np.flatnonzero(np.asarray(tree.left) >= 0)[::-1].tolist():
        a = int(tree.left[node])
        both = weight[a] + weight[a + 1]
        share = weight[a] / both if both > 0 else 0.5
        apart = mean[a] - mean[a + 1]
        weight[node], mean[node] = both, mean[a + 1] + share * apart
        total[node] = total[a] + total[a + 1] + share * (1 - share) * both * (apart @ apart)
    return np.divide(total, weight, out=np.zeros(weight.size), where=weight > 0)
