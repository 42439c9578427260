//! Where a key such as `workload.contents[1].share` stands in a TOML document.

use std::ops::Range;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// A step of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Into a table.
    Key(String),
    /// Into an array, from 0.
    Index(usize),
}

/// The steps of `a.b[1].c`; an index may also be written as a step of its own, `a.b.1.c`. Nothing
/// where a step is empty.
#[must_use]
pub fn steps(path: &str) -> Option<Vec<Step>> {
    let step = |part: &str| {
        let part = part.trim();
        let index = part.strip_suffix(']').unwrap_or(part);
        match index.parse() {
            Ok(index) => Some(Step::Index(index)),
            Err(_) if part.is_empty() => None,
            Err(_) => Some(Step::Key(part.to_owned())),
        }
    };
    path.split(['.', '[']).map(step).collect()
}

/// The bytes of the value at `path`; `None` where the document does not state it.
#[must_use]
pub fn find(document: &DeTable<'_>, path: &str) -> Option<Range<usize>> {
    let (found, is_whole) = follow(document, path)?;
    is_whole.then_some(found)
}

/// The bytes of the value at `path`, or of the nearest thing around it that the document states.
#[must_use]
pub fn find_nearest(document: &DeTable<'_>, path: &str) -> Option<Range<usize>> {
    follow(document, path).map(|(found, _)| found)
}

/// How far the path leads, and whether that is its end.
fn follow(document: &DeTable<'_>, path: &str) -> Option<(Range<usize>, bool)> {
    let steps = steps(path)?;
    let (first, rest) = steps.split_first()?;
    let Step::Key(first) = first else { return None };
    let mut place = document.get(first.as_str())?;
    for step in rest {
        match descend(place, step) {
            Some(inner) => place = inner,
            None => return Some((place.span(), false)),
        }
    }
    Some((place.span(), true))
}

fn descend<'a, 'i>(
    place: &'a Spanned<DeValue<'i>>,
    step: &Step,
) -> Option<&'a Spanned<DeValue<'i>>> {
    match (place.get_ref(), step) {
        (DeValue::Table(table), Step::Key(key)) => table.get(key.as_str()),
        (DeValue::Array(array), Step::Index(index)) => array.get(*index),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_path_finds_its_own_value_or_the_nearest_enclosing_table() {
        let text = "a = 1\n[w]\nsizes = \"x\"\n[[w.c]]\nshare = 1\n[[w.c]]\nshare = 2\n";
        let document = DeTable::parse(text).unwrap();
        let check = |path: &str, expected: Option<&str>| {
            let found = find_nearest(document.get_ref(), path).map(|span| &text[span]);
            assert_eq!(found, expected, "{path}");
        };
        check("a", Some("1"));
        check("w.sizes", Some("\"x\""));
        check("w.c[1].share", Some("2"));
        check("w.c.0.share", Some("1"));
        check("w.c[1]", Some("[[w.c]]"));
        check("w.none", Some("[w]"));
        check("none", None);
        check("", None);
        check("w..c", None);
        // what is around it is not the value at the path
        for path in ["w.none", "w.c[2]", "a.b", "none", ""] {
            assert_eq!(find(document.get_ref(), path), None, "{path}");
        }
        for path in ["a", "w", "w.c[1].share"] {
            let found = find(document.get_ref(), path);
            assert!(found.is_some() && found == find_nearest(document.get_ref(), path));
        }
    }
}
