//! What the series of a running proxy say of its requests and bytes.

use weir_measure::live::{HistoryTable, Live, LiveSeries};
use weir_measure::{Label as _, Verdict};

/// Counters, in the words of `/live`.
const CONTENT: &str = "bytes.content-to-clients";
const FROM_STORE: &str = "bytes.content-from-store";
const TO_CLIENTS: &str = "bytes.to-clients";
const FROM_NEXT_HOPS: &str = "bytes.from-next-hops";

/// The series that sums are made of, separated by commas.
pub(super) fn series() -> String {
    let verdicts = Verdict::ALL.iter().map(|verdict| requests(*verdict));
    let bytes = [CONTENT, FROM_STORE, TO_CLIENTS, FROM_NEXT_HOPS].map(str::to_owned);
    verdicts.chain(bytes).collect::<Vec<_>>().join(",")
}

fn requests(verdict: Verdict) -> String {
    format!("requests.{}", verdict.word())
}

/// What happened in a span of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sums {
    /// Requests of clients.
    pub(super) requests: u64,
    /// Those of them that stored responses answered.
    pub(super) hits: u64,
    /// Content bytes to clients.
    pub(super) content: u64,
    /// Those of them that came from the store.
    pub(super) from_store: u64,
    /// Bytes to clients, heads included.
    pub(super) to_clients: u64,
    /// Bytes from next hops, heads included.
    pub(super) from_next_hops: u64,
}

impl Sums {
    /// Those of values by the name of their series.
    fn of(value: impl Fn(&str) -> Option<u64>) -> Self {
        let value = |name: &str| value(name).unwrap_or(0);
        let of_verdict = |verdict: &Verdict| value(&requests(*verdict));
        Self {
            requests: Verdict::ALL.iter().map(of_verdict).sum(),
            hits: of_verdict(&Verdict::Hit),
            content: value(CONTENT),
            from_store: value(FROM_STORE),
            to_clients: value(TO_CLIENTS),
            from_next_hops: value(FROM_NEXT_HOPS),
        }
    }

    /// Those of the last second.
    pub(super) fn of_second(live: &Live) -> Self {
        Self::of(|name| latest(live, name))
    }

    /// Those since the start.
    pub(super) fn since_start(live: &Live) -> Self {
        Self::of(|name| total(live, name))
    }

    /// Those of all rows of a table.
    pub(super) fn of_rows(table: &HistoryTable) -> Self {
        Self::of(|name| {
            let column = table.columns.get(place(&table.series, name)?)?;
            Some(column.iter().flatten().sum())
        })
    }
}

/// What a series was in the last second.
pub(super) fn latest(live: &Live, name: &str) -> Option<u64> {
    let place = place(&live.series, name)?;
    live.sample.values.get(place).copied().flatten()
}

/// What a counter has counted since the start.
fn total(live: &Live, name: &str) -> Option<u64> {
    let place = place(&live.series, name)?;
    live.sample.totals.get(place).copied().flatten()
}

fn place(series: &[LiveSeries], name: &str) -> Option<usize> {
    series.iter().position(|series| series.name == name)
}

#[cfg(test)]
mod tests {
    use super::super::example;
    use super::*;

    #[test]
    fn sums_are_over_all_verdicts_and_hits_are_one_of_them() {
        let live = example::live();
        let second = Sums::of_second(&live);
        let expected = Sums {
            requests: 12,
            hits: 9,
            content: 1000,
            from_store: 750,
            to_clients: 1200,
            from_next_hops: 400,
        };
        assert_eq!(second, expected);
        assert_eq!(Sums::since_start(&live).requests, 120);
        assert_eq!(latest(&live, "time.hit.p50"), None, "none in that second");
        assert_eq!(latest(&live, "no-such-series"), None);
    }

    #[test]
    fn sums_of_rows_leave_out_what_is_not_known() {
        let table = HistoryTable {
            version: 1,
            step_s: 1,
            from_s: 5,
            series: example::live().series[..2].to_vec(),
            columns: vec![vec![Some(1), None, Some(2)], vec![None, None, Some(4)]],
        };
        let sums = Sums::of_rows(&table);
        assert_eq!((sums.requests, sums.hits), (7, 3));
    }

    #[test]
    fn series_of_sums_are_series_of_the_history() {
        let known = weir_measure::history::series::all(&[]);
        for name in series().split(',') {
            assert!(known.iter().any(|series| series.name == name), "{name}");
        }
    }
}
