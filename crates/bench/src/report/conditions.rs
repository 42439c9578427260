//! Under which conditions a run was made: runs are compared with each other only where these are
//! equal.
//!
//! The conditions are the resolved scenario, the seed, the clients' links and the host. What a
//! sweep varies, the number of clients and with it that of servers, is not among them; neither is
//! whether there are links at all, since the modem experiment compares just that.

use std::collections::BTreeMap;
use toml::{Table, Value};
use weir_measure::float;
use weir_measure::record::{Host, Record};

/// Keys of a scenario that a sweep varies.
const VARIED: [&str; 4] = [
    "workload.clients",
    "workload.servers",
    "workload.agents",
    "workload.connections",
];

/// Keys of a scenario that say nothing about the load.
const PROSE: [&str; 3] = ["about", "sources", "format"];

/// Keys of the clients' links begin with it.
const LINK: &str = "clients.link";

/// Longer values are cut where a difference is named.
const VALUE_MAX: usize = 60;

/// Memory of one machine differs by a little between two starts of its kernel.
const MEMORY_TOLERANCE: f64 = 0.01;

/// The conditions of a run.
#[derive(Clone, Debug)]
pub(super) struct Conditions {
    seed: u64,
    host: Host,
    keys: BTreeMap<String, String>,
    /// Empty where clients have no links of their own.
    link: BTreeMap<String, String>,
}

impl Conditions {
    pub(super) fn of(record: &Record) -> Self {
        let mut keys = keys(&record.scenario);
        keys.retain(|key, _| !VARIED.contains(&key.as_str()) && !PROSE.contains(&key.as_str()));
        let (mut link, keys): (BTreeMap<_, _>, BTreeMap<_, _>) =
            keys.into_iter().partition(|(key, _)| key.starts_with(LINK));
        link.retain(|_, value| value != "\"none\"");
        if let Some(shaping) = record.link_shaping.filter(|_| !link.is_empty()) {
            link.insert("link_shaping".to_owned(), shaping.to_string());
        }
        Self {
            seed: record.seed,
            host: record.host.clone(),
            keys,
            link,
        }
    }

    /// The differences from another run: a name and both values each; empty if they may be
    /// compared.
    pub(super) fn differences(&self, other: &Self) -> Vec<String> {
        let mut found = Vec::new();
        let mut differ = |name: &str, ours: &str, theirs: &str| {
            if ours != theirs {
                found.push(format!("{name} is {} and {}", cut(ours), cut(theirs)));
            }
        };
        differ("the seed", &self.seed.to_string(), &other.seed.to_string());
        let host = |host: &Host| format!("{}, {} cores, {}", host.cpu, host.cores, host.kernel);
        differ("the host", &host(&self.host), &host(&other.host));
        if !is_near(self.host.memory_bytes, other.host.memory_bytes) {
            let memory = |host: &Host| format!("{} MiB", host.memory_bytes >> 20);
            differ("its memory", &memory(&self.host), &memory(&other.host));
        }
        between(&self.keys, &other.keys, &mut differ);
        if !self.link.is_empty() && !other.link.is_empty() {
            between(&self.link, &other.link, &mut differ);
        }
        found
    }

    /// Takes over the link of a run that is compared with these, if there was none yet.
    pub(super) fn meet(&mut self, other: &Self) {
        if self.link.is_empty() {
            self.link.clone_from(&other.link);
        }
    }
}

/// Every key with its value as TOML, by table and name; nothing of a text that is none.
fn keys(scenario: &str) -> BTreeMap<String, String> {
    let mut keys = BTreeMap::new();
    if let Ok(table) = scenario.parse::<Table>() {
        collect("", &table, &mut keys);
    }
    keys
}

/// Enters the keys of a table, and of those in it, behind `prefix`.
fn collect(prefix: &str, table: &Table, keys: &mut BTreeMap<String, String>) {
    for (key, value) in table {
        let name = format!("{prefix}{key}");
        match value {
            Value::Table(inner) => collect(&format!("{name}."), inner, keys),
            Value::Array(items) if items.iter().all(Value::is_table) => {
                let tables = (1..).zip(items.iter().filter_map(Value::as_table));
                tables.for_each(|(number, inner)| {
                    collect(&format!("{name}[{number}]."), inner, keys);
                });
            }
            other => drop(keys.insert(name, other.to_string())),
        }
    }
}

