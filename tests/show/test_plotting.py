"""Pictures show what the forest is, and no name can break them."""

import itertools
import math
import subprocess
import sys
from dataclasses import replace

import matplotlib as mpl
import numpy as np
import pytest
from effort import examples
from hand_made import AWKWARD, built, leaf, split
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib import pyplot as plt
from matplotlib.colors import to_hex
from naive import Node
from sklearn.datasets import make_friedman1
from sklearn.ensemble import GradientBoostingRegressor
from strategies import forests

import forestprune as fp
from forestprune.select.path import breaks_off
from forestprune.show.plotting import importance, look, trees
from forestprune.show.plotting.layout import Rows, place_nodes, row_width
from forestprune.text.additive import Additive, Condition

mpl.use("Agg")

FUNCTIONS = (fp.plot_path, fp.plot_depths, fp.plot_forest, fp.plot_importance)


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4))
    y = X[:, 0] + 3 * (X[:, 1] > 0) * X[:, 2] + 0.1 * rng.normal(size=300)
    return X[:200], y[:200], X[200:], y[200:]


@pytest.fixture(scope="module")
def model(data):
    return GradientBoostingRegressor(n_estimators=30, max_depth=3, random_state=0).fit(*data[:2])


@pytest.fixture(scope="module")
def path(model, data):
    return fp.prune_path(model, *data[:2], n_alphas=25, rule="layer")


@pytest.fixture(scope="module")
def validated(model, data):
    X, y, X_val, y_val = data
    return fp.prune_path(model, X, y, n_alphas=25, X_val=X_val, y_val=y_val)


@pytest.fixture(scope="module")
def small(model, data):
    return fp.prune(model, *data[:2], max_trees=5, max_nodes=40)


def texts(ax):
    return [text.get_text() for text in ax.texts]


def boxes(ax):
    """Return where the texts of a picture are, with the boxes around them, in pixels."""
    ax.figure.canvas.draw()
    renderer = ax.figure.canvas.get_renderer()
    return [
        (text.get_text(), (text.get_bbox_patch() or text).get_window_extent(renderer))
        for text in ax.texts
    ]


