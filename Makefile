# Every target installs what it needs into .venv; nothing has to be installed by hand.
SHELL := /bin/bash
.SHELLFLAGS := -o pipefail -c
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Python compiles what is imported, when it is: pip would compile everything, for 20 seconds.
PIP_FLAGS := --quiet --disable-pip-version-check --no-compile
STAMP := $(VENV)/.installed
DOCS_STAMP := $(VENV)/.installed-docs
# A licence that has one of these words may be depended on.
LICENCES := Apache;BSD;MIT;ISC;MPL;Mozilla;PSF;Python Software Foundation
# Tests start hundreds of processes: what one has compiled, the next one finds.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help install docs lock test-lowest check audit format test test-real explore sim soak-large fuzz demo bench bench-shapes bench-core bench-embedded bench-cks bench-reliability controlplane oracle parity tools operators clients image cluster record clean

help: ## Show this help
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "  make %-17s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

install: $(STAMP) ## Create .venv with quorate, pocketkube and their test extras

$(STAMP): pyproject.toml embedded/pyproject.toml requirements.lock
	@command -v $(PYTHON) >/dev/null || { echo "python3 (3.11 or newer) is needed: install it, or set PYTHON=..."; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "$(PYTHON) is older than 3.11: set PYTHON=python3.11 or newer"; exit 1; }
	@echo "installing into $(VENV) (about a minute) ..."
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/pip install $(PIP_FLAGS) --require-hashes -r requirements.lock
	@$(BIN)/pip install $(PIP_FLAGS) --no-deps --editable embedded --editable .
	@touch $@

docs: $(STAMP) $(DOCS_STAMP) ## Build the docs site into build/site; each warning is an error
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet
	@echo "built: build/site/index.html; with search: python3 -m http.server -d build/site"

$(DOCS_STAMP): $(STAMP) requirements-docs.lock
	@$(BIN)/pip install $(PIP_FLAGS) --require-hashes -r requirements-docs.lock
	@touch $@

lock: ## Write the locks anew from both pyproject.toml
	@$(PYTHON) -m venv $(VENV) && $(BIN)/pip install --quiet uv==0.13.8
	@$(BIN)/uv pip compile pyproject.toml --extra test --universal --generate-hashes \
	  --no-emit-package pocketkube --no-emit-index-url --no-header --quiet --output-file requirements.lock
	@$(BIN)/uv pip compile pyproject.toml --extra devices --constraints requirements.lock --universal \
	  --generate-hashes --no-emit-index-url --no-header --quiet --output-file requirements-image.lock
	@$(BIN)/uv pip compile --group pyproject.toml:build --constraints requirements.lock --universal --generate-hashes \
	  --no-emit-index-url --no-header --quiet --output-file requirements-build.lock
	@$(BIN)/uv pip compile --group pyproject.toml:docs --constraints requirements.lock --universal --generate-hashes \
	  --no-emit-index-url --no-header --quiet --output-file requirements-docs.lock
	@$(BIN)/uv pip compile --group pyproject.toml:audit --universal --generate-hashes \
	  --no-emit-index-url --no-header --quiet --output-file requirements-audit.lock

test-lowest: ## Unit tests with the oldest versions that pyproject.toml permits
	@$(PYTHON) -m venv .venv-lowest && .venv-lowest/bin/pip install --quiet uv==0.13.8
	@.venv-lowest/bin/uv pip install --quiet --python .venv-lowest --resolution lowest-direct \
	  --editable embedded --editable '.[test]'
	@.venv-lowest/bin/python -m pytest -q -n 2 tests/unit

check: $(STAMP) ## Format, lint, types, walls and tidiness, in seconds
	@$(BIN)/ruff format --check --quiet . || { echo "run: make format"; exit 1; }
	@$(BIN)/ruff check --quiet .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-cache | tail -n 4
	@$(BIN)/pytest -q -n 0 $(wildcard tests/test_*.py)

audit: $(STAMP) requirements-audit.lock ## Check versions, licences and known vulnerabilities of what we depend on
	@$(PYTHON) -m venv .venv-audit && .venv-audit/bin/pip install $(PIP_FLAGS) --require-hashes -r requirements-audit.lock
	@$(BIN)/pip check
	@.venv-audit/bin/pip-licenses --python $(BIN)/python --partial-match --allow-only "$(LICENCES)" > /dev/null
	@.venv-audit/bin/pip-audit --disable-pip --require-hashes --requirement requirements.lock

format: $(STAMP) ## Format and sort imports
	@$(BIN)/ruff format --quiet . && $(BIN)/ruff check --quiet --fix-only .

