# Everything starts from here; `make` alone lists the targets.
# Each step of the set-up leaves a stamp in .venv and is done again only when its inputs change.

PYTHON ?= python3
# Another package index, asked only for torch (for example one with builds for the CPU alone).
TORCH_INDEX ?=
# More arguments for the command that a target runs, such as ARGS="--port 9000".
ARGS ?=
# The tests run in so many processes; a file's tests stay in one.
TEST_PROCESSES ?= 2

VENV := .venv
BIN := $(VENV)/bin
PIP_INSTALL := $(BIN)/python -m pip install --disable-pip-version-check --constraint constraints.txt

# Prints the folder of the embedded model without an adapter.
BASE_MODEL_DIR := $(BIN)/python -c 'from apply_service.models.store import cache_dir; \
	print(*cache_dir().glob("models/embedded-*-base"))'
# Prints the folder of the embedded model as it is served.
SERVED_MODEL_DIR := $(BIN)/python -c 'from apply_service.models.store import resolve_model; \
	print(resolve_model("embedded").path)'
# What `make drafter` trains: hydra, medusa or eagle.
KIND ?= hydra
ADAPTER_FILES := $(wildcard apply_service/models/*/*)

# The page is built only where there is npm; the server works without it.
PAGE_SOURCES := $(wildcard clients/page/src/* clients/page/*.json clients/page/*.mjs)
PAGE_BUILT := clients/page/node_modules/page.stamp
PAGE := $(if $(shell command -v npm),$(PAGE_BUILT))
CHROMIUM := build/editors/chromium.stamp

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:
.PHONY: help demo serve serve-reload page page-pictures check test test-isa test-clients test-editors test-fleet test-dist dist gpu cases corpus-pack train train-gpu drafter calibrate \
	merge-scores clean

help:
	@echo 'make demo    merge an example edit over HTTP, with speculation on and off'
	@echo 'make serve   run the server until Ctrl-C'
	@echo 'make serve-reload  the same, started again when a Python file changes'
	@echo 'make page    build the page that the server shows at its address; needs npm'
	@echo 'make page-pictures  take the pictures of it anew, into docs'
	@echo 'make check   lint, format, types and import borders; no tests'
	@echo 'make test    make check, then the tests'
	@echo 'make test-isa  what depends on the processor, at every instruction set that it has'
	@echo 'make test-clients  clients of other makers at a live server; brings its own Node.js'
	@echo 'make test-editors  whole sessions of editors with the language server'
	@echo 'make test-fleet  several replicas, ranks of one model and servers of Redis together'
	@echo 'make dist    what is installed by name, in dist; make test-dist installs it without a network'
	@echo 'make gpu     tests and figures that need an NVIDIA GPU, into build/gpu; no network'
	@echo 'make cases   build case files of real edits in build/cases (needs npm too)'
	@echo 'make corpus-pack  tokenise them into two small files in build/pack'
	@echo 'make train   train an adapter for the embedded model on these'
	@echo 'make train-gpu  the same on a GPU, more examples a step'
	@echo 'make drafter train heads that draft for the embedded model (KIND=hydra)'
	@echo 'make calibrate  measure how far the shipped adapter can be believed'
	@echo 'make merge-scores  fit the scores of ranked merges to recorded edits'
	@echo 'make clean   remove .venv, build and caches from this folder'
	@echo 'Options: PYTHON=python3.12, TORCH_INDEX=URL, ARGS="..."'

demo: $(VENV)/service.stamp $(VENV)/model.stamp $(PAGE)
	@$(BIN)/python -m apply_service.cli.demo $(ARGS)

serve: $(VENV)/service.stamp $(VENV)/model.stamp $(PAGE)
	@$(BIN)/apply-service serve $(ARGS)

serve-reload: $(VENV)/service.stamp $(VENV)/model.stamp $(PAGE)
	@trap 'kill $$pid 2> /dev/null; exit' INT TERM; mkdir -p build; while touch build/serve.stamp; do \
		$(BIN)/apply-service serve $(ARGS) & pid=$$!; \
		until find apply_service batching kernels lookup snippets -name '*.py' -newer build/serve.stamp \
			| grep -q .; do sleep 1; done; \
		kill $$pid 2> /dev/null; wait $$pid; \
	done

page: $(PAGE_BUILT)
	@test -f $< || { echo 'npm is needed, and at first a network.' >&2; exit 1; }

# Without a network the server shows a line in the place of the page.
$(PAGE_BUILT): $(PAGE_SOURCES)
	@if ! command -v npm > /dev/null; then echo 'No npm: the page is not built.'; \
	elif test clients/page/node_modules/.package-lock.json -nt clients/page/package-lock.json \
		|| npm --prefix clients/page ci --ignore-scripts --no-audit --no-fund --prefer-offline \
			--fetch-retries=0; \
	then npm --prefix clients/page run --silent build && touch $@; \
	else echo 'npm failed: the page is not built.'; fi

page-pictures: $(VENV)/dev.stamp $(VENV)/model.stamp page $(CHROMIUM)
	$(BIN)/python -m benchmarks picture --page $(ARGS)

check: $(VENV)/dev.stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/mypy --config-file benchmarks/lazy_edit/pyproject.toml
	$(BIN)/lint-imports

# Tests start many processes: without bytecode each would compile all modules again.
test: export PYTHONDONTWRITEBYTECODE =
test: check $(VENV)/model.stamp $(VENV)/node.stamp $(PAGE)
	$(BIN)/pytest -n $(TEST_PROCESSES) --dist loadfile $(ARGS)

test-isa: $(VENV)/dev.stamp $(VENV)/model.stamp
	PYTHONPATH=. $(BIN)/python tests/isa_levels.py $(ARGS)

# Packages of other makers, and a Node.js for them, in an environment of their own.
REAL_CLIENTS := tests/clients/real
CLIENTS_VENV := build/clients/venv
CLIENTS_PATH := PATH="$(CURDIR)/$(CLIENTS_VENV)/bin:$$PATH"

test-clients: $(VENV)/dev.stamp $(VENV)/model.stamp $(REAL_CLIENTS)/node_modules/clients.stamp
	$(CLIENTS_PATH) $(BIN)/pytest -m clients $(REAL_CLIENTS) $(ARGS)

# Editors are put into a folder of their own.
NEOVIM := build/editors/neovim
CODE_SERVER := build/editors/code-server

test-editors: $(VENV)/dev.stamp $(VENV)/model.stamp $(VENV)/node.stamp $(NEOVIM)/neovim.stamp \
	$(CODE_SERVER)/code-server.stamp clients/vscode/node_modules/vscode.stamp page $(CHROMIUM)
	$(BIN)/pytest -m editors tests $(ARGS)

# Debian's balancers; nothing is started by their installation.
BALANCERS := build/fleet/balancers.stamp

test-fleet: $(VENV)/dev.stamp $(VENV)/ray.stamp $(VENV)/model.stamp $(BALANCERS)
	$(BIN)/pytest -m fleet tests $(ARGS)

# What is installed by name: wheels and sources, the npm package, the extension for VS Code.
DIST_TOOLS := build/dist-tools
DIST_CHECKS := tests/deployment/checks
WHEEL_PACKAGES := apply_service,batching,kernels,lookup,snippets

dist: $(VENV)/dev.stamp $(VENV)/node.stamp $(DIST_TOOLS)/tools.stamp clients/vscode/node_modules/vscode.stamp \
	$(DIST_CHECKS)/node_modules/checks.stamp page
	rm -rf dist && mkdir dist && cp LICENSE clients/typescript/ && cp LICENSE clients/vscode/
	$(BIN)/python -m hatchling build -d dist
	cd clients/python && $(CURDIR)/$(BIN)/python -m hatchling build -d $(CURDIR)/dist
	cd clients/typescript && npm pack --pack-destination $(CURDIR)/dist
	cd clients/vscode && npm run build && $(CURDIR)/$(DIST_CHECKS)/node_modules/.bin/vsce package \
		--no-dependencies --allow-missing-repository --out $(CURDIR)/dist/
	$(DIST_TOOLS)/bin/twine check --strict dist/*.whl dist/*.tar.gz
	$(DIST_TOOLS)/bin/check-wheel-contents --toplevel $(WHEEL_PACKAGES) dist/apply_service-*.whl
	$(DIST_TOOLS)/bin/check-wheel-contents dist/apply_client-*.whl
	$(DIST_CHECKS)/node_modules/.bin/publint --strict dist/apply-client-*.tgz
	$(DIST_CHECKS)/node_modules/.bin/attw dist/apply-client-*.tgz --profile esm-only

test-dist: dist
	$(BIN)/pytest -s -m dist tests/deployment $(ARGS)

$(DIST_TOOLS)/tools.stamp: $(DIST_CHECKS)/requirements.txt | $(VENV)/python.stamp
	$(PYTHON) -m venv $(DIST_TOOLS)
	$(DIST_TOOLS)/bin/python -m pip install --disable-pip-version-check --quiet --requirement $<
	@touch $@

$(DIST_CHECKS)/node_modules/checks.stamp: $(DIST_CHECKS)/package-lock.json
	npm --prefix $(DIST_CHECKS) ci --ignore-scripts --no-audit --no-fund --prefer-offline
	@touch $@

# Debian's browser, for the tests of the page, and what VS Code in it searches files with.
$(CHROMIUM):
	@command -v chromium > /dev/null && command -v rg > /dev/null \
		|| { apt-get update && apt-get install --yes --no-install-recommends chromium ripgrep; } \
		|| { echo 'The page is tested in Chromium: install the packages chromium and ripgrep.' >&2; exit 1; }
	@mkdir -p $(@D) && touch $@

$(BALANCERS):
	@PATH="$$PATH:/usr/sbin"; command -v nginx > /dev/null && command -v haproxy > /dev/null \
		|| { apt-get update && RUNLEVEL=1 apt-get install --yes --no-install-recommends nginx-light haproxy; } \
		|| { echo 'Balancers are tested with nginx and haproxy: install these packages.' >&2; exit 1; }
	@mkdir -p $(@D) && touch $@

clients/vscode/node_modules/vscode.stamp: clients/vscode/package-lock.json
	npm --prefix clients/vscode ci --ignore-scripts --no-audit --no-fund --prefer-offline
	@touch $@

$(NEOVIM)/neovim.stamp: tests/clients/neovim/requirements.txt | $(VENV)/python.stamp
	$(BIN)/python -m pip install --disable-pip-version-check --quiet --no-deps --upgrade \
		--target $(NEOVIM) --requirement tests/clients/neovim/requirements.txt
	@touch $@

# Its native modules are compiled, which needs a C++ compiler.
$(CODE_SERVER)/code-server.stamp: tests/clients/vscode/code_server/install.sh \
	tests/clients/vscode/code_server/package-lock.json | $(CHROMIUM)
	rm -rf $(CODE_SERVER) && PYTHON="$(PYTHON)" sh $< $(CODE_SERVER)
	@touch $@

$(CLIENTS_VENV)/clients.stamp: $(REAL_CLIENTS)/requirements.txt $(REAL_CLIENTS)/constraints.txt | $(VENV)/python.stamp
	$(PYTHON) -m venv $(CLIENTS_VENV)
	$(CLIENTS_VENV)/bin/python -m pip install --disable-pip-version-check --quiet \
		--requirement $(REAL_CLIENTS)/requirements.txt --constraint $(REAL_CLIENTS)/constraints.txt
	@touch $@

$(REAL_CLIENTS)/node_modules/clients.stamp: $(REAL_CLIENTS)/package-lock.json $(CLIENTS_VENV)/clients.stamp
	$(CLIENTS_PATH) npm --prefix $(REAL_CLIENTS) ci --ignore-scripts --no-audit --no-fund --prefer-offline
	@touch $@

# Installs nothing: with the environment that is there, or with PYTHON and its packages.
GPU_PYTHON := $(if $(wildcard $(BIN)/python),$(BIN)/python,$(PYTHON))
GPU_DIR := build/gpu

# In the order of what is wanted most; each part writes what it has at once.
GPU_PARTS := \
	"7b-one --shape 7b --k 64 --batch 1 --attention-context none --lookup-tokens 0" \
	"7b --shape 7b --k 0,16,64 --batch 1,8,32,128 --lookup-tokens 256" \
	"1.5b --shape 1.5b --k 0,16,64 --batch 1,8,32,128 --lookup-tokens 256" \
	"7b-long --shape 7b --k 0,64 --batch 1,8 --context 32768 --attention-context 32768 --lookup-tokens 0" \
	"7b-eager --shape 7b --k 0,64 --batch 1,32 --no-graphs --attention-context none --lookup-tokens 0" \
	"7b-fp8 --shape 7b --k 0,64 --batch 1,32 --weights fp8 --attention-context none --lookup-tokens 0"

gpu:
	@$(GPU_PYTHON) -c 'import torch; torch.cuda.is_available() or exit("no CUDA device was found")'
	mkdir -p $(GPU_DIR)
	@failed=0; set -x; \
	$(GPU_PYTHON) -m pytest -m gpu tests/gpu --junit-xml=$(GPU_DIR)/tests.xml || failed=1; \
	for part in $(GPU_PARTS); do \
		$(GPU_PYTHON) -m benchmarks gpu $${part#* } --steps 20 --out $(GPU_DIR)/$${part%% *}.json $(ARGS) \
			|| failed=1; \
	done; \
	$(GPU_PYTHON) -m benchmarks device_model --fit $(GPU_DIR)/7b.json $(GPU_DIR)/1.5b.json \
		| tee $(GPU_DIR)/fit.md || failed=1; \
	exit $$failed

cases: $(VENV)/training.stamp
	$(BIN)/python -m training.corpus $(ARGS)

corpus-pack: $(VENV)/training.stamp $(VENV)/model.stamp
	$(BIN)/python -m training.corpus_pack --base "$$($(BASE_MODEL_DIR))" $(ARGS)

train: $(VENV)/training.stamp $(VENV)/model.stamp
	$(BIN)/python -m training.finetune --base "$$($(BASE_MODEL_DIR))" $(DEVICE_ARGS) $(ARGS)

# One pass of a GPU holds several examples; everything else is as on a CPU.
train-gpu: DEVICE_ARGS := --device cuda --threads 1 --examples-per-step 64 --max-packed-tokens 16384
train-gpu: train

calibrate: $(VENV)/training.stamp $(VENV)/model.stamp
	$(BIN)/python -m training.calibrate --base "$$($(BASE_MODEL_DIR))" \
		--adapter apply_service/models/smollm2-135m-apply --max-outside-mass 1 $(ARGS)
	$(BIN)/apply-service model prepare

# Each stage takes up to an hour on two cores and goes on where it was stopped.
drafter: $(VENV)/training.stamp $(VENV)/model.stamp
	$(BIN)/python -m training.drafters collect --model "$$($(SERVED_MODEL_DIR))"
	$(BIN)/python -m training.drafters train --kind $(KIND) --out build/drafters/$(KIND) $(ARGS)
	$(BIN)/python -m training.drafters evaluate --drafter $(KIND):build/drafters/$(KIND)/ckpt

merge-scores: $(VENV)/training.stamp
	$(BIN)/python -m training.blind build
	$(BIN)/python -m training.corpus --share 0.5 --out build/commits
	$(BIN)/python -m training.fit_merges --out apply_service/edit/place/score/merge_scores.msgpack $(ARGS)

clean:
	rm -rf apply_service/http/page/static clients/*/dist clients/*/node_modules clients/*/LICENSE $(REAL_CLIENTS)/node_modules
	rm -rf $(DIST_CHECKS)/node_modules
	rm -rf $(VENV) build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -prune -exec rm -rf {} +

$(VENV)/python.stamp:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo 'Python 3.11 or newer is needed; name one with PYTHON=python3.12' >&2; exit 1; }
	@echo 'Setting up .venv; this is done once.'
	$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/torch.stamp: $(VENV)/python.stamp constraints.txt
	$(PIP_INSTALL) $(if $(TORCH_INDEX),--extra-index-url '$(TORCH_INDEX)') torch
	@touch $@