def legend(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


# All of them


def test_matplotlib_is_imported_when_something_is_drawn():
    script = "import sys, forestprune.show.plotting; print('matplotlib' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "False"


@pytest.mark.parametrize("plot", FUNCTIONS)
def test_who_has_no_matplotlib_is_told_what_to_install(plot, path, small, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match="pip install matplotlib"):
        plot(path if plot is fp.plot_path else small)


@pytest.mark.parametrize("plot", FUNCTIONS)
def test_axes_in_axes_out(plot, path, small):
    given_axes = mpl.figure.Figure().add_subplot()
    drawn = path if plot is fp.plot_path else small
    assert plot(drawn, given_axes) is given_axes
    assert not plt.get_fignums()
    own = plot(drawn)
    assert plt.get_fignums() == [own.figure.number]


@pytest.mark.parametrize("plot", [fp.plot_depths, fp.plot_forest, fp.plot_importance])
def test_a_path_is_not_one_forest(plot, path):
    with pytest.raises(TypeError, match=r"a path of \d+\. Choose one"):
        plot(path)


def test_plots_are_found_by_name():
    assert {plot.__name__ for plot in FUNCTIONS} <= {*dir(fp)} & {*fp.__all__}
    with pytest.raises(AttributeError, match="no attribute 'plot_nonsense'"):
        _ = fp.plot_nonsense
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = fp.nonsense


# Paths


def curve(ax):
    line = max(ax.lines, key=lambda each: len(each.get_xdata()))
    return line.get_xdata(), line.get_ydata()


def test_a_path_without_validation_shows_the_training_error(path):
    ax = fp.plot_path(path)
    nodes, errors = curve(ax)
    order = [i for i in np.lexsort((path.losses, path.n_nodes)) if path.n_nodes[i]]
    assert nodes.tolist() == path.n_nodes[order].tolist()
    assert errors.tolist() == path.losses[order].tolist()
    assert ax.get_xscale() == "log"
    assert "training" in ax.get_ylabel()
    assert not ax.collections
    assert legend(ax) == [f"full model, {path.source.forest.n_nodes:,} nodes"]


def test_a_constant_has_no_nodes_to_be_drawn_at(path):
    assert path.n_nodes[0] == 0
    ax = fp.plot_path(path, picks={"nothing": 0, "something": 5})
    assert min(curve(ax)[0]) == min(path.n_nodes[path.n_nodes > 0])
    assert ax.get_xlabel() == "nodes (a constant has none; its error is 1)"
    marks = {line.get_label(): line.get_ydata() for line in ax.lines}
    assert set(marks["nothing, a constant"]) == {path.losses[0]}
    some = fp.plot_path(replace(path, points=path.points[5:]))
    assert some.get_xlabel() == "nodes"
    nothing = fp.plot_path(replace(path, points=path.points[:1]))
    nothing.figure.canvas.draw()
    assert len(curve(nothing)[0]) <= 2  # that of the full model


def test_a_path_with_validation_shows_that_and_how_sure_it_is(validated):
    ax = fp.plot_path(validated)
    errors = curve(ax)[1]
    known = validated.validation
    drawn = validated.n_nodes > 0
    assert not drawn.all()
    assert sorted(errors) == pytest.approx(sorted(1.0 - known.scores[drawn]))
    assert "validation" in ax.get_ylabel()
    (band,) = ax.collections
    edge = {(x, round(y, 9)) for x, y in band.get_paths()[0].vertices}
    scored = zip(validated.n_nodes, known.scores, known.standard_errors, strict=True)
    for x, score, error in itertools.compress(scored, drawn):
        assert (x, round(1.0 - score - error, 9)) in edge
        assert (x, round(1.0 - score + error, 9)) in edge
    marks = {line.get_label(): line.get_xydata()[0] for line in ax.lines}
    full = validated.source.forest.n_nodes
    assert marks[f"full model, {full:,} nodes"].tolist() == [full, 1.0 - known.full]
    best = int(np.argmax(known.scores))
    n = validated.n_nodes[best]
    assert marks[f"best, {n:,} nodes"] == pytest.approx([n, 1.0 - known.scores[best]])
    pick = validated.select(one_standard_error=True)
    assert f"smallest within one standard error, {pick.n_nodes:,} nodes" in marks


def test_a_path_of_several_shrinkages_is_a_line_that_falls():
    X, y = make_friedman1(300, noise=1.0, random_state=0)
    model = GradientBoostingRegressor(n_estimators=20, random_state=0).fit(X[:150], y[:150])
    held_out = {"X_val": X[150:], "y_val": y[150:]}
    small = fp.prune(model, X[:150], y[:150], max_nodes=60, n_alphas=15, **held_out)
    ax = fp.plot_path(small.path, picks={"mine": small})
    dots, line, *_ = ax.lines
    assert len(dots.get_xdata()) == np.count_nonzero(small.path.n_nodes)
    assert (np.diff(line.get_xdata()) > 0).all()
    assert (np.diff(line.get_ydata()) < 0).all()
    assert ax.lines[-1].get_xydata()[0].tolist() == [small.n_nodes, 1.0 - small.validation.score]


def test_no_line_leads_over_models_that_were_not_looked_for(model, data):
    X, y, X_val, y_val = data
    small = fp.prune(model, X, y, tolerance=0.1, X_val=X_val, y_val=y_val)
    full = small.path.n_nodes[-1]
    assert breaks_off(small.path)
    ax = fp.plot_path(small.path)
    assert ax.lines[1].get_xdata().max() < full
    assert not any("best" in label or "smallest" in label for label in legend(ax))


def test_of_a_pruned_model_its_path_is_drawn_and_it_is_marked(small, model):
    ax = fp.plot_path(small)
    assert ax.lines[-1].get_label() == f"this model, {small.n_nodes} nodes"
    assert ax.lines[-1].get_xydata()[0].tolist() == [small.n_nodes, small.loss]
    with pytest.raises(ValueError, match="without the path that it was chosen from"):
        fp.plot_path(replace(small, path=None))
    with pytest.raises(TypeError, match="got GradientBoostingRegressor"):
        fp.plot_path(model)


def test_picks_are_marked_where_they_are(path):
    pick = path.select(max_nodes=60)
    ax = fp.plot_path(path, picks={"$mine_1$": pick, "last": -1})
    marks = {line.get_label(): line.get_xydata()[0].tolist() for line in ax.lines}
    assert marks[f"$mine_1$, {pick.n_nodes} nodes"] == [pick.n_nodes, pick.loss]
    assert marks[f"last, {path.n_nodes[-1]} nodes"] == [path.n_nodes[-1], path.losses[-1]]
    ax.figure.canvas.draw()
    assert not any(text.get_parse_math() for text in ax.get_legend().get_texts())
    assert any("pick 1" in label for label in legend(fp.plot_path(path, picks=[pick])))


def test_picks_must_be_of_the_path(path, small):
    with pytest.raises(ValueError, match="not a point of this path"):
        fp.plot_path(path, picks=[small])
    with pytest.raises(IndexError):
        fp.plot_path(path, picks=[len(path)])
    with pytest.raises(ValueError, match="no points"):
        fp.plot_path(replace(path, points=()))


# Depths


def bars(ax, of=0):
    container = ax.containers[of]
    return {
        round(bar.get_x() + bar.get_width() / 2): int(bar.get_height())
        for bar in container
        if bar.get_height()
    }


def counted(depths):
    return dict(
        zip(*(each.tolist() for each in np.unique(depths, return_counts=True)), strict=True)
    )


def test_depths_before_and_after(small, model, path):
    before = fp.Forest.from_model(model)
    for original in (model, before, path):
        ax = fp.plot_depths(small, before=original)
        assert bars(ax, 0) == counted(before.depths)
        assert bars(ax, 1) == counted(small.depths)
        assert legend(ax) == ["before, 30 trees", f"after, {small.n_trees} trees left"]
        assert ax.get_xticklabels()[0].get_text() == "gone"
    assert legend(fp.plot_depths(small)) == [f"{small.n_trees} trees left"]


def test_trees_of_one_leaf_are_not_gone():
    stump = split(0, 0.5, leaf(-1.0), leaf(1.0))
    ax = fp.plot_depths(built([stump, leaf(1.0), stump]))
    assert legend(ax) == ["3 trees"]
    assert [label.get_text() for label in ax.get_xticklabels()] == ["0", "1"]


def test_depths_of_the_original_are_those_before_any_cut(model, data):
    cut = fp.prune_path(model, *data[:2], n_alphas=3, max_depth=1)
    assert max(bars(fp.plot_depths(cut[-1], before=cut), 0)) == 3


def test_depths_of_a_plain_forest(model):
    ax = fp.plot_depths(model)
    assert bars(ax) == counted(fp.Forest.from_model(model).depths)
    assert ax.get_xticklabels()[0].get_text() == "0"


def test_depths_of_several_picks(path):
    ax = fp.plot_depths({"few": path[2], "many": path[10]})
    assert [sum(bars(ax, i).values()) for i in (0, 1)] == [30, 30]
    assert bars(ax, 1) == counted(path[10].depths)
    with pytest.raises(ValueError, match="one to 3 pruned forests, got 4"):
        fp.plot_depths({str(i): path[i] for i in range(4)})


# Features


@given(forests())
def test_use_of_features_is_what_the_trees_say(drawn):
    roots, forest = drawn
    splits, gain = np.zeros(3), np.zeros(3)

    def visit(node, scale):
        if node.is_leaf:
            return
        splits[node.feature] += 1
        for child in (node.left, node.right):
            steps = zip(child.value, node.value, strict=True)
            gain[node.feature] += child.cover * sum((scale * (a - b)) ** 2 for a, b in steps)
            visit(child, scale)

    for root, scale in zip(roots, forest.scale, strict=True):
        visit(root, float(scale))
    assert importance.use_of_features(forest, "splits").tolist() == splits.tolist()
    assert importance.use_of_features(forest, "gain") == pytest.approx(gain)


@pytest.mark.parametrize("by", ["splits", "gain"])
def test_features_before_and_after(by, small, model):
    ax = fp.plot_importance(small, before=model, by=by, top=3)
    names = [label.get_text() for label in ax.get_yticklabels()]
    after = importance.use_of_features(small.forest, by)
    before = importance.use_of_features(fp.Forest.from_model(model), by)
    order = np.lexsort((-before, -after))[:3]
    assert (after[order] > 0).all()
    assert names == [f"x{column}" for column in order]
    for container, use in zip(ax.containers, (before, after), strict=True):
        widths = [bar.get_width() for bar in container]
        assert widths == pytest.approx((100 * use / use.sum())[order])
    assert ax.get_xlabel().endswith(", %")
    assert texts(ax) == [f"{100 * after[column] / after.sum():.1f} %" for column in order]
    counts = [f", {use.sum():.0f} splits" if by == "splits" else "" for use in (before, after)]
    ends = ("before", before, counts[0]), ("after", after, counts[1])
    assert legend(ax) == [f"{when}, {(use > 0).sum()} features{all_}" for when, use, all_ in ends]


def test_features_that_are_gone_are_shown_behind_those_that_are_left():
    stumps = [split(column, 0.5, leaf(-1.0), leaf(1.0)) for column in (0, 0, 0, 2)]
    ax = fp.plot_importance(built(stumps[3:]), before=built(stumps))
    assert [label.get_text() for label in ax.get_yticklabels()] == ["x2", "x0"]
    assert legend(ax) == ["before, 2 features, 4 splits", "after, 1 feature, 1 split"]
    assert texts(ax) == ["100.0 %", ""]
    assert legend(fp.plot_importance(built(stumps))) == ["2 features, 4 splits"]


def test_importance_refuses_what_does_not_fit(small):
    with pytest.raises(ValueError, match='"splits" or "gain"'):
        fp.plot_importance(small, by="nonsense")
    with pytest.raises(ValueError, match="before must be what was pruned"):
        fp.plot_importance(small, before=built([], n_features=2))
    with pytest.raises(ValueError, match="top"):
        fp.plot_importance(small, top=0)
    assert texts(fp.plot_importance(built([]))) == ["no feature is used"]


# Trees


def test_every_node_is_drawn_with_what_it_says(small):
    ax = fp.plot_forest(small)
    forest, view = small.forest, Additive.of(small.forest)
    shown = sorted(texts(ax))
    expected = [f"tree {number}" for number in np.flatnonzero(small.depths)]
    largest = np.abs(view.contributions).max()
    for v in range(forest.n_nodes):
        if forest.left[v] < 0:
            expected += [
                look.aligned_number(view.contributions[v], largest),
                f"{100 * view.shares[v]:.0f} %",
            ]
        else:
            met = look.short_threshold(Condition.of(forest, v).threshold)
            expected.append(f"x{forest.feature[v]}\n{met}")
    assert shown == sorted(expected)
    assert ax.get_title(loc="left").startswith(
        f"{small.n_trees} trees, {small.n_nodes} nodes, "
        f"{np.unique(forest.feature[forest.feature >= 0]).size} of 4 features."
    )


def test_the_most_important_trees_can_be_drawn_alone(small):
    order = small.tree_numbers[list(Additive.of(small.forest).order)]
    heads = [text for text in texts(fp.plot_forest(small)) if text.startswith("tree")]
    assert heads == [f"tree {number}" for number in order]
    ax = fp.plot_forest(small, top=2)
    heads = [text for text in texts(ax) if text.startswith("tree")]
    assert heads == [f"tree {number}" for number in order[:2]]
    assert "Shown: the 2 most important." in ax.get_title(loc="left")


def test_weights_are_told_if_they_differ(model, data):
    options = {"rule": "layer", "polish": "ridge", "max_nodes": 40}
    weighted = fp.prune(model, *data[:2], **options)
    heads = [text for text in texts(fp.plot_forest(weighted)) if text.startswith("tree")]
    expected = {
        f"tree {i}, weight {look.short_number(weighted.weights[i], 2)}"
        for i in np.flatnonzero(weighted.depths)
    }
    assert set(heads) == expected
    forest = built([split(0, 0.5, leaf(-1.0), leaf(1.0))] * 2, scale=[0.5, -2.0])
    heads = [text for text in texts(fp.plot_forest(forest)) if text.startswith("tree")]
    assert heads == ["tree 1, weight \N{MINUS SIGN}2", "tree 0, weight 0.5"]


def test_a_feature_has_one_colour():
    names = tuple(f"feature {column}" for column in range(15))
    stumps = [split(column, 0.5, leaf(-1.0), leaf(1.0)) for column in (3, *range(15))]
    ax = fp.plot_forest(built(stumps, names, n_features=15))
    colours = {}
    for text in ax.texts:
        if text.get_text().startswith("feature"):
            colour = to_hex(text.get_bbox_patch().get_facecolor())
            colours.setdefault(text.get_text().split()[1], set()).add(colour)
    assert all(len(each) == 1 for each in colours.values())
    assert colours["3"] == {trees.TINTS[0]}  # the commonest
    every = [next(iter(each)) for each in colours.values()]
    assert len(set(every)) == len(trees.TINTS) + 1
    assert every.count(trees.REST) == 15 - len(trees.TINTS)


def test_thick_lines_are_where_most_rows_go():
    ax = fp.plot_forest(built([split(0, 0.5, leaf(-1.0, 9), leaf(1.0, 1))]))
    left, right = (line for line in ax.lines if line.get_marker() == "None")
    assert left.get_xdata()[1] < right.get_xdata()[1]
    assert left.get_linewidth() > 3 * right.get_linewidth()
    assert [text for text in texts(ax) if "%" in text] == ["90 %", "10 %"]


@pytest.mark.parametrize("missing_left", [True, False])
def test_a_ring_is_where_missing_values_go(missing_left):
    stump = split(0, 0.5, leaf(-1.0), leaf(1.0), missing_left=missing_left)
    ax = fp.plot_forest(built([stump]))
    (ring,) = (line for line in ax.lines if line.get_marker() == "o")
    (root,) = {line.get_xdata()[0] for line in ax.lines if line.get_marker() == "None"}
    assert (ring.get_xdata()[0] < root) == missing_left
    assert "ring" in ax.get_title(loc="left")
    closed = fp.plot_forest(built([stump], ensure_all_finite=True))
    assert not any(line.get_marker() == "o" for line in closed.lines)
    assert "ring" not in closed.get_title(loc="left")


def test_categories_are_listed_as_far_as_there_is_room():
    few = split(1, 0.0, leaf(-1.0), leaf(1.0), categories=frozenset({0, 2}))
    many = split(2, 0.0, leaf(-1.0), leaf(1.0), categories=frozenset(range(40)))
    forest = built([few, many], categories=(None, ("red", "b", "blue\n$"), ()))
    shown = [text for text in texts(fp.plot_forest(forest)) if " in" in text or "in {" in text]
    assert shown[0] == "x1\nin {red, blue $}"
    assert "(40 in all)" in shown[1].replace("\n", " ")
    assert len(shown[1]) < 60


def test_a_constant_is_drawn_too(path):
    assert path[0].n_trees == 0
    (text,) = texts(fp.plot_forest(path[0]))
    assert text.startswith(f"Prediction = {look.short_number(path[0].forest.base[0])}\n")


def test_what_cannot_be_read_is_refused_with_advice():
    stump = split(0, 0.5, leaf(-1.0), leaf(1.0))
    forest = built([stump] * (trees.MAX_TREES + 1))
    with pytest.raises(ValueError, match=r"got 31 trees with 62 leaves.*max_trees=10.*top=10"):
        fp.plot_forest(forest)
    fp.plot_forest(forest, top=trees.MAX_TREES)
    chain = leaf(0.0)
    for i in range(trees.MAX_DEPTH + 1):
        chain = split(0, float(-i), leaf(1.0), chain)
    with pytest.raises(ValueError, match="of depth 13"):
        fp.plot_forest(built([chain]))
    with pytest.raises(ValueError, match="say which one"):
        fp.plot_forest(built([], base=[1.0, 2.0]))
    with pytest.raises(ValueError, match="top"):
        fp.plot_forest(forest, top=0)


def full_tree(depth, column=0):
    if depth == 0:
        return leaf((-1.0) ** column * (0.123 + 0.01 * column))
    children = (full_tree(depth - 1, 2 * column + side) for side in (1, 2))
    return split(column % 4, 0.12345, *children)


def chain_tree(depth):
    """Return a tree whose splits stand close: each below the other, a little aside."""
    tree = leaf(0.123)
    for column in range(depth):
        tree = split(column % 4, 0.12345, leaf(-0.1 * column), tree)
    return tree


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "drawn",
    [
        [full_tree(1)],
        [full_tree(1)] * 3,
        [full_tree(2)] * 10,
        [full_tree(2)] * 20,
        [full_tree(3)] * 20,
        [full_tree(5)],
        [chain_tree(6)] * 3,
        [chain_tree(3), full_tree(2), full_tree(1)] * 6,
    ],
    ids=["1", "3 stumps", "10 of 2", "20 of 2", "20 of 3", "1 of 5", "3 chains", "18 mixed"],
)
def test_nothing_stands_on_anything_else(drawn):
    names = ("alcohol", "total_sulfur_dioxide", "PctPersDenseHousOwnOccup", "pct of all who rent")
    forest = built(drawn, names, n_features=4)
    found = boxes(fp.plot_forest(forest))
    assert len(found) > forest.n_nodes
    for (name, a), (other, b) in itertools.combinations(found, 2):
        assert not a.overlaps(b), (name, other)


