//! What the paper of the Wisconsin Proxy Benchmark says of each of its figures, beside what was
//! measured here.
//!
//! J. Almeida, P. Cao: Measuring Proxy Performance with the Wisconsin Proxy Benchmark, Computer
//! Networks and ISDN Systems 30, 1998. Its figures have no table of their values; what its text
//! says of them is here, with every number that it gives. Two of its four proxies are measured
//! today as well, Squid and Apache; for CERN's proxy and "Proxy N" all proxies of today stand in.

use super::comparison::{CACHING, Comparison, ProxyRuns, RunKind, UNCACHED, mean_us, together};
use super::median_range::MedianRange;
use weir_measure::record::Record;
use weir_report::{Html, Unit, count, digits};

/// The numbers of the paper's figures.
pub(super) const HIT_RATIOS: &str = "3, 6, 8 and 11";
pub(super) const ERRORS: &str = "4 and 9";

/// A number of a run.
type Value = fn(&Record) -> Option<f64>;

/// One of the paper's figures or tables.
struct Item {
    figure: &'static str,
    shows: &'static str,
    /// What the paper says.
    finding: &'static str,
    quantity: Quantity,
    /// The proxy of today that it is compared with; all of them if `None`.
    proxy: Option<&'static str>,
}

#[derive(Clone, Copy)]
enum Quantity {
    Latency,
    HitRatio,
    Errors,
    Table,
}

const ITEMS: [Item; 12] = [
    Item {
        figure: "figure 2",
        shows: "CERN: latency",
        finding: "Without caching nearly flat; with caching it rises, and beyond 32 clients the second phase is slower than without caching.",
        quantity: Quantity::Latency,
        proxy: None,
    },
    Item {
        figure: "figure 3",
        shows: "CERN: hit ratio",
        finding: "Falls as clients are added.",
        quantity: Quantity::HitRatio,
        proxy: None,
    },
    Item {
        figure: "figure 4",
        shows: "CERN: errors",
        finding: "Cannot accept all connections beyond 40 clients, ever more of them; none in the second phase.",
        quantity: Quantity::Errors,
        proxy: None,
    },
    Item {
        figure: "figure 5",
        shows: "Apache: latency",
        finding: "Without caching roughly flat; with caching unstable and rising, about 30 s at 88 clients in the first phase; the second phase is below no \
               caching until 72 clients.",
        quantity: Quantity::Latency,
        proxy: Some("apache"),
    },
    Item {
        figure: "figure 6",
        shows: "Apache: hit ratio",
        finding: "Not affected by the number of clients.",
        quantity: Quantity::HitRatio,
        proxy: Some("apache"),
    },
    Item {
        figure: "figure 7",
        shows: "Proxy N: latency",
        finding: "Linear growth, with and without caching; the second phase always below no caching. Saturated above 48 clients with 32 processes, at 88 with 64.",
        quantity: Quantity::Latency,
        proxy: None,
    },
    Item {
        figure: "figure 8",
        shows: "Proxy N: hit ratio",
        finding: "Declines slowly; second best of the four.",
        quantity: Quantity::HitRatio,
        proxy: None,
    },
    Item {
        figure: "figure 9",
        shows: "Proxy N: errors",
        finding: "Many, mostly in the first phase.",
        quantity: Quantity::Errors,
        proxy: None,
    },
    Item {
        figure: "figure 10",
        shows: "Squid: latency",
        finding: "Without caching better than CERN; with caching like Apache and CERN.",
        quantity: Quantity::Latency,
        proxy: Some("squid"),
    },
    Item {
        figure: "figure 11",
        shows: "Squid: hit ratio",
        finding: "Constant, the best of the four; its byte hit ratio is very unstable.",
        quantity: Quantity::HitRatio,
        proxy: Some("squid"),
    },
    Item {
        figure: "table 1",
        shows: "Squid, 75 MB on one disk",
        finding: "First phase 9.00 s, second 5.44 s; without caching 3.65 s and 3.42 s. Hit ratio 20.29 %, byte hit ratio 5.67 %. The number of clients is not \
               known.",
        quantity: Quantity::Table,
        proxy: Some("squid"),
    },
    Item {
        figure: "table 2",
        shows: "Proxy N, 75 MB on one disk",
        finding: "First phase 9.82 s, second 5.42 s; without caching 6.71 s and 5.34 s. Hit ratio 21.61 %, byte hit ratio 12.18 %; 87 errors in the first phase, \
               13 in the second.",
        quantity: Quantity::Table,
        proxy: None,
    },
];

