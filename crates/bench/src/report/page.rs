//! The page: one HTML file that needs nothing else, no network and no script.

use super::comparison::{Comparison, comparisons, distinct};
use super::figures::{curve, load, sweep, timeline};
use super::source::RecordFile;
use super::{modem, paper, phase_tables, provenance, summary, table, validity};
use weir_measure::record::Record;
use weir_report::palette;
use weir_report::{Figure, Html, digits};

const STYLE: &str = include_str!("style.css");

/// A finished report.
#[derive(Debug)]
pub(super) struct Page {
    pub(super) html: String,
    pub(super) figures: Vec<Figure>,
}

/// Puts the page together.
pub(super) fn page(runs: &[RecordFile]) -> Page {
    let comparisons = comparisons(runs);
    let mut html = Html::default();
    html.raw("<!DOCTYPE html>\n");
    html.open_with("html", &[("lang", "en")]);
    head(&mut html, &comparisons);
    html.open("body", "");
    html.open("main", "");
    html.element("h1", "", &title(&comparisons));
    html.element("p", "sub", &subtitle(runs));
    let mut figures = Vec::new();
    for (index, comparison) in comparisons.iter().enumerate() {
        // with one scenario the title says which
        if comparisons.len() > 1 {
            let scale = if comparison.scale < 1.0 {
                format!(", scale {}", digits(comparison.scale))
            } else {
                String::new()
            };
            html.element("h2", "", &format!("{}{scale}", comparison.scenario));
            if !comparison.differences.is_empty() {
                let text = format!(
                    "Not compared with the runs above: {} (there and here).",
                    comparison.differences.join("; ")
                );
                html.element("p", "differs", &text);
            }
        }
        let prefix = prefix(&comparisons, index);
        figures.extend(section(&mut html, comparison, &prefix));
    }
    provenance::write(&mut html, runs);
    Page {
        html: html.finish(),
        figures,
    }
}

/// Before the names of a section's figures: nothing in the first one, so that a record's main
/// figures keep their names.
fn prefix(comparisons: &[Comparison<'_>], index: usize) -> String {
    if index == 0 {
        return String::new();
    }
    let name = super::file_name(comparisons[index].scenario);
    let is_same = |comparison: &&Comparison<'_>| super::file_name(comparison.scenario) == name;
    match comparisons[..index].iter().filter(is_same).count() {
        0 => format!("{name}-"),
        before => format!("{name}-{}-", before + 1),
    }
}

fn head(html: &mut Html, comparisons: &[Comparison<'_>]) {
    html.open("head", "");
    html.raw("<meta charset=\"utf-8\"/>\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n");
    html.element("title", "", &title(comparisons));
    html.raw("<style>");
    let style = STYLE
        .replace("LIGHT", &palette::properties(false))
        .replace("DARK", &palette::properties(true));
    html.raw(&style);
    html.raw("@media (prefers-color-scheme:dark){");
    html.raw(&palette::dark_rules(".drawing "));
    html.raw("}</style>\n");
    html.close();
}

/// One scenario: notices, the best proxies, figures, numbers.
fn section(html: &mut Html, comparison: &Comparison<'_>, prefix: &str) -> Vec<Figure> {
    validity::write(html, comparison);
    summary::write(html, comparison);
    modem::write(html, comparison);
    load::write(html, comparison);
    paper::write(html, comparison);
    let mut all = Vec::new();
    for (name, figures) in [
        ("Against the number of clients", sweep::figures(comparison)),
        ("Until proxies fail", load::figures(comparison)),
        ("How response times are spread", curve::figures(comparison)),
        ("Second by second", timeline::clients_side(comparison)),
        ("What the proxies used", timeline::usage(comparison)),
    ] {
        let mut figures = figures;
        figures.retain(|figure| !figure.is_empty());
        if figures.is_empty() {
            continue;
        }
        html.element("h3", "", name);
        html.open("div", "figures");
        for mut figure in figures {
            show(html, &figure);
            figure.name = format!("{prefix}{}", figure.name);
            all.push(figure);
        }
        html.close();
    }
    phase_tables::write(html, comparison);
    html.element("h3", "", "All runs");
    table::runs(html, comparison);
    all
}

fn show(html: &mut Html, figure: &Figure) {
    html.open("figure", "");
    html.open("figcaption", "");
    html.element("b", "", &figure.title);
    html.element("span", "", &figure.note);
    html.close();
    html.raw(&weir_report::inline(figure));
    html.close();
}

fn title(comparisons: &[Comparison<'_>]) -> String {
    let names = distinct(comparisons.iter().map(|comparison| comparison.scenario));
    let proxies = comparisons
        .iter()
        .flat_map(|comparison| &comparison.proxies);
    let labels = distinct(proxies.map(|proxy| proxy.label));
    format!("{}: {}", names.join(", "), labels.join(", "))
}

fn subtitle(runs: &[RecordFile]) -> String {
    let mut begun: Vec<&str> = runs.iter().map(|run| run.record.started.as_str()).collect();
    begun.sort_unstable();
    let (first, last) = (begun.first().copied(), begun.last().copied());
    let when = match (first, last) {
        (Some(first), Some(last)) if day(first) != day(last) => {
            format!(", {} to {}", day(first), day(last))
        }
        (Some(first), _) => format!(", {}", day(first)),
        _ => String::new(),
    };
    let number = match runs.len() {
        1 => "One run".to_owned(),
        several => format!("{several} runs"),
    };
    let host = runs
        .first()
        .map_or_else(String::new, |run| host(&run.record));
    format!(
        "{number}{when}{host}. Every body was compared with what the origin sent, byte by byte."
    )
}

fn host(record: &Record) -> String {
    let cores = match record.host.cores {
        1 => "1 core".to_owned(),
        several => format!("{several} cores"),
    };
    format!(", on {} ({cores})", record.host.cpu)
}

fn day(started: &str) -> &str {
    started.split('T').next().unwrap_or(started)
}
