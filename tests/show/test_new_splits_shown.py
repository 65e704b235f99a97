"""Reports and pictures: which splits are new, which models have such, and what they gained."""

import re

import matplotlib as mpl
import pytest
from matplotlib import pyplot
from report_pages import Page, data_in, written
from resplit import FOREST, HELD_OUT, X_TEST, Y_TEST, X, Y, polished

import forestprune as fp
from forestprune.select.beside import Beside

mpl.use("Agg")

pytest.importorskip("jinja2")


@pytest.fixture(scope="module")
def small():
    return polished(max_nodes=100)


@pytest.fixture(scope="module")
def chosen():
    return polished(**HELD_OUT)


@pytest.fixture(autouse=True)
def closed():
    yield
    pyplot.close("all")


def test_a_report_says_how_many_splits_are_new_and_what_that_gained(chosen, tmp_path):
    text = written(tmp_path, chosen)
    page, beside = Page(text), Beside.of(chosen.path.points, chosen.index)
    pruned = chosen.path[beside.pruned]
    told = "All its" if chosen.n_new_splits == chosen.n_splits else f"{chosen.n_new_splits} of its"
    assert f"{told} {chosen.n_splits} splits are new" in page.text
    for each in (pruned, chosen):
        assert f"{each.validation.rmse:.4g}" in page.text
    assert f"Only pruned, to {pruned.n_nodes} nodes" in page.text
    assert "own splits" not in page.text
    path = data_in(text)["path"]
    assert path["resplit"]
    assert {mark["name"]: mark["place"] for mark in path["marks"]}["only pruned"] == beside.pruned
    for point, known in zip(path["points"], chosen.path, strict=True):
        assert point["new_splits"] == known.n_new_splits
        assert point["splits"] == known.n_splits


def test_new_splits_of_trees_are_framed_and_named(small, tmp_path):
    assert 0 < small.n_new_splits < small.n_splits
    text = written(tmp_path, small)
    assert text.count('<rect class="new"') == small.n_new_splits
    assert text.count("(new split)</title>") == small.n_new_splits
    page = Page(text)
    assert f"new split, {small.n_new_splits} of {small.n_splits}" in page.text
    assert "the full model's own" in page.text
    for letters in ("--violet", ".legend .new-mark"):
        assert letters in text


def test_a_report_measures_such_models_on_further_rows(chosen, tmp_path):
    page = Page(written(tmp_path, chosen, X=X_TEST, y=Y_TEST))
    assert f"{chosen.to_native().score(X_TEST, Y_TEST):.4f}" in page.text


def test_without_rows_held_out_a_report_says_on_which_rows_new_splits_gain(tmp_path):
    better = fp.polish(polished(max_nodes=100).to_native(), X, Y, shrinkage=30.0)
    assert better.n_new_splits
    seen = "on the rows that splits were chosen by"
    assert seen in Page(written(tmp_path, better)).text
    page = Page(written(tmp_path, better, X=X_TEST, y=Y_TEST))
    assert seen not in page.text  # RMSE is that of the rows given
    assert "Before, the model had RMSE" in page.text or "Only pruned" in page.text


def test_depths_beyond_those_of_the_full_model_are_drawn(tmp_path):
    native = fp.prune(FOREST, X, Y, max_nodes=30, max_depth=2).to_native()
    better = fp.polish(native, X, Y, shrinkage=1.0)
    text = written(tmp_path, better)
    depths = data_in(text)["depths"]
    assert len(depths["before"]) == len(depths["after"]) > better.max_depth
    assert sum(depths["after"]) == sum(depths["before"])
    if better.n_nodes == better.full.n_nodes:
        assert re.search(r"now of \d+ trees", Page(text).text)


def test_a_report_says_if_new_splits_did_no_better(tmp_path):
    stays = fp.polish(polished().to_native(), X, Y, shrinkage=1e6, **HELD_OUT)
    assert stays.n_new_splits == 0
    page = Page(written(tmp_path, stays))
    assert "New splits were tried, but did no better" in page.text
    assert "is only pruned" in page.text


def test_nothing_is_said_where_nothing_was_polished(tmp_path):
    text = written(tmp_path, fp.prune(FOREST, X, Y, max_nodes=30))
    assert "new split" not in Page(text).text
    assert 'class="resplit"' not in text
    assert not data_in(text)["path"]["resplit"]


def test_plots_mark_new_splits(small):
    ax = fp.plot_forest(small, top=3)
    framed = [t for t in ax.texts if t.get_bbox_patch() and t.get_bbox_patch().get_linewidth() > 0]
    assert framed
    told = f"{small.n_new_splits} of {small.n_splits} splits new"
    assert told in " ".join(ax.get_title(loc="left").split())
    plain = fp.plot_forest(small.path[Beside.of(small.path.points, small.index).pruned], top=3)
    assert not [t for t in plain.texts if t.get_bbox_patch() and t.get_bbox_patch().get_lw() > 0]
    assert "new" not in plain.get_title(loc="left")


def test_the_path_has_triangles_for_new_splits(small):
    ax = fp.plot_path(small)
    [triangles] = [line for line in ax.lines if line.get_label() == "with new splits"]
    assert len(triangles.get_xdata()) == (small.path.n_new_splits > 0).sum()
    plain = fp.plot_path(fp.prune_path(FOREST, X, Y, n_alphas=5))
    assert not [line for line in plain.lines if line.get_label() == "with new splits"]
    fp.plot_depths(small, before=FOREST)
    fp.plot_importance(small)
