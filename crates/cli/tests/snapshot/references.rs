//! The reference pages in `docs/reference`, made from the declarations in the code.
//!
//! With `WEIR_BLESS=1` the pages are written instead of compared. A word that is added to the code
//! is missing from its page until that is done, so that it cannot be forgotten.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use crate::snapshot::{compare, finish, folder, weir, whole};
use weir_measure::{
    Family, HOLD_TIME_HELP, Kind, Label, Metric, NamedFamily, OCTAVES, RESPONSE_TIME_HELP, Source,
};
use weir_policy::catalog::Refusal;
use weir_policy::verdict::{BY_RULE, FROM_DISK, MAY_BE_PURGED};
use weir_policy::{Hit, NotStored, RefuseReason, StaleReason, Uncachable1998};
use weir_semantics::{Fwd, NotStorable, ProxyError};

const COLUMNS_MAX: usize = 100;

const MADE: &str = "This page is made from the code by `WEIR_BLESS=1 cargo test -p weir-cli --test \
    commands`. A test compares it with the code.";

#[test]
fn references_show_what_the_code_declares() {
    let pages = [
        ("settings", settings()),
        ("metrics", metrics()),
        ("log-fields", log_fields()),
        ("cache-status", cache_status()),
        ("proxy-status", proxy_status()),
        ("commands", commands()),
    ];
    let mut differences = Vec::new();
    for (name, page) in pages {
        let file = root().join(format!("docs/reference/{name}.md"));
        compare(&file, &page, &mut differences);
    }
    finish(&differences);
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn settings() -> String {
    let printed = output(&["settings"]);
    let (_, entries) = printed.split_once("\n\n").expect("a title");
    let mut page = head(
        "Settings",
        "Every setting of a config file (TOML), as `weir settings` prints it. `weir serve \
         --print-config` prints what is in force, `weir check FILE` says what is wrong with a file.",
    );
    for paragraph in entries.trim_end().split("\n\n") {
        page.push_str(&wrapped(paragraph));
        page.push('\n');
    }
    ended(page)
}

fn metrics() -> String {
    let mut page = head(
        "Metrics",
        "What `GET /metrics` of the admin interface shows, in OpenMetrics text. Counters end in \
         `_total` and grow from the start of the process; gauges go up and down. Labels have only \
         the values listed, or those that a configuration names.",
    );
    let mut labels: Vec<(String, &Family)> = Vec::new();
    page.push_str("| metric | kind | unit | meaning |\n| --- | --- | --- | --- |\n");
    for family in Metric::FAMILIES {
        let kind = match family.kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
        };
        let label = family.label.map_or(String::new(), |label| {
            labels.push((format!("`{}{{{}}}`", family.name, label.name), family));
            format!("{{{}}}", label.name)
        });
        let help = family.help.trim();
        let _ = writeln!(
            page,
            "| `{}{label}` | {kind} | {} | {help} |",
            family.name, family.unit
        );
    }
    for family in NamedFamily::ALL {
        let kind = match family.kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
        };
        let (name, labels) = (family.name, family.labels.join(","));
        let (unit, help) = (family.unit, family.help);
        let _ = writeln!(page, "| `{name}{{{labels}}}` | {kind} | {unit} | {help} |");
    }
    let last_us = weir_measure::octave_limit_us(OCTAVES - 2).expect("the last but one has a limit");
    for (name, help) in [
        ("weir_response_time_seconds{source}", RESPONSE_TIME_HELP),
        ("weir_hand_off_hold_seconds", HOLD_TIME_HELP),
    ] {
        let _ = writeln!(
            page,
            "| `{name}` | histogram | seconds | {help} \
             Buckets: 1 µs, 2 µs, 4 µs and so on to {} s, and one without a limit. |",
            last_us / 1_000_000
        );
    }
    page.push_str("\n## Values of the labels\n");
    for (name, family) in labels {
        let label = family.label.expect("it was found by its label");
        let _ = writeln!(page, "\n### {name}\n");
        page.push_str(&table(
            "value",
            label.words.iter().copied().zip(label.about.iter().copied()),
        ));
    }
    page.push_str("\n### `weir_response_time_seconds{source}`\n\n");
    let sources = Source::WORDS.iter().copied();
    page.push_str(&table("value", sources.zip(Source::ABOUT.iter().copied())));
    ended(page)
}