$(VENV)/service.stamp: $(VENV)/torch.stamp pyproject.toml
	$(PIP_INSTALL) --editable '.[service]'
	@touch $@

$(VENV)/dev.stamp: $(VENV)/torch.stamp pyproject.toml clients/python/pyproject.toml
	$(PIP_INSTALL) --editable '.[service,training,dev]' --editable 'clients/python[mcp]'
	@touch $@ $(VENV)/service.stamp $(VENV)/training.stamp

$(VENV)/ray.stamp: $(VENV)/dev.stamp
	$(PIP_INSTALL) --editable '.[ray]'
	@touch $@

# Without npm or a network the tests of the TypeScript client are skipped, with the reason.
$(VENV)/node.stamp: clients/typescript/package-lock.json | $(VENV)/python.stamp
	@if ! command -v npm > /dev/null; then echo 'No npm: nothing is tested under Node.js.'; \
	elif npm --prefix clients/typescript ci --ignore-scripts --no-audit --no-fund \
		--prefer-offline --fetch-retries=0; then touch $@; \
	else echo 'npm failed: nothing is tested under Node.js.'; fi

$(VENV)/training.stamp: $(VENV)/torch.stamp pyproject.toml
	$(PIP_INSTALL) --editable '.[service,training]'
	@touch $@ $(VENV)/service.stamp

# Not redone when the packages change: the model is checked by its own hash.
$(VENV)/model.stamp: $(ADAPTER_FILES) | $(VENV)/service.stamp
	$(BIN)/apply-service model prepare
	@touch $@
