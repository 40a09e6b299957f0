# The main commands are `make demo` and `make test`; both install what they need.

PYTHON ?= python3
VENV   := .venv
CARGO  := cargo
DEMO   := demo-out
PREFIX ?= /usr/local
HYBRIDSIM := $(CARGO) run --profile demo --locked --package hybridsim --
COMPARE  := $(HYBRIDSIM) compare examples/disk.toml examples/ssd.toml examples/hybrid.toml
# As recorded on an SSD, slowed down tenfold: still more than a hard disk can serve.
OVERLOAD := --set workload.times=recorded --set workload.time_scale=10

.PHONY: demo test test-rust test-python develop lint pgo bench fuzz docs site playground pictures wheel image capi clean

demo: ## replay a recorded trace through a disk, an SSD and a hybrid: with recorded think times, then in an open loop
	$(COMPARE) --out $(DEMO) --force
	$(COMPARE) $(OVERLOAD) --out $(DEMO)/overload --force

test: lint test-rust test-python site ## run all tests

test-rust:
	scripts/ensure-chromium.sh
	$(CARGO) test --locked --workspace --no-fail-fast

test-python: develop
	$(VENV)/bin/python -m pytest -q

develop: $(VENV)/.ready ## the Python package in .venv
	VIRTUAL_ENV=$(CURDIR)/$(VENV) $(VENV)/bin/maturin develop --locked --quiet --features as-in-tests

lint:
	$(CARGO) fmt --all --check
	$(CARGO) clippy --locked --workspace --all-targets --quiet -- -D warnings

pgo: ## the program as releases for Linux contain it, optimised by a profile of its runs
	python3 scripts/pgo.py

bench: ## requests per second and instructions per request
	scripts/bench.sh

fuzz: ## coverage-guided fuzzing of everything that reads bytes, an hour for each
	scripts/fuzz.sh 3600

docs: ## API documentation of every crate
	$(CARGO) doc --locked --workspace --no-deps

site: develop ## the manual as a site in site/, with its links checked
	$(VENV)/bin/python scripts/site.py --program $(VENV)/bin/hybridsim

playground: ## the page that simulates in the browser, in target/playground; `make site` then contains it
	$(PYTHON) scripts/playground.py

pictures: develop ## make the pictures of the gallery and of README.md again (needs Chromium)
	$(VENV)/bin/python scripts/pictures.py --program $(VENV)/bin/hybridsim
	HYBRIDSIM=$(CURDIR)/$(VENV)/bin/hybridsim scripts/readme_pictures.sh

wheel: ## a wheel for any Linux in dist/, tried in a clean environment
	scripts/wheel.sh

image: ## a container image
	podman build --tag hybridsim .

capi: ## install the C interface into PREFIX: header, libraries and hybridsim.pc
	scripts/capi.sh $(PREFIX)

$(VENV)/.ready: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/pip install --quiet maturin==1.16.0 zensical==0.0.73 $$($(PYTHON) scripts/test_requirements.py)
	touch $@

clean:
	rm -rf target $(VENV) $(DEMO) site dist
