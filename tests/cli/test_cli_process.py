"""The command line as a real process."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from shops import RF, need, run, start

import forestprune as fp

pytest.importorskip("pandas")


def test_a_process_for_machines(shop, tmp_path):
    out = tmp_path / "s.npz"
    code, stdout, stderr = run(
        *("prune", shop / RF, shop / "rows.csv", "--target", "y", "--max-nodes", 15),
        *("-o", out, "--json"),
    )
    assert code == 0
    assert json.loads(stdout)["small"]["nodes"] == fp.Forest.load(out).n_nodes
    assert [line.split(":")[0] for line in stderr.splitlines()] == ["forestprune"] * 2


@pytest.mark.parametrize(
    "model",
    [
        *("xgboost.ubj", "catboost.cbm"),
        *(pytest.param(name, marks=pytest.mark.long) for name in ("xgboost.json", "lightgbm.txt")),
    ],
)
def test_libraries_do_not_talk_past_us(model, shop, tmp_path):
    need(model.partition(".")[0], "")
    content = (shop / model).read_bytes()
    (tmp_path / model).write_bytes(content[: len(content) // 2])
    code, stdout, stderr = run("inspect", tmp_path / model)
    assert code == 1
    assert stdout == ""
    assert stderr.count("\n") == 1
    assert model in stderr


def test_a_traceback_on_request(tmp_path):
    code, _, stderr = run("inspect", tmp_path / "no.json", env={"FORESTPRUNE_DEBUG": "1"})
    assert code == 1
    assert stderr.startswith("Traceback")
    assert "FileNotFoundError" in stderr


@pytest.mark.skipif(os.name != "posix", reason="signals are a matter of POSIX systems")
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no device that is full")
def test_a_result_that_cannot_be_printed(shop, tmp_path):
    out = tmp_path / "s.npz"
    command = ["prune", shop / RF, shop / "rows.csv", "--target", "y", "--max-nodes", 15, "-o", out]
    with Path("/dev/full").open("w") as full:
        code, _, stderr = run(*command, "--json", stdout=full)
    assert code == 1
    assert stderr.splitlines()[-1] == (
        "forestprune: the result could not be printed: No space left on device. "
        f"But {out} was written."
    )
    assert "Traceback" not in stderr


@pytest.mark.sampled(2)
@pytest.mark.parametrize("closed", [1, 2])
def test_streams_that_are_closed(closed, shop, tmp_path):
    out = tmp_path / "s.npz"
    command = f"prune {shop / RF} {shop / 'rows.csv'} --target y --max-nodes 15 -o {out}"
    program = f"{sys.executable} -m forestprune {command} {closed}>&-"
    subprocess.run(["/bin/sh", "-c", program], check=True, capture_output=True)
    assert fp.Forest.load(out).n_nodes <= 15


def test_letters_that_a_terminal_does_not_know(shop, tmp_path):
    model = tmp_path / "größe\x1b.npz"
    model.write_bytes((shop / RF).read_bytes())
    env = {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    code, stdout, _ = run("inspect", model, env=env)
    assert code == 0
    assert "gr\\xf6\\xdfe" in stdout
    code, _, stderr = run("inspect", tmp_path / "größe\x1b.json", env=env)
    assert code == 1
    assert "\x1b" not in stderr


def test_a_process_that_is_told_to_end(tmp_path):
    script = """
import time
from forestprune.system.processes import own_process
from forestprune.system.files import write_atomically
own_process()
with write_atomically("file") as file:
    file.write(b"half")
    file.flush()
    print("begun", flush=True)
    time.sleep(60)
"""
    process = subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, cwd=tmp_path
    )
    assert process.stdout.readline() == "begun\n"
    assert len(list(tmp_path.iterdir())) == 1
    process.terminate()
    process.communicate(timeout=60)
    assert process.returncode == 143
    assert list(tmp_path.iterdir()) == []


def test_a_process_that_is_stopped(tmp_path):
    process = start("bench", "--rows", 200_000, "--trees", 500)
    assert "pruned to 500 nodes" in process.stderr.readline()
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=120)
    assert process.returncode == 130
    assert stdout == ""
    assert stderr == "forestprune: stopped; nothing was written.\n"
