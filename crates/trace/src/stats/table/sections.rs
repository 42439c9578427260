//! The tables, one after the other.

use super::super::{
    Abort, Aborts, Causes, Infinite, Persistence, Population, Ratios, Share, Spread, Storable,
    Summary, Times, Volume, Word, Words,
};
use super::number::{bytes, count, digits, megabytes, percent, time, whole_bytes, whole_time};
use super::{ABSENT, Table, known};

pub(super) fn write(table: &mut Table, summary: &Summary) {
    words(table, &summary.words);
    population(table, &summary.population);
    sizes(table, &summary.volume, &summary.population);
    causes(table, &summary.causes);
    storable(table, summary.storable.as_ref());
    infinite(table, &summary.infinite);
    aborts(table, &summary.aborts);
    persistence(table, summary);
    times(table, &summary.times);
}

/// Words of a kind that are shown; all are in the JSON.
const WORDS_SHOWN: usize = 8;

fn words(table: &mut Table, words: &Words) {
    let kinds = [
        ("methods", &words.methods),
        ("statuses", &words.statuses),
        ("schemes", &words.schemes),
        ("versions", &words.versions),
        ("content types", &words.content_types),
        ("verdicts", &words.verdicts),
    ];
    for (name, words) in kinds {
        table.fact(name, &listed(words));
    }
}

fn listed(words: &[Word]) -> String {
    if words.is_empty() {
        return ABSENT.into();
    }
    let shown = words.iter().take(WORDS_SHOWN);
    let shown: Vec<String> = shown
        .map(|word| format!("{} {}", word.word, count(word.requests)))
        .collect();
    let more = words.len().saturating_sub(WORDS_SHOWN);
    match more {
        0 => shown.join(", "),
        _ => format!("{} and {more} more", shown.join(", ")),
    }
}

fn population(table: &mut Table, population: &Population) {
    table.title("Clients, servers and targets");
    table.fact("clients", &known(population.clients, count));
    table.fact("servers", &known(population.servers, count));
    let once = Share {
        yes: population.targets_once,
        said: population.targets,
    };
    table.fact(
        "targets",
        &format!(
            "{}, {} % of them asked for once",
            count(population.targets),
            percent(once.share())
        ),
    );
    let popularity = &population.popularity;
    let zipf = popularity.zipf_exponent.map_or_else(
        || "too few targets are asked for ten times to fit Zipf's law".to_owned(),
        |exponent| format!("Zipf exponent {exponent:.2}"),
    );
    table.fact(
        "popularity",
        &format!(
            "{zipf}; {} requests for the first, {} % for the first hundredth of targets",
            count(popularity.most),
            percent(popularity.top_hundredth.share())
        ),
    );
    let footprint = known(population.footprint_bytes, whole_bytes);
    table.fact("footprint", &footprint);
}

fn sizes(table: &mut Table, volume: &Volume, population: &Population) {
    table.title("Bytes of content");
    table.fact("received", &known(volume.received_bytes, whole_bytes));
    table.fact("declared", &known(volume.declared_bytes, whole_bytes));
    table.fact("from next hop", &known(volume.next_hop_bytes, whole_bytes));
    let spreads = [
        ("by request", &volume.size),
        ("by target", &population.target_size),
    ];
    spread_rows(table, &spreads, bytes, whole_bytes);
}

fn spread_rows(
    table: &mut Table,
    spreads: &[(&str, &Option<Spread>)],
    mean: impl Fn(f64) -> String,
    number: impl Fn(u64) -> String,
) {
    let heads = ["", "number", "mean", "p10", "median", "p90", "p99", "max"];
    let row = |(name, spread): &(&str, &Option<Spread>)| {
        let Some(spread) = spread else {
            return vec![(*name).to_owned(), ABSENT.to_owned()];
        };
        let mut row = vec![(*name).to_owned(), count(spread.count), mean(spread.mean)];
        let values = [spread.p10, spread.p50, spread.p90, spread.p99, spread.max];
        row.extend(values.map(&number));
        row
    };
    table.rows_under(&heads, spreads.iter().map(row));
}

fn causes(table: &mut Table, causes: &Causes) {
    table.title("Uncachable by the rules of 1998 (a request can have several causes)");
    let heads = ["", "requests", "%", "% of these storable by RFC 9111"];
    let line = |name: &str, found: Option<Share>, storable: Option<Share>| match found {
        None => vec![name.to_owned(), ABSENT.to_owned()],
        Some(found) => {
            let storable = storable.map_or_else(|| "-".into(), |share| percent(share.share()));
            vec![
                name.to_owned(),
                count(found.yes),
                percent(found.share()),
                storable,
            ]
        }
    };
    let each = causes.each.iter();
    let each = each.map(|cause| line(cause.cause.as_str(), cause.requests, cause.storable));
    let is_partial = causes.each.iter().any(|cause| cause.requests.is_none());
    let name = if is_partial && causes.union.is_some() {
        "union, at least"
    } else {
        "union"
    };
    let union = line(name, causes.union, causes.union_storable);
    table.rows_under(&heads, each.chain([union]));
}