fn log_fields() -> String {
    let mut page = head(
        "Access log fields",
        "The fields of a line of the access log in the format `json` (`[log] format`), in their \
         order. A field that does not apply to a request is absent. The formats `squid` and \
         `combined` are those of Squid and of the Apache server.",
    );
    page.push_str(&table("field", weir_proxy::log_fields()));
    page.push_str(
        "\n## The access log of `weir icap`\n\nA line for each request of ICAP, always as JSON.\n\n",
    );
    page.push_str(&table(
        "field",
        weir_adaptation::server::LOG_FIELDS.into_iter(),
    ));
    ended(page)
}

/// Words, each with its meaning.
type Words = &'static [(&'static str, &'static str)];

/// Parameters of RFC 9211 that we send.
const PARAMETERS: [(&str, &str); 7] = [
    (
        "hit",
        "Answered from a stored response without a request to the next hop.",
    ),
    (
        "fwd",
        "The request was forwarded, or would have been: the reason, see below.",
    ),
    ("fwd-status", "Status with which the next hop answered."),
    (
        "ttl",
        "Freshness that is left, seconds; negative for a stale response.",
    ),
    (
        "stored",
        "The response is being stored. The head is sent before the content: if that is cut, by the next hop or by a module, nothing or only a part is stored, and the client sees the cut. The access log says at the end whether it was stored.",
    ),
    (
        "collapsed",
        "The request waited for the response to another request, and was answered by it.",
    ),
    ("detail", "The finer reason, see below."),
];

/// Title, introduction and words of each kind of detail but those of hits.
const DETAILS: [(&str, &str, Words); 6] = [
    (
        "Stale responses in place of an error",
        "With `fwd=stale`.",
        StaleReason::WORDS,
    ),
    (
        "Answers of the proxy",
        "Why it answered itself. [Proxy-Status](proxy-status.md) has more where an error is the \
         reason.",
        RefuseReason::WORDS,
    ),
    (
        "Not stored: RFC 9111 §3 does not allow it",
        "",
        NotStorable::WORDS,
    ),
    ("Not stored: Weir chooses not to", "", NotStored::WORDS),
    ("Not stored: the catalog refuses it", "", Refusal::WORDS),
    (
        "Not stored: the profile `http-1998` does not allow it",
        "",
        Uncachable1998::WORDS,
    ),
];

fn cache_status() -> String {
    let mut page = head(
        "Cache-Status",
        "Responses carry `Cache-Status` (RFC 9211): one member for each cache that they passed, \
         the last one is ours. The access log and the counters use the same words.",
    );
    page.push_str(
        "```text\n\
         Cache-Status: weir;fwd=uri-miss;fwd-status=200;stored\n\
         Cache-Status: weir;hit;ttl=376\n\
         ```\n\n",
    );
    page.push_str(&table("parameter", PARAMETERS.into_iter()));
    page.push_str("\n## `fwd`\n\nWhy it was forwarded.\n\n");
    page.push_str(&table("word", Fwd::WORDS.iter().copied()));
    page.push_str("\n## `detail`\n\n");
    page.push_str(&wrapped(
        "Where a targeted field (RFC 9213) decided in place of `Cache-Control`, its name stands \
         behind the reason: `response-no-store/CDN-Cache-Control`. It stands alone where there is \
         no other detail.",
    ));
    let hits = Hit::WORDS
        .iter()
        .filter(|(word, _)| *word != Hit::Fresh.as_str());
    let hits: Vec<_> = hits.copied().chain([FROM_DISK, BY_RULE]).collect();
    section(
        &mut page,
        "Hits",
        "A fresh response from memory has no detail.",
        &hits,
    );
    section(
        &mut page,
        "Validated for the cluster",
        "With `fwd=stale`.",
        &[MAY_BE_PURGED],
    );
    for (title, text, words) in DETAILS {
        section(&mut page, title, text, words);
    }
    ended(page)
}

fn proxy_status() -> String {
    let mut page = head(
        "Proxy-Status",
        "A response that Weir makes itself carries `Proxy-Status` (RFC 9209): the type of the \
         error, and `details` in a sentence. These are the types that Weir uses.",
    );
    page.push_str("| error | status | meaning |\n| --- | --- | --- |\n");
    let code = proxy_code();
    for &error in ProxyError::ALL {
        if !constructs(&code, error) {
            continue;
        }
        let status = match error {
            ProxyError::DestinationIpProhibited => "403".to_owned(),
            ProxyError::DestinationNotFound => "404".to_owned(),
            ProxyError::ProxyLoopDetected => "508".to_owned(),
            ProxyError::HttpRequestError => "4xx, 501, 505".to_owned(),
            ProxyError::HttpRequestDenied => "403, 405, 407, 429, 504".to_owned(),
            ProxyError::ProxyInternalResponse => "200, 504".to_owned(),
            error => error
                .recommended_status()
                .map_or(String::new(), |status| status.to_string()),
        };
        let _ = writeln!(
            page,
            "| `{}` | {status} | {} |",
            error.as_str(),
            error.about().trim()
        );
    }
    page.push('\n');
    page.push_str(&wrapped(
        "504 in place of another status: the stored response says `must-revalidate` and the next \
         hop cannot be reached (RFC 9111 §5.2.2.2).",
    ));
    ended(page)
}

