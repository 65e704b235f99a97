"""Pictures of classifiers say which class is meant, and axes which score."""

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib import pyplot as plt
from sklearn.datasets import make_classification
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier

import forestprune as fp
from forestprune.show.plotting import look
from forestprune.text.additive import Additive

mpl.use("Agg")

NAMES = np.array(["$a$", "bee", "a very long name of a class"])


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


def small(model, n_classes, **options):
    X, y = make_classification(
        300, 4, n_informative=3, n_redundant=0, n_classes=n_classes, random_state=0
    )
    y = NAMES[y]
    rows = {"X_val": X[200:], "y_val": y[200:]}
    return fp.prune(model.fit(X[:200], y[:200]), X[:200], y[:200], max_nodes=30, **rows, **options)


def texts(ax):
    return [text.get_text() for text in ax.texts]


@pytest.mark.parametrize(
    ("scoring", "label", "of_point"),
    [
        (None, "1 - D²", lambda score: 1 - score),
        ("roc_auc", "1 - roc_auc", lambda score: 1 - score),
        ("neg_log_loss", "log loss", lambda score: -score),
    ],
)
def test_the_axis_says_which_score(scoring, label, of_point):
    found = small(GradientBoostingClassifier(n_estimators=5, random_state=0), 2, scoring=scoring)
    ax = fp.plot_path(found)
    said = ax.get_ylabel().replace("\N{NO-BREAK SPACE}", " ").replace(look.MINUS, "-")
    assert said == f"validation error: {label}"
    mark = next(line for line in ax.lines if str(line.get_label()).startswith("this model"))
    assert mark.get_ydata()[0] == pytest.approx(of_point(found.validation.score))
    full = next(line for line in ax.lines if str(line.get_label()).startswith("full model"))
    assert full.get_ydata()[0] == pytest.approx(of_point(found.validation.full_score))


def test_boosted_trees_of_classes_are_drawn_together():
    found = small(GradientBoostingClassifier(n_estimators=4, random_state=0), 3)
    ax = fp.plot_forest(found)
    short = [repr(name) for name in NAMES.tolist()]
    expected = {
        f"tree {number}, for {short[list(NAMES).index(found.classes_[output])]}"
        for number, output in zip(found.tree_numbers, found.forest.tree_output, strict=True)
    }
    assert expected <= set(texts(ax))
    assert "Raw predictions of 3 classes = (" in ax.get_title(loc="left").replace("\n", " ")
    alone = fp.plot_forest(found, output=1)
    heads = [text for text in texts(alone) if text.startswith("tree")]
    assert len(heads) == np.sum(found.forest.tree_output == 1)
    name = str(found.classes_[1])
    assert f"Raw prediction of {name!r} = " in alone.get_title(loc="left")
    alone.figure.canvas.draw()  # dollar signs are not formulas


def test_leaves_of_distributions_name_the_class_that_they_raise_most():
    found = small(RandomForestClassifier(5, max_depth=3, random_state=0), 3)
    view = Additive.of(found.forest)
    leaves = found.forest.left < 0
    raised = view.contributions[leaves].argmax(axis=1)
    shown = [text.split("\n") for text in texts(fp.plot_forest(found))]
    names = [lines[0] for lines in shown if len(lines) == 2 and lines[1][0] in f"+{look.MINUS}"]
    short = ["'$a$'", "'a very…ss'", "'bee'"]
    assert sorted(names) == sorted(short[k] for k in raised)
    assert "A leaf names the class" in fp.plot_forest(found).get_title(loc="left").replace(
        "\n", " "
    )


@pytest.mark.parametrize("by", ["splits", "gain"])
def test_features_and_depths_of_boosted_classes(by):
    found = small(GradientBoostingClassifier(n_estimators=4, random_state=0), 3)
    bars = fp.plot_importance(found, before=found.path, by=by).containers[-1]
    assert sum(bar.get_width() for bar in bars) == pytest.approx(100)
    labels = fp.plot_depths(found, before=found.path).get_legend().get_texts()
    assert labels[0].get_text() == "before, 12 trees"
