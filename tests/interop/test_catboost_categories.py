"""CatBoost's categories, as far as splits ask for one of them: in, out, and pruned."""

import warnings

import naive
import numpy as np
import pandas as pd
import pytest

import forestprune as fp
from forestprune.exceptions import TableError
from forestprune.forest.symmetric import is_symmetric
from forestprune.tables.features import Features

catboost = pytest.importorskip("catboost")
pl = pytest.importorskip("polars")

QUIET = {"verbose": 0, "allow_writing_files": False, "thread_count": 1, "one_hot_max_size": 50}
WORDS = ["red", "green", "blue", "x y", "", "ÄÖ", "nan", "a" * 70, "1"]


def table(seed, rows=200):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "word": rng.choice(WORDS[:-2], rows),
            "a": np.where(rng.random(rows) < 0.1, np.nan, rng.normal(size=rows)),
            "number": rng.integers(-1, 5, rows),
            "b": rng.normal(size=rows),
        }
    )


def target(X):
    return X.a.fillna(3.0) * (X.word == "red") + 2.0 * (X.number == 2) + X.word.str.len() + X.b


def strange(seed):
    """Return rows with categories that the model has not seen, and some as other types."""
    X = table(seed).astype({"word": object, "number": object})
    X.loc[:20, "word"] = "purple"
    X.loc[21:40, "word"] = WORDS[-2]
    X.loc[41:50, "number"] = 77
    X.loc[51:70, "number"] = "2"
    return X


def fitted(policy="SymmetricTree", seed=0, **params):
    X = table(seed)
    model = catboost.CatBoostRegressor(
        **{"iterations": 25, "depth": 4} | QUIET | params, grow_policy=policy, random_seed=seed
    )
    return model.fit(X, target(X), cat_features=["word", "number"])


@pytest.mark.parametrize("policy", ["SymmetricTree", "Depthwise", "Lossguide"])
@pytest.mark.parametrize("seed", range(3))
def test_predictions_are_those_of_catboost(policy, seed, tmp_path):
    model = fitted(policy, seed)
    forest = fp.Forest.from_model(model)
    assert forest.category_set.size
    assert is_symmetric(forest) == (policy == "SymmetricTree")
    forest.save(tmp_path / "forest.npz")
    for form in ("cbm", "json"):
        model.save_model(str(tmp_path / f"model.{form}"), format=form)
    others = [fp.Forest.from_file(tmp_path / name) for name in ("model.cbm", "model.json")]
    for X in (table(seed + 10), strange(seed)):
        expected = model.predict(X)
        for same in (forest, fp.Forest.load(tmp_path / "forest.npz"), *others):
            np.testing.assert_allclose(same.predict(X), expected, rtol=1e-12)
        np.testing.assert_allclose(forest.to_native().predict(X), expected, rtol=1e-12)


def test_the_twin_goes_the_same_way():
    forest, X = fp.Forest.from_model(fitted()), strange(1)
    matrix = forest.input.matrix(X)
    said = naive.predict(
        naive.from_forest(forest), matrix, forest.scale, forest.base, forest.input.dtype
    )
    np.testing.assert_allclose(forest.predict(X), said[:, 0], rtol=1e-9)


@pytest.mark.parametrize("how", [{}, {"rule": "subtree"}, {"polish": "leaf"}, {"rule": "layer"}])
def test_what_is_pruned_goes_back(how):
    model, X = fitted(), table(0)
    small = fp.prune(model, X, target(X), max_nodes=80, n_alphas=15, **how)
    native, rows = small.to_native(), strange(3)
    assert 0 < small.n_nodes <= 80
    assert small.forest.category_set.size
    np.testing.assert_allclose(native.predict(rows), small.predict(rows), rtol=1e-12)
    if how.get("rule") != "subtree":
        more = catboost.CatBoostRegressor(iterations=3, depth=4, **QUIET)
        more.fit(X, target(X), cat_features=["word", "number"], init_model=native)
        begun = more.predict(rows, ntree_end=native.tree_count_)
        np.testing.assert_allclose(begun, native.predict(rows), rtol=1e-12)
    assert "any other" in small.to_text()


