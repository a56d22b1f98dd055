# Everything a developer or a user of a checkout runs. `make` alone prints what there is.
#
#   PYTHON=/path/to/python3.11   another interpreter than the first one found
#   CONFIG=config/mine.toml      another configuration for `make run`
#   ARGS="-k ledger -x"          more options for pytest
#   WORKERS=2                    processes that run tests at once; 0: this one alone, as --pdb needs it

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
CONFIG ?= config/local.toml
SCENARIOS ?= tests/scenarios/given.jsonl
FEED ?= vehicles
ARGS ?=
WORKERS ?= auto
NAMES ?=
UV_VERSION := 0.13.9

# A name on the path is not enough: pyenv has shims for versions that are not installed, and Debian has Pythons
# without ensurepip. So each candidate is run.
USABLE := import sys, ensurepip, venv; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 14))
PYTHON ?= $(shell for python in python3.13 python3.12 python3.11 python3; do \
	$$python -c '$(USABLE)' >/dev/null 2>&1 && { echo $$python; break; }; done)

.PHONY: help
help: ## Print this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: install
install: $(INSTALLED) ## Create .venv with everything pinned in requirements.lock

$(INSTALLED): pyproject.toml requirements.lock
	@[ -n "$(PYTHON)" ] && $(PYTHON) -c '$(USABLE)' 2>/dev/null || { \
		echo "make: Python 3.11, 3.12 or 3.13 with its venv module is needed (Debian: apt install python3.11-venv); name one with PYTHON=..." >&2; exit 1; }
	$(PYTHON) -m venv --clear $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --requirement requirements.lock
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --editable .
	@touch $@

# Spark looks at JAVA_HOME before the path, so this does too.
.PHONY: java
java:
	@version=$$("$${JAVA_HOME:+$$JAVA_HOME/bin/}java" -version 2>&1 | sed -nE 's/.* version "([0-9]+).*/\1/p' || true); \
	[ "$${version:-0}" -ge 17 ] || { \
		echo "make: Java 17 or later is needed, found $${version:-none} (Debian: apt install openjdk-17-jre-headless); JAVA_HOME is looked at first" >&2; exit 1; }

.PHONY: run
run: java $(INSTALLED) ## Run the service with its own Kafka (CONFIG=config/local.toml)
	$(BIN)/bmq serve --config $(CONFIG)

# Each worker has one core. ARGS="--workers 3 --config config/mine.toml"; logs and data are in var/cluster.
.PHONY: cluster
cluster: java $(INSTALLED) ## Run the service on a Spark cluster of this machine, with its own Kafka (ARGS="--workers 3")
	$(BIN)/python -m tests.cluster $(ARGS)

.PHONY: demo
demo: java $(INSTALLED) ## Show generated streams live (FEED=vehicles or stocks)
	$(BIN)/bmq demo $(FEED)

.PHONY: view
view: java $(INSTALLED) ## Show the live page: its own Kafka, the service, planes, vehicles and stocks (FEED=flights: planes alone)
	$(BIN)/bmq demo $(if $(filter command line,$(origin FEED)),$(FEED),all) --open

# The built page is in the repository, so only those who change web/ need node.
.PHONY: web
web: web/node_modules/.package-lock.json ## Check the sources of the page in web/, and build it (needs node 20 and npm)
	cd web && npm run --silent types && npm run --silent check && npm test --silent && npm run --silent build

.PHONY: web-check
web-check: web/node_modules/.package-lock.json ## Check the sources of the page: types, tests, and that the built files are these
	cd web && npm run --silent check && npm test --silent && npx vite build --outDir ../.make/static --logLevel warn
	diff --recursive --exclude '*.sha256' --exclude licences.txt .make/static service/bmq/view/static

web/node_modules/.package-lock.json: web/package-lock.json
	cd web && npm ci --no-audit --no-fund

# Before the workers start, since each of them would compile the same kernels.
KERNELS := .make/kernels.json
$(KERNELS): $(INSTALLED) $(wildcard service/bmq/kernels/*.py service/bmq/kernels/*/*.py)
	@echo "Compiling the kernels: some minutes, unless they are in the cache"
	@mkdir -p $(@D)
	$(BIN)/python -m tests.kernels > $@

