"""A forest as a model of treelite, built node by node."""

from __future__ import annotations

from typing import Any

import numpy as np

from forestprune.deploy.conditions import Conditions
from forestprune.deploy.optional import require
from forestprune.exceptions import UnsupportedModelError
from forestprune.forest.forest import Forest

_OF_NUMBERS = {
    "identity": "identity",
    "log": "exponential",
    "logit": "sigmoid",
    "signed_sqrt": "signed_square",
}
_OF_CLASSES = {
    "identity": "identity_multiclass",
    "softmax": "softmax",
    "logit": "multiclass_ova",
}


def to_treelite(forest: Forest) -> Any:
    """Return a forest as a model of treelite; see :meth:`forestprune.PrunedForest.to_treelite`."""
    build = require("treelite.model_builder", "Writing a model as treelite's")
    _require_sound(forest)
    forest = forest.compact()
    builder = build.ModelBuilder(
        threshold_type=forest.input.dtype,
        leaf_output_type=forest.input.dtype,
        **_outputs(build, forest),
        postprocessor=build.PostProcessorFunc(**_link(forest)),
        base_scores=forest.base.tolist(),
    )
    if not forest.n_trees:
        _one_leaf(builder, forest.n_outputs)
    conditions = Conditions.of(forest, forest.input.dtype)
    for tree in range(forest.n_trees):
        _add_tree(builder, forest, conditions, tree)
    return builder.commit()


def _outputs(build: Any, forest: Forest) -> dict[str, Any]:
    """Return what the model predicts, and which of its outputs each tree adds to."""
    outputs = forest.n_outputs
    classes = forest.origin is not None and bool(forest.origin.classes)
    # Outputs are classes, or targets of one number each; -1 stands for all of them.
    as_classes = classes and outputs > 1
    n_trees = max(1, forest.n_trees)  # if there is none, one of a single leaf that adds nothing
    each, width = [0] * n_trees, 1
    if forest.tree_output.size:
        each = forest.tree_output.tolist()
    elif outputs > 1:
        each, width = [-1] * n_trees, outputs
    none = [0] * n_trees
    return {
        "metadata": build.Metadata(
            num_feature=forest.n_features,
            task_type="kMultiClf" if as_classes else "kBinaryClf" if classes else "kRegressor",
            average_tree_output=False,
            num_target=1 if as_classes else outputs,
            num_class=[outputs] if as_classes else [1] * outputs,
            leaf_vector_shape=(1, width) if as_classes else (width, 1),
        ),
        "tree_annotation": build.TreeAnnotation(
            num_tree=n_trees,
            target_id=none if as_classes else each,
            class_id=each if as_classes else none,
        ),
    }


def _link(forest: Forest) -> dict[str, Any]:
    """Return what treelite calls the function that predictions go through, and its parameters."""
    origin = forest.origin
    if origin is None or (origin.response == "raw" and not origin.classes):
        return {"name": "identity"}
    names = _OF_CLASSES if origin.classes and forest.n_outputs > 1 else _OF_NUMBERS
    if origin.link not in names:
        raise UnsupportedModelError(
            f"treelite has no models of {forest.n_outputs} outputs with the link {origin.link!r}. "
            "Use to_onnx() or to_c()."
        )
    factor = origin.objective_params.get("sigmoid", 1.0)
    options = {"sigmoid_alpha": factor} if origin.link == "logit" else {}
    return {"name": names[origin.link], **options}


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
