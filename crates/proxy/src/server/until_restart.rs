//! The settings that a reload cannot change: they keep their values until the next start, and the
//! operator gets a line about it.

use crate::config::{self, Config};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// The most settings that a reload names.
const KEYS_SHOWN_MAX: usize = 8;

/// The configuration that is in force when `wanted` is loaded by a proxy that was started with
/// `started`: settings that cannot change keep their values, with a line for each of them.
pub(crate) fn keep(started: &Config, wanted: Config) -> (Config, String) {
    let mut kept = wanted.clone();
    kept.workers = started.workers;
    kept.admin.address = started.admin.address.clone();
    kept.cache.eviction = started.cache.eviction;
    kept.cache.largest_response = started.cache.largest_response;
    kept.cluster.mechanism = started.cluster.mechanism;
    kept.cluster.hand_off = started.cluster.hand_off;
    kept.cluster.device.clone_from(&started.cluster.device);
    kept.disk = started.disk.clone();
    kept.dns = started.dns.clone();
    kept.log = started.log.clone();
    kept.limits.idle_per_next_hop_max = started.limits.idle_per_next_hop_max;
    kept.limits.idle_next_hop_connections_max = started.limits.idle_next_hop_connections_max;
    kept.limits.next_hop_idle = started.limits.next_hop_idle;
    kept.limits.next_hop_age = started.limits.next_hop_age;
    let notes = differences(&kept, &wanted);
    (kept, notes)
}

/// A line that names the settings whose values a reload changes, and the tables of lists that it
/// adds and removes.
pub(crate) fn changed_keys(before: &Config, after: &Config) -> String {
    let (before, after) = (values(before), values(after));
    let keys: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let is_changed = |key: &&String| before.get(*key) != after.get(*key);
    let changes = keys.into_iter().filter(is_changed);
    let changes = changes.filter_map(|key| Change::of(key, &before, &after));
    let defaults = defaults();
    let changes = changes.filter(|change| {
        let key = change.key();
        let default = defaults.get(&unnumbered(&key));
        let is_default = |values: &BTreeMap<String, Value>| values.get(&key).or(default) == default;
        // a table that is on one side alone has there what the other side has by default
        let says_nothing = default.is_some() && is_default(&before) && is_default(&after);
        change.kind != ChangeKind::Changed || !says_nothing
    });
    let changes: BTreeSet<Change<'_>> = changes.collect();
    if changes.is_empty() {
        return "no setting in force has changed; the files that it names were read again\n"
            .to_owned();
    }
    let mut lines: Vec<String> = Vec::new();
    let mut left = changes.iter().peekable();
    while let Some(first) = left.next() {
        let mut last = first;
        while let Some(next) = left.next_if(|next| last.is_followed_by(next)) {
            last = next;
        }
        lines.push(match last == first {
            true => first.to_string(),
            false => format!("{first} to `{}`", last.key()),
        });
    }
    let more = match lines.len().saturating_sub(KEYS_SHOWN_MAX) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    lines.truncate(KEYS_SHOWN_MAX);
    format!("changed: {}{more}\n", lines.join(", "))
}

/// What a reload does to a setting, or to a table of a list; in the order of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Change<'a> {
    /// The key before its first number, or all of it.
    stem: &'a str,
    number: Option<usize>,
    kind: ChangeKind,
    /// The key behind that number.
    rest: &'a str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum ChangeKind {
    Changed,
    Added,
    Removed,
}

