import sys
import types

import pytest
from small_forests import small

import forestprune as fp
from forestprune.forest import registry


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


def test_writing_without_the_library_tells_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setattr(registry, "_MODULES", dict(registry._MODULES))
    monkeypatch.syspath_prepend(tmp_path)
    for needed in ("nosuchwoods", "nosuchbark"):
        (tmp_path / f"{needed}_interop.py").write_text(f"import {needed}")
    registry.register("nosuchwoods", "nosuchwoods_interop")
    forest = small(origin=fp.Origin("nosuchwoods", "Model"))
    with pytest.raises(ModuleNotFoundError, match="not installed: pip install nosuchwoods"):
        forest.to_native()
    # What is missing may be something else.
    registry.register("nosuchwoods", "nosuchbark_interop")
    with pytest.raises(ModuleNotFoundError, match="No module named 'nosuchbark'"):
        forest.to_native()


def test_containers_of_a_library_are_opened(monkeypatch):
    monkeypatch.setattr(registry, "_MODULES", dict(registry._MODULES))
    module = types.ModuleType("woods_interop")
    module.table_of = lambda thing: getattr(thing, "rows", None)
    monkeypatch.setitem(sys.modules, "woods_interop", module)
    registry.register("woods", "woods_interop")
    container = type("Rows", (), {"__module__": "woods.data", "rows": [[1.0]]})()
    other = type("Other", (), {"__module__": "woods.data"})()
    assert registry.table_of(container) == [[1.0]]
    assert registry.table_of(other) is other
    assert registry.table_of(container.rows) is container.rows
