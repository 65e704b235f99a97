"""`forestprune prune`: what comes out is what `fp.prune` returns."""

import json
import weakref

import joblib
import numpy as np
import pytest
from shops import IDS, MODELS, NAMES, RF, fails, need, split, succeeds
from sklearn.compose import make_column_transformer
from sklearn.ensemble import (
    HistGradientBoostingRegressor,
    RandomForestRegressor,
)
from sklearn.metrics import r2_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from threadpoolctl import threadpool_limits

import forestprune as fp
from forestprune.forest import registry
from forestprune.select import choose as choosing
from forestprune.select import request
from forestprune.tables.rows import Rows

pytest.importorskip("pandas")


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("library", "ending"), MODELS, ids=IDS)
@pytest.mark.filterwarnings("ignore")
def test_the_small_file_predicts_what_prune_would(library, ending, shop, friedman, tmp_path):
    need(library, ending)
    X, y = friedman
    model, out = shop / f"{library}.{ending}", tmp_path / f"small.{ending}"
    result = succeeds(
        *("prune", model, shop / "rows.csv", "--target", "y", "--max-nodes", 60),
        *("--out", out, "--trust", "--json"),
    )
    X_fit, X_val, y_fit, y_val = split(X, y)
    full = registry.load_model(model, trust=True)
    same = fp.prune(full, X_fit, y_fit, max_nodes=60, X_val=X_val, y_val=y_val, random_state=0)
    written = registry.load_model(out, trust=True)
    native = same.forest if ending == "npz" else same.to_native()
    assert type(written) is type(native)
    assert list(tmp_path.iterdir()) == [out]
    small = fp.Forest.from_file(out, trust=True)
    assert small.n_nodes == fp.Forest.from_model(same.to_native()).n_nodes
    np.testing.assert_allclose(small.predict(X), same.predict(X), rtol=1e-5)
    if ending != "npz":
        rows = X
        if type(written).__name__ == "Booster" and library == "xgboost":
            rows = __import__("xgboost").DMatrix(X)
        np.testing.assert_allclose(written.predict(rows), same.predict(X), rtol=1e-5)

    document = json.loads(result.stdout)
    assert document["small"]["nodes"] == same.n_nodes <= 60
    assert document["full"]["nodes"] == fp.Forest.from_file(model, trust=True).n_nodes
    assert document["small"]["bytes"] == out.stat().st_size
    assert document["full"]["bytes"] == model.stat().st_size
    assert document["rows"] == 120
    assert document["rows_held_out"] == 40
    assert document["small"]["r_squared"] == pytest.approx(r2_score(y_val, same.predict(X_val)))
    assert document["full"]["r_squared"] == pytest.approx(
        r2_score(y_val, fp.Forest.from_file(model, trust=True).predict(X_val))
    )
    assert "0.25 of the rows" in document["held_out_from"]
    assert "pruning with 120 rows; choosing by 40 others: 0.25 of the rows" in result.stderr


def test_the_table_for_people(shop, tmp_path):
    result = succeeds(
        *("prune", shop / RF, shop / "rows.csv", "--target", "y", "--max-nodes", 40),
        *("--out", tmp_path / "small.npz"),
    )
    small = fp.Forest.load(tmp_path / "small.npz")
    full = fp.Forest.load(shop / RF)
    (nodes,) = [line for line in result.stdout.splitlines() if line.startswith("nodes")]
    ratio = f"{full.n_nodes / small.n_nodes:,.1f}"
    assert nodes.split() == ["nodes", f"{full.n_nodes:,}", f"{small.n_nodes:,}", ratio]
    assert "R squared, 40 rows held out" in result.stdout
    assert "small.npz" in result.stdout.replace("\n", "")


@pytest.mark.parametrize(
    ("options", "arguments"),
    [
        (["--max-trees", 3], {"max_trees": 3}),
        (["--max-depth", 2], {"max_depth": 2}),
        (["--max-depth", 2, "--max-nodes", 30], {"max_depth": 2, "max_nodes": 30}),
        (["--tolerance", 0.2], {"tolerance": 0.2}),
        (["--one-standard-error"], {"one_standard_error": True}),
        ([], {}),
        (["--max-nodes", 40, "--weight", "w"], {"max_nodes": 40}),
        (["--max-nodes", 40, "--shrinkage", 5], {"max_nodes": 40, "shrinkage": 5.0}),
    ],
)
def test_budgets(options, arguments, shop, friedman, tmp_path):
    X, y = friedman
    out = tmp_path / "small.npz"
    succeeds("prune", shop / RF, shop / "rows.csv", "--target", "y", "--out", out, *options)
    X_fit, X_val, y_fit, y_val, w_fit, w_val = split(X, y, np.linspace(0.5, 2.0, len(y)))
    if "--weight" in options:
        arguments = arguments | {"sample_weight": w_fit, "sample_weight_val": w_val}
    same = fp.prune(shop / RF, X_fit, y_fit, X_val=X_val, y_val=y_val, **arguments)
    small = fp.Forest.load(out)
    # Rows that are held out were trained on here: unless it must be small, the full model is best.
    limited = not set(arguments) <= {"one_standard_error"}
    assert (0 < small.n_nodes < fp.Forest.load(shop / RF).n_nodes) == limited
    np.testing.assert_array_equal(small.predict(X), same.predict(X))


