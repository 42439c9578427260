//! The unit of systemd, as `systemd-analyze` judges it: systemd itself does not run in a container.

use super::must;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use xtask::failure::{During, Failure};
use xtask::root;

/// The most exposure allowed, in tenths: 2.0 of 10.
const EXPOSURE_MAX: u32 = 20;

const UNIT: &str = "packaging/debian/weir.service";

/// Its exposure in the words of `systemd-analyze security`.
pub(super) fn check() -> Result<String, Failure> {
    let mut analyze = Command::new("systemd-analyze");
    analyze
        .args(["security", "--offline=true", "--no-pager"])
        .arg(format!("--threshold={EXPOSURE_MAX}"))
        .arg(file());
    let said = must(&mut analyze)?;
    let last = said.lines().rfind(|line| line.contains("exposure level"));
    Ok(last
        .unwrap_or_default()
        .trim_start_matches('→')
        .trim()
        .to_owned())
}

fn file() -> PathBuf {
    root::directory().join(UNIT)
}

/// The system calls that its `SystemCallFilter=` lines allow, in the order of their names.
pub(super) fn system_calls() -> Result<Vec<String>, Failure> {
    let unit = fs::read_to_string(file()).during("read the unit")?;
    let sets = must(Command::new("systemd-analyze").args(["syscall-filter", "--no-pager"]))?;
    let allowed = allowed(&unit, &sets_of(&sets));
    Ok(allowed.into_iter().map(str::to_owned).collect())
}

/// Sets by name, such as `@aio`, with their system calls and further sets.
type Sets<'a> = BTreeMap<&'a str, Vec<&'a str>>;

/// A set begins at the begin of a line; what is in it is indented.
fn sets_of(text: &str) -> Sets<'_> {
    let mut sets = Sets::new();
    let mut name = None;
    for line in text.lines() {
        match line.strip_prefix("    ") {
            Some(entry) if !entry.starts_with('#') => {
                let entries = name.and_then(|name| sets.get_mut(name));
                entries.into_iter().for_each(|it| it.push(entry.trim()));
            }
            Some(_) => {}
            // calls in no set stand under a line that is none
            None => {
                name = line.starts_with('@').then_some(line.trim());
                name.into_iter()
                    .for_each(|name| drop(sets.insert(name, Vec::new())));
            }
        }
    }
    sets
}

/// systemd.exec(5): a list that begins with `~` takes away from those before it.
fn allowed<'a>(unit: &'a str, sets: &Sets<'a>) -> BTreeSet<&'a str> {
    let mut allowed = BTreeSet::new();
    let lines = unit.lines();
    for list in lines.filter_map(|line| line.strip_prefix("SystemCallFilter=")) {
        let (list, takes_away) = match list.strip_prefix('~') {
            Some(rest) => (rest, true),
            None => (list, false),
        };
        for call in list.split_whitespace().flat_map(|word| calls(word, sets)) {
            if takes_away {
                allowed.remove(call);
            } else {
                allowed.insert(call);
            }
        }
    }
    allowed
}

/// The system calls of a set, or the one with this name.
fn calls<'a>(word: &'a str, sets: &Sets<'a>) -> Vec<&'a str> {
    match sets.get(word) {
        Some(entries) => entries.iter().flat_map(|it| calls(it, sets)).collect(),
        None => vec![word],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filter_takes_away_what_later_lists_name() {
        let sets = "@a\n    # words\n    read\n    @b\n\n@b\n    write\n    mount\n\n\
            @privileged\n    mount\n\n# Unlisted System Calls\n    secret\n";
        let unit = "SystemCallFilter=@a close\nSystemCallFilter=~@privileged\n";
        let sets = sets_of(sets);
        let found: Vec<&str> = allowed(unit, &sets).into_iter().collect();
        assert_eq!(found, ["close", "read", "write"]);
    }
}