# The tests start the service some dozens of times. Looked at each time, because its place is in the cache.
.PHONY: archive
archive: java $(KERNELS) ## Archive the classes of the JVM of Spark, once, for quicker starts
	@$(BIN)/python -m bmq.job.archiving || true

.PHONY: test
test: java $(INSTALLED) $(KERNELS) archive ## Run every test (ARGS="-k name" for some of them)
	$(BIN)/pytest --numprocesses $(WORKERS) --durations 25 --durations-min 20 $(ARGS)

.PHONY: test-browser
test-browser: java $(INSTALLED) ## Test the live page in a Chromium (Debian: apt install chromium; BMQ_TEST_CHROMIUM=path)
	$(BIN)/pytest -m browser tests/browser $(ARGS)

.PHONY: screenshots
screenshots: java $(INSTALLED) ## Make the pictures of the page that the README shows, in a Chromium
	$(BIN)/python -m tests.browser.screenshots

# A compiled kernel neither checks an index nor warns of an overflow; plain Python does both. A warning fails no test,
# because hashes overflow on purpose and ranks multiply infinity by 0. Not here: tests of trackings, whose kernels read
# the fields of records in a way that only numba knows, and tests of so many values that they take minutes.
NOJIT_TESTS := $(addprefix tests/property/test_,avro_records.py decode_paths_agree.py held.py index_vs_oracle.py json_paths.py \
	levels_vs_oracle.py passes_vs_oracle.py reading_lists.py shapes_vs_oracle.py stream_table.py where_index.py) \
	$(addprefix tests/unit/,bench/test_boxes.py kernels engines/feed/test_pass_search.py wire/test_frames.py wire/test_readings.py)
.PHONY: test-nojit
test-nojit: $(INSTALLED) ## Run the kernels' tests without compiling them (ARGS="-k name" for some of them)
	NUMBA_DISABLE_JIT=1 HYPOTHESIS_PROFILE=nojit $(BIN)/pytest --numprocesses $(WORKERS) $(NOJIT_TESTS) $(ARGS)

# Some hours. Every example is new; what fails is printed with what makes it again.
.PHONY: property-nightly
property-nightly: $(INSTALLED) $(KERNELS) ## Run 20,000 random programs against the definition (ARGS="-k name" for one test)
	HYPOTHESIS_PROFILE=nightly $(BIN)/pytest --numprocesses $(WORKERS) \
		tests/property/test_service_machine.py tests/property/test_join_machine.py $(ARGS)

# One to two hours.
.PHONY: campaign
campaign: java $(INSTALLED) $(KERNELS) archive ## Make 100 random faults under load, and compare with the definition (ARGS="--seed 2 --minutes 30")
	$(BIN)/python -m tests.campaign $(ARGS)

.PHONY: abuse
abuse: java $(INSTALLED) $(KERNELS) archive ## Measure how much later the events of others come while one tenant does what costs most
	$(BIN)/python -m tests.abuse $(ARGS)

REHEARSAL := .make/rehearsal

$(REHEARSAL)/.installed: deploy/rehearsal-requirements.txt $(INSTALLED)
	$(BIN)/python -m venv --clear $(REHEARSAL)
	$(REHEARSAL)/bin/pip install --quiet --disable-pip-version-check --requirement deploy/rehearsal-requirements.txt
	@touch $@

# Half an hour at the first time, which makes the images. Needs root, podman and debootstrap.
.PHONY: rehearse-compose
rehearse-compose: java $(REHEARSAL)/.installed ## Start docker-compose.yml with podman and images made from packages (ARGS="--remove-images")
	$(BIN)/python -m tests.compose $(ARGS)

# Some minutes, most of them for the download of the packages.
.PHONY: wheel-check
wheel-check: java $(INSTALLED) ## Install the wheel in new environments, and use it away from the checkout
	$(BIN)/python -m tests.wheel

STORAGE := .make/storage

