"""Section 4.3 of the paper: a random forest made into ten trees that one can read.

The forest has 500 trees of depth 6 that look at sqrt(p) features a split. The paper cuts layers at
alpha = 15 and picks the best ten trees; we do the same, and choose alpha on validation rows: the
smallest of the models that are at most one standard error worse than the best. Beside it stand our
own default (parts of trees, leaves refitted) within ten trees and 60 nodes, and a single decision
tree; they are chosen on the same rows.

The paper's census file is not to be had; the census data here are 809 block groups of Rhode Island.
"""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import sets
import style
import units
from matplotlib import pyplot
from sklearn.ensemble import RandomForestRegressor
from sklearn.tree import DecisionTreeRegressor

import forestprune as fp
from forestprune.text import to_formula

SETS = ("us_crime", "census_pdb2015_ri")
TREES, NODES, PAPER_ALPHA = 10, 60, 15.0
FULL, FIXED, CHOSEN, OURS, SINGLE = (
    "full forest",
    f"best {TREES} trees, alpha = {PAPER_ALPHA:g}",
    f"best {TREES} trees, alpha chosen",
    f"ours: at most {TREES} trees, {NODES} nodes",
    "single tree",
)
PICTURES = {CHOSEN: "layers", OURS: "subtrees"}
"""Of which ways trees are drawn, and what their files are called."""

PAPER = {FULL: (7.54, 295), FIXED: (8.47, 14), SINGLE: (10.6, None)}
"""Test RMSE in percentage points, and features used, in the paper."""


def run(settings: units.Settings) -> None:
    if settings.quick:
        jobs = [{"data": "diabetes", "fold": 0}]
    else:
        names = SETS if settings.folder else sets.names(None)
        jobs = [{"data": name, "fold": fold} for name in names for fold in range(sets.FOLDS)]
    settings.results.mkdir(parents=True, exist_ok=True)
    work = partial(_study, settings.folder, settings.results, settings.quick)
    units.run_units(settings.results / "case_study.csv", jobs, work, settings.jobs)


def _study(
    folder: Path | None, results: Path, quick: bool, data: str, fold: int
) -> list[dict[str, Any]]:
    """Return a row for each model; the first fold's small ones are saved to be drawn."""
    known = sets.load(folder, data)
    train, choose, test = known.split(fold)
    # A data frame, so that splits know the names of features.
    X, y = pd.DataFrame(known.X, columns=known.columns), known.y
    forest = RandomForestRegressor(
        30 if quick else 500, max_depth=6, max_features="sqrt", random_state=fold
    ).fit(X.iloc[train], y[train])
    rows, held_out = (X.iloc[train], y[train]), {"X_val": X.iloc[choose], "y_val": y[choose]}
    subset = {"rule": "layer", "polish": "subset", "max_trees": TREES, "n_jobs": 1}
    path = fp.prune_path(forest, *rows, **held_out, **subset, n_alphas=10 if quick else 60)
    small = {
        FIXED: fp.prune(forest, *rows, alpha=PAPER_ALPHA, **subset),
        CHOSEN: path.select(one_standard_error=True),
        OURS: fp.prune(forest, *rows, **held_out, max_trees=TREES, max_nodes=NODES, n_jobs=1),
    }
    if fold == 0:
        for way, name in PICTURES.items():
            small[way].forest.save(results / f"case_study_{data}_{name}.npz")
    single = _single_tree(X, y, train, choose)
    models = {
        FULL: (fp.Forest.from_model(forest), np.nan),
        **{way: (pruned.forest, pruned.alpha) for way, pruned in small.items()},
        SINGLE: (fp.Forest.from_model(single), np.nan),
    }
    return [
        {
            "way": way,
            "alpha": alpha,
            "rmse": float(np.sqrt(np.mean((model.predict(X.iloc[test]) - y[test]) ** 2))),
            "trees": model.n_trees,
            "nodes": model.n_nodes,
            "depth": model.max_depth,
            "features": features_used(model).size,
            "all_features": model.n_features,
            "negative": int((model.scale < 0).sum()),
        }
        for way, (model, alpha) in models.items()
    ]


def _single_tree(X: pd.DataFrame, y: Any, train: Any, choose: Any) -> DecisionTreeRegressor:
    """Return the tree whose depth is the best on the rows to choose by."""
    trees = [
        DecisionTreeRegressor(max_depth=depth, random_state=0).fit(X.iloc[train], y[train])
        for depth in range(1, 13)
    ]
    return min(trees, key=lambda tree: np.mean((tree.predict(X.iloc[choose]) - y[choose]) ** 2))


def features_used(forest: fp.Forest) -> np.ndarray:
    return np.unique(forest.feature[forest.feature >= 0])


