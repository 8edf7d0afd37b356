# `make demo` and `make test` do everything from a bare clone: environment, install, run.
PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
export OMP_NUM_THREADS ?= 1
export OPENBLAS_NUM_THREADS ?= 1
export NUMBA_NUM_THREADS ?= 1

.PHONY: install demo test check bench clean

install: $(STAMP)

# The stamp is newer than what it was made from, so a second run installs nothing.
$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt setuptools wheel
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[silo,fleet,studio,import,arena,dev]'
	touch $(STAMP)

demo: $(STAMP)
	$(BIN)/tacit demo --out tacit-demo

test: $(STAMP)
	$(BIN)/python -m pytest -n 2 --dist loadgroup

check: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy --strict src

# The quick ones, each a ratio or a rate measured in one run; the accuracy tables take up to an
# hour each and are started by hand: local_published, local_sound, fleet_*, silo_accuracy.
bench: $(STAMP)
	for name in accounting fleet_shuffler local_device; do \
	  echo "== $$name"; $(BIN)/python benchmarks/$$name.py || exit 1; done

clean:
	rm -rf $(VENV) .venv-newest
