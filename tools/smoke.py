"""Install what `make dist` has built into empty environments, and use it there.

    python tools/smoke.py dist

The wheel and the sdist, each in the oldest and in the newest Python that is on the PATH and that
numba has wheels for. No extra is installed, so only what needs none is used.
"""

import argparse
import shutil
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

VERSIONS = ("3.11", "3.12", "3.13", "3.14")

USE = textwrap.dedent(
    """
    import pickle

    import forestprune as fp
    from sklearn.ensemble import GradientBoostingRegressor
    from sklearn.model_selection import train_test_split

    wine = fp.load_wine_quality()
    X, X_val, y, y_val = train_test_split(wine.data, wine.target, random_state=0)
    model = GradientBoostingRegressor(n_estimators=100, random_state=0).fit(X, y)
    small = fp.prune(model, X, y, max_nodes=200, X_val=X_val, y_val=y_val)
    assert small.n_nodes <= 200, small
    assert abs(small.to_native().predict(X_val) - small.predict(X_val)).max() < 1e-9
    pickle.dump(small.to_native(), open("small.pkl", "wb"))
    print(small)
    """
)


def run(*command: str | Path, folder: Path) -> str:
    """Run a command in a folder; return what it prints, or end with what went wrong."""
    done = subprocess.run(list(map(str, command)), cwd=folder, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))} failed:\n{done.stdout}{done.stderr}")
    return done.stdout.strip()


def interpreters() -> list[str]:
    """Return the oldest and the newest Python that can make environments here."""
    found = []
    for version in VERSIONS:
        python = shutil.which(f"python{version}")
        works = [python or "", "-c", "import ensurepip, venv"]
        if python and not subprocess.run(works, capture_output=True).returncode:
            found.append(python)
    found = found or [sys.executable]
    return list(dict.fromkeys([found[0], found[-1]]))


def try_out(archive: Path, python: str) -> None:
    """Install an archive into an environment of its own, and prune with it."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        run(python, "-m", "venv", "env", folder=folder)
        here = folder / "env" / "bin"
        run(here / "python", "-m", "pip", "install", "--quiet", archive, folder=folder)
        (folder / "use.py").write_text(USE)
        version = run(here / "forestprune", "--version", folder=folder)
        small = run(here / "python", "use.py", folder=folder)
        run(here / "forestprune", "inspect", "small.pkl", "--trust", folder=folder)
        print(f"{archive.name}, {Path(python).name}: {version}, {small}")


def main() -> None:
    """Try out every archive."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    archives = sorted(parser.parse_args().folder.resolve().glob("forestprune-*"))
    if len(archives) != 2:
        found = ", ".join(each.name for each in archives) or "nothing"
        sys.exit(f"One wheel and one sdist were expected, found {found}.")
    for python in interpreters():
        for archive in archives:
            try_out(archive, python)


if __name__ == "__main__":
    main()
