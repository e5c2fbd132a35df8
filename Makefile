PYTHON ?= python3
BIN := .venv/bin
INSTALLED := .venv/.installed
DEVELOPED := .venv/.developed
AUDIT := .venv/audit
# Tests write compiled modules even where the environment forbids it: workers and commands that tests start share them.
PYTEST_RUN = PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest
# Progress in a terminal only; elsewhere pip would print 400 lines
PIP = test -t 1 || export PIP_QUIET=1; $(BIN)/pip install --disable-pip-version-check
# Build of torch; for a GPU machine for example  make install TORCH="torch==2.13.0 --index-url <CUDA wheels>"
# Default: the installed build, which the stamp file records.
BUILT := $(shell cat $(INSTALLED) 2>/dev/null)
TORCH ?= $(or $(BUILT),torch==2.13.0)
# With an NVIDIA GPU, also install the libraries that CTranslate2 needs on it; EXTRA= leaves them out.
EXTRA ?= $(if $(shell nvidia-smi --list-gpus 2>/dev/null),[gpu])

# Training, encoding, `bsl adapt`, `tiny`, int8 graphs, translation; slowest tests first
WEAK := tests/flows/test_adapt.py tests/unit/models/training \
  tests/flows/test_pipeline.py::test_report_contains_scores_settings_and_charts \
  tests/flows/test_pipeline.py::test_pipeline_publishes_every_artifact_kind_without_defects \
  tests/unit/models/encoder/test_sentence_encoder.py tests/unit/models/encoder/test_unpadded.py \
  tests/unit/models/encoder/test_int8.py tests/unit/models/translation/test_ctranslate.py \
  tests/unit/models/runtime/test_device.py tests/unit/tasks/embedding/test_embed.py

# Whole runs as users start and stop them: from the Hub, by a deployment, in processes, from a wheel, until a signal
JOURNEYS := tests/flows/test_recipes_from_the_hub.py \
  tests/flows/test_embedded_server.py::test_server_answers_own_pages_alone_until_a_signal_ends_command_and_run \
  tests/flows/test_deployment.py::test_deployed_run_evaluation_and_pool_sweep_report_equal_scores \
  tests/flows/test_seams.py tests/flows/test_wheel.py \
  tests/flows/test_workers.py::test_two_workers_produce_the_same_artifacts \
  tests/unit/tasks/training/test_distributed.py::test_training_with_two_processes_gives_single_process_weights

.PHONY: install develop run check check-types check-tests test test-slow test-differential test-journeys test-avx2 test-assets \
  test-benchmarks coverage mutants lint bench bench-gpu bench-cpu docs ui audit sbom clean
ifneq ($(TORCH),$(BUILT))
.PHONY: $(INSTALLED)
endif

run: install  ## run recipe `tiny`: raw sentences to an evaluated encoder, on this machine, without the Hub
	@$(BIN)/bsl run tiny

check: develop  ## seconds: style, imports, types, and the tests of the files that differ from HEAD (SINCE=COMMIT for another commit)
	@$(BIN)/ruff check --quiet . && $(BIN)/ruff format --quiet --check .
	@found=$$($(BIN)/lint-imports) || { echo "$$found"; exit 1; }
	@$(MAKE) --no-print-directory -j2 check-types check-tests
	@echo "Not run: whole runs (tests/flows), and what every stage makes under its version (tests/golden). make test runs both."

check-types:
	@$(BIN)/mypy --no-error-summary

check-tests:
	@tests=$$($(BIN)/python tests/changed.py $(SINCE)); test -z "$$tests" || $(PYTEST_RUN) -q -n 0 $$tests

test: lint  ## all checks: style, types, import contract, tests
	$(PYTEST_RUN) $(PYTEST)

test-slow: develop  ## the tests that `make test` skips: kills, whole runs, long sequences
	$(PYTEST_RUN) -m slow

test-differential: develop  ## thousands of generated inputs beside peers; `make test` runs a sample
	BSL_GENERATED=7000 $(PYTEST_RUN) -m differential

test-journeys: develop  ## those slow tests that run a whole job as users do
	$(PYTEST_RUN) -m slow $(JOURNEYS)

test-avx2: develop  ## some tests as on a processor with only AVX2: torch and oneDNN read the variables when they load
	ONEDNN_MAX_CPU_ISA=AVX2 ATEN_CPU_CAPABILITY=avx2 $(PYTEST_RUN) $(WEAK)

test-assets: develop  ## tests of assets/, where the embedded models are made
	$(PYTEST_RUN) tests/assets

test-benchmarks: develop  ## tests of `make bench-cpu`; its smoke test is part of `make test`
	$(PYTEST_RUN) tests/benchmarks

coverage: develop  ## which tests reach which line (.coverage), and their seconds (.durations): half an hour
	$(PYTEST_RUN) --cov --cov-context=test --cov-report= --durations=0 | tee .durations

mutants: develop  ## tests against COUNT small faults in FOLDER, after `make coverage`; lists those that no test finds
	$(BIN)/python -m tests.mutants $(FOLDER) --count $(COUNT) --seed $(SEED)

lint: develop
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy --num-workers 2
	$(BIN)/lint-imports

bench: develop  ## ratios against peers measured in the same run; prints tables for BENCHMARKS.md
	for bench in $(basename $(notdir $(wildcard benchmarks/speed/bench_*.py))); do \
	  $(BIN)/python -m benchmarks.speed.$$bench || exit 1; done

bench-gpu bench-cpu: install  ## correctness, speed and utilisation of this machine's GPU or CPU (at most 10 or 5 minutes)
	@$(BIN)/python -m benchmarks $(@:bench-%=%)

docs: install  ## build the documentation site in site/; a broken link is an error
	$(PIP) --constraint constraints.txt --editable '.[docs]'
	$(BIN)/python -m docs.build site

ui: install  ## the Prefect UI with the runs of this folder
	@$(BIN)/bsl ui

audit: $(AUDIT)/.installed  ## known vulnerabilities of the pinned packages, from PyPI
	$(AUDIT)/bin/pip-audit --strict --requirement constraints.txt --no-deps --disable-pip

sbom: install $(AUDIT)/.installed  ## the packages of a release as a CycloneDX SBOM: dist/bsl-pipeline.cdx.json
	mkdir -p dist
	$(AUDIT)/bin/cyclonedx-py environment $(BIN)/python --pyproject pyproject.toml --output-file dist/bsl-pipeline.cdx.json

install: $(INSTALLED)

$(INSTALLED): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	test '$(TORCH)' = '$(BUILT)' || $(BIN)/pip uninstall --quiet --quiet --yes torch  # all builds have the same version for pip
	$(PIP) $(TORCH)
	$(PIP) --constraint constraints.txt --editable '.$(EXTRA)'
	echo '$(TORCH)' > $@

develop: $(DEVELOPED)  ## also install the dependencies of tests and benchmarks

$(DEVELOPED): $(INSTALLED)
	$(PIP) --constraint constraints.txt --editable '.[dev]'
	touch $@

$(AUDIT)/.installed:
	test -x $(AUDIT)/bin/python || $(PYTHON) -m venv $(AUDIT)
	$(AUDIT)/bin/pip install --quiet --disable-pip-version-check pip-audit==2.10.1 cyclonedx-bom==7.5.0
	touch $@

clean:
	rm -rf .venv
