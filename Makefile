# make run    shows the main job working, without Kubernetes
# make test   sets up what it needs and runs every test
SHELL := /bin/bash
.DEFAULT_GOAL := help
CARGO ?= cargo
export RUST_BACKTRACE ?= 0

.PHONY: help run serve setup test test-fast test-cluster lint bench fmt testbed-build testbed-up testbed-down

help: ## This list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: ## Show a function change a package: builds, serves on loopback, evaluates, stops
	@scripts/require cargo
	@scripts/run-example

serve: ## Leave the runner of the examples running until Ctrl-C
	@scripts/require cargo
	@scripts/run-example --serve

setup: ## Install what the tests need
	@scripts/require cargo go
	@scripts/setup

test: setup ## Run every test, the cluster's too
	@scripts/test all

test-fast: setup ## Run every test that needs no cluster
	@scripts/test fast

lint: ## Formatting, clippy with warnings denied, licences and duplicates of dependencies
	@scripts/require cargo
	@scripts/lint

fmt: ## Format everything
	$(CARGO) fmt --all

bench: ## Measure against the raw cost of the same functions, as ratios in one run
	@scripts/require cargo go python3
	@scripts/bench

testbed-build: ## Build that Kubernetes (long the first time, then cached)
	@scripts/require cargo go
	$(CARGO) run --quiet --package testbed -- install
	$(CARGO) run --quiet --package testbed -- build

testbed-up: testbed-build ## Start a real Kubernetes on this machine
	$(CARGO) run --quiet --package testbed -- up

testbed-down: ## Stop it and leave nothing behind
	$(CARGO) run --quiet --package testbed -- down
