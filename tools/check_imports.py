"""Check that every module of the package imports only from modules above it in this table.

The table is the order in which the package can be read: what stands further down may use what
stands further up, never the other way round. `registry` names modules as strings and loads them
when asked, which is how Forest.from_model reaches the interop modules below it.
"""

import ast
import sys
from pathlib import Path

PACKAGE = Path(__file__).parent.parent / "src" / "forestprune"

TABLE = [
    "_version",
    "exceptions",
    "system",
    "kernels",
    "options",
    "forest",
    "interop",
    "text",
    "rows",
    "loss",
    "solve",
    "polish",
    "select",
    "show",
    "api",
    "baselines",
    "estimators",
    "datasets",
    "demo",
    "bench",
    "tables",
    "cli",
    "__main__",
    "__init__",
]

KERNEL_LIBRARIES = {"numpy", "numba", "typing", "collections", "hashlib", "importlib", "pathlib"}


def imported(tree: ast.AST) -> set[str]:
    """Return the modules that are imported at run time anywhere in `tree`."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            node.body.clear()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            if node.level:
                raise ValueError(f"line {node.lineno}: relative import")
            module = node.module or ""
            names.add(module)
            if module == "forestprune":
                names |= {f"forestprune.{alias.name}" for alias in node.names}
    return names


def violations() -> list[str]:
    """Return a line for each import that goes the wrong way."""
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        relative = path.relative_to(PACKAGE)
        part = relative.parts[0].removesuffix(".py")
        if part not in TABLE:
            found.append(f"{relative}: not in the table")
            continue
        for name in sorted(imported(ast.parse(path.read_text(encoding="utf-8")))):
            head, _, rest = name.partition(".")
            if head == "forestprune" and rest:
                target = rest.partition(".")[0]
                if target not in TABLE:
                    found.append(f"{relative}: imports {name}, which is not in the table")
                elif TABLE.index(target) > TABLE.index(part) or (
                    target == part and len(relative.parts) == 1  # within a folder all may
                ):
                    found.append(f"{relative}: imports {name}, which stands below it")
            elif part == "kernels" and head not in KERNEL_LIBRARIES:
                found.append(f"{relative}: a kernel imports {name}")
    return found


if __name__ == "__main__":
    lines = violations()
    print("\n".join(lines) or "imports go one way")
    sys.exit(bool(lines))
