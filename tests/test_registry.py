import sys
import types

import pytest
from test_forest import small

import forestprune as fp
from forestprune import registry


def test_models_of_other_libraries_are_refused():
    for model in (object(), "model", None, [1.0]):
        with pytest.raises(
            fp.UnsupportedModelError, match=r"one of these libraries.*sklearn.*type"
        ):
            fp.Forest.from_model(model)


def test_anybody_can_register_a_library(monkeypatch):
    monkeypatch.setattr(registry, "_MODULES", dict(registry._MODULES))
    forest = small(origin=fp.Origin("woods", "Model"))
    module = types.ModuleType("woods_interop")
    module.from_model = lambda model: forest
    module.to_native = lambda forest, origin: (origin.model_class, forest.n_trees)
    monkeypatch.setitem(sys.modules, "woods_interop", module)
    base = type("Base", (), {"__module__": "woods.trees"})
    model = type("Model", (base,), {"__module__": "__main__"})()

    with pytest.raises(fp.UnsupportedModelError):
        fp.Forest.from_model(model)
    registry.register("woods", "woods_interop")
    assert fp.Forest.from_model(model) is forest
    assert forest.to_native() == ("Model", 2)
