"""Certificates as users meet them: asked for, shown, saved, and told why there is none."""

import pickle

import joblib
import numpy as np
import pytest
from effort import INTERPRETED
from sklearn.datasets import make_friedman1
from sklearn.ensemble import (
    GradientBoostingRegressor,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)

import forestprune as fp
from forestprune.exceptions import InvalidForestError, OptionError
from forestprune.select import request
from forestprune.solve import exact
from forestprune.solve.dual.certificate import OPTIMAL, Certificate, gap_in_words
from forestprune.system.files import read_archive, write_archive

pytestmark = pytest.mark.skipif(INTERPRETED, reason="whole prunings, left to the compiled run")

X, Y = make_friedman1(400, noise=1.0, random_state=0)
FOREST = RandomForestRegressor(15, min_samples_leaf=5, random_state=0).fit(X, Y)
SMALL = RandomForestRegressor(5, max_depth=3, random_state=0).fit(X, Y)
BOOSTED = GradientBoostingRegressor(n_estimators=8, max_depth=2, random_state=0).fit(X, Y)
WAYS = [{"refit": False}, {"rule": "layer"}, {}]


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_a_certificate_says_how_far_from_the_best_a_model_is(way):
    before = joblib.hash(FOREST)
    plain = fp.prune(FOREST, X, Y, max_nodes=60, **way)
    assert plain.certificate is plain.bound is plain.gap is plain.status is None
    small = fp.prune(FOREST, X, Y, max_nodes=60, certify=True, **way)
    assert joblib.hash(FOREST) == before
    np.testing.assert_array_equal(small.predict(X), plain.predict(X))
    assert 0.0 < small.bound <= small.objective
    assert small.gap == pytest.approx((small.objective - small.bound) / small.objective)
    assert small.gap <= (0.15 if not way else 0.002)
    assert small.status == ("optimal" if small.gap <= OPTIMAL else "bounded")
    assert small.certificate.seconds > 0.0
    assert small.certificate.reason is None
    assert f"gap {gap_in_words(small.gap)}" in repr(small)
    assert f"gap {gap_in_words(small.gap)}" in small._repr_html_()
    assert "gap" not in repr(plain)
    # Others of the path were not asked for.
    assert [other.status for other in small.path].count(None) == len(small.path) - 1


def test_certificates_are_kept_in_files_and_pickles(tmp_path):
    small = fp.prune(FOREST, X, Y, max_nodes=60, certify=True)
    for with_path in (False, True):
        small.save(tmp_path / "small.npz", with_path=with_path)
        again = fp.PrunedForest.load(tmp_path / "small.npz")
        assert again.certificate == small.certificate
    assert pickle.loads(pickle.dumps(small)).certificate == small.certificate
    small.save(tmp_path / "small.npz")
    arrays, metadata = read_archive(tmp_path / "small.npz")
    for name, wrong in (("gap", None), ("bound", "low"), ("status", "fine"), ("seconds", True)):
        damaged = metadata["report"]["certificate"] | {name: wrong}
        report = {"report": metadata["report"] | {"certificate": damaged}}
        write_archive(tmp_path / "damaged.npz", arrays, metadata | report)
        with pytest.raises(InvalidForestError, match="certificate"):
            fp.PrunedForest.load(tmp_path / "damaged.npz")


def test_all_points_of_a_path_are_certified():
    path = fp.prune_path(FOREST, X, Y, n_alphas=6, refit=False, certify=True)
    frame = path.to_frame()
    np.testing.assert_array_equal(frame["gap"], [small.gap for small in path])
    assert (frame["bound"] <= frame["objective"]).all()
    assert (frame["gap"][:-1] <= 0.01).all()  # the last is the full model, at alpha 0
    assert "gap" not in fp.prune_path(FOREST, X, Y, n_alphas=3).to_frame()


def test_a_shrinkage_that_was_chosen_is_the_one_that_is_bounded():
    rows, others = (X[:300], Y[:300]), {"X_val": X[300:], "y_val": Y[300:]}
    several = {"shrinkage": [1000.0, 30.0], "max_nodes": 60, "certify": True}
    small = fp.prune(FOREST, *rows, **several, **others)
    chosen = small.report["shrinkage"]
    assert chosen == 30.0
    alone = fp.prune(FOREST, *rows, alpha=small.alpha, shrinkage=chosen, certify=True)
    assert small.bound == pytest.approx(alone.bound, rel=0.02)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"polish": "ridge"}, 'polish="ridge" has changed it'),
        ({"polish": "leaf"}, 'polish="leaf" has changed it'),
        ({"rule": "layer", "joint": "ridge"}, "weights of trees were chosen"),
        ({"shrinkage": 0.0}, "without shrinkage"),
    ],
    ids=str,
)
def test_where_there_is_no_bound_the_reason_is_told(options, reason):
    small = fp.prune(FOREST, X, Y, alpha=0.5, certify=True, **options)
    assert small.bound is None
    assert small.gap is None
    assert small.status == "unknown"
    assert reason in small.certificate.reason
    assert reason in repr(small)


def test_new_splits_have_no_bound():
    small = fp.prune(BOOSTED, X, Y, max_nodes=9, shrinkage=30, polish="split", certify=True)
    assert small.n_new_splits
    assert "splits are new" in small.certificate.reason


@pytest.mark.long
def test_what_is_only_pruned_beside_new_splits_has_a_bound():
    path = fp.prune_path(FOREST, X, Y, n_alphas=3, polish="split", certify=True)
    for small in path:
        assert (small.status == "unknown") == (small.n_new_splits > 0)


