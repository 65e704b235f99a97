"""The program itself: its help, its completion, and calls that it cannot understand."""

from dataclasses import dataclass, fields
from typing import Annotated

import pytest
import typer
from shops import RF, call, fails, run, runner, succeeds

import forestprune as fp
from forestprune.cli.errors import flag, spelled
from forestprune.cli.output import describe_warning
from forestprune.cli.parameters import How, Size, flat
from forestprune.exceptions import OptionError, OptionText, named
from forestprune.options import TABLE

pytest.importorskip("pandas")


def test_help_and_version():
    listed = succeeds("--help").stdout
    for command in ("inspect", "prune", "polish", "path", "report", "demo", "bench"):
        assert command in listed
        text = succeeds(command, "--help").stdout
        assert f"forestprune {command}" in text
        assert "Examples" in text
    assert "--install-completion" in listed
    assert succeeds("--version").stdout == f"forestprune {fp.__version__}\n"
    assert "Usage" in succeeds().stdout


def test_help_says_what_the_program_ends_with():
    text = " ".join(call("--help").stdout.replace("│", " ").split())
    assert "0 if all went well, 1 if not, 2 if the call was wrong, 130 if interrupted" in text


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["pr"], ["prune"]),
        ([""], ["inspect", "prune", "path", "demo", "bench"]),
        (["prune", "--max-n"], ["--max-nodes"]),
        (["prune", "--rule", ""], ["subtree", "layer"]),
    ],
)
def test_shells_complete_commands_options_and_choices(words, expected):
    asked = {
        "_FORESTPRUNE_COMPLETE": "complete_bash",
        "COMP_WORDS": " ".join(["forestprune", *words]),
        "COMP_CWORD": str(len(words)),
    }
    code, stdout, stderr = run(env=asked)
    assert code == 0
    assert set(expected) <= set(stdout.split())
    assert stderr == ""


def test_completion_is_installed_for_the_program_by_its_name(tmp_path):
    # Not looked for among the processes of this machine, which come and go meanwhile.
    undetected = {"_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    env = {"HOME": str(tmp_path), "SHELL": "/bin/bash"} | undetected
    code, stdout, _ = run("--show-completion", "bash", env=env)
    assert code == 0
    assert "_FORESTPRUNE_COMPLETE=complete_bash" in stdout
    assert run("--install-completion", "bash", env=env)[0] == 0
    installed = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert any("-F _forestprune_completion forestprune" in p.read_text() for p in installed)


@pytest.mark.parametrize(
    "args",
    [
        ["inspect", "nowhere.json", "--json"],
        ["prune", "nowhere.json", "no.csv", "--target", "y", "-o", "s.json", "--json"],
        ["path", "nowhere.json", "no.csv", "--target", "y", "--json"],
    ],
)
def test_errors_for_machines_are_one_line_on_stderr(args, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    fails(tmp_path, *args, match="no file nowhere.json")
    fails(tmp_path, "bench", "--json", "--rows", "1", code=2, match="--rows")


def test_help_says_the_defaults_that_depend():
    text = " ".join(call("prune", "--help").stdout.replace("│", " ").split())
    assert "(default: 0.25, or 0 if --alpha is given)" in text


@pytest.mark.parametrize(
    ("args", "match"),
    [
        (["nonsense"], "No such command 'nonsense'"),
        (["inspect"], "Missing argument 'MODEL'"),
        (["prune", "m.json", "d.csv", "--target", "y"], "Missing option '--out'"),
        (["prune", "m.json", "d.csv", "-o", "s.json", "--max-nodes", "2"], "--max-nodes.* 3"),
        (["prune", "m.json", "d.csv", "-o", "s.json", "--max-nodes", "x"], "--max-nodes"),
        (["prune", "m.json", "d.csv", "-o", "s.json", "--rule", "magic"], "magic"),
        (["prune", "m.json", "d.csv", "-o", "s.json", "--holdout", "1"], "--holdout"),
        (["prune", "m.json", "d.csv", "-o", "s.json", "--reports", "r.html"], "--reports"),
        (["inspect", "m.json", "n.json"], "unexpected extra argument"),
    ],
)
def test_a_wrong_call_gets_one_line(args, match, tmp_path):
    line = fails(tmp_path, *args, code=2, match=match)
    assert "--help'." in line


@pytest.mark.parametrize(
    ("options", "match"),
    [
        (["--alpha", 1, "--max-nodes", 9], "--alpha and --max-nodes exclude"),
        (["--alpha", 1, "--one-standard-error"], "--alpha and --one-standard-error exclude"),
        (["--tolerance", 0.1, "--one-standard-error"], "exclude each other"),
        (["--tolerance", 0.1, "--holdout", 0], "--tolerance needs rows to choose by"),
        (["--one-standard-error", "--holdout", 0], "--one-standard-error needs rows"),
        (["--holdout", 0.5, "--validation", "v.csv"], "--holdout and --validation exclude"),
        (["--shrinkage", 1, "--shrinkage", 2, "--alpha", 1], "--shrinkage can be repeated only"),
        (["--shrinkage", 1, "--shrinkage", 2, "--holdout", 0], "--shrinkage can be repeated only"),
        (["--rule", "layer", "--refit"], "--refit needs --rule subtree"),
        (["--joint", "ridge"], "--joint ridge needs --rule layer"),
        (["--weighting", "depth"], "--rule layer"),
        (["--local-search", "random"], "--local-search random needs --rule layer"),
        (["--jobs", 0], "--jobs must be a whole number other than 0, got 0"),
        (["--rule", "layer", "--shrinkage", 5], r"--shrinkage .* --refit \(--rule subtree\)"),
        (["--json", "--quiet"], "--json and --quiet exclude"),
    ],
)
def test_what_does_not_go_together_is_told_before_any_file_is_read(options, match, tmp_path):
    args = ["m.json", "d.csv", "--target", "y", "-o", tmp_path / "s.json", *options]
    fails(tmp_path, "prune", *args, code=2, match=match)


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (
            "At {alpha=0.1} trees changed after {max_iter=5} sweeps: raise {max_iter}.",
            "At --alpha 0.1 trees changed after --max-iter 5 sweeps: raise --max-iter.",
        ),
        ("{n_jobs} and {random_state} are numbers.", "--jobs and --seed are numbers."),
        ("{local_search=False}, or {refit=False}.", "--local-search off, or --no-refit."),
        (
            "'max_nodes' is a column; {my_rule=1}, {X_val}",
            "'max_nodes' is a column; my_rule=1, X_val",
        ),
        ("The tolerance is one; raise tolerance.", "The tolerance is one; raise tolerance."),
        (
            f"{named('shrinkage', [2.0, 30.0])} is to be chosen from",
            "--shrinkage 2.0 --shrinkage 30.0 is to be chosen from",
        ),
        ("{max_nodes=3}, {max_bytes=70}: no", "--max-nodes 3, --max-bytes 70: no"),
        ("{rule} of {{rule}}.csv", "--rule of {rule}.csv"),
        ("{rule='layer'} or {polish='ridge'}", "--rule layer or --polish ridge"),
    ],
)
def test_options_are_named_as_on_the_command_line(said, expected):
    assert OptionError(said).rendered(flag) == expected
    assert OptionText(said).rendered(flag) == expected
    assert describe_warning(UserWarning(OptionText(f"{said}\nand more"))) == expected


