"""What help() prints of public names."""

import inspect
import pydoc
from typing import get_type_hints

import pytest

import forestprune as fp

NAMES = sorted({*fp.__all__} - {"__version__"})
CALLED = [
    *(name for name in NAMES if callable(getattr(fp, name))),
    *("Forest.from_model", "Forest.from_file", "Forest.predict"),
    *("PruningPath.select", "PrunedForest.predict", "ForestPruneRegressor.fit"),
    *(f"baselines.{name}" for name in fp.baselines.__all__),
]


def found(name):
    thing = fp
    for part in name.split("."):
        thing = getattr(thing, part)
    return thing


def printed(name):
    return pydoc.render_doc(found(name), renderer=pydoc.plaintext)


@pytest.mark.parametrize("name", sorted({*NAMES, *CALLED}))
def test_help_can_be_read(name):
    # Of the insides of dataclasses the first characters are printed, further down.
    text = "\n".join(line for line in printed(name).splitlines() if "__ = {" not in line)
    for unreadable in ("numpy._typing", "numpy.ndarray[", "Annotated[", "ForwardRef"):
        assert unreadable not in text


@pytest.mark.parametrize("name", CALLED)
def test_help_begins_with_the_call_and_then_the_summary(name):
    head, call, *rest = (line for line in printed(name).splitlines() if line.strip(" |"))
    summary = inspect.getdoc(found(name)).splitlines()[0]
    assert summary.endswith(".")
    short = name.rpartition(".")[2]
    assert short in head
    assert short in call
    assert "at 0x" not in call
    # Of a class the bases come first, then how it is called.
    assert summary in [line.strip(" |") for line in rest[:2]]


@pytest.mark.parametrize("call", [fp.prune, fp.prune_path, fp.encode, fp.PruningPath.select])
def test_types_can_still_be_asked_for(call):
    assert {*get_type_hints(call)} == {*inspect.signature(call).parameters, "return"} - {"self"}