fn storable(table: &mut Table, storable: Option<&Storable>) {
    table.title("Storable in a shared cache by RFC 9111 (first reason against it)");
    let Some(found) = storable else {
        table.rows(&[vec![ABSENT.to_owned()]]);
        return;
    };
    let all = found.storable.said;
    let row = |name: &str, requests: u64| {
        let share = Share {
            yes: requests,
            said: all,
        };
        vec![name.to_owned(), count(requests), percent(share.share())]
    };
    let storable = [row("storable", found.storable.yes)].into_iter();
    let reasons = found.reasons.iter();
    let rows = storable.chain(reasons.map(|reason| row(reason.reason, reason.requests)));
    table.rows_under(&["", "requests", "%"], rows);
}

fn infinite(table: &mut Table, infinite: &Infinite) {
    table.title("Infinite cache");
    let heads = ["", "hits", "of", "hit ratio %", "byte hit ratio %"];
    let row = |(name, ratios): (&str, &Ratios)| {
        let of_bytes = ratios.byte_hit_ratio().map_or_else(|| "-".into(), percent);
        let (hits, of) = (count(ratios.hits), count(ratios.requests));
        let hit_ratio = percent(ratios.hit_ratio());
        vec![name.to_owned(), hits, of, hit_ratio, of_bytes]
    };
    let rules = [
        ("rules of 1998, cookies ignored", &infinite.ignoring_cookies),
        ("rules of 1998", &infinite.obeying_cookies),
        ("GET with 200 and content, first sizes (K1)", &infinite.k1),
    ];
    table.rows_under(&heads, rules.map(row));
}

fn aborts(table: &mut Table, aborts: &Aborts) {
    table.title("Aborts (Content-Length CL, received data length RDL)");
    let mean = |abort: &Abort, of: f64| match abort.transfers {
        0 => "-".to_owned(),
        _ => bytes(of),
    };
    if let Some(by_length) = &aborts.by_length {
        let heads = [
            "",
            "transfers",
            "%",
            "declared MB",
            "received MB",
            "mean declared",
            "mean received",
        ];
        let said = by_length.iter().map(|abort| abort.transfers).sum();
        let rows = by_length.iter().map(|abort| {
            let share = Share {
                yes: abort.transfers,
                said,
            };
            vec![
                abort.lengths.as_str().to_owned(),
                count(abort.transfers),
                percent(share.share()),
                megabytes(abort.declared_bytes),
                megabytes(abort.received_bytes),
                mean(abort, abort.declared_mean()),
                mean(abort, abort.received_mean()),
            ]
        });
        table.rows_under(&heads, rows);
    } else {
        table.rows(&[vec!["both lengths".to_owned(), ABSENT.to_owned()]]);
    }
    let by_whom = known(aborts.by_whom, |ended| {
        let [complete, client, server] = [ended.complete, ended.client, ended.server].map(count);
        format!("client {client}, server {server}; {complete} not aborted")
    });
    table.rows(&[vec!["aborted by".to_owned(), by_whom]]);
}

fn persistence(table: &mut Table, summary: &Summary) {
    let sides = [
        ("Connections of clients", &summary.connections.client),
        ("Connections to next hops", &summary.connections.next_hop),
    ];
    for (title, side) in sides {
        table.title(title);
        one_side(table, side);
    }
}

/// A share with what it is of.
fn share_of(share: Share) -> String {
    format!("{} % of {}", percent(share.share()), count(share.said))
}

fn one_side(table: &mut Table, side: &Persistence) {
    let connections = side.connections.zip(side.requests_per_connection);
    let connections = known(connections, |(connections, requests)| {
        format!("{}, {} requests each", count(connections), digits(requests))
    });
    let rows = [
        (
            "could carry another request",
            known(side.persistent, share_of),
        ),
        ("carried one before", known(side.reused, share_of)),
        ("connections", connections),
    ];
    table.rows(&rows.map(|(name, value)| vec![name.to_owned(), value]));
}

fn times(table: &mut Table, times: &Times) {
    table.title("Times");
    let spreads = [
        ("set-up (SYN to SYN-ACK)", &times.setup_us),
        ("request to response", &times.response_us),
        ("transfer", &times.transfer_us),
        ("whole", &times.total_us),
        ("set-up at next hop", &times.next_hop_setup_us),
        ("response of next hop", &times.next_hop_response_us),
    ];
    spread_rows(table, &spreads, time, whole_time);
    let half = known(times.setup_is_half, share_of);
    table.rows(&[vec!["set-up is half of the whole or more".to_owned(), half]]);
}
