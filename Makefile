# `make demo` and `make test` need Python 3.11 or newer and make, nothing else.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test quick lint bench docs soak peers clean

.venv/made:
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "hubbub needs Python 3.11 or newer; found " + sys.version.split()[0] + ". Name one with: make PYTHON=python3.12")'
	@$(PYTHON) -m venv .venv
	@touch $@

.venv/demo: .venv/made pyproject.toml
	@echo "Installing hubbub into .venv ..." >&2
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[demo]'
	@touch $@

.venv/dev: .venv/made pyproject.toml
	@echo "Installing hubbub and its test tools into .venv ..." >&2
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $@ .venv/demo

demo: .venv/demo
	@$(BIN)/hubbub demo

test: .venv/dev
	$(BIN)/python -m pytest -n 2 -m 'not soak' --durations=20

# Under a minute: the house, SQL, trees and texts of all golden questions, prices, budgets.
QUICK := tests/test_house.py tests/test_arguments.py tests/sql tests/tables tests/golden/test_recorded.py tests/queries \
  tests/ledger/test_budget.py tests/ledger/test_limits.py tests/ledger/test_life.py
quick: .venv/dev
	$(BIN)/python -m pytest -n 2 -m 'not soak' -k 'not answers_of' --ignore=tests/sql/test_growth.py --ignore=tests/sql/test_lineage.py $(QUICK)

lint: .venv/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy --python-version 3.11
	$(BIN)/mypy --python-version 3.13
	$(BIN)/lint-imports

# The large counts: a thousand kills, hundreds of seeds, 1e5 runs.
soak: .venv/dev
	$(BIN)/python -m pytest -m soak

# Rivals live in environments of their own under .venvs/.
peers: .venv/dev
	$(BIN)/python -m benchmarks.peers install

bench: .venv/dev
	$(BIN)/python -m benchmarks

docs: .venv/dev
	$(BIN)/sphinx-build -q -W --keep-going -b html docs docs/_build/html
	@echo "docs/_build/html/index.html"

clean:
	rm -rf .venv .venvs docs/_build .pytest_cache .mypy_cache .ruff_cache .hypothesis
