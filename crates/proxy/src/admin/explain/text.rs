//! An explanation as text, at most 80 columns wide.

use crate::admin::dashboard::certificate_sentence;
use crate::cluster::report::RouteReport;
use crate::host::stored::explain::report::{
    Explanation, InputReport, Mark, NotStoredReport, OutcomeReport, RuleUse, StoredReport,
    StoringForecast,
};

/// The longest line, in characters.
const COLUMNS: usize = 80;

/// Lines of text that are no longer than [`COLUMNS`].
#[derive(Default)]
struct Page(String);

impl Page {
    /// Adds a paragraph whose first line begins with `first`, and the others with as many spaces.
    fn add(&mut self, first: &str, text: &str) {
        let indent = first.chars().count();
        let mut line = first.to_owned();
        let (mut used, mut is_empty) = (indent, true);
        for word in text.split_ascii_whitespace() {
            let mut word = word;
            loop {
                let space = usize::from(!is_empty);
                let length = word.chars().count();
                if used + space + length <= COLUMNS {
                    line.push_str(&" "[..space]);
                    line.push_str(word);
                    (used, is_empty) = (used + space + length, false);
                    break;
                }
                if is_empty {
                    // longer than a line: cut
                    let room = COLUMNS - used;
                    let end = word
                        .char_indices()
                        .nth(room)
                        .map_or(word.len(), |(at, _)| at);
                    line.push_str(&word[..end]);
                    word = &word[end..];
                }
                self.end(&line);
                line = " ".repeat(indent);
                (used, is_empty) = (indent, true);
            }
        }
        self.end(&line);
    }

    fn end(&mut self, line: &str) {
        self.0.push_str(line.trim_end());
        self.0.push('\n');
    }
}

/// All of an explanation.
pub(super) fn of(explanation: &Explanation) -> String {
    let mut page = Page::default();
    let request = &explanation.request;
    page.add("", &format!("{} {}", request.method, request.url));
    let listener = request.listener.as_deref().unwrap_or("none");
    let from = format!(
        "from {} to the listener {listener} ({})",
        request.client, request.mode
    );
    page.add("  ", &from);
    if !request.fields.is_empty() {
        page.add("  ", &format!("with {}", request.fields.join(", ")));
    }
    page.end("");
    add_outcome(&mut page, &explanation.outcome);
    if let Some(storing) = &explanation.storing {
        page.add("  ", &forecast(storing));
    }
    for reason in &explanation.not_stored {
        page.add("  ", &not_stored(reason));
    }
    if let Some(route) = &explanation.next_hop {
        page.add("  ", &next_hop(route));
    }
    if let Some(problem) = &explanation.next_hop_problem {
        page.add("  ", &format!("no next hop: {problem}"));
    }
    for certificate in &explanation.certificates {
        page.add("  ", &certificate_sentence(certificate));
    }
    if let Some(problem) = &explanation.certificate_problem {
        page.add("  ", problem);
    }
    if !explanation.modules.is_empty() {
        let names = explanation.modules.join(", ");
        page.add("  ", &format!("these modules may change that: {names}"));
    }
    page.end("");
    page.add("", "What is looked at, in this order; * decides:");
    for input in &explanation.inputs {
        add_input(&mut page, input);
    }
    if !explanation.rules.is_empty() {
        page.end("");
        page.add("", "Rules of the operator that are for it:");
        for rule in &explanation.rules {
            page.add("  ", &rule_use(rule));
        }
    }
    page.end("");
    add_stored(&mut page, explanation);
    page.0
}

fn add_outcome(page: &mut Page, outcome: &OutcomeReport) {
    let word = outcome.word;
    let mut said = match word {
        "hit" => "hit: a stored response answers it".to_owned(),
        "validated" => "validated: its next hop is asked whether what is stored is current".into(),
        "completed" => "completed: the missing range is fetched".into(),
        "fetched" => "fetched: nothing stored answers it".into(),
        "passed" => "passed: it is sent past the cache".into(),
        "unknown" => "unknown: modules answer it, or send it elsewhere".into(),
        word => format!("{word}: the proxy answers it itself"),
    };
    if let Some(status) = outcome.status {
        said.push_str(&format!(" with {status}"));
    }
    match outcome.fresh_for_s {
        Some(seconds) if seconds > 0 => said.push_str(&format!(", fresh for {seconds} s")),
        Some(seconds) => said.push_str(&format!(", stale for {} s", -seconds)),
        None => {}
    }
    if outcome.refreshes {
        said.push_str(", and validated in the background");
    }
    page.add("=> ", &said);
    if let Some(text) = &outcome.text {
        page.add("  ", text);
    }
    page.add("  ", &format!("Cache-Status: {}", outcome.cache_status));
}