test: $(STAMP) ## All checks and tests that need Python alone (ARGS='STAGE...', ARGS=--help)
	@$(BIN)/python -m tools.stages test $(ARGS)

test-real: $(STAMP) ## Tests on Kubernetes itself, which it builds once with Go, and with kubectl and Helm
	@$(BIN)/python -m tools.stages real $(ARGS)

explore: $(STAMP) ## Fresh seeds and long runs; what they find is kept in tests/finds.toml (MINUTES=30, OF=worlds)
	@$(BIN)/python -m tools.explore --minutes $(or $(MINUTES),30) $(if $(OF),--of $(OF))

sim: $(STAMP) ## Replay one seed of the simulation (SEED=1; ARGS=--trace to see what happens)
	@$(BIN)/python -m simulate --seed $(or $(SEED),1) $(ARGS)

soak-large: $(STAMP) controlplane ## Run on 5,000 nodes and 150,000 pods with churn for 30 minutes (ARGS=--help)
	@$(BIN)/python -m bench.soak_large $(ARGS)

fuzz: $(STAMP) ## Play N random worlds of the core (N=20000; SEED=7 for those of a run; ARGS=--help)
	@$(BIN)/python -m tests.property.worlds --worlds $(or $(N),20000) --processes $$(nproc) \
	  $(if $(SEED),--seed $(SEED)) $(ARGS)

demo: $(STAMP) ## See what gangs do, in a minute, on an embedded cluster (ARGS=--keep, ARGS=--help)
	@$(BIN)/python -m tools.demo $(ARGS)

bench: $(STAMP) controlplane ## Compare with the ceiling and with peers on one real API server
	@$(BIN)/python -m bench.core_bench
	@$(BIN)/python -m bench

bench-shapes: $(STAMP) controlplane ## Compare with kube-scheduler on scheduler_perf's shapes (CASE=plain,..., RUNS=3)
	@$(BIN)/python -m bench --case $(or $(CASE),shapes) --runs $(or $(RUNS),3)

bench-core: $(STAMP) ## Measure the core without I/O (ARGS='--case NAME')
	@$(BIN)/python -m bench.core_bench $(ARGS)

bench-embedded: $(STAMP) ## Measure the embedded cluster
	@$(BIN)/python -m bench.embedded_bench

bench-cks: $(STAMP) controlplane ## Measure what CoreWeave's rules cost pods, and 5,000 relabelled nodes (TURNS=5)
	@$(BIN)/python -m bench.cks_bench --turns $(or $(TURNS),5)

bench-reliability: $(STAMP) controlplane ## Measure how it fails: kills, fail-over, recovery, refusals (RUNS=3)
	@$(BIN)/python -m bench.reliability_bench --runs $(or $(RUNS),3) $(ARGS)

controlplane: $(STAMP) ## Build the real control plane once, into a cache outside the repo
	@$(BIN)/python -m tools.controlplane build

oracle: $(STAMP) ## Build kube-scheduler's plugins as a program to ask, into the same cache
	@$(BIN)/python -m tools.oracle build

parity: $(STAMP) ## Compare N random cases with kube-scheduler's own plugins (N=20000, SEED=1)
	@$(BIN)/python -m tools.parity $(or $(N),20000) $(or $(SEED),1)

tools: $(STAMP) ## Build helm, kubeconform and crane, which check chart and image, into the same cache
	@$(BIN)/python -m tools.controlplane build helm kubeconform crane

operators: $(STAMP) ## Build Kubeflow's and Volcano's operators, as released, into the same cache
	@$(BIN)/python -m tools.controlplane build training-operator mpi-operator \
	  vc-controller-manager vc-webhook-manager

clients: $(STAMP) controlplane operators ## Run jobs of Kubeflow's operators and of Volcano on quorate (ARGS='-k NAME')
	@$(BIN)/python -m pytest -q -n2 tests/operators $(ARGS)

image: $(STAMP) ## Build the image into build/image, without a daemon (PUSH=REGISTRY/quorate:0.1.0)
	@$(BIN)/python -m tools.image $(if $(PUSH),--push $(PUSH))

cluster: $(STAMP) controlplane ## Start a real control plane with kwok nodes, until Ctrl-C
	@$(BIN)/python -m tools.controlplane up --nodes 10

record: $(STAMP) controlplane ## Record the API of the real control plane for the embedded one
	@$(BIN)/python -m tools.openapi

clean: ## Remove .venv and caches of this checkout
	@rm -rf $(VENV) .venv-lowest .mypy_cache .ruff_cache .pytest_cache .hypothesis
