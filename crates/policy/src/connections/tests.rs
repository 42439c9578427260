use super::*;
use proptest::prelude::*;
use weir_semantics::Timestamp;

const LIMITS: IdleLimits = IdleLimits {
    per_hop_max: 2,
    total_max: 3,
    idle_timeout_ms: 1000,
    lifetime_ms: u64::MAX,
};
const A: HopId = HopId(1);
const B: HopId = HopId(2);

fn at(ms: u64) -> Now {
    Now {
        wall: Timestamp(0),
        tick: Tick(ms),
    }
}

/// Idle connections to `A` that fell idle at the given ticks, numbered from 0.
fn idle_since(ticks: &[u64]) -> IdleConnections {
    let mut idle = IdleConnections::new(LIMITS);
    for (number, tick) in (0..).zip(ticks) {
        idle.check_in(at(*tick), A, ConnectionId(number), Tick(0));
    }
    idle
}

fn check_out(idle: &mut IdleConnections, ms: u64) -> (Option<u32>, Vec<u32>) {
    let mut expired = Vec::new();
    let found = idle.check_out(at(ms), A, &mut expired);
    (found.map(|c| c.0), expired.iter().map(|c| c.0).collect())
}

#[test]
fn newest_idle_connection_is_taken_first() {
    let mut idle = idle_since(&[0, 10]);
    assert_eq!(check_out(&mut idle, 20), (Some(1), vec![]));
    assert_eq!(check_out(&mut idle, 20), (Some(0), vec![]));
    assert_eq!(check_out(&mut idle, 20), (None, vec![]));
    let counters = idle.counters();
    assert_eq!((counters.hits, counters.misses), (2, 1));
}

#[test]
fn idle_connection_is_reused_only_before_its_idle_timeout() {
    assert_eq!(check_out(&mut idle_since(&[0]), 999), (Some(0), vec![]));
    assert_eq!(check_out(&mut idle_since(&[0]), 1000), (None, vec![0]));
    // The newer is still good; the older is closed on the way.
    let mut idle = idle_since(&[0, 10]);
    assert_eq!(check_out(&mut idle, 1009), (Some(1), vec![0]));
    assert_eq!(idle.counters().expiries, 1);
}

#[test]
fn idle_connection_is_not_used_for_another_hop() {
    let mut idle = idle_since(&[0]);
    assert_eq!(idle.check_out(at(1), B, &mut Vec::new()), None);
    assert_eq!(idle.len(), 1);
}

#[test]
fn idle_limit_closes_the_oldest_idle_connection() {
    let mut idle = idle_since(&[0, 1]);
    let kept_for = |close, why| CheckIn::KeptFor {
        close: ConnectionId(close),
        why,
    };
    let third = idle.check_in(at(2), A, ConnectionId(2), Tick(0));
    assert_eq!(third, kept_for(0, CloseReason::PerHopMax));
    assert_eq!(
        idle.check_in(at(3), B, ConnectionId(3), Tick(0)),
        CheckIn::Kept
    );
    let fifth = idle.check_in(at(4), B, ConnectionId(4), Tick(0));
    assert_eq!(fifth, kept_for(1, CloseReason::TotalMax));
    assert_eq!(idle.counters().evictions, 2);
    // One that had expired anyway is not counted against the limit.
    let late = idle.check_in(at(1003), B, ConnectionId(5), Tick(0));
    assert_eq!(late, kept_for(3, CloseReason::IdleTimeout));
    assert_eq!(
        (idle.counters().evictions, idle.counters().expiries),
        (2, 1)
    );
}

#[test]
fn idle_limit_of_zero_keeps_no_connection() {
    for (per_hop_max, total_max, why) in [
        (0, 3, CloseReason::PerHopMax),
        (2, 0, CloseReason::TotalMax),
    ] {
        let mut idle = IdleConnections::new(IdleLimits {
            per_hop_max,
            total_max,
            ..LIMITS
        });
        let checked_in = idle.check_in(at(0), A, ConnectionId(0), Tick(0));
        assert_eq!(checked_in, CheckIn::NotKept { why });
        assert!(idle.is_empty());
    }
}

