//! An in-flight response against a naive reference: random readers with random speeds, seeks and
//! departures, and a next hop that cuts, changes its mind and hesitates, under a virtual clock.
//!
//! Each seed is one small world (`world.rs`). At every step the reference (`reference.rs`), which
//! knows nothing but lists of spans, checks that
//!
//! * what a reader is given is its next, was wanted, and is here; it gets all of it or an honest
//!   cut;
//! * what a fetch may take lies within the read-ahead of the fastest reader and within what that
//!   one wants;
//! * no reader waits while every fetch waits too, and the run ends;
//! * no byte is fetched twice unless two things raced, and bytes fetched = bytes delivered live +
//!   undelivered.
//!
//! `WEIR_SEEDS` is the number of seeds (100 000 by default, 30 s on two cores), `WEIR_SEED` plays
//! one alone.

#![expect(
    clippy::cast_possible_truncation,
    clippy::unwrap_used,
    reason = "small numbers, and a model that panics has failed"
)]

#[path = "fetch_model/chance.rs"]
mod chance;
#[path = "fetch_model/client.rs"]
mod client;
#[path = "fetch_model/hop.rs"]
mod hop;
mod model_tally;
#[path = "fetch_model/reference.rs"]
mod reference;
#[path = "fetch_model/world.rs"]
mod world;

use model_tally::Tally;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::thread::{available_parallelism, scope};
use world::{EVENTS, World};

#[test]
fn random_readers_and_fetches_match_the_reference_model() {
    let number = |name: &str| {
        std::env::var(name)
            .ok()
            .and_then(|value| value.parse::<u64>().ok())
    };
    if let Some(seed) = number("WEIR_SEED") {
        World::new(seed).play();
        return;
    }
    let seeds = number("WEIR_SEEDS").unwrap_or(100_000);
    let threads = available_parallelism().map_or(1, |threads| threads.get() as u64);
    let share = |first: u64| {
        let mut tally = Tally::new(EVENTS);
        for seed in (first..seeds).step_by(threads as usize) {
            match catch_unwind(AssertUnwindSafe(|| World::new(seed).play())) {
                Ok(played) => tally.add(&played),
                Err(panic) => panic!("again with WEIR_SEED={seed}: {}", told(&*panic)),
            }
        }
        tally
    };
    let total = scope(|scope| {
        let shares: Vec<_> = (0..threads)
            .map(|first| scope.spawn(move || share(first)))
            .collect();
        let mut total = Tally::new(EVENTS);
        for played in shares {
            total.add(&played.join().unwrap_or_else(|panic| resume_unwind(panic)));
        }
        total
    });
    // a model in which something never happens has not tested it
    if seeds >= 10_000 {
        assert_eq!(total.never_happened(), Vec::<&str>::new(), "{total:?}");
    }
}

/// What a panic says.
fn told(panic: &(dyn Any + Send)) -> &str {
    let owned = panic.downcast_ref::<String>().map(String::as_str);
    owned
        .or(panic.downcast_ref::<&str>().copied())
        .unwrap_or("?")
}
