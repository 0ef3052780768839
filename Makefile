# `make` alone lists what there is. Everything runs in .venv, made on first use.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
RUN := $(abspath $(BIN))
PYTEST := $(RUN)/python -m pytest

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help setup demo test lint types docs bench bench-demo bench-sessions golden screenshots ci \
  bench-sessions-evidence test-engines test-ray test-vllm bench-vllm bench-vllm-sessions

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-23s %s\n", $$1, $$2}' Makefile

# Two stamps: `make demo` needs the package and click, the rest needs the tools too.
$(VENV)/.package: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
	  || { echo "AdmitPerf needs Python 3.11 or newer; name one: make PYTHON=python3.12" >&2; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) \
	  || { rm -rf $(VENV); echo "$(PYTHON) cannot make a virtual environment (on Debian: apt-get install python3-venv)" >&2; exit 1; }
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade 'pip>=25.1'
	@$(BIN)/python -m pip install --quiet --editable '.[all]'
	@touch $@

$(VENV)/.tools: $(VENV)/.package
	@$(BIN)/python -m pip install --quiet --group dev
	@touch $@

setup: $(VENV)/.tools ## make .venv with the package and every tool

demo: $(VENV)/.package ## three policies in front of a simulated engine, with a verdict
	@$(BIN)/admitperf demo

test: $(VENV)/.tools ## the fast tests
	@$(PYTEST) -m "not real_engine and not real_vllm and not ray"

lint: $(VENV)/.tools ## ruff, import rings, docstrings, spelling
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/lint-imports --no-cache
	@$(BIN)/interrogate --quiet tests || $(BIN)/interrogate -vv --omit-covered-files tests
	@$(BIN)/codespell

types: $(VENV)/.tools ## mypy, strict
	@$(BIN)/mypy

docs: $(VENV)/.tools ## build the site, a broken link fails
	@rm -rf site  # not --clean: that would empty all of .cache, the engines built there too
	@$(BIN)/zensical build --strict

bench: $(VENV)/.tools ## the speed tables, and the proof of the statistics
	@$(BIN)/python benchmarks/run.py
	@$(BIN)/python benchmarks/reports.py
	@$(BIN)/python benchmarks/html.py
	@$(BIN)/python benchmarks/dashboard.py
	@$(BIN)/python benchmarks/method.py
	@$(BIN)/python benchmarks/method_engine.py
	@$(BIN)/python benchmarks/simulator.py
	@$(BIN)/python benchmarks/serve.py
	@$(BIN)/python benchmarks/reality.py
	@$(BIN)/python benchmarks/gateway.py
	@$(BIN)/python benchmarks/policies.py
	@$(BIN)/python benchmarks/adaptive.py

bench-demo: $(VENV)/.tools ## six policies, five loads, eight blocks: under 3 minutes
	@$(BIN)/python benchmarks/bench_page.py

bench-sessions: $(VENV)/.tools ## the same of long agent sessions: an hour
	@$(BIN)/python benchmarks/bench_page.py --preset sessions

bench-sessions-evidence: $(VENV)/.tools ## whole agent sessions, simulated: half an hour on two cores
	@$(BIN)/python -m benchmarks.sessions final --fresh
	@$(BIN)/python -m benchmarks.sessions page

screenshots: $(VENV)/.tools ## take the pictures of the dashboard (needs Chromium)
	@$(BIN)/python tools/screenshots.py

golden: $(VENV)/.tools ## rewrite the golden files, then look at the diff
	@$(PYTEST) -m "not real_engine and not real_vllm and not ray" --update

test-engines: $(VENV)/.tools ## start a real llama.cpp server and test against it
	@PYTHON=$(RUN)/python sh infra/llamacpp/build.sh
	@$(PYTEST) -m real_engine

test-ray: $(VENV)/.tools ## install Ray (200 MB) and test the executor that uses it
	@$(BIN)/python -m pip install --quiet --group ray
	@$(PYTEST) -m ray

test-vllm: $(VENV)/.tools ## install a real vLLM for the CPU (2.5 GB) and test against it
	@sh infra/vllm/build.sh
	@ADMITPERF_VLLM_VENV=$(abspath .cache/vllm/venv) ADMITPERF_VLLM_MODEL=$(abspath .cache/vllm/tiny) \
	  $(PYTEST) -m real_vllm

bench-vllm: $(VENV)/.tools ## install that vLLM, benchmark four arms on it, write docs/results
	@sh infra/vllm/build.sh
	@$(BIN)/python benchmarks/bench_vllm.py

bench-vllm-sessions: $(VENV)/.tools ## the same claim on that vLLM: agents through the gateway
	@sh infra/vllm/build.sh
	@$(BIN)/python benchmarks/bench_vllm_sessions.py

# In this order: the cheap checks first, pytest's closing summary last.
ci: lint types docs demo test-engines ## what CI runs
	@$(BIN)/python benchmarks/run.py --quick
	@$(BIN)/python benchmarks/reports.py --quick
	@$(BIN)/python benchmarks/html.py --quick
	@$(BIN)/python benchmarks/method.py --quick
	@$(BIN)/python benchmarks/method_engine.py --quick
	@$(BIN)/python benchmarks/simulator.py --quick
	@$(BIN)/python benchmarks/gateway.py --quick --arms direct admitperf
	@$(MAKE) --no-print-directory test
