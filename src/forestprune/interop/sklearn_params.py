"""Parameters of scikit-learn's estimators as plain data, and back."""

from typing import Any

from sklearn.dummy import DummyRegressor
from sklearn.tree import DecisionTreeRegressor, ExtraTreeRegressor

from forestprune.exceptions import UnsupportedModelError
from forestprune.interop.params import plain

TREES = {cls.__name__: cls for cls in (DecisionTreeRegressor, ExtraTreeRegressor)}
_NESTED = TREES | {"DummyRegressor": DummyRegressor}


def encoded(name: str, param: Any) -> Any:
    """Return `param` as JSON can hold it."""
    return plain(name, param, _not_plain)


def _not_plain(name: str, param: Any) -> Any:
    if type(param) in _NESTED.values():
        inner = {n: encoded(n, p) for n, p in param.get_params(deep=False).items()}
        return {"estimator": type(param).__name__, "params": inner}
    raise UnsupportedModelError(
        f"The parameter {name} must be a plain value, or one of {', '.join(_NESTED)}; "
        f"got {type(param).__name__}, which could not be written back."
    )


def decoded(params: dict[str, Any]) -> dict[str, Any]:
    """Undo encoded for a set of parameters."""
    return {
        name: _NESTED[param["estimator"]](**decoded(param["params"]))
        if isinstance(param, dict) and "estimator" in param
        else param
        for name, param in params.items()
    }