fn between(
    ours: &BTreeMap<String, String>,
    theirs: &BTreeMap<String, String>,
    differ: &mut impl FnMut(&str, &str, &str),
) {
    let mut names: Vec<&String> = ours.keys().chain(theirs.keys()).collect();
    names.sort_unstable();
    names.dedup();
    for name in names {
        let value = |keys: &BTreeMap<String, String>| {
            keys.get(name)
                .cloned()
                .unwrap_or_else(|| "not given".to_owned())
        };
        differ(name, &value(ours), &value(theirs));
    }
}

fn is_near(one: u64, two: u64) -> bool {
    let (one, two) = (float(one), float(two));
    (one - two).abs() <= one.max(two) * MEMORY_TOLERANCE
}

fn cut(value: &str) -> String {
    if value.chars().count() <= VALUE_MAX {
        return value.to_owned();
    }
    let kept: String = value.chars().take(VALUE_MAX).collect();
    format!("{kept}…")
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_measure::record::LinkShaping;

    const SCENARIO: &str = "format = 1\nname = \"wpb\"\nabout = \"\"\"\nclients = many\n\"\"\"\n\n[workload]\nclients = 32\nsizes = \"uniform(0B, 40KB)\"\n\
                            \n[origin]\nlatency = \"constant(3s)\"\n\n[clients.link]\ndown = \"28.8kbit/s\"\n";

    fn record(scenario: &str) -> Record {
        let mut record: Record =
            serde_json::from_str(include_str!("../../tests/data/record-wpb.json"))
                .expect("it is a record");
        scenario.clone_into(&mut record.scenario);
        record
    }

    fn conditions(scenario: &str) -> Conditions {
        Conditions::of(&record(scenario))
    }

    fn check(change: (&str, &str), expected: &[&str]) {
        let other = conditions(&SCENARIO.replace(change.0, change.1));
        assert_eq!(
            conditions(SCENARIO).differences(&other),
            expected,
            "{change:?}"
        );
    }

    #[test]
    fn named_differences_exclude_client_count_about_text_and_missing_link() {
        check(("clients = 32", "clients = 96"), &[]);
        check(("clients = many", "clients = few"), &[]);
        check(
            ("constant(3s)", "constant(1s)"),
            &["origin.latency is \"constant(3s)\" and \"constant(1s)\""],
        );
        check(
            ("28.8kbit/s", "56kbit/s"),
            &["clients.link.down is \"28.8kbit/s\" and \"56kbit/s\""],
        );
        // with a link and without: that is what is compared
        check(("[clients.link]\ndown = \"28.8kbit/s\"\n", ""), &[]);
    }

    #[test]
    fn link_shaping_is_a_condition_only_for_runs_with_links() {
        let by = |link_shaping, command: &str| {
            let mut record = record(SCENARIO);
            record.link_shaping = link_shaping;
            command.clone_into(&mut record.tool.command);
            Conditions::of(&record)
        };
        let user = by(Some(LinkShaping::User), "weir bench run wpb-modem");
        let kernel = by(Some(LinkShaping::Namespace), "weir bench master wpb-modem");
        let found = user.differences(&kernel);
        assert_eq!(found, ["link_shaping is user and namespace"]);
        // the record says it, whatever words the command line has
        let labelled = by(
            Some(LinkShaping::User),
            "weir bench run x --label namespace",
        );
        assert!(user.differences(&labelled).is_empty());
        // a record from before the field does not say what shaped the links
        let found = user.differences(&by(None, "weir bench run wpb-modem"));
        assert_eq!(found, ["link_shaping is user and not given"]);
        let without = SCENARIO.replace("[clients.link]\ndown = \"28.8kbit/s\"\n", "");
        assert!(user.differences(&conditions(&without)).is_empty());
    }

    #[test]
    fn seed_and_host_are_conditions_but_small_memory_changes_are_not() {
        let one = conditions(SCENARIO);
        let mut other = one.clone();
        other.host.memory_bytes += 4096;
        assert!(one.differences(&other).is_empty());
        other.host.memory_bytes *= 2;
        other.host.cores += 1;
        other.seed += 1;
        let found = one.differences(&other);
        assert_eq!(found.len(), 3, "{found:?}");
        assert!(
            found[0].starts_with("the seed is 1998 and 1999"),
            "{found:?}"
        );
    }
}
