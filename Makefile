PYTHON ?= python3
BIN := .venv/bin
INSTALLED := .venv/.installed
DEVELOPED := .venv/.developed
AUDIT := .venv/audit
PIP = $(BIN)/pip install --quiet --disable-pip-version-check
# Which build of torch: on a GPU machine for example  make install TORCH="torch==2.13.0 --index-url <CUDA wheels>"
# Unless given, the build that is installed stays; the stamp says which that is.
BUILT := $(shell cat $(INSTALLED) 2>/dev/null)
TORCH ?= $(or $(BUILT),torch==2.13.0)
# A machine with an NVIDIA GPU takes the libraries by which CTranslate2 computes there; EXTRA= leaves them out.
EXTRA ?= $(if $(shell nvidia-smi --list-gpus 2>/dev/null),[gpu])

# Training, encoding, `bsl adapt`, `tiny`, int8 graphs, translation, in the order of what takes longest
WEAK := tests/flows/test_adapt.py tests/unit/models/training \
  tests/flows/test_pipeline.py::test_report_names_what_it_is_made_of \
  tests/flows/test_pipeline.py::test_every_kind_is_there_and_whole \
  tests/unit/models/encoder/test_sentence_encoder.py tests/unit/models/encoder/test_unpadded.py \
  tests/unit/models/encoder/test_int8.py tests/unit/models/translation/test_ctranslate.py \
  tests/unit/models/runtime/test_device_arithmetic.py tests/unit/tasks/embedding/test_embed.py

.PHONY: install develop run test test-slow test-avx2 lint bench bench-gpu bench-cpu docs ui audit sbom clean
ifneq ($(TORCH),$(BUILT))
.PHONY: $(INSTALLED)
endif

run: install  ## the main job: raw sentences to an evaluated encoder, on this machine, without the Hub
	@$(BIN)/bsl run tiny

test: lint  ## every gate: style, types, import contract, tests
	$(BIN)/python -m pytest $(PYTEST)

test-slow: develop  ## the tests that `make test` leaves out: kills, long drives
	$(BIN)/python -m pytest -m slow

test-avx2: develop  ## a part of the tests as on a processor with AVX2 only: torch and oneDNN read the variables when they load
	ONEDNN_MAX_CPU_ISA=AVX2 ATEN_CPU_CAPABILITY=avx2 $(BIN)/python -m pytest $(WEAK)

lint: develop
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: develop  ## ratios against peers measured in the same run; prints tables for BENCHMARKS.md
	for bench in tests/bench/bench_*.py; do $(BIN)/python $$bench || exit 1; done

bench-gpu bench-cpu: install  ## is this machine's GPU or processor right, how fast, how near its limits: at most 10 or 5 minutes; a table
	@$(BIN)/bsl bench $(@:bench-%=%)

docs: install  ## the documents as a site, in site/; a link that leads nowhere ends it
	$(PIP) --constraint constraints.txt --editable '.[docs]'
	$(BIN)/python -m docs.build site

ui: install  ## the Prefect UI over the runs of this folder
	@$(BIN)/bsl ui

audit: $(AUDIT)/.installed  ## known holes in the pinned packages; asks PyPI
	$(AUDIT)/bin/pip-audit --strict --requirement constraints.txt --no-deps --disable-pip

sbom: install $(AUDIT)/.installed  ## what a release is made of, as CycloneDX: dist/bsl-pipeline.cdx.json
	mkdir -p dist
	$(AUDIT)/bin/cyclonedx-py environment $(BIN)/python --pyproject pyproject.toml --output-file dist/bsl-pipeline.cdx.json

install: $(INSTALLED)

$(INSTALLED): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	test '$(TORCH)' = '$(BUILT)' || $(BIN)/pip uninstall --quiet --quiet --yes torch  # pip sees one version in all builds
	$(PIP) $(TORCH)
	$(PIP) --constraint constraints.txt --editable '.$(EXTRA)'
	echo '$(TORCH)' > $@

develop: $(DEVELOPED)  ## what tests and benches need beside it

$(DEVELOPED): $(INSTALLED)
	$(PIP) --constraint constraints.txt --editable '.[dev]'
	touch $@

$(AUDIT)/.installed:
	test -x $(AUDIT)/bin/python || $(PYTHON) -m venv $(AUDIT)
	$(AUDIT)/bin/pip install --quiet --disable-pip-version-check pip-audit==2.10.1 cyclonedx-bom==7.5.0
	touch $@

clean:
	rm -rf .venv
