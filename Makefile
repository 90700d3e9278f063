# Every target sets up what it needs: .venv from hash-pinned requirements, and Java 17+ where Spark runs.
SHELL := bash
PYTHON ?= python3
NAME ?= all
ARGS ?=
# How many processes run the tests, each with its own Spark.
JOBS ?= 2

VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
PYTEST := $(BIN)/python -m pytest --dist worksteal

.DEFAULT_GOAL := help
.PHONY: help run check test lint types imports pure unit docs hooks soak fuzz matrix bench compile java clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: $(READY) java ## run 16 windows over a year of real flights, beside Spark's own windows
	@$(BIN)/python -m panes.demo $(ARGS)

check: lint types imports pure ## the inner loop: everything that needs no Spark, in under a minute

test: lint types imports unit ## everything: lint, types, import contract, doctests, tests, coverage

lint: $(READY) ## ruff: style and formatting
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(READY) ## mypy, strict
	$(BIN)/mypy

imports: $(READY) ## the import contract: which room may import which
	$(BIN)/lint-imports

pure: $(READY) ## doctests and tests that need no Spark, with few examples; make pure ARGS='-k hopping'
	$(PYTEST) -n $(JOBS) -m 'not spark and not soak' --hypothesis-profile check $(ARGS)

# With ARGS only some tests run, and their coverage says nothing.
unit: $(READY) java ## all doctests and tests, with coverage; make unit ARGS='-k hopping'
	$(PYTEST) -n $(JOBS) $(if $(ARGS),$(ARGS),--cov --cov-report=term:skip-covered)

docs: $(READY) ## build the documentation site in site/, offline; broken links fail
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	@echo "open site/index.html"

hooks: $(READY) ## install the git hooks: lint, types and imports before each commit
	$(BIN)/pre-commit install

soak: $(READY) java ## tests that take very long: streams simulated, and killed again and again, many examples, generated code
	$(BIN)/python -m tests.state.simulated --seconds 600 --seed $$((1000000 + RANDOM * 1000))
	$(PYTEST) -m soak --hypothesis-profile soak $(ARGS)
	$(PYTEST) -n $(JOBS) -m 'not spark and not soak' --hypothesis-profile soak $(ARGS)
	PANES_TESTS_CODEGEN=1 $(PYTEST) -n $(JOBS) -m 'spark and not soak' --hypothesis-profile soak $(ARGS)

fuzz: $(READY) ## feed random texts, values and bytes to everything that reads them; make fuzz ARGS='--seconds 3600'
	$(BIN)/python -m tests.fuzz $(ARGS)

matrix: $(READY) java ## every verb on every version of PySpark and Python; make matrix ARGS='--spark 4.1 --python 3.12'
	$(BIN)/python -m tests.spark.matrix $(ARGS)

bench: $(READY) java ## benchmarks; make bench NAME=price ARGS='--events 1000000'
	$(BIN)/python -m benchmarks $(NAME) $(ARGS)

compile: $(READY) ## pin the requirements again
	$(BIN)/uv pip compile --upgrade --quiet --no-header --no-emit-index-url --no-annotate --generate-hashes \
		--universal --python-version 3.11 --all-extras --group dev pyproject.toml -o requirements/dev.txt
	echo uv | $(BIN)/uv pip compile --upgrade --quiet --no-header --no-emit-index-url --no-annotate --generate-hashes \
		--universal --python-version 3.11 - -o requirements/uv.txt

java: # "17.0.15" is Java 17, "1.8.0_412" is Java 8
	@version=$$("$${JAVA_HOME:+$$JAVA_HOME/bin/}java" -version 2>&1 | sed -n 's/.*version "\(1\.\)\{0,1\}\([0-9]*\).*/\2/p' | head -1); \
	if [ "$${version:-0}" -lt 17 ]; then \
		echo "Spark requires Java 17+$${version:+; this machine has Java $$version}. Install it, for example with 'apt-get install openjdk-17-jre-headless' or 'brew install openjdk@17', and set JAVA_HOME if it is not on the PATH." >&2; \
		exit 1; \
	fi

clean: ## remove the environment and all generated files
	rm -rf $(VENV) .matrix .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis .coverage site spark-warehouse

$(READY): requirements/dev.txt requirements/uv.txt pyproject.toml
	@test -x $(BIN)/pip || $(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); exit 1; }
	@$(BIN)/python -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "Panes requires Python 3.11+. Install it, then run 'make clean' and 'make PYTHON=python3.11 ...'." >&2; exit 1; }
	@echo "setting up $(VENV) ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/uv.txt
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --require-hashes -r requirements/dev.txt
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation -e .
	@touch $@
