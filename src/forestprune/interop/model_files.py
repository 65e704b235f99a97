"""Model files of every library, told apart by their suffix and first bytes.

Nothing but the file that is asked for is loaded, and a library is imported only for its own files.
"""

import os
import pickle
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import joblib

from forestprune.exceptions import UnsupportedModelError, UntrustedFileError
from forestprune.forest import registry
from forestprune.forest.forest import Forest
from forestprune.system.files import replace_atomically

_EXTRAS = {"xgboost": "XGBoost", "lightgbm": "LightGBM", "catboost": "CatBoost", "skops": "skops"}
"""Optional packages, named as the extra of this package that installs them, and as they are."""

PICKLES = (".joblib", ".pkl", ".pickle")
"""Endings of files that can run code when they are loaded."""

_JSON_KEYS = dict.fromkeys(("learner", "version"), "xgboost") | dict.fromkeys(
    ("ctr_data", "features_info", "model_info", "oblivious_trees", "scale_and_bias", "trees"),
    "catboost",
)
"""The first key of a JSON file, and the library that writes it."""

# What scikit-learn's trees and boosting are made of, beyond what skops itself takes for harmless,
# which depends on its version. None of these types runs what the file brings along.
_TRUSTED = {
    "functools.partial",
    "numpy.dtype",
    "sklearn.compose._column_transformer._RemainderColsList",
    "sklearn.ensemble._hist_gradient_boosting.binning._BinMapper",
    "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
    "sklearn.tree._tree.Tree",
    "sklearn.utils.validation.check_array",
}
_TRUSTED_LOSSES = "sklearn._loss."


def load(path: str | os.PathLike[str], *, trust: bool = False) -> Any:
    """Read a model file and return the model, as an object of the library that wrote it.

    See :meth:`Forest.from_file` for what is read, and for `trust`.
    """
    path = Path(path)
    if path.is_dir():
        raise IsADirectoryError(f"A model file is required, but {path} is a folder.")
    if not path.exists():
        raise FileNotFoundError(f"A model file is required, but there is no file {path}.")
    format_ = _FORMATS.get(path.suffix.lower())
    if format_ is None:
        raise UnsupportedModelError(
            f"A model file must end in {listed_endings(tuple(_FORMATS))}; got {path.name}. "
            "Otherwise load it with the library that wrote it, and pass the model."
        )
    head = _head(path)
    if not head:
        raise UnsupportedModelError(f"A model is required, but the file {path} is empty.")
    if not head.startswith(format_.begins):
        raise UnsupportedModelError(
            f"{path} must begin with {format_.begins.decode()!r} to be {format_.name}, got "
            f"{head[:10]!r}. Check that it is a model, and that its suffix fits."
        )
    return format_.read(path, trust=trust) if format_.runs_code else format_.read(path)


def _head(path: Path) -> bytes:
    """Return as much of a file as is needed to tell what it is."""
    with path.open("rb") as file:
        return file.read(256)


