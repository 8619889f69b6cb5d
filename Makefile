# One word per chore. All of them use .venv, which `make setup` (any test run) makes.
PYTHON = .venv/bin/python

all: lint types test

setup:
	python3 -m installer test --collect-only --quiet

run:
	python3 -m installer run

test:
	python3 -m installer test

lint:
	$(PYTHON) -m ruff check .
	$(PYTHON) -m ruff format --check .

types:
	$(PYTHON) -m mypy

fix:
	$(PYTHON) -m ruff check --fix .
	$(PYTHON) -m ruff format .

simulate:
	$(PYTHON) -m pytest tests/engine/test_simulator.py

wheel:
	$(PYTHON) -m pip wheel --no-deps --wheel-dir dist .

.PHONY: all setup run test lint types fix simulate wheel
