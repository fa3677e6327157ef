# make demo, make test, make quick, make docs, make recipes, make bench, make lint, make fuzz: each sets up .venv in this
# folder by itself, or in another: VENV=build/newest. All that is needed is Python (3.11 or later) and make;
# PYTHON=python3.13 names another Python. make versions takes every Python that it finds, each with its own environment.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# More options for pytest, as in: make test PYTEST="-k parse -x". Two processes, as for most machines that is all.
PYTEST ?= -n 2
# Where the environment already is, pip is not asked again until pyproject.toml changes.
BASE := $(VENV)/.ready-base
TEST := $(VENV)/.ready-test
DOCS := $(VENV)/.ready-docs

.PHONY: demo test quick versions docs recipes links bench lint fuzz format clean

demo: $(BASE)
	@$(BIN)/dynagrad demo

test: $(TEST)
	@$(BIN)/python -m pytest -q $(PYTEST)

# All but the tests that took 0.2 s or more when they ran last.
quick: $(TEST)
	@$(BIN)/python -m pytest -q --quick $(PYTEST)

# Tests and demo under every supported Python that is found, with the newest releases of what they need, and with the
# oldest; or under some, with options for pytest: make versions VERSIONS="3.12 oldest -n0 -k demo"
versions:
	@$(PYTHON) .ci/versions.py test $(VERSIONS)

# The documents as a site in build/docs. A warning is an error; -n has every reference lead somewhere.
docs: $(DOCS)
	@$(BIN)/python -m sphinx --builder html -W --keep-going -n -q -d build/doctrees docs build/docs
	@echo "build/docs/index.html"

# Links to other sites, which needs a network: build/links/output.txt has them all, with what became of each.
links: $(DOCS)
	@$(BIN)/python -m sphinx --builder linkcheck -q -d build/doctrees docs build/links

# Pictures, figures and times of the recipes, which are kept in docs/recipes/made: of those whose source has changed, or
# of some, as in: make recipes RECIPES="cky hmm". Minutes each; one needs torch.
recipes: $(DOCS)
	@$(BIN)/python docs/recipes/build.py $(RECIPES)

bench: $(TEST)
	@$(BIN)/python -m benchmarks

# The fuzzers, for an hour, or as in: make fuzz SECONDS=60 FIRST=1000 KINDS="programs files". With SANITIZE=1 compiled
# programs are checked by AddressSanitizer, for which g++ has to be there.
SECONDS ?= 3600
FIRST ?= 0
fuzz: $(TEST)
	@PYTHONPATH=src:tests:docs $(BIN)/python -m fuzz.run --seconds $(SECONDS) --first $(FIRST) $(if $(SANITIZE),--sanitize) $(KINDS)

lint: $(TEST)
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check
	@$(BIN)/mypy

format: $(TEST)
	@$(BIN)/ruff check --fix
	@$(BIN)/ruff format

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "Dynagrad needs Python 3.11 or later; name one with: make PYTHON=python3.12" >&2; exit 1; }
	@echo "setting up $(VENV) with `$(PYTHON) --version`" >&2
	@$(PYTHON) -m venv $(VENV) \
		|| { rm -rf $(VENV); echo "python -m venv failed; on Debian: apt install python3-venv" >&2; exit 1; }

$(BASE): pyproject.toml | $(BIN)/python
	@echo "installing dynagrad into $(VENV)" >&2
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	@touch $@

$(TEST): pyproject.toml | $(BIN)/python
	@echo "installing dynagrad and what its tests need into $(VENV)" >&2
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[test]'
	@touch $@ $(BASE)

$(DOCS): pyproject.toml | $(BIN)/python
	@echo "installing dynagrad and what its documents need into $(VENV)" >&2
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[docs]'
	@touch $@ $(BASE)

clean:
	rm -rf .venv build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis benchmarks/build
