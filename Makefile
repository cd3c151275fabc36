# Linerate: what people type. `make help` lists it.

SHELL := /bin/bash
SUDO := $(if $(filter 0,$(shell id -u)),,sudo)
LINERATE := target/release/linerate

# What a bare Debian 12 lacks to build, and what the tests and benchmarks run beside it.
BUILD_PACKAGES := clang-16 libelf-dev zlib1g-dev pkg-config make gcc nodejs npm
TEST_PACKAGES := iproute2 bpftool python3-venv ethtool tcpdump iputils-ping nftables iptables iperf3 snmpd snmp chromium fonts-dejavu-core jq \
	shellcheck clang-format-16 procps dpdk dpdk-dev libdpdk-dev libnuma-dev libclang1-16 ministat linux-perf \
	netsniff-ng tcpreplay xdp-tools openssh-client openssh-server bird2 frr qemu-system-x86 busybox-static dash kmod binutils \
	libzmq5 dpkg-dev qemu-user
# What packages are made and tried with, and what builds the libraries of static programs.
PACKAGE_TOOLS := dpkg-dev binutils mmdebstrap autoconf automake autopoint libtool flex bison gawk
STATIC_TARGET := $(shell uname -m)-unknown-linux-musl
# What builds for arm64 on another processor.
ARM64_PACKAGES := gcc-aarch64-linux-gnu libc6-dev-arm64-cross
ARM64_TARGET := aarch64-unknown-linux-musl
PAGE := crates/report/page
# Programs say which commit they are of.
RELEASE = LINERATE_COMMIT="$$(tools/commit)" cargo build --release --locked
FUZZ_TIME ?= 60

.PHONY: help setup-build setup setup-packages build deb dist static static-arm64 test test-long lint fuzz loom miri tsan bench \
	benchmarks clean

help: ## this list
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

setup-build: ## installs what building needs, and says what
	@tools/setup $(if $(SUDO),--sudo) building $(BUILD_PACKAGES)
	@cd $(PAGE) && { [ node_modules/.package-lock.json -nt package-lock.json ] || \
		{ echo "setup: the npm packages of the report page" && npm ci --no-audit --no-fund --ignore-scripts; }; }

setup: setup-build ## installs what testing needs, too
	@tools/setup $(if $(SUDO),--sudo) testing $(TEST_PACKAGES) $(ARM64_PACKAGES)
	@[ -x target/python/bin/python3 ] || { echo "setup: MLRsearch for Python, in target/python" && \
		python3 -m venv target/python && \
		target/python/bin/pip install --quiet --disable-pip-version-check MLRsearch==1.2.1; }
	@target/python/bin/python3 -m pip show --quiet lbr-trex-client 2>/dev/null || { echo "setup: TRex's client, in target/python" && \
		target/python/bin/python3 -m pip install --quiet --disable-pip-version-check lbr-trex-client==3.4.0; }
	@[ -d "$$(rustc --print sysroot)/lib/rustlib/$(ARM64_TARGET)" ] || rustup target add $(ARM64_TARGET) || \
		echo "setup: without Rust's standard library for arm64, nothing is tested for that processor"

build: setup-build ## builds the release binary, target/release/linerate
	$(RELEASE)

setup-packages: setup-build ## installs what making and trying packages needs
	@tools/setup $(if $(SUDO),--sudo) packages $(PACKAGE_TOOLS)
	@[ -d "$$(rustc --print sysroot)/lib/rustlib/$(STATIC_TARGET)" ] || rustup target add $(STATIC_TARGET)

deb: setup-packages build ## makes Debian packages, in target/packages
	tools/package target/release target/packages linerate fastpath

dist: build ## makes archives of the source and of the program, with checksums, in target/dist
	tools/dist target/dist target/release

static: setup-packages ## makes an archive of a static program without DPDK for any distribution, in target/dist
	tools/static target/dist $(shell uname -m)

static-arm64: setup-packages ## makes the same for arm64 on any processor
	@tools/setup $(if $(SUDO),--sudo) arm64 $(ARM64_PACKAGES)
	@[ -d "$$(rustc --print sysroot)/lib/rustlib/$(ARM64_TARGET)" ] || rustup target add $(ARM64_TARGET)
	tools/static target/dist aarch64

test: setup ## runs every test; those that need root run through sudo
	SUDO="$(SUDO)" tools/test

test-long: setup deb static static-arm64 ## runs the tests that take minutes each
	SUDO="$(SUDO)" tools/test --long

lint: setup ## formats, lints and licences, without changing anything
	tools/lint

fuzz: setup ## runs each fuzz target under libFuzzer for FUZZ_TIME seconds (60); FUZZ_TARGETS names some
	tools/fuzz $(FUZZ_TIME) $(FUZZ_TARGETS)

loom: setup-build ## runs models of what fastpath's threads share in every order of these
	cargo test --locked -p fastpath --features loom --test loom

miri: setup-build ## runs the tests of what threads share by plain memory in Miri, which finds undefined behaviour
	tools/sanitize miri

tsan: setup-build ## runs the stress tests of what threads share under ThreadSanitizer, which finds data races
	tools/sanitize thread

bench: build ## load-tests the kernel's routers in namespaces, and writes report.html
	$(SUDO) $(LINERATE) bench --quick --runs runs/quick --output report.html

benchmarks: build ## measures the generator against other generators; see benchmarks/README.md
	$(SUDO) $(LINERATE) bench benchmarks/packet-generation-options.toml

clean: ## removes what was built
	cargo clean
	rm -rf $(PAGE)/node_modules runs report.html
