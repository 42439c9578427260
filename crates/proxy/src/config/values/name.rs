//! Names of tables: what messages, logs and metrics call a module, a rule or a link.

use crate::config::setting::invalid::Invalid;
use std::collections::BTreeSet;

/// Most bytes of a name.
const NAME_BYTES_MAX: usize = 64;

/// The names of the tables of one kind, each of which is of one table: what is counted by a name
/// would be counted for two.
#[derive(Debug)]
pub(in crate::config) struct Names<'a> {
    /// What they are names of, such as `module`.
    kind: &'static str,
    taken: BTreeSet<&'a str>,
}

impl<'a> Names<'a> {
    /// None yet; `kind` is what they will be names of.
    pub(in crate::config) const fn new(kind: &'static str) -> Self {
        Self {
            kind,
            taken: BTreeSet::new(),
        }
    }

    /// Refuses what cannot be a name, and the name of another table; `key` is where it stands.
    ///
    /// # Errors
    ///
    /// [`Invalid`] with the key, the reason and what to do.
    pub(in crate::config) fn add(&mut self, key: &str, name: &'a str) -> Result<(), Invalid> {
        let kind = self.kind;
        check(kind, key, name)?;
        if self.taken.insert(name) {
            return Ok(());
        }
        let reason = format!("an earlier {kind} has the name `{name}`");
        Err(Invalid::new(key, reason, "give each a name of its own"))
    }
}

/// Refuses what cannot be the name of a `kind` of tables; `key` is where it stands.
///
/// # Errors
///
/// [`Invalid`] with the key, the reason and what to do.
pub(in crate::config) fn check(kind: &str, key: &str, name: &str) -> Result<(), Invalid> {
    if !is_name(name) {
        return Err(Invalid::new(
            key,
            format!("`{name}` is no name of a {kind}"),
            format!("use 1 to {NAME_BYTES_MAX} letters, digits, `-` and `_`"),
        ));
    }
    Ok(())
}

/// Whether a table can have this name.
pub(in crate::config) fn is_name(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    (1..=NAME_BYTES_MAX).contains(&text.len()) && text.bytes().all(is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_is_of_one_table_and_can_stand_in_a_metric() {
        let mut names = Names::new("rule");
        let longest = "a".repeat(NAME_BYTES_MAX);
        let too_long = "a".repeat(NAME_BYTES_MAX + 1);
        for (name, reason) in [
            ("a", None),
            ("A-1_b", None),
            (&longest, None),
            (&too_long, Some("is no name of a rule")),
            ("", Some("is no name of a rule")),
            ("a b", Some("is no name of a rule")),
            ("a\"", Some("is no name of a rule")),
            ("é", Some("is no name of a rule")),
            ("a", Some("an earlier rule has the name `a`")),
            // what one without a name is called
            ("rule[3]", Some("is no name of a rule")),
        ] {
            let found = names.add("rule[0].name", name).map_err(|it| it.reason);
            match (found, reason) {
                (Ok(()), None) => {}
                (Err(found), Some(reason)) => assert!(found.contains(reason), "{name}: {found}"),
                (found, _) => panic!("{name}: {found:?}"),
            }
        }
    }
}