def test_the_title_and_all_trees_are_inside_the_figure():
    forest = built([split(0, 0.5, leaf(-1.0), leaf(1.0))])
    ax = fp.plot_forest(forest)
    ax.figure.canvas.draw()
    renderer = ax.figure.canvas.get_renderer()
    everything = ax.get_tightbbox(renderer)
    page = ax.figure.bbox
    assert page.x0 <= everything.x0
    assert everything.x1 <= page.x1
    assert page.y0 <= everything.y0
    assert everything.y1 <= page.y1


def test_letters_shrink_in_small_axes(small):
    _, axes = plt.subplots(1, 3, figsize=(9, 3))
    own = fp.plot_forest(small)
    fp.plot_forest(small, axes[0])
    assert axes[0].texts[0].get_fontsize() < 0.7 * own.texts[0].get_fontsize()


@given(forests(), st.lists(st.sampled_from(AWKWARD), min_size=3, max_size=3))
@settings(max_examples=examples(15))
def test_any_forest_can_be_drawn_whatever_its_features_are_called(drawn, names):
    _, forest = drawn
    named = replace(forest, input=replace(forest.input, feature_names=tuple(names)))
    try:
        fp.plot_forest(named, output=forest.n_outputs - 1).figure.canvas.draw()
        fp.plot_importance(named).figure.canvas.draw()
    finally:
        plt.close("all")