/// Does this comparison repeat the paper's first experiment?
fn is_of_paper(comparison: &Comparison<'_>) -> bool {
    comparison.scenario == "wpb" && comparison.is_sweep()
}

/// Which of the paper's figures this one is like; nothing in other scenarios.
pub(super) fn beside_figure(comparison: &Comparison<'_>, figures: &str) -> String {
    if !is_of_paper(comparison) {
        return String::new();
    }
    format!(" As the paper's figures {figures}.")
}

/// The same for the response times of one proxy.
pub(super) fn beside_latency(comparison: &Comparison<'_>, label: &str) -> String {
    if !is_of_paper(comparison) {
        return String::new();
    }
    let mut items = ITEMS
        .iter()
        .filter(|item| matches!(item.quantity, Quantity::Latency));
    let item = items.find(|item| is_it(item.proxy, label));
    let figure = item.map_or("figures 2, 5, 7 and 10", |item| item.figure);
    format!(" As the paper's {figure}.")
}

fn is_it(proxy: Option<&str>, label: &str) -> bool {
    proxy.is_some_and(|proxy| label.eq_ignore_ascii_case(proxy))
}

/// The paper's figures and tables, each beside what was measured here.
pub(super) fn write(html: &mut Html, comparison: &Comparison<'_>) {
    if !is_of_paper(comparison) {
        return;
    }
    html.element("h3", "", "What the paper found, and what is found here");
    html.table("paper", &["1998", "", "the paper", "here"], |html| {
        for item in &ITEMS {
            let is_meant =
                |proxy: &&ProxyRuns<'_>| item.proxy.is_none() || is_it(item.proxy, proxy.label);
            let proxies: Vec<_> = comparison.proxies.iter().filter(is_meant).collect();
            html.open("tr", "");
            html.row_head(item.figure);
            html.cells([
                item.shows,
                item.finding,
                &measured(comparison, item, &proxies),
            ]);
            html.close();
        }
    });
    let note = "The paper's text describes its figures; it has no table of their values. CERN's proxy and \"Proxy N\" cannot be had any more: there all proxies \
                measured here are meant, from the least to the greatest value.";
    html.element("p", "note", note);
}

fn measured(comparison: &Comparison<'_>, item: &Item, proxies: &[&ProxyRuns<'_>]) -> String {
    if proxies.is_empty() {
        return format!("{} was not measured", item.proxy.unwrap_or("a proxy"));
    }
    let places = comparison.places();
    let (Some(first), Some(last)) = (places.first(), places.last()) else {
        return "–".to_owned();
    };
    let ends = [*first, *last];
    let text = match item.quantity {
        Quantity::Latency => latency(proxies, ends),
        Quantity::HitRatio => hit_ratio(proxies, ends),
        Quantity::Errors => errors(proxies),
        Quantity::Table => table(proxies, *last),
    };
    let subject = item.proxy.map_or("all proxies", |_| proxies[0].label);
    format!("{subject}: {text}")
}

fn first_us(record: &Record) -> Option<f64> {
    record.measured().next()?.response_time.all.mean_us()
}

