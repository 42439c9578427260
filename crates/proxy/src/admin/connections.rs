//! What PROXIM (INFOCOM 1999) reports of a proxy's connections, of this one: as a table, or as
//! JSON.
//!
//! Its columns are the percentage of requests that opened a new connection and the most connections
//! open at once, on the clients' side and on the next hops'; beside them the mean number of
//! requests on a connection, of next hops that a client's connection leads to, and of clients that
//! a next hop's connection serves. Everything is made from the counters: `/metrics` gives the same.

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use std::fmt::{self, Write};
use weir_measure::{Label, Metric, OpenReason, Snapshot, Supply, Verdict, WaitEnd, WaitReason};

/// The report. The names are those of the JSON form.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    clients: Clients,
    next_hops: NextHops,
}

/// The connections of clients.
#[derive(Debug, Serialize)]
struct Clients {
    requests: u64,
    requests_on_new_connection: u64,
    percent_on_new_connection: Ratio,
    open: u64,
    open_max: u64,
    requests_per_connection: Ratio,
    next_hops_per_connection: Ratio,
}

/// The connections to next hops.
#[derive(Debug, Serialize)]
struct NextHops {
    /// Without tunnels.
    requests: u64,
    /// With tunnels: their requests opened one, too.
    requests_on_new_connection: u64,
    /// Of the requests of clients, as PROXIM has it.
    percent_on_new_connection: Ratio,
    /// Of those that went to a next hop, tunnels apart.
    percent_of_forwarded_on_new_connection: Ratio,
    open: u64,
    open_max: u64,
    idle: u64,
    requests_per_connection: Ratio,
    clients_per_connection: Ratio,
    reuses_by_other_client: u64,
    reuses_by_other_worker: u64,
    repeated: u64,
    requests_by_connection: Words,
    opened_by_reason: Words,
    waits_by_reason: Words,
    waits_by_end: Words,
}

impl Report {
    pub(super) fn new(numbers: &Snapshot) -> Self {
        let get = |metric| numbers.get(metric);
        let all = Words::of(numbers, Metric::Requests as fn(Verdict) -> _).sum();
        let first = get(Metric::FirstRequests);
        let by_connection = Words::of(numbers, Metric::NextHopRequests as fn(Supply) -> _);
        let by_reason = Words::of(numbers, Metric::NextHopOpens as fn(OpenReason) -> _);
        let sent = by_connection.sum();
        // whatever else it carried, each connection that was used had one first request
        let used =
            get(Metric::NextHopRequests(Supply::New)) + get(Metric::NextHopRequests(Supply::Ahead));
        let opened = by_reason.sum() - get(Metric::NextHopOpens(OpenReason::Ahead));
        let forwarded = opened - get(Metric::NextHopOpens(OpenReason::Tunnel));
        Self {
            clients: Clients {
                requests: all,
                requests_on_new_connection: first,
                percent_on_new_connection: Ratio::percent(first, all),
                open: get(Metric::ClientsOpen),
                open_max: get(Metric::ClientsOpenMost),
                requests_per_connection: Ratio::of(all, first),
                next_hops_per_connection: Ratio::of(get(Metric::ClientNextHops), first),
            },
            next_hops: NextHops {
                requests: sent,
                requests_on_new_connection: opened,
                percent_on_new_connection: Ratio::percent(opened, all),
                percent_of_forwarded_on_new_connection: Ratio::percent(forwarded, sent),
                open: get(Metric::NextHopsOpen),
                open_max: get(Metric::NextHopsOpenMost),
                idle: get(Metric::ConnectionCacheIdle),
                requests_per_connection: Ratio::of(sent, used),
                clients_per_connection: Ratio::of(get(Metric::NextHopClients), used),
                reuses_by_other_client: get(Metric::ReusesByOtherClient),
                reuses_by_other_worker: get(Metric::ReusesByOtherWorker),
                repeated: get(Metric::Retries),
                requests_by_connection: by_connection,
                opened_by_reason: by_reason,
                waits_by_reason: Words::of(numbers, Metric::ConnectionWaits as fn(WaitReason) -> _),
                waits_by_end: Words::of(numbers, Metric::ConnectionWaitEnds as fn(WaitEnd) -> _),
            },
        }
    }

    /// As JSON.
    ///
    /// # Errors
    ///
    /// None that could be met: names and numbers are all it holds.
    pub(super) fn json(&self) -> serde_json::Result<String> {
        serde_json::to_string_pretty(self).map(|text| text + "\n")
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (clients, hops) = (&self.clients, &self.next_hops);
        let none = || String::from(" ");
        row(f, "connections since the start", "clients", "next hops")?;
        row(f, "requests", clients.requests, hops.requests)?;
        row(
            f,
            "  that opened a new connection",
            clients.requests_on_new_connection,
            hops.requests_on_new_connection,
        )?;
        row(
            f,
            "  the same, % of clients' requests",
            clients.percent_on_new_connection,
            hops.percent_on_new_connection,
        )?;
        row(
            f,
            "  the same, % of forwarded requests",
            none(),
            hops.percent_of_forwarded_on_new_connection,
        )?;
        row(f, "open now", clients.open, hops.open)?;
        row(f, "idle now", none(), hops.idle)?;
        row(f, "most open at once", clients.open_max, hops.open_max)?;
        row(
            f,
            "requests a connection, mean",
            clients.requests_per_connection,
            hops.requests_per_connection,
        )?;
        row(
            f,
            "next hops a connection, mean",
            clients.next_hops_per_connection,
            none(),
        )?;
        row(
            f,
            "clients a connection, mean",
            none(),
            hops.clients_per_connection,
        )?;
        row(
            f,
            "used by another client than its first",
            none(),
            hops.reuses_by_other_client,
        )?;
        row(
            f,
            "used by another worker than before",
            none(),
            hops.reuses_by_other_worker,
        )?;
        row(
            f,
            "requests repeated on a new connection",
            none(),
            hops.repeated,
        )?;
        list(
            f,
            "requests to next hops, by connection",
            &hops.requests_by_connection,
        )?;
        list(f, "connections opened, by reason", &hops.opened_by_reason)?;
        list(
            f,
            "waits for a connection, by reason",
            &hops.waits_by_reason,
        )?;
        list(f, "waits for a connection, by end", &hops.waits_by_end)
    }
}