def test_long_names_are_cut_and_told_apart():
    names = ("x" * 50, "x" * 60, "a\nb", "$x_1$")
    short = look.short_names(built([], names, n_features=4), range(4), 20)
    assert short[0] != short[1]
    assert (short[2], short[3]) == ("a b", "$x_1$")
    assert len(short[0]) == 20 + len(" [0]")


@given(st.text(max_size=40), st.integers(3, 20))
def test_lines_lose_no_letters(text, width):
    lines = look.even_lines(text, width)
    assert "".join("".join(lines).split()) == "".join(text.split())
    assert all(len(line) <= width for line in lines)


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        ("total_sulfur_dioxide", ["total_sulfur_", "dioxide"]),
        ("PctLargHouseOccup", ["PctLarg", "HouseOccup"]),
        ("alcohol", ["alcohol"]),
        ("volatile acidity, g", ["volatile", "acidity, g"]),
    ],
)
def test_lines_end_where_words_do(name, lines):
    assert look.even_lines(name, 15) == lines


@pytest.mark.parametrize(
    ("x", "text"),
    [(2010.5, "2010.5"), (72439000.0, "72,439,000"), (0.41499999, "0.415"), (-3.0, "-3")],
)
def test_numbers_are_short(x, text):
    assert look.short_number(x) == text.replace("-", look.MINUS)


