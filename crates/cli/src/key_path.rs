//! Where a key such as `listener[1].address` stands in a TOML document.

use std::ops::Range;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// The bytes of the value at `key_path`, or nothing where the document does not state it.
pub(crate) fn find(document: &DeTable<'_>, key_path: &str) -> Option<Range<usize>> {
    let mut steps = steps(key_path);
    let Some(Step::Key(first)) = steps.next() else {
        return None;
    };
    let mut place = document.get(first)?;
    for step in steps {
        place = descend(place, step)?;
    }
    Some(place.span())
}

#[derive(Clone, Copy)]
enum Step<'p> {
    Key(&'p str),
    Index(usize),
}

fn descend<'a, 'i>(
    place: &'a Spanned<DeValue<'i>>,
    step: Step<'_>,
) -> Option<&'a Spanned<DeValue<'i>>> {
    match (place.get_ref(), step) {
        (DeValue::Table(table), Step::Key(key)) => table.get(key),
        (DeValue::Array(array), Step::Index(index)) => array.get(index),
        _ => None,
    }
}

fn steps(key_path: &str) -> impl Iterator<Item = Step<'_>> {
    key_path
        .split(['.', '['])
        .map(|part| match part.strip_suffix(']').map(str::parse) {
            Some(Ok(index)) => Step::Index(index),
            _ => Step::Key(part),
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn value_is_found_at_another_place_than_its_own() {
        let text = "workers = 1\n[[listener]]\naddress = \"a\"\n[[listener]]\naddress = \"b\"\n[dns]\nservers = [\"c\", \"d\"]\n";
        let document = DeTable::parse(text).unwrap();
        let check = |key_path: &str, expected: Option<&str>| {
            let found = find(document.get_ref(), key_path).map(|span| &text[span]);
            assert_eq!(found, expected, "{key_path}");
        };
        check("workers", Some("1"));
        check("listener[0].address", Some("\"a\""));
        check("listener[1].address", Some("\"b\""));
        check("listener[2].address", None);
        check("listener[1]", Some("[[listener]]"));
        check("dns.servers[1]", Some("\"d\""));
        check("dns.ttl_min", None);
        check("workers.one", None);
        check("", None);
    }
}
