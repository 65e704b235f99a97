"""Models as C beside emlearn and m2cgen, and beside what treelite makes of them.

    python benchmarks/deployment.py [--rows 6000] [--out benchmarks/results/deployment.md]

Needs the extra `deployment`, and gcc; arm-none-eabi-gcc, if it is there, compiles for a Cortex-M4.
Rows are those of the bundled wines, each column scaled to whole numbers below 2,000, as sensors
give them, because emlearn's tables compare whole numbers of 16 bits. A random forest for numbers,
one for two classes and a model of LightGBM are pruned to a fourth of what is found to be as good,
or less; what is left goes through every tool.

Bytes are those of code and of data that is only read, in the object file that gcc -Os makes of a
file with one function that predicts. Nanoseconds are those of a row, all rows one after another on
one thread, the best of several rounds in which all take turns; compiled by gcc -O2. "Off by" is the
largest difference to what the pruned model itself predicts, of probabilities for classes.
"""

import argparse
import ctypes
import re
import shutil
import subprocess
import tempfile
import time
import warnings
from dataclasses import dataclass, field
from pathlib import Path

import lightgbm
import m2cgen
import numpy as np
import tl2cgen
import treelite
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.model_selection import train_test_split

import forestprune as fp

with np.errstate():  # emlearn has numpy raise errors, for everybody
    import emlearn

ROUNDS = 25
ARM = "arm-none-eabi-gcc"
CORTEX_M4 = ["-mcpu=cortex-m4", "-mthumb", "-mfloat-abi=hard", "-mfpu=fpv4-sp-d16"]
NUMBERS = {"float": np.float32, "double": np.float64, "int16_t": np.int16}


@dataclass
class Program:
    """A model in C.

    `call` writes to `out`, an array, what is predicted for the row `x`, whose numbers are of the
    type `number`; results are of the type `result`, `width` of them.
    """

    text: str
    call: str
    number: str
    result: str
    width: int
    includes: list[str] = field(default_factory=list)

    def object_bytes(self, compiler, *flags):
        """Return the size of code and constants, or None without the compiler."""
        if shutil.which(compiler) is None:
            return None
        size = compiler.replace("gcc", "size")
        with tempfile.TemporaryDirectory() as folder:
            head = f"void use(const {self.number} *x, {self.result} *out)"
            source = f"{self.text}\n{head};\n{head} {{ {self.call}; }}\n"
            (Path(folder) / "use.c").write_text(source)
            paths = [f"-I{path}" for path in self.includes]
            call = [compiler, "-std=gnu99", "-Os", "-w", *flags, *paths, "-c", "use.c"]
            subprocess.run(call, cwd=folder, check=True)
            told = subprocess.run(
                [size, "-A", "use.o"], cwd=folder, check=True, capture_output=True, text=True
            ).stdout
        found = re.findall(r"^\.(?:text|rodata|data)\S*\s+(\d+)", told, re.M)
        return sum(map(int, found))

    def predictor(self, X):
        """Return a function that predicts all rows, and where it writes to."""
        with tempfile.TemporaryDirectory() as folder:
            rows = f"for (long i = 0; i < n; i++, x += {X.shape[1]}, out += {self.width})"
            head = f"void run(const {self.number} *x, long n, {self.result} *out)"
            (Path(folder) / "run.c").write_text(f"{self.text}\n{head} {{ {rows} {self.call}; }}\n")
            paths = [f"-I{path}" for path in self.includes]
            call = ["gcc", "-std=gnu99", "-O2", "-w", *paths, "-shared", "-fPIC", "run.c"]
            subprocess.run([*call, "-o", "run.so", "-lm"], cwd=folder, check=True)
            library = ctypes.CDLL(f"{folder}/run.so")
        given = np.ascontiguousarray(X, dtype=NUMBERS[self.number])
        out = np.empty((len(X), self.width), dtype=NUMBERS.get(self.result, np.int32))

        def run():
            # What is pointed at must stay where it is.
            pointers = [ctypes.c_void_p(array.ctypes.data) for array in (given, out)]
            library.run(pointers[0], ctypes.c_long(len(given)), pointers[1])

        return run, out


