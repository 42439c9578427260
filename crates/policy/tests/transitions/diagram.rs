//! Draws transitions as text.

use crate::walk::Transition;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// States in the order of a request's life.
const STATES: [&str; 8] = [
    "start",
    "LookUp",
    "Forward",
    "Forward{validate}",
    "Forward{complete}",
    "ForwardAgain",
    "Store",
    "Combine",
];

/// A tree for each state: its events, and behind each the commands that it may give.
pub(crate) fn draw(transitions: &BTreeSet<Transition>) -> String {
    let mut diagram = String::new();
    for state in STATES {
        if !diagram.is_empty() {
            diagram.push('\n');
        }
        draw_state(state, transitions, &mut diagram);
    }
    assert!(
        transitions
            .iter()
            .all(|it| STATES.contains(&it.state.as_str())),
        "a state has no place in the diagram"
    );
    diagram
}

fn draw_state(state: &str, transitions: &BTreeSet<Transition>, diagram: &mut String) {
    let mut events: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for it in transitions.iter().filter(|it| it.state == state) {
        events.entry(&it.event).or_default().insert(&it.commands);
    }
    // events with the same answers share a line
    let mut groups: Vec<(Vec<&str>, BTreeSet<&str>)> = Vec::new();
    for (event, commands) in events {
        match groups.iter_mut().find(|(_, known)| *known == commands) {
            Some((names, _)) => names.push(event),
            None => groups.push((vec![event], commands)),
        }
    }
    let rows: Vec<(String, String)> = groups
        .iter()
        .map(|(names, commands)| {
            let commands: Vec<&str> = commands.iter().copied().collect();
            (joined(names), commands.join(" | "))
        })
        .collect();
    let width = rows.iter().map(|(names, _)| names.len()).max().unwrap_or(0);
    let _ = writeln!(diagram, "{state}");
    for (place, (names, commands)) in rows.iter().enumerate() {
        let branch = if place + 1 == rows.len() {
            "└─"
        } else {
            "├─"
        };
        let _ = writeln!(diagram, "{branch} {names:width$}  ── {commands}");
    }
}

/// `Response 200`, `Response 404` is `Response 200, 404`.
fn joined(names: &[&str]) -> String {
    let mut text = String::new();
    let mut before = "";
    for name in names {
        let (event, rest) = name.split_once(' ').unwrap_or((name, ""));
        if text.is_empty() {
            text.push_str(name);
        } else if event == before && !rest.is_empty() {
            let _ = write!(text, ", {rest}");
        } else {
            let _ = write!(text, ", {name}");
        }
        before = event;
    }
    text
}
