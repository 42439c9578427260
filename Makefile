# Two commands for a newcomer: `make run` and `make test`. The chores themselves are Rust: `cargo xtask help`.

CARGO ?= cargo
CARGO_TARGET_DIR ?= target
FUZZ_SECONDS ?= 60
ROUNDS ?= 200
SEED ?= $(shell date +%s)
SEEDS ?= 5000

.PHONY: run test test-browser torture parity fuzz peers

# a proxy on 127.0.0.1:3128; more arguments by `make run ARGS="..."`
run:
	$(CARGO) build --release --locked -p weir-cli
	exec $(CARGO_TARGET_DIR)/release/weir serve $(ARGS)

# everything that CI runs
test:
	$(CARGO) xtask ci

# a page through the proxy in headless Chromium
test-browser:
	$(CARGO) xtask need chromium nginx
	$(CARGO) test --locked -p weir-cli --test browser

# kill -9 again and again, damage and faults: ROUNDS times, from SEED
torture:
	@echo "make torture ROUNDS=$(ROUNDS) SEED=$(SEED)"
	WEIR_TORTURE_LARGE=20000000 WEIR_TORTURE_ROUNDS=$(ROUNDS) WEIR_TORTURE_SEED=$(SEED) $(CARGO) test --locked --release -p weir-cli --test survival

# proxy and simulator on the same traces: SEEDS of them, from SEED on
parity:
	@echo "make parity SEEDS=$(SEEDS) SEED=$(SEED)"
	WEIR_PARITY_SEEDS=$(SEEDS) WEIR_PARITY_SEED=$(SEED) $(CARGO) test --locked --release -p weir-cli --test parity

# every fuzz target for FUZZ_SECONDS; needs a nightly toolchain and cargo-fuzz
fuzz:
	set -e; for target in $$($(CARGO) +nightly fuzz list); do \
	    $(CARGO) +nightly fuzz run $$target -- -max_total_time=$(FUZZ_SECONDS); \
	done

# weir beside other caching proxies; more arguments by `make peers ARGS="--install"`
peers:
	$(CARGO) xtask peers $(ARGS)
