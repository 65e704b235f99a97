"""The comment that a header in C begins with."""

from __future__ import annotations

import numpy as np

from forestprune.deploy.c_predict import Functions
from forestprune.deploy.c_words import quoted
from forestprune.forest.forest import Forest


def about(functions: Functions, table_bytes: int, *, libm: bool) -> list[str]:
    """Return, in paragraphs, what whoever uses the header must know."""
    forest, name, leaves = functions.forest, functions.name, functions.leaves
    origin = forest.origin
    trees, splits = forest.n_trees, (forest.n_nodes - forest.n_trees) // 2
    source = "" if origin is None else f" of {quoted(origin.library)[1:-1]}'s "
    source += "" if origin is None else quoted(origin.model_class)[1:-1]
    lines = [
        f"A model{source}: {trees:,} trees, {splits:,} splits, made by forestprune. "
        f"Tables take {table_bytes:,} bytes.",
        "",
        f"x has {forest.n_features} numbers, of which these are used:",
        *_columns(forest),
        "",
        *_signatures(functions),
        "",
        f"Raw sums of finite rows differ from the model's by at most {1.005 * leaves.error:.2e}"
        f"{_leaf_words(functions)}.",
    ]
    if libm:
        lines.append(
            f"Define {name}_NO_LIBM before this file is included to do without math.h and what "
            "needs it."
        )
    return lines


def _leaf_words(functions: Functions) -> str:
    leaves = functions.leaves
    if leaves.step is None:
        return ""
    steps = ", ".join(f"{step:.3g}" for step in leaves.step[:8])
    more = ", ..." if leaves.step.size > 8 else ""
    bits = 8 * leaves.values.dtype.itemsize
    return f": leaves are integers of {bits} bits, in steps of {steps}{more}"


def _columns(forest: Forest) -> list[str]:
    """Say what the columns are that splits ask about, and what stands for what in them."""
    spec, names = forest.input, forest.column_names
    known, truncated = spec.known_categories, set(spec.truncated)
    used = np.unique(forest.feature[forest.left >= 0])
    by_set = (
        set(forest.feature[forest.category_set >= 0].tolist())
        if forest.category_set.size
        else set()
    )
    lines = []
    for column in used.tolist():
        line = f"  x[{column}]: {quoted(names[column])}"
        if known.get(column):
            codes = ", ".join(f"{j} is {quoted(label)}" for j, label in enumerate(known[column]))
            line += f", as codes: {codes}"
        elif column in by_set or column in truncated:
            line += ", as codes of categories"
        if column in spec.zero_is_missing:
            line += ", in which zero is missing"
        lines.append(line)
    if not lines:
        return ["  none"]
    if spec.missing_number is not None:
        lines.append(f"The number {spec.missing_number!r} stands for what is missing, as NaN does.")
    if spec.ensure_all_finite is True:
        lines.append("There must not be NaN among them, as the model takes none.")
    else:
        lines.append("NaN stands for what is missing.")
    return lines


def _signatures(functions: Functions) -> list[str]:
    """Say what the functions return."""
    name, number, n_outputs = functions.name, functions.number, functions.n_outputs
    joint, origin = n_outputs > 1, functions.forest.origin
    raw = (
        f"void {name}_raw(const {number} *x, {number} *sums): the {n_outputs} raw sums"
        if joint
        else f"{number} {name}_raw(const {number} *x): the raw sum"
    )
    if origin is not None and origin.classes:
        labels = ", ".join(f"{k} is {quoted(label)}" for k, label in enumerate(origin.classes))
        return [
            f"void {name}_predict_proba(const {number} *x, {number} *p): the probabilities of "
            f"{len(origin.classes)} classes,",
            f"int {name}_predict(const {number} *x): the number of the most probable class,",
            f"{raw}.",
            f"Classes by their numbers: {labels}.",
        ]
    predict = (
        f"void {name}_predict(const {number} *x, {number} *y): the {n_outputs} predictions,"
        if joint
        else f"{number} {name}_predict(const {number} *x): the prediction,"
    )
    return [predict, f"{raw}."]
