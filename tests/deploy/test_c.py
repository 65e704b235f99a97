"""Models as C say what the models say: for every library, on and beside thresholds, compiled."""

import pickle
import re
import shutil
import subprocess
from dataclasses import replace

import numpy as np
import pytest
from compiled import GCC, STRICT, Compiled, needs_gcc
from deployed import LIBRARIES, X, Y, forest_of, models_of, probes
from effort import examples
from hand_made import AWKWARD, built, leaf, split
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.ensemble import RandomForestRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from strategies import forests, rows, symmetric_nodes

import forestprune as fp
from forestprune.deploy.c_header import to_c
from forestprune.deploy.c_words import comment, quoted
from forestprune.deploy.compiler import object_bytes
from forestprune.exceptions import OptionError
from forestprune.forest import response

LEAVES = [None, "float32", "int16", "int8"]
WAYS = [
    ("tables", "float64", None),
    ("tables", "float32", "int8"),
    ("branches", "float64", "int16"),
    ("branches", "float32", None),
]


def sums(forest, matrix):
    raw = forest.predict_matrix(matrix)
    return raw[:, 0] if forest.n_outputs == 1 else raw


@needs_gcc
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("library", LIBRARIES)
def test_compiled_models_agree_with_native_ones(library):
    if library != "sklearn":
        pytest.importorskip(library)
    cases = []
    for number, (model, fitted_to) in enumerate(models_of(library)):
        forest = forest_of(model)
        for way, (layout, dtype, leaves) in enumerate(WAYS):
            name = f"m{number}_{way}"
            header = to_c(forest, name, dtype=dtype, layout=layout, leaves=leaves)
            cases.append((name, header, model, forest, fitted_to, np.dtype(dtype), leaves))
    compiled = Compiled([case[1] for case in cases])
    for name, header, model, forest, fitted_to, dtype, leaves in cases:
        given = probes(forest, fitted_to).astype(dtype)
        assert len(given) > 900
        matrix = forest.input.matrix(given)
        # Where numbers are names of categories, C takes their codes.
        taken = matrix if forest.input.numbers == "values" else given
        expected = sums(forest, matrix)
        difference = np.abs(compiled(name, "raw", taken) - expected).max()
        assert difference <= header.error_bound, name
        if leaves is None:
            # No row goes another way than in the model.
            assert header.error_bound < (1e-12 if dtype == np.float64 else 1e-4)
        # XGBoost adds up in single precision.
        off = 5e-6 if library == "xgboost" else 1e-14
        off += header.error_bound + 2e-6 * (dtype == np.float32)
        if not forest.origin.classes:
            native, mine = model.predict(given), compiled(name, "predict", taken)
            slope = 1.0 + np.abs(native).max() ** (forest.origin.link != "identity")
            np.testing.assert_allclose(mine, native, rtol=3 * off, atol=3 * slope * off)
            continue
        mine = compiled(name, "predict_proba", taken)
        np.testing.assert_allclose(mine, model.predict_proba(given), atol=off)
        best = np.sort(mine, axis=1)
        clear = best[:, -1] - best[:, -2] > 2 * off
        labels = np.array(forest.origin.classes)[compiled(name, "predict", taken)]
        native = np.asarray(model.predict(given)).ravel()
        assert clear.mean() > 0.5
        assert (labels == native)[clear].all()


@needs_gcc
@settings(max_examples=examples(9))
@given(
    st.lists(
        st.tuples(
            forests(max_outputs=3) | forests(max_outputs=3, trees=symmetric_nodes),
            rows(),
            st.sampled_from(["tables", "branches"]),
            st.sampled_from(["float32", "float64"]),
            st.sampled_from(LEAVES),
            st.sampled_from([{}, {"zero_is_missing": (0,)}, {"missing_number": 0.3}]),
            st.booleans(),
        ),
        min_size=4,
        max_size=12,
    )
)
def test_any_forest_agrees_with_what_the_package_predicts(cases):
    headers, expected = [], []
    for number, ((_, forest), drawn, layout, dtype, leaves, missing, finite) in enumerate(cases):
        changes = missing if forest.n_nodes else {}
        if finite:
            changes = changes | {"ensure_all_finite": False}
        forest = replace(forest, input=replace(forest.input, **changes))
        with np.errstate(over="ignore"):
            matrix = drawn.astype(dtype)
        if finite:
            matrix = np.concatenate([matrix, np.full((1, 3), np.inf), np.full((1, 3), -np.inf)])
        headers.append(to_c(forest, f"m{number}", dtype=dtype, layout=layout, leaves=leaves))
        expected.append((matrix, sums(forest, forest.input.matrix(matrix))))
    compiled = Compiled(headers, ["-fsanitize=undefined", "-fno-sanitize-recover=all"])
    for number, (header, (matrix, raw)) in enumerate(zip(headers, expected, strict=True)):
        difference = np.abs(compiled(f"m{number}", "raw", matrix) - raw).max()
        assert difference <= header.error_bound


