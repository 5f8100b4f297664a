# `make demo` and `make test` need Python 3.11 or newer and make, nothing else.
PYTHON ?= python3
BIN := .venv/bin

# A command that a test starts would compile hubbub anew each time.
unexport PYTHONDONTWRITEBYTECODE

# Tests' files lie in memory where there is room: a charge waits for the disk, about which no test asks.
MEMORY := $(shell test -w /dev/shm && test "$$(df -Pk /dev/shm | awk 'END { print $$4 }')" -gt 3000000 && echo /dev/shm)
# Another user of the machine, as whom some tests run, passes through the folder.
PYTEST = folder=$$(mktemp -d $(MEMORY:%=-p %)) && chmod 711 "$$folder" && trap 'rm -rf "$$folder"' EXIT && TMPDIR=$$folder $(BIN)/python -m pytest

.PHONY: demo test quick plain browser lint bench docs soak peers vendor package install dist clean

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

# More tests at a time than the two cores of CI: some test often waits for another program, or a clock.
test: .venv/dev
	$(PYTEST) -n 3 --dist worksteal -m 'not soak and not browser' --durations=20

# The plain ways alone (docs/contributing/quick-paths.md): a small part of the suite, for CI; all of it with PLAIN=tests.
PLAIN ?= tests/engines/test_plain.py tests/engines/test_lists.py tests/engines/test_columns_alone.py tests/noise/test_switches.py
plain: .venv/dev
	export HUBBUB_PLAIN=1; $(PYTEST) -n 2 -m 'not soak and not browser and not package' $(PLAIN)

# The pages in a real browser, Debian's chromium; without one the tests skip and say so.
browser: .venv/dev
	@if ! command -v chromium >/dev/null && command -v apt-get >/dev/null && [ "$$(id -u)" = 0 ]; then \
	  (apt-get update -qq && apt-get install -y -qq chromium fonts-dejavu-core) >/dev/null 2>&1 || echo "no chromium to be had" >&2; fi
	$(PYTEST) -n 2 --dist loadgroup -m browser -rs --durations=5 tests/browser

# Under a minute: the house, SQL, trees and texts of all golden questions, prices, budgets.
QUICK := tests/test_house.py tests/test_arguments.py tests/sql tests/tables tests/golden/test_recorded.py tests/queries \
  tests/ledger/test_budget.py tests/ledger/test_limits.py tests/ledger/test_life.py
quick: .venv/dev
	$(PYTEST) -n 2 -m 'not soak' -k 'not answers_of' --ignore=tests/sql/test_growth.py --ignore=tests/sql/test_lineage.py $(QUICK)

lint: .venv/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy --python-version 3.11
	$(BIN)/mypy --python-version 3.13
	$(BIN)/lint-imports

# The large counts: a thousand kills, hundreds of seeds, 1e5 runs; and the whole suite, in whose tests they are larger too.
soak: .venv/dev
	export HUBBUB_SOAK=1; $(PYTEST) -m 'not browser and not package'

# Wheel and sdist: built twice, installed alone, at both ends of their versions, types and all. Leaves them in dist/.
package: .venv/dev
	HUBBUB_PACKAGE=1 $(BIN)/python -m pytest -m package tests/package --durations=10

# The two files, each installed alone: two minutes of it, for CI.
install: .venv/dev
	HUBBUB_PACKAGE=1 $(BIN)/python -m pytest -m package tests/package -k 'two_builds or empty_environment or tried' --durations=5

# The two files alone.
dist: .venv/dev
	HUBBUB_PACKAGE=1 $(BIN)/python -m pytest -m package tests/package -k two_builds

# Rivals live in environments of their own under .venvs/.
peers: .venv/dev
	$(BIN)/python -m benchmarks.peers install

bench: .venv/dev
	$(BIN)/python -m benchmarks

docs: .venv/dev
	$(BIN)/sphinx-build -q -W --keep-going -b html docs docs/_build/html
	@echo "docs/_build/html/index.html"

vendor:  # builds the editor anew from its lock file; `sh editor/build.sh check` compares
	sh editor/build.sh

clean:
	rm -rf .venv .venvs docs/_build .pytest_cache .mypy_cache .ruff_cache .hypothesis