impl<'a> Change<'a> {
    /// Of a `key` whose value differs; `None` of a list that is empty on one side, whose tables
    /// have keys of their own.
    fn of(
        key: &'a str,
        before: &BTreeMap<String, Value>,
        after: &BTreeMap<String, Value>,
    ) -> Option<Self> {
        let has = |values: &BTreeMap<String, Value>, stem: &str| {
            let mut from = values.range(stem.to_owned()..);
            from.next().is_some_and(|(key, _)| key.starts_with(stem))
        };
        let whole = Self {
            stem: key,
            number: None,
            kind: ChangeKind::Changed,
            rest: "",
        };
        let numbered = key.split_once('[').and_then(|(stem, rest)| {
            let (number, rest) = rest.split_once(']')?;
            Some((stem, number.parse().ok()?, rest))
        });
        let Some((stem, number, rest)) = numbered else {
            let tables = format!("{key}[");
            let has_tables = has(before, &tables) || has(after, &tables);
            return (!has_tables).then_some(whole);
        };
        let table = &key[..key.len() - rest.len()];
        let kind = match (has(before, table), has(after, table)) {
            (false, _) => ChangeKind::Added,
            (_, false) => ChangeKind::Removed,
            (true, true) => ChangeKind::Changed,
        };
        let is_whole = kind != ChangeKind::Changed;
        Some(Self {
            stem,
            number: Some(number),
            kind,
            rest: if is_whole { "" } else { rest },
        })
    }

    /// Whether `next` is the next table of the same list, and the same becomes of it.
    fn is_followed_by(&self, next: &Self) -> bool {
        let is_whole = self.kind != ChangeKind::Changed;
        let following = self.number.map(|number| number + 1);
        is_whole && (self.stem, self.kind, following) == (next.stem, next.kind, next.number)
    }

    fn key(&self) -> String {
        match self.number {
            Some(number) => format!("{}[{number}]{}", self.stem, self.rest),
            None => self.stem.to_owned(),
        }
    }
}

impl fmt::Display for Change<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = match self.kind {
            ChangeKind::Changed => "",
            ChangeKind::Added => "added ",
            ChangeKind::Removed => "removed ",
        };
        write!(f, "{word}`{}`", self.key())
    }
}

fn differences(kept: &Config, wanted: &Config) -> String {
    let (kept, wanted) = (values(kept), values(wanted));
    let keys = kept
        .keys()
        .chain(wanted.keys().filter(|key| !kept.contains_key(*key)));
    let shown =
        |value: Option<&Value>| value.map_or_else(|| "unset".to_owned(), ToString::to_string);
    keys.filter(|key| kept.get(*key) != wanted.get(*key))
        .map(|key| {
            format!(
                "note: `{key}` stays {} until a restart, and then is {}\n",
                shown(kept.get(key)),
                shown(wanted.get(key))
            )
        })
        .collect()
}

/// Each value by the path of its key, such as `disk.directories[0].size`.
fn values(config: &Config) -> BTreeMap<String, Value> {
    let mut values = BTreeMap::new();
    // a config is tables of strings, integers and lists, which JSON has as well
    let whole = serde_json::to_value(config).unwrap_or_default();
    add(String::new(), whole, &mut values);
    values
}

/// The default of each setting that has one, by its path, such as `route[].tls.verify`.
fn defaults() -> BTreeMap<String, Value> {
    let settings = config::settings().into_iter();
    let defaults = settings.filter_map(|setting| {
        let default = serde_json::from_str(&setting.default?).ok()?;
        Some((setting.path, default))
    });
    defaults.collect()
}

/// `route[2].tls.ca` as the reference page has it: `route[].tls.ca`.
fn unnumbered(key: &str) -> String {
    let mut parts = key.split('[');
    let stem = parts.next().unwrap_or_default().to_owned();
    parts.fold(stem, |path, part| {
        let rest = part.trim_start_matches(|digit: char| digit.is_ascii_digit());
        format!("{path}[{rest}")
    })
}

