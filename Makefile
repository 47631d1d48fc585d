# One command per check, the same for people and for CI. Every target makes the environment that it needs in .venv.
#
#   make demo  [DEMO_ARGS="--yes --json"]   the whole story on this machine
#   make test  [TEST_ARGS="-k approval"]    all tests
#   make test-pooler                        the tests of storage and core, behind a transaction pooler; needs pgbouncer
#   make test-previous                      the code of the release before, on the migrations of now
#   make test-mcp                           sessions with tool servers as they are published; needs npm, and fetches them
#   make supabase-check                     migrations and tables as hosted Supabase has them; needs npm, and fetches its programs
#   make soak   [SOAK_RUNS=200 SOAK_SEED=1] many runs on workers that are killed; `make test` has a small one
#   make check                              what CI runs: format-check lint types contracts test
#   make format                             rewrites the sources
#   make bench [BENCH_ARGS=…]               the measured figures
#   make docs                               regenerates docs/guarantees.md from the promises and the tests
#   make lock                               compiles requirements/*.txt from pyproject.toml; needs uv
#   make clean                              removes .venv and every cache; the demo's data stays

# many processes are started, and each would compile every module anew
unexport PYTHONDONTWRITEBYTECODE

PYTHON ?= python3
UV ?= uv
WORKERS ?= 2
DEMO_ARGS ?=
SOAK_RUNS ?= 200
SOAK_SEED ?= 1
TEST_ARGS ?=
BENCH_ARGS ?=

BIN := .venv/bin
SOURCES := src tests scripts benchmarks
# Its helper modules are imported by plain name, as those of tests/contract/agno are; both folders have a conftest, and one
# run of mypy cannot hold two modules of one name.
APART := tests/integration/local/engine

# Versions and hashes for every platform and Python at once, and nothing about where they came from. The dev lock is
# compiled under the runtime lock, so that one environment serves both.
COMPILE := $(UV) pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	--no-header --no-annotate --no-emit-index-url --no-emit-find-links

.PHONY: demo test test-pooler test-previous test-mcp supabase-check soak check format format-check lint types contracts bench docs lock clean runtime dev
.DEFAULT_GOAL := check

runtime dev:
	@command -v $(PYTHON) >/dev/null || { echo "There is no $(PYTHON) here. Install Python 3.11 or later, or name one: make PYTHON=/path/to/python3" >&2; exit 1; }
	@$(PYTHON) scripts/environment.py $@

demo: runtime
	@$(BIN)/agentic demo $(DEMO_ARGS)

test: dev
	@$(BIN)/python -m pytest -n $(WORKERS) $(TEST_ARGS)

test-pooler: dev
	@PATH="$$PATH:/usr/sbin:/usr/local/sbin" command -v pgbouncer >/dev/null || { echo "There is no pgbouncer here. Install your system's package of that name; nothing needs to be configured." >&2; exit 1; }
	@AGENTIC_TEST_POOLER=1 $(BIN)/python -m pytest -n $(WORKERS) tests/integration/storage tests/integration/core $(TEST_ARGS)

test-previous: dev
	@WORKERS=$(WORKERS) $(BIN)/python scripts/previous_release.py

test-mcp: dev
	@$(BIN)/python -m tests.mcp_servers.install
	@$(BIN)/python -m pytest -n $(WORKERS) tests/mcp_servers $(TEST_ARGS)

supabase-check: dev
	@$(BIN)/python scripts/fetch_supabase.py postgrest cli
	@$(BIN)/python -m pytest -n $(WORKERS) tests/integration/storage/scoped tests/integration/storage/supabase_cli $(TEST_ARGS)

soak: dev
	@SOAK_RUNS=$(SOAK_RUNS) SOAK_SEED=$(SOAK_SEED) $(BIN)/python -m pytest tests/acceptance/soak $(TEST_ARGS)

check: format-check lint types contracts test

format: dev
	@$(BIN)/ruff check --fix-only --quiet $(SOURCES)
	@$(BIN)/ruff format $(SOURCES)

format-check: dev
	@$(BIN)/ruff format --check $(SOURCES)

lint: dev
	@$(BIN)/ruff check $(SOURCES)

types: dev
	@$(BIN)/mypy --exclude $(APART)
	@MYPYPATH=$(APART) $(BIN)/mypy $(APART)

contracts: dev
	@$(BIN)/lint-imports

bench: dev
	@$(BIN)/python -m benchmarks.invoker $(BENCH_ARGS)

docs: dev
	@$(BIN)/python scripts/guarantees.py --write

lock:
	@command -v $(UV) >/dev/null || { echo "Locking needs uv (https://docs.astral.sh/uv); name it with make lock UV=/path/to/uv" >&2; exit 1; }
	$(COMPILE) --extra mcp --extra supabase --extra openai --extra anthropic --extra google --group build pyproject.toml --output-file requirements/runtime.txt
	$(COMPILE) --all-extras --group dev --constraint requirements/runtime.txt pyproject.toml --output-file requirements/dev.txt

clean:
	rm -rf .venv .mcp-servers .supabase-tools .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache build dist
	find $(SOURCES) -name __pycache__ -type d -prune -exec rm -rf {} +
