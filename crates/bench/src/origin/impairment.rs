//! Impairments of the scenario: how long a response is delayed, whether it is cut, which fault is
//! injected.
//!
//! Everything is drawn from (seed, id), or (seed, target) where a request has no id: a replay has
//! the same impairments, and so has the same request sent again. Only the spans of time in which
//! faults hold depend on the clock.
//!
//! A server's link is part of it: its delay, its losses and a connection's set-up make a response
//! later, its rate makes it slow. The time that a loss in the middle of the content costs is spent
//! before its first byte: the last byte arrives at the same time.

use std::time::Duration;

use weir_workload::{BodyPoint, Chance, FaultKind, Link, Origin, Target};

use crate::link::{PACKET_BYTES, RETRANSMISSION_US, SYN_REPEATED_US, is_any_lost};
use crate::mark::Id;
use weir_workload::whole;

/// The impairment of one response.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Impairment {
    /// From the request to the first byte of the response.
    pub(super) wait: Duration,
    pub(super) injected: Option<InjectedFault>,
}

/// A fault that is injected.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum InjectedFault {
    /// The content is cut at this share of it.
    Abort(f64),
    /// A fault of the script, at its point.
    Fault(FaultKind, BodyPoint),
}

/// The properties of a request that decide its impairment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct RequestContext {
    pub(super) id: Option<Id>,
    pub(super) target: Target,
    /// Bytes of the content that goes back.
    pub(super) bytes: u64,
    /// Is it the first on its connection?
    pub(super) is_first: bool,
    /// Since the run began.
    pub(super) elapsed_s: f64,
}

/// No response is waited for longer, whatever the law draws.
pub(super) const WAIT_MAX: Duration = Duration::from_secs(600);

const RETRANSMISSION: Duration = Duration::from_micros(RETRANSMISSION_US);
const SYN_REPEATED: Duration = Duration::from_micros(SYN_REPEATED_US);

/// Keeps these draws apart from those of other crates with the same seed.
const STREAM: u64 = 0x6f72_6967_696e;

impl Impairment {
    /// Drawn for a request.
    pub(super) fn draw(origin: &Origin, seed: u64, request: &RequestContext) -> Self {
        let key = request.id.map_or_else(|| request.target.digest(seed), key);
        let mut chance = Chance::new(seed ^ STREAM, key);
        let wait = duration(origin.latency.draw(&mut chance));
        // a point is drawn whether it is used or not, so that nothing that follows depends on it
        let aborted = (chance.unit(), chance.unit());
        let fault = origin.faults.iter().find(|fault| {
            // of every fault that comes before, in their order, for the same reason
            let is_meant = chance.is(fault.share);
            let until_s = fault.until_s.unwrap_or(f64::INFINITY);
            is_meant
                && fault.targets.includes(request.target)
                && (fault.from_s..until_s).contains(&request.elapsed_s)
        });
        let injected = match fault {
            Some(fault) => Some(InjectedFault::Fault(fault.what, fault.at)),
            None => (aborted.0 < origin.aborted_share).then_some(InjectedFault::Abort(aborted.1)),
        };
        let way = origin
            .link
            .as_ref()
            .map_or(Duration::ZERO, |link| on_the_way(link, request, seed, key));
        Self {
            wait: wait.saturating_add(way).min(WAIT_MAX),
            injected,
        }
    }
}

/// What the server's link costs in time, its rate apart.
fn on_the_way(link: &Link, request: &RequestContext, seed: u64, key: u64) -> Duration {
    // of its own stream, so that faults are the same with a link and without
    let mut chance = Chance::new(seed ^ STREAM, !key);
    let round_trip = 2 * duration(link.delay_ms / 1000.0).min(WAIT_MAX);
    let packets = request.bytes.div_ceil(PACKET_BYTES.into()).max(1);
    let mut way = round_trip;
    if request.is_first {
        // SYN and its answer
        way += round_trip;
        if is_any_lost(link.loss, 2, &mut chance) {
            way += SYN_REPEATED;
        }
    }
    if is_any_lost(link.loss, 1, &mut chance) {
        way += round_trip + RETRANSMISSION;
    }
    if is_any_lost(link.loss, packets, &mut chance) {
        // duplicate acknowledgements of later packets report the loss; behind the last one there is
        // only the timeout
        way += round_trip;
        if packets == 1 {
            way += RETRANSMISSION;
        }
    }
    way
}

/// Bytes a second at which content is sent, if there is a limit: the scenario's, or what the link
/// carries away.
pub(super) fn rate_bytes_per_s(origin: &Origin) -> Option<u64> {
    let link = origin.link.as_ref().and_then(|link| link.up_bits_per_s);
    let link = link.map(|bits| (bits / 8).max(1));
    match (origin.rate_bytes_per_s, link) {
        (Some(rate), Some(link)) => Some(rate.min(link)),
        (rate, link) => rate.or(link),
    }
}

/// The requests a connection is good for, at least one; `number` is the connection's.
pub(super) fn requests_max(origin: &Origin, seed: u64, number: u64) -> u64 {
    let Some(law) = &origin.requests_per_connection else {
        return u64::MAX;
    };
    let mut chance = Chance::new(seed ^ STREAM, !number);
    let drawn = law.draw(&mut chance);
    whole(drawn.max(1.0))
}

/// Different for all requests of a run of fewer than 2^40 requests a share and 2^16 shares.
fn key(id: Id) -> u64 {
    id.number ^ u64::from(id.share) << 40 ^ u64::from(id.phase) << 56
}

/// Less than nothing, and what is no number, is nothing.
fn duration(seconds: f64) -> Duration {
    if seconds > 0.0 {
        Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
    } else {
        Duration::ZERO
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_workload::Scenario;

    const CONNECTIONS: u32 = 20_000;

    #[test]
    fn requests_of_a_connection_follow_the_law() {
        let mut scenario = Scenario::built_in("wpb").expect("it is built in");
        scenario
            .set("origin.requests_per_connection=zipf(16)")
            .expect("a law");
        let mut counts = [0_u32; 17];
        for number in 0..u64::from(CONNECTIONS) {
            let requests = requests_max(&scenario.origin, 7, number);
            counts[usize::try_from(requests).expect("at most 16")] += 1;
        }
        assert_eq!(counts[0], 0);
        // P(k) = ln((k + 1) / k) / ln 17
        for (k, count) in (1_u32..).zip(&counts[1..]) {
            let expected = (f64::from(k + 1) / f64::from(k)).ln() / 17_f64.ln();
            let share = f64::from(*count) / f64::from(CONNECTIONS);
            let deviation = (expected * (1.0 - expected) / f64::from(CONNECTIONS)).sqrt();
            assert!(
                (share - expected).abs() < 4.0 * deviation,
                "{k}: {share} instead of {expected}"
            );
        }
    }
}