$(STORAGE)/.installed: tests/storage/requirements.txt $(INSTALLED)
	$(BIN)/python -m venv --clear $(STORAGE)
	$(STORAGE)/bin/pip install --quiet --disable-pip-version-check --requirement tests/storage/requirements.txt
	@touch $@

# The servers are HDFS' mini cluster and moto, each downloaded at the first time (90 MB together).
.PHONY: storage
storage: java $(STORAGE)/.installed $(KERNELS) archive ## Kill the service with its checkpoint on HDFS and on S3, and compare with the definition
	BMQ_TEST_S3_SERVER=$(abspath $(STORAGE)/bin/moto_server) $(BIN)/pytest -m storage tests/storage $(ARGS)

.PHONY: bench-storage
bench-storage: java $(STORAGE)/.installed $(KERNELS) archive ## Measure batches and starts with the checkpoint here, on HDFS and on S3 (SMOKE=1: a small run)
	BMQ_TEST_S3_SERVER=$(abspath $(STORAGE)/bin/moto_server) $(BIN)/python -m bench.storage $(if $(SMOKE),--smoke)

.PHONY: soak
soak: java $(INSTALLED) $(KERNELS) archive ## Run under a steady load for an hour: nothing may grow (ARGS="--minutes 10 --curves soak.csv")
	$(BIN)/python -m tests.soak $(ARGS)

# Until morning. The property tests have 1,000 examples where .ci/run has 60, other ones each time.
.PHONY: nightly
nightly: java property-nightly campaign soak abuse wheel-check storage ## Run property-nightly, campaign, soak, abuse, wheel-check and storage, then every test with new examples and no kernel compiled before, then rehearse-compose
	HYPOTHESIS_PROFILE=long BMQ_TEST_COLD_KERNELS=1 $(BIN)/pytest --numprocesses $(WORKERS) --timeout 7200 \
		--ignore tests/property/test_service_machine.py --ignore tests/property/test_join_machine.py $(ARGS)
	BMQ_TEST_PACKAGES=1 $(BIN)/pytest -m cluster tests/cluster $(ARGS)
	$(MAKE) rehearse-compose ARGS=  # at the end, because it stops on a machine without root or podman

.PHONY: lint
lint: $(INSTALLED) ## Check style, types, the direction of imports, and words
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m tests.words

AUDIT := .make/audit
# What may be distributed with a work under Apache-2.0. promql-parser, for tests alone, has the MIT licence in a file
# and not in its metadata.
LICENCES := MIT;BSD;Apache;ISC;PSF-2.0;Python Software Foundation;MPL-2.0;Mozilla Public License 2.0;DFSG approved

$(AUDIT)/.installed: deploy/audit-requirements.txt $(INSTALLED)
	$(BIN)/python -m venv --clear $(AUDIT)
	$(AUDIT)/bin/pip install --quiet --disable-pip-version-check --requirement deploy/audit-requirements.txt
	@touch $@

.PHONY: licences
licences: $(AUDIT)/.installed ## Check that every installed package may be distributed
	$(AUDIT)/bin/pip-licenses --python=$(BIN)/python --partial-match --allow-only="$(LICENCES)" \
		--ignore-packages bmq promql-parser > /dev/null

.PHONY: audit
audit: licences ## Look for known faults of the pinned packages; needs PyPI's own index
	$(AUDIT)/bin/pip-audit --requirement requirements.lock --no-deps --disable-pip --strict

.PHONY: sbom
sbom: java $(AUDIT)/.installed ## Print what an installation consists of (CycloneDX)
	@PYTHONPATH=service $(AUDIT)/bin/python deploy/sbom.py

SITE := .make/site-tools

$(SITE)/.installed: deploy/site-requirements.txt $(INSTALLED)
	$(BIN)/python -m venv --clear $(SITE)
	$(SITE)/bin/pip install --quiet --disable-pip-version-check --requirement deploy/site-requirements.txt
	@touch $@

