"""A forest as a graph of ONNX: what is done to rows, the trees, the link, labels.

Converters know only some models of each library, and route some rows otherwise. Here every model
takes the same way: thresholds are those of :class:`Conditions`, in the precision of the model.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forestprune._version import __version__
from forestprune.deploy.conditions import Conditions
from forestprune.deploy.optional import require
from forestprune.exceptions import UnsupportedModelError
from forestprune.forest.classes import labels_of
from forestprune.forest.forest import Forest
from forestprune.forest.inputs import ZERO

OPSET, ML_OPSET, IR_VERSION = 17, 3, 8
"""What onnxruntime has run since 2022, in browsers too."""


def to_onnx(forest: Forest) -> Any:
    """Return a forest as a model of ONNX; see :meth:`forestprune.PrunedForest.to_onnx`."""
    helper = require("onnx.helper", "Writing a model as ONNX")
    if not forest.n_features:
        raise UnsupportedModelError("A model that takes no columns cannot be written as ONNX.")
    forest = forest.compact()
    graph = _Graph(helper, np.dtype(forest.input.dtype))
    number = _element_type(graph.dtype)
    rows = helper.make_tensor_value_info("X", number, [None, forest.n_features])
    conditions = Conditions.of(forest, forest.input.dtype)
    taken, columns = _columns(graph, forest, conditions)
    raw = _trees(graph, forest, conditions, taken, columns)
    outputs = _answers(graph, forest, raw)
    model = helper.make_model(
        helper.make_graph(graph.nodes, "forest", [rows], outputs, graph.constants),
        producer_name="forestprune",
        producer_version=__version__,
        opset_imports=[
            helper.make_opsetid("", OPSET),
            helper.make_opsetid("ai.onnx.ml", ML_OPSET),
        ],
        ir_version=IR_VERSION,
    )
    require("onnx.checker", "Writing a model as ONNX").check_model(model)
    return model


@dataclass
class _Graph:
    """Operations and constants, each put behind those before it."""

    helper: Any
    dtype: np.dtype[Any]
    nodes: list[Any] = field(default_factory=list)
    constants: list[Any] = field(default_factory=list)

    def do(self, operation: str, *inputs: str, name: str | None = None, **attributes: Any) -> str:
        """Add an operation, and return what its result is called."""
        name = name or f"{operation.lower()}_{len(self.nodes)}"
        domain = "ai.onnx.ml" if operation == "TreeEnsembleRegressor" else ""
        node = self.helper.make_node(operation, inputs, [name], domain=domain, **attributes)
        self.nodes.append(node)
        return name

    def constant(self, array: Any, dtype: Any = None) -> str:
        """Add a constant, of the type of rows unless another is given; return its name."""
        numbers = np.asarray(array, dtype=self.dtype if dtype is None else dtype)
        name = f"constant_{len(self.constants)}"
        self.constants.append(_tensor(self.helper, name, numbers))
        return name


def _element_type(dtype: np.dtype[Any]) -> Any:
    proto = require("onnx", "Writing a model as ONNX").TensorProto
    if dtype.kind in "OU":
        return proto.STRING
    names = {"f4": proto.FLOAT, "f8": proto.DOUBLE, "i8": proto.INT64, "b1": proto.BOOL}
    return names[dtype.str.lstrip("<|=")]


def _tensor(helper: Any, name: str, array: NDArray[Any]) -> Any:
    kind = _element_type(array.dtype)
    if array.dtype.kind in "OU":
        texts = [str(text).encode() for text in array.ravel()]
        return helper.make_tensor(name, kind, array.shape, texts)
    return helper.make_tensor(name, kind, array.shape, array.tobytes(), raw=True)


def _columns(
    graph: _Graph, forest: Forest, conditions: Conditions
) -> tuple[str, NDArray[np.int64]]:
    """Do to rows what the model does to them; return them, and the column of each node.

    For each set of categories that splits ask for there is a column besides: 0 if the category is
    in it, 1 if not, NaN if it is missing.
    """
    rows = "X"
    if forest.input.zero_is_missing:
        marked = np.isin(np.arange(forest.n_features), forest.input.zero_is_missing)
        near = graph.do("LessOrEqual", graph.do("Abs", rows), graph.constant(ZERO))
        missing = graph.do("And", near, graph.constant(marked, np.bool_))
        rows = graph.do("Where", missing, graph.constant(np.nan), rows)
    if conditions.missing_number is not None:
        missing = graph.do("Equal", rows, graph.constant(conditions.missing_number))
        rows = graph.do("Where", missing, graph.constant(np.nan), rows)
    columns = conditions.feature.astype(np.int64)
    asked = np.flatnonzero(conditions.set_number >= 0)
    if not asked.size:
        return rows, columns
    pairs = np.column_stack([columns[asked], conditions.set_number[asked]])
    distinct, which = np.unique(pairs, axis=0, return_inverse=True)
    columns[asked] = forest.n_features + which.ravel()
    outside = [_outside(conditions.sets[number]) for number in distinct[:, 1]]
    sizes = np.array([len(each) - 2 for each in outside])
    starts = np.cumsum([0, *(len(each) for each in outside[:-1])])
    codes = graph.do("Gather", rows, graph.constant(distinct[:, 0], np.int64), axis=1)
    missing = graph.do("IsNaN", codes)
    known = graph.do("Where", missing, graph.constant(-1.0), codes)
    within = graph.do("Max", graph.do("Min", known, graph.constant(sizes)), graph.constant(-1.0))
    if not conditions.truncated:
        within = graph.do("Floor", within)
    kind = _element_type(np.dtype(np.int64))
    place = graph.do("Add", graph.do("Cast", within, to=kind), graph.constant(starts + 1, np.int64))
    found = graph.do("Gather", graph.constant(np.concatenate(outside)), place)
    told = graph.do("Where", missing, graph.constant(np.nan), found)
    return graph.do("Concat", rows, told, axis=1), columns


def _outside(bits: bytes) -> NDArray[np.float64]:
    """Return whether -1, 0, 1 and so on are outside of a set, and whatever is beyond it."""
    inside = np.unpackbits(np.frombuffer(bits, np.uint8), bitorder="little")
    return 1.0 - np.concatenate([[0], inside, [0]])


def _trees(
    graph: _Graph,
    forest: Forest,
    conditions: Conditions,
    rows: str,
    columns: NDArray[np.int64],
) -> str:
    """Add the trees, and return what their sums are called: float32, whatever rows are."""
    tree = forest.tree_of_node
    within = np.arange(forest.n_nodes) - forest.offsets[:-1][tree]
    splits = forest.left >= 0
    threshold = np.where(splits, conditions.threshold, 0.0)
    threshold[splits & (conditions.set_number >= 0)] = 0.5
    leaves = np.flatnonzero(~splits)
    joint = not forest.tree_output.size
    targets = (
        np.tile(np.arange(forest.n_outputs), leaves.size)
        if joint
        else forest.tree_output[tree[leaves]]
    )
    each = forest.n_outputs if joint else 1
    attributes: dict[str, Any] = {
        "nodes_treeids": tree,
        "nodes_nodeids": within,
        "nodes_featureids": np.where(splits, columns, 0),
        "nodes_truenodeids": np.where(splits, forest.left, 0),
        "nodes_falsenodeids": np.where(splits, forest.left + 1, 0),
        "nodes_missing_value_tracks_true": conditions.missing_left,
        "target_treeids": np.repeat(tree[leaves], each),
        "target_nodeids": np.repeat(within[leaves], each),
        "target_ids": targets,
    }
    numbers: dict[str, Any] = {
        "nodes_values": threshold,
        "target_weights": forest.scaled_value[leaves].ravel(),
        "base_values": forest.base,
    }
    modes = np.where(splits, "BRANCH_LEQ", "LEAF").tolist()
    if not forest.n_trees:  # a tree of one leaf that adds nothing to any output
        attributes = {name: np.zeros(1) for name in attributes}
        outputs = np.arange(forest.n_outputs)
        attributes |= {"target_treeids": 0 * outputs, "target_nodeids": 0 * outputs}
        attributes |= {"target_ids": outputs}
        numbers |= {"nodes_values": np.zeros(1), "target_weights": 0.0 * outputs}
        modes = ["LEAF"]
    plain = {name: np.asarray(values, np.int64).tolist() for name, values in attributes.items()}
    for name, values in numbers.items():
        with np.errstate(over="ignore", under="ignore"):
            kept = np.asarray(values, graph.dtype)
        if graph.dtype == np.float32:
            plain[name] = kept.tolist()
        else:
            plain[f"{name}_as_tensor"] = _tensor(graph.helper, name, kept)
    return graph.do(
        "TreeEnsembleRegressor",
        rows,
        nodes_modes=modes,
        n_targets=forest.n_outputs,
        aggregate_function="SUM",
        **plain,
    )


def _answers(graph: _Graph, forest: Forest, raw: str) -> list[Any]:
    """Add what makes predictions of sums; return the outputs of the graph."""
    helper, origin = graph.helper, forest.origin
    single = np.dtype(np.float32)
    if origin is None or not origin.classes:
        passes = origin is None or origin.response == "raw"
        _through_link(graph, forest, raw, "identity" if passes else None, "prediction")
        shape = [None, forest.n_outputs]
        return [helper.make_tensor_value_info("prediction", _element_type(single), shape)]
    linked = _through_link(graph, forest, raw, None, None)
    if origin.link == "identity":
        bounds = (graph.constant(bound, single) for bound in (0.0, 1.0))
        linked = graph.do("Clip", linked, *bounds)
    if forest.n_outputs == 1:
        one = graph.constant(1.0, single)
        graph.do("Concat", graph.do("Sub", one, linked), linked, name="probabilities", axis=1)
    else:
        graph.do("Identity", linked, name="probabilities")
    best = graph.do("ArgMax", "probabilities", axis=1, keepdims=0)
    labels = labels_of(origin)
    if labels.dtype.kind in "iu":
        labels = labels.astype(np.int64)
    elif labels.dtype.kind == "f":
        labels = labels.astype(np.float32)
    elif labels.dtype.kind not in "bU":
        labels = np.array([str(label) for label in origin.classes])
    graph.do("Gather", graph.constant(labels, labels.dtype), best, name="label")
    return [
        helper.make_tensor_value_info("label", _element_type(labels.dtype), [None]),
        helper.make_tensor_value_info(
            "probabilities", _element_type(single), [None, len(origin.classes)]
        ),
    ]


def _through_link(
    graph: _Graph, forest: Forest, raw: str, link: str | None, name: str | None
) -> str:
    origin = forest.origin
    link = link or ("identity" if origin is None else origin.link)
    if link == "log":
        return graph.do("Exp", raw, name=name)
    if link == "softmax":
        return graph.do("Softmax", raw, name=name, axis=1)
    if link == "signed_sqrt":
        return graph.do("Mul", raw, graph.do("Abs", raw), name=name)
    if link == "logit":
        factor = 1.0 if origin is None else origin.objective_params.get("sigmoid", 1.0)
        if factor != 1.0:
            raw = graph.do("Mul", raw, graph.constant(factor, np.float32))
        return graph.do("Sigmoid", raw, name=name)
    return graph.do("Identity", raw, name=name)
