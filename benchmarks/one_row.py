"""One row at a time: what a smaller model saves where the library's call takes most of the time.

    python benchmarks/one_row.py [--rows 5000] [--trees 300] [--nodes 300]

Models of five libraries, fitted to generated data with ten columns, and what is left of them after
pruning. Predictions of one row, a numpy array, on one thread: by `predict` of the full and of the
small model, and by the call beneath it that the library has for the impatient; by
`PrunedForest.predict`; by the small model's formula, compiled as a Python function, which takes the
ten numbers; and by onnxruntime for the random forest, which skl2onnx converts. All take turns;
microseconds of the fastest call. For comparison, full / small for 2,000 rows at once.
"""

import argparse
from functools import partial

import numpy as np
import onnxruntime
import skl2onnx
from catboost import CatBoostRegressor
from lightgbm import LGBMRegressor
from rich.console import Console
from side_by_side import best_times, table
from sklearn.datasets import make_friedman1
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from threadpoolctl import threadpool_limits
from xgboost import XGBRegressor

import forestprune as fp
from forestprune.text import identifiers

CALLS = 200
OTHERS = {
    "full, beneath": "beneath: full",
    "small, beneath": "small",
    "own": "small.predict",
    "formula": "formula",
    "full, ONNX": "ONNX: full",
    "small, ONNX": "small",
}


def models(trees):
    return [
        RandomForestRegressor(trees, n_jobs=1, random_state=0),
        HistGradientBoostingRegressor(max_iter=trees, learning_rate=0.05, early_stopping=False),
        XGBRegressor(n_estimators=trees, learning_rate=0.05, n_jobs=1),
        LGBMRegressor(n_estimators=trees, learning_rate=0.05, n_jobs=1, verbose=-1),
        CatBoostRegressor(
            iterations=trees, thread_count=1, allow_writing_files=False, logging_level="Silent"
        ),
    ]


def beneath(model):
    """Return the call beneath `predict` that does without its checks, if there is one."""
    if isinstance(model, LGBMRegressor):
        return partial(model.booster_.predict, num_threads=1)
    if isinstance(model, XGBRegressor):
        return model.get_booster().inplace_predict
    return None


def function_of(small):
    """Return the formula of a model as a function of a row's numbers."""
    names = ", ".join(identifiers(small.forest))
    return eval(f"lambda {names}: {small.to_formula()}")


def onnx_of(model):
    """Return a function that predicts with onnxruntime."""
    graph = skl2onnx.to_onnx(model, np.zeros((1, 10), np.float32))
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(graph.SerializeToString(), settings)
    name = session.get_inputs()[0].name
    return lambda row: session.run(None, {name: row})[0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=5_000)
    parser.add_argument("--trees", type=int, default=300)
    parser.add_argument("--nodes", type=int, default=300)
    options = parser.parse_args()
    X, y = make_friedman1(options.rows, n_features=10, noise=1.0, random_state=0)
    X = X.astype(np.float32)
    many, row, numbers = X[:2_000], X[:1], X[0].tolist()
    result = table(
        f"{options.trees} trees pruned to {options.nodes} nodes; microseconds for one row",
        *("model", "predict, full", "small", "full / small", "2,000 rows, full / small"),
        *OTHERS.values(),
    )
    for model in models(options.trees):
        model.fit(X, y)
        small = fp.prune(model, X, y, max_nodes=options.nodes)
        native, formula = small.to_native(), function_of(small)
        pair = {"full": model, "small": native}
        ways = {name: partial(each.predict, row) for name, each in pair.items()}
        ways |= {
            "own": partial(small.predict, row, n_jobs=1),
            "formula": partial(formula, *numbers),
        }
        for name, each in pair.items():
            if beneath(each) is not None:
                ways[f"{name}, beneath"] = partial(beneath(each), row)
            if isinstance(each, RandomForestRegressor):
                ways[f"{name}, ONNX"] = partial(onnx_of(each), row)
        small_says = np.ravel(small.predict(row))[0]
        for name, way in ways.items():  # the first call may compile
            said = float(np.ravel(way())[0])
            assert name.startswith("full") or abs(said - small_says) < 1e-3 * abs(small_says), name
        with threadpool_limits(1):
            best = best_times(ways, CALLS)
            batch = best_times(
                {name: partial(each.predict, many) for name, each in pair.items()}, repeats=5
            )
        times = {name: f"{1e6 * seconds:,.0f}" for name, seconds in best.items()}
        result.add_row(
            type(model).__name__,
            times["full"],
            times["small"],
            f"{best['full'] / best['small']:.1f}",
            f"{batch['full'] / batch['small']:.1f}",
            *(times.get(name, "") for name in OTHERS),
        )
    Console(width=150).print(result)


if __name__ == "__main__":
    main()
