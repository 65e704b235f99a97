"""Models that XGBoost and LightGBM have fitted with Dask."""

import subprocess
import sys
import textwrap

import pytest
from effort import INTERPRETED

pytest.importorskip("distributed")
pytest.importorskip("xgboost")
pytest.importorskip("lightgbm")

SCRIPT = """
    import dask.array as da
    import lightgbm.dask
    import numpy as np
    import xgboost.dask
    from distributed import Client, LocalCluster
    from sklearn.datasets import make_friedman1
    import forestprune as fp

    def main():
        X, y = make_friedman1(600, noise=1.0, random_state=0)
        rows = da.from_array(X, chunks=(200, 10)), da.from_array(y, chunks=200)
        labels = rows[0], da.from_array((y > 14).astype(int), chunks=200)
        cluster = LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None)
        with cluster, Client(cluster) as client:
            small_one = {"n_estimators": 5}
            models = [
                (xgboost.dask.DaskXGBRegressor(max_depth=3, **small_one).fit(*rows), rows),
                (xgboost.dask.DaskXGBClassifier(max_depth=3, **small_one).fit(*labels), labels),
                (lightgbm.dask.DaskLGBMRegressor(verbose=-1, **small_one).fit(*rows), rows),
                (lightgbm.dask.DaskLGBMClassifier(verbose=-1, **small_one).fit(*labels), labels),
            ]
            trained = xgboost.dask.train(
                client, {"max_depth": 3}, xgboost.dask.DaskDMatrix(client, *rows), 5
            )
            models.append((trained, rows))
            for model, data in models:
                small = fp.prune(model, *data, max_nodes=30)
                native = small.to_native()
                whole = fp.prune(model, *data, alpha=0.0, refit=False).to_native()
                given = xgboost.DMatrix(X) if type(native).__name__ == "Booster" else X
                if isinstance(model, dict):
                    expected = model["booster"].predict(given)
                else:
                    expected = np.asarray(model.predict(rows[0]))
                np.testing.assert_allclose(whole.predict(given), expected, rtol=1e-5)
                print(type(native).__name__, small.n_nodes <= 30)

    if __name__ == "__main__":
        main()
"""


@pytest.mark.long
@pytest.mark.skipif(INTERPRETED, reason="libraries of others, left to the compiled run")
def test_models_that_were_fitted_with_dask_become_what_they_are_without(tmp_path):
    script = tmp_path / "models.py"
    script.write_text(textwrap.dedent(SCRIPT))
    done = subprocess.run(
        [sys.executable, "-W", "ignore", script], capture_output=True, text=True, timeout=300
    )
    expected = ["XGBRegressor", "XGBClassifier", "LGBMRegressor", "LGBMClassifier", "Booster"]
    # Some of what the libraries print goes to stdout, too.
    told = [line for line in done.stdout.splitlines() if line.endswith((" True", " False"))]
    assert told == [f"{name} True" for name in expected], done.stderr