fn forecast(storing: &StoringForecast) -> String {
    let section = storing
        .section
        .map_or_else(String::new, |it| format!(", {it}"));
    let reason = storing.reason.unwrap_or("-");
    match storing.word {
        "yes" => "its response is stored if it permits that".into(),
        "if-shared" => format!(
            "its response is stored only if it says that it may be shared ({reason}{section})"
        ),
        _ => format!("its response is not stored ({reason}{section})"),
    }
}

fn not_stored(report: &NotStoredReport) -> String {
    let NotStoredReport {
        reason,
        about,
        requests,
        status,
    } = report;
    let which = match requests {
        1 => "the response to a recent request was not stored".to_owned(),
        _ => format!("the responses to {requests} recent requests were not stored"),
    };
    format!(
        "{which} (status {status}, {reason}): {about} A `[[rule]]` may have more stored: docs/rules.md"
    )
}

fn next_hop(route: &RouteReport) -> String {
    let chosen = route.candidates.iter().find(|it| it.chosen.is_some());
    match chosen {
        Some(chosen) => format!(
            "next hop: {} ({}); `weir route` shows the others",
            chosen.url,
            chosen.chosen.unwrap_or_default()
        ),
        None if route.candidates.is_empty() => "next hop: the host of the URL".into(),
        None => "next hop: none of those that `weir route` shows can be asked".into(),
    }
}

fn add_input(page: &mut Page, input: &InputReport) {
    let mark = if input.decides { "* " } else { "  " };
    let InputReport {
        name,
        value,
        section,
        ..
    } = input;
    page.add(
        &format!("{mark}  "),
        &format!("{name}: {value} ({section})"),
    );
}

fn rule_use(rule: &RuleUse) -> String {
    let line = rule
        .line
        .map_or_else(String::new, |line| format!(", line {line}"));
    let list = |word: &str, actions: &[&str]| match actions {
        [] => String::new(),
        actions => format!("; {word} {}", actions.join(", ")),
    };
    let path = format!("rule[{}]", rule.number);
    let name = match rule.name == path {
        true => String::new(),
        false => format!(", `{}`", rule.name),
    };
    format!(
        "`{path}`{name}{line}{}{}",
        list("decides", &rule.decides),
        list("does not decide", &rule.others)
    )
}

fn add_stored(page: &mut Page, explanation: &Explanation) {
    if explanation.stored.is_empty() {
        page.add("", "Nothing is stored for it.");
    } else {
        page.add("", "Stored responses; * is the one that is selected:");
    }
    for (number, stored) in explanation.stored.iter().enumerate() {
        let mark = if stored.selected { '*' } else { ' ' };
        page.add(&format!("{mark} {}. ", number + 1), &summary(stored));
        for line in details(stored) {
            page.add("     ", &line);
        }
    }
    if explanation.may_be_more_on_disk {
        let more =
            "Further variants may be on disk alone: each is listed for a request that selects it.";
        page.add("", more);
    }
    if !explanation.values_shown && !explanation.stored.is_empty() {
        let hashed = "Other fields are hashed without the admin token; --json lists them.";
        page.add("", hashed);
    }
}

fn summary(stored: &StoredReport) -> String {
    let complete = match stored.complete_bytes {
        Some(complete) if complete == stored.stored_bytes => format!("{complete} bytes"),
        Some(complete) => format!("{} of {complete} bytes", stored.stored_bytes),
        None => format!("{} of ? bytes", stored.stored_bytes),
    };
    let place = match (stored.place, stored.on_disk) {
        ("memory", true) => "in memory and on disk",
        ("memory", false) => "in memory",
        _ => "on disk",
    };
    format!("status {}, {complete}, {place}", stored.status)
}

