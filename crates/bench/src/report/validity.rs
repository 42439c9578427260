//! Notices above the numbers: why they may be wrong.

use super::comparison::{Comparison, clients};
use super::source::RecordFile;
use std::collections::BTreeMap;
use weir_measure::record::Record;
use weir_report::{Html, count, digits};

/// Above this load other programs used the machine when a run began.
const QUIET_LOAD: f64 = 0.5;

/// Notices: runs that are not valid, a scaled scenario, warnings.
pub(super) fn write(html: &mut Html, comparison: &Comparison<'_>) {
    invalid(html, comparison);
    scaled(html, comparison);
    remarks(html, comparison);
}

fn invalid(html: &mut Html, comparison: &Comparison<'_>) {
    let bad: Vec<&RecordFile> = comparison
        .runs()
        .filter(|run| !run.record.is_valid)
        .collect();
    if bad.is_empty() {
        return;
    }
    html.open("div", "notice bad");
    let all = comparison.runs().count();
    let verb = if bad.len() == 1 { "is" } else { "are" };
    html.element(
        "p",
        "",
        &format!(
            "{} of {all} runs {verb} not valid; their marks in the figures are hollow.",
            bad.len()
        ),
    );
    html.open("ul", "");
    for run in bad {
        html.open("li", "");
        html.element("b", "", &called(run));
        html.text(": ");
        html.text(&run.record.reasons.join(" "));
        html.close();
    }
    html.close();
    html.close();
}

fn scaled(html: &mut Html, comparison: &Comparison<'_>) {
    let broken = broken_rules(comparison);
    let is_scaled = comparison.scale < 1.0;
    if !is_scaled && broken.is_empty() {
        return;
    }
    html.open("div", "notice");
    if is_scaled {
        let text = format!(
            "Scaled by {}: a shorter version of {}, not the benchmark itself. Compare the proxies with each other, \
             not with runs at another scale.",
            digits(comparison.scale),
            comparison.scenario
        );
        html.element("p", "", &text);
    }
    if !broken.is_empty() {
        html.open("details", "");
        html.element(
            "summary",
            "",
            "Rules of the benchmark that these runs do not follow",
        );
        html.open("ul", "");
        for ((rule, required), found) in &broken {
            let found = found.join("; ");
            html.element(
                "li",
                "",
                &format!("{rule}: {required} is asked for, here {found}"),
            );
        }
        html.close();
        html.close();
    }
    html.close();
}

/// Each broken rule once, with all that was found.
fn broken_rules<'a>(comparison: &Comparison<'a>) -> BTreeMap<(&'a str, &'a str), Vec<&'a str>> {
    let mut broken: BTreeMap<(&str, &str), Vec<&str>> = BTreeMap::new();
    let rules = comparison.runs().flat_map(|run| &run.record.rules);
    for rule in rules.filter(|rule| !rule.holds) {
        let found = broken.entry((&rule.rule, &rule.required)).or_default();
        if !found.contains(&rule.found.as_str()) && found.len() < 4 {
            found.push(&rule.found);
        }
    }
    broken
}

/// Warnings of the runs, each once, and what the report itself noticed.
fn remarks(html: &mut Html, comparison: &Comparison<'_>) {
    let mut remarks: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for run in comparison.runs() {
        for warning in run
            .record
            .warnings
            .iter()
            .cloned()
            .chain(noticed(&run.record))
        {
            remarks.entry(warning).or_default().push(called(run));
        }
    }
    if remarks.is_empty() {
        return;
    }
    html.open("details", "remarks");
    html.element("summary", "", "Remarks");
    html.open("ul", "");
    let all = comparison.runs().count();
    for (remark, runs) in remarks {
        let subjects = if runs.len() == all && all > 1 {
            "all runs".to_owned()
        } else if runs.len() > 4 {
            format!("{} runs", runs.len())
        } else {
            runs.join(", ")
        };
        html.open("li", "");
        html.text(&remark);
        html.element("span", "who", &format!(" ({subjects})"));
        html.close();
    }
    html.close();
    html.close();
}

fn noticed(record: &Record) -> Vec<String> {
    let mut noticed = Vec::new();
    let said = record.total.client.cache_status;
    if said.disagree > 0 {
        noticed.push(format!(
            "the proxy's own word on hits differs from the marks in {} of {} responses",
            count(said.disagree),
            count(said.agree + said.disagree)
        ));
    }
    if record.host.load_average > QUIET_LOAD {
        noticed.push("the machine was not quiet before the run began".to_owned());
    }
    noticed
}

/// A run as it is spoken of.
fn called(run: &RecordFile) -> String {
    let record = &run.record;
    let clients = clients(record).map_or_else(String::new, |clients| {
        format!(", {} clients", digits(clients))
    });
    let caching = if record.subject.is_caching {
        ""
    } else {
        ", no cache"
    };
    format!("{}{clients}{caching}", record.subject.label)
}
