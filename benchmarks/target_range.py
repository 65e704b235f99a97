"""How often predictions leave the range of the target, before and after pruning.

    python benchmarks/target_range.py [--data FOLDER] [--sets houses ...]

Data sets, splits and originals are those of frontier.py. A random forest's predictions are averages
of the training rows' targets and never leave their range; sums of refitted leaf values can. For the
full model and for models pruned to 200 and 1,000 nodes, chosen on validation rows: the share of
test rows whose prediction is outside that range, the farthest in per cent of it, the test error
over the full model's, and by how much clipping lowers it. The last column is how far apart the
highest and the lowest leaves of all trees add up to, in ranges: a bound tree by tree would have to
bring that down to 1.
"""

import argparse
from pathlib import Path

import numpy as np
from frontier import HERE, Split, original
from rich.console import Console
from side_by_side import table

import forestprune as fp

SETS = ("houses", "cpu_small", "abalone", "wine_quality", "bike_sharing_hour", "house_16H")
KINDS = {"rf": "random forest", "xgb": "XGBoost"}
WISHES = {
    "200 nodes": {"max_nodes": 200},
    "1,000 nodes": {"max_nodes": 1000},
    "1,000, refit=False": {"max_nodes": 1000, "refit": False},
}


def outside(predicted, y, low, high):
    """Return the share outside, the farthest in ranges, the error, what clipping saves of it."""
    clipped = np.clip(predicted, low, high)
    error, after = (float(np.mean((each - y) ** 2)) for each in (predicted, clipped))
    away = np.abs(predicted - clipped)
    outside = float(np.mean(away > 1e-6 * (high - low)))
    return outside, float(away.max()) / (high - low), error, 1.0 - after / error


def span(forest):
    """Return the difference of the sums of all trees' highest and lowest leaves."""
    values, trees = forest.scaled_value[:, 0], zip(forest.offsets, forest.offsets[1:], strict=False)
    leaves = [values[a:b][forest.left[a:b] < 0] for a, b in trees]
    return sum(float(np.ptp(each)) for each in leaves)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=HERE.parents[1] / "shared" / "data")
    parser.add_argument("--sets", nargs="*", default=SETS)
    options = parser.parse_args()
    result = table(
        "Predictions of test rows outside the range of the training target",
        *("data", "original", "pruned to", "rows outside", "farthest", "error / full"),
        *("clipping saves", "leaves apart, ranges"),
    )
    for name in options.sets:
        split = Split(options.data, name)
        low, high = split.y.min(), split.y.max()
        held_out = {"X_val": split.X_val, "y_val": split.y_val}
        for kind, words in KINDS.items():
            model = original(kind, split.X, split.y)
            found = {"the full model": (model, fp.Forest.from_model(model))}
            for wish, how in WISHES.items():
                small = fp.prune(model, split.X, split.y, **how, **held_out)
                found[wish] = small, small.forest
            whole = None
            for wish, (predictor, forest) in found.items():
                predicted = predictor.predict(split.X_test)
                share, farthest, error, saved = outside(predicted, split.y_test, low, high)
                whole = error if whole is None else whole
                result.add_row(
                    *(name, words, wish, f"{share:.2%}", f"{farthest:.1%}", f"{error / whole:.2f}"),
                    *(f"{saved:.2%}", f"{span(forest) / (high - low):.1f}"),
                )
    Console(width=150).print(result)


if __name__ == "__main__":
    main()
