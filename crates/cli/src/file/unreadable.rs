//! All that keeps a text from being a configuration, not the first mistake alone.
//!
//! A deserialiser stops at the first value that it cannot read. So the value that it names is taken
//! out of the document, and what is left is read again, until all of it can be read.

use serde::Deserialize as _;
use std::collections::BTreeSet;
use std::ops::Range;
use toml::de::{DeArray, DeTable, DeValue, Error};
use weir_proxy::config::{Config, MISTAKES_MAX, Mistakes};

/// What is wrong with a text that is no configuration.
#[derive(Debug)]
pub(super) struct Unreadable {
    /// Errors of syntax; without one, the values that are none of their kind: at least one, and at
    /// most [`MISTAKES_MAX`].
    pub(super) errors: Vec<Error>,
    /// Values outside their ranges, if the rest of the text could be read.
    pub(super) mistakes: Mistakes,
    /// Errors beside `errors`, as far as they are known.
    pub(super) more: usize,
}

impl Unreadable {
    /// Of a `text` that could not be read for `first`.
    pub(super) fn find(text: &str, first: Error) -> Self {
        let (document, syntax) = DeTable::parse_recoverable(text);
        if !syntax.is_empty() {
            return Self::of_syntax(text, syntax);
        }
        let mut found = Self {
            errors: vec![first],
            mistakes: Mistakes::default(),
            more: 0,
        };
        found.read_on(document.into_inner());
        found
    }

    /// One error a line: what follows on it is mostly due to that one.
    fn of_syntax(text: &str, mut errors: Vec<Error>) -> Self {
        let mut lines = BTreeSet::new();
        errors.retain(|error| lines.insert(error.span().map(|span| line(text, &span))));
        let more = errors.len().saturating_sub(MISTAKES_MAX);
        errors.truncate(MISTAKES_MAX);
        Self {
            errors,
            mistakes: Mistakes::default(),
            more,
        }
    }

    /// Reads the document again without what is at fault, until that is possible.
    fn read_on(&mut self, mut document: DeTable<'_>) {
        let mut error = self.errors[0].clone();
        let mut taken_out = Vec::new();
        loop {
            let Some(place) = error.span() else { return };
            let Some(taken) = take_out(&mut document, &(0..0), &place) else {
                return;
            };
            taken_out.push(taken);
            let rest = toml::Spanned::new(0..0, document.clone());
            error = match Config::deserialize(toml::de::Deserializer::from(rest)) {
                Ok(config) => {
                    self.mistakes = config.range_mistakes();
                    return;
                }
                Err(error) => error,
            };
            // that a key is missing which was taken out is no mistake of the text
            if taken_out.iter().any(|taken| taken.is_missing_by(&error)) {
                continue;
            }
            if self.errors.len() == MISTAKES_MAX {
                self.more = 1;
                return;
            }
            self.errors.push(error.clone());
        }
    }
}

/// The number of the line that a place is in, from 0.
fn line(text: &str, place: &Range<usize>) -> usize {
    let before = &text.as_bytes()[..place.start.min(text.len())];
    before.iter().filter(|byte| **byte == b'\n').count()
}

/// A value that was taken out of a document.
#[derive(Debug)]
struct TakenOut {
    /// The place of the table or list that it was in.
    table: Range<usize>,
    /// Its key; `None` in a list.
    key: Option<String>,
}

impl TakenOut {
    /// Whether `error` is that it is missing.
    fn is_missing_by(&self, error: &Error) -> bool {
        let key = error.message().strip_prefix("missing field `");
        let key = key.and_then(|rest| rest.strip_suffix('`'));
        key.is_some() && key == self.key.as_deref() && error.span().as_ref() == Some(&self.table)
    }
}

