//! Parameters of a member of Cache-Status (RFC 9211), as expected and as seen.

use std::collections::BTreeMap;
use std::fmt;

/// The parameters of one member: each with its value as text, empty for a bare one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parameters(BTreeMap<String, String>);

impl Parameters {
    /// Reads the last member of a Cache-Status value: the cache nearest to the client. Nothing in a
    /// vector needs commas or semicolons inside strings, so they are not looked for.
    #[must_use]
    pub fn of_last_member(value: &str) -> Self {
        let member = value.rsplit(',').next().unwrap_or_default();
        Self::parse(member.split(';').skip(1))
    }

    /// Adds one parameter.
    pub fn add(&mut self, name: &str, value: impl fmt::Display) {
        self.0.insert(name.to_owned(), value.to_string());
    }

    fn parse<'a>(parameters: impl Iterator<Item = &'a str>) -> Self {
        let mut found = Self::default();
        for parameter in parameters {
            let (name, value) = parameter
                .trim()
                .split_once('=')
                .unwrap_or((parameter.trim(), ""));
            found.add(name, value.trim_matches('"'));
        }
        found
    }

    fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }
}

impl fmt::Display for Parameters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, (name, value)) in self.0.iter().enumerate() {
            let separator = if place == 0 { "" } else { "; " };
            let equals = if value.is_empty() { "" } else { "=" };
            write!(f, "{separator}{name}{equals}{value}")?;
        }
        Ok(())
    }
}

/// What is expected: parameters that must be there, and names that must not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pattern {
    present: Parameters,
    absent: Vec<String>,
}

/// The names that RFC 9211 defines; a vector that writes another one has misspelt it.
const NAMES: [&str; 8] = [
    "hit",
    "fwd",
    "fwd-status",
    "stored",
    "collapsed",
    "ttl",
    "key",
    "detail",
];

impl Pattern {
    /// Reads `hit; ttl=1; !detail`. A hit and a forward exclude each other without being told.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let (absent, present): (Vec<&str>, Vec<&str>) = text
            .split(';')
            .map(str::trim)
            .partition(|part| part.starts_with('!'));
        let mut pattern = Self {
            present: Parameters::parse(present.into_iter()),
            absent: absent.iter().map(|name| name[1..].to_owned()).collect(),
        };
        let names = pattern.present.0.keys().chain(&pattern.absent);
        if let Some(name) = names
            .into_iter()
            .find(|name| !NAMES.contains(&name.as_str()))
        {
            return Err(format!("`{name}` is no parameter of Cache-Status"));
        }
        for (one, other) in [("hit", "fwd"), ("fwd", "hit")] {
            if pattern.present.get(one).is_some() {
                pattern.absent.push(other.to_owned());
            }
        }
        Ok(pattern)
    }

    /// What of `seen` is not as expected.
    pub(crate) fn differences(&self, seen: &Parameters) -> Vec<String> {
        let mut differences = Vec::new();
        for (name, value) in &self.present.0 {
            if seen.get(name) != Some(value) {
                differences.push(format!(
                    "cache-status `{seen}`, expected `{}`",
                    self.present
                ));
                break;
            }
        }
        for name in &self.absent {
            if seen.get(name).is_some() {
                differences.push(format!("cache-status `{seen}`, expected no `{name}`"));
            }
        }
        differences
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(pattern: &str, value: &str, expected_differences: usize) {
        let pattern = Pattern::parse(pattern).unwrap();
        let differences = pattern.differences(&Parameters::of_last_member(value));
        assert_eq!(
            differences.len(),
            expected_differences,
            "{value}: {differences:?}"
        );
    }

    #[test]
    fn pattern_reports_each_differing_parameter_of_the_last_member() {
        check("hit; ttl=5", "weir;hit;ttl=5", 0);
        check("hit; ttl=5", "weir;hit;ttl=4", 1);
        check("hit", "weir;fwd=stale", 2);
        check("hit", "other;fwd=miss, weir;hit;ttl=-1", 0);
        check("fwd=stale", "weir;hit, weir;fwd=stale;stored", 0);
        check("fwd=stale; !stored", "weir;fwd=stale;stored", 1);
        check("detail=max-stale", "weir;hit;detail=\"max-stale\"", 0);
    }

    #[test]
    fn unknown_parameter_in_a_pattern_is_refused() {
        assert!(Pattern::parse("hits").is_err());
        assert!(Pattern::parse("fwd=stale; !store").is_err());
    }
}