@pytest.mark.parametrize(
    ("threshold", "text"),
    [
        (11.5, "≤ 11.5"),
        (float(np.nextafter(np.float32(1951), 0)), "< 1951"),
        (10.525000001, "< 10.53"),
        (-72439000.04, "< -72,439,000"),
        (-72439000.0, "≤ -72,439,000"),
    ],
)
def test_thresholds_are_short(threshold, text):
    assert look.short_threshold(threshold) == text.replace("-", look.MINUS)


@pytest.mark.parametrize(
    ("x", "largest", "text"),
    [(0.0031, 0.26, "+0.003"), (-7, 1234.0, "-7"), (1e-7, 2e-7, "+1e-07"), (0.0, 0.0, "+0")],
)
def test_values_are_aligned(x, largest, text):
    assert look.aligned_number(x, largest) == text.replace("-", look.MINUS)


def test_the_tree_that_matters_most_comes_first(small):
    forest, view = small.forest, Additive.of(small.forest)
    assert sorted(view.order) == list(range(forest.n_trees))
    spread = []
    for tree in view.order:
        nodes = np.arange(*forest.offsets[tree : tree + 2])
        leaves = nodes[forest.left[nodes] < 0]
        spread.append(forest.cover[leaves] @ view.contributions[leaves] ** 2)
    assert spread == sorted(spread, reverse=True)


def test_leaves_stand_side_by_side(small):
    forest = small.forest
    for tree in range(forest.n_trees):
        place = place_nodes(forest, tree)
        at = sorted(p.x for p in place if not p.children)
        assert at == list(range(place.leaves))
        assert place.layers == forest.depths[tree]
        assert sum(1 for _ in place) == np.diff(forest.offsets)[tree]


def test_rows_are_filled_in_order_and_to_the_shape_wanted(small):
    places = [place_nodes(small.forest, tree) for tree in range(small.n_trees)] * 4
    shapes = {}
    for aspect in (0.3, 1.0, 3.0):
        rows = Rows.of(places, aspect)
        assert [tree for row in rows.trees for tree in row] == places
        assert rows.width == max(map(row_width, rows.trees))
        shapes[aspect] = rows.width / rows.height
        assert abs(math.log(shapes[aspect] / aspect)) < 0.7
    assert shapes[0.3] < shapes[1.0] < shapes[3.0]


def test_a_tree_without_rows_has_no_shares():
    root = Node([0.0], 0.0, 0, 0.5, left=Node([-1.0], 0.0), right=Node([1.0], 0.0))
    assert not any("%" in text for text in texts(fp.plot_forest(built([root]))))