def test_models_chosen_by_a_sample_have_no_bound(monkeypatch):
    monkeypatch.setattr(request, "LARGE_ROWS", 300)
    batches = [(X[i : i + 100], Y[i : i + 100]) for i in range(0, 400, 100)]
    small = fp.prune(FOREST, batches, alpha=0.5, certify=True)
    assert small.certificate is not None
    in_memory = fp.prune(FOREST, X, Y, alpha=0.5, certify=True)
    assert "sample" in in_memory.certificate.reason


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_exact_solutions_are_proved_and_no_worse(way):
    options = {"alpha": 0.3, **way}
    found = fp.prune(BOOSTED, X, Y, **options)
    best = fp.prune(BOOSTED, X, Y, solver="exact", **options)
    assert best.status == "optimal"
    assert best.gap <= OPTIMAL
    assert best.objective <= found.objective + 1e-12
    assert best.bound <= found.objective
    native = best.to_native()
    np.testing.assert_allclose(native.predict(X), best.predict(X))
    loss = np.mean((best.predict(X) - Y) ** 2) / np.var(Y)
    assert best.loss == pytest.approx(loss)
    assert "optimal, proved in" in repr(best)


def test_an_exact_solver_that_runs_out_of_time_says_what_is_proved():
    found = fp.prune(SMALL, X, Y, alpha=0.3)
    best = fp.prune(SMALL, X, Y, alpha=0.3, solver="exact", time_limit=0.001)
    assert best.status == "time limit"
    assert 0.0 < best.gap < 1.0
    assert best.objective <= found.objective + 1e-12
    assert "stopped by the time limit" in repr(best)


@pytest.mark.parametrize(
    ("model", "options", "match"),
    [
        (FOREST, {}, "is for small models, of up to 500 splits; this one has"),
        (FOREST, {"rule": "layer", "max_depth": 9}, None),
        (SMALL, {"shrinkage": 0.0}, "cannot prove anything here: without shrinkage"),
        (SMALL, {"rule": "layer", "joint": "ridge"}, "weights of trees were chosen"),
        (SMALL, {"polish": "leaf"}, "finds the best pruning, and what polish='leaf'"),
        (SMALL, {"max_nodes": 9}, "finds the best model for one alpha: give that instead of"),
    ],
    ids=str,
)
def test_what_cannot_be_solved_exactly_is_refused(model, options, match):
    asked = {"solver": "exact", "time_limit": 0.001} | options
    asked |= {} if "max_nodes" in options else {"alpha": 0.3}
    if match is None:  # which layers make small enough
        assert fp.prune(model, X, Y, **asked).status in ("optimal", "time limit")
        return
    with pytest.raises(OptionError, match=match):
        fp.prune(model, X, Y, **asked)


def test_other_losses_and_promises_are_not_for_the_exact_solver():
    counts = np.rint(np.maximum(Y, 0.0))
    poisson = HistGradientBoostingRegressor(loss="poisson", max_iter=3, max_depth=2)
    poisson.fit(X, counts)
    with pytest.raises(OptionError, match="is for squared error"):
        fp.prune(poisson, X, counts, alpha=0.3, solver="exact")
    assert fp.prune(poisson, X, counts, alpha=0.3, certify=True).gap is not None
    classes = RandomForestClassifier(3, max_depth=2, random_state=0).fit(X, Y > 14)
    with pytest.raises(OptionError, match="what the model promises"):
        fp.prune(classes, X, Y > 14, alpha=0.3, solver="exact")
    best = fp.prune(classes, X, Y > 14, alpha=0.3, solver="exact", refit=False)
    assert best.status == "optimal"


def test_paths_and_folds_are_not_for_the_exact_solver():
    with pytest.raises(OptionError, match="for one alpha"):
        fp.prune_path(SMALL, X, Y, solver="exact")
    with pytest.raises(OptionError, match="for one alpha"):
        fp.ForestPruneRegressorCV(SMALL, solver="exact").fit(X, Y)


def test_estimators_hand_certificates_on():
    estimator = fp.ForestPruneRegressor(SMALL, max_nodes=20, certify=True).fit(X, Y)
    assert estimator.pruned_.gap is not None
    folded = fp.ForestPruneRegressorCV(SMALL, cv=2, n_alphas=5, certify=True).fit(X, Y)
    assert folded.pruned_.gap is not None
    exactly = fp.ForestPruneRegressor(BOOSTED, alpha=0.3, refit=False, solver="exact").fit(X, Y)
    assert exactly.pruned_.status == "optimal"


def test_certificates_say_no_more_than_they_know():
    assert Certificate.of(0.5, 0.6, 1.0).gap == 0.0
    assert Certificate.of(0.5, -0.1, 1.0).bound == 0.0
    assert Certificate.of(0.0, -1.0, 1.0).status == "optimal"
    assert Certificate.of(0.5, 0.4, 1.0, timed_out=True).status == "time limit"
    assert gap_in_words(0.01234) == "1.3 %"
    assert gap_in_words(0.0) == "0 %"
    assert "at most 20 %: proved in 1.0 s" in Certificate.of(0.5, 0.4, 1.0).in_words()
    assert "best pruning at its alpha" in Certificate.of(0.5, 0.5, 1.0).in_words()
    assert "not known: for some reason." in Certificate.none("for some reason").in_words()


def test_what_is_too_large_is_told_in_layers_too(monkeypatch):
    monkeypatch.setattr(exact, "MOST_CHOICES", 5)
    with pytest.raises(OptionError, match="of up to 5 layers; this one has 15"):
        fp.prune(SMALL, X, Y, alpha=0.3, rule="layer", solver="exact")
