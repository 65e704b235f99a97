"""What a forest says of the model it came from."""

import json
import pickle
from dataclasses import replace

import numpy as np
import pytest
from small_forests import small

from forestprune import Forest, Origin


@pytest.mark.parametrize(
    ("link", "objective", "params", "words"),
    [
        ("identity", "unknown", {}, "y"),
        ("identity", "squared_error", {}, "y"),
        ("identity", "poisson", {}, "y"),
        ("identity", "quantile", {"level": 0.5}, "the 0.5 quantile of y"),
        ("identity", "quantile", {}, "a quantile of y"),
        ("identity", "expectile", {"level": 0.25}, "the 0.25 expectile of y"),
        ("identity", "hinge", {}, "a margin whose sign tells the class"),
        ("log", "gamma", {}, "the log of the mean of y"),
        ("log", "tweedie", {"power": 1.3}, "the log of the mean of y"),
        ("log", "quantile", {"level": 0.9}, "the log of the 0.9 quantile of y"),
        ("logit", "log_loss", {"sigmoid": 1.0}, "the log-odds of y"),
        ("logit", "log_loss", {"sigmoid": 2.5}, "the log-odds of y, divided by 2.5"),
        ("signed_sqrt", "squared_error", {}, "the signed square root of y"),
        (
            "signed_sqrt",
            "quantile",
            {"level": 0.1},
            "the 0.1 quantile of the signed square root of y",
        ),
    ],
)
def test_link_and_objective_in_words_and_through_files(link, objective, params, words, tmp_path):
    origin = Origin("sklearn", "X", {}, link, objective, params, averages=True)
    assert origin.predicts == words
    forest = small(origin=origin)
    assert forest.adds_up_to_y is (words == "y")
    forest.save(tmp_path / "forest.npz")
    for twin in (Forest.load(tmp_path / "forest.npz"), pickle.loads(pickle.dumps(forest))):
        assert twin.origin == origin

    # Files of older versions have only the words.
    contents = dict(np.load(tmp_path / "forest.npz"))
    metadata = json.loads(contents["metadata"].tobytes())
    for name in ("link", "objective", "objective_params"):
        del metadata["origin"][name]
    metadata["origin"]["predicts"] = words
    contents["metadata"] = np.frombuffer(json.dumps(metadata).encode(), np.uint8)
    del contents["tree_output"]
    np.savez(tmp_path / "old.npz", **contents)
    old = Forest.load(tmp_path / "old.npz")
    assert old.origin.predicts == words
    assert old.origin.link == link
    assert old.adds_up_to_y is forest.adds_up_to_y
    assert old.origin.averages


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (
            {"link": "probit"},
            "link must be one of identity, log, logit, softmax, signed_sqrt, got 'probit'",
        ),
        ({"objective": 1}, "objective must be a string, got 1"),
        ({"averages": 1}, "averages must be True or False"),
    ],
)
def test_what_is_no_origin_is_refused(wrong, message):
    with pytest.raises(TypeError, match=message):
        Origin("sklearn", "X", **wrong)


def test_the_origin_decides_whether_trees_are_averaged():
    assert not small().averages
    assert small(scale=[0.5, 0.5], base=[0.0]).averages
    assert not small(scale=[0.5, 0.5], base=[1.0]).averages
    assert not small(scale=[0.5, 0.5], base=[0.0], origin=Origin("sklearn", "X")).averages
    assert small(origin=Origin("sklearn", "X", averages=True)).averages
    assert not small().truncate(0).compact().averages


def test_nothing_is_said_of_sums_whose_meaning_nobody_knows():
    origin = Origin("xgboost", "XGBRanker", response="raw")
    assert origin.predicts == "a score of its own"
    assert not origin.adds_up_to_y
    assert replace(origin, objective="squared_error").predicts == "y"
    assert replace(origin, response="value").adds_up_to_y
