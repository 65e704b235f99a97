"""Parameters of scikit-learn's estimators as plain data, and back."""

from typing import Any

from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.tree import (
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ExtraTreeClassifier,
    ExtraTreeRegressor,
)

from forestprune.exceptions import UnsupportedModelError
from forestprune.interop.params import plain

REGRESSION_TREES = {cls.__name__: cls for cls in (DecisionTreeRegressor, ExtraTreeRegressor)}
CLASS_TREES = {cls.__name__: cls for cls in (DecisionTreeClassifier, ExtraTreeClassifier)}
TREES: dict[str, Any] = REGRESSION_TREES | CLASS_TREES
_NESTED = TREES | {cls.__name__: cls for cls in (DummyRegressor, DummyClassifier)}


def encoded(name: str, param: Any) -> Any:
    """Return `param` as JSON can hold it."""
    return plain(name, param, _not_plain)


def _not_plain(name: str, param: Any) -> Any:
    if type(param) in _NESTED.values():
        inner = {n: encoded(n, p) for n, p in param.get_params(deep=False).items()}
        return {"estimator": type(param).__name__, "params": inner}
    if isinstance(param, dict):  # weights of classes, by labels that are no strings
        pairs = [[encoded(name, key), encoded(name, item)] for key, item in param.items()]
        return {"pairs": pairs}
    raise UnsupportedModelError(
        f"The parameter {name} must be a plain value, or one of {', '.join(_NESTED)}; "
        f"got {type(param).__name__}, which could not be written back."
    )


def decoded(params: dict[str, Any]) -> dict[str, Any]:
    """Undo encoded for a set of parameters."""
    return {name: _decoded(param) for name, param in params.items()}


def _decoded(param: Any) -> Any:
    if not isinstance(param, dict):
        return param
    # Labels and columns may have any name, but what is said of them is a number.
    if isinstance(param.get("estimator"), str):
        return _NESTED[param["estimator"]](**decoded(param["params"]))
    if isinstance(param.get("pairs"), list):
        return dict(param["pairs"])
    return param
