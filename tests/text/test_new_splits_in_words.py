"""Words say which splits are not those of the original model."""

from dataclasses import replace

import numpy as np
from resplit import FOREST, partly_new

import forestprune as fp
from forestprune.forest.new_splits import NEW_SPLIT
from forestprune.text import to_formula, to_text


def test_new_splits_are_marked():
    text = to_text(partly_new())
    assert 'Splits that say "[new]" are new: the original model does not have them.' in text
    [marked] = [line for line in text.splitlines() if " [new]" in line]
    assert "x3 <= 0.25 [new], else" in marked
    assert "# 1 of 2 splits are new" in to_formula(partly_new())


def test_one_sentence_is_enough_if_all_are_new():
    forest = partly_new()
    every = replace(forest, node_extras={**forest.node_extras, NEW_SPLIT: forest.left >= 0})
    text = to_text(every)
    assert "All splits are new: the original model has none of them." in text
    assert "[new]" not in text


def test_nothing_is_said_of_a_model_that_is_only_pruned():
    forest = fp.Forest.from_model(FOREST).truncate(1)
    assert " new" not in to_text(forest) + to_formula(forest)
    # A new split that is pruned away is none.
    cut = partly_new().truncate(np.array([1, 0]))
    assert " new" not in to_text(cut) + to_formula(cut)
