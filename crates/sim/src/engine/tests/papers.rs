//! What PROXIM (INFOCOM 1999) says of aborted fetches, on any trace in which nothing is asked for
//! twice: where something is, a stopped fetch can cost another request a miss.

use super::world::*;
use crate::settings::{Network, Settings};
use proptest::prelude::*;
use weir_policy::Profile;
use weir_policy::fetch::{AbortPolicy, ReadAhead};
use weir_trace::Row;
use weir_workload::Chance;

/// Requests for different targets, half of which are left somewhere on the way.
fn left_early(seed: u64) -> Vec<Row> {
    let chance = &mut Chance::new(seed, 5);
    let mut at_ms = 0;
    (0..60_u64)
        .map(|number| {
            at_ms += i64::try_from(chance.below(30_000)).unwrap();
            let doublings = chance.below(12);
            let bytes = 1 + chance.below(256 << doublings);
            let mut row = by(chance.below(20), row(at_ms, number * 1000, bytes));
            row.setup_us = Some(chance.below(400_000));
            row.etag = chance.is(0.5).then_some(1);
            if chance.is(0.5) {
                row = leaving_after(chance.below(bytes), row);
            }
            row
        })
        .collect()
}

fn from_servers(abort: AbortPolicy, read_ahead: ReadAhead, network: Network, rows: &[Row]) -> u64 {
    let settings = Settings {
        abort,
        read_ahead,
        background_bytes_s: 1 << 40,
        ..Settings::of(network, Profile::Rfc9111)
    };
    run(&settings, rows).traffic.from_servers_bytes
}

/// From a read-ahead on whose shares are longer than a segment. Below, a window that opens for a
/// reader who waits (`policy::fetch::Pace`) is larger than the read-ahead itself, and 4 KiB can
/// cost half a percent more than 16 KiB.
const READ_AHEADS: [ReadAhead; 4] = [
    ReadAhead::Bytes(16 * 1024),
    ReadAhead::DEFAULT,
    ReadAhead::Bytes(512 * 1024),
    ReadAhead::Unbounded,
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn bounded_read_ahead_brings_no_more_bytes_than_unbounded(seed in 0_u64..1 << 40) {
        let rows = left_early(seed);
        for network in [Network::MODEM, Network::RESEARCH] {
            let bytes = READ_AHEADS.map(|read_ahead| from_servers(AbortPolicy::Stop, read_ahead, network, &rows));
            let [bounded @ .., unbounded] = bytes;
            prop_assert!(bounded.iter().all(|bytes| *bytes <= unbounded), "{:?}", bytes);
        }
    }

    #[test]
    fn finish_policy_fetches_every_byte_once_and_no_other_policy_fetches_more(seed in 0_u64..1 << 40) {
        let rows = left_early(seed);
        let whole: u64 = rows.iter().filter_map(|row| row.declared_bytes).sum();
        for network in [Network::MODEM, Network::RESEARCH] {
            for read_ahead in READ_AHEADS {
                let [stop, value, finish] = [AbortPolicy::Stop, AbortPolicy::VALUE, AbortPolicy::Finish]
                    .map(|abort| from_servers(abort, read_ahead, network, &rows));
                prop_assert!(stop <= finish && value <= finish, "{} {} {}", stop, value, finish);
                prop_assert_eq!(finish, whole, "who goes on fetches everything, once");
            }
        }
    }
}

/// The limit is on what lies ahead of the client, and the window follows the client's rate: with a
/// tighter limit a single trace can bring a few segments more, many traces together do not.
#[test]
fn tighter_read_ahead_limit_brings_fewer_bytes_over_many_traces() {
    for network in [Network::MODEM, Network::RESEARCH] {
        let mut bytes = [0; READ_AHEADS.len()];
        for seed in 0..TRACES {
            let rows = left_early(seed);
            for (bytes, read_ahead) in bytes.iter_mut().zip(READ_AHEADS) {
                *bytes += from_servers(AbortPolicy::Stop, read_ahead, network, &rows);
            }
        }
        assert!(
            bytes.is_sorted_by(|tighter, wider| tighter <= wider),
            "{bytes:?}"
        );
    }
}

/// Traces that are summed up.
const TRACES: u64 = 40;
