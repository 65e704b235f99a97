"""How the site is built: `make docs`.

The root of the sources is the repository, not this folder, so that links between these pages, the
README and the results of benchmarks are plain relative ones: they work where the repository is
shown on the web, and in the site.
"""

from sphinx.application import Sphinx

from forestprune import __version__

CONTENTS = {
    "Start": ["The first five minutes <self>", "Readme </README>"],
    "Tasks": [
        "/docs/shrink-a-forest",
        "/docs/classifiers",
        "/docs/deploy",
        "/docs/flash-budget",
        "/docs/read-a-model",
        "/docs/xgboost-in-production",
        "/docs/report",
        "/docs/split-polish",
        "/docs/certificates",
        "/docs/scale",
    ],
    "Choose": ["/docs/which-options", "/docs/which-models", "/docs/limits"],
    "Reference": ["/docs/command-line", "/docs/api", "/CHANGELOG", "/CONTRIBUTING", "/SECURITY"],
    "Background": [
        "/docs/how-it-works",
        "/docs/speed",
        "/docs/paper",
        "/benchmarks/results/frontier",
        "/benchmarks/results/classification",
        "/benchmarks/results/lop",
        "/benchmarks/results/losses",
        "/benchmarks/results/split_polish",
        "/benchmarks/results/corrective",
        "/benchmarks/results/million_rows",
        "/benchmarks/results/reach",
        "/benchmarks/results/constraints",
        "/benchmarks/results/symmetric",
        "/benchmarks/results/tolerance",
        "/benchmarks/results/block_polish",
        "/benchmarks/results/deployment",
        "/benchmarks/results/certificates",
        "/benchmarks/results/paper/README",
    ],
}
"""Every page of the site. One that is missing here, or there, is a warning and so an error."""

project = "forestprune"
version = release = __version__

root_doc = "docs/index"
include_patterns = ["*.md", "docs/*", "benchmarks/results/**.md"]
exclude_patterns = [
    ".*",
    "build",
    "dist",
    "src",
    "tests",
    "tools",
    "benchmarks/results/paper-quick",
]
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
default_role = "code"
smartquotes = False  # would make a dash of the two before an option
myst_heading_anchors = 3

autodoc_default_options = {
    "members": True,
    "exclude-members": "set_fit_request, set_score_request",
}
autodoc_member_order = "bysource"
autodoc_typehints = "none"
napoleon_google_docstring = False
# Types are words here, not names to be looked up: "(n_trees, m)" is about no class in particular.
napoleon_use_param = False
napoleon_use_rtype = False
suppress_warnings = ["ref.python"]

html_theme = "furo"
html_title = f"forestprune {version}"
html_copy_source = False
html_show_copyright = False
html_extra_path = ["redirect"]


def _add_contents(app: Sphinx, docname: str, source: list[str]) -> None:
    # A directive in the page itself would show as code where the repository is shown.
    if docname == app.config.root_doc:
        for caption, pages in CONTENTS.items():
            source[0] += "\n".join(
                ["\n", "```{toctree}", f":caption: {caption}", ":hidden:", "", *pages, "```"]
            )


def setup(app: Sphinx) -> None:
    """Connect what is done beyond the settings above."""
    app.connect("source-read", _add_contents)
