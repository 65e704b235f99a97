"""Progress as a real notebook shows it."""

import os
from pathlib import Path

import pytest

import forestprune

nbclient = pytest.importorskip("nbclient")
nbformat = pytest.importorskip("nbformat")
pytest.importorskip("ipykernel")

CELL = """
import warnings
import forestprune as fp
from forestprune.system import progress
from sklearn.datasets import make_friedman1
from sklearn.ensemble import GradientBoostingRegressor

progress.PATIENCE = 0.05
X, y = make_friedman1(1000, random_state=0)
model = GradientBoostingRegressor(n_estimators=50, max_depth=5, random_state=0).fit(X, y)
print("before")
small = fp.prune(model, X[:700], y[:700], X_val=X[700:], y_val=y[700:], max_nodes=200)
warnings.warn("something else")
print("after")
"""


@pytest.mark.long
def test_a_notebook_shows_progress_and_keeps_nothing_of_it(monkeypatch):
    source = str(Path(forestprune.__file__).parents[1])
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([source, os.environ.get("PYTHONPATH", "")]))
    seen = []

    class Client(nbclient.NotebookClient):
        def process_message(self, msg, cell, cell_index):
            if msg["msg_type"] in ("display_data", "update_display_data"):
                seen.append((msg["msg_type"], msg["content"]["data"]["text/plain"]))
            return super().process_message(msg, cell, cell_index)

    cell = nbformat.v4.new_code_cell(CELL)
    notebook = nbformat.v4.new_notebook(cells=[cell])
    Client(notebook, timeout=300, kernel_name="python3").execute()
    text = [text for _, text in seen]
    assert any("choosing the shrinkage, " in each and " %" in each for each in text)
    assert text[-1] == ""
    assert [how for how, _ in seen].count("display_data") == 1
    streams = [out for out in cell.outputs if out.output_type == "stream"]
    out, err = ("".join(s.text for s in streams if s.name == n) for n in ("stdout", "stderr"))
    assert out == "before\nafter\n"
    assert "something else" in err
    assert "%" not in err
    shown = [out for out in cell.outputs if out.output_type != "stream"]
    assert {out.output_type for out in shown} == {"display_data"}
    assert {value for out in shown for value in out.data.values()} == {""}
