# make run    evaluates the example functions, without Kubernetes
# make test   sets up what it needs and runs every test
SHELL := /bin/bash
.DEFAULT_GOAL := help
CARGO ?= cargo
export RUST_BACKTRACE ?= 0

.PHONY: help run serve setup test test-fast lint bench fmt testbed-build testbed-up testbed-down

help: ## Print this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: ## Build, serve on loopback, evaluate the example functions over a package, stop
	@scripts/setup build
	@scripts/run-example

serve: ## Serve the example functions until Ctrl-C
	@scripts/setup build
	@scripts/run-example --serve

setup: ## Install everything that is missing for the tests
	@scripts/setup tests testbed lint

test: ## Set up and run every test, including those on Kubernetes
	@scripts/test all

test-fast: ## Set up and run every test that needs no cluster
	@scripts/test fast

lint: ## Check formatting, clippy, rustdoc, doctests, crate layers, generated files, dependencies
	@scripts/setup lint
	@scripts/lint

fmt: ## Format everything
	@scripts/setup lint
	$(CARGO) fmt --all

bench: ## Measure the runner against the cost of the same functions without it
	@scripts/bench

testbed-build: ## Build Kubernetes for the test bed (11 minutes the first time, then cached)
	@scripts/setup testbed
	$(CARGO) run --quiet --package testbed -- build

testbed-up: testbed-build ## Start the test bed, a real Kubernetes cluster on this machine
	$(CARGO) run --quiet --package testbed -- up

testbed-down: ## Stop and remove the test bed
	$(CARGO) run --quiet --package testbed -- down