fn row(
    f: &mut fmt::Formatter<'_>,
    what: &str,
    clients: impl fmt::Display,
    next_hops: impl fmt::Display,
) -> fmt::Result {
    let (clients, next_hops) = (clients.to_string(), next_hops.to_string());
    let line = format!("{what:<40}{clients:>12}{next_hops:>12}");
    writeln!(f, "{}", line.trim_end())
}

fn list(f: &mut fmt::Formatter<'_>, what: &str, words: &Words) -> fmt::Result {
    writeln!(f, "\n{what}")?;
    for (word, count) in words.0.iter().filter(|(_, count)| *count > 0) {
        row(f, &format!("  {word}"), " ", count)?;
    }
    if words.sum() == 0 {
        f.write_str("  none\n")?;
    }
    Ok(())
}

/// A quotient in tenths; none of nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Ratio(Option<u64>);

impl Ratio {
    fn of(part: u64, whole: u64) -> Self {
        Self::in_tenths(part, 10, whole)
    }

    fn percent(part: u64, whole: u64) -> Self {
        Self::in_tenths(part, 1000, whole)
    }

    fn in_tenths(part: u64, factor: u64, whole: u64) -> Self {
        let rounded = part.saturating_mul(factor).saturating_add(whole / 2);
        Self(rounded.checked_div(whole))
    }
}

impl fmt::Display for Ratio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(tenths) => write!(f, "{}.{}", tenths / 10, tenths % 10),
            None => f.write_char('-'),
        }
    }
}

impl Serialize for Ratio {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        // exact far beyond any mean of requests
        self.0.map(|tenths| tenths as f64 / 10.0).serialize(to)
    }
}

/// The numbers of one family, by the words of its label.
#[derive(Clone, Debug)]
struct Words(Vec<(&'static str, u64)>);

impl Words {
    fn of<L: Label>(numbers: &Snapshot, metric: impl Fn(L) -> Metric) -> Self {
        let count = |label: &L| (label.word(), numbers.get(metric(*label)));
        Self(L::ALL.iter().map(count).collect())
    }

    fn sum(&self) -> u64 {
        self.0.iter().map(|(_, count)| count).sum()
    }
}

impl Serialize for Words {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(Some(self.0.len()))?;
        for (word, count) in &self.0 {
            map.serialize_entry(word, count)?;
        }
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_measure::Counters;

    fn report() -> Report {
        let counters = Counters::new();
        counters.add(Metric::Requests(Verdict::Hit), 80);
        counters.add(Metric::Requests(Verdict::UriMiss), 19);
        counters.add(Metric::Requests(Verdict::Tunnel), 1);
        counters.add(Metric::FirstRequests, 18);
        counters.add(Metric::ClientNextHops, 36);
        counters.add(Metric::NextHopRequests(Supply::New), 4);
        counters.add(Metric::NextHopRequests(Supply::Idle), 14);
        counters.add(Metric::NextHopRequests(Supply::Ahead), 1);
        counters.add(Metric::NextHopOpens(OpenReason::NoneBusy), 4);
        counters.add(Metric::NextHopOpens(OpenReason::Ahead), 2);
        counters.add(Metric::NextHopOpens(OpenReason::Tunnel), 1);
        counters.add(Metric::NextHopClients, 6);
        counters.add(Metric::ClientsOpenMost, 12);
        counters.add(Metric::NextHopsOpenMost, 7);
        Report::new(&Snapshot::sum([&counters]))
    }

    #[test]
    fn table_shows_the_proxim_columns_computed_from_the_counters() {
        let table = report().to_string();
        let check = |what: &str, expected: &str| {
            let line = table
                .lines()
                .find(|line| line.trim_start().starts_with(what));
            let numbers = line.map(|line| line[40..].split_whitespace().collect::<Vec<_>>());
            let expected: Vec<_> = expected.split_whitespace().collect();
            assert_eq!(numbers.as_ref(), Some(&expected), "{what} in\n{table}");
        };
        check("requests  ", "100 19");
        check("that opened a new", "18 5");
        check("the same, % of clients", "18.0 5.0");
        // four of the nineteen, the tunnel being none of them
        check("the same, % of forwarded", "21.1");
        check("most open", "12 7");
        check("requests a connection", "5.6 3.8");
        check("next hops a connection", "2.0");
        check("clients a connection", "1.2");
    }

    #[test]
    fn json_report_matches_the_counters_and_a_ratio_over_zero_is_null() {
        let read = |report: Report| -> serde_json::Value {
            let text = report.json().expect("names and numbers");
            serde_json::from_str(&text).expect("JSON")
        };
        let json = read(report());
        assert_eq!(json["clients"]["percent_on_new_connection"], 18.0);
        assert_eq!(json["next_hops"]["percent_on_new_connection"], 5.0);
        assert_eq!(json["next_hops"]["opened_by_reason"]["ahead"], 2);
        assert_eq!(json["next_hops"]["waits_by_end"]["returned"], 0);
        let empty = Report::new(&Snapshot::default());
        assert!(empty.to_string().contains("\n  none\n"));
        let json = read(empty);
        assert!(json["clients"]["requests_per_connection"].is_null());
    }
}
