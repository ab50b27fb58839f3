# Everything runs in .venv, which the first command makes and the others reuse.
#   PYTHON=python3.12 make book     takes another interpreter
.DEFAULT_GOAL := help
SHELL := /bin/sh
PYTHON ?= python3
BIN := .venv/bin
SITE := _build/html/book/index.html
PORT ?= 8000

# One BLAS thread per process: chapters and tests run side by side, and results do not depend on it.
export OMP_NUM_THREADS ?= 1
export OPENBLAS_NUM_THREADS ?= 1
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PYTHONUTF8 := 1

# A virtual environment of somebody else's must not leak in, nor the wish to compile everything anew.
unexport VIRTUAL_ENV PYTHONHOME PYTHONPATH PYTHONDONTWRITEBYTECODE

TESTS := $(BIN)/python -m pytest
REST := slow or site or browser or notebook or claims
QUICK := not ($(REST))

.PHONY: help book page live test test-rest test-all check format claims mutants figures bench serve clean lock notebooks pdf offline linkcheck attacks verify-all verify-slice

help:
	@echo "make book       build the site into _build/html"
	@echo "make test       the quick tests (no built site needed)"
	@echo "make test-all   all tests: also slow ones, the site, a browser, every chapter, the ledger"
	@echo "make test-rest  what make test leaves out"
	@echo "make check      lint, format, types, spelling, chapters, workflows"
	@echo "make format     format the code, cells of chapters included"
	@echo "make page PAGE=notebooks/model.md   build one page"
	@echo "make claims     check every row of the ledger (ID=lm:finite for one)"
	@echo "make mutants    change every formula of the ledger: its check must fail"
	@echo "make figures    run the experiments at a small size and draw the figures"
	@echo "make bench      measure rounds per second"
	@echo "make verify-all re-run every stored cell that VERIFIED.json does not name: resumed where it stopped"
	@echo "make verify-slice SLICE=3/26        re-run every cell of slice 3 of 26"
	@echo "make attacks    the tests that try many bad inputs, at their full counts"
	@echo "make serve      build and serve the site on port $(PORT)"
	@echo "make live       fetch Python for the page: chapters then run where they are read (needs npm)"
	@echo "make notebooks  plain notebooks for Colab into _build/notebooks"
	@echo "make pdf        the whole book as one PDF, _build/book.pdf (needs Chromium)"
	@echo "make offline    the whole site as one file to unpack and read anywhere, _build/book.zip"
	@echo "make linkcheck  ask every outside link whether it is still there"
	@echo "make lock       write the locks anew from what is installed in .venv"
	@echo "make clean      remove what was built (keeps .venv)"

.venv/.book: requirements.txt .ci/tools.txt pyproject.toml .ci/venv
	@PYTHON="$(PYTHON)" sh .ci/venv requirements.txt
	@touch $@

.venv/.test: requirements.txt requirements-test.txt .ci/tools.txt pyproject.toml .ci/venv
	@PYTHON="$(PYTHON)" sh .ci/venv requirements.txt requirements-test.txt
	@touch .venv/.book $@

book: .venv/.book
	@$(BIN)/python -m book.build

# What a target must be told is asked for before anything is installed.
page:
	@test -n "$(PAGE)" || { echo "make page: say which, such as make page PAGE=notebooks/model.md"; exit 2; }
	@$(MAKE) -s .venv/.book
	@$(BIN)/python -m book.build "$(PAGE)"

test: .venv/.test
	$(TESTS) -n 2 -m "$(QUICK)" tests

# Both halves, with the lines of the package that they run; floors are in pyproject.toml.
COVER := --cov=banditlib --cov-report=
test-all: .venv/.test book
	$(TESTS) -n 2 $(COVER) -m "$(QUICK)" tests
	$(TESTS) -n 2 $(COVER) --cov-append --dist loadgroup --durations=15 -m "$(REST)" tests
	$(BIN)/python .ci/floors.py

# What make test leaves out. Tests of one group share a browser or an environment and stay on one worker.
test-rest: .venv/.test book
	$(TESTS) -n 2 --dist loadgroup --durations=15 -m "$(REST)" tests

check: .venv/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -q tests/repo/test_imports.py
	$(BIN)/codespell
	$(BIN)/python .ci/chapters.py
	$(BIN)/python -m book.typed_numbers
	$(BIN)/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml
	$(BIN)/zizmor --offline --quiet .github/workflows

format: .venv/.test
	$(BIN)/ruff format .
	$(BIN)/python .ci/chapters.py --fix

claims: .venv/.test
	$(BIN)/python -m book.claims $(ID)

# Every change of every formula that a check touches; what was tried before is remembered in _build.
mutants: .venv/.test
	$(BIN)/python -m book.claims --mutants $(ID)

figures: .venv/.book
	$(BIN)/banditlib reproduce --scale smoke
	@echo "They are in out/. At full size: $(BIN)/banditlib reproduce NAME --scale full ($(BIN)/banditlib list names them)."

bench: .venv/.book
	$(BIN)/banditlib bench

# Pyodide and the wheels with which chapters run in the page; the next make book uses them.
live: .venv/.book
	$(BIN)/python -m book.extensions.live_files

# Their figures are written to tests/attacks.json.
attacks: .venv/.test
	BANDITLIB_ATTACKS=full $(TESTS) -m attack tests

# Stored cells computed again and compared: those that data/results/VERIFIED.json does not name under
# this source and numpy (all of them, hours: banditlib verify --all --fresh), or a slice of all.
verify-all: .venv/.book
	$(BIN)/banditlib verify --all

verify-slice:
	@test -n "$(SLICE)" || { echo "make verify-slice: say which, such as make verify-slice SLICE=3/26"; exit 2; }
	@$(MAKE) -s .venv/.book
	$(BIN)/banditlib verify --all --slice "$(SLICE)"

serve: book
	@echo "the book is at http://localhost:$(PORT)/"
	$(BIN)/python -m http.server --bind 127.0.0.1 --directory _build/html $(PORT)

notebooks: .venv/.test
	$(BIN)/python -m book.build --notebooks

pdf: .venv/.test book
	$(BIN)/python -m book.pdf

offline: book
	rm -f _build/book.zip
	$(BIN)/python -m zipfile -c _build/book.zip _build/html

linkcheck: .venv/.book
	$(BIN)/python -m book.build --linkcheck

lock: .venv/.test
	$(BIN)/python .ci/lock.py

clean:
	rm -rf _build out .coverage .pytest_cache .mypy_cache .ruff_cache .hypothesis
