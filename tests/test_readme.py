"""What README shows runs."""

import re
from pathlib import Path

import pytest

README = Path(__file__).parent.parent / "README.md"
BLOCKS = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)


def test_there_is_an_example():
    assert BLOCKS


@pytest.mark.parametrize("block", BLOCKS)
def test_examples_run(block, capsys):
    exec(compile(block, str(README), "exec"), {})
    assert "from sklearn RandomForestRegressor" in capsys.readouterr().out
