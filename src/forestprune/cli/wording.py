"""What the package says of its options, in the words of the command line."""

import re

_FLAGS = {
    name: "--" + name.replace("_", "-")
    for name in (
        *("alpha", "max_nodes", "max_trees", "max_depth", "max_bytes", "tolerance"),
        *("one_standard_error", "rule", "refit", "shrinkage", "weighting", "joint", "alpha2"),
        *("polish", "local_search", "max_iter", "solver", "time_limit", "n_alphas"),
    )
} | {"n_jobs": "--jobs", "random_state": "--seed", "sample_weight": "--weight"}

_SWITCHES = {"True": "on", "False": "off"}

_VALUE = r"'[^']*'|\[[^\]]*\]|[^\s,;:()]+?(?=[.,;:)]*(?:\s|$))"
_SET = re.compile(rf"(?<!['\"\w.])({'|'.join(_FLAGS)})=({_VALUE})")
# Others are words that may also mean themselves.
_NAMED = re.compile(rf"(?<!['\"\w.-])({'|'.join(n for n in _FLAGS if '_' in n)})(?![\w'\"=])")
_FIRST = re.compile(rf"^({'|'.join(_FLAGS)})(?= must| and )")


def as_flags(text: str) -> str:
    """Return a message of the package with its options as they are given here.

    >>> as_flags("refit=True needs rule='subtree'; got max_iter=5.")
    '--refit needs --rule subtree; got --max-iter 5.'
    """
    text = _FIRST.sub(lambda found: _FLAGS[found[1]], text)
    text = _SET.sub(lambda found: _given(found[1], found[2].strip("'")), text)
    text = _NAMED.sub(lambda found: _FLAGS[found[1]], text)
    return text.replace(" must be None or ", " must be ")


def _given(name: str, value: str) -> str:
    if name == "local_search":
        return f"{_FLAGS[name]} {_SWITCHES.get(value, value)}"
    if value in _SWITCHES:
        return _FLAGS[name] if value == "True" else f"--no-{name.replace('_', '-')}"
    return f"{_FLAGS[name]} {value}"