def test_every_option_of_the_table_has_a_flag():
    given = {each.name for group in (Size, How) for each in fields(group)}
    assert given == set(TABLE) - {"random_state"}
    text = " ".join(call("prune", "--help").stdout.replace("│", " ").split())
    for name in TABLE:
        assert f"{spelled(name)} " in text
    by_model = "oblivious for symmetric models of CatBoost, else subtree"
    for default in (by_model, "every core", "1000", "heuristic", "on", "60"):
        assert f"(default: {default})" in text


@pytest.mark.parametrize(
    ("options", "match"),
    [
        (["--solver", "heuristic"], "--solver is for --polish subset"),
        (["--time-limit", 5, "--polish", "ridge"], "--time-limit is for --polish subset"),
        (["--alpha2", 0.01], "--alpha2 is for --joint, --polish ridge"),
        (["--alpha2", 0.0], "--alpha2 is for --joint, --polish ridge"),
        (["--seed", 0, "--holdout", 0], "--seed is for rows held out by chance"),
        (["--target", "y", "--no-target"], "--target and --no-target exclude"),
        (["--alpha", "inf"], "--alpha must be finite, got inf"),
        (["--tolerance", "inf"], "--tolerance must be finite, got inf"),
    ],
)
def test_options_that_would_change_nothing_are_refused(options, match, shop, tmp_path):
    args = ["prune", shop / RF, shop / "rows.csv", "--target", "y", "-o", tmp_path / "s.npz"]
    fails(tmp_path, *args, *options, match=match, code=2)


def test_options_in_groups_are_the_command_s_own():
    @dataclass
    class Group:
        one: Annotated[int, typer.Option(min=1)]
        two: Annotated[str, typer.Option("--zwei")] = "b"

    seen = []

    def command(group: Group, three: bool = False) -> None:
        """Say what it does."""
        seen.append((group, three))

    program = typer.Typer()
    program.command()(flat(command))
    assert runner.invoke(program, ["--one", "3", "--zwei", "x", "--three"]).exit_code == 0
    assert runner.invoke(program, ["--one", "4"]).exit_code == 0
    assert seen == [(Group(3, "x"), True), (Group(4, "b"), False)]
    assert runner.invoke(program, []).exit_code == 2
    assert runner.invoke(program, ["--one", "0"]).exit_code == 2
    assert "Say what it does." in runner.invoke(program, ["--help"]).output
