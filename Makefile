# The README's two commands are `make rehearse` and `make test`; each sets up what it needs.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STACK  ?= dev
# Each worker has a control plane of its own, of about 1 GB.
WORKERS ?= 2
# Of the page of figures; all of them when empty.
SECTIONS ?=

.PHONY: setup rehearse test lint bench docs-reference types lock clean

setup: $(VENV)/.installed
	@$(BIN)/python -m persia_infra.rehearsal.toolchain

rehearse: setup
	@$(BIN)/persia-infra rehearse $(STACK)

test: setup
	@$(BIN)/python -m tests.support.tools
	@$(BIN)/python -m pytest --numprocesses $(WORKERS)

lint: $(VENV)/.installed
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check
	@$(BIN)/pyright
	@$(BIN)/lint-imports --no-logo --no-cache

bench: setup
	@$(BIN)/python -m tests.bench $(SECTIONS)

docs-reference: $(VENV)/.installed
	@$(BIN)/python -m persia_infra.reference.pages docs/reference

# The Kubernetes types, after a change of the version in tools/kubernetes/go.mod.
types: $(VENV)/.installed
	@$(BIN)/python tools/kubernetes-types/generate.py

lock: $(VENV)/.installed
	@$(BIN)/uv pip compile --quiet --universal --generate-hashes --python-version 3.11 --extra rehearsal \
		--group pyproject.toml:dev --custom-compile-command "make lock" --output-file requirements.lock pyproject.toml

clean:
	@rm -rf $(VENV) dist .pytest_cache .ruff_cache .hypothesis

$(VENV)/.installed: requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed; this is " + sys.version.split()[0])'
	@echo "installing the Python packages of requirements.lock into $(VENV)"
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --requirement requirements.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@
