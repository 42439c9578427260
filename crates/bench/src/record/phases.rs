//! The counts of clients and origin in the schema's words.

use crate::client::ClientResult;
use crate::origin::{OriginCounts, PhaseCounts};
use crate::tally::{PhaseTally, SecondTally};
use weir_measure::record::{OriginSide, Phase, ResponseTime, Second};

/// Every phase.
pub(super) fn phases(clients: &ClientResult, origin: &OriginCounts) -> Vec<Phase> {
    let nothing = PhaseCounts::default();
    let sides = clients.phases.iter().enumerate();
    sides
        .map(|(place, tally)| phase(tally, origin.phases.get(place).unwrap_or(&nothing)))
        .collect()
}

/// All of them in one.
pub(super) fn total(clients: &ClientResult, origin: &OriginCounts) -> Phase {
    let mut sum = PhaseTally::new("total", false);
    for tally in &clients.phases {
        sum.merge(tally);
    }
    phase(&sum, &origin.total())
}

fn phase(tally: &PhaseTally, origin: &PhaseCounts) -> Phase {
    let times = &tally.response_time;
    Phase {
        name: tally.name.clone(),
        is_measured: tally.is_measured,
        seconds: tally.seconds(),
        offered_requests: tally.offered,
        client: tally.counts.client.clone(),
        origin: origin_side(origin),
        response_time: ResponseTime {
            all: times.all.clone().into(),
            hit: times.hit.clone().into(),
            miss: times.miss.clone().into(),
            connect: times.connect.clone().into(),
        },
    }
}

fn origin_side(counts: &PhaseCounts) -> OriginSide {
    let faulted = &counts.faulted;
    OriginSide {
        requests: counts.requests,
        distinct: counts.distinct,
        repeated: counts.repeated,
        without_id: counts.without_id,
        content_bytes: counts.content_bytes,
        not_modified: counts.not_modified,
        aborted: counts.aborted + counts.left + faulted.cut + faulted.reset + faulted.hang,
        connections_opened: counts.connections_opened,
    }
}

/// Every second.
pub(super) fn series(seconds: &[SecondTally]) -> Vec<Second> {
    let second = |second: &SecondTally| Second {
        at_s: f64::from(second.at_s),
        requests: second.requests,
        responses: second.responses,
        hits: second.hits,
        errors: second.errors,
        content_bytes: second.content_bytes,
        p50_us: second.quantile_us(0.5),
        p99_us: second.quantile_us(0.99),
        connections_open: second.connections_open,
    };
    seconds.iter().map(second).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tally::Outcome;

    fn tally(name: &str, hits: u64) -> PhaseTally {
        let mut tally = PhaseTally::new(name, true);
        for hit in 0..hits {
            tally.counts.client.requests += 1;
            tally.counts.enter(Outcome::Hit, 100);
            tally.response_time.all.record(1000 + hit);
        }
        tally
    }

    #[test]
    fn client_and_origin_counts_of_a_phase_are_paired_by_position() {
        let clients = ClientResult {
            phases: vec![tally("one", 3), tally("two", 5), tally("three", 0)],
            ..ClientResult::default()
        };
        let counted = |requests| PhaseCounts {
            requests,
            distinct: requests,
            ..PhaseCounts::default()
        };
        let origin = OriginCounts {
            phases: vec![counted(1), counted(2)],
            ..OriginCounts::default()
        };
        let all = phases(&clients, &origin);
        let sides: Vec<_> = all
            .iter()
            .map(|phase| {
                (
                    phase.name.as_str(),
                    phase.client.requests,
                    phase.origin.requests,
                )
            })
            .collect();
        assert_eq!(sides, [("one", 3, 1), ("two", 5, 2), ("three", 0, 0)]);
        let total = total(&clients, &origin);
        assert_eq!((total.name.as_str(), total.is_measured), ("total", false));
        assert_eq!((total.client.hits, total.origin.requests), (8, 3));
        let histogram = &total.response_time.all;
        assert_eq!(
            (histogram.count, histogram.min, histogram.max),
            (8, 1000, 1004)
        );
        assert_eq!(
            histogram
                .buckets
                .iter()
                .map(|(_, count)| count)
                .sum::<u64>(),
            8
        );
    }
}
