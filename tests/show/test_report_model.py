"""A report on a pruned model by itself, which knows the path that it came from."""

import pandas as pd
import pytest
from report_pages import Page
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestRegressor
from sklearn.metrics import r2_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import forestprune as fp


def test_a_report_on_a_model_is_that_of_its_path(tmp_path, data):
    X, y, X_val, y_val, X_test, y_test = data
    model = RandomForestRegressor(8, max_depth=5, random_state=0).fit(X, y)
    small = fp.prune(model, X, y, max_nodes=60, X_val=X_val, y_val=y_val, n_alphas=8)
    rows = {"X": X_test, "y": y_test}
    one = fp.write_report(tmp_path / "one.html", small, **rows).read_text("utf-8")
    two = fp.write_report(tmp_path / "two.html", small.path, small, **rows).read_text("utf-8")
    shown = Page(one).text
    scores = [r2_score(y_test, each.predict(X_test)) for each in (model, small)]
    assert f"R² {scores[0]:.4f} → {scores[1]:.4f}" in shown
    assert len(Page(two).text) == pytest.approx(len(shown), rel=0.01)  # but for the times
    # After a file it works if the path was saved too.
    small.save(tmp_path / "small.npz", with_path=True)
    again = fp.PrunedForest.load(tmp_path / "small.npz")
    three = fp.write_report(tmp_path / "three.html", again, **rows).read_text("utf-8")
    assert f"R² {scores[0]:.4f} → {scores[1]:.4f}" in Page(three).text
    small.save(tmp_path / "small.npz")
    again = fp.PrunedForest.load(tmp_path / "small.npz")
    with pytest.raises(ValueError, match="with_path=True"):
        fp.write_report(tmp_path / "four.html", again, **rows)
    with pytest.raises(TypeError, match="say which to report on"):
        fp.write_report(tmp_path / "four.html", small.path)
    with pytest.raises(TypeError, match="give the path first"):
        fp.write_report(tmp_path / "four.html", small, small)
    assert not (tmp_path / "four.html").exists()


def test_a_report_on_a_model_of_one_alpha(tmp_path, data):
    X, y, _, _, X_test, y_test = data
    model = RandomForestRegressor(5, max_depth=4, random_state=0).fit(X, y)
    small = fp.prune(model, X, y, alpha=0.5)
    file = fp.write_report(tmp_path / "one.html", small, X=X_test, y=y_test)
    scores = [r2_score(y_test, each.predict(X_test)) for each in (model, small)]
    assert f"R² {scores[0]:.4f} → {scores[1]:.4f}" in Page(file.read_text("utf-8")).text


def test_a_report_calls_features_by_the_names_of_a_pipeline(tmp_path, data):
    X, y, X_val, y_val, *_ = data
    frame, frame_val = (pd.DataFrame(rows, columns=list("abcd")) for rows in (X, X_val))
    scale = make_column_transformer((StandardScaler(), ["a", "b"]), remainder="passthrough")
    pipeline = make_pipeline(scale, RandomForestRegressor(5, max_depth=4, random_state=0))
    pipeline.fit(frame, y)
    small = fp.prune(pipeline, frame, y, max_nodes=30, X_val=frame_val, y_val=y_val, n_alphas=8)
    shown = Page(fp.write_report(tmp_path / "r.html", small, X=frame_val).read_text("utf-8")).text
    assert "standardscaler__a" in shown
    assert "remainder__c" in shown
