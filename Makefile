# The front door. Each target installs what is missing, configures, builds and runs; the work is in CMakePresets.json.

PYTHON := /usr/bin/python3
SOURCES = $(shell git ls-files -co --exclude-standard '*.h' '*.cpp' '*.cu' '*.cuh')
JOBS := $(shell nproc 2>/dev/null || echo 2)

.PHONY: build program test faults study bench bench-beside parity asan tsan clang fuzz dist cuda dist-cuda test-cuda web web-check web-test format format-check tidy clean help

build: build/release/build.ninja  ## build everything (default)
	cmake --build --preset release

test: build  ## build and run all tests
	ctest --preset release -j $(JOBS)

faults: build  ## inject every fault into the file system calls of train, sweep and study (docs/reliability.md)
	build/release/tests/faults/norma_faults --jobs $(JOBS)

program: build/release/build.ninja  ## build norma alone, without its tests
	cmake --build --preset release --target norma

study: program  ## compare schemes on generated data; ends with a table and study/report.html
	build/release/bin/norma study

bench: build  ## measure kernels and training steps against this machine's limits, and against PyTorch where it is installed
	@if $(PYTHON) -c 'import torch' 2>/dev/null; then \
	  echo "measuring PyTorch ..." && $(PYTHON) bench/pytorch_cpu.py > build/pytorch_cpu.json && \
	  build/release/bin/norma bench --peer build/pytorch_cpu.json; \
	else build/release/bin/norma bench; fi

bench-beside: build  ## norma and PyTorch in turns, seven rounds: norms in cache and training steps
	$(PYTHON) bench/beside_pytorch.py --match layer/forward/4096x512 --match layer/backward/4096x512 \
	  --match 'step/6 layers' --match 'step/12 layers' --match 'step/100 layers'

parity: build  ## compare with PyTorch, forward and gradients (skipped without python3-torch)
	@if $(PYTHON) -c 'import torch' 2>/dev/null; then cmake --build --preset release --target parity; \
	else echo "parity: skipped, $(PYTHON) has no torch (Debian package python3-torch)"; fi

# Left out, because it takes long there: finite differences of whole models, learning, deep networks, the catalogue's
# schemes one by one (some are kept in train_test), equal bits in many arrangements, sweeps stopped at many moments or
# refilled, and most whole processes. So streaming stores and the lowering of a rate are not run under the sanitizers.
ASAN_TESTS = lab_sweep_test='StudyDepths.Each*:StudyDepths.ABudget*:StudyDirectory.ADifferent*:SweepDirectory.RunsSweeps*:Study.StoppedInAny*:Study.AScheme*:StudyRounds.*:Statistics.Equal*:SideBySide.TheBits*:Sweep.AMemberIs*:Sweep.StoppedWhile*:Sweep.PlacesOf*:Sweep.Halving*:SweepKill.*' \
  norms_test='*BitsDependNeither*:*SingleAgreesWithDouble*:Streaming.*' \
  train_test='Judge.*:*LearnsOneBatch*:All/Searches.AWide*:Sample.Follows*:Recovery.LowersTheRate*:Some/Schemes.*/pre:Some/Schemes.*/post:Some/Schemes.*/rezero:Settings/Resume.*/1:Settings/Resume.*/2:Settings/Resume.*/3:Settings/Resume.*/5:Settings/Resume.*/6' \
  models_test='Catalogue/Gradients.*:Catalogue/Equivalence.*:Of/Variants*:Gradients.*' theory_test='*TheoryAgainst*' \
  graph_test='Session.AMemberOf*' data_test='Sentences.Claims*' \
  cli_test=='*Process.Mistakes*:SchemesProcess.Lists*:InspectProcess.Damaged*:InspectProcess.SetsExponents*:TrainProcess.ARerun*:SweepProcess.TheIndex*:-GenerateProcess.*:TrainProcess.Mistakes*' \
  ops_test='*InManyChunks/tied' ops_attention_test='Attention.SinglePrecision*' store_test='Safetensors.EveryFlippedBit*' \
  schemes_test core_test report_test

