"""Figure 2 of the paper: layers charged by the node or all alike, in random forests.

Both weightings prune the same forest, 100 trees of depth 20 that look at sqrt(p) features a split,
each along a path of its own. Of each path we take the largest alpha whose validation error is at
most a tolerance, in units of the target's variance, above that of the full forest: so both models
may lose the same, and what differs is what they keep for it. The paper does not say whether its
figure is about polished models, so we compare both those of the path itself and those polished by
ridge. Test rows are looked at once, in the end.
"""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import sets
import style
import units
from sklearn.ensemble import RandomForestRegressor

import forestprune as fp

SETS = ("Moneyball", "us_crime", "abalone", "wine_quality", "cpu_small")
FOLDS = 3
TOLERANCES = (0.01, 0.025, 0.05, 0.1)
POLISH = {"without": None, "ridge": "ridge"}
COLOURS = {"node": style.BLUE, "depth": style.RED}
KEYS = ["data", "fold", "polish", "tolerance"]

SHOWN = "wine_quality"
"""The set whose trees are drawn, if it was run: there both effects are to be seen."""

DRAWN = 0.05
"""The tolerance at which it is drawn."""

PAPER = {"node": (7247, 95), "depth": (21588, 62)}
"""Nodes and trees in the paper's figure."""

MOST = 0.75
"""What is so in this share of cases, of those that differ, counts as confirmed."""

ALIKE = 0.01
"""Errors that differ by less are comparable."""


def run(settings: units.Settings) -> None:
    if settings.quick:
        jobs = [{"data": "diabetes", "fold": 0}]
    else:
        names = SETS if settings.folder else sets.names(None)
        jobs = [{"data": name, "fold": fold} for name in names for fold in range(FOLDS)]
    work = partial(_compare, settings.folder, settings.quick)
    units.run_units(settings.results / "weighting.csv", jobs, work, settings.jobs)


def _compare(folder: Path | None, quick: bool, data: str, fold: int) -> list[dict[str, Any]]:
    known = sets.load(folder, data)
    train, choose, test = known.split(fold)
    X, y = known.X, known.y
    forest = RandomForestRegressor(
        10 if quick else 100, max_depth=20, max_features="sqrt", random_state=fold
    ).fit(X[train], y[train])
    full = {
        "full_nodes": sum(tree.tree_.node_count for tree in forest.estimators_),
        "full_trees": len(forest.estimators_),
        "full_test": _error(forest.predict(X[test]), y[test]),
    }
    rows = []
    for polish, how in POLISH.items():
        for weighting in COLOURS:
            path = fp.prune_path(
                forest,
                X[train],
                y[train],
                X_val=X[choose],
                y_val=y[choose],
                n_alphas=20 if quick else 100,
                rule="layer",
                polish=how,
                weighting=weighting,
                n_jobs=1,
            )
            for tolerance in TOLERANCES:
                small = path[first_within(path.validation, tolerance)]
                about = {"polish": polish, "tolerance": tolerance, "weighting": weighting}
                error = _error(small.predict(X[test], n_jobs=1), y[test])
                rows += [about | row | full for row in _by_depth(small, error)]
    return rows


def _error(predicted: np.ndarray, y: np.ndarray) -> float:
    return float(np.mean((predicted - y) ** 2) / y.var())


def _by_depth(small: fp.PrunedForest, error: float) -> Iterator[dict[str, Any]]:
    """Yield, for each depth at which trees were cut, how many; 0 means that they are gone."""
    common = {"alpha": small.alpha, "nodes": small.n_nodes, "kept": small.n_trees, "test": error}
    for depth, trees in zip(*np.unique(small.depths, return_counts=True), strict=True):
        yield common | {"depth": int(depth), "trees": int(trees)}


def first_within(validation: Any, tolerance: float) -> int:
    """Return the point of the largest alpha that is good enough; the last if none is."""
    good = validation.scores >= validation.full - tolerance
    return int(np.argmax(good)) if good.any() else len(good) - 1


