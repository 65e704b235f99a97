"""Models with new splits beside those that are only pruned: counted, chosen, scored, saved."""

import copy
import pickle

import numpy as np
import pytest
from resplit import FOREST, HELD_OUT, X_TEST, Y_TEST, X, Y, polished

import forestprune as fp
from forestprune.exceptions import InvalidForestError
from forestprune.select.beside import Beside


@pytest.fixture(scope="module")
def small():
    return polished(**HELD_OUT)


@pytest.fixture(scope="module")
def path():
    return fp.prune_path(FOREST, X, Y, n_alphas=8, polish="split", n_jobs=1, **HELD_OUT)


def test_new_splits_are_counted_and_said(small):
    assert 0 < small.n_new_splits <= small.n_splits == (small.n_nodes - small.n_trees) // 2
    told = f"{small.n_new_splits:,} of {small.n_splits:,}"
    assert f"{told} splits new" in repr(small)
    assert told in small._repr_html_()
    pruned = small.path[Beside.of(small.path.points, small.index).pruned]
    assert pruned.n_new_splits == 0
    assert "new" not in repr(pruned) + pruned._repr_html_()
    assert fp.Forest.from_model(small.to_native()).n_nodes == small.n_nodes


def test_the_table_of_a_path_counts_them(path):
    frame = path.to_frame()
    np.testing.assert_array_equal(frame["new_splits"], [each.n_new_splits for each in path])
    assert (frame["new_splits"] > 0).any()
    assert f"{(frame['new_splits'] > 0).sum()} with new splits" in repr(path)
    plain = fp.prune_path(FOREST, X, Y, n_alphas=3)
    assert "new_splits" not in plain.to_frame()
    assert "new" not in repr(plain)


def test_the_full_model_comes_last_whatever_is_beside_it(path):
    assert (np.diff(path.alphas) <= 0).all()
    assert path.points[-1].forest is None
    assert path[-1].n_nodes == path.source.original.n_nodes
    for place, point in enumerate(path.points):
        beside = Beside.of(path.points, place)
        if point.forest is not None:
            assert place in beside.polished
            assert path.points[beside.pruned].forest is None
        elif beside is not None:
            assert beside.pruned == place


def test_paths_are_scored_and_chosen_from_on_new_rows(path):
    scores = path.score(X_TEST, Y_TEST)
    expected = [each.to_native().score(X_TEST, Y_TEST) for each in path]
    np.testing.assert_allclose(scores, expected, atol=1e-6)
    best = path.select(max_nodes=40, X=X_TEST, y=Y_TEST)
    assert best.validation.score == scores[path.n_nodes <= 40].max()
    by_error = path.select(max_nodes=40, X=X_TEST, y=Y_TEST, scoring="neg_mean_absolute_error")
    assert by_error.n_nodes <= 40


def test_files_and_copies_keep_them(small, path, tmp_path):
    small.save(tmp_path / "small.npz")
    small.save(tmp_path / "whole.npz", with_path=True)
    path.save(tmp_path / "path.npz")
    whole = fp.PrunedForest.load(tmp_path / "whole.npz")
    models = [
        fp.PrunedForest.load(tmp_path / "small.npz"),
        whole,
        pickle.loads(pickle.dumps(small)),
        copy.deepcopy(small),
    ]
    for each in models:
        assert each.forest == small.forest
        assert each.n_new_splits == small.n_new_splits
        np.testing.assert_array_equal(each.predict(X), small.predict(X))
    np.testing.assert_array_equal(whole.path.n_new_splits, small.path.n_new_splits)
    for loaded in (fp.PruningPath.load(tmp_path / "path.npz"), pickle.loads(pickle.dumps(path))):
        np.testing.assert_array_equal(loaded.n_new_splits, path.n_new_splits)
        np.testing.assert_array_equal(loaded.score(X_TEST, Y_TEST), path.score(X_TEST, Y_TEST))
    assert fp.Forest.load(tmp_path / "small.npz") == small.forest
    with pytest.raises(InvalidForestError, match=r"PrunedForest\.load or PruningPath\.load"):
        fp.Forest.load(tmp_path / "path.npz")


def test_new_splits_are_still_new_once_they_are_pruned(small):
    again = fp.prune(small.forest, X, Y, max_nodes=9)
    assert again.n_new_splits == again.n_splits > 0
    np.testing.assert_array_equal(
        again.path.n_new_splits, [each.n_new_splits for each in again.path]
    )
