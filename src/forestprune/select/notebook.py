"""How well and how small a pruned model is, in a line and as a table for notebooks."""

from html import escape
from typing import TYPE_CHECKING

from forestprune.select.figures import IN_UNITS, LABELS
from forestprune.select.validation import ValidationScore

if TYPE_CHECKING:
    from forestprune.select.pruned import PrunedForest

_OWN = "of the model's own prediction"


def score_words(found: ValidationScore | None) -> str:
    """Return how a model does on validation rows, with the full model's figures in brackets."""
    if found is None:
        return ""
    words = f"validation {found.name}" if found.of_target else f"validation {found.name} {_OWN}"
    words += f" {found.score:.4f} ± {found.standard_error:.4f}"
    if not found.of_target:
        return f"{words}, {found.n_rows:,} rows"
    words += f" (full {found.full_score:.4f})"
    for name in ("rmse", "accuracy", "log_loss"):
        if name in found.metrics and name != found.name:
            before, after = found.full_metrics[name], found.metrics[name]
            words += f", {LABELS[name]} {after:.4g} (full {before:.4g})"
    return f"{words}, {found.n_rows:,} rows"


def new_splits_words(small: "PrunedForest") -> str:
    """Return how many splits are new; nothing if none is."""
    if not small.n_new_splits:
        return ""
    return f"{small.n_new_splits:,} of {small.n_splits:,} splits new"


def html_table(small: "PrunedForest") -> str:
    """Return a table without colours of its own, so that it suits any theme."""
    origin, full, found = small.forest.origin, small.full, small.validation
    model_class = "Forest" if origin is None else origin.model_class
    lines = [
        ("trees", f"{full.n_trees:,}", f"{small.n_trees:,}", _share(small.n_trees, full.n_trees)),
        ("nodes", f"{full.n_nodes:,}", f"{small.n_nodes:,}", _share(small.n_nodes, full.n_nodes)),
        ("deepest tree", f"{full.max_depth:,}", f"{small.max_depth:,}", ""),
        ("features used", "", f"{small.forest.n_features_used:,}", ""),
        ("different thresholds", "", f"{small.forest.n_thresholds:,}", ""),
    ]
    if small.n_new_splits:
        lines.append(("new splits", "", f"{small.n_new_splits:,} of {small.n_splits:,}", ""))
    if found is None:
        note = (
            f"Share of the loss explained on the rows it was pruned with, which flatters: "
            f"{1.0 - small.loss:.4f}. "
            "There were no validation rows."
        )
    else:
        own = "" if found.of_target else f" {_OWN}"
        error = f"{found.score:.4f} ± {found.standard_error:.4f}"
        lines.append((f"{found.name}{own}", f"{found.full_score:.4f}", error, ""))
        for name, label in LABELS.items():
            if name in found.metrics and name != found.name:
                before, after = found.full_metrics[name], found.metrics[name]
                lines.append((label, f"{before:.4g}", f"{after:.4g}", ""))
        in_units = any(name in found.metrics for name in IN_UNITS)
        units = ", RMSE and MAE in units of the target" if in_units else ""
        note = f"On {found.n_rows:,} validation rows; ± one standard error{units}."
    if small.certificate is not None:
        note += f" Of the least objective at this alpha: {small.certificate}."
    heading = "".join(
        f'<th style="text-align: {side}">{escape(text)}</th>'
        for side, text in (
            ("left", model_class),
            ("right", "full"),
            ("right", "pruned"),
            ("right", "of the full model's"),
        )
    )
    body = "".join(_row(*line) for line in lines)
    return (
        f"<table><thead><tr>{heading}</tr></thead><tbody>{body}</tbody></table>"
        f"<p><small>{escape(note)}</small></p>"
    )


def _row(label: str, *cells: str) -> str:
    entries = "".join(f'<td style="text-align: right">{escape(cell)}</td>' for cell in cells)
    return f'<tr><th style="text-align: left">{escape(label)}</th>{entries}</tr>'


def _share(small: int, full: int) -> str:
    return f"{100.0 * small / full:.3g} %" if full else ""
