# Linerate: what people type. `make help` lists it.

SHELL := /bin/bash
SUDO := $(if $(filter 0,$(shell id -u)),,sudo)
LINERATE := target/release/linerate

# What a bare Debian 12 lacks to build, and what the tests and benchmarks run beside it.
BUILD_PACKAGES := clang-16 libelf-dev zlib1g-dev pkg-config make gcc nodejs npm
TEST_PACKAGES := iproute2 bpftool python3-venv ethtool tcpdump iputils-ping nftables iperf3 chromium fonts-dejavu-core jq \
	shellcheck clang-format-16 procps dpdk dpdk-dev libdpdk-dev libnuma-dev libclang1-16 ministat linux-perf \
	netsniff-ng tcpreplay xdp-tools openssh-client openssh-server bird2 frr qemu-system-x86 busybox-static dash kmod binutils \
	libzmq5
PAGE := crates/report/page
FUZZ_TIME ?= 600

.PHONY: help setup-build setup build test test-long lint fuzz loom bench benchmarks clean

help: ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

setup-build: ## installs what building needs, and says what
	@tools/setup $(if $(SUDO),--sudo) building $(BUILD_PACKAGES)
	@cd $(PAGE) && { [ node_modules/.package-lock.json -nt package-lock.json ] || \
		{ echo "setup: the npm packages of the report page" && npm ci --no-audit --no-fund --ignore-scripts; }; }

setup: setup-build ## installs what testing needs, too
	@tools/setup $(if $(SUDO),--sudo) testing $(TEST_PACKAGES)
	@[ -x target/python/bin/python3 ] || { echo "setup: MLRsearch for Python, in target/python" && \
		python3 -m venv target/python && \
		target/python/bin/pip install --quiet --disable-pip-version-check MLRsearch==1.2.1; }
	@target/python/bin/python3 -m pip show --quiet lbr-trex-client 2>/dev/null || { echo "setup: TRex's client, in target/python" && \
		target/python/bin/python3 -m pip install --quiet --disable-pip-version-check lbr-trex-client==3.4.0; }

build: setup-build ## builds the release binary, target/release/linerate
	cargo build --release --locked

test: setup ## runs every test; those that need root run through sudo
	SUDO="$(SUDO)" tools/test

test-long: setup ## runs the tests that take minutes each
	SUDO="$(SUDO)" tools/test --long

lint: setup ## formats, lints and licences, without changing anything
	tools/lint

fuzz: setup ## runs the fuzz targets for FUZZ_TIME seconds (600)
	BOLERO_RANDOM_TEST_TIME_MS=$(FUZZ_TIME)000 cargo test --manifest-path fuzz/Cargo.toml --target-dir $${CARGO_TARGET_DIR:-target} \
		-- --nocapture

loom: setup-build ## runs models of what fastpath's threads share in every order of these
	cargo test --locked -p fastpath --features loom --test loom

bench: build ## load-tests the kernel's routers in namespaces, and writes report.html
	$(SUDO) $(LINERATE) bench --quick --runs runs/quick --output report.html

benchmarks: build ## measures the generator against other generators; see benchmarks/README.md
	$(SUDO) $(LINERATE) bench benchmarks/packet-generation-options.toml

clean: ## removes what was built
	cargo clean
	rm -rf $(PAGE)/node_modules runs report.html