def save(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a model or pipeline of any library, or a Forest, in the format that the ending names.

    The file appears under its name only when it is complete.
    """
    path = Path(path)
    library = registry.library_of(model)
    if isinstance(model, Forest):
        endings: tuple[str, ...] = (".npz",)
    else:
        endings = PICKLES if library is None else endings_for(library)
    if path.suffix not in endings:
        raise UnsupportedModelError(
            f"A {type(model).__name__} can be saved to a file that ends in "
            f"{listed_endings(endings)}; got {path.name}."
        )
    write = _WRITERS.get(path.suffix)
    if write is None:
        write = registry.exporter_for(str(library)).save
    with replace_atomically(path) as temporary:
        write(model, temporary)


def endings_for(library: str) -> tuple[str, ...]:
    """Return the endings of the files to which models of `library` can be saved."""
    if library == "sklearn":
        return (*PICKLES, ".skops")
    own: tuple[str, ...] = getattr(registry.exporter_for(library), "FILES", ())
    return (*own, *PICKLES)


def listed_endings(endings: tuple[str, ...]) -> str:
    """Return endings as a message names them."""
    *others, last = endings
    return f"{', '.join(others)} or {last}" if others else last


# One function a format


def _of_library(library: str) -> Callable[[Path], Any]:
    def read(path: Path) -> Any:
        try:
            module = registry.exporter_for(library)
        except ModuleNotFoundError as error:
            raise _not_installed(path, error) from error
        return module.load(path)

    return read


def _read_json(path: Path) -> Any:
    head = _head(path)
    match = re.match(r'\s*\{\s*"([^"]*)"', head.decode("utf-8-sig", errors="replace"))
    library = _JSON_KEYS.get(match[1]) if match else None
    if library is None:
        found = f"its first key is {match[1]!r}" if match else f"it begins with {head[:10]!r}"
        raise UnsupportedModelError(
            f"{path} must be a model that XGBoost or CatBoost saved, but {found}. What the "
            "dump_model() of XGBoost and LightGBM writes cannot be loaded: use save_model()."
        )
    return _of_library(library)(path)


def _read_pickle(path: Path, *, trust: bool) -> Any:
    if not trust:
        raise UntrustedFileError(
            f"{path} is a pickle, and loading one can run any code that is in it.", "joblib.load()"
        )
    try:
        return joblib.load(path)
    except ModuleNotFoundError as error:
        raise _not_installed(path, error) from error
    except Exception as error:
        # Unpickling foreign bytes may end in any error.
        raise UnsupportedModelError(
            f"{path} could not be read as a file of joblib or pickle "
            f"({type(error).__name__}: {error}). Check that it is one, and that the versions of "
            "the libraries are those that wrote it."
        ) from error


def _read_skops(path: Path, *, trust: bool) -> Any:
    try:
        import skops.io
    except ModuleNotFoundError as error:
        raise _not_installed(path, error) from error
    try:
        unknown = set(skops.io.get_untrusted_types(file=path))
    except Exception as error:
        raise UnsupportedModelError(
            f"{path} could not be read as a file of skops ({type(error).__name__}: {error})."
        ) from error
    strangers = [t for t in sorted(unknown - _TRUSTED) if not t.startswith(_TRUSTED_LOSSES)]
    if strangers and not trust:
        raise UntrustedFileError(
            f"{path} must hold nothing but scikit-learn's own models, but it has "
            f"{', '.join(strangers)}.",
            "skops.io.load()",
        )
    return skops.io.load(path, trusted=sorted(unknown))


def _write_pickle(model: Any, path: Path) -> None:
    with path.open("wb") as file:
        pickle.dump(model, file)


def _write_skops(model: Any, path: Path) -> None:
    try:
        import skops.io
    except ModuleNotFoundError as error:
        raise _not_installed("A .skops file", error) from error
    skops.io.dump(model, path)


def _not_installed(file: Path | str, error: ModuleNotFoundError) -> ModuleNotFoundError:
    """Return the error that says what a file needs."""
    if error.name in _EXTRAS:
        reason = f"{_EXTRAS[error.name]}, which is not installed: pip install {error.name}"
    else:
        reason = f"the module {error.name}, which is not found. Install it where this runs."
    return ModuleNotFoundError(f"{file} needs {reason}", name=error.name)


class _Format(NamedTuple):
    name: str
    begins: bytes
    read: Callable[..., Any]
    runs_code: bool = False


_PICKLE = _Format("a file of joblib or pickle", b"", _read_pickle, runs_code=True)
_FORMATS = {
    ".json": _Format("a JSON file", b"", _read_json),
    ".ubj": _Format("a model of XGBoost", b"{", _of_library("xgboost")),
    ".txt": _Format("a model of LightGBM", b"tree", _of_library("lightgbm")),
    ".cbm": _Format("a model of CatBoost", b"CBM", _of_library("catboost")),
    **dict.fromkeys(PICKLES, _PICKLE),
    ".skops": _Format("a file of skops", b"PK", _read_skops, runs_code=True),
    ".npz": _Format("a forest", b"PK", Forest.load),
}
_WRITERS: dict[str, Callable[[Any, Path], Any]] = {
    ".joblib": joblib.dump,
    ".pkl": _write_pickle,
    ".pickle": _write_pickle,
    ".skops": _write_skops,
    ".npz": Forest.save,
}
"""How to write what does not depend on the library."""
