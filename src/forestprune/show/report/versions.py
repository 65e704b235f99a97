"""What the report was made with."""

import platform
from importlib.metadata import PackageNotFoundError, version

from forestprune._version import __version__
from forestprune.forest.forest import Forest

_PACKAGES = {"sklearn": "scikit-learn"}
"""Libraries whose package has another name."""


def versions(forest: Forest) -> dict[str, str]:
    """Return the versions of Python, this package, and what makes and reads the model."""
    library = "sklearn" if forest.origin is None else forest.origin.library
    names = dict.fromkeys([_PACKAGES.get(library, library), "scikit-learn", "numpy"])
    known = {name: _version(name) for name in names}
    return {"forestprune": __version__, "Python": platform.python_version()} | {
        name: number for name, number in known.items() if number is not None
    }


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
