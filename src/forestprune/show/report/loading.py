"""How to load a pruned model where this package is not installed, as code."""

import textwrap
from collections.abc import Callable
from pathlib import Path

from forestprune.forest.frames import listed
from forestprune.select.pruned import PrunedForest

MAX_NAMES = 50
"""Columns that are named."""

LINE = 88
"""Letters in a line of a comment."""


def how_to_load(small: PrunedForest, file: Path | None) -> dict[str, str | bool]:
    """Return code that loads a model from its file and predicts with it.

    Parameters
    ----------
    small : PrunedForest
    file : Path or None
        None if it is not in a file yet.
    """
    origin = small.forest.origin
    model_class = "Forest" if origin is None else origin.model_class
    library = "forestprune" if origin is None else origin.library
    name = Path(f"small{small.ending if origin is not None else '.npz'}") if file is None else file
    ending = name.suffix
    code = (_CODE.get((library, ending)) or _CODE["any", ending])(model_class)
    if library == "xgboost" and small.forest.input.categories is not None:
        # XGBoost has to be told each time.
        code = code.replace("DMatrix(X)", "DMatrix(X, enable_categorical=True)")
        code = code.replace(f"{model_class}()", f"{model_class}(enable_categorical=True)")
    *before, last = code.replace("FILE", repr(name.name)).split("\n")
    return {
        "code": "\n".join([*before, *_columns_taken(small), last]),
        "file": name.name,
        "to_come": file is None,
        "needs_us": ending == ".npz",
        "as_booster": library == "lightgbm" and ending == ".txt" and model_class != "Booster",
    }


def _columns_taken(small: PrunedForest) -> list[str]:
    """Return comments on what the model takes. As they are quoted, no name can end its line."""
    pipeline = None if small.source is None else small.source.pipeline
    spec = small.forest.input
    names, count = spec.feature_names, spec.n_features
    if pipeline is not None:
        names = getattr(pipeline, "feature_names_in_", None)
        count = getattr(pipeline, "n_features_in_", 0)
    said = f"X: {count:,} columns, in the order of training" if count else "X: rows as for training"
    if names is not None:
        said = f"X: a table with the columns {listed([str(n) for n in names], MAX_NAMES)}"
        said += ", in this order"
    if pipeline is None and spec.known_categories and names is not None:
        with_categories = [names[column] for column in spec.known_categories]
        said += f"; of dtype category: {listed(with_categories, MAX_NAMES)}"
    return textwrap.wrap(
        said,
        LINE,
        initial_indent="# ",
        subsequent_indent="#   ",
        break_long_words=False,
        break_on_hyphens=False,
    )


def _of_xgboost(model_class: str) -> str:
    if model_class == "Booster":
        return (
            "import xgboost\n\nmodel = xgboost.Booster(model_file=FILE)\n"
            "model.predict(xgboost.DMatrix(X))"
        )
    return (
        f"import xgboost\n\nmodel = xgboost.{model_class}()\nmodel.load_model(FILE)\n"
        "model.predict(X)"
    )


def _of_lightgbm(_: str) -> str:
    return "import lightgbm\n\nmodel = lightgbm.Booster(model_file=FILE)\nmodel.predict(X)"


def _of_catboost(format_: str) -> Callable[[str], str]:
    def code(model_class: str) -> str:
        return (
            f"import catboost\n\nmodel = catboost.{model_class}()\n"
            f'model.load_model(FILE, format="{format_}")\nmodel.predict(X)'
        )

    return code


def _plainly(code: str) -> Callable[[str], str]:
    return lambda _: code


_PICKLE = (
    'import pickle\n\nwith open(FILE, "rb") as file:\n    model = pickle.load(file)\n'
    "model.predict(X)"
)

_SKOPS = (
    "import skops.io\n\n"
    "types = skops.io.get_untrusted_types(file=FILE)  # look at them first\n"
    "model = skops.io.load(FILE, trusted=types)\nmodel.predict(X)"
)

_CODE: dict[tuple[str, str], Callable[[str], str]] = {
    ("any", ".joblib"): _plainly("import joblib\n\nmodel = joblib.load(FILE)\nmodel.predict(X)"),
    ("any", ".pkl"): _plainly(_PICKLE),
    ("any", ".pickle"): _plainly(_PICKLE),
    ("any", ".skops"): _plainly(_SKOPS),
    ("any", ".npz"): _plainly(
        "import forestprune as fp\n\nmodel = fp.Forest.load(FILE)\nmodel.predict(X)"
    ),
    ("xgboost", ".json"): _of_xgboost,
    ("xgboost", ".ubj"): _of_xgboost,
    ("lightgbm", ".txt"): _of_lightgbm,
    ("catboost", ".cbm"): _of_catboost("cbm"),
    ("catboost", ".json"): _of_catboost("json"),
}
"""The code for a library and an ending, with FILE where the name of the file belongs."""