def test_with_alpha_all_rows_prune_unless_asked(shop, friedman, tmp_path):
    X, y = friedman
    out, command = tmp_path / "small.npz", ["prune", shop / RF, shop / "rows.csv", "--target", "y"]
    result = succeeds(*command, "--alpha", 0.5, "-o", out)
    same = fp.prune(shop / RF, X, y, alpha=0.5)
    np.testing.assert_array_equal(fp.Forest.load(out).predict(X), same.predict(X))
    assert "160 rows; none are held out" in result.stderr
    # Rows held out have nothing to choose, but they score.
    result = succeeds(
        *(*command, "--alpha", 0.5, "--holdout", 0.5, "--seed", 3, "-o", out, "--force", "--json")
    )
    X_fit, X_val, y_fit, y_val = split(X, y, share=0.5, seed=3)
    same = fp.prune(shop / RF, X_fit, y_fit, alpha=0.5)
    np.testing.assert_array_equal(fp.Forest.load(out).predict(X), same.predict(X))
    score = json.loads(result.stdout)["small"]["r_squared"]
    assert score == pytest.approx(r2_score(y_val, same.predict(X_val)))


def test_nothing_held_out(shop, friedman, tmp_path):
    X, y = friedman
    out = tmp_path / "small.npz"
    result = succeeds(
        *("prune", shop / RF, shop / "rows.csv", "--target", "y", "--holdout", 0),
        *("--max-nodes", 50, "--out", out, "--json"),
    )
    same = fp.prune(shop / RF, X, y, max_nodes=50)
    np.testing.assert_array_equal(fp.Forest.load(out).predict(X), same.predict(X))
    document = json.loads(result.stdout)
    assert document["held_out_from"] is None
    assert document["small"]["r_squared"] is None


def test_a_file_to_choose_by(shop, friedman, tmp_path):
    X, y = friedman
    X_fit, X_val, y_fit, y_val = split(X, y, share=0.4, seed=1)
    for name, rows, target in (("fit", X_fit, y_fit), ("val", X_val, y_val)):
        rows.assign(y=target).to_csv(tmp_path / f"{name}.csv", index=False)
    out = tmp_path / "small.npz"
    result = succeeds(
        *("prune", shop / RF, tmp_path / "fit.csv", "--target", "y", "--max-nodes", 50),
        *("--validation", tmp_path / "val.csv", "--out", out),
    )
    same = fp.prune(shop / RF, X_fit, y_fit, max_nodes=50, X_val=X_val, y_val=y_val)
    np.testing.assert_array_equal(fp.Forest.load(out).predict(X), same.predict(X))
    assert "choosing by 64 others: the rows of" in result.stderr


@pytest.mark.sampled(3)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("library", "ending"), MODELS, ids=IDS)
def test_a_budget_of_bytes_is_kept_by_the_file(library, ending, shop, tmp_path):
    need(library, ending)
    model, out = shop / f"{library}.{ending}", tmp_path / f"small.{ending}"
    least = tmp_path / f"least.{ending}"
    command = ["prune", model, shop / "rows.csv", "--target", "y", "--trust"]
    succeeds(*command, "--alpha", 1e3, "--out", least)
    smallest, full = least.stat().st_size, model.stat().st_size
    budget = (2 * smallest + full) // 3
    succeeds(*command, "--max-bytes", budget, "--n-alphas", 20, "--out", out)
    assert smallest < out.stat().st_size <= budget


