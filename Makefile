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

# A virtual environment of somebody else's must not leak in.
unexport VIRTUAL_ENV PYTHONHOME PYTHONPATH

TESTS := $(BIN)/python -m pytest
REST := slow or site or browser or notebook or claims
QUICK := not ($(REST))

.PHONY: help book page test test-rest test-all check format claims figures bench serve clean lock notebooks pdf linkcheck

help:
	@echo "make book       build the site into _build/html"
	@echo "make test       the quick tests (no built site needed)"
	@echo "make test-all   all tests: also slow ones, the site, a browser, every chapter, the ledger"
	@echo "make check      lint, format, types, spelling, chapters, workflows"
	@echo "make format     format the code, cells of chapters included"
	@echo "make page PAGE=notebooks/model.md   build one page"
	@echo "make claims     check every row of the ledger (ID=lm:finite for one)"
	@echo "make figures    run the experiments at a small size and draw the figures"
	@echo "make bench      measure rounds per second"
	@echo "make serve      build and serve the site on port $(PORT)"
	@echo "make notebooks  plain notebooks for Colab into _build/notebooks"
	@echo "make pdf        the whole book as one PDF, _build/book.pdf (needs Chromium)"
	@echo "make clean      remove what was built (keeps .venv)"

.venv/.book: requirements.txt pyproject.toml .ci/venv
	@PYTHON="$(PYTHON)" sh .ci/venv "paper,book"
	@touch $@

.venv/.test: requirements.txt pyproject.toml .ci/venv
	@PYTHON="$(PYTHON)" sh .ci/venv "paper,book,test,cluster"
	@touch .venv/.book $@

book: .venv/.book
	@$(BIN)/python book/build.py

page: .venv/.book
	@test -n "$(PAGE)" || { echo "make page: say which, such as make page PAGE=notebooks/model.md"; exit 2; }
	@$(BIN)/python book/build.py "$(PAGE)"

test: .venv/.test
	$(TESTS) -n 2 -m "$(QUICK)" tests

test-all: test test-rest

# What make test leaves out. Tests of one group share a browser or an environment and stay on one worker.
test-rest: .venv/.test book
	$(TESTS) -n 2 --dist loadgroup --durations=15 -m "$(REST)" tests

check: .venv/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/codespell
	$(BIN)/python .ci/chapters.py
	$(BIN)/python book/typed_numbers.py
	$(BIN)/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml
	$(BIN)/zizmor --offline --quiet .github/workflows

format: .venv/.test
	$(BIN)/ruff format .
	$(BIN)/python .ci/chapters.py --fix

claims: .venv/.test
	$(BIN)/python book/claims $(ID)

figures: .venv/.book
	$(BIN)/banditlib reproduce --scale smoke
	@echo "They are in out/. At full size: banditlib reproduce NAME --scale full (banditlib list names them)."

bench: .venv/.book
	$(BIN)/banditlib bench

serve: book
	@echo "the book is at http://localhost:$(PORT)/"
	$(BIN)/python -m http.server --directory _build/html $(PORT)

notebooks: .venv/.test
	$(BIN)/python book/build.py --notebooks

pdf: .venv/.test book
	$(BIN)/python book/pdf.py

linkcheck: .venv/.book
	$(BIN)/python book/build.py --linkcheck

lock: .venv/.test
	$(BIN)/python .ci/lock.py

clean:
	rm -rf _build out .pytest_cache .mypy_cache .ruff_cache .hypothesis
