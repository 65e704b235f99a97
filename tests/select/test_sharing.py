"""Close thresholds become one: within bins, in order, no worse than is allowed."""

import numpy as np
import pytest
from deployed import GAPS, LIBRARIES, THREE, X, Y, models_of
from hypothesis import given
from hypothesis import strategies as st
from sklearn.ensemble import GradientBoostingRegressor, RandomForestRegressor
from strategies import forests, rows

import forestprune as fp
from forestprune.forest.symmetric import is_symmetric
from forestprune.select.sharing import _borders, share_thresholds, with_one_threshold_a_bin


@given(forests(categorical=True, min_trees=1), rows(), st.sampled_from([2, 4, 16]))
def test_thresholds_move_within_their_bin_and_keep_their_order(drawn, given_rows, n_bins):
    _, forest = drawn
    matrix = forest.input.matrix(given_rows)
    shared = with_one_threshold_a_bin(forest, matrix, n_bins)
    by_set = forest.category_set >= 0 if forest.category_set.size else np.zeros(1, bool)
    numeric = (forest.left >= 0) & ~by_set
    for column in range(3):
        nodes = np.flatnonzero(numeric & (forest.feature == column))
        before, after = forest.threshold[nodes], shared.threshold[nodes]
        assert set(after) <= set(before)
        borders = _borders(matrix[:, column], n_bins)
        assert len(set(after)) <= borders.size + 1
        for one, other in zip(before, after, strict=True):
            assert not ((borders > min(one, other)) & (borders <= max(one, other))).any()
        order = np.argsort(before, kind="stable")
        assert (np.diff(after[order]) >= 0.0).all()
    assert (shared.threshold == forest.threshold)[~numeric].all()


@pytest.mark.sampled(2)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("library", LIBRARIES)
def test_native_models_have_the_thresholds_too(library):
    if library != "sklearn":
        pytest.importorskip(library)
    fewer = 0
    for model, fitted_to in models_of(library):
        whole = fp.prune(model, fitted_to, alpha=1e-9)
        small = whole.share_thresholds(fitted_to, tolerance=0.5)
        fewer += small is not whole
        native = small.to_native()
        if small.forest.origin.classes:
            expected, found = small.predict_proba(fitted_to), native.predict_proba(fitted_to)
        else:
            expected, found = small.predict(fitted_to), native.predict(fitted_to)
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
        if is_symmetric(whole.forest):
            assert is_symmetric(small.forest)
    # Symmetric trees have few thresholds to begin with.
    assert fewer >= (1 if library == "catboost" else 3)


@pytest.mark.parametrize("tolerance", [0.0, 0.02, 0.2])
def test_no_more_is_lost_than_is_allowed(tolerance):
    model = GradientBoostingRegressor(n_estimators=60, max_depth=4, random_state=0).fit(X, Y)
    small = fp.prune(model, X, Y, max_nodes=300, format="c-int16")
    shared = small.share_thresholds(X, Y, tolerance=tolerance)
    told = shared.report["shared_thresholds"]
    assert told["thresholds"] == [small.forest.n_thresholds, shared.forest.n_thresholds]
    assert told["bytes"] == [small.n_bytes, shared.n_bytes]
    assert shared.n_bytes < small.n_bytes

    def r_squared(each):
        return 1.0 - np.mean((each.predict(X) - Y) ** 2) / np.var(Y)

    assert told["score"] == pytest.approx([r_squared(small), r_squared(shared)])
    assert r_squared(shared) >= r_squared(small) - tolerance - 1e-8
    if tolerance:
        stricter = small.share_thresholds(X, Y, tolerance=tolerance / 10)
        assert shared.n_bytes <= stricter.n_bytes
    np.testing.assert_allclose(shared.to_native().predict(X), shared.predict(X))


@pytest.mark.parametrize("validated", [False, True])
def test_prune_does_it_at_once(validated):
    model = GradientBoostingRegressor(n_estimators=60, max_depth=4, random_state=0).fit(X, Y)
    rows = (X[::2], Y[::2]) if validated else (X, Y)
    how = {"max_nodes": 300, "format": "c"}
    if validated:
        how |= {"X_val": rows[0], "y_val": rows[1], "sample_weight_val": np.arange(len(rows[0]))}
    weight = how.get("sample_weight_val")
    plain = fp.prune(model, X, Y, certify=True, **how)
    shared = fp.prune(model, X, Y, certify=True, share_thresholds=0.02, **how)
    assert plain.bound is not None
    assert shared.bound is None
    expected = plain.share_thresholds(*rows, tolerance=0.02, sample_weight=weight)
    assert shared.report["shared_thresholds"] == expected.report["shared_thresholds"]
    assert shared.n_bytes < plain.n_bytes


def test_thresholds_are_not_shared_by_rows_that_come_by_the_block():
    model = GradientBoostingRegressor(n_estimators=5, random_state=0).fit(X, Y)
    with pytest.raises(ValueError, match="share_thresholds is checked by rows that are all there"):
        fp.prune(model, [(X, Y)], max_nodes=20, share_thresholds=0.0)
    with pytest.raises(ValueError, match="share_thresholds must be"):
        fp.prune(model, X, Y, max_nodes=20, share_thresholds=-0.1)


def test_constraints_are_kept():
    model = RandomForestRegressor(20, min_samples_leaf=3, monotonic_cst=[1, 0, -1, 0, 0])
    small = fp.prune(model.fit(X, Y), X, Y, max_nodes=300)
    shared = small.share_thresholds(X, Y, tolerance=0.5)
    assert shared.forest.n_thresholds < small.forest.n_thresholds
    for column, sign in ((0, 1), (2, -1)):
        grid = np.repeat(X[:40], 30, axis=0)
        grid[:, column] = np.tile(np.linspace(-3, 3, 30), 40)
        steps = np.diff(shared.predict(grid).reshape(40, 30), axis=1)
        assert (sign * steps >= -1e-12).all()


def test_what_cannot_be_saved_is_left_and_classes_are_taken():
    from sklearn.ensemble import RandomForestClassifier

    model = RandomForestRegressor(2, max_depth=2, random_state=0).fit(X, Y)
    small = fp.prune(model, X, Y, max_nodes=8)
    assert small.share_thresholds(X, Y) is small
    model = RandomForestClassifier(20, min_samples_leaf=3, random_state=0).fit(GAPS, THREE)
    small = fp.prune(model, GAPS, THREE, max_nodes=400)
    shared = small.share_thresholds(GAPS, THREE, tolerance=0.05)
    assert shared.forest.n_thresholds < small.forest.n_thresholds
    with pytest.raises(ValueError, match="tolerance must be"):
        share_thresholds(small, X, None, tolerance=-1.0, sample_weight=None, n_jobs=1)
