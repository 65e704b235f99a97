"""What README and the documentation show runs, and comes out as shown."""

import ast
import importlib
import inspect
import re
import runpy
from dataclasses import fields
from operator import attrgetter

import pytest
from pages import (
    COMMANDS,
    ROOT,
    PageError,
    blocks_of,
    check_call,
    commands_of,
    options_of,
    run_command,
    run_page,
)
from threadpoolctl import threadpool_limits

import forestprune as fp

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
ALL_PAGES = [*PAGES, ROOT / "CHANGELOG.md", ROOT / "CONTRIBUTING.md"]
RUNNABLE = ("python", "sh", "console")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    # On a busy machine, threads that wait for each other take many times as long.
    with threadpool_limits(1, user_api="openmp"):
        yield tmp_path


@pytest.mark.long
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_what_a_page_shows_is_so(page, folder):
    run_page(page)
    # tools/pictures.py makes pictures from what the page itself saves.
    shown = re.findall(r"\]\(pictures/([\w-]+\.png)\)", page.read_text(encoding="utf-8"))
    assert {path.name for path in folder.glob("*.png")} == set(shown)
    assert all((ROOT / "docs" / "pictures" / name).is_file() for name in shown)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_what_a_page_shows_could_be_run(page):
    """What can be said without running it: names, commands, options, targets and files exist."""
    for block in blocks_of(page):
        where = f"{page.name}:{block.line}"
        if block.language == "python":
            compile(block.text, where, "exec")
            check_names(block.text)
        elif block.language in ("sh", "console"):
            for command, _ in commands_of(block, where):
                check = check_call if re.match(r"forestprune \w", command) else run_command
                check(command, where)


def test_pages_have_something_to_run():
    counts = {p.name: sum(b.language in RUNNABLE for b in blocks_of(p)) for p in PAGES}
    assert counts["README.md"] >= 3
    assert sum(counts.values()) >= 40


@pytest.mark.parametrize("page", ALL_PAGES, ids=lambda page: page.name)
def test_every_block_has_a_known_language(page):
    blocks_of(page)


def test_command_line_page_is_up_to_date():
    tool = runpy.run_path(str(ROOT / "tools" / "command_line_page.py"))
    text = tool["PAGE"].read_text(encoding="utf-8")
    assert tool["updated"](text) == text, "run python tools/command_line_page.py"
    assert tool["updated"](text.replace("--max-nodes", "--nodes-at-most")) == text


@pytest.mark.parametrize("page", ALL_PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    # Whether anchors do too, and whether pages are in the contents of the site, `make docs` tells.
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.S | re.M)
    targets = re.findall(r"\]\(([^)#\s]+)[^)]*\)", text)
    missing = [t for t in targets if ":" not in t and not (page.parent / t).exists()]
    assert not missing


def test_every_public_name_is_in_the_reference():
    text = (ROOT / "docs" / "api.rst").read_text(encoding="utf-8")
    documented = re.findall(r"^\.\. auto(?:function|class|exception):: (\w+)$", text, flags=re.M)
    public = {*fp.__all__, *fp.baselines.__all__} - {"__version__", "baselines"}
    assert sorted(documented) == sorted(public)


# What stands in running text and tables


def inline(page):
    """Return the code in a page's text, each with its line."""
    text = page.read_text(encoding="utf-8")
    text = re.sub(r"^```.*?^```", lambda m: "\n" * m[0].count("\n"), text, flags=re.S | re.M)
    text = re.sub(r"<!--.*?-->", lambda m: "\n" * m[0].count("\n"), text, flags=re.S)
    for match in re.finditer(r"(?<!`)`([^`]+)`(?!`)", text):
        line = text.count("\n", 0, match.start()) + 1
        yield f"{page.name}:{line}", " ".join(match[1].split())


def spans(beginning):
    return [
        pytest.param(where, code, id=f"{where} {code}")
        for page in ALL_PAGES
        for where, code in inline(page)
        if re.match(beginning, code)
    ]


@pytest.mark.parametrize(("where", "code"), spans(r"(make|pip install) \w"))
def test_targets_and_extras_that_are_named_exist(where, code):
    run_command(code, where)


@pytest.mark.parametrize(("where", "code"), spans(r"forestprune \w"))
def test_commands_that_are_named_exist(where, code):
    check_call(code, where)


@pytest.mark.parametrize(("where", "code"), spans(r"--\w"))
def test_options_that_are_named_exist(where, code):
    known = {option for name in COMMANDS for option in options_of(name)}
    assert re.split("[ =]", code)[0] in known


@pytest.mark.parametrize(("where", "code"), spans(r".*\bfp\.\w"))
def test_python_that_is_named_exists(where, code):
    check_names(code)


PLACES = [s for s in spans(r"(?!fp\b)[a-z_]+(/[a-z_]+)*\.\w+") if "CONTRIBUTING" in s.values[0]]


@pytest.mark.parametrize(("where", "code"), PLACES)
def test_places_in_the_source_exist(where, code):
    check_place(code)


def check_place(code):
    """Check that a place is a file, or a name in a module, as in `select/solver.Solver.refine`."""
    if not any((folder / code).is_file() for folder in (ROOT, ROOT / "src" / "forestprune")):
        module, _, name = code.partition(".")
        attrgetter(name)(importlib.import_module(f"forestprune.{module.replace('/', '.')}"))