@needs_gcc
@pytest.mark.filterwarnings("ignore")
def test_categories_that_have_names_are_taken_as_codes_which_a_comment_explains():
    pd, catboost = pytest.importorskip("pandas"), pytest.importorskip("catboost")
    lightgbm = pytest.importorskip("lightgbm")
    colours = np.array(["red", "blue", "*/", "green"])[X[:, 4].astype(int) % 4]
    table = pd.DataFrame(X[:, :4], columns=list("abcd")).assign(colour=colours)
    bright = Y + 2.0 * (colours == "blue") - (colours == "*/")
    options = {"iterations": 6, "depth": 3, "one_hot_max_size": 9, "thread_count": 1}
    model = catboost.CatBoostRegressor(verbose=0, allow_writing_files=False, **options)
    marked = table.assign(colour=table["colour"].astype("category"))
    gbm = lightgbm.LGBMRegressor(n_estimators=6, n_jobs=1, verbose=-1)
    cases = [
        (model.fit(table, bright, cat_features=["colour"]), table),
        (gbm.fit(marked, bright), marked),
    ]
    headers = [to_c(forest_of(each), f"m{k}") for k, (each, _) in enumerate(cases)]
    compiled = Compiled(headers)
    for k, (each, rows_of) in enumerate(cases):
        codes = forest_of(each).input.matrix(rows_of)
        np.testing.assert_allclose(
            compiled(f"m{k}", "predict", codes), each.predict(rows_of), rtol=1e-12
        )
        assert re.search(r"x\[4\]: 'colour', as codes: 0 is ", headers[k])


@pytest.mark.parametrize("leaves", LEAVES)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@needs_gcc
def test_bounds_of_the_error_are_kept_to_and_not_idle(dtype, leaves):
    model = RandomForestRegressor(9, min_samples_leaf=2, random_state=0).fit(X, 100.0 + Y)
    forest = fp.Forest.from_model(model)
    header = to_c(forest, dtype=dtype, leaves=leaves)
    error = np.abs(Compiled([header])("model", "raw", X) - forest.predict(X.astype(dtype))).max()
    assert error <= header.error_bound
    if leaves in ("int8", "int16"):
        # Half a step for each tree, at most: steps of 1/127 or 1/32767 of half a tree's range.
        widest = np.ptp(forest.scaled_value)
        allowed = 0.5 * 9 * widest / {"int8": 254, "int16": 65534}[leaves]
        assert header.error_bound <= 1.1 * allowed + (1e-3 if dtype == "float32" else 1e-9)
        assert error > 1e-3 * header.error_bound
    # What the comment says is rounded, up.
    (told,) = re.findall(r"differ from the model's by at most ([\d.e+-]+\d)", header)
    assert header.error_bound <= float(told) <= 1.02 * header.error_bound


