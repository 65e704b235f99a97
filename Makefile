# Every target makes .venv and installs what it needs; a second call installs nothing.
PYTHON ?= python3
BIN := .venv/bin
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: demo test test-all test-oldest docs dist bench frontier paper clean

demo: .venv/.demo
	$(BIN)/python -m forestprune demo --out build/demo --force

# Where two processes share two cores, threads of libraries that wait for each other only cost time.
test test-all test-oldest: export OMP_NUM_THREADS = 1

# Every behaviour, in minutes. Kernels are compiled while types are checked: by then pytest's two
# processes find them compiled. If that fails, the tests will tell why.
test: .venv/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python tools/check_imports.py
	@$(BIN)/python tests/compile_kernels.py deep & \
	  $(BIN)/python tests/compile_kernels.py shallow two & \
	  $(BIN)/mypy; status=$$?; wait; exit $$status
	$(BIN)/python -m pytest -n 2

# What `make test` leaves out: pages and pictures, the browser, the paper's experiments, many more
# cases of what is drawn or enumerated, and the kernels interpreted.
test-all: .venv/.test docs demo dist
	FORESTPRUNE_TESTS=deep $(BIN)/python -m pytest -n 2 -m "long or deep or hypothesis"
	NUMBA_DISABLE_JIT=1 $(BIN)/python -m pytest -n 2 -m "" tests

# skl2onnx is left out: its old versions need older versions of more than the package does. And what
# pages show is what the newest libraries give: the models that older ones train are others.
test-oldest: .venv-oldest/.done
	.venv-oldest/bin/python -m pytest -n 2 -m "" --ignore tests/interop/test_onnx.py --ignore tests/docs/test_pages.py

# Into build/site, to be read without a server or a network. A warning is an error.
docs: .venv/.docs
	$(BIN)/python -m sphinx --quiet --fresh-env --fail-on-warning --keep-going -c docs -d build/doctrees . build/site
	@echo "Open build/site/index.html"

# The sdist and the wheel, into dist, both installed into empty environments and used there.
dist: .venv/.dist
	rm -rf dist
	@mkdir -p build
	$(BIN)/python -m build --outdir dist > build/dist.log
	$(BIN)/python tools/smoke.py dist

bench: .venv/.bench
	$(BIN)/python benchmarks/cold_start.py
	$(BIN)/python benchmarks/encoding.py
	$(BIN)/python benchmarks/timing.py
	$(BIN)/python benchmarks/subtree_timing.py
	$(BIN)/python benchmarks/interop.py
	$(BIN)/python benchmarks/boosted_timing.py
	$(BIN)/python benchmarks/split_timing.py
	$(BIN)/python benchmarks/loss_timing.py
	$(BIN)/python benchmarks/one_row.py
	$(BIN)/python benchmarks/scale.py

# Some hours on two cores; needs the data sets. What was done is kept, so it can be stopped.
frontier: .venv/.bench
	$(BIN)/python benchmarks/frontier.py
	$(BIN)/python benchmarks/frontier_report.py
	$(BIN)/python benchmarks/classification.py
	$(BIN)/python benchmarks/classification_report.py
	$(BIN)/python benchmarks/split_report.py
	$(BIN)/python benchmarks/losses.py
	$(BIN)/python benchmarks/lop.py

# The paper's experiments. MODE=full takes about three hours on two cores and needs the data sets;
# what was done is kept, so it can be stopped.
MODE ?= full
paper: .venv/.paper
	$(BIN)/python benchmarks/paper/run.py $(if $(filter quick,$(MODE)),--quick)

clean:
	rm -rf .venv .venv-oldest .mypy_cache .ruff_cache .pytest_cache .hypothesis build dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

.venv/.core: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or newer is needed, this is " + sys.version if sys.version_info < (3, 11) else 0)'
	@echo "Setting up .venv: a minute or two."
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --editable .
	@touch $@

.venv/.%: .venv/.core
	@echo "Installing into .venv what else is needed."
	$(BIN)/python -m pip install --quiet --editable ".[$*]"
	@touch $@

.venv-oldest/.done: pyproject.toml tests/oldest.txt
	@echo "Setting up .venv-oldest: some minutes."
	$(PYTHON) -m venv .venv-oldest
	.venv-oldest/bin/python -m pip install --quiet --constraint tests/oldest.txt --editable ".[catboost,data,lightgbm,plot,report,skops,xgboost]" hypothesis polars pytest pytest-xdist selenium
	@touch $@
