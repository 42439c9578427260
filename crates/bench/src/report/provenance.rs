//! Where the numbers come from: everything that is needed to get them again, folded away.

use super::source::RecordFile;
use std::collections::BTreeMap;
use weir_measure::float;
use weir_measure::record::{Generator, Mode, Record, WrongResponse};
use weir_report::{Html, Unit, count, digits};

/// A fold for each run, one for what was wrong, and the scenarios, each text once.
pub(super) fn write(html: &mut Html, runs: &[RecordFile]) {
    html.element("h2", "", "Where this comes from");
    let mut scenarios: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (index, run) in runs.iter().enumerate() {
        scenarios
            .entry(&run.record.scenario)
            .or_default()
            .push(index);
        html.open("details", "");
        html.open("summary", "");
        html.element("code", "", &run.file);
        html.text(&format!(" {}", run.record.subject.label));
        html.close();
        facts(html, run);
        wrong_responses(html, &run.record.wrong_responses);
        html.close();
    }
    for (number, (text, which)) in scenarios.iter().enumerate() {
        html.open("details", "");
        let files: Vec<&str> = which
            .iter()
            .map(|&index| runs[index].file.as_str())
            .collect();
        html.open("summary", "");
        html.text(&format!("Scenario {} of ", number + 1));
        html.element("code", "", &shortened(&files));
        html.close();
        html.element("pre", "", text);
        html.close();
    }
}

fn shortened(files: &[&str]) -> String {
    match files {
        [first, _, _, ..] => format!("{first} and {} more", files.len() - 1),
        few => few.join(", "),
    }
}

fn facts(html: &mut Html, run: &RecordFile) {
    let record = &run.record;
    html.open("dl", "");
    for (name, value) in list(record) {
        html.element("dt", "", name);
        html.element("dd", "", &value);
    }
    for (name, version) in &record.versions {
        html.element("dt", "", &format!("version of {name}"));
        html.element("dd", "", version);
    }
    html.close();
}

fn list(record: &Record) -> Vec<(&'static str, String)> {
    let mode = match record.subject.mode {
        Mode::Forward => "forward proxy",
        Mode::Gateway => "gateway",
        Mode::Direct => "no proxy",
    };
    let caching = if record.subject.is_caching {
        "caching"
    } else {
        "no caching"
    };
    let parameters: Vec<String> = record
        .parameters
        .iter()
        .map(|(name, value)| format!("{name} = {}", digits(*value)))
        .collect();
    let tool = &record.tool;
    let generator = &record.generator;
    let said = record.total.client.cache_status;
    vec![
        ("command", tool.command.clone()),
        (
            "subject",
            format!("{mode} at {}, {caching}", record.subject.proxy),
        ),
        ("parameters", parameters.join(", ")),
        (
            "began",
            format!("{}, took {} s", record.started, digits(record.seconds)),
        ),
        ("seed", record.seed.to_string()),
        (
            "tool",
            format!(
                "{} {}, commit {}",
                tool.name,
                tool.version,
                tool.commit.as_deref().unwrap_or("not known")
            ),
        ),
        (
            "host",
            format!(
                "{}, {} cores, {}, {}, load average {}",
                record.host.cpu,
                record.host.cores,
                Unit::Bytes.write(float(record.host.memory_bytes)),
                record.host.kernel,
                digits(record.host.load_average)
            ),
        ),
        (
            "generator",
            format!(
                "late {}, at most {}; busiest thread {} of a core{}",
                Unit::Share.write(generator.late_share),
                Unit::Time.write(float(generator.late_max_us)),
                Unit::Share.write(generator.cpu_share),
                links(generator)
            ),
        ),
        (
            "the proxy's word on hits",
            format!(
                "agrees with the marks in {}, differs in {}, is absent in {}",
                count(said.agree),
                count(said.disagree),
                count(said.absent)
            ),
        ),
        (
            "samples",
            record.samples.clone().unwrap_or_else(|| "none".to_owned()),
        ),
    ]
}

/// By how much links were slower than their nominal rate; nothing without links.
fn links(generator: &Generator) -> String {
    let Some(slower) = generator.links_slower_share() else {
        return String::new();
    };
    format!(
        "; links slower by {} ({} in pauses of {}), the slowest by {}",
        Unit::Share.write(slower),
        Unit::Time.write(float(generator.links_late_us)),
        Unit::Time.write(float(generator.links_planned_us)),
        Unit::Share.write(generator.link_slowest_share)
    )
}

fn wrong_responses(html: &mut Html, responses: &[WrongResponse]) {
    if responses.is_empty() {
        return;
    }
    html.element("p", "bad", "Wrong responses, the first of them:");
    html.open("ul", "");
    for wrong in responses {
        html.open("li", "");
        html.element("b", "", &wrong.kind);
        html.text(&format!(" at {} s, {}, ", digits(wrong.at_s), wrong.phase));
        html.element("code", "", &wrong.path);
        html.text(&format!(": {}", wrong.detail));
        html.element("pre", "", &wrong.head);
        html.close();
    }
    html.close();
}
