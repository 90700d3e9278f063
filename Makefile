# Every target sets up what it needs: .venv from hash-pinned requirements, and a look for Java 17 or newer.
SHELL := bash
PYTHON ?= python3
NAME ?= all
ARGS ?=
# How many processes run the tests, each with a Spark of its own.
JOBS ?= 2

VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.DEFAULT_GOAL := help
.PHONY: help run test lint types imports unit soak bench compile java clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: $(READY) java ## answer 16 windows over a year of real flights, beside Spark's own windows
	@$(BIN)/python -m panes.demo $(ARGS)

test: lint types imports unit ## lint, strict types, import contract, doctests and tests

lint: $(READY) ## ruff: style and formatting
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(READY) ## mypy, strict
	$(BIN)/mypy

imports: $(READY) ## which room may import which
	$(BIN)/lint-imports

unit: $(READY) java ## doctests and tests; make unit ARGS='-k hopping'
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal $(ARGS)

soak: $(READY) java ## what takes very long: streams killed again and again
	$(BIN)/python -m pytest -m soak --hypothesis-profile soak $(ARGS)

bench: $(READY) java ## benchmarks; make bench NAME=price ARGS='--events 1000000'
	$(BIN)/python -m benchmarks $(NAME) $(ARGS)

compile: $(READY) ## pin the requirements anew
	$(BIN)/uv pip compile --upgrade --quiet --no-header --no-emit-index-url --no-annotate --generate-hashes \
		--universal --python-version 3.11 --all-extras --group dev pyproject.toml -o requirements/dev.txt
	echo uv | $(BIN)/uv pip compile --upgrade --quiet --no-header --no-emit-index-url --no-annotate --generate-hashes \
		--universal --python-version 3.11 - -o requirements/uv.txt

java: # the version is the first number of the quoted one, "17.0.15", or the second of "1.8.0_412"
	@version=$$("$${JAVA_HOME:+$$JAVA_HOME/bin/}java" -version 2>&1 | sed -n 's/.*version "\(1\.\)\{0,1\}\([0-9]*\).*/\2/p' | head -1); \
	if [ "$${version:-0}" -lt 17 ]; then \
		echo "Spark needs Java 17 or newer$${version:+ and this machine has Java $$version}: install it, for example with 'apt-get install openjdk-17-jre-headless' or 'brew install openjdk@17', and set JAVA_HOME if it is not on the PATH." >&2; \
		exit 1; \
	fi

clean: ## remove the environment and everything made by the tools
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis spark-warehouse

$(READY): requirements/dev.txt requirements/uv.txt pyproject.toml
	@test -x $(BIN)/pip || $(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); exit 1; }
	@$(BIN)/python -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "Panes needs Python 3.11 or newer: install it, then run 'make PYTHON=python3.11 ...' after 'make clean'." >&2; exit 1; }
	@echo "setting up $(VENV) ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/uv.txt
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --require-hashes -r requirements/dev.txt
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation -e .
	@touch $@