def rows_of(limit):
    """Return the wines as whole numbers, and their quality."""
    wine = fp.load_wine_quality()
    low, high = wine.data.min(axis=0), wine.data.max(axis=0)
    X = np.round((wine.data - low) / (high - low) * 2000)
    chosen = np.random.default_rng(0).permutation(len(X))[:limit]
    return X[chosen], wine.target[chosen]


def pruned(X, y):
    """Return small models by name."""
    X, X_val, y, y_val = train_test_split(X, y, random_state=0)
    options = {"min_samples_leaf": 3, "random_state": 0, "n_jobs": 1}
    gbm = lightgbm.LGBMRegressor(n_estimators=100, n_jobs=1, verbose=-1)
    cases = {
        "random forest": (RandomForestRegressor(100, **options).fit(X, y), y, y_val, 3000),
        "random forest, two classes": (
            RandomForestClassifier(100, **options).fit(X, y > 6),
            y > 6,
            y_val > 6,
            1500,
        ),
        "LightGBM": (gbm.fit(X, y), y, y_val, 800),
    }
    return {
        name: fp.prune(model, X, of, max_nodes=nodes, X_val=X_val, y_val=of_val)
        for name, (model, of, of_val, nodes) in cases.items()
    }


def own_programs(small):
    """Yield ours."""
    classes = bool(small.forest.origin.classes)
    for layout, dtype, leaves in (
        ("tables", "float32", None),
        ("tables", "float32", "int16"),
        ("tables", "float32", "int8"),
        ("tables", "float64", None),
        ("branches", "float32", None),
        ("branches", "float32", "int16"),
        ("branches", "float64", None),
    ):
        number = "float" if dtype == "float32" else "double"
        text = small.to_c("m", dtype=dtype, layout=layout, leaves=leaves)
        call = "m_predict_proba(x, out)" if classes else "*out = m_predict(x)"
        kept = "" if leaves is None else f", leaves {leaves}"
        program = Program(text, call, number, number, 1 + classes)
        yield f"forestprune, {layout}, {number}{kept}", program


def other_programs(small):
    """Yield those of emlearn and m2cgen, as far as they take the model."""
    native, n = small.to_native(), small.forest.n_features
    classes = bool(small.forest.origin.classes)
    text = m2cgen.export_to_c(native)
    call = "score((double *)x, out)" if classes else "*out = score((double *)x)"
    yield "m2cgen", Program(text, call, "double", "double", 1 + classes)
    if small.forest.origin.library != "sklearn":
        return
    for method, number in (("loadable", "int16_t"), ("inline", "int16_t"), ("inline", "float")):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            kind = "classifier" if classes else "regressor"
            bits = {"leaf_bits": 8} if classes else {}
            model = emlearn.convert(native, method=method, dtype=number, return_type=kind, **bits)
            text = model.save(name="em", format="c", inference=[method])
        call = f"em_predict_proba(x, {n}, out, 2)" if classes else f"*out = em_predict(x, {n})"
        include = [emlearn.includedir]
        yield (
            f"emlearn, {method}, {number}",
            Program(text, call, number, "float", 1 + classes, include),
        )


