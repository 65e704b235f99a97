"""A forest as a model of treelite, built node by node."""

from __future__ import annotations

from typing import Any

import numpy as np

from forestprune.deploy.conditions import Conditions
from forestprune.deploy.optional import require
from forestprune.exceptions import UnsupportedModelError
from forestprune.forest.forest import Forest

_AFTER = {
    "identity": "identity",
    "log": "exponential",
    "logit": "sigmoid",
    "signed_sqrt": "signed_square",
}
_AFTER_SEVERAL = {
    "identity": "identity_multiclass",
    "softmax": "softmax",
    "logit": "multiclass_ova",
}


def to_treelite(forest: Forest) -> Any:
    """Return a forest as a model of treelite; see :meth:`forestprune.PrunedForest.to_treelite`."""
    build = require("treelite.model_builder", "Writing a model as treelite's")
    _require_sound(forest)
    forest = forest.compact()
    origin, precision = forest.origin, forest.input.dtype
    classes = () if origin is None else origin.classes
    link = "identity" if origin is None or origin.response == "raw" else origin.link
    if classes and origin is not None:
        link = origin.link
    several, joint = forest.n_outputs > 1, not forest.tree_output.size
    by_class = several and bool(classes)
    n_trees = max(1, forest.n_trees)  # if there is none, one of a single leaf that adds nothing
    if not forest.n_trees:
        output = [-1 if several else 0] * n_trees
    else:
        output = ([-1 if several else 0] * n_trees) if joint else forest.tree_output.tolist()
    shape = forest.n_outputs if several and (joint or not forest.n_trees) else 1
    names = _AFTER_SEVERAL if by_class else _AFTER
    if link not in names:
        raise UnsupportedModelError(
            f"treelite has no models of {forest.n_outputs} outputs with the link {link!r}. Use "
            "to_onnx() or to_c()."
        )
    factor = 1.0 if origin is None else origin.objective_params.get("sigmoid", 1.0)
    after = {"sigmoid_alpha": factor} if link == "logit" else {}
    builder = build.ModelBuilder(
        threshold_type=precision,
        leaf_output_type=precision,
        metadata=build.Metadata(
            num_feature=forest.n_features,
            task_type="kMultiClf" if by_class else "kBinaryClf" if classes else "kRegressor",
            average_tree_output=False,
            num_target=1 if by_class else forest.n_outputs,
            num_class=[forest.n_outputs] if by_class else [1] * forest.n_outputs,
            leaf_vector_shape=(1, shape) if by_class else (shape, 1),
        ),
        tree_annotation=build.TreeAnnotation(
            num_tree=n_trees,
            target_id=[0] * n_trees if by_class or not several else output,
            class_id=output if by_class else [0] * n_trees,
        ),
        postprocessor=build.PostProcessorFunc(name=names[link], **after),
        base_scores=forest.base.tolist(),
    )
    if not forest.n_trees:
        _one_leaf(builder, shape)
    conditions = Conditions.of(forest, precision)
    for tree in range(forest.n_trees):
        _add_tree(builder, forest, conditions, tree)
    return builder.commit()


def _require_sound(forest: Forest) -> None:
    spec = forest.input
    reasons = {
        "counts zero as missing": bool(spec.zero_is_missing),
        f"counts {spec.missing_number} as missing": spec.missing_number is not None,
    }
    for reason, holds in reasons.items():
        if holds:
            raise UnsupportedModelError(
                f"This model {reason}, but in treelite only NaN is. Use to_onnx() or to_c(), or "
                "train with NaN in its place."
            )


def _one_leaf(builder: Any, shape: int) -> None:
    builder.start_tree()
    builder.start_node(0)
    builder.leaf(0.0 if shape == 1 else [0.0] * shape)
    builder.end_node()
    builder.end_tree()


def _add_tree(builder: Any, forest: Forest, conditions: Conditions, tree: int) -> None:
    start, end = forest.offsets[tree : tree + 2].tolist()
    value = forest.value[start:end] * forest.scale[tree]
    builder.start_tree()
    for node in range(start, end):
        builder.start_node(node - start)
        left = int(forest.left[node])
        number = int(conditions.set_number[node])
        if left < 0:
            leaf = value[node - start].tolist()
            builder.leaf(leaf[0] if len(leaf) == 1 else leaf)
        elif number >= 0:
            bits = np.frombuffer(conditions.sets[number], np.uint8)
            builder.categorical_test(
                feature_id=int(conditions.feature[node]),
                default_left=bool(conditions.missing_left[node]),
                category_list=np.flatnonzero(np.unpackbits(bits, bitorder="little")).tolist(),
                category_list_right_child=False,
                left_child_key=left,
                right_child_key=left + 1,
            )
        else:
            builder.numerical_test(
                feature_id=int(conditions.feature[node]),
                threshold=float(conditions.threshold[node]),
                default_left=bool(conditions.missing_left[node]),
                opname="<=",
                left_child_key=left,
                right_child_key=left + 1,
            )
        builder.end_node()
    builder.end_tree()
