//! The diagram of a transaction is made from the transaction.
//!
//! The walk tells a transaction every event that a driver may tell it in each state, for requests,
//! stored responses and responses of every kind, and writes down what it answers. The diagram at
//! the head of `src/transaction.rs` and that in `docs/life-of-a-request.md` are that table. With
//! `WEIR_BLESS=1` they are written instead of compared.

#[path = "transitions/diagram.rs"]
mod diagram;
#[path = "transitions/walk.rs"]
mod walk;

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use weir_policy::Phase;

/// The diagram's place in a document: behind this line, up to the end of the fence.
const DOCUMENT_BEGIN: &str = "<!-- transitions: made by a test of crates/policy -->\n\n```text\n";
const COLLAPSE_BEGIN: &str =
    "<!-- collapsed requests: from crates/policy/src/fetch/collapse -->\n\n```text\n";
const PHASES_BEGIN: &str = "| phase | reached when |\n| --- | --- |\n";
const CODE_BEGIN: &str = "//! ```text\n";

#[test]
fn diagrams_show_every_transition_and_no_other() {
    let diagram = diagram::draw(&walk::transitions());
    let in_code: String = diagram
        .lines()
        .map(|line| format!("//! {line}").trim_end().to_owned() + "\n")
        .collect();
    let code = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/transaction.rs");
    compare(&code, CODE_BEGIN, "//! ```\n", &in_code);
    compare(&page(), DOCUMENT_BEGIN, "```\n", &diagram);
}

#[test]
fn page_shows_every_phase_in_order() {
    let rows: String = Phase::WORDS
        .iter()
        .map(|(word, about)| format!("| `{word}` | {} |\n", about.trim()))
        .collect();
    compare(&page(), PHASES_BEGIN, "\n", &rows);
}

#[test]
fn page_shows_the_diagram_of_collapsed_requests() {
    let code = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/fetch/collapse/mod.rs");
    let code = std::fs::read_to_string(code).expect("the code is there");
    let diagram: String = code
        .lines()
        .skip_while(|line| *line != CODE_BEGIN.trim_end())
        .skip(1)
        .take_while(|line| *line != "//! ```")
        .map(|line| {
            format!(
                "{}\n",
                line.trim_start_matches("//!")
                    .strip_prefix(' ')
                    .unwrap_or_default()
            )
        })
        .collect();
    compare(&page(), COLLAPSE_BEGIN, "```\n", &diagram);
}

fn page() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/life-of-a-request.md")
}

/// Compares what stands in a file between two texts, or writes it there.
fn compare(file: &Path, begin: &str, end: &str, expected: &str) {
    // both tests write one page
    static WRITING: Mutex<()> = Mutex::new(());
    let _one_at_a_time = WRITING.lock();
    let text = std::fs::read_to_string(file).expect("the file is there");
    let begin = text.find(begin).expect("the begin of the text") + begin.len();
    // an end that is an empty line is behind an end of line
    let rest = &text[begin..];
    let length = if rest.starts_with(end) {
        0
    } else {
        rest.find(&format!("\n{end}")).expect("the end of the text") + 1
    };
    if std::env::var_os("WEIR_BLESS").is_some_and(|value| value == "1") {
        let text = format!("{}{expected}{}", &text[..begin], &rest[length..]);
        std::fs::write(file, text).expect("the file can be written");
        return;
    }
    assert!(
        rest[..length] == *expected,
        "{}: the code says\n{expected}(WEIR_BLESS=1 writes it)",
        file.display()
    );
}

#[test]
fn walk_meets_every_event_and_every_command() {
    let transitions = walk::transitions();
    let events: Vec<&str> = transitions.iter().map(|it| it.event.as_str()).collect();
    for event in walk::EVENTS {
        let is_met = events.iter().any(|found| found.starts_with(event));
        assert!(is_met, "no transition has the event {event}");
    }
    for command in walk::COMMANDS {
        let is_met = transitions.iter().any(|it| {
            it.commands
                .split(" + ")
                .any(|word| word.starts_with(command))
        });
        assert!(is_met, "no transition has the command {command}");
    }
}
