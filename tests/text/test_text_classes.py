"""Words and formulas of classifiers, and of models with links."""

import re
from dataclasses import replace

import numpy as np
import pytest
from hand_made import built, split
from naive import Node
from sklearn.datasets import make_classification
from sklearn.ensemble import (
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)

import forestprune as fp
from forestprune.text import identifiers, meaning, to_formula, to_text

LABELS = np.array(["ash", "oak's", "yew"])


def rows(n_classes):
    X, y = make_classification(
        200, 4, n_informative=3, n_redundant=0, n_classes=n_classes, random_state=0
    )
    return np.float32(X).astype(float), LABELS[y]


MODELS = {
    "boosted, 2": (GradientBoostingClassifier(n_estimators=4, random_state=0), 2),
    "boosted, 3": (HistGradientBoostingClassifier(max_iter=3, max_leaf_nodes=5), 3),
    "averaged, 2": (RandomForestClassifier(3, max_depth=3, random_state=0), 2),
    "averaged, 3": (ExtraTreesClassifier(3, max_depth=3, random_state=0), 3),
}


@pytest.mark.parametrize("kind", MODELS)
def test_a_formula_of_each_class_gives_its_sum(kind):
    model, n_classes = MODELS[kind]
    X, y = rows(n_classes)
    small = fp.prune(model.fit(X, y), X, y, max_nodes=40)
    sums = np.reshape(small.decision_function(X), (len(X), -1))
    for output in range(sums.shape[1]):
        formula = compile(small.to_formula(output=output), "formula", "eval")
        names = identifiers(small.forest)
        found = [eval(formula, dict(zip(names, row, strict=True))) for row in X.tolist()]
        assert found == pytest.approx(sums[:, output], abs=1e-9)
        rounded = small.to_formula(output=output, digits=3)
        said = meaning(small.forest.origin).of_output(output)
        assert said.removeprefix("the ")[1:] in rounded or "if" not in rounded
    if n_classes > 2:
        with pytest.raises(ValueError, match=r"classes 'ash', \"oak's\", 'yew'; say which one"):
            small.to_formula()


def test_log_odds_are_those_of_the_second_class():
    model, _ = MODELS["boosted, 2"]
    X, y = rows(2)
    first, second, *_ = to_text(fp.Forest.from_model(model.fit(X, y))).splitlines()
    assert re.fullmatch(r'Log-odds of "oak\'s" = \S+ \+ what each of 4 trees adds\.', first)
    assert second == (
        '"oak\'s" is predicted if the sum is above 0; its probability is 1 / (1 + exp(-sum)).'
    )
    numbers = to_text(fp.Forest.from_model(model.fit(X, y == "ash"))).splitlines()[0]
    assert numbers.startswith("Log-odds of class True = ")


def test_leaves_of_distributions_list_classes():
    stump = split(0, 0.5, Node([0.7, 0.2, 0.1], 1.0), Node([0.1, 0.2, 0.7], 3.0))
    forest = built([replace(stump, value=[0.25, 0.2, 0.55])], base=[0.0] * 3, scale=[1.0])
    origin = fp.Origin(
        "sklearn",
        "RandomForestClassifier",
        objective="brier",
        classes=tuple(LABELS.tolist()),
        classes_dtype="U5",
        response="class",
    )
    lines = to_text(replace(forest, origin=origin)).splitlines()
    assert lines[0] == "Probabilities of 3 classes:"
    assert lines[2] == '  "oak\'s" = 0.2 + what one tree adds'
    assert lines[4] == "The class with the largest sum is predicted."
    # What no leaf changes is not listed.
    assert lines[-2:] == [
        "  if x0 <= 0.5: 'ash' +0.45, 'yew' -0.45 (25 %)",
        "  else: 'ash' -0.15, 'yew' +0.15 (75 %)",
    ]
    one = to_text(replace(forest, origin=origin), output=2)
    assert one.startswith("Probability of 'yew' = 0.55 + what one tree adds.")
    assert "  -0.45 (25 %) if x0 <= 0.5, else +0.15 (75 %)" in one.splitlines()