def test_every_option_arrives(shop, tmp_path, monkeypatch):
    seen = []
    original = request.choose

    def listen(model, X, y, sample_weight, wanted, held_out, options):
        size = vars(wanted.budget) | vars(wanted)
        asked = {k: v for k, v in size.items() if k != "budget" and v not in (None, False)}
        seen.append(asked | vars(options))
        return original(model, X, y, sample_weight, wanted, held_out, options)

    monkeypatch.setattr(request, "choose", listen)
    command = ["prune", shop / RF, shop / "rows.csv", "--target", "y", "-o", tmp_path / "s.npz"]
    succeeds(
        *(*command, "--rule", "layer", "--weighting", "depth", "--joint", "ridge"),
        *("--alpha2", 0.5, "--polish", "subset", "--local-search", "random", "--max-iter", 7),
        *("--solver", "heuristic", "--time-limit", 3, "--n-alphas", 5, "--seed", 4, "--jobs", 1),
        *("--max-trees", 2, "--max-nodes", 30, "--no-refit"),
    )
    common = {"alpha2": 0.01, "joint": None, "polish": None, "solver": "heuristic"}
    common |= {"scoring": None, "certify": False}
    assert seen.pop() == {
        "rule": "layer",
        "weighting": "depth",
        "joint": "ridge",
        "alpha2": 0.5,
        "polish": "subset",
        "local_search": "random",
        "max_iter": 7,
        "solver": "heuristic",
        "time_limit": 3.0,
        "n_alphas": 5,
        "random_state": 4,
        "n_jobs": 1,
        "max_trees": 2,
        "max_nodes": 30,
        "refit": False,
        "shrinkage": None,
        "scoring": None,
        "certify": False,
    }
    succeeds(*command, "--force", "--scoring", "neg_mean_absolute_error", "--n-alphas", 3)
    assert seen.pop()["scoring"] == "neg_mean_absolute_error"
    succeeds(*command, "--force", "--alpha2", 0, "--polish", "ridge", "--n-alphas", 3)
    assert seen.pop()["alpha2"] == 0.0
    succeeds(
        *(*command, "--force", "--refit", "--shrinkage", 2, "--shrinkage", 30, "--max-depth", 2),
        *("--local-search", "off", "--n-alphas", 4),
    )
    assert seen.pop() == common | {
        "rule": None,
        "weighting": "node",
        "refit": True,
        "shrinkage": [2.0, 30.0],
        "max_depth": 2,
        "local_search": False,
        "max_iter": 1000,
        "time_limit": 60.0,
        "n_alphas": 4,
        "random_state": 0,
        "n_jobs": None,
    }
    succeeds(*command, "--force", "--alpha", 1)
    assert seen.pop()["local_search"] is True
    # These are all that there are.
    known = set(fp.Options.__dataclass_fields__)
    assert known == set(common) | {
        *("rule", "weighting", "refit", "shrinkage", "local_search", "max_iter", "time_limit"),
        *("random_state", "n_jobs"),
    }


@pytest.fixture(scope="module")
def poisson(friedman, tmp_path_factory):
    path = tmp_path_factory.mktemp("poisson") / "m.joblib"
    X, y = friedman
    with threadpool_limits(1, user_api="openmp"):
        model = HistGradientBoostingRegressor(loss="poisson", max_iter=10)
        joblib.dump(model.fit(X, y), path)
    return path


def test_models_with_a_link(poisson, shop, friedman, tmp_path):
    X, y = friedman
    out, rows = tmp_path / "small.joblib", shop / "rows.csv"
    result = succeeds(
        *("prune", poisson, rows, "--max-nodes", 40, "--trust", "--out", out, "--json"),
        "--no-target",
    )
    X_fit, X_val = split(X)
    same = fp.prune(joblib.load(poisson), X_fit, max_nodes=40, X_val=X_val)
    np.testing.assert_allclose(joblib.load(out).predict(X), same.predict(X))
    assert json.loads(result.stdout)["target"] is None
    assert json.loads(result.stdout)["full"]["d_squared"] == pytest.approx(1.0)
    assert "towards the model's own predictions" in result.stderr
    out.unlink()
    # With a target they are pruned in their own loss.
    command = ("prune", poisson, rows, "--target", "y", "--trust", "--max-nodes", 40)
    if y.min() >= 0.0:
        succeeds(*command, "--out", out)
        X_fit, X_val, y_fit, y_val = split(X, y)
        same = fp.prune(joblib.load(poisson), X_fit, y_fit, max_nodes=40, X_val=X_val, y_val=y_val)
        np.testing.assert_allclose(joblib.load(out).predict(X), same.predict(X))
    else:
        fails(tmp_path, *command, "--out", out, match="y must be 0 or more for the Poisson loss")


def test_own_predictions_on_request(shop, friedman, tmp_path):
    X, _ = friedman
    out = tmp_path / "small.npz"
    succeeds(
        *("prune", shop / RF, shop / "rows.csv", "--no-target", "--max-nodes", 40, "--out", out)
    )
    X_fit, X_val = split(X)
    same = fp.prune(shop / RF, X_fit, max_nodes=40, X_val=X_val)
    np.testing.assert_array_equal(fp.Forest.load(out).predict(X), same.predict(X))