def report(settings: units.Settings) -> list[str]:
    rows = pd.read_csv(settings.results / "weighting.csv")
    both = pairs(rows)
    _draw(rows, both, settings.results / "weighting.png")
    lines = [
        "## Node against depth weighting (figure 2)",
        "",
        f"Random forests, {rows.full_trees.max()} trees of depth 20, sqrt(p) features, cut by "
        "layers; each weighting at the largest alpha whose validation error is at most a tolerance "
        "above the full forest's. Errors are in units of the target's variance; "
        f"{rows.data.nunique()} data sets, {rows.fold.nunique()} folds each.",
        "",
        "![Node against depth weighting](weighting.png)",
        "",
        *_medians(both),
        *_each_set(both),
        *(line for polish in POLISH for line in _verdict(both, polish)),
    ]
    return [*lines, ""]


def pairs(rows: pd.DataFrame) -> pd.DataFrame:
    """Return a line for each comparison, the two weightings side by side."""
    by = rows.assign(layers=rows.depth * rows.trees).groupby([*KEYS, "weighting"], sort=False)
    each = by[["nodes", "kept", "test", "full_nodes", "full_test"]].first()
    each["deep"] = by.layers.sum() / each.kept.clip(lower=1)
    wide = each.unstack("weighting")
    wide.columns = ["_".join(column) for column in wide.columns]
    wide = wide.reindex(each.droplevel("weighting").index.unique()).reset_index()
    return wide.assign(
        nodes=wide.nodes_depth / wide.nodes_node.clip(lower=1),
        trees=wide.kept_depth / wide.kept_node.clip(lower=1),
        deep=wide.deep_depth / wide.deep_node.clip(lower=1),
        error=wide.test_depth - wide.test_node,
    )


def _medians(both: pd.DataFrame) -> list[str]:
    header = ["polish", "tolerance", "nodes, depth / node", "more in", "trees, depth / node"]
    header += ["fewer in", "mean depth, node", "depth", "test error, depth - node"]
    cells = [
        [
            polish,
            f"{tolerance:g}",
            f"{part.nodes.median():.2f}",
            f"{(part.nodes > 1).sum()} of {len(part)}",
            f"{part.trees.median():.2f}",
            f"{(part.trees < 1).sum()} of {len(part)}",
            f"{part.deep_node.median():.1f}",
            f"{part.deep_depth.median():.1f}",
            f"{part.error.median():+.4f}",
        ]
        for (polish, tolerance), part in both.groupby(["polish", "tolerance"], sort=False)
    ]
    return ["Medians:", "", *style.table(header, cells)]


def _each_set(both: pd.DataFrame) -> list[str]:
    header = ["data", "full: nodes", "error", "polish"]
    header += [f"{w}: {x}" for w in COLOURS for x in ("nodes", "trees", "mean depth", "error")]
    shown = both[both.tolerance == DRAWN]
    cells = []
    for (data, polish), part in shown.groupby(["data", "polish"], sort=False):
        row = part.mean(numeric_only=True)
        cells.append([data, f"{row.full_nodes_node:,.0f}", f"{row.full_test_node:.4f}", polish])
        for w in COLOURS:
            cells[-1] += [f"{row[f'nodes_{w}']:,.0f}", f"{row[f'kept_{w}']:.0f}"]
            cells[-1] += [f"{row[f'deep_{w}']:.1f}", f"{row[f'test_{w}']:.4f}"]
    return [f"Means over folds at the tolerance {DRAWN:g}:", "", *style.table(header, cells)]


def _verdict(both: pd.DataFrame, polish: str) -> list[str]:
    part = both[both.polish == polish]
    (nodes, trees), (more_nodes, fewer_trees) = PAPER["node"], PAPER["depth"]
    alike = (part.error.abs() < ALIKE).sum()
    title = "Without polish" if polish == "without" else "Polished by ridge"
    return [
        f"- {title}, all tolerances together ({len(part)} cases), depth against node weighting:",
        f"  - {part.nodes.median():.2f} times the nodes (median; the paper "
        f"{more_nodes / nodes:.1f}); {_counts('more', part.nodes > 1, 'fewer', part.nodes < 1)}.",
        f"  - {part.trees.median():.2f} times the trees (the paper {fewer_trees / trees:.2f}); "
        f"{_counts('fewer', part.trees < 1, 'more', part.trees > 1)}.",
        f"  - {_counts('deeper', part.deep > 1, 'shallower', part.deep < 1)}.",
        f"  - test errors differ by {part.error.abs().median():.4f} of the variance in the median, "
        f"by less than {ALIKE:g} in {alike}: {_confirmed(alike / len(part))}.",
    ]


