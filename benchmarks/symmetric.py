"""CatBoost's symmetric trees: levels kept (rule="oblivious") against parts kept (rule="subtree").

    python benchmarks/symmetric.py [--data FOLDER] [--sets houses ...]

Each data set is split as in frontier.py. The original has 500 trees of depth 6. One path a rule,
leaves refitted; of the points within a budget the one with the lowest validation error counts.
Times are of `predict` with one thread, for a Pool of 100,000 rows, the best of several. ONNX files
and training on are tried with each pruned model. Writes results/symmetric.md.
"""

import argparse
import tempfile
import time
import warnings
from pathlib import Path

import catboost
import numpy as np
import onnxruntime
from frontier import HERE, Split

import forestprune as fp
from forestprune.select.pruned import file_size

SETS = ("houses", "cpu_small", "kin8nm", "bike_sharing_hour")
NODES = (300, 1000, 3175, 10_000)
BYTES = (10_000, 20_000, 40_000, 100_000)
RULES = ("oblivious", "subtree")
QUIET = {"verbose": 0, "allow_writing_files": False, "thread_count": 2, "random_seed": 0}


def seconds(models, rows):
    """Return the shortest time of each model, taken in turns."""
    shortest = dict.fromkeys(models, np.inf)
    for _ in range(15):
        for name, model in models.items():
            begun = time.perf_counter()
            model.predict(rows, thread_count=1)
            shortest[name] = min(shortest[name], time.perf_counter() - begun)
    return shortest


def best_within(sizes, budget, validation, test):
    """Return the test error of the point with the least validation error within a budget."""
    inside = np.flatnonzero(sizes <= budget)
    return float(test[inside[np.argmin(validation[inside])]])


def tried(native, split):
    """Return by how much ONNX and the start of more training differ from the model itself."""
    rows = split.X_test.astype(np.float32)
    expected = native.predict(rows)
    with tempfile.TemporaryDirectory() as folder:
        file = f"{folder}/model.onnx"
        native.save_model(file, format="onnx")
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        session = onnxruntime.InferenceSession(file, options)
        found = session.run(None, {session.get_inputs()[0].name: rows})[0].ravel()
    more = catboost.CatBoostRegressor(iterations=20, **QUIET)
    more.fit(split.X, split.y, init_model=native)
    begun = more.predict(rows, ntree_end=native.tree_count_)
    assert more.tree_count_ == native.tree_count_ + 20
    return float(np.abs(found - expected).max()), float(np.abs(begun - expected).max())


def measured(split):
    """Return what there is to say of one data set."""
    model = catboost.CatBoostRegressor(iterations=500, depth=6, **QUIET).fit(split.X, split.y)
    full = split.errors(model.predict)[1]
    nodes = fp.Forest.from_model(model).n_nodes
    models, found = {"full": model}, {}
    for rule in RULES:
        path = fp.prune_path(model, split.X, split.y, rule=rule, n_alphas=60)
        sizes, validation, test = map(np.array, zip(*split.path_errors(path), strict=True))
        small = path.select(max_nodes=nodes // 20)
        models[rule] = small.to_native()
        files = np.array([file_size(each.to_native(), ".cbm") for each in path])
        found[rule] = {
            "nodes": [best_within(sizes, n, validation, test) / full for n in NODES],
            "bytes": [best_within(files, n, validation, test) / full for n in BYTES],
            "trees": small.n_trees,
        }
    rows = catboost.Pool(np.tile(split.X_test, (100_000 // len(split.X_test) + 1, 1))[:100_000])
    times = seconds(models, rows)
    for rule in RULES:
        found[rule]["speed"] = times["full"] / times[rule]
    found["onnx"], found["onward"] = tried(models["oblivious"], split)
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=HERE.parents[1] / "shared" / "data")
    parser.add_argument("--sets", nargs="*", default=SETS)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    results = {}
    for name in given.sets:
        results[name] = measured(Split(given.data, name))
        print(name, results[name], flush=True)
    lines = [
        "# CatBoost's symmetric trees: levels against parts",
        "",
        "Made by `python benchmarks/symmetric.py`. 500 trees of depth 6, 63,500 nodes. "
        "`oblivious`, the default for such models, keeps levels and so symmetric trees; `subtree` "
        "keeps parts of trees, which CatBoost holds as non-symmetric ones.",
        "",
        "Pruned to 1/20 of the nodes: the time that the full model takes to predict 100,000 rows "
        "over that of the small one (one thread), and trees left.",
        "",
        "| data | oblivious: full / small | trees | subtree: full / small | trees |",
        "|---|---|---|---|---|",
    ]
    for name, found in results.items():
        parts = [f"{found[rule]['speed']:.2f} | {found[rule]['trees']}" for rule in RULES]
        lines.append(f"| {name} | {' | '.join(parts)} |")
    for what, budgets, unit in (("nodes", NODES, "nodes"), ("bytes", BYTES, "bytes of .cbm")):
        lines += [
            "",
            f"Test error over the full model's, at equal {what}: oblivious, subtree.",
            "",
            f"| data | {' | '.join(f'{budget:,} {unit}' for budget in budgets)} |",
            "|---|" + "---|" * len(budgets),
        ]
        for name, found in results.items():
            pairs = zip(*(found[rule][what] for rule in RULES), strict=True)
            lines.append(f"| {name} | {' | '.join(f'{a:.2f}, {b:.2f}' for a, b in pairs)} |")
    onnx = max(found["onnx"] for found in results.values())
    onward = max(found["onward"] for found in results.values())
    lines += [
        "",
        "Every model that `oblivious` left was written as ONNX (predictions differ by "
        f"{onnx:.0e} at "
        f"most, in units of the target's spread) and trained on with `init_model` (it begins with "
        f"the predictions of the pruned model; difference {onward:.0e}).",
    ]
    (HERE / "results" / "symmetric.md").write_text("\n".join(lines) + "\n")
    print("\n".join(lines))
    assert onnx < 1e-4
    assert onward < 1e-9


if __name__ == "__main__":
    main()
