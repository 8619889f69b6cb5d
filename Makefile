# One word per chore. All of them use .venv, which is made when it is missing.
PYTHON = .venv/bin/python
TOOLS = .venv/bin/ruff

all: lint types test

setup $(TOOLS):
	python3 -m installer test --collect-only --quiet

run:
	python3 -m installer run

test:
	python3 -m installer test

lint: $(TOOLS)
	$(PYTHON) -m ruff check .
	$(PYTHON) -m ruff format --check .

types: $(TOOLS)
	$(PYTHON) -m mypy

fix: $(TOOLS)
	$(PYTHON) -m ruff check --fix .
	$(PYTHON) -m ruff format .

simulate: $(TOOLS)
	$(PYTHON) -m pytest tests/engine/test_simulator.py

wheel: $(TOOLS)
	$(PYTHON) -m pip wheel --no-deps --wheel-dir dist .

.PHONY: all setup run test lint types fix simulate wheel
