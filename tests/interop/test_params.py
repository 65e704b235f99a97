"""Parameters of models as plain data."""

import json

import numpy as np
import pandas as pd
import pytest

from forestprune import UnsupportedModelError
from forestprune.interop.params import plain, refusal


@pytest.mark.parametrize(
    ("param", "expected"),
    [
        (None, None),
        (True, True),
        (np.float64(0.5), 0.5),
        (np.int32(3), 3),
        (np.array([[1, 2]]), [[1, 2]]),
        (pd.Series(["a", "b"]), ["a", "b"]),
        ((1, [2.5, "x"]), [1, [2.5, "x"]]),
        ({3, 1, 2}, [1, 2, 3]),
        ({"a": (1, 2), "b": {"c": np.bool_(False)}}, {"a": [1, 2], "b": {"c": False}}),
    ],
)
def test_plain_parameters_become_what_json_can_hold(param, expected):
    result = plain("name", param)
    assert result == expected
    assert json.loads(json.dumps(result)) == expected


def test_others_are_refused_or_handed_over():
    with pytest.raises(UnsupportedModelError, match="device must be a plain value, got object"):
        plain("params", {"device": object()})
    with pytest.raises(UnsupportedModelError, match="weights must be a plain value, got dict"):
        plain("weights", {1: 2})
    assert plain("all", [1, {2: 3}], lambda name, param: (name, len(param))) == [1, ("all", 1)]


def test_refusing_a_class_says_what_is_read():
    mine = type("Mine", (int,), {})
    assert refusal(str, [int, float]) == "A fitted int or float is required, got str."
    assert refusal(str, [int], "Why.") == "A fitted int is required, got str. Why."
    assert "It is a subclass of int; a subclass may predict" in refusal(mine, [float, int])
    assert refusal(mine, [float, int, str], "Why.").endswith(
        "float, int or str is required, got Mine. Why."
    )
