//! The closed loops: WPB and hits.

use super::{AGENTS_MAX, Checked, SERVERS_MAX, above_zero, count, law, range};
use crate::law::Dimension;
use crate::scenario::{Hits, Wpb};

pub(super) fn check_wpb(wpb: &Wpb) -> Checked {
    count("workload.clients", wpb.clients, AGENTS_MAX)?;
    count(
        "workload.requests_per_client",
        wpb.requests_per_client,
        REQUESTS_MAX,
    )?;
    count("workload.servers", wpb.servers, SERVERS_MAX)?;
    law("workload.sizes", &wpb.sizes, Dimension::Bytes)?;
    if let Some(exponent) = wpb.popularity {
        range("workload.popularity", exponent, 0.0, EXPONENT_MAX)?;
    }
    match &wpb.path_bytes {
        Some(path_bytes) => law("workload.path_bytes", path_bytes, Dimension::Bytes),
        None => Ok(()),
    }
}

pub(super) fn check_hits(hits: &Hits) -> Checked {
    count("workload.targets", hits.targets, TARGETS_MAX)?;
    law("workload.size", &hits.size, Dimension::Bytes)?;
    count("workload.connections", hits.connections, AGENTS_MAX)?;
    above_zero("workload.duration", hits.duration_s)
}

/// Requests of a client a phase: it remembers them, to repeat them.
const REQUESTS_MAX: u32 = 100_000_000;

/// Targets of the raw-speed scenario: every connection requests all of them once before it is
/// measured.
const TARGETS_MAX: u32 = 10_000_000;

/// Exponents of Zipf laws: with 10 the second is requested once in a thousand times.
pub(super) const EXPONENT_MAX: f64 = 10.0;
