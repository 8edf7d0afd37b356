# `make demo` and `make test` do everything from a bare clone: environment, install, run.
PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
# Modules are compiled when they are first imported: most of what is installed never is.
PIP = $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile
export OMP_NUM_THREADS ?= 1
export OPENBLAS_NUM_THREADS ?= 1
export NUMBA_NUM_THREADS ?= 1
# Tests start some hundreds of processes: without compiled modules on disk each of them compiles
# PyTorch, Flower or JAX anew, which takes most of its time.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: install demo test test-quick test-newer check docs bench clean

install: $(STAMP)

# The stamp is newer than what it was made from, so a second run installs nothing.
$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(PIP) -c constraints.txt setuptools wheel
	$(PIP) -c constraints.txt -e '.[all,dev]'
	touch $(STAMP)

demo: $(STAMP)
	$(BIN)/tacit demo --out tacit-demo

test: $(STAMP)
	$(BIN)/python -m pytest -n 3 --dist loadfile --no-loadscope-reorder

# The daily loop: everything but what takes a second or more.
test-quick: $(STAMP)
	$(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder -m "not slow and not seconds"

# Without the secure engine, whose wheels end at Python 3.11, and without PyTorch, which comes with
# gigabytes of GPU packages there: make test-newer PYTHON=python3.13
test-newer:
	$(PYTHON) -m venv .venv-newer
	.venv-newer/bin/python -m pip install --quiet --disable-pip-version-check --no-compile \
	  -e '.[fleet,studio,charts,import,postgres,dev]'
	TACIT_LEFT_OUT="networks silo arena" .venv-newer/bin/python -m pytest -n 2 --dist loadfile \
	  --no-loadscope-reorder -m "not slow and not silo" --ignore tests/silo

check: $(STAMP) docs
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# The site, strictly and without a network, into site/.
docs: $(STAMP)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict

# The quick ones, each a ratio or a rate measured in one run. Accuracies are measured by the suites
# of `tacit arena run`.
bench: $(STAMP)
	for name in accounting fleet_shuffler local_device; do \
	  echo "== $$name"; $(BIN)/python benchmarks/$$name.py || exit 1; done

clean:
	rm -rf $(VENV) .venv-newest .venv-newer site
