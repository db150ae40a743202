# make run    shows the main job working, without Kubernetes
# make test   sets up what it needs and runs every test
SHELL := /bin/bash
.DEFAULT_GOAL := help
CARGO ?= cargo
export RUST_BACKTRACE ?= 0

.PHONY: help run serve setup test test-fast lint bench fmt testbed-build testbed-up testbed-down

help: ## This list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: ## Show a function change a package: builds, serves on loopback, evaluates, stops
	@scripts/setup build
	@scripts/run-example

serve: ## Leave the runner of the examples running until Ctrl-C
	@scripts/setup build
	@scripts/run-example --serve

setup: ## Install everything that is missing for the tests
	@scripts/setup tests testbed lint

test: ## Set up and run every test, those on Kubernetes too
	@scripts/test all

test-fast: ## Set up and run every test that needs no cluster
	@scripts/test fast

lint: ## Formatting, clippy and rustdoc with warnings denied, examples, layering, dependencies
	@scripts/setup lint
	@scripts/lint

fmt: ## Format everything
	@scripts/setup lint
	$(CARGO) fmt --all

bench: ## Measure against the raw cost of the same functions, as ratios in one run
	@scripts/bench

testbed-build: ## Build Kubernetes for the test bed (11 minutes the first time, then cached)
	@scripts/setup testbed
	$(CARGO) run --quiet --package testbed -- build

testbed-up: testbed-build ## Start a real Kubernetes on this machine
	$(CARGO) run --quiet --package testbed -- up

testbed-down: ## Stop it and leave nothing behind
	$(CARGO) run --quiet --package testbed -- down