/// Takes out the innermost value that is at `place`, or whose key is; `own` is the place of the
/// table.
fn take_out(table: &mut DeTable<'_>, own: &Range<usize>, place: &Range<usize>) -> Option<TakenOut> {
    let mut values = table.iter_mut().map(|(_, value)| value);
    let inner = values.find_map(|value| {
        let own = value.span();
        take_out_of(value.get_mut(), &own, place)
    });
    if inner.is_some() {
        return inner;
    }
    let mut entries = table.iter();
    let (key, _) = entries.find(|(key, value)| key.span() == *place || value.span() == *place)?;
    let key = key.get_ref().to_string();
    table.remove(key.as_str());
    Some(TakenOut {
        table: own.clone(),
        key: Some(key),
    })
}

fn take_out_of(
    value: &mut DeValue<'_>,
    own: &Range<usize>,
    place: &Range<usize>,
) -> Option<TakenOut> {
    let items = match value {
        DeValue::Table(table) => return take_out(table, own, place),
        DeValue::Array(items) => items,
        _ => return None,
    };
    let inner = items.iter_mut().find_map(|item| {
        let own = item.span();
        take_out_of(item.get_mut(), &own, place)
    });
    if inner.is_some() {
        return inner;
    }
    let at = items.iter().position(|item| item.span() == *place)?;
    let all = std::mem::replace(items, DeArray::new()).into_iter();
    let rest = all.enumerate().filter(|(index, _)| *index != at);
    rest.for_each(|(_, item)| items.push(item));
    Some(TakenOut {
        table: own.clone(),
        key: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &[(usize, &str)]) {
        let first = toml::from_str::<Config>(text).expect_err(text);
        let found = Unreadable::find(text, first);
        let mut found: Vec<(usize, &str)> = found
            .errors
            .iter()
            .map(|error| {
                (
                    line(text, &error.span().expect("a place")) + 1,
                    error.message(),
                )
            })
            .collect();
        found.sort_unstable();
        assert_eq!(found.len(), expected.len(), "{found:?}");
        for (found, expected) in found.iter().zip(expected) {
            assert_eq!(found.0, expected.0, "{found:?}");
            assert!(found.1.contains(expected.1), "{found:?}");
        }
    }

    #[test]
    fn each_value_that_cannot_be_read_is_named_once() {
        check("workers = true\n", &[(1, "invalid type: boolean")]);
        check(
            "workers = true\nx = 1\n[[rule]]\nbypass = 1\nlifetime = { most = 1 }\n[cache]\nmemory = \"1MB\"\n",
            &[
                (1, "invalid type: boolean"),
                (2, "unknown field `x`"),
                (4, "invalid type: integer"),
                (5, "unknown field `most`"),
                (7, "unknown unit `MB`"),
            ],
        );
        // that a listener has no address now is no mistake of the file
        check(
            "[[listener]]\naddress = \"a\"\n[[listener]]\nmode = \"no\"\n",
            &[
                (2, "`a`"),
                (3, "missing field `address`"),
                (4, "unknown value"),
            ],
        );
        check(
            "[[route]]\nnext_hops = [\"a\", \"http://a\", \"b\"]\n",
            &[(2, "`a`"), (2, "`b`")],
        );
    }

    #[test]
    fn values_beyond_the_bound_end_the_search() {
        let text: String = (0..MISTAKES_MAX + 5)
            .map(|key| format!("x{key} = 1\n"))
            .collect();
        let first = toml::from_str::<Config>(&text).expect_err("unknown keys");
        let found = Unreadable::find(&text, first);
        assert_eq!((found.errors.len(), found.more), (MISTAKES_MAX, 1));
    }

    #[test]
    fn ranges_are_checked_beside_what_cannot_be_read() {
        let text = "workers = 2000\n[dns]\nservers = 1\n";
        let first = toml::from_str::<Config>(text).expect_err("servers");
        let found = Unreadable::find(text, first);
        assert_eq!(found.errors.len(), 1);
        assert_eq!(found.mistakes.described()[0].key_path, "workers");
    }
}
