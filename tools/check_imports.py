"""Check that every room of the package imports only from layers above its own in this table.

The table is the order in which the package can be read: what stands further down may use what
stands further up, never the other way round, and rooms of one layer do not know each other. Within
a room files may import each other; a name that begins with an underscore stays in its file.
`registry` names modules as strings and loads them when asked, which is how Forest.from_model
reaches the interop modules below it.
"""

import ast
import sys
from pathlib import Path

PACKAGE = Path(__file__).parent.parent / "src" / "forestprune"

LAYERS = [
    ("_version", "exceptions", "datasets"),
    ("system", "options"),
    ("kernels",),
    ("forest",),
    ("interop", "text", "rows", "loss", "blocks", "deploy"),
    ("solve",),
    ("polishing",),
    ("select",),
    ("api", "baselines", "show", "tables"),
    ("estimators", "demo", "bench"),
    ("cli",),
    ("__main__", "__init__"),
]
LAYER_OF = {part: number for number, parts in enumerate(LAYERS) for part in parts}

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


def private_names(tree: ast.AST) -> set[str]:
    """Return the private names of this package that are imported from another file."""
    return {
        f"{node.module}.{alias.name}"
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("forestprune")
        for alias in node.names
        if alias.name.startswith("_") and not alias.name.startswith("__")
    } - {"forestprune._version"}


def violations() -> list[str]:
    """Return a line for each import that goes the wrong way."""
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        relative = path.relative_to(PACKAGE)
        part = relative.parts[0].removesuffix(".py")
        if part not in LAYER_OF:
            found.append(f"{relative}: not in the table")
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        found += [f"{relative}: imports {name}, which is private" for name in private_names(tree)]
        for name in sorted(imported(tree)):
            head, _, rest = name.partition(".")
            if head == "forestprune" and rest:
                target = rest.partition(".")[0]
                within = target == part and len(relative.parts) > 1
                if target not in LAYER_OF:
                    found.append(f"{relative}: imports {name}, which is not in the table")
                elif not within and LAYER_OF[target] >= LAYER_OF[part]:
                    found.append(f"{relative}: imports {name}, which does not stand above it")
            elif part == "kernels" and head not in KERNEL_LIBRARIES:
                found.append(f"{relative}: a kernel imports {name}")
    return found


if __name__ == "__main__":
    lines = violations()
    print("\n".join(lines) or "imports go one way")
    sys.exit(bool(lines))
