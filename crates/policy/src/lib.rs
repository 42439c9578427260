#![cfg_attr(not(test), no_std)]
//! What Weir decides: the life of a request; what to keep, evict, reuse, retry and where to route.
//!
//! Everything here is a value with a step: its input is the time and an event, its output commands.
//! The live proxy, the simulator and the tests drive the same values, so a decision can be tried on
//! paper before it is trusted with traffic. Deliberately absent: clocks, sockets, threads, locks,
//! content bytes, text that a client sees. Policies take `&mut self` and the time; a driver that
//! shares them puts the lock around.

extern crate alloc;

pub mod budget;
pub mod catalog;
pub mod choice;
pub mod connections;
pub mod destination;
pub mod digest;
pub mod eviction;
pub mod extension;
pub mod fetch;
pub mod now;
pub mod route;
pub mod rule;
pub mod stored;
pub mod transaction;
pub mod verdict;

pub use catalog::admission;
pub use connections::retry;
pub use destination::forwarded;
pub use digest::{Digest, KeyHasher, Secret};
pub use fetch::{collapse, page_cache};
pub use now::{Now, Tick};
pub use stored::{StoredFacts, judge};
pub use transaction::{
    Command, Commands, Covers, Event, Failure, Forwarding, JoinKind, Missing, Phase, Phases,
    Profile, Rules, Serving, SetCookieRule, Transaction, Update,
};
pub use verdict::{
    Handling, Hit, NotStored, RefuseReason, StaleReason, Storing, Uncachable1998, Verdict,
};
