"""Rows in collections of Dask: the same model as of the rows themselves, and nothing gathered."""

import os
import signal
import subprocess
import sys
import textwrap
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from effort import INTERPRETED
from sklearn.datasets import make_friedman1
from sklearn.ensemble import GradientBoostingRegressor

import forestprune as fp
from forestprune import api
from forestprune.select import by_sample, resplit_by_block

da, dd = pytest.importorskip("dask.array"), pytest.importorskip("dask.dataframe")
dask = pytest.importorskip("dask")

pytestmark = [
    pytest.mark.skipif(INTERPRETED, reason="whole prunings, left to the compiled run"),
    pytest.mark.filterwarnings("ignore"),  # of Dask's own parts
]

X, Y = make_friedman1(4_000, noise=1.0, random_state=0)
NAMES = [f"x{j}" for j in range(10)]
FRAME = pd.DataFrame(X, columns=NAMES)


@pytest.fixture(autouse=True)
def _few(monkeypatch):
    monkeypatch.setattr(by_sample, "SAMPLE_ROWS", 1_200)
    monkeypatch.setattr(api, "PATH_ROWS", 1_200)


@pytest.fixture(scope="module")
def model():
    return GradientBoostingRegressor(n_estimators=30, random_state=0).fit(X, Y)


@pytest.fixture(scope="module")
def named():
    return GradientBoostingRegressor(n_estimators=30, random_state=0).fit(FRAME, Y)


def objective(small):
    return small.path.points[small.index].objective


def test_frames_and_arrays_make_the_model_that_batches_make(model, named):
    parts = [(X[i : i + 900], Y[i : i + 900]) for i in range(0, 4_000, 900)]
    expected = fp.prune(model, parts, max_nodes=90)
    arrays = da.from_array(X, chunks=(1_500, 4)), da.from_array(Y, chunks=1_500)
    assert objective(fp.prune(model, *arrays, max_nodes=90)) == pytest.approx(
        objective(expected), rel=1e-6
    )
    whole = dd.from_pandas(FRAME.assign(y=Y), npartitions=5)
    small = fp.prune(named, whole[NAMES], whole["y"], max_nodes=90)
    assert objective(small) == pytest.approx(objective(expected), rel=1e-6)
    held_out = {"X_val": whole[NAMES], "y_val": whole["y"]}
    assert fp.prune(named, whole[NAMES], whole["y"], **held_out).validation.n_rows == 4_000
    path = fp.prune_path(named, whole[NAMES], whole["y"], n_alphas=8)
    assert path.points[0].report["rows"] == 4_000


def test_files_that_dask_would_read_together(named, tmp_path):
    """Of one column alone Dask reads several small files at once, of all columns it does not."""
    whole = FRAME.assign(y=Y, w=1.0)
    for number in range(4):
        whole[number::4].to_parquet(tmp_path / f"{number}.parquet")
    table = dd.read_parquet(tmp_path)
    small = fp.prune(named, table[NAMES], table["y"], sample_weight=table["w"], max_nodes=90)
    rows = fp.open_rows(tmp_path, target="y", sample_weight="w")
    assert objective(small) == pytest.approx(objective(fp.prune(named, rows, max_nodes=90)))


def test_files_with_text_for_dask_to_read(tmp_path):
    lightgbm = pytest.importorskip("lightgbm")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.random(900), "kind": np.repeat(list("wxyz"), 225)})
    target = frame.a + frame.kind.map(dict(zip("wxyz", (0, 2, -1, 5), strict=True)))
    known = frame.assign(kind=frame.kind.astype("category"))
    model = lightgbm.LGBMRegressor(n_estimators=9, n_jobs=1, verbose=-1).fit(known, target)
    frame.assign(y=target).to_parquet(tmp_path / "rows.parquet", row_group_size=100)
    rows = fp.open_rows(tmp_path, target="y", batch_rows=50)
    small = fp.prune(model, rows.on_dask(), max_nodes=30)
    assert objective(small) == pytest.approx(objective(fp.prune(model, rows, max_nodes=30)))


def test_frames_go_with_arrays(named):
    frame, target = dd.from_pandas(FRAME, npartitions=4), da.from_array(Y, chunks=1_000)
    small = fp.prune(named, frame, target, max_nodes=90)
    expected = fp.prune(named, [(FRAME, Y)], max_nodes=90)
    assert objective(small) == pytest.approx(objective(expected), rel=1e-6)


def test_partitions_of_any_size_and_empty_ones(named):
    whole = FRAME.assign(y=Y)
    cuts = [0, 0, 3, 3, 2_500, 4_000, 4_000]
    pieces = [whole.iloc[a:b] for a, b in pairwise(cuts)]
    parts = dd.from_map(lambda i: pieces[i], range(len(pieces)), meta=whole.iloc[:0])
    small = fp.prune(named, parts[NAMES], parts["y"], max_nodes=90)
    expected = dd.from_pandas(whole, npartitions=1)
    other = fp.prune(named, expected[NAMES], expected["y"], max_nodes=90)
    assert objective(small) == pytest.approx(objective(other), rel=1e-6)


