//! What the tests of the benchmark share: a proxy that is wrong on command, curl, and a client that
//! sends exact bytes.

#![allow(dead_code, reason = "each test program uses a part of it")]
#![allow(unused_imports, reason = "each test program uses a part of it")]

mod curl;
mod exchange;
mod fault;
mod faulty_proxy;
mod scenario;

pub(crate) use curl::{Curl, Fetched};
pub(crate) use exchange::{Reply, Wire};
pub(crate) use fault::Fault;
pub(crate) use faulty_proxy::FaultyProxy;
pub(crate) use scenario::{SEED, TestOrigin, date, faulty, hits, now, ports, target, web, wpb};

use std::time::Duration;

/// Longer than anything takes on a busy machine; a longer wait would never end.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);
