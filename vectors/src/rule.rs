//! Rules of the operator that a vector is run under.

use serde::{Deserialize, Serialize};
use toml::{Table, Value};

/// A rule, as the proxy's configuration has it: keys with texts, lists of texts, truth values, and
/// tables of them. What they mean is a runner's to know.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RuleTable(Table);

impl RuleTable {
    /// The paths of its keys: `key` and `table.key`.
    #[must_use]
    pub fn keys(&self) -> Vec<String> {
        let keys = self.0.iter().flat_map(|(key, value)| match value {
            Value::Table(table) => table.keys().map(|inner| format!("{key}.{inner}")).collect(),
            _ => vec![key.clone()],
        });
        keys.collect()
    }

    /// The texts at `path`, one or a list of them; `None` if nothing is there.
    #[must_use]
    pub fn texts(&self, path: &str) -> Option<Vec<&str>> {
        match self.value(path)? {
            Value::String(text) => Some(vec![text]),
            Value::Array(list) => Some(list.iter().filter_map(Value::as_str).collect()),
            _ => None,
        }
    }

    /// The truth value at `path`.
    #[must_use]
    pub fn flag(&self, path: &str) -> Option<bool> {
        self.value(path)?.as_bool()
    }

    fn value(&self, path: &str) -> Option<&Value> {
        match path.split_once('.') {
            Some((key, inner)) => self.0.get(key)?.get(inner),
            None => self.0.get(path),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_found_by_their_paths() {
        let text =
            "path = [\"/a\", \"/b\"]\nbypass = true\nkey = { sort_query = true }\ndeny = \"x\"";
        let rule: RuleTable = toml::from_str(text).expect("a rule");
        assert_eq!(rule.texts("path"), Some(vec!["/a", "/b"]));
        assert_eq!(rule.texts("deny"), Some(vec!["x"]));
        assert_eq!(rule.flag("bypass"), Some(true));
        assert_eq!(rule.flag("key.sort_query"), Some(true));
        assert_eq!(rule.texts("host"), None);
        assert_eq!(rule.keys(), ["bypass", "deny", "key.sort_query", "path"]);
    }
}