@pytest.mark.parametrize("polish", ["leaf", "split"])
def test_models_are_polished_as_batches_have_it(model, polish, monkeypatch):
    monkeypatch.setattr(resplit_by_block, "SPLIT_ROWS", 1_500)
    parts = [(X[i : i + 900], Y[i : i + 900]) for i in range(0, 4_000, 900)]
    arrays = da.from_array(X, chunks=(1_500, 4)), da.from_array(Y, chunks=1_500)
    asked = {"max_nodes": 50, "shrinkage": 30.0, "polish": polish}
    small, expected = fp.prune(model, *arrays, **asked), fp.prune(model, parts, **asked)
    assert objective(small) == pytest.approx(objective(expected), rel=1e-6)
    assert (small.n_new_splits > 0) == (polish == "split")
    assert small.n_new_splits == expected.n_new_splits


def test_nothing_is_put_together(model, monkeypatch):
    """Whoever asks Dask for all of a collection gets an error."""

    def refuse(*_args, **_kwargs):
        raise AssertionError("a collection was computed as a whole")

    arrays = da.from_array(X, chunks=(1_000, 10)), da.from_array(Y, chunks=1_000)
    frames = dd.from_pandas(FRAME, npartitions=4)
    for kind in (type(arrays[0]), type(frames), type(frames["x0"])):
        for way in ("compute", "__array__", "persist", "__len__"):
            monkeypatch.setattr(kind, way, refuse, raising=False)
    assert fp.prune(model, *arrays, max_nodes=60).n_nodes <= 60


def test_what_does_not_fit_together_is_refused(model):
    rows = da.from_array(X, chunks=(1_000, 10))
    with pytest.raises(ValueError, match="must be a collection of Dask too"):
        fp.prune(model, rows, Y, max_nodes=60)
    with pytest.raises(ValueError, match="divided like X, which has 4 partitions; got 2"):
        fp.prune(model, rows, da.from_array(Y, chunks=2_000), max_nodes=60)
    frame = dd.from_pandas(FRAME, npartitions=4)
    with pytest.raises(ValueError, match="divided like X, which has 4 partitions; got 3"):
        fp.prune(model, frame, dd.from_pandas(pd.Series(Y), npartitions=3), max_nodes=60)
    bad = np.where(np.arange(4_000) == 2_345, np.nan, Y)
    with pytest.raises(ValueError, match="y must be finite") as caught:
        fp.prune(model, rows, da.from_array(bad, chunks=1_000), max_nodes=60)
    assert "partition 2" in caught.value.__notes__[0]
    empty = da.from_array(X[:0], chunks=(1_000, 10)), da.from_array(Y[:0], chunks=1_000)
    with pytest.raises(ValueError, match="no rows"):
        fp.prune(model, *empty, max_nodes=60)


CLUSTER = """
    import os, signal, sys, threading, time
    import dask.array as da
    import numpy as np
    from distributed import Client, LocalCluster
    from sklearn.datasets import make_friedman1
    from sklearn.ensemble import GradientBoostingRegressor
    import forestprune as fp
    from forestprune.select import by_sample

    def main():
        by_sample.SAMPLE_ROWS = 1_200
        X, Y = make_friedman1(4_000, noise=1.0, random_state=0)
        model = GradientBoostingRegressor(n_estimators=30, random_state=0).fit(X, Y)
        rows = da.from_array(X, chunks=(250, 10)), da.from_array(Y, chunks=250)
        found = [fp.prune(model, *rows, max_nodes=90)]
        cluster = LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
        )
        with cluster, Client(cluster) as client:
            found.append(fp.prune(model, *rows, max_nodes=90))
            victim = min(client.run(os.getpid).values())
            threading.Timer(0.15, os.kill, (victim, signal.SIGKILL)).start()
            for _ in range(3):
                found.append(fp.prune(model, *rows, max_nodes=90))
        objectives = [small.path.points[small.index].objective for small in found]
        assert np.ptp(objectives) <= 1e-6 * objectives[0], objectives
        print("equal")

    if __name__ == "__main__":
        main()
"""


@pytest.mark.long
def test_a_cluster_of_which_a_worker_dies(tmp_path):
    script = tmp_path / "cluster.py"
    script.write_text(textwrap.dedent(CLUSTER))
    with subprocess.Popen(
        [sys.executable, script],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            out, err = process.communicate(timeout=180)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            raise
    assert out.strip().endswith("equal"), err
