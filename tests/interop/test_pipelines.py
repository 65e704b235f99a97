"""Pipelines: the forest at their end, and the names that their other steps give its columns."""

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.datasets import make_friedman1
from sklearn.ensemble import GradientBoostingRegressor, RandomForestRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

import forestprune as fp

X, Y = make_friedman1(200, n_features=5, noise=1.0, random_state=0)
FRAME = pd.DataFrame(X, columns=["age", "height", "room size", "d", "e"]).assign(
    town=np.where(X[:, 0] > 0.5, "Rome", "Oslo")
)
Y = Y + 5.0 * (FRAME["town"] == "Rome")


def steps(*others):
    encode = make_column_transformer(
        (OneHotEncoder(sparse_output=False), ["town"]), remainder="passthrough"
    )
    return make_pipeline(encode, *others)


NAMES = (
    *("onehotencoder__town_Oslo", "onehotencoder__town_Rome", "remainder__age"),
    *("remainder__height", "remainder__room size", "remainder__d", "remainder__e"),
)


def boosting(library):
    if library == "sklearn":
        return GradientBoostingRegressor(n_estimators=15, random_state=0)
    module = pytest.importorskip(library)
    if library == "xgboost":
        return module.XGBRegressor(n_estimators=15)
    return module.LGBMRegressor(n_estimators=15, min_child_samples=5, verbose=-1)


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
@pytest.mark.parametrize("library", ["sklearn", "xgboost", "lightgbm"])
def test_the_forest_of_a_pipeline_has_the_names_of_its_steps(library):
    pipeline = steps(StandardScaler(), boosting(library)).fit(FRAME, Y)
    forest = fp.Forest.from_model(pipeline)
    assert forest.column_names == NAMES
    assert forest.feature_names is None  # the model itself knows none
    rows = pipeline[:-1].transform(FRAME)
    np.testing.assert_allclose(forest.predict(rows), pipeline.predict(FRAME), rtol=1e-5)
    assert type(forest.to_native()) is type(pipeline[-1])


def test_names_appear_in_texts_and_pictures():
    pytest.importorskip("matplotlib")
    pipeline = steps(boosting("sklearn")).fit(FRAME, Y)
    small = fp.prune(pipeline, FRAME, Y, max_nodes=30)
    used = {NAMES[column] for column in small.forest.feature if column >= 0}
    assert len(used) > 2
    for name in used:
        assert name in small.to_text()
    labels = {text.get_text() for text in fp.plot_importance(small).get_yticklabels()}
    assert used <= labels
    assert fp.prune_path(pipeline, FRAME, Y, n_alphas=3)[-1].forest.column_names == NAMES


def test_names_come_back_from_files(tmp_path):
    forest = fp.Forest.from_model(steps(boosting("sklearn")).fit(FRAME, Y))
    forest.save(tmp_path / "forest.npz")
    assert fp.Forest.load(tmp_path / "forest.npz") == forest


def test_a_model_that_knows_names_keeps_its_own():
    pipeline = steps(boosting("sklearn")).set_output(transform="pandas").fit(FRAME, Y)
    forest = fp.Forest.from_model(pipeline)
    assert forest.feature_names == NAMES
    assert forest.input.display_names is None


@pytest.mark.parametrize(
    "step",
    [
        FunctionTransformer(),  # which does not say
        FunctionTransformer(feature_names_out=lambda *_: ["too few"]),
        FunctionTransformer(feature_names_out=lambda *_: 1 / 0),
    ],
)
def test_steps_that_cannot_name_columns_do_no_harm(step):
    pipeline = make_pipeline(StandardScaler(), step, boosting("sklearn")).fit(X, Y)
    forest = fp.Forest.from_model(pipeline)
    assert forest.column_names == ("x0", "x1", "x2", "x3", "x4")
    np.testing.assert_allclose(
        forest.predict(pipeline[:-1].transform(X)), pipeline.predict(X), rtol=1e-9
    )


def test_frozen_and_lone_models_are_read():
    model = RandomForestRegressor(3, random_state=0).fit(X, Y)
    forest = fp.Forest.from_model(model)
    assert fp.Forest.from_model(FrozenEstimator(model)) == forest
    assert fp.Forest.from_model(make_pipeline(model)) == forest
    nested = FrozenEstimator(make_pipeline(StandardScaler().fit(X), FrozenEstimator(model)))
    assert fp.Forest.from_model(nested).column_names == forest.column_names


def test_rows_before_the_other_steps_are_refused_with_a_hint():
    pipeline = steps(boosting("sklearn")).fit(FRAME, Y)
    forest = fp.Forest.from_model(pipeline)
    with pytest.raises(ValueError, match=r"5 columns.*pipeline\[:-1\]\.transform\(X\)"):
        forest.predict(X)


def test_pipelines_that_do_not_end_in_trees_are_refused():
    from sklearn.linear_model import LinearRegression

    with pytest.raises(fp.UnsupportedModelError, match="got LinearRegression"):
        fp.Forest.from_model(make_pipeline(StandardScaler(), LinearRegression()).fit(X, Y))


def test_names_must_be_as_many_as_columns():
    forest = fp.Forest.from_model(boosting("sklearn").fit(X, Y))
    from dataclasses import replace

    with pytest.raises(fp.InvalidForestError, match="5 features, but 2 feature names"):
        replace(forest, input=replace(forest.input, display_names=("a", "b")))
    with pytest.raises(TypeError, match="display_names must be None or a tuple of strings"):
        replace(forest.input, display_names=(1, 2, 3, 4, 5))
