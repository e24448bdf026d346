# `make demo` and `make test` are all that a new user needs: each creates .venv from the lock if it is missing.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
DBT := $(BIN)/dbt
STAMP := $(VENV)/.installed

export DBT_PROFILES_DIR := .
export DBT_SEND_ANONYMOUS_USAGE_STATS := false

.DEFAULT_GOAL := help
.PHONY: help demo test audit lint bench lock clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "make %-6s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(STAMP) ## build the demo clinic, then say what was released and how to query it
	@$(BIN)/python scripts/demo.py

test: $(STAMP) ## run the tests (pytest, which drives dbt in this process)
	@$(BIN)/python -m pytest -n 2 --dist loadfile

audit: $(STAMP) ## run the long statistical checks
	@$(BIN)/python -m pytest -m audit

lint: $(STAMP) ## ruff, mypy, and a strict parse of this project and of integration_tests
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/python scripts/strict_parse.py

bench: $(STAMP) ## run the measurements beside peers
	@for script in benchmarks/*.py; do echo "== $$script"; $(BIN)/python "$$script" || exit 1; done

lock: ## resolve pyproject.toml anew into requirements.lock (needs uv on the PATH)
	@echo 'setuptools>=77' | uv pip compile pyproject.toml - --all-extras --universal --python-version 3.11 \
	    --generate-hashes --no-strip-extras --no-annotate --no-header --no-emit-index-url --no-emit-find-links --quiet \
	    --output-file requirements.lock

clean: ## remove .venv, the demo's warehouse and everything dbt wrote
	@rm -rf $(VENV) warehouse/* target logs integration_tests/target integration_tests/logs integration_tests/dbt_packages

$(STAMP): requirements.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
	    || { echo "Veil needs Python 3.11 or newer: make $(MAKECMDGOALS) PYTHON=/path/to/python3.11"; exit 1; }
	@echo "Installing the locked requirements into $(VENV) (once) …"
	@$(PYTHON) -m venv --clear $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --requirement requirements.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $(STAMP)