/// `first phase 3.01 s at 16 clients, 3.02 s at 96; ...`
fn latency(proxies: &[&ProxyRuns<'_>], ends: [f64; 2]) -> String {
    let parts: [(&str, RunKind, Value); 4] = [
        ("first phase", CACHING, first_us),
        ("second phase", CACHING, mean_us),
        ("without caching, first phase", UNCACHED, first_us),
        ("second phase", UNCACHED, mean_us),
    ];
    let parts = parts.map(|(name, which, of)| {
        format!("{name} {}", from_to(proxies, which, ends, Unit::Time, of))
    });
    format!("{}.", parts.join("; "))
}

fn hit_ratio(proxies: &[&ProxyRuns<'_>], ends: [f64; 2]) -> String {
    let share = |of: Value| from_to(proxies, CACHING, ends, Unit::Share, of);
    let ratio = share(|record| together(record).hit_ratio());
    let offered = share(|record| together(record).offered_hit_ratio());
    let bytes = share(|record| together(record).byte_hit_ratio());
    // records of before it was counted have none
    let is_known = proxies
        .iter()
        .flat_map(|proxy| proxy.of(CACHING))
        .any(|run| together(&run.record).offered_hit_ratio().is_some());
    let offered = if is_known {
        format!(" offered {offered};")
    } else {
        String::new()
    };
    format!("{ratio};{offered} byte hit ratio {bytes}.")
}

fn errors(proxies: &[&ProxyRuns<'_>]) -> String {
    let runs = proxies.iter().flat_map(|proxy| &proxy.runs);
    let mut by_phase: Vec<(String, u64)> = Vec::new();
    for phase in runs.flat_map(|run| run.record.measured()) {
        let failed = phase.client.error_count();
        match by_phase.iter_mut().find(|(name, _)| *name == phase.name) {
            Some((_, sum)) => *sum += failed,
            None => by_phase.push((phase.name.clone(), failed)),
        }
    }
    if by_phase.iter().all(|(_, failed)| *failed == 0) {
        return "none, with any number of clients.".to_owned();
    }
    let parts: Vec<String> = by_phase
        .into_iter()
        .map(|(name, failed)| format!("{} in {name}", count(failed)))
        .collect();
    format!("{} of all runs together.", parts.join(", "))
}

fn table(proxies: &[&ProxyRuns<'_>], place: f64) -> String {
    let at =
        |which, unit, of| spread(proxies, which, place, unit, of).unwrap_or_else(|| "–".to_owned());
    format!(
        "with {} clients first phase {}, second {}; without caching {} and {}. Hit ratio {}, byte hit ratio {}.",
        digits(place),
        at(CACHING, Unit::Time, first_us as Value),
        at(CACHING, Unit::Time, mean_us),
        at(UNCACHED, Unit::Time, first_us),
        at(UNCACHED, Unit::Time, mean_us),
        at(CACHING, Unit::Share, |record| together(record).hit_ratio()),
        at(CACHING, Unit::Share, |record| together(record)
            .byte_hit_ratio()),
    )
}

fn from_to(
    proxies: &[&ProxyRuns<'_>],
    which: RunKind,
    ends: [f64; 2],
    unit: Unit,
    of: Value,
) -> String {
    let at = |place| spread(proxies, which, place, unit, of).unwrap_or_else(|| "–".to_owned());
    let [first, last] = ends;
    format!(
        "{} at {} clients, {} at {}",
        at(first),
        digits(first),
        at(last),
        digits(last)
    )
}

/// The value of one proxy, or from the least to the greatest of several; valid runs alone.
fn spread(
    proxies: &[&ProxyRuns<'_>],
    which: RunKind,
    place: f64,
    unit: Unit,
    of: Value,
) -> Option<String> {
    let values = proxies.iter().filter_map(|proxy| {
        let run = proxy.at(which, Some(place))?;
        let runs = proxy.repetitions(&run.record).into_iter();
        let runs = runs.filter(|run| run.record.is_valid);
        Some(MedianRange::of(runs.filter_map(|run| of(&run.record)))?.median)
    });
    let all = MedianRange::of(values)?;
    let Some((least, most)) = all.range else {
        return Some(unit.write(all.median));
    };
    let (least, most) = (unit.write(least), unit.write(most));
    Some(if least == most {
        least
    } else {
        format!("{least} to {most}")
    })
}
