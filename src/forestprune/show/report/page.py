"""From a summary to one HTML page with everything in it."""

import base64
import hashlib
import importlib.util
import math
from importlib.resources import files
from typing import Any

from forestprune.show.plotting.look import MINUS, short_number
from forestprune.system.files import finite

PACKAGES = ("jinja2",)

SCRIPTS = ("tip.js", "charts.js", "curves.js", "trees.js", "report.js")
"""In the order in which they are run; later ones use names of earlier ones."""

_UNITS = ("bytes", "kB", "MB", "GB", "TB")


def check_installed() -> None:
    """Raise an error that says what to install if a package that reports need is missing."""
    missing = [name for name in PACKAGES if importlib.util.find_spec(name) is None]
    if missing:
        raise ImportError(
            f"Reports need {' and '.join(missing)}, not installed here: "
            f"pip install {' '.join(missing)}"
        )


def page(summary: dict[str, Any]) -> str:
    """Return the report as HTML. All texts in `summary` are escaped: names of features are input.

    The page's own policy lets only the scripts put in here run, by their hashes, and loads nothing
    from elsewhere.
    """
    import jinja2

    resources = {
        name: (files("forestprune.show.report") / name).read_text(encoding="utf-8")
        for name in ("report.html", "report.css", *SCRIPTS)
    }
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {
        "bytes": human_bytes,
        "ratio": ratio,
        "percent": human_percent,
        "milliseconds": human_milliseconds,
        "score": human_score,
        "short": short_number,
        "plain": "{:g}".format,
    }
    scripts = [resources[name] for name in SCRIPTS]
    chart = {name: summary[name] for name in ("path", "depths", "curves")}
    return environment.from_string(resources["report.html"]).render(
        **summary,
        chart=finite(chart),
        style=resources["report.css"],
        scripts=scripts,
        hashes=[_hash(script) for script in scripts],
    )


def human_bytes(n: int) -> str:
    """Return a number of bytes as people write it."""
    power = min(int(math.log10(max(n, 1)) // 3), len(_UNITS) - 1)
    return f"{n / 1000**power:.{0 if power == 0 else 1}f} {_UNITS[power]}"


def human_milliseconds(ms: float) -> str:
    """Return a time as people write it."""
    return f"{ms / 1000:.1f} s" if ms >= 1000 else f"{ms:.2g} ms" if ms < 10 else f"{ms:.0f} ms"


def ratio(full: float, small: float) -> str:
    """Return how many times larger one of two numbers is."""
    times = max(full, small) / min(full, small) if min(full, small) else math.inf
    if math.isinf(times):
        return "∞"
    return f"{times:,.0f}" if times >= 10 else f"{times:.1f}"


def human_score(score: float) -> str:
    """Return a score with four decimals, and nothing as nothing, not as less than that."""
    return f"{round(score, 4) + 0.0:.4f}".replace("-", MINUS)


def human_percent(share: float) -> str:
    """Return a share in per cent, with one more digit where it is little."""
    percent = 100 * share
    decimals = 0 if percent == 0 or percent >= 99.95 else 2 if percent < 0.95 else 1
    return f"{percent:.{decimals}f} %"


def _hash(script: str) -> str:
    digest = hashlib.sha256(script.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"