@needs_gcc
def test_headers_are_clean_under_sanitizers_and_in_two_units(tmp_path):
    models = [forest for model, _ in models_of("sklearn")[:14] for forest in [forest_of(model)]]
    headers = []
    for number, forest in enumerate(models):
        layout, dtype, leaves = WAYS[number % 4]
        headers.append(to_c(forest, f"m{number}", dtype=dtype, layout=layout, leaves=leaves))
        (tmp_path / f"m{number}.h").write_text(headers[-1])
    includes = "".join(f'#include "m{number}.h"\n' for number in range(len(headers)))
    calls = []
    for number, (forest, header) in enumerate(zip(models, headers, strict=True)):
        kind = "float" if "const float *x" in header else "double"
        many = forest.n_outputs > 1
        fill = f"for (i = 0; i < {forest.n_features}; i++) x[i] = (v[r % 7] * (i + r)) / 3;"
        use = f"m{number}_raw(x, y);" if many else f"y[0] = m{number}_raw(x);"
        use += f" s += y[0]; s += m{number}_predict(x{', y' * ('y)' in header and many)});"
        if forest.origin.classes:
            use = f"m{number}_predict_proba(x, y); s += m{number}_predict(x) + y[0];"
        elif many:
            use = f"m{number}_predict(x, y); s += y[0];"
        # Of exactly their size, so that reading or writing beyond them is seen.
        calls.append(
            f"for (r = 0; r < 40; r++) {{ {kind} *x = malloc({forest.n_features} * sizeof *x); "
            f"{kind} *y = malloc({max(forest.n_outputs, len(forest.origin.classes))} * sizeof *y); "
            f"{fill} {use} free(x); free(y); }}\n"
        )
    body = (
        "    const double v[7] = {0, 1, -1, 0.3, 1e30, -1e30, NAN};\n    int r, i; double s = 0;\n"
    )
    unit = f"#include <stdlib.h>\n#include <math.h>\n{includes}double %s(void);\ndouble %s(void)\n"
    unit += "{\n" + body + "".join(calls) + "return s;\n}\n"
    (tmp_path / "one.c").write_text(unit.replace("%s", "one"))
    (tmp_path / "two.c").write_text(unit.replace("%s", "two"))
    (tmp_path / "main.c").write_text(
        "double one(void);\ndouble two(void);\n"
        "int main(void) { double a = one(), b = two(); return !(a == b || a != a); }\n"
    )
    flags = ["-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
    call = [GCC, *STRICT, *flags, "main.c", "one.c", "two.c", "-o", "main", "-lm"]
    done = subprocess.run(call, cwd=tmp_path, capture_output=True, text=True)
    assert not done.returncode, done.stderr[:3000]
    done = subprocess.run([tmp_path / "main"], capture_output=True, text=True)
    assert not done.returncode, done.stderr[:3000]


@needs_gcc
@pytest.mark.filterwarnings("ignore")
def test_sums_need_no_libm(tmp_path):
    lightgbm = pytest.importorskip("lightgbm")
    model = lightgbm.LGBMClassifier(n_estimators=3, verbose=-1).fit(X, Y > 1)
    (tmp_path / "model.h").write_text(to_c(forest_of(model)))
    (tmp_path / "main.c").write_text(
        '#define model_NO_LIBM\n#include "model.h"\n'
        "int main(void) { double x[5] = {0, 0, 0, 0, 0};\n"
        "return model_raw(x) > 1e9 || model_predict(x) > 1; }\n"
    )
    call = [GCC, *STRICT, "-O0", "main.c", "-o", "main"]
    subprocess.run(call, cwd=tmp_path, check=True)
    subprocess.run([tmp_path / "main"], check=True)


@pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++, which is not installed")
def test_headers_are_cpp_too(tmp_path):
    forest = forest_of(models_of("sklearn")[12][0])
    for layout, dtype, leaves in WAYS:
        header = to_c(forest, layout=layout, dtype=dtype, leaves=leaves)
        (tmp_path / "a.cpp").write_text(f"{header}int main() {{ return 0; }}\n")
        call = ["g++", "-std=c++11", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "a.cpp"]
        subprocess.run(call, cwd=tmp_path, check=True)


@needs_gcc
@pytest.mark.filterwarnings("ignore:X has no column names")
def test_constants_names_wide_rows_and_deep_trees():
    constant = built([], base=(2.5,))
    several = built([], base=(2.5, 1.0))
    awkward = built(
        [split(j, float(j), leaf(0.0), leaf(2.0**j)) for j in range(len(AWKWARD))],
        names=(*AWKWARD[:-1], "*/ int evil; /* ??/"),
        n_features=len(AWKWARD),
    )
    wide = built([split(9_999, 0.5, leaf(1.0), leaf(2.0))], n_features=10_000)
    chain = leaf(0.0)
    for depth in range(1, 301):
        chain = split(0, float(depth), chain, leaf(float(depth)))
    deep = built([chain], n_features=1)
    headers, forests_of = [], {}
    for layout in ("tables", "branches"):
        for what, forest in [
            ("constant", constant),
            ("several", several),
            ("awkward", awkward),
            ("wide", wide),
            ("deep", deep),
        ]:
            headers.append(to_c(forest, f"{what}_{layout}", layout=layout))
            forests_of[f"{what}_{layout}"] = forest
    compiled = Compiled(headers)
    for name, forest in forests_of.items():
        rng = np.random.default_rng(0)
        given = rng.uniform(-1, 301 if "deep" in name else 25, size=(200, forest.n_features))
        raw = sums(forest, forest.input.matrix(given))
        np.testing.assert_allclose(compiled(name, "raw", given), raw, atol=1e-9)


def test_nothing_ends_a_comment():
    for name in [*AWKWARD, "*/", "**//**//", "/*/", "????/", "*?/*"]:
        text = comment([f"  x[0]: {quoted(name)}"])
        assert text.isascii()
        assert text.count("*/") == 1
        assert text.count("/*") == 1
        assert "??" not in text


@pytest.mark.parametrize("name", ["", "1a", "a b", "int", "a-b", "é", 7, None, "class", "x" * 61])
def test_names_that_are_none_are_refused(name):
    with pytest.raises(OptionError, match="name must be a name that functions in C"):
        to_c(built([]), name)


@pytest.mark.parametrize(
    "options",
    [{"dtype": "float16"}, {"layout": "table"}, {"leaves": "int4"}, {"dtype": None}],
)
def test_options_that_are_none_are_refused(options):
    (name,) = options
    with pytest.raises(OptionError, match=f"{name} must be "):
        to_c(built([]), **options)


def test_numbers_that_are_too_large_are_refused():
    forest = built([split(0, 0.0, leaf(1e300), leaf(0.0))])
    assert to_c(forest).error_bound < 1e290
    with pytest.raises(OptionError, match="too large for float32"):
        to_c(forest, dtype="float32")


@needs_gcc
@pytest.mark.filterwarnings("ignore")
def test_bytes_are_those_of_the_object_file(tmp_path):
    size = shutil.which("size")
    if size is None:
        pytest.skip("needs binutils")
    for library in ("sklearn", "lightgbm"):
        pytest.importorskip(library)
        for number, (model, _) in enumerate(models_of(library)[::2]):
            forest = forest_of(model)
            header = to_c(forest, dtype="float32", leaves=LEAVES[number % 4])
            if forest.origin.classes:
                use = "void f(const float *x, float *p) { model_predict_proba(x, p); }"
            elif forest.n_outputs > 1:
                use = "void f(const float *x, float *p) { model_predict(x, p); }"
            else:
                use = "float f(const float *x) { return model_predict(x); }"
            (tmp_path / "a.c").write_text(f"{header}{use}\n")
            subprocess.run([GCC, "-Os", "-c", "a.c"], cwd=tmp_path, check=True)
            told = subprocess.run([size, "-A", "a.o"], cwd=tmp_path, capture_output=True, text=True)
            parts = [line.split() for line in told.stdout.splitlines()]
            parts = [part for part in parts if part and part[0].startswith((".text", ".rodata"))]
            rodata = sum(int(part[1]) for part in parts if part[0].startswith(".rodata"))
            total = sum(int(part[1]) for part in parts)
            # A table begins at a multiple of 32 bytes, at most, and there are ten of them.
            assert header.table_bytes <= rodata <= header.table_bytes + 10 * 31
            # Code for this processor is larger than for a Cortex-M, which it is counted for.
            assert abs(total - header.n_bytes) <= 350


ARM = "arm-none-eabi-gcc"
CORTEX_M = [["-mcpu=cortex-m0"], ["-mcpu=cortex-m4", "-mfloat-abi=hard", "-mfpu=fpv4-sp-d16"]]


@pytest.mark.skipif(shutil.which(ARM) is None, reason=f"needs {ARM}, which is not installed")
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("library", LIBRARIES)
def test_a_microcontroller_needs_no_more_than_is_said(library):
    if library != "sklearn":
        pytest.importorskip(library)
    for model, _ in models_of(library):
        for dtype in ("float32", "float64"):
            for leaves in (None, "int8"):
                header = to_c(forest_of(model), dtype=dtype, leaves=leaves)
                for processor in CORTEX_M:
                    taken = object_bytes(header, "model", ARM, "-mthumb", *processor)
                    assert header.table_bytes < taken <= header.n_bytes
                    # Nor is far more said than needed.
                    assert header.n_bytes - taken < 250


def test_a_pruned_model_has_it_too_and_a_header_is_pickled():
    model = make_pipeline(StandardScaler(), RandomForestRegressor(5, random_state=0)).fit(X, Y)
    small = fp.prune(model, X, Y, max_nodes=30)
    header = small.to_c("tiny", dtype="float32", leaves="int8")
    assert header == to_c(small.forest, "tiny", dtype="float32", leaves="int8")
    again = pickle.loads(pickle.dumps(header))
    assert (again, again.n_bytes, again.error_bound) == (header, header.n_bytes, header.error_bound)
    assert small.to_c(layout="branches").n_bytes is None
    assert response.predicted(small.forest.origin, np.zeros(1)) == 0.0
