# The two commands of the README are `make try` and `make test`; both set up everything first.
VENV := .venv
PY := $(VENV)/bin/python
# Tests wait more than they work.
JOBS := 2

.PHONY: help setup try test check bench torture lock generate real

help:
	@echo "make try      open Neovim with the plugin on the demo agent (without a terminal: print a real run)"
	@echo "make test     set everything up and run the tests"
	@echo "make check    lint, types, layers, generated files"
	@echo "make bench    measure speed and print a table"
	@echo "make torture  kill everything at random points and count messages"
	@echo "make real     tests with real agents (AGENTIK_REAL_AGENTS=zed-codex-acp,gemini)"

setup:
	@scripts/setup.sh dev $(VENV)

try: setup
	@scripts/try.sh

test: setup
	@$(PY) -m pytest tests -n $(JOBS) --dist loadgroup $(ARGS)

check: setup
	@$(VENV)/bin/ruff check .
	@$(VENV)/bin/ruff format --check .
	@$(VENV)/bin/mypy
	@$(VENV)/bin/lint-imports --no-cache
	@$(PY) scripts/check_lua.py
	@$(PY) scripts/generate.py --check

generate: setup
	@$(PY) scripts/generate.py

bench: setup
	@$(PY) -m tests.bench $(ARGS)

torture: setup
	@$(PY) -m tests.torture $(ARGS)

real: setup
	@$(PY) -m pytest tests -m real_agent $(ARGS)

lock:
	@scripts/lock.sh
