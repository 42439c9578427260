//! What is counted in the traces, which are calibrated to these very numbers.

use super::{Row, Table};
use crate::paper::proxim::experiment::Run;
use crate::paper::proxim::facts::Facts;
use crate::paper::proxim::findings::{Findings, percent};
use crate::paper::proxim::published::Unit;
use crate::results::outcome::Requests;
use weir_trace::stats::{Abort, Cause};

fn of_facts<T: 'static>(
    of: impl Fn(&Facts) -> Option<T> + 'static,
) -> impl Fn(&Findings) -> Option<T> + 'static {
    move |findings| of(findings.facts.as_ref()?)
}

/// A number of a trace: key, what, unit, and where it is counted.
type Count = (&'static str, &'static str, Unit, fn(&Facts) -> Option<f64>);

fn count((key, what, unit, of): Count) -> Row {
    Row::new(key, what, unit, of_facts(of))
}

#[rustfmt::skip]
const TRACES: [Count; 5] = [
    ("trace.requests", "requests", Unit::Count, |facts| Some(facts.summary.requests as f64)),
    ("trace.clients", "clients", Unit::Count, |facts| Some(facts.summary.population.clients? as f64)),
    ("trace.servers", "servers", Unit::Count, |facts| Some(facts.summary.population.servers? as f64)),
    ("trace.bytes", "content that clients received", Unit::Gigabytes,
        |facts| Some(facts.summary.volume.received_bytes? as f64 / 1e9)),
    ("trace.persistent", "requests on persistent connections", Unit::Percent,
        |facts| Some(percent(facts.summary.connections.client.persistent?.share()))),
];

pub(super) fn traces() -> Table {
    Table {
        about: "Made up, and calibrated to what the paper says of its own. Shares do not depend on the length of a trace; how many \
                clients and servers it has does."
            .to_owned(),
        rows: TRACES.map(count).into(),
        pictures: Vec::new(),
    }
}

pub(super) fn causes() -> Table {
    let mut rows: Vec<Row> = Cause::ALL
        .iter()
        .map(|&cause| {
            let ours = of_facts(move |facts| {
                let mut each = facts.summary.causes.each.iter();
                let share = each.find(|share| share.cause == cause)?.requests?;
                Some(percent(share.share()))
            });
            Row::percent(key_of(cause), cause.as_str(), ours)
        })
        .collect();
    let union = of_facts(|facts| Some(percent(facts.summary.causes.union?.share())));
    rows.push(Row::percent("causes.union", "any of them", union));
    Table {
        about: "Of all requests, those with this cause; a request can have several.".to_owned(),
        rows,
        pictures: Vec::new(),
    }
}

const fn key_of(cause: Cause) -> &'static str {
    match cause {
        Cause::Cookie => "causes.cookie",
        Cause::Query => "causes.query",
        Cause::ClientCacheControl => "causes.client-cache-control",
        Cause::CgiBin => "causes.cgi-bin",
        Cause::Method => "causes.method",
        Cause::Authorization => "causes.authorization",
        Cause::ServerCacheControl => "causes.server-cache-control",
    }
}

#[rustfmt::skip]
const HITS: [Count; 4] = [
    ("hits.ignoring-cookies", "hit ratio, ignoring cookies", Unit::Percent,
        |facts| Some(percent(facts.summary.infinite.ignoring_cookies.hit_ratio()))),
    ("hits.obeying-cookies", "hit ratio, obeying cookies", Unit::Percent,
        |facts| Some(percent(facts.summary.infinite.obeying_cookies.hit_ratio()))),
    ("hits.bytes-ignoring-cookies", "byte hit ratio, ignoring cookies", Unit::Percent,
        |facts| facts.summary.infinite.ignoring_cookies.byte_hit_ratio().map(percent)),
    ("hits.bytes-obeying-cookies", "byte hit ratio, obeying cookies", Unit::Percent,
        |facts| facts.summary.infinite.obeying_cookies.byte_hit_ratio().map(percent)),
];

pub(super) fn hits() -> Table {
    let simulated = |key: &str, what: &str, of: fn(&Requests) -> f64| {
        Row::percent(key, what, move |findings| {
            Some(percent(of(&findings.outcome(Run::FULL)?.requests)))
        })
    };
    let mut rows: Vec<Row> = HITS.map(count).into();
    rows.extend([
        simulated(
            "hits.simulated",
            "hit ratio of the simulated proxy, which stops aborted fetches",
            Requests::hit_ratio,
        ),
        simulated(
            "hits.simulated-bytes",
            "byte hit ratio of the simulated proxy",
            Requests::byte_hit_ratio,
        ),
    ]);
    Table {
        about: "The cache has room for everything, and takes nothing for stale. What an aborted transfer asked for counts as stored \
                whole; the simulated proxy has only what came before its client left."
            .to_owned(),
        rows,
        pictures: Vec::new(),
    }
}

pub(super) fn aborts() -> Table {
    let share = |place: usize| {
        of_facts(move |facts: &Facts| {
            let all = facts.summary.aborts.by_length?;
            let transfers: u64 = all.iter().map(|one| one.transfers).sum();
            (transfers > 0).then(|| percent(all[place].transfers as f64 / transfers as f64))
        })
    };
    let bytes = |place: usize, of: fn(&Abort) -> f64| {
        of_facts(move |facts: &Facts| {
            let one = facts.summary.aborts.by_length?[place];
            (one.transfers > 0).then(|| of(&one))
        })
    };
    let mean = |key, what, place, of| Row::new(key, what, Unit::Bytes, bytes(place, of));
    #[rustfmt::skip]
    let rows = vec![
        Row::percent("aborts.complete", "complete, of those with a length", share(0)),
        Row::percent("aborts.aborted", "aborted", share(1)),
        Row::percent("aborts.overlong", "longer than declared", share(2)),
        mean("aborts.complete-bytes", "complete: mean size", 0, Abort::declared_mean),
        mean("aborts.aborted-declared", "aborted: mean declared size", 1, Abort::declared_mean),
        mean("aborts.aborted-received", "aborted: mean received size", 1, Abort::received_mean),
        mean("aborts.overlong-declared", "longer: mean declared size", 2, Abort::declared_mean),
        mean("aborts.overlong-received", "longer: mean received size", 2, Abort::received_mean),
    ];
    Table {
        about: "An abort is inferred, as in the paper: fewer bytes were received than Content-Length declared. The paper has this table \
                of its modem trace alone, and gives sums of bytes; means are the same at any length."
            .to_owned(),
        rows,
        pictures: Vec::new(),
    }
}
