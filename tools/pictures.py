"""Make the pictures of the documentation: run the code of the pages that show them.

    python tools/pictures.py

A page that shows `pictures/NAME.png` saves NAME.png itself; tests check that it does.
"""

import contextlib
import io
import os
import re
import shutil
import tempfile
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parent.parent / "docs"


def draw(page: Path) -> None:
    """Run the Python blocks of a page until all its pictures are there; keep these."""
    text = page.read_text(encoding="utf-8")
    wanted = set(re.findall(r"\]\(pictures/([\w-]+\.png)\)", text))
    namespace: dict[str, Any] = {"__name__": "page"}
    blocks = iter(re.findall(r"^```python\n(.*?)^```", text, re.S | re.M))
    with tempfile.TemporaryDirectory() as name, contextlib.chdir(name):
        folder = Path(name)
        while not all((folder / picture).exists() for picture in wanted):
            with contextlib.redirect_stdout(io.StringIO()):
                exec(compile(next(blocks), str(page), "exec"), namespace)
        for picture in sorted(wanted):
            shutil.copyfile(folder / picture, DOCS / "pictures" / picture)
            print(f"{page.name}: {picture}, {(folder / picture).stat().st_size:,} bytes")


def main() -> None:
    """Draw the pictures of all pages."""
    os.environ["MPLBACKEND"] = "Agg"
    (DOCS / "pictures").mkdir(exist_ok=True)
    for page in sorted(DOCS.glob("*.md")):
        draw(page)


if __name__ == "__main__":
    main()