/// Whether the proxy makes such an error: its code names it outside of a pattern.
fn constructs(code: &str, error: ProxyError) -> bool {
    let name = format!("ProxyError::{error:?}");
    code.lines().any(|line| {
        let Some((before, after)) = line.split_once(&name) else {
            return false;
        };
        let is_whole = !after.starts_with(|next: char| next.is_alphanumeric());
        is_whole && !before.trim_start().starts_with('|') && !after.contains("=>")
    })
}

/// The code of the crates that answer for a next hop.
fn proxy_code() -> String {
    let crates = root().join("crates");
    let mut folders: Vec<PathBuf> = ["proxy", "net"]
        .iter()
        .map(|name| crates.join(name).join("src"))
        .filter(|folder| folder.is_dir())
        .collect();
    let mut code = String::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder of the repository") {
            let path = entry.expect("an entry of a folder").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.file_name().is_some_and(|name| name != "tests.rs") {
                code.push_str(&std::fs::read_to_string(path).expect("code is text"));
            }
        }
    }
    code
}

fn commands() -> String {
    let mut page = head(
        "Commands",
        "What `weir help` and `weir COMMAND --help` print.",
    );
    help_of(&[], &mut page);
    ended(page)
}

/// Appends the help of a command and of those below it.
fn help_of(command: &[&str], page: &mut String) {
    let mut arguments = command.to_vec();
    arguments.push("--help");
    let help = output(&arguments);
    let name = ["weir"].iter().chain(command).copied();
    let name: Vec<&str> = name.collect();
    let _ = writeln!(page, "## `{}`\n\n```text", name.join(" "));
    for line in help.trim_end().lines() {
        let _ = writeln!(page, "{}", line.trim_end());
    }
    page.push_str("```\n\n");
    let listed = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    for line in listed.take_while(|line| !line.is_empty()) {
        // further lines of a description are indented more
        let word = line.strip_prefix("  ").filter(|it| !it.starts_with(' '));
        let below = word.and_then(|it| it.split(' ').next());
        if let Some(below) = below.filter(|below| *below != "help") {
            help_of(&[command, &[below]].concat(), page);
        }
    }
}

fn output(arguments: &[&str]) -> String {
    let output = weir(&folder("configs"), arguments);
    assert!(output.status.success(), "{}", whole(&output));
    String::from_utf8(output.stdout).expect("text")
}

fn head(title: &str, introduction: &str) -> String {
    format!(
        "# {title}\n\n{}\n{}\n",
        wrapped(MADE),
        wrapped(introduction)
    )
}

fn section(page: &mut String, title: &str, text: &str, words: &[(&'static str, &'static str)]) {
    let _ = writeln!(page, "\n### {title}\n");
    if !text.is_empty() {
        page.push_str(&wrapped(text));
        page.push('\n');
    }
    page.push_str(&table("word", words.iter().copied()));
}

fn table(column: &str, rows: impl Iterator<Item = (&'static str, &'static str)>) -> String {
    let mut table = format!("| {column} | meaning |\n| --- | --- |\n");
    for (word, about) in rows {
        let _ = writeln!(table, "| `{word}` | {} |", about.trim());
    }
    table
}

/// A paragraph in lines of at most 100 columns, with an end of line behind the last.
fn wrapped(paragraph: &str) -> String {
    let mut text = String::new();
    let mut columns = 0;
    for word in paragraph.split_whitespace() {
        let length = word.chars().count();
        if columns > 0 && columns + 1 + length > COLUMNS_MAX {
            text.push('\n');
            columns = 0;
        } else if columns > 0 {
            text.push(' ');
            columns += 1;
        }
        text.push_str(word);
        columns += length;
    }
    text.push('\n');
    text
}

/// The page with one end of line behind its last line.
fn ended(page: String) -> String {
    format!("{}\n", page.trim_end())
}