def test_a_target_is_required_otherwise(shop, tmp_path):
    args = ["prune", shop / RF, shop / "rows.csv", "--out", tmp_path / "small.npz"]
    fails(tmp_path, *args, code=2, match="--target is required.*--no-target")
    fails(tmp_path, *args, "--target", "y", "--target", "w", match="predicts 1 numbers")


def test_several_outputs(friedman, tmp_path):
    X, y = friedman
    both = np.column_stack([y, -2.0 * y])
    model = RandomForestRegressor(4, max_depth=4, random_state=0).fit(X, both)
    joblib.dump(model, tmp_path / "m.joblib")
    X.assign(u=both[:, 0], v=both[:, 1]).to_csv(tmp_path / "rows.csv", index=False)
    out = tmp_path / "small.joblib"
    succeeds(
        *("prune", tmp_path / "m.joblib", tmp_path / "rows.csv", "--target", "u"),
        *("--target", "v", "--max-nodes", 20, "--out", out, "--trust"),
    )
    X_fit, X_val, y_fit, y_val = split(X, both)
    same = fp.prune(model, X_fit, y_fit, max_nodes=20, X_val=X_val, y_val=y_val)
    np.testing.assert_allclose(joblib.load(out).predict(X), same.predict(X))


@pytest.mark.parametrize("named", [True, False])
def test_pipelines(named, friedman, tmp_path):
    X, y = friedman
    X = X.assign(e=np.where(X["e"] > 0.5, "high", "low"))
    rows = X if named else X.to_numpy()
    by = (lambda *names: list(names)) if named else (lambda *names: [NAMES.index(n) for n in names])
    prepare = make_column_transformer(
        (StandardScaler(), by("a", "b", "c", "d")), (OneHotEncoder(), by("e"))
    )
    model = make_pipeline(prepare, RandomForestRegressor(4, max_depth=4, random_state=0))
    joblib.dump(model.fit(rows, y), tmp_path / "m.joblib")
    table = X.assign(y=y)
    (table[[*NAMES[::-1], "y"]] if named else table).to_csv(tmp_path / "rows.csv", index=False)
    args = ["prune", tmp_path / "m.joblib", tmp_path / "rows.csv", "--target", "y", "--trust"]
    out = tmp_path / "s.npz"
    fails(tmp_path, *args, "-o", out, match=r"a Pipeline can have: .*\.skops", code=2)
    out = tmp_path / "small.joblib"
    succeeds(*args, "--max-nodes", 25, "--out", out)
    X_fit, X_val, y_fit, y_val = split(rows, y)
    same = fp.prune(model, X_fit, y_fit, max_nodes=25, X_val=X_val, y_val=y_val)
    small = joblib.load(out)
    assert type(small) is type(model)
    np.testing.assert_allclose(small.predict(rows), same.predict(rows))
    path = ["path", *args[1:], "--n-alphas", 3]
    fails(tmp_path, *path, "--save", tmp_path / "p.npz", match="pipeline cannot be saved")


def test_a_pipeline_around_another_library_is_pickled(friedman, tmp_path):
    xgboost = pytest.importorskip("xgboost")
    X, y = friedman
    model = make_pipeline(StandardScaler(), xgboost.XGBRegressor(n_estimators=3, n_jobs=1))
    joblib.dump(model.fit(X, y), tmp_path / "m.joblib")
    X.assign(y=y).to_csv(tmp_path / "rows.csv", index=False)
    args = ["prune", tmp_path / "m.joblib", tmp_path / "rows.csv", "--target", "y", "--trust"]
    for ending in ("json", "skops"):
        out = tmp_path / f"small.{ending}"
        fails(tmp_path, *args, "--out", out, match=r"ends in \.joblib, \.pkl or \.pickle\.", code=2)


def test_pruning_lets_go_of_rows_once_they_are_encoded(shop, tmp_path, monkeypatch):
    gone, original = [], choosing.Solver

    def solver(*args, **about):
        gone.append(held() is None)
        return original(*args, **about)

    def hand_over(rows):
        nonlocal held
        X, rows.X = rows.X, rows.X[:].copy()
        held = weakref.ref(X)
        return X

    held = None
    monkeypatch.setattr(choosing, "Solver", solver)
    monkeypatch.setattr(Rows, "hand_over", hand_over)
    args = ["prune", shop / RF, shop / "rows.csv", "--target", "y", "--max-nodes", 15]
    succeeds(*args, "--out", tmp_path / "s.npz")
    assert gone
    assert all(gone)
