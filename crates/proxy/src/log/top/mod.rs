//! Heavy hitters: which URLs, hosts, clients and next hops take most requests and bytes.
//!
//! Each worker has sketches of its own ([`weir_measure::sketch`]), six for each kind of name,
//! behind one lock that no worker waits for. A hit does not touch them: it is added to a small sum
//! of the worker ([`accumulator`]), which is given to the sketches when another target takes its
//! place, and each second. So are clients and next hops of all requests, and targets of others that
//! were requested before. A reader merges the
//! sketches of all workers ([`tops`]).
//!
//! Memory does not depend on what clients send: 24 sketches of 38 KiB a worker, at most 6 000 names
//! a kind, and 64 recent misses. Names are cut ([`names`]). Nothing is allocated before the first
//! request.

pub(crate) mod accumulator;
pub(crate) mod fetch_names;
mod miss_words;
mod names;
mod ranking;
mod recent_misses;
#[cfg(test)]
mod tests;
pub(crate) mod tops;

pub(crate) use names::{TargetName, hashed_client};
pub(crate) use ranking::Weights;
pub(crate) use recent_misses::MissFacts;