def _counts(claimed: str, holds: pd.Series, other: str, fails: pd.Series) -> str:
    """Say how often something is as claimed; cases without a difference do not count."""
    same = len(holds) - holds.sum() - fails.sum()
    text = f"{claimed} in {holds.sum()}, {other} in {fails.sum()}, the same in {same}"
    return f"{text}: {_confirmed(holds.sum() / max(holds.sum() + fails.sum(), 1))}"


def _confirmed(share: float) -> str:
    return "confirmed" if share >= MOST else "not confirmed"


def _draw(rows: pd.DataFrame, both: pd.DataFrame, file: Path) -> None:
    fig = style.figure(13, 4.3)
    axes = fig.subplots(1, 3, width_ratios=[1.7, 1, 1])
    name = SHOWN if SHOWN in set(rows.data) else rows.data.iloc[0]
    _draw_depths(axes[0], rows[(rows.data == name) & (rows.tolerance == DRAWN)], name)
    for axis, polish in zip(axes[1:], POLISH, strict=True):
        part = both[(both.tolerance == DRAWN) & (both.polish == polish)]
        title = "without polish" if polish == "without" else "polished by ridge"
        _draw_ratios(axis, part.assign(error=part.test_depth / part.test_node), title)
    axes[2].tick_params(labelleft=False)
    axes[2].legend(frameon=False, fontsize=9, loc="lower right")
    limits = [limit for axis in axes[1:] for limit in axis.get_xlim()]
    for axis in axes[1:]:
        axis.set_xlim(min(limits), max(limits))
    style.save(fig, file)


def _draw_depths(axis: Any, rows: pd.DataFrame, name: str) -> None:
    one = rows[(rows.fold == rows.fold.min()) & (rows.polish == "without")]
    for shift, (weighting, colour) in zip((-0.2, 0.2), COLOURS.items(), strict=True):
        mine = one[one.weighting == weighting]
        about = mine.iloc[0]
        label = f"{weighting} weighting: {about.nodes:,} nodes, {about.kept} trees"
        label += f", test error {about.test:.3f}"
        left = mine[mine.depth > 0]
        axis.bar(left.depth + shift, left.trees, width=0.4, color=colour, label=label)
    style.plain(axis, f"{name}: how deep the trees are that are left")
    axis.set_xlabel(f"depth (without polish, within {DRAWN:g} of the full forest's error)")
    axis.set_ylabel("trees")
    axis.set_xticks(range(2, 21, 2))
    axis.grid(visible=False, axis="x")
    axis.set_xlim(0, 21)
    axis.set_ylim(0, 1.3 * one.trees.max())
    axis.legend(frameon=False, fontsize=9, loc="upper left")


def _draw_ratios(axis: Any, both: pd.DataFrame, title: str) -> None:
    names = list(dict.fromkeys(both.data))
    looks = {
        "nodes": (0.22, style.INK, "o", "nodes"),
        "trees": (0.0, style.GOLD, "s", "trees"),
        "error": (-0.22, style.GREY, "D", "test error"),
    }
    for column, (shift, colour, marker, label) in looks.items():
        for i, name in enumerate(names):
            ratio, height = both[both.data == name][column], shift - i
            axis.plot([ratio.min(), ratio.max()], [height] * 2, color=colour, alpha=0.4, lw=2)
            axis.plot(
                ratio.median(), height, marker, color=colour, ms=6, label=None if i else label
            )
    axis.axvline(1.0, color="#888888", lw=1, zorder=0)
    axis.set_xscale("log")
    style.plain(axis, title)
    axis.set_xticks([0.25, 1, 4, 16, 64], ["1/4", "1", "4", "16", "64"])
    axis.minorticks_off()
    axis.set_yticks([-i for i in range(len(names))], names)
    axis.grid(visible=False, axis="y")
    axis.set_xlabel("depth / node weighting: median, range")
    axis.set_ylim(-len(names) + 0.5, 0.5)