def test_each_boosted_tree_says_its_class():
    model, _ = MODELS["boosted, 3"]
    X, y = rows(3)
    small = fp.prune(model.fit(X, y), X, y, max_trees=4, max_nodes=30)
    lines = small.to_text().splitlines()
    assert lines[0] == "Raw predictions of 3 classes:"
    assert lines[4].startswith("The class with the largest sum is predicted; probabilities are exp")
    told = {line for line in lines if line.startswith("Tree")}
    classes = map(repr, small.classes_[small.forest.tree_output].tolist())
    assert told == {
        f"Tree {number}, for {name}"
        for number, name in zip(small.tree_numbers, classes, strict=True)
    }
    for output, name in enumerate(small.classes_.tolist()):
        alone = small.to_text(output=output).splitlines()
        count = int(np.sum(small.forest.tree_output == output))
        heads = [line for line in alone if line.startswith("Tree")]
        assert len(heads) == count
        [line] = [line for line in lines[1:4] if line.startswith(f"  {name!r} = ")]
        constant = alone[0].split(" = ")[1].split(" + ")[0].rstrip(".")
        assert line.split(" = ")[1].split(" + ")[0] == constant
        assert ("what" in line) == bool(count)


CLASSES = {"classes": ("a", "b", "c"), "classes_dtype": "U1", "response": "class"}


@pytest.mark.parametrize(
    ("about", "total", "of_first", "prediction"),
    [
        ({}, "y", "y", ""),
        ({"link": "log", "objective": "gamma"}, "the log of the mean of y", None, "is exp(sum)"),
        (
            {"objective": "quantile", "objective_params": {"level": 0.9}},
            "the 0.9 quantile of y",
            None,
            "",
        ),
        (
            {"link": "logit", "objective": "log_loss", "objective_params": {"sigmoid": 0.5}}
            | CLASSES,
            "the log-odds of each of 3 classes, divided by 0.5",
            "the log-odds of 'a'",
            "The class with the largest sum is predicted",
        ),
        (
            {"link": "identity", "objective": "brier"} | CLASSES,
            "the probabilities of 3 classes",
            "the probability of 'a'",
            "The class with the largest sum is predicted",
        ),
        ({"link": "log", "response": "raw"}, "the log of the mean of y", None, ""),
    ],
)
def test_what_sums_stand_for(about, total, of_first, prediction):
    said = meaning(fp.Origin("xgboost", "Booster", **about))
    assert said.total == total
    assert said.of_output(0) == (of_first or total)
    assert said.prediction.endswith(prediction)
    assert bool(said.prediction) == bool(prediction)


def test_predictions_follow_from_sums_as_is_said():
    X, y = rows(2)
    model = GradientBoostingClassifier(loss="exponential", n_estimators=3).fit(X, y)
    forest = fp.Forest.from_model(model)
    said = meaning(forest.origin)
    assert said.total == 'the log-odds of "oak\'s", divided by 2'
    assert said.prediction.endswith("1 / (1 + exp(-2 * sum))")
    found = 1 / (1 + np.exp(-2 * forest.predict(X)))
    np.testing.assert_allclose(found, model.predict_proba(X)[:, 1])


def test_a_classifier_without_trees_is_text_too():
    origin = fp.Origin(
        "lightgbm", "Booster", link="softmax", classes=(0, 1, 2), classes_dtype="int64"
    )
    text = to_text(replace(built([], base=[1.0, 2.0, 3.0]), origin=origin))
    assert text.splitlines()[1:4] == ["  class 0 = 1", "  class 1 = 2", "  class 2 = 3"]
    assert text.endswith("over all classes. No tree is left.")
    assert to_formula(replace(built([], base=[1.0, 2.0]), origin=None), output=1) == "2.0"
