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

REGRESSION_TREES = (DecisionTreeRegressor, ExtraTreeRegressor)
CLASSIFICATION_TREES = (DecisionTreeClassifier, ExtraTreeClassifier)
TREES = {cls.__name__: cls for cls in (*REGRESSION_TREES, *CLASSIFICATION_TREES)}
_NESTED = TREES | {cls.__name__: cls for cls in (DummyRegressor, DummyClassifier)}


def encoded(name: str, param: Any) -> Any:
    """Return `param` as JSON can hold it."""
    return plain(name, param, _not_plain)


def _not_plain(name: str, param: Any) -> Any:
    if type(param) in _NESTED.values():
        inner = {n: encoded(n, p) for n, p in param.get_params(deep=False).items()}
        return {"estimator": type(param).__name__, "params": inner}
    if isinstance(param, dict):  # by labels of classes, which JSON has no keys for
        return {"pairs": [[plain(name, key), plain(name, item)] for key, item in param.items()]}
    raise UnsupportedModelError(
        f"The parameter {name} must be a plain value, or one of {', '.join(_NESTED)}; "
        f"got {type(param).__name__}, which could not be written back."
    )


def decoded(params: dict[str, Any]) -> dict[str, Any]:
    """Undo encoded for a set of parameters."""
    return {name: _decoded(param) for name, param in params.items()}


def _decoded(param: Any) -> Any:
    if isinstance(param, dict) and "estimator" in param:
        return _NESTED[param["estimator"]](**decoded(param["params"]))
    if isinstance(param, dict) and "pairs" in param:
        return dict(param["pairs"])
    return param
