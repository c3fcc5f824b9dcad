# make up      a local cluster: three brokers and three controllers (arguments: make up ARGS="--nodes 1 --data /tmp/x")
# make setup   only the environment, .venv
# make test    every test; flaky ones may run a second time (scripts/tests.py lists them; arguments for pytest: make test ARGS="tests/storage -x")

ARGS ?=
# of tests: five for two cores, since most of the time three of them wait for a node, a JVM or a client
PROCESSES ?= 5
PY := .venv/bin/python

.DEFAULT_GOAL := help
.PHONY: help setup setup-dev setup-docs up test bench bench-kafka lint fmt interop fuzz lock docs package release audit

help:
	@echo 'make setup    prepare .venv from locked versions'
	@echo 'make up       set up, then start three brokers and three controllers (Ctrl-C stops them)'
	@echo 'make test     set up for development, then run every test'
	@echo 'make bench    measure; medians only, nothing fails on a number'
	@echo 'make bench-kafka  the same work on heirlog and on Apache Kafka, and ratios'
	@echo 'make lint     ruff, mypy, spelling and prose'
	@echo 'make fmt      format with ruff'
	@echo 'make interop  checks against Apache Kafka itself'
	@echo 'make fuzz     a minute of coverage-guided fuzzing (longer: make fuzz ARGS="--seconds 600")'
	@echo 'make package  build sdist and wheel, and try both on every supported Python of this machine'
	@echo 'make release  the same, built twice with the same bytes, and checked as the package index does'
	@echo 'make audit    known vulnerabilities of what is in requirements/runtime.txt (needs the internet)'
	@echo 'make docs     build the site of docs/ in .site/; every warning is an error'
	@echo 'make lock     renew the lock files (needs uv)'

setup:
	@sh scripts/python scripts/setup.py runtime

setup-dev:
	@sh scripts/python scripts/setup.py dev

setup-docs:
	@sh scripts/python scripts/setup.py docs

up: setup
	@exec .venv/bin/heirlog up $(ARGS)

test: setup-dev
	@sh scripts/python scripts/setup.py confluent-kafka-2.5.0 & other=$$!; \
	    sh scripts/python scripts/setup.py other-python && wait $$other
	@$(PY) scripts/tests.py -n $(PROCESSES) $(ARGS)

bench: setup-dev
	@$(PY) -m benchmarks $(ARGS)

bench-kafka: setup-dev
	@sh scripts/bench-kafka.sh $(ARGS)

lint: setup-dev setup-docs
	@$(PY) -m ruff check .
	@$(PY) -m ruff format --check .
	@$(PY) -m mypy
	@$(PY) scripts/prose.py
	@.venv-docs/bin/codespell

fmt: setup-dev
	@$(PY) -m ruff check --fix .
	@$(PY) -m ruff format .

interop: setup-dev
	@sh scripts/interop.sh $(ARGS)

fuzz: setup-dev
	@$(PY) scripts/fuzzing.py $(ARGS)

docs: setup-docs
	@rm -rf .site
	@.venv-docs/bin/python -m sphinx --quiet --fail-on-warning --keep-going --builder html docs .site
	@echo 'the site begins at .site/index.html'

audit: setup
	@sh scripts/audit.sh $(ARGS)

lock:
	@sh scripts/lock.sh

package: setup-dev
	@$(PY) scripts/package.py

release: setup-dev setup-docs
	@$(PY) scripts/release.py