.PHONY: site
site: $(SITE)/.installed ## Make the documents a site in .make/site; fails if a link leads nowhere (ARGS="serve": show it)
	NO_MKDOCS_2_WARNING=1 $(SITE)/bin/mkdocs $(or $(ARGS),build --quiet)

.PHONY: conformance
conformance: java $(INSTALLED) ## Play a scenario file against the running service (SCENARIOS=path)
	$(BIN)/python -m tests.conformance $(SCENARIOS)

.PHONY: conformance-tile38
conformance-tile38: $(INSTALLED) ## Play a scenario file against Tile38 (TILE38=path of its server, SCENARIOS=path)
	$(BIN)/bmq conformance $(SCENARIOS) --adapter tile38 $(if $(TILE38),--server $(TILE38))

.PHONY: bench-pipeline
bench-pipeline: java $(INSTALLED) ## Compare with a plain Spark job (SELECT=1: by select queries), or with BASE=revision (SMOKE=1: a small run)
	$(BIN)/python -m bench.pipeline $(if $(SMOKE),--smoke) $(if $(SELECT),--queries select) $(if $(BASE),--base $(BASE))

.PHONY: bench-rtmq
bench-rtmq: java $(INSTALLED) ## Transitions of a million vehicles at ten thousand garages, at their pace (SMOKE=1: a small run)
	$(BIN)/python -m bench.rtmq $(if $(SMOKE),--minutes 1.5 --vehicles 60000 --garages 1000 --within 30)

.PHONY: bench-workers
bench-workers: java $(INSTALLED) ## Compare the processor time of a reading on 2 and on 8 executors of a cluster (ARGS="--repeats 1")
	$(BIN)/python -m bench.workers $(ARGS)

.PHONY: bench-tile38
bench-tile38: java $(INSTALLED) ## Objects and squares in a city at six points (TILE38=path: beside a tile38-server; SMOKE=1: a small run)
	$(BIN)/python -m bench.tile38_points $(if $(SMOKE),--smoke) $(if $(TILE38),--tile38 $(TILE38))

.PHONY: bench-flink
bench-flink: java $(INSTALLED) ## Compare with a Flink job (PEER=folder with its target/*.jar and lib/*.jar; SMOKE=1: a small run)
	$(BIN)/python -m bench.flink --peer $(PEER) $(if $(SMOKE),--smoke)

# Reduced: 20 minutes. The CSV files and plots are kept in bench/results/figures.
.PHONY: figures
figures: $(INSTALLED) ## Measure and plot the papers' figures (FULL=1: every point; NAMES="skew_1d": some)
	$(BIN)/python -m bench.figures $(if $(FULL),--full) $(NAMES)

.PHONY: bench-check
bench-check: $(INSTALLED) ## Measure every claim of bench/bounds.toml (NAMES="city": some)
	$(BIN)/python -m bench.check $(NAMES)

.PHONY: schemas
schemas: $(INSTALLED) ## Write the JSON Schemas of every message, and docs/asyncapi.json of every topic
	$(BIN)/python -m bmq.wire.schemas
	$(BIN)/python -m bmq.config.asyncapi > docs/asyncapi.json

.PHONY: reference
reference: $(INSTALLED) ## Write docs/configuration.md and docs/cli.md from the code
	$(BIN)/python -m bmq.config.reference > docs/configuration.md
	$(BIN)/python -m bmq.cli.cli_reference > docs/cli.md

.PHONY: lock
lock: ## Pin the newest versions that pyproject.toml allows in requirements.lock
	$(PYTHON) -m venv .make/lock
	.make/lock/bin/pip install --quiet --disable-pip-version-check uv==$(UV_VERSION)
	sed -n '/^#/p' requirements.lock > .make/requirements.lock
	.make/lock/bin/uv --quiet pip compile pyproject.toml --extra dev --universal --upgrade --no-header --no-annotate >> .make/requirements.lock
	mv .make/requirements.lock requirements.lock

.PHONY: clean
clean: ## Remove the environment, caches and the data of local runs
	rm -rf $(VENV) .make web/node_modules var build dist spark-warehouse .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find service bench tests deploy -name __pycache__ -prune -exec rm -rf {} +