/// What is known of a stored response, in lines.
fn details(stored: &StoredReport) -> Vec<String> {
    let mut lines = Vec::new();
    if !stored.vary.is_empty() {
        let hash = stored.vary_hash.as_deref().unwrap_or("-");
        lines.push(format!(
            "selected by: {} (their values: hash:{hash})",
            stored.vary.join(", ")
        ));
    }
    let rule = stored.lifetime_rule;
    let by = match (stored.lifetime_by, &stored.lifetime_field, rule) {
        (by, Some(field), _) => format!("{by} of {field}"),
        ("rule", _, Some(rule)) => format!("forced by `rule[{rule}]`"),
        ("assigned", _, Some(rule)) => format!("given by `rule[{rule}]`"),
        ("changed", ..) => {
            "not what its fields give now: it was changed, or stored by other settings".into()
        }
        ("none", ..) => "nothing gives one".into(),
        (by, ..) => by.to_owned(),
    };
    let fresh = match stored.fresh_for_s {
        seconds if seconds > 0 => format!("fresh for {seconds} s"),
        seconds => format!("stale for {} s", -seconds),
    };
    lines.push(format!(
        "age {} s, lifetime {} s ({by}): {fresh}",
        stored.age_s, stored.lifetime_s
    ));
    let directives = [
        (stored.no_cache, "validated before each use"),
        (stored.must_revalidate, "not served stale"),
    ];
    let directives = directives.into_iter().filter(|(has, _)| *has);
    let mut limits: Vec<String> = directives.map(|(_, text)| text.to_owned()).collect();
    let windows = [
        ("stale-while-revalidate", stored.stale_while_revalidate_s),
        ("stale-if-error", stored.stale_if_error_s),
    ];
    limits.extend(
        windows
            .into_iter()
            .filter_map(|(name, seconds)| Some(format!("{name} {} s", seconds?))),
    );
    if !limits.is_empty() {
        lines.push(limits.join(", "));
    }
    if let Some(tag) = &stored.entity_tag {
        let strength = if stored.is_strong { "strong" } else { "weak" };
        lines.push(format!("validator: ETag {tag} ({strength})"));
    }
    if let Some(modified) = &stored.last_modified {
        lines.push(format!("validator: Last-Modified {modified}"));
    }
    for mark in &stored.marks {
        let words = Mark::WORDS.iter().find(|(word, _)| word == mark);
        let meaning = words.map_or("", |(_, meaning)| meaning.trim());
        lines.push(format!("{mark}: {meaning}"));
    }
    if !stored.ignored.is_empty() {
        lines.push(format!(
            "ignored when stored: {}",
            stored.ignored.join(", ")
        ));
    }
    for field in &stored.fields {
        if !field.value.starts_with("hash:") && is_shown(&field.name) {
            lines.push(format!("{}: {}", field.name, field.value));
        }
    }
    lines
}

/// Whether a field is shown that is not shown as a fact already.
fn is_shown(name: &str) -> bool {
    let facts = ["ETag", "Last-Modified", "Content-Length"];
    !facts.iter().any(|known| known.eq_ignore_ascii_case(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_line_has_more_than_80_columns_whatever_is_in_it() {
        let mut page = Page::default();
        page.add("* 1. ", &"word ".repeat(40));
        page.add("", &"x".repeat(300));
        page.add("    ", &format!("short {}", "\u{e4}".repeat(200)));
        assert!(page.0.lines().all(|line| line.chars().count() <= COLUMNS));
        let letters: usize = page.0.chars().filter(|it| *it == '\u{e4}').count();
        assert_eq!(letters, 200);
        let first: Vec<&str> = page.0.lines().take(2).collect();
        assert!(first[0].starts_with("* 1. word") && first[1].starts_with("     word"));
    }

    #[test]
    fn rule_is_named_by_its_path_name_and_line() {
        let mut rule = RuleUse {
            number: 2,
            name: "mirror".into(),
            line: Some(14),
            decides: vec!["lifetime"],
            others: vec!["bypass"],
        };
        let expected = "`rule[2]`, `mirror`, line 14; decides lifetime; does not decide bypass";
        assert_eq!(rule_use(&rule), expected);
        rule.name = "rule[2]".into();
        let expected = "`rule[2]`, line 14; decides lifetime; does not decide bypass";
        assert_eq!(rule_use(&rule), expected);
    }
}
