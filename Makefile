# `make demo` and `make test` do all set-up. `make help` lists the other targets. Builds
# and downloads go to bin/, to Go's caches and to the user's cache directory (see
# docs/tour.md).

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
LDFLAGS := -s -w -X github.com/lifeboat-dev/lifeboat/internal/version.version=$(VERSION)
TOOL    := go tool -modfile=hack/tools.mod
LINT    := go tool -modfile=hack/lint.mod
# One set of build flags for programs and tests, so that packages compile once.
export GOFLAGS := -buildvcs=false -trimpath
export CGO_ENABLED := 0

# The older release of `make skew`, a git commit. There is no release yet, so it is this commit.
OLDER ?= HEAD
# The minor versions of `make matrix`.
KUBERNETES ?= 1.35 1.36 1.37
KARPENTER ?= 1.0 1.14

.DEFAULT_GOAL := help
.PHONY: help demo test race e2e tally model kills drains histories soak overload skew matrix lint gen docs verify build image release push

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z0-9]+:.*## / { printf "  %-9s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: build ## Play a spot interruption on this machine, with Karpenter
	@bin/lifeboat sandbox demo

build: ## Build bin/lifeboat, bin/lifeboatd and bin/lifeboat-sandbox
	@echo "building bin/lifeboat, bin/lifeboatd and bin/lifeboat-sandbox (about 2 min the first time)"
	@CGO_ENABLED=0 go build -trimpath -ldflags '$(LDFLAGS)' -o bin/ ./cmd/...
	@CGO_ENABLED=0 go build -C sandbox -trimpath -ldflags '$(LDFLAGS)' -o ../bin/ ./cmd/...

test: ## Run the quick tests, and a smoke test on a real control plane
	@hack/test.sh test

race: ## Run the quick tests under the race detector
	@hack/test.sh race

# Real instances need Linux, root, and the programs that `lifeboat sandbox up --nodes real`
# reports as missing.
e2e: ## Run scenarios, crashes, Karpenter, warm pools, real instances, and the long properties
	@hack/test.sh e2e

tally: ## Count the tests of the last runs; fail on a failed or skipped test
	@go run ./hack/tally bin/tests/*.json

model: ## Run random cases against the controller for hours (LIFEBOAT_MODEL_TIME, 4h)
	@LIFEBOAT_MODEL_TIME=$${LIFEBOAT_MODEL_TIME:-4h} go test -race -count=1 -timeout 0 -run 'TestModel$$' -v ./internal/controller/interruption

kills: ## Kill lifeboatd at random steps of real drains for hours (LIFEBOAT_KILLS, 1000 times)
	@LIFEBOAT_KILLS=$${LIFEBOAT_KILLS:-1000} go test -C sandbox -count=1 -timeout 0 -tags kills -run 'TestKills$$' -v ./e2e

histories: ## Play random histories with faults for hours (LIFEBOAT_HISTORIES, 1000 of them), and judge each; LIFEBOAT_HISTORIES_DIR (bin/histories) continues a run
	@LIFEBOAT_HISTORIES=$${LIFEBOAT_HISTORIES:-1000} LIFEBOAT_HISTORIES_DIR=$${LIFEBOAT_HISTORIES_DIR:-$(CURDIR)/bin/histories} \
		go test -C sandbox -count=1 -timeout 0 -tags e2e -run 'TestHistories$$' -v ./history

soak: ## Interrupt nodes with faults for hours (LIFEBOAT_SOAK_TIME, 8h), look for leaks; LIFEBOAT_SOAK_DIR (bin/soak) continues a run
	@LIFEBOAT_SOAK_TIME=$${LIFEBOAT_SOAK_TIME:-8h} LIFEBOAT_SOAK_DIR=$${LIFEBOAT_SOAK_DIR:-$(CURDIR)/bin/soak} \
		go test -C sandbox -count=1 -timeout 0 -tags soak -run 'TestSoak$$' -v ./history

skew: ## Upgrade an older release (OLDER, a git commit) to this one and back, with twenty interruptions under way
	@OLDER='$(OLDER)' hack/skew.sh

matrix: ## Run a few tests on each version of Kubernetes (KUBERNETES) with each one of Karpenter (KARPENTER)
	@KUBERNETES='$(KUBERNETES)' KARPENTER='$(KARPENTER)' hack/matrix.sh

# Ten nodes and the two that stay take 116 of the 128 inotify instances that Linux allows a user.
drains: ## Drain ten real nodes at once, under load (LIFEBOAT_DRAIN_NODES, 10)
	@LIFEBOAT_DRAIN_NODES=$${LIFEBOAT_DRAIN_NODES:-10} go test -C sandbox -count=1 -timeout 30m -tags e2e -run 'TestDrainPool$$' -v ./e2e/real

overload: ## Drain nodes while tenants create large pods, policies, budgets, Interruptions and messages (8 min, 4 GiB)
	@go test -C sandbox -count=1 -timeout 60m -tags overload -run 'TestOverload$$' -v ./e2e

lint: ## Vet and lint; check for known vulnerabilities and for stale generated files
	@hack/lint.sh

gen: ## Generate deep copies, CRDs with their reference, and RBAC rules from the Go types
	@$(TOOL) controller-gen object paths=./api/... crd output:crd:dir=charts/lifeboat/crds
	@go run ./hack/crdreference
	@$(TOOL) controller-gen rbac:roleName=lifeboat-controller paths=./internal/... output:rbac:dir=charts/lifeboat/rbac

docs: ## Write the documentation as a website to DOCS (dist/docs); check its links and spelling
	@DOCS='$(DOCS)' hack/docs.sh

image: ## Write lifeboatd's image for amd64 and arm64 to dist/image; PUSH=HOST/lifeboatd also pushes it
	@VERSION='$(VERSION)' PUSH='$(PUSH)' hack/release.sh image

release: ## Write all files of a release to dist/ (docs/guides/releases.md)
	@VERSION='$(VERSION)' hack/release.sh release

push: ## Push image and chart of dist/ to PUSH=HOST/PATH
	@PUSH='$(PUSH)' hack/release.sh push

verify: ## Run what CI runs
	@.ci/run
