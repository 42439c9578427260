//! The settings that a reload cannot change: they keep their values until the next start, and the
//! operator gets a line about it.

use crate::config::Config;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

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

/// A line that names the settings whose values a reload changes.
pub(crate) fn changed_keys(before: &Config, after: &Config) -> String {
    let (before, after) = (values(before), values(after));
    let keys: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let is_changed = |key: &&String| before.get(*key) != after.get(*key);
    let changed: Vec<&String> = keys.into_iter().filter(is_changed).collect();
    if changed.is_empty() {
        return "no setting has changed; the files that it names were read again\n".to_owned();
    }
    let shown = changed.iter().take(KEYS_SHOWN_MAX);
    let shown: Vec<String> = shown.map(|key| format!("`{key}`")).collect();
    let more = match changed.len().saturating_sub(KEYS_SHOWN_MAX) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("changed: {}{more}\n", shown.join(", "))
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
            unchanged.starts_with("no setting has changed"),
            "{unchanged}"
        );
        let after = config(1, 512);
        assert_eq!(changed_keys(&before, &after), "changed: `cache.memory`\n");
        let mut without = before.clone();
        without.disk.directories.clear();
        let expected =
            "changed: `disk.directories`, `disk.directories[0].path`, `disk.directories[0].size`\n";
        assert_eq!(changed_keys(&before, &without), expected);
        let mut many = before.clone();
        many.listeners = vec![crate::config::Listener::default(); KEYS_SHOWN_MAX + 1];
        let said = changed_keys(&before, &many);
        assert!(said.contains("more\n"), "{said}");
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
