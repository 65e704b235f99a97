"""The time of a path of the subtree rule with refitted leaves, beside that of fitting the forest.

    python benchmarks/subtree_timing.py [--rows 15437] [--trees 100]

Random forests on generated data with ten columns, of depth 6, 20 and without a limit, that look for
splits among all features (scikit-learn's default) or among three of ten; fitted on two cores. Two
paths are timed, encoding included: 100 alphas, from where nothing is kept down by a factor of
100,000; and on to where going on does not pay, which without validation rows is next to everything.
A path of each kind is made before: the first may have to compile.
"""

import argparse
from functools import partial

import numpy as np
from rich.console import Console
from side_by_side import seconds, table
from sklearn.datasets import make_friedman1
from sklearn.ensemble import RandomForestRegressor

import forestprune as fp


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=15437)
    parser.add_argument("--trees", type=int, default=100)
    options = parser.parse_args()
    X, y = make_friedman1(options.rows, n_features=10, noise=1.0, random_state=0)
    result = table(
        f"Subtree rule with refitted leaves: {options.rows:,} rows x {options.trees} trees",
        *("max_depth", "features", "nodes a tree", "fit, s", "path of 100, s", "path / fit"),
        *("its largest, nodes", "whole path, s", "whole path / fit", "its largest, nodes"),
    )
    for max_depth in (6, 20, None):
        for features in (1.0, "sqrt"):
            model = RandomForestRegressor(
                options.trees,
                max_depth=max_depth,
                max_features=features,
                n_jobs=2,
                random_state=0,
            )
            fit, _ = seconds(partial(model.fit, X, y), repeats=1)
            alphas = fp.prune_path(model, X, y).alphas[:100]
            short = partial(fp.prune_path, model, X, y, alphas=alphas)
            pruning, path = seconds(short, repeats=1)
            going_on, whole = seconds(partial(fp.prune_path, model, X, y), repeats=1)
            nodes = np.mean([tree.tree_.node_count for tree in model.estimators_])
            result.add_row(
                str(max_depth),
                str(features),
                f"{nodes:,.0f}",
                f"{fit:.2f}",
                f"{pruning:.2f}",
                f"{pruning / fit:.2f}",
                f"{path.n_nodes.max():,}",
                f"{going_on:.2f}",
                f"{going_on / fit:.2f}",
                f"{whole.n_nodes[-2]:,}",
            )
    Console(width=130).print(result)


if __name__ == "__main__":
    main()