def libraries(small, X, folder):
    """Yield names, functions that predict all rows, results, and the bytes of an object file."""
    model = small.to_treelite()
    single = X.astype(small.forest.input.dtype)
    out = {}

    def keep(name, call):
        def run():
            out[name] = call()

        return name, run, lambda: out[name]

    yield (
        *keep("treelite, its own runtime", lambda: treelite.gtil.predict(model, single, nthread=1)),
        None,
    )
    path = Path(folder) / "tl.so"
    tl2cgen.export_lib(model, toolchain="gcc", libpath=path, params={}, verbose=False)
    predictor, batch = tl2cgen.Predictor(path, nthread=1), tl2cgen.DMatrix(single)
    code = Path(folder) / "code"
    tl2cgen.generate_c_code(model, dirpath=code, params={})
    subprocess.run(["gcc", "-Os", "-w", "-c", "main.c"], cwd=code, check=True)
    told = subprocess.run(
        ["size", "-A", "main.o"], cwd=code, check=True, capture_output=True, text=True
    ).stdout
    n_bytes = sum(map(int, re.findall(r"^\.(?:text|rodata|data)\S*\s+(\d+)", told, re.M)))
    yield (*keep("treelite, compiled by tl2cgen", lambda: predictor.predict(batch)), n_bytes)


def compared(small, X):
    """Return a row of figures for each way of running a model."""
    classes = bool(small.forest.origin.classes)
    expected = small.predict_proba(X)[:, 1] if classes else small.predict(X)
    runs, results, sizes = {}, {}, {}
    for name, program in (*own_programs(small), *other_programs(small)):
        run, out = program.predictor(X)
        runs[name], results[name] = run, lambda out=out: out[:, -1]
        sizes[name] = (program.object_bytes("gcc"), program.object_bytes(ARM, *CORTEX_M4))
    with tempfile.TemporaryDirectory() as folder:
        for name, run, result, n_bytes in libraries(small, X, folder):
            runs[name], sizes[name] = run, (n_bytes, None)
            results[name] = lambda result=result: np.asarray(result()).reshape(len(X), -1)[:, -1]
        best = dict.fromkeys(runs, np.inf)
        for _ in range(ROUNDS):
            for name, run in runs.items():
                start = time.perf_counter()
                run()
                best[name] = min(best[name], time.perf_counter() - start)
    return {
        name: (*sizes[name], best[name] / len(X) * 1e9, np.abs(results[name]() - expected).max())
        for name in runs
    }


def table(rows):
    """Return figures as a table in markdown."""
    lines = [
        "| | bytes, x86-64 | bytes, Cortex-M4 | ns a row | off by |",
        "|---|---:|---:|---:|---:|",
    ]
    for name, (here, there, nanoseconds, error) in rows.items():
        sizes = ("" if size is None else f"{size:,}" for size in (here, there))
        lines.append(f"| {name} | {' | '.join(sizes)} | {nanoseconds:,.0f} | {error:.1g} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=6_000)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/deployment.md"))
    options = parser.parse_args()
    X, y = rows_of(options.rows)
    parts = [INTRODUCTION.strip()]
    for name, small in pruned(X, y).items():
        size = f"{small.n_trees:,} trees, {small.n_nodes:,} nodes, deepest {small.max_depth}"
        parts.append(f"## {name[:1].upper()}{name[1:]}: {size}\n\n{table(compared(small, X))}")
        print(parts[-1], flush=True)
    options.out.write_text("\n\n".join(parts) + "\n", encoding="utf-8")


INTRODUCTION = """
# Small models as C, beside others

Made by `python benchmarks/deployment.py`, which says how it is measured: pruned models as C,
written by this package, by m2cgen and by emlearn, and as treelite runs them. Bytes are those of an
object file, made by `gcc -Os` for x86-64 and by `arm-none-eabi-gcc -Os` for a Cortex-M4;
nanoseconds are those of one row on one thread, compiled by `gcc -O2`; "off by" is the largest
difference to the pruned model's own predictions, on 6,000 rows.

emlearn is off because some rows go another way: it asks `x < t` where scikit-learn asks `x <= t`,
and with `int16_t` thresholds are cut to whole numbers; of classes it rounds probabilities in
leaves to 8 bits. That is so of forests that nobody has pruned, too. treelite's figures have the
time of a call from Python, divided by the rows. The smallest programs are tables, and the fastest
are branches: no layout is both.
"""

if __name__ == "__main__":
    main()
