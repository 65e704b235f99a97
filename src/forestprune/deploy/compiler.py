"""What a C compiler makes of a header, if there is one."""

import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

_USES = {
    "predict_proba": "void use(const {number} *x, {number} *p) {{ {name}_predict_proba(x, p); }}",
    "several": "void use(const {number} *x, {number} *y) {{ {name}_predict(x, y); }}",
    "one": "{number} use(const {number} *x) {{ return {name}_predict(x); }}",
}


def object_bytes(header: str, name: str, compiler: str = "gcc", *flags: str) -> int | None:
    """Return the bytes that predicting takes in an object file, compiled to be small.

    Those of code and of data that is only read. None if compiler or binutils are not there, or
    cannot do it.
    """
    size = re.sub(r"gcc$", "size", compiler)
    if shutil.which(compiler) is None or shutil.which(size) is None:
        return None
    number = "float" if f"{name}_raw(const float *x" in header else "double"
    kind = "predict_proba" if f"{name}_predict_proba(" in header else "one"
    if kind == "one" and f"void {name}_predict(const {number} *x, {number} *y)\n" in header:
        kind = "several"
    with tempfile.TemporaryDirectory() as folder:
        source = f"{header}\n{_USES[kind].format(number=number, name=name)}\n"
        (Path(folder) / "use.c").write_text(source, encoding="ascii")
        call = [compiler, "-std=c99", "-Os", *flags, "-c", "use.c", "-o", "use.o"]
        told = ""
        for each in (call, [size, "-A", "use.o"]):
            done = subprocess.run(  # noqa: S603 - nothing of it comes from a model
                each,
                cwd=folder,
                capture_output=True,
                text=True,
                check=False,
                env=os.environ | {"LC_ALL": "C"},
            )
            if done.returncode:
                return None
            told = done.stdout
    sections = re.findall(r"^\.(?:text|rodata)\S*\s+(\d+)", told, re.M)
    return sum(map(int, sections))
