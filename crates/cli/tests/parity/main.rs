//! One trace, replayed live through the proxy on a manual clock and through the simulator, gives
//! the same verdicts in the same order, request by request: decisions are `policy`'s, and a driver
//! that drives them drives them alike.
//!
//! The simulator runs first and keeps a journal. What the world does in it (requests, bytes from
//! servers, clients that leave) then happens to a real proxy over real sockets, and what the
//! simulator decided is looked for: who is answered from what, who waits for whom, what the next
//! hop is asked and on which connection, what is decided about transfers without readers, what is
//! stored at the end. `docs/sim.md` says what is covered and what is not.

mod asking;
mod cluster;
mod conditions;
mod content;
mod coverage;
mod difference;
mod live;
mod log;
mod message;
mod origin;
mod replay;
mod script;
mod trace;
mod wire;

use coverage::Coverage;
use difference::shortened;
use replay::replay;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use trace::Trace;

/// Longer than anything takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(15);

/// Traces that `make test` runs, from the first seed on.
const SEEDS: u64 = 240;

/// Traces further on that once were decided differently, run with them.
const DIFFERED: [u64; 7] = [237, 344, 581, 611, 829, 877, 1236];

/// Traces at a time.
const THREADS: usize = 2;

/// What must occur, and how often at least in all traces of `make test` together.
const OCCURS: [(&str, u64); 55] = [
    ("hit", 1000),
    ("hit;detail=delayed", 30),
    ("hit;detail=max-stale", 200),
    ("hit;detail=stale-while-revalidate", 10),
    ("fwd=uri-miss;stored", 500),
    ("fwd=vary-miss;stored", 60),
    ("fwd=request;stored", 60),
    ("fwd=stale;stored", 500),
    ("fwd=stale;fwd-status=304;stored", 300),
    ("fwd=partial;fwd-status=206;stored", 10),
    ("fwd=partial;fwd-status=200;stored", 1),
    ("fwd=method", 150),
    ("fwd=bypass", 300),
    ("fwd=uri-miss;collapsed", 30),
    ("fwd=vary-miss;collapsed", 2),
    ("fwd=stale;collapsed", 20),
    ("fwd=partial;collapsed", 2),
    ("detail=only-if-cached", 500),
    ("detail=next-hop", 80),
    ("detail=disconnected", 20),
    ("detail=stale-if-error", 3),
    ("detail=authorization", 30),
    ("detail=request-no-store", 30),
    ("detail=response-no-store", 100),
    ("detail=private", 100),
    ("detail=partial-content", 50),
    ("detail=vary-star", 50),
    ("detail=set-cookie", 10),
    ("detail=no-lifetime", 80),
    ("detail=no-explicit-lifetime", 150),
    ("detail=status-not-understood", 50),
    ("detail=incomplete", 8),
    ("detail=too-large", 60),
    ("detail=too-large-for-small-queue", 10),
    ("detail=not-resident", 8),
    ("detail=\"1998-cookie\"", 10),
    ("detail=\"1998-server-cache-control\"", 40),
    ("evicted", 20),
    ("asked as sent", 2000),
    ("asked for a part", 60),
    ("asked in the background", 10),
    ("asked to validate", 600),
    ("waits for another's", 130),
    ("client left", 200),
    ("server broke off", 200),
    ("connection new", 1500),
    ("connection kept", 1000),
    ("judged go-on-always", 20),
    ("judged go-on-little-left", 10),
    ("judged go-on-worth-it", 1),
    ("judged stop-always", 10),
    ("judged stop-much-left", 10),
    ("judged stop-no-budget", 1),
    ("judged stop-not-kept", 1),
    ("judged stop-not-worth-it", 10),
];

/// Traces that are run with each of [`RULES`], from the first seed on.
const SEEDS_RULED: u64 = 16;

/// Rules of an operator, as far as a trace can tell what they are for.
const RULES: [&str; 3] = [
    r#"[{"lifetime": {"default": "1h"}}]"#,
    r#"[{"method": ["HEAD"], "bypass": true}]"#,
    r#"[{"method": ["GET"], "ignore": ["request no-cache", "request max-age"]}]"#,
];

/// What must occur with rules, and how often at least.
const OCCURS_RULED: [(&str, u64); 3] = [("hit", 100), ("hit;detail=rule", 2), ("fwd=bypass", 5)];

fn check(seed: u64, coverage: &mut Coverage) {
    check_trace(seed, &Trace::of(seed), coverage);
}

fn check_trace(seed: u64, trace: &Trace, coverage: &mut Coverage) {
    if let Err(difference) = replay(trace, PATIENCE, coverage) {
        let first = difference.what.clone();
        let (trace, difference) = shortened(trace, difference);
        let told = difference.told(seed, &trace);
        panic!("{told}\nbefore it was shortened: {first}");
    }
}

fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().expect("a number"))
}

#[test]
fn proxy_and_simulator_make_the_same_decisions() {
    let (seeds, first) = (number("WEIR_PARITY_SEEDS"), number("WEIR_PARITY_SEED"));
    let is_usual = seeds.is_none() && first.is_none();
    let first = first.unwrap_or(1);
    let end = first.saturating_add(seeds.unwrap_or(SEEDS));
    let next = AtomicU64::new(first);
    let coverage = Mutex::new(Coverage::default());
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                let mut mine = Coverage::default();
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= end {
                        break;
                    }
                    check(seed, &mut mine);
                }
                coverage.lock().expect("no panic").add(mine);
            });
        }
    });
    let coverage = coverage.into_inner().expect("no panic");
    if is_usual {
        for seed in DIFFERED {
            check(seed, &mut Coverage::default());
        }
        for (words, least) in OCCURS {
            let found = coverage.of(words);
            assert!(
                found >= least,
                "`{words}` occurs {found} times:\n{}",
                coverage.told()
            );
        }
    }
}

#[test]
fn proxy_and_simulator_make_the_same_decisions_by_rules_of_the_operator() {
    let mut coverage = Coverage::default();
    for rules in RULES {
        for seed in 1..=SEEDS_RULED {
            check_trace(seed, &Trace::of(seed).ruled_by(rules), &mut coverage);
        }
    }
    for (words, least) in OCCURS_RULED {
        let found = coverage.of(words);
        assert!(
            found >= least,
            "`{words}` occurs {found} times:\n{}",
            coverage.told()
        );
    }
}
