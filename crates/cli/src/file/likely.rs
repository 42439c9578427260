//! Likely mistakes, with what is meant: by where they stand in the file.

use std::ops::Range;
use toml::de::{DeTable, DeValue};
use weir_proxy::config::settings;

/// A likely mistake.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Likely {
    /// What is wrong, if more can be said than the reader of the file does.
    pub(super) message: Option<String>,
    /// What to do.
    pub(super) hint: String,
}

const DIRECTORIES: &str = "name the directories as tables: `directories = [{ path = \"/var/cache/weir\", size = \"10GiB\" }]`";
const CERTIFICATES: &str =
    "name the files as tables: `certificates = [{ chain = \"cert.pem\", key = \"key.pem\" }]`";
const NAMES_BELOW: &str = "`*.` and a name is for all names below it: `*.example.com`";

/// What is meant: the keys on the way to the mistake, what its message has, and the hint.
const LIKELY: [(&str, &str, &str); 15] = [
    ("disk.path", "", DIRECTORIES),
    ("disk.size", "", DIRECTORIES),
    ("disk.directories", "invalid type", DIRECTORIES),
    ("cache.size", "", "did you mean `memory`?"),
    ("limits.max_clients", "", "did you mean `clients_max`?"),
    ("log.file", "", "did you mean `access`?"),
    (
        "listener.origin",
        "",
        "a gateway forwards by tables of their own: `[[route]]` with `next_hops = [\"http://10.0.0.1\"]`",
    ),
    ("listener.tls.cert", "", CERTIFICATES),
    ("listener.tls.certificate", "", CERTIFICATES),
    ("listener.tls.chain", "", CERTIFICATES),
    ("listener.tls.key", "", CERTIFICATES),
    (
        "cluster.members",
        "invalid type: sequence",
        "each member is a table `[[cluster.member]]`",
    ),
    ("rule.host", "'*'", NAMES_BELOW),
    ("route.host", "'*'", NAMES_BELOW),
    (
        "rule.deny",
        "invalid type",
        "it is the text that clients are shown, such as `deny = \"closed\"`; \"off\" denies nothing",
    ),
];

/// The likely mistake at `place` of a document that cannot be used for `message`.
pub(super) fn likely(
    document: &DeTable<'_>,
    place: &Range<usize>,
    message: &str,
) -> Option<Likely> {
    let path = path_of(document, place)?;
    let top = path.split('.').next().unwrap_or_default();
    let is_list = document
        .get(top)
        .is_some_and(|value| matches!(value.get_ref(), DeValue::Array(_)));
    if is_list && is_one_table(top) {
        return Some(Likely {
            message: Some(format!("there is one table `{top}`, and no list of them")),
            hint: format!("write one bracket on each side: `[{top}]`"),
        });
    }
    let mut meant = LIKELY.iter();
    let (_, _, hint) = meant.find(|(key, part, _)| *key == path && message.contains(part))?;
    Some(Likely {
        message: None,
        hint: (*hint).to_owned(),
    })
}

/// Whether the settings have one table of this name.
fn is_one_table(name: &str) -> bool {
    let stem = format!("{name}.");
    settings().iter().any(|it| it.path.starts_with(&stem))
}

/// The keys on the way to what is at `place`, or whose key is, with dots between them.
fn path_of(table: &DeTable<'_>, place: &Range<usize>) -> Option<String> {
    table.iter().find_map(|(key, value)| {
        let name = key.get_ref();
        let inner = path_of_value(value.get_ref(), place);
        let is_here = key.span() == *place || value.span() == *place;
        match inner {
            Some(rest) if rest.is_empty() => Some(name.to_string()),
            Some(rest) => Some(format!("{name}.{rest}")),
            None => is_here.then(|| name.to_string()),
        }
    })
}

/// The same of what a value has in it: empty for an element of a list itself.
fn path_of_value(value: &DeValue<'_>, place: &Range<usize>) -> Option<String> {
    match value {
        DeValue::Table(table) => path_of(table, place),
        DeValue::Array(elements) => elements.iter().find_map(|element| {
            let inner = path_of_value(element.get_ref(), place);
            inner.or_else(|| (element.span() == *place).then(String::new))
        }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_proxy::config::Config;

    #[test]
    fn likely_mistake_gets_the_form_that_is_meant() {
        let check = |text: &str, expected: &str| {
            let error = toml::from_str::<Config>(text).expect_err(text);
            let document = DeTable::parse(text).expect("TOML");
            let place = error.span().expect("a place");
            let found = likely(document.get_ref(), &place, error.message());
            let hint = found.as_ref().map(|it| it.hint.as_str());
            assert_eq!(hint, Some(expected), "{text}: {error}");
        };
        check("[disk]\npath = \"/x\"\n", DIRECTORIES);
        check("[disk]\nsize = \"1GiB\"\n", DIRECTORIES);
        check("[disk]\ndirectories = [\"/x\"]\n", DIRECTORIES);
        check("[disk]\ndirectories = \"/x\"\n", DIRECTORIES);
        check("[cache]\nsize = \"1GiB\"\n", "did you mean `memory`?");
        check("[limits]\nmax_clients = 4\n", "did you mean `clients_max`?");
        check("[log]\nfile = \"/x\"\n", "did you mean `access`?");
        let listener = "[[listener]]\naddress = \"127.0.0.1:1\"\n";
        check(
            &format!("{listener}tls = {{ certificates = [], cert = \"a\" }}\n"),
            CERTIFICATES,
        );
        check("[[rule]]\nhost = [\"*a.b\"]\n", NAMES_BELOW);
        for table in ["disk", "cache", "admin", "log"] {
            let text = format!("[[{table}]]\nx = 1\n");
            check(
                &text,
                &format!("write one bracket on each side: `[{table}]`"),
            );
        }
        let members = "[[cluster.members]]\nname = \"a\"\n";
        check(members, "each member is a table `[[cluster.member]]`");
        let deny = LIKELY.last().expect("one").2;
        check("[[rule]]\ndeny = true\n", deny);
        let origin = "origin = \"http://a\"\n";
        check(&format!("{listener}{origin}"), LIKELY[6].2);
    }

    #[test]
    fn other_mistakes_are_left_to_others() {
        for text in [
            "[cache]\nx = 1\n",
            "[disk]\ndirectories = [{ path = 1 }]\n",
            "[[rule]]\nhost = [\"a b\"]\n",
            "[[rule]]\nhost = 1\n",
        ] {
            let error = toml::from_str::<Config>(text).expect_err(text);
            let document = DeTable::parse(text).expect("TOML");
            let place = error.span().expect("a place");
            let found = likely(document.get_ref(), &place, error.message());
            assert_eq!(found, None, "{text}");
        }
    }
}