def report(settings: units.Settings) -> list[str]:
    rows = pd.read_csv(settings.results / "case_study.csv")
    lines = [
        "## Ten trees to read (section 4.3)",
        "",
        "The paper's census file (2019, tracts, 295 features) is not to be had: its figures stand "
        "beside ours for other data, so only ratios can be compared. Ours are means over "
        f"{rows.fold.nunique()} folds; all choices are made on validation rows. The trees drawn "
        "are those of the first fold.",
        "",
        "### The paper",
        "",
    ]
    full = PAPER[FULL][0]
    lines += style.table(
        ["", "test RMSE", "/ full", "features of 295"],
        [[way, f"{e:g} %", f"{e / full:.2f}", n or "-"] for way, (e, n) in PAPER.items()],
    )
    for data, part in rows.groupby("data", sort=False):
        lines += [f"### {data}", "", *_table(part), *_verdict(part)]
        lines += _show(settings.results, str(data), part)
    return lines


def _table(part: pd.DataFrame) -> list[str]:
    means = part.groupby("way", sort=False).mean(numeric_only=True)
    full = means.rmse[FULL]
    header = ["", "test RMSE", "/ full", "trees", "nodes", "deepest"]
    header.append(f"features of {part.all_features.iloc[0]}")
    cells = [
        [
            way,
            f"{row.rmse:.4g}",
            f"{row.rmse / full:.2f}",
            f"{row.trees:,.0f}",
            f"{row.nodes:,.0f}",
            f"{row.depth:.1f}",
            f"{row.features:.0f}",
        ]
        for way, row in means.iterrows()
    ]
    return style.table(header, cells)


def _verdict(part: pd.DataFrame) -> list[str]:
    wide = part.pivot_table(index="fold", columns="way", values="rmse")
    wins = {way: int((wide[way] < wide[SINGLE]).sum()) for way in (FIXED, CHOSEN, OURS)}
    features = part[part.way == CHOSEN].features / part[part.way == CHOSEN].all_features
    over = wide.mean() / wide[FULL].mean() - 1.0
    negative = part[part.way == CHOSEN].negative.mean()
    paper_over = PAPER[FIXED][0] / PAPER[FULL][0] - 1.0
    better = all(over[way] < over[SINGLE] for way in (FIXED, CHOSEN))
    return [
        f"Ten trees cost {100 * over[CHOSEN]:.0f} % of RMSE ({100 * over[FIXED]:.0f} % at "
        f"alpha = {PAPER_ALPHA:g}, the paper {100 * paper_over:.0f} %), a single tree "
        f"{100 * over[SINGLE]:.0f} % (the paper "
        f"{100 * (PAPER[SINGLE][0] / PAPER[FULL][0] - 1):.0f} %): better than a single tree, "
        f"{'confirmed' if better else 'not confirmed'} (in {wins[CHOSEN]} of {len(wide)} folds; at "
        f"alpha = {PAPER_ALPHA:g} in {wins[FIXED]}). They use {100 * features.mean():.0f} % of the "
        f"features (the paper {100 * PAPER[FIXED][1] / PAPER[FULL][1]:.0f} %). Our default costs "
        f"{100 * over[OURS]:.0f} %, better than a single tree in {wins[OURS]} of {len(wide)}.",
        "",
        "None of the ten weights is negative."
        if negative == 0
        else f"Of the ten weights {negative:.1f} are negative on average: such a tree says the "
        "opposite of what its splits found, which corrects others but does not help to read them.",
        "",
    ]


def _show(results: Path, data: str, part: pd.DataFrame) -> list[str]:
    """Draw the trees of the first fold and write them as formulas; return lines that show them."""
    lines, text = [], []
    for way, name in PICTURES.items():
        forest = fp.Forest.load(results / f"case_study_{data}_{name}.npz")
        rmse = part[(part.way == way) & (part.fold == 0)].rmse.iloc[0]
        file = results / f"case_study_{data}_{name}.png"
        axes = fp.plot_forest(forest)
        title = f"{data}, test RMSE {rmse:.3g}: {axes.get_title(loc='left')}"
        axes.set_title(title, loc="left", fontsize=10, color=style.INK, linespacing=1.5)
        style.save(axes.figure, file)
        pyplot.close(axes.figure)
        lines += [f"![{data}: {way}]({file.name})", ""]
        text += [way.capitalize(), f"Test RMSE {rmse:.4g}. Numbers are rounded.", ""]
        text += [to_formula(forest, digits=4), "", ""]
    written = results / f"case_study_{data}.txt"
    written.write_text("\n".join(text).rstrip() + "\n")
    return [*lines, f"As formulas: [{written.name}]({written.name}).", ""]
