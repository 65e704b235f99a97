"""How to load a pruned model where this package is not installed, as code."""

from pathlib import Path

from forestprune.forest.frames import listed
from forestprune.forest.origin import Origin
from forestprune.options import DEPLOYED
from forestprune.select.pruned import PrunedForest
from forestprune.text.formula import comment
from forestprune.text.meaning import label_in_words

MAX_NAMES = 50
"""Columns that are named."""

_PICKLE = 'import pickle\n\nwith open(FILE, "rb") as file:\n    model = pickle.load(file)'
_XGBOOST = "import xgboost\n\nmodel = xgboost.CLASS()\nmodel.load_model(FILE)"
_CATBOOST = 'import catboost\n\nmodel = catboost.CLASS()\nmodel.load_model(FILE, format="{}")'

_CODE = {
    ("any", ".joblib"): "import joblib\n\nmodel = joblib.load(FILE)",
    ("any", ".pkl"): _PICKLE,
    ("any", ".pickle"): _PICKLE,
    ("any", ".skops"): (
        "import skops.io\n\n"
        "types = skops.io.get_untrusted_types(file=FILE)  # look at them first\n"
        "model = skops.io.load(FILE, trusted=types)"
    ),
    ("any", ".npz"): "import forestprune as fp\n\nmodel = fp.Forest.load(FILE)",
    ("xgboost", ".json"): _XGBOOST,
    ("xgboost", ".ubj"): _XGBOOST,
    ("lightgbm", ".txt"): "import lightgbm\n\nmodel = lightgbm.Booster(model_file=FILE)",
    ("catboost", ".cbm"): _CATBOOST.format("cbm"),
    ("catboost", ".json"): _CATBOOST.format("json"),
}
"""The code for a library and an ending, with the class and the name of the file left open."""


def how_to_load(small: PrunedForest, file: Path | None) -> dict[str, str | bool]:
    """Return code that loads a model from its file, None if it has none yet, and predicts."""
    origin = small.forest.origin
    model_class = "Forest" if origin is None else origin.model_class
    library = "forestprune" if origin is None else origin.library
    ending = ".joblib" if small.ending[1:] in DEPLOYED else small.ending
    name = Path(f"small{ending if origin is not None else '.npz'}") if file is None else file
    ending = name.suffix
    code = _CODE.get((library, ending)) or _CODE["any", ending]
    predict, option = "model.predict(X)", "enable_categorical=True"
    # XGBoost has to be told of categories each time: a model when it is made, a Booster with X.
    categorical = small.forest.input.categories is not None
    if code == _XGBOOST and model_class == "Booster":
        predict = f"model.predict(xgboost.DMatrix({f'X, {option}' if categorical else 'X'}))"
    elif code == _XGBOOST and categorical:
        code = code.replace("CLASS()", f"CLASS({option})")
    code = code.replace("CLASS", model_class).replace("FILE", repr(name.name))
    as_booster = library == "lightgbm" and ending == ".txt" and model_class != "Booster"
    return {
        "code": "\n".join(
            [code, *_columns_taken(small), *_what_comes(origin, as_booster), predict]
        ),
        "file": name.name,
        "to_come": file is None,
        "needs_us": ending == ".npz",
        "as_booster": as_booster,
    }


def _what_comes(origin: Origin | None, as_booster: bool) -> list[str]:
    """Return comments on what predictions are where they are not labels, as those of Boosters."""
    if origin is None or not origin.classes or not (as_booster or origin.response == "probability"):
        return []
    names = [label_in_words(label) for label in origin.classes]
    if len(names) == 2:
        return comment(f"what comes: the probability of {names[1]}")
    more = f" and {len(names) - MAX_NAMES:,} more" if len(names) > MAX_NAMES else ""
    return comment(f"what comes: the probabilities of {', '.join(names[:MAX_NAMES])}{more}")


def _columns_taken(small: PrunedForest) -> list[str]:
    """Return comments on the columns a model takes, quoted so that no name can end its line."""
    pipeline = None if small.source is None else small.source.pipeline
    spec = small.forest.input
    names, count = spec.feature_names, spec.n_features
    if pipeline is not None:
        names = getattr(pipeline, "feature_names_in_", None)
        count = getattr(pipeline, "n_features_in_", 0)
    taken = (
        f"X: {count:,} columns, in the order of training" if count else "X: rows as for training"
    )
    if names is not None:
        taken = f"X: a table with the columns {listed([str(n) for n in names], MAX_NAMES)}"
        taken += ", in this order"
        if pipeline is None and spec.known_categories:
            with_categories = [names[column] for column in spec.known_categories]
            taken += f"; of dtype category: {listed(with_categories, MAX_NAMES)}"
    return comment(taken)
