# Two commands for a newcomer: `make run` and `make test`. The chores themselves are Rust: `cargo
# xtask help`.

CARGO ?= cargo
CARGO_TARGET_DIR ?= target
FEATURES ?=
FUZZ_SECONDS ?= 60
ROUNDS ?= 200
SEED ?= $(shell date +%s)
SEEDS ?= 5000
SEQUENCES ?= 2000000
REQUESTS ?= 1000000

.PHONY: run release test test-browser test-coraza test-virus hostile-filters torture parity two-users cluster-model isolation modules fuzz peers cluster

RELEASE = $(CARGO_TARGET_DIR)/release
# this directory, between single quotes of a shell
HERE = $(subst ','\'',$(CURDIR))
# how often each part of weir ran in the benchmarks: `cargo xtask profile`
GUIDED = --config 'build.rustflags=["-Cprofile-use=$(HERE)/profile/weir.profdata","-Cllvm-args=-no-pgo-warn-mismatch"]'
OBJCOPY ?= objcopy

# a proxy on 127.0.0.1:3128; more arguments by `make run ARGS="..."`, filters in WebAssembly by `make
# run FEATURES=wasm`, which takes minutes more to build
run: release
	exec $(RELEASE)/weir serve $(ARGS)

# the program without symbols, and the symbols beside it in weir.debug: debuggers, perf and
# backtraces of panics find them there. cargo's own file keeps its symbols, so that nothing is
# compiled again; the file that is run is a new one each time, as one that is running cannot be
# written to
release:
	$(CARGO) build --release --locked $(GUIDED) -p weir-cli --features "$(FEATURES)"
	$(OBJCOPY) --only-keep-debug $(RELEASE)/weir $(RELEASE)/weir.debug
	cd $(RELEASE) && $(OBJCOPY) --strip-all --add-gnu-debuglink=weir.debug weir weir.stripped
	mv -f $(RELEASE)/weir.stripped $(RELEASE)/weir

# everything that CI runs
test:
	$(CARGO) xtask ci

# a page through the proxy, and the page of the admin interface, in headless Chromium
test-browser:
	$(CARGO) xtask need chromium nginx
	$(CARGO) test --locked -p weir-cli --test browser --test dashboard

# the Coraza WAF, fetched as a Go module and built, before an origin: it stops its test attacks
test-coraza:
	$(CARGO) test --locked -p weir-filters --test coraza

# files with EICAR's test virus through c-icap and clamd, both ways
test-virus:
	$(CARGO) xtask need clamd c-icap virus_scan.so nginx curl
	$(CARGO) test --locked -p weir-cli --test virus

# response times of other requests beside filters that loop, trap and take memory: p99 at most doubles.
# Built with weir-cli, so that dependencies are those of `make release FEATURES=wasm`
hostile-filters:
	$(CARGO) test --locked --release $(GUIDED) -p weir-filters -p weir-cli --features weir-cli/wasm --test hostile_p99 -- --nocapture

# kill -9 again and again, damage and faults: ROUNDS times, from SEED
torture:
	@echo "make torture ROUNDS=$(ROUNDS) SEED=$(SEED)"
	WEIR_TORTURE_LARGE=20000000 WEIR_TORTURE_ROUNDS=$(ROUNDS) WEIR_TORTURE_SEED=$(SEED) $(CARGO) test --locked --release $(GUIDED) -p weir-cli --test survival

# proxy and simulator on the same traces: SEEDS of them, from SEED on
parity:
	@echo "make parity SEEDS=$(SEEDS) SEED=$(SEED)"
	WEIR_PARITY_SEEDS=$(SEEDS) WEIR_PARITY_SEED=$(SEED) $(CARGO) test --locked --release $(GUIDED) -p weir-cli --test parity

# two users and one cache, as the decisions have it: SEQUENCES of exchanges, from SEED on
two-users:
	@echo "make two-users SEQUENCES=$(SEQUENCES) SEED=$(SEED)"
	WEIR_TWO_USERS_SEQUENCES=$(SEQUENCES) WEIR_TWO_USERS_SEED=$(SEED) $(CARGO) test --locked --release $(GUIDED) -p weir-policy --test two_users

# clusters in which everything happens at once: SEEDS of them, from SEED on
cluster-model:
	@echo "make cluster-model SEEDS=$(SEEDS) SEED=$(SEED)"
	WEIR_CLUSTER_SEEDS=$(SEEDS) WEIR_CLUSTER_SEED=$(SEED) $(CARGO) test --locked --release $(GUIDED) -p weir-policy --test cluster_model promises

# many users and one proxy, memory and disk: REQUESTS, from SEED
isolation:
	@echo "make isolation REQUESTS=$(REQUESTS) SEED=$(SEED)"
	WEIR_ISOLATION_REQUESTS=$(REQUESTS) WEIR_ISOLATION_SEED=$(SEED) $(CARGO) test --locked --release $(GUIDED) -p weir-proxy --test isolation

# random modules on random requests, while configurations change: REQUESTS twice, from SEED
modules:
	@echo "make modules REQUESTS=$(REQUESTS) SEED=$(SEED)"
	WEIR_MODULES_REQUESTS=$(REQUESTS) WEIR_MODULES_SEED=$(SEED) $(CARGO) test --locked --release $(GUIDED) -p weir-proxy --test modules -- soak

# every fuzz target for FUZZ_SECONDS; needs a nightly toolchain and cargo-fuzz
fuzz:
	set -e; for target in $$($(CARGO) +nightly fuzz list); do \
	    $(CARGO) +nightly fuzz run $$target -- -max_total_time=$(FUZZ_SECONDS); \
	done

# weir beside other caching proxies; more arguments by `make peers ARGS="--install"`
peers:
	$(CARGO) xtask peers $(ARGS)

# several weirs that share what they store, beside one and beside HAProxy; in a few minutes by `make
# cluster ARGS="--scale 0.1 --rounds 1 --out /tmp/cluster.json"`
cluster:
	$(CARGO) xtask cluster $(ARGS)
