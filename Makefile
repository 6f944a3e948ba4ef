# Every target sets up what it needs: Python, make and a package index are enough.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
BASE   := $(VENV)/.ready-base
READY  := $(VENV)/.ready
WORKERS ?= 2

.PHONY: help install test test-all lint reproduce reproduce-full gpu-studies bench bench-disk campaign docs docs-serve figures clean

help:
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 18

# What the paper's studies need: the package and its plots.
$(BASE): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet -e '.[plots]'
	touch $(BASE)

# The rest: torch, Gymnasium and the tools of the tests.
$(READY): $(BASE) constraints.txt
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[dev]'
	touch $(READY)

install: $(READY)  ## create .venv with everything for the tests

test: lint  ## rules, types, import contract and the tests that are not slow; four minutes on two cores
	$(BIN)/pytest -n $(WORKERS) --dist loadfile

test-all: lint  ## the same with the slow tests: site, browser, games, campaign, long fits
	$(BIN)/pytest -n $(WORKERS) --dist loadfile -m ''

lint: $(READY)  ## ruff, mypy and the import contract
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

reproduce: $(BASE)  ## the paper's table on 12 seeds, beside the paper's numbers; under two minutes
	$(BIN)/craftrl reproduce table1 --seeds 12 --workers $(WORKERS) --out results/table1

reproduce-full: $(BASE)  ## the paper's 20 seeds, error growth and the figures
	$(BIN)/craftrl reproduce table1 --seeds 20 --workers $(WORKERS) --out results/table1-full
	$(BIN)/craftrl reproduce error-growth --seeds 20 --workers $(WORKERS) --out results/error-growth
	$(BIN)/craftrl reproduce figures --out results/figures

gpu-studies: $(READY)  ## CRAFT's rows on images, all studies side by side on one GPU
	PATH=$(BIN):$$PATH sh studies/on_one_gpu.sh results/gpu-studies

bench: $(READY)  ## the exact engine against NumPy and the literal algorithm
	$(BIN)/python -m benchmarks.exact_engine

bench-disk: $(READY)  ## fits of datasets on disk, up to one million trajectories
	$(BIN)/python -m benchmarks.scaling

campaign: $(READY)  ## damage files, give odd arguments, stop commands, fill disks, limit memory, compare bits; hours
	$(BIN)/python -m campaign --workers $(WORKERS)

docs: $(READY)  ## the documentation as a site: open results/site/index.html
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

docs-serve: $(READY)  ## the same at http://127.0.0.1:8000, with search, and built again when a page changes
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs serve

figures: $(BASE)  ## draw the figures of the documentation again
	$(BIN)/craftrl reproduce figures --out docs/img

clean:  ## remove the environment and all results
	rm -rf $(VENV) results