#[test]
fn connection_is_kept_only_before_its_lifetime_ends() {
    let limits = IdleLimits {
        lifetime_ms: 50,
        ..LIMITS
    };
    for (ms, expected) in [
        (149, CheckIn::Kept),
        (
            150,
            CheckIn::NotKept {
                why: CloseReason::Lifetime,
            },
        ),
    ] {
        let mut idle = IdleConnections::new(limits);
        let checked_in = idle.check_in(at(ms), A, ConnectionId(0), Tick(100));
        assert_eq!(checked_in, expected, "{ms}");
        let kept = usize::from(expected == CheckIn::Kept);
        assert_eq!(
            (idle.len(), idle.counters().expiries == 0),
            (kept, kept == 1)
        );
    }
}

#[test]
fn hop_has_room_only_if_no_other_connection_must_be_closed() {
    let mut idle = idle_since(&[0]);
    assert!(idle.has_room(A) && idle.has_room(B));
    idle.check_in(at(1), A, ConnectionId(1), Tick(0));
    assert!(!idle.has_room(A) && idle.has_room(B));
    idle.check_in(at(2), B, ConnectionId(2), Tick(0));
    assert!(!idle.has_room(B));
    assert_eq!((idle.idle(A), idle.idle(B)), (2, 1));
    assert_eq!(idle.oldest_of(B), Some(ConnectionId(2)));
}

#[test]
fn connection_closed_by_peer_is_not_reused() {
    let mut idle = idle_since(&[0, 1]);
    assert!(idle.remove(ConnectionId(1)));
    assert!(!idle.remove(ConnectionId(1)));
    assert_eq!(check_out(&mut idle, 2), (Some(0), vec![]));
}

/// A list searched from end to end.
#[derive(Default)]
struct ReferenceModel(Vec<(ConnectionId, HopId, u64)>);

impl ReferenceModel {
    fn check_in(&mut self, ms: u64, hop: HopId, connection: ConnectionId) -> Option<ConnectionId> {
        self.0.retain(|entry| entry.0 != connection);
        self.0.push((connection, hop, ms));
        let of_hop = self.0.iter().filter(|entry| entry.1 == hop).count();
        let leaves = if of_hop > LIMITS.per_hop_max {
            self.0.iter().position(|entry| entry.1 == hop)
        } else {
            (self.0.len() > LIMITS.total_max).then_some(0)
        };
        leaves.map(|place| self.0.remove(place).0)
    }

    fn check_out(&mut self, ms: u64, hop: HopId) -> Option<ConnectionId> {
        self.0
            .retain(|entry| entry.1 != hop || ms - entry.2 < LIMITS.idle_timeout_ms);
        let place = self.0.iter().rposition(|entry| entry.1 == hop)?;
        Some(self.0.remove(place).0)
    }
}

#[derive(Clone, Debug)]
enum Step {
    In(u32, u32),
    Out(u32),
    Remove(u32),
    Expire,
    Wait(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (0..3_u32, 0..8_u32).prop_map(|(hop, connection)| Step::In(hop, connection)),
        2 => (0..3_u32).prop_map(Step::Out),
        1 => (0..8_u32).prop_map(Step::Remove),
        1 => Just(Step::Expire),
        2 => (0..700_u64).prop_map(Step::Wait),
    ]
}

proptest! {
    #[test]
    fn random_operations_match_a_reference_list(steps in prop::collection::vec(step(), 0..80)) {
        let (mut idle, mut reference, mut ms) = (IdleConnections::new(LIMITS), ReferenceModel::default(), 0);
        for step in steps {
            match step {
                Step::In(hop, connection) => {
                    let (hop, connection) = (HopId(hop), ConnectionId(connection));
                    // a connection falls idle only after it was in use
                    idle.remove(connection);
                    let closed = match idle.check_in(at(ms), hop, connection, Tick(0)) {
                        CheckIn::KeptFor { close, .. } => Some(close),
                        _ => None,
                    };
                    prop_assert_eq!(closed, reference.check_in(ms, hop, connection));
                }
                Step::Out(hop) => {
                    let found = idle.check_out(at(ms), HopId(hop), &mut Vec::new());
                    prop_assert_eq!(found, reference.check_out(ms, HopId(hop)));
                }
                Step::Remove(connection) => {
                    idle.remove(ConnectionId(connection));
                    reference.0.retain(|entry| entry.0.0 != connection);
                }
                Step::Expire => {
                    idle.expire(at(ms), &mut Vec::new());
                    reference.0.retain(|entry| ms - entry.2 < LIMITS.idle_timeout_ms);
                }
                Step::Wait(more) => ms += more,
            }
            prop_assert_eq!(idle.len(), reference.0.len());
            let queued = idle.hops.values().map(IdleQueue::len).sum::<usize>();
            prop_assert_eq!(queued, reference.0.len());
        }
    }
}
