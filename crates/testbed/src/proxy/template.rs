//! Config files and commands with words in `@` to be filled in.

use std::collections::BTreeMap;
use xtask::failure::Failure;

/// The values of the words.
#[derive(Clone, Debug, Default)]
pub(crate) struct Words(BTreeMap<&'static str, String>);

impl Words {
    /// `name` is written without the `@`; a value that it had is replaced.
    pub(crate) fn set(&mut self, name: &'static str, value: impl ToString) {
        self.0.insert(name, value.to_string());
    }

    /// # Errors
    /// Names a word that has no value: a config with a hole in it would start something else than
    /// was meant.
    pub(crate) fn fill(&self, text: &str) -> Result<String, Failure> {
        let mut filled = text.to_owned();
        for (name, value) in &self.0 {
            filled = filled.replace(&format!("@{name}@"), value);
        }
        match unfilled(&filled) {
            Some(word) => Err(Failure::Usage(format!(
                "`{word}` in a file of peers/ has no meaning"
            ))),
            None => Ok(filled),
        }
    }
}

fn unfilled(text: &str) -> Option<String> {
    let is_name =
        |part: &&str| !part.is_empty() && part.chars().all(|c| c.is_ascii_uppercase() || c == '_');
    text.lines().find_map(|line| {
        let parts: Vec<&str> = line.split('@').collect();
        let inner = parts.get(1..parts.len().saturating_sub(1))?;
        inner
            .iter()
            .find(|part| is_name(part))
            .map(|part| format!("@{part}@"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Option<&str>) {
        let mut words = Words::default();
        words.set("PORT", 80);
        words.set("DIR", "/d");
        assert_eq!(words.fill(text).ok().as_deref(), expected, "{text}");
    }

    #[test]
    fn known_placeholders_are_replaced_and_other_text_is_kept() {
        check(
            "listen @PORT@;\nroot @DIR@/files;",
            Some("listen 80;\nroot /d/files;"),
        );
        check(
            "someone@example.com and another@example.com",
            Some("someone@example.com and another@example.com"),
        );
    }

    #[test]
    fn placeholder_without_a_value_is_refused() {
        check("listen @HOST@:@PORT@;", None);
    }
}
