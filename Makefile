# Two commands for a newcomer: `make run` and `make test`. The chores themselves are Rust: `cargo xtask help`.

CARGO ?= cargo
CARGO_TARGET_DIR ?= target
FUZZ_SECONDS ?= 60

.PHONY: run test test-browser fuzz peers

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

# every fuzz target for FUZZ_SECONDS; needs a nightly toolchain and cargo-fuzz
fuzz:
	set -e; for target in $$($(CARGO) +nightly fuzz list); do \
	    $(CARGO) +nightly fuzz run $$target -- -max_total_time=$(FUZZ_SECONDS); \
	done

# weir beside other caching proxies; more arguments by `make peers ARGS="--install"`
peers:
	$(CARGO) xtask peers $(ARGS)
