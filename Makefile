# make compare        the comparison on the embedded data (digits)       make test        lint, types and all tests
# make compare-mnist  the comparison on real MNIST                       make test-fast   the fast tests alone
# make speed          tuneoff's own speed, as ratios                     make kill-test   kill `compare` at 20 random moments
# make fuzz           10 000 fuzzed experiment files, 2 000 damaged results folders, 1 000 bundles, 300 hostile ones (ARGS='--count 300': of each, found and shrunk by Hypothesis)
# make corpus       run the recorded results folders of the tests again (ARGS='NAME ...'; --figures: only what commands say; --derive)
# make test-planted    plant defects in a copy of the source and see which tests catch them, the corpus first (ARGS="judge cli-3": these lists and plants)
# make image          the image of Katib's trials, by podman, buildah or docker (IMAGE=name:tag, ARGS='--build-arg BASE=...': docs/katib.md)
# make test-hosts   the tests on several hosts, which are namespaces of this machine: needs root (ARGS='-k ray'); two files at a time
# Everything is set up at the first call, in .venv; later calls install nothing.

PYTHON ?= python3
VENV ?= .venv
ARGS ?=
IMAGE ?= tuneoff
BIN := $(VENV)/bin
PARALLEL := --dist loadfile# files of tests at a time: three on two cores, five of the slow ones, which wait for half of their time
# slow tests of times, processor use or processes of the whole machine: nothing else may run
ALONE := tests/run/matrix/test_cpu_limit.py \
	tests/e2e/test_copies.py::test_each_job_has_its_share_of_the_processors_and_of_the_memory \
	'tests/trust/test_workload_check.py::test_each_defect_is_caught_by_its_check_alone[Threaded-threads.limited]' \
	$(patsubst %,tests/e2e/test_%.py,disturbed_runs known_answers sampled_processes slot_presence worker_limits)
# real processes and times: what fails beside the machine's other programs is tried once more; both results are printed
AGAIN = || { [ $$? = 1 ] && $(BIN)/python -m pytest --last-failed --last-failed-no-failures none $(ARGS); }
INSTALLED := $(VENV)/.installed
unexport PYTHONDONTWRITEBYTECODE# without it every process of a test would compile what it imports

.DEFAULT_GOAL := compare
.PHONY: setup compare compare-mnist test test-fast test-slow test-hosts lint test-planted corpus speed kill-test fuzz image clean

setup: $(INSTALLED)

$(INSTALLED): pyproject.toml adapters/katib_emulation/pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "tuneoff needs Python 3.11 or later, but $(PYTHON) is %d.%d; run: make PYTHON=python3.11" % sys.version_info[:2])'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]' --editable adapters/katib_emulation
	@touch $@

compare: $(INSTALLED)
	$(BIN)/tuneoff compare benchmarks/digits_katib.yaml --no-report
	$(BIN)/tuneoff compare benchmarks/digits.yaml $(ARGS)

compare-mnist: $(INSTALLED)
	$(BIN)/tuneoff compare benchmarks/mnist.yaml $(ARGS)

test: lint test-fast test-slow

lint: $(INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

test-fast: $(INSTALLED)
	$(BIN)/python -m pytest -m 'not slow and not multihost' -n 3 $(PARALLEL) $(ARGS) $(AGAIN)

test-slow: $(INSTALLED)
	$(BIN)/python -m pytest -m 'slow and not multihost' -n 5 $(PARALLEL) --no-loadscope-reorder $(ARGS) $(ALONE:%=--deselect=%) $(AGAIN)
	$(BIN)/python -m pytest -m slow $(ARGS) $(ALONE) $(AGAIN)

test-hosts: $(INSTALLED)
	$(BIN)/python -m pytest -m multihost -rs -v -n 2 --dist loadfile $(ARGS) $(AGAIN)

test-planted: $(INSTALLED)
	$(BIN)/python tests/planted/run.py $(ARGS)

corpus: $(INSTALLED)
	$(BIN)/python tests/corpus/make.py $(ARGS)
	$(BIN)/python -m pytest tests/corpus --snapshot-update

speed: $(INSTALLED)
	$(BIN)/python -m benchmarks.speed $(ARGS)

kill-test: $(INSTALLED)
	$(BIN)/python tests/e2e/random_kills.py $(ARGS)

fuzz: $(INSTALLED)
	$(BIN)/python -m pytest tests/fuzz/test_fuzz.py -k answered --count 0 --hypothesis-seed 0 --timeout 0 -rP -n 2 --dist load $(ARGS)

image:
	@tool=$$(command -v $(or $(TOOL),podman) || command -v $(or $(TOOL),buildah) || command -v $(or $(TOOL),docker)) \
	  || { echo 'make image needs podman, buildah or docker, but none of them is here; install one' >&2; exit 1; }; \
	set -x; "$$tool" build --tag $(IMAGE) --file Containerfile $(ARGS) .

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis
