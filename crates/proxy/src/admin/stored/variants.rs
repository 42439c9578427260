//! The variants of a target as a table.

use crate::admin::table::aligned;
use crate::host::stored::listing::{StoredVariantInfo, StoredVariants};
use crate::modules::report::push_visible;

/// Most bytes of a value, and of the names of what selects a variant, in the table; the rest is
/// left out.
const CELL_BYTES_MAX: usize = 96;

/// The fields of a response that tell variants apart.
const DESCRIBING: [&str; 3] = ["content-type", "content-encoding", "content-language"];

const MORE_ON_DISK: &str = "further variants may be on disk alone: each is listed once a request has selected it, also one of `list` with its fields\n";

const LACKING: &str = "! a rule that is gone had it stored: it answers no request\n";

/// A line for each; the one that the request of the call selects has `*` in front.
pub(super) fn table(stored: &StoredVariants) -> String {
    let titles = [
        "",
        "selected by",
        "status",
        "bytes",
        "age",
        "fresh for",
        DESCRIBING[0],
        DESCRIBING[1],
        DESCRIBING[2],
    ];
    let mut rows = vec![titles.map(str::to_owned)];
    rows.extend(stored.variants.iter().map(row));
    let mut text = aligned(&rows);
    if stored.variants.iter().any(|variant| variant.lacks_rule) {
        text.push_str(LACKING);
    }
    if stored.may_be_more_on_disk {
        text.push_str(MORE_ON_DISK);
    }
    text
}

fn row(variant: &StoredVariantInfo) -> [String; 9] {
    let info = &variant.info;
    let bytes = match info.complete_bytes {
        Some(complete) if complete == info.stored_bytes => complete.to_string(),
        Some(complete) => format!("{} of {complete}", info.stored_bytes),
        None => format!("{} of ?", info.stored_bytes),
    };
    let value = |name| visible(info.fields.get(name).unwrap_or(b"-"));
    let [media_type, coding, language] = DESCRIBING.map(value);
    [
        match (variant.is_selected, variant.lacks_rule) {
            (true, true) => "*!",
            (true, false) => "*",
            (false, true) => "!",
            (false, false) => "",
        }
        .to_owned(),
        selected_by(variant),
        info.status.to_string(),
        bytes,
        format!("{} s", info.age.as_secs()),
        format!("{} s", info.fresh_for.as_secs()),
        media_type,
        coding,
        language,
    ]
}

fn selected_by(variant: &StoredVariantInfo) -> String {
    let modules = variant.is_of_modules.then_some("modules");
    let forwarded = variant.is_forwarded.then_some("forwarded");
    let names = variant.nominated.iter().map(|name| &**name);
    let own = modules.into_iter().chain(forwarded);
    let names: Vec<&str> = own.chain(names).collect();
    match names.as_slice() {
        [] => "-".to_owned(),
        names => visible(names.join(", ").as_bytes()),
    }
}

fn visible(value: &[u8]) -> String {
    let mut text = String::new();
    push_visible(&mut text, &String::from_utf8_lossy(value), CELL_BYTES_MAX);
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use weir_extend::{Fields, StoredInfo};

    #[test]
    fn variant_is_a_line_of_visible_ascii_of_bounded_length() {
        let long = "x".repeat(9999);
        let fields = [
            ("Content-Type", &b"text/html\x1b[2J"[..]),
            ("Content-Encoding", long.as_bytes()),
        ];
        let stored = StoredVariants {
            variants: vec![StoredVariantInfo {
                nominated: vec!["accept-encoding".into()],
                is_of_modules: true,
                is_forwarded: false,
                is_selected: true,
                lacks_rule: true,
                info: StoredInfo {
                    status: 200,
                    fields: Fields::received(fields),
                    complete_bytes: Some(9),
                    stored_bytes: 4,
                    age: Duration::from_secs(5),
                    fresh_for: Duration::from_secs(55),
                },
            }],
            may_be_more_on_disk: true,
        };
        let table = table(&stored);
        let lines: Vec<&str> = table.lines().collect();
        let row =
            "*!  modules, accept-encoding  200     4 of 9  5 s  55 s       text/html\\u{1b}[2J  xx";
        assert!(lines[1].starts_with(row), "{}", lines[1]);
        assert!(lines[1].len() < 9 * CELL_BYTES_MAX && lines[1].contains("xxx..."));
        assert_eq!(format!("{}\n", lines[2]), LACKING);
        assert_eq!(format!("{}\n", lines[3]), MORE_ON_DISK);
        assert_eq!(lines.len(), 4);
    }
}