def test_tables_of_all_kinds():
    model, X = fitted(), table(5)
    forest = fp.Forest.from_model(model)
    expected = model.predict(X)
    marked = X.astype({"word": "category", "number": "category"})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # lists and arrays have no names
        rows = X.astype(object).to_numpy()
        for same in (X, marked, pl.DataFrame(X), rows, rows.tolist()):
            np.testing.assert_allclose(forest.predict(same), expected, rtol=1e-12)


def test_categories_that_are_never_asked_for():
    X = table(0).assign(word="always the same")
    model = catboost.CatBoostRegressor(iterations=5, depth=3, **QUIET)
    model.fit(X, X.b, cat_features=["word", "number"])
    forest = fp.Forest.from_model(model)
    np.testing.assert_allclose(forest.predict(strange(1)), model.predict(strange(1)), rtol=1e-12)
    native = forest.truncate(1).to_native()
    np.testing.assert_allclose(native.predict(X), forest.truncate(1).predict(X), rtol=1e-12)


def test_what_catboost_refuses_is_refused():
    forest = fp.Forest.from_model(fitted())
    for entry in (1.5, np.nan, None):
        X = table(0).astype({"word": object})
        X.loc[3, "word"] = entry
        with pytest.raises((catboost.CatBoostError, TypeError)):
            fitted().predict(X)
        with pytest.raises(ValueError, match="Column 'word' must hold categories"):
            forest.predict(X)


def test_statistics_of_categories_are_refused():
    with pytest.raises(fp.UnsupportedModelError, match=r"features: 'word'.*TargetEncoder"):
        fp.Forest.from_model(fitted(one_hot_max_size=2))


def test_other_sets_of_categories_cannot_be_written():
    from dataclasses import replace

    forest = fp.Forest.from_model(fitted())
    forged = replace(forest, set_words=np.zeros_like(forest.set_words))
    with pytest.raises(fp.UnsupportedModelError, match="must ask for one category"):
        forged.to_native()


def test_files_of_rows_are_refused_so_far():
    from forestprune.interop.source import Source

    with pytest.raises(TableError, match="CatBoost's categories"):
        Features.of(Source.of(fitted()))


@pytest.mark.parametrize("hashed", [[[1]], [[1.5], None, None, None], "word", [1, 2, 3, 4]])
def test_damaged_hashes_are_refused(hashed):
    with pytest.raises(TypeError, match="hashed must be"):
        fp.InputSpec(4, hashed=hashed)


@pytest.mark.parametrize("how", [{}, {"rule": "subtree"}, {"polish": "leaf"}])
def test_constraints_are_about_columns_of_numbers_which_catboost_counts_alone(how):
    X = table(0, 400)[["word", "number", "b", "a"]]
    # Falls with what it must rise with.
    model = catboost.CatBoostRegressor(
        iterations=25, depth=4, **QUIET, monotone_constraints={"a": 1}
    ).fit(X, target(X), cat_features=["word", "number"])
    assert fp.Forest.from_model(model).monotone.tolist() == [0, 0, 0, 1]
    small = fp.prune(model, X, -target(X), max_nodes=150, shrinkage=0.0, n_alphas=15, **how)
    for predict in (small.predict, small.to_native().predict):
        along = X.iloc[np.repeat(np.arange(60), 50)].assign(a=np.tile(np.linspace(-3, 3, 50), 60))
        assert (np.diff(predict(along).reshape(60, 50), axis=1) >= 0.0).all()


def test_no_rows_are_refused_as_elsewhere():
    with pytest.raises(ValueError, match="0 sample"):
        fp.Forest.from_model(fitted()).predict(table(0)[:0])