def check_names(code):
    """Check the names of what a line calls, and of the arguments that it gives."""
    for name in re.findall(r"\bfp\.(\w+)", code):
        assert hasattr(fp, name)
    try:
        tree = ast.parse(code)
    except SyntaxError:
        return  # words between code, such as "..." or "fp.prune(...), or"
    for call in ast.walk(tree):
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute):
            owner = call.func.value
            if isinstance(owner, ast.Name) and owner.id == "fp":
                known = arguments_of(getattr(fp, call.func.attr))
                assert {k.arg for k in call.keywords if k.arg} <= known


def arguments_of(function):
    parameters = inspect.signature(function).parameters
    takes_options = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
    return {*parameters, *((f.name for f in fields(fp.Options)) if takes_options else ())}


# That all this can fail

PYTHON = "```python\nprint('nodes 1,234', 0.5)\n```\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("```python\nx = 1\nx.foo\n```", r"page.md:3: AttributeError"),
        ("```python\nx = (\n```", r"page.md:2: SyntaxError"),
        ("```python\nx = 1\n```\n\n```python\nassert x == 2\n```", r"page.md:6: AssertionError"),
        ("<!-- setup\nx = 1\n-->\n\n```python\nassert x == 2\n```", r"page.md:6: AssertionError"),
        ("```python\nimport warnings\nwarnings.warn('so')\n```", r"page.md:3: UserWarning"),
        ("```sh\nforestprune inspect none.json\n```", r"page.md:2: .*ends with 1: .*none.json"),
        ("```sh\nforestprune demo --leaves 3\n```", r"ends with 2: .*--leaves"),
        ("```sh\nforestprune \\\n  inspect none.json\n```", r"ends with 1"),
        ("```sh\nmake tea\n```", "there is no tea"),
        ('```sh\npip install "forestprune[tea]"\n```', "there is no tea"),
        ("```sh\npip install tea\n```", "'tea' is not this package"),
        ("```sh\npython examples/tea.py\n```", "nothing that can be run"),
        ("```console\n$ python tools/check_imports.py\ntea\n```", "shown is\ntea"),
        ("```sh\nrm -rf tea\n```", "nothing that can be run"),
        ("```console\n$ forestprune --version\nforestprune 9.9\n```", r"shown is\nforestprune 9.9"),
        ("```console\nforestprune --version\n```", "begins with"),
        (PYTHON + "<!-- output -->\n```text\nnodes 1,234 0.6\n```", "but what comes out is"),
        (PYTHON + "<!-- output -->\n```text\nnodes 1,234 0.5 and more\n```", "comes out"),
        (PYTHON + "<!-- output -->\n```text\nnodes 1,234\n```", "comes out"),
        (
            PYTHON + "<!-- output, numbers within 5 % -->\n```text\nnodes 1,100 0.5\n```",
            "comes out",
        ),
        (PYTHON + "<!-- output, numbers within 5 % -->\n```text\nleaves 1,234 0.5\n```", "comes"),
        ("<!-- output -->\n```text\n1\n```", "no Python block"),
        ("<!-- output -->\n\nsome words", "a block must follow"),
        ("<!-- output, more or less -->\n", "not understood"),
        ("<!-- not run: long -->\n```sh\nforestprune tea\n```", "there is no tea"),
        ("<!-- not run: long -->\n```sh\nforestprune demo --tea\n```", "there is no --tea"),
        ("<!-- not run: long -->\n```sh\nrm tea\n```", "without running"),
        ("<!-- not run: long -->\n```python\nx = 1\n```", "only a block of sh"),
        ("<!-- not run -->\n```sh\nforestprune demo\n```", "not understood"),
        ("```\nforestprune --version\n```", "is none of"),
        ("```bash\nforestprune --version\n```", "'bash' is none of"),
        ("```python\nx = 1\n", "does not end"),
    ],
)
def test_a_page_that_is_wrong_fails(text, message, folder):
    page = folder / "page.md"
    page.write_text(text, encoding="utf-8")
    with pytest.raises(PageError, match=re.compile(message, re.S)):
        run_page(page)


@pytest.mark.parametrize(
    "text",
    [
        PYTHON + "<!-- output -->\n```text\nnodes  1,234\n0.5\n```",
        PYTHON + "<!-- output -->\n\n```text\nnodes ... 0.5\n```",
        PYTHON + "<!-- output, numbers within 5 % -->\n```text\nnodes 1,200 0.51\n```",
        "```console\n$ forestprune --version\nforestprune ...\n$ forestprune --version\n```",
        '```sh\nmake test  # words\n\npip install ".[data,plot]"\n```',
        "<!-- setup: words\nx = 1\n-->\n\n```python\nassert x == 1\n```",
        "```text\nanything\n```",
        "<!-- not run: long -->\n\n```sh\nforestprune bench --rows 200 --trees 9\n```",
    ],
)
def test_a_page_that_is_right_passes(text, folder):
    page = folder / "page.md"
    page.write_text(text, encoding="utf-8")
    run_page(page)


@pytest.mark.parametrize(
    "code", ["fp.prun(model, X, y)", "fp.prune(model, X, y, max_node=5)", "fp.tea"]
)
def test_a_name_that_is_wrong_fails(code):
    with pytest.raises(AssertionError):
        check_names(code)


@pytest.mark.parametrize("code", ["solve/problem.tea", "solve/tea.pose", "solve/tea.py"])
def test_a_place_that_is_wrong_fails(code):
    with pytest.raises((AttributeError, ModuleNotFoundError)):
        check_place(code)


@pytest.mark.parametrize("code", ["forestprune tea", "forestprune prune m.json --max-node 5"])
def test_a_call_that_is_wrong_fails(code):
    with pytest.raises(PageError, match="there is no"):
        check_call(code, "here")