asan: build/asan/build.ninja  ## build with clang 16, tests under the address and undefined-behaviour sanitizers
	cmake --build --preset asan
	tests/run_programs build/asan $(JOBS) $(ASAN_TESTS)

tsan: build/tsan/build.ninja  ## tests under the thread sanitizer
	cmake --build --preset tsan
	ctest --preset tsan -j $(JOBS)

clang: build/clang/build.ninja  ## build everything with clang 16
	cmake --build --preset clang

fuzz: build/asan/build.ninja  ## run the fuzzers of formulas, images, scheme files and texts for 15 s each (clang 16; FUZZ_SEED=1: the same inputs again)
	cmake --build --preset asan --target formula_fuzzer image_fuzzer scheme_fuzzer text_fuzzer
	fuzz/run build/asan 15 $(FUZZ_SEED)

dist: build/release/build.ninja  ## build/dist/norma: a folder and tarball that run where nothing can be installed
	cmake --build --preset release --target norma
	tools/dist build/release build/dist/norma

cuda: build/cuda/build.ninja  ## build everything with CUDA
	cmake --build --preset cuda

dist-cuda: build/cuda-dist/build.ninja  ## build/dist-cuda/norma: the same for machines with an NVIDIA GPU
	cmake --build --preset cuda-dist --target norma
	tools/dist build/cuda-dist build/dist-cuda/norma

test-cuda: build/cuda/build.ninja  ## build/test-cuda/tests: the tests of the GPU, to be carried to one: bin/cuda_test
	cmake --build --preset cuda --target cuda_test train_test norma
	tools/dist --without libcublasLt build/cuda build/test-cuda/tests build/cuda/tests/cuda_test build/cuda/tests/train_test build/cuda/bin/norma

WEB_READY = command -v npm >/dev/null && node -e 'const [a, b] = process.versions.node.split("."); process.exit(a > 20 || (a == 20 && b >= 19) ? 0 : 1)'

# `npm install` and not `npm ci`: the lock file may have been written where packages for other platforms could not be seen.
web:  ## build web/dist/report.html, the page of the report, from TypeScript (needs node 20.19 and npm; skipped without)
	@if $(WEB_READY); then cd web && { [ node_modules/.package-lock.json -nt package-lock.json ] || npm install --no-save --silent --no-progress; } && npm run --silent build; \
	else echo "web: skipped, there is no npm with node 20.19 or newer; the committed web/dist/report.html is used"; fi

web-check: web  ## fail when the committed page, or its types of results.json, are not what their sources make
	@git diff --stat --exit-code -- web/dist web/src/data/results_schema.ts || { echo "out of date: commit what \`make web\` builds"; exit 1; }

web-test: web program  ## test the report that norma makes in headless Chromium (skipped without chromium or npm)
	@if $(WEB_READY); then node --test --test-reporter=spec tests/web/*.test.mjs; else echo "web-test: skipped"; fi

format:  ## format the sources in place
	@tools/packages clang
	clang-format-16 -i $(SOURCES)

format-check:  ## fail when a source is not formatted
	@tools/packages clang
	@clang-format-16 --dry-run -Werror $(SOURCES)

tidy: build/asan/build.ninja  ## clang-tidy over core and graph
	@run-clang-tidy-16 -quiet -p build/asan -j $(JOBS) '/src/(core|graph)/' >build/tidy.log 2>&1 || { cat build/tidy.log; exit 1; }

clean:  ## remove all build folders
	rm -rf build

help:  ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' Makefile

# Checks the packages every time (milliseconds), configures a new build folder; ninja reconfigures by itself after that.
build/%/build.ninja: | packages-%
	cmake --preset $*

.PHONY: packages-release packages-asan packages-tsan packages-clang packages-cuda packages-cuda-dist
packages-release packages-tsan packages-cuda packages-cuda-dist:
	@tools/packages build
packages-asan packages-clang:
	@tools/packages build clang
