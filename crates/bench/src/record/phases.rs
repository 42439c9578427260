//! The counts of clients and origin in the schema's words.

use crate::client::ClientResult;
use crate::origin::{OriginCounts, PhaseCounts};
use crate::tally::{
    ByKind, Counts, CrossCheck, PhaseTally, RequestCounts, RequestKind, SecondTally, Times,
};
use std::collections::BTreeMap;
use weir_measure::Label;
use weir_measure::record::{
    CacheStatusAgreement, ClientSide, Histogram, KindSide, OriginSide, Phase, ResponseTime, Second,
};

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
    sum.name = "total".into();
    sum.is_measured = false;
    phase(&sum, &origin.total())
}

fn phase(tally: &PhaseTally, origin: &PhaseCounts) -> Phase {
    Phase {
        name: tally.name.clone(),
        is_measured: tally.is_measured,
        seconds: tally.seconds(),
        offered_requests: tally.offered,
        client: client_side(&tally.counts),
        origin: origin_side(origin),
        response_time: ResponseTime {
            all: histogram(&tally.response_time.all),
            hit: histogram(&tally.response_time.hit),
            miss: histogram(&tally.response_time.miss),
            connect: histogram(&tally.response_time.connect),
        },
    }
}

fn client_side(counts: &RequestCounts) -> ClientSide {
    ClientSide {
        requests: counts.requests,
        hits: counts.hits,
        collapsed: counts.collapsed,
        validated: counts.validated,
        forwarded: counts.forwarded,
        not_modified: counts.not_modified,
        not_modified_forwarded: Some(counts.not_modified_forwarded),
        errors: by_word(&counts.errors),
        aborted: counts.aborted,
        wrong: by_word(&counts.wrong),
        content_bytes: counts.content_bytes,
        failed_content_bytes: counts.failed_content_bytes,
        hit_content_bytes: counts.hit_content_bytes,
        could_hit: counts.could_hit,
        could_hit_content_bytes: counts.could_hit_content_bytes,
        by_kind: by_kind(&counts.by_kind),
        connections_opened: counts.connections_opened,
        connections_reused: counts.connections_reused,
        cache_status: CacheStatusAgreement {
            agree: counts.cache_status.of(CrossCheck::Agree),
            disagree: counts.cache_status.of(CrossCheck::Disagree),
            absent: counts.cache_status.of(CrossCheck::Absent),
        },
    }
}

fn by_kind(counts: &ByKind) -> BTreeMap<String, KindSide> {
    let asked = RequestKind::ALL
        .iter()
        .filter(|kind| counts.ended.of(**kind) > 0);
    asked
        .map(|kind| {
            let side = KindSide {
                requests: counts.ended.of(*kind),
                hits: counts.hits.of(*kind),
                validated: counts.validated.of(*kind),
                forwarded: counts.forwarded.of(*kind),
                not_modified: counts.not_modified.of(*kind),
            };
            (kind.to_string(), side)
        })
        .collect()
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

fn by_word<K: Label>(counts: &Counts<K>) -> BTreeMap<String, u64> {
    let seen = counts.seen();
    seen.map(|(word, count)| (word.to_owned(), count)).collect()
}

fn histogram(times: &Times) -> Histogram {
    Histogram {
        count: times.count(),
        sum: times.sum_us(),
        min: times.min_us().unwrap_or(0),
        max: times.max_us().unwrap_or(0),
        buckets: times.pairs().collect(),
        ..Histogram::default()
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
            tally.counts.requests += 1;
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