fn add(path: String, value: Value, values: &mut BTreeMap<String, Value>) {
    match value {
        Value::Object(members) => {
            let stem = if path.is_empty() {
                path
            } else {
                format!("{path}.")
            };
            for (name, value) in members {
                add(format!("{stem}{name}"), value, values);
            }
        }
        Value::Array(elements) if elements.iter().any(Value::is_object) => {
            for (index, value) in elements.into_iter().enumerate() {
                add(format!("{path}[{index}]"), value, values);
            }
        }
        value => {
            values.insert(path, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{ByteSize, Directory};
    use serde_json::json;

    fn config(disk_gib: u64, memory_mib: u64) -> Config {
        let mut config = Config::default();
        config.disk.directories = vec![Directory {
            path: "/var/cache/weir".into(),
            size: Some(ByteSize::from_gib(disk_gib)),
        }];
        config.cache.memory = ByteSize::from_mib(memory_mib);
        config
    }

    #[test]
    fn disk_size_stays_until_a_restart_and_the_change_is_reported() {
        let started = config(1, 256);
        let (kept, notes) = keep(&started, config(2, 512));
        assert_eq!(
            notes,
            "note: `disk.directories[0].size` stays \"1GiB\" until a restart, and then is \"2GiB\"\n"
        );
        assert_eq!(kept, config(1, 512));
        // back again: nothing differs from what is in force
        let (kept, notes) = keep(&kept, config(1, 512));
        assert_eq!((kept, notes.as_str()), (config(1, 512), ""));
    }

    #[test]
    fn reload_names_the_settings_that_change_and_counts_those_beyond_the_limit() {
        let before = config(1, 256);
        let unchanged = changed_keys(&before, &before);
        assert!(
            unchanged.starts_with("no setting in force has changed"),
            "{unchanged}"
        );
        let after = config(1, 512);
        assert_eq!(changed_keys(&before, &after), "changed: `cache.memory`\n");
        let mut without = before.clone();
        without.disk.directories.clear();
        let removed = "changed: removed `disk.directories[0]`\n";
        assert_eq!(changed_keys(&before, &without), removed);
        // in the order of their numbers, tables that are whole in a range
        let listeners = |count| Config {
            listeners: vec![crate::config::Listener::default(); count],
            ..before.clone()
        };
        let (one, twelve) = (listeners(1), listeners(12));
        let added = "changed: added `listener[1]` to `listener[11]`\n";
        assert_eq!(changed_keys(&one, &twelve), added);
        let removed = "changed: removed `listener[11]`\n";
        assert_eq!(changed_keys(&twelve, &listeners(11)), removed);
        let mut named = twelve.clone();
        for listener in &mut named.listeners[2..] {
            listener.name = Some("x".parse().expect("a name"));
        }
        let keys = (2..2 + KEYS_SHOWN_MAX).map(|number| format!("`listener[{number}].name`"));
        let keys: Vec<String> = keys.collect();
        let expected = format!("changed: {} and 2 more\n", keys.join(", "));
        assert_eq!(changed_keys(&twelve, &named), expected);
    }

    #[test]
    fn reload_does_not_name_defaults_of_a_table_that_a_key_was_added_with() {
        let config = |tls: Value| -> Config {
            let mut route = json!({ "next_hops": ["https://10.0.0.1"] });
            if !tls.is_null() {
                route["tls"] = tls;
            }
            serde_json::from_value(json!({ "route": [route] })).expect("a config")
        };
        let without = config(Value::Null);
        let with_ca = config(json!({ "ca": "/etc/weir/ca.pem" }));
        let unverified = config(json!({ "verify": false }));
        for (before, after, expected) in [
            (&without, &with_ca, "changed: `route[0].tls.ca`\n"),
            (&with_ca, &without, "changed: `route[0].tls.ca`\n"),
            (&without, &unverified, "changed: `route[0].tls.verify`\n"),
        ] {
            assert_eq!(changed_keys(before, after), expected);
        }
    }

    #[test]
    fn restart_note_names_a_key_unset_on_either_side() {
        let mut without = config(1, 256);
        without.disk.directories[0].size = None;
        let (_, notes) = keep(&without, config(1, 256));
        let said = "`disk.directories[0].size` stays unset until a restart, and then is \"1GiB\"";
        assert!(notes.contains(said), "{notes}");
        without.disk.directories.clear();
        let (_, notes) = keep(&config(1, 256), without);
        assert!(
            notes.contains("`disk.directories[0].path` stays"),
            "{notes}"
        );
    }
}
