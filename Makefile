# Steading. `make help` lists the commands.
SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

GO ?= go
# Arguments for go test, such as TESTFLAGS='-run Escape -v'.
TESTFLAGS ?=
# Arguments for the benchmarks, such as BENCHFLAGS=--large.
BENCHFLAGS ?=
LINT := $(GO) tool -modfile=.ci/lint.mod golangci-lint run
# Where generated files that are only steps on the way go.
BUILD := .local
# Providers, each with its kinds in apis and its package.
PROVIDERS := runtime forgejo
# What runs the pods of make up: kwok, which plays them, or containerd, which needs root on Debian 12.
NODE ?= kwok
# Registry and path that packages are for, and their version.
REGISTRY ?= ghcr.io/steading-dev
VERSION ?= v0.1.0

.PHONY: help
help: ## List the commands.
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: up
up: ## Start the platform on this machine, apply the examples and wait until they are ready.
	$(GO) run ./cluster/local/cmd/steading-local up --node='$(NODE)'

.PHONY: down
down: ## Stop the platform and remove what it wrote.
	$(GO) run ./cluster/local/cmd/steading-local down

.PHONY: status
status: ## Show the running platform and its claims.
	$(GO) run ./cluster/local/cmd/steading-local status

.PHONY: generate
generate: ## Generate deep copies, CRDs, XRDs, the chart's floor, contexts' guard and the documents' tables from their sources.
	rm -rf $(BUILD)/crds && mkdir -p $(BUILD)/crds $(PROVIDERS:%=package/provider-%/crds)
	$(GO) tool -modfile=apis/generators.mod controller-gen object paths=./apis/...
	for p in $(PROVIDERS); do $(GO) tool -modfile=apis/generators.mod angryjet generate-methodsets ./apis/$$p/...; done
	$(GO) tool -modfile=apis/generators.mod controller-gen crd paths=./apis/v1alpha1 output:crd:dir=$(BUILD)/crds
	rm -f $(PROVIDERS:%=package/provider-%/crds/*.yaml)
	for p in $(PROVIDERS); do $(GO) tool -modfile=apis/generators.mod controller-gen crd paths=./apis/$$p/v1alpha1 output:crd:dir=package/provider-$$p/crds; done
	$(GO) run ./xrds/generate -crds $(BUILD)/crds -out xrds
	$(GO) run ./apis/definitions/generate -out apis/definitions $(PROVIDERS:%=package/provider-%/crds) xrds
	$(GO) run ./package/cmd/floor -out apis/runtime/v1alpha1/zz_generated_floor.go
	$(GO) run ./cluster/install/cmd/guard -out providers/runtime/cluster/zz_generated_guard.yaml
	$(GO) run ./test/docs/tables

.PHONY: generate-check
generate-check: generate ## Fail when a generated file is not what its source gives.
	@drift=$$(git status --porcelain -- apis xrds package compositions providers docs); \
	if [ -n "$$drift" ]; then echo "generated files have drifted; run make generate and commit:"; echo "$$drift"; git diff -- apis xrds package providers docs | head -50; exit 1; fi

.PHONY: lint
lint: ## Run the linters of .golangci.yaml, with all build tags, and without where a file is for that.
	$(LINT) --build-tags=long,node ./...
	$(LINT) $$(grep -rlE --include='*.go' '^//go:build .*!(long|node)' . | xargs -n1 dirname | sort -u)

.PHONY: test
test: ## Run the unit, golden and acceptance tests. Needs no root.
	$(GO) run ./cluster/local/cmd/steading-local tools
	$(GO) test -timeout 25m $(TESTFLAGS) ./...

.PHONY: test-node
test-node: ## Run the tests on a real node with containers. Needs root on Debian 12.
	$(GO) test -tags node -v -count=1 -timeout 60m $(TESTFLAGS) ./test/node

.PHONY: test-long
test-long: ## Run every seed, the mutants and the slow peers.
	$(GO) run ./cluster/local/cmd/steading-local tools
	$(GO) test -timeout 80m -tags long $(TESTFLAGS) ./...
	$(GO) test -timeout 60m -tags 'node long' -count=1 -run 'TestEveryJobRunsOnceThroughKills|TestARegistryWithAPrivateCA' ./test/node
	$(GO) run ./test/mutants/cmd

# Which mutants to hunt, as a regular expression.
MUTANTS ?=

.PHONY: mutants
mutants: ## Break the code on purpose; each patch in test/mutants has to be noticed by the test it names.
	$(GO) run ./test/mutants/cmd -run '$(MUTANTS)'

.PHONY: packages
packages: ## Build packages, charts and image for REGISTRY and VERSION, for amd64 and arm64, into dist.
	rm -rf dist
	$(GO) run ./package/cmd/build --registry '$(REGISTRY)' --version '$(VERSION)' save dist

.PHONY: publish
publish: ## Build the same and push it to REGISTRY.
	$(GO) run ./package/cmd/build --registry '$(REGISTRY)' --version '$(VERSION)' push

.PHONY: bench
bench: ## Measure what docs/performance.md reports. BENCHFLAGS=--help tells what can be set.
	$(GO) run ./test/bench $(BENCHFLAGS)
	$(GO) run ./test/docs/tables
