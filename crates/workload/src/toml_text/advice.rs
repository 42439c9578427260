//! What was probably meant: unknown keys and words, with the known ones beside.

/// A message as serde and our own types word it, taken apart for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Advice {
    /// What is wrong.
    pub message: String,
    /// What to do, if that is known.
    pub hint: Option<String>,
}

/// Rewords a message and finds its hint. `home_of` a key that is unknown here: where it belongs.
#[must_use]
pub fn advise(message: &str, home_of: impl Fn(&str) -> Option<String>) -> Advice {
    if let Some((problem, meant)) = message.split_once("; did you mean ") {
        return advice(problem, Some(format!("did you mean {meant}")));
    }
    if let Some(rest) = message.strip_prefix("unknown field `") {
        let (key, known) = word_and_known(rest);
        return advice(
            &format!("unknown key `{key}`"),
            Some(hint_for(key, "keys", &known, home_of)),
        );
    }
    if let Some(rest) = message.strip_prefix("unknown variant `") {
        let (word, known) = word_and_known(rest);
        return advice(
            &format!("unknown value `{word}`"),
            Some(hint_for(word, "values", &known, |_| None)),
        );
    }
    if let Some(rest) = message.strip_prefix("missing field `") {
        return advice(&format!("missing key `{rest}"), None);
    }
    if let Some((_, rest)) = message.split_once("unknown value `") {
        let (word, known) = word_and_known(rest);
        let hint = nearest(word, &known).map(|word| format!("did you mean `{word}`?"));
        return advice(message, hint);
    }
    advice(&with_kind_of_number(message), None)
}

/// The word most like `word`, if one is.
#[must_use]
pub fn nearest<'k>(word: &str, known: &[&'k str]) -> Option<&'k str> {
    known
        .iter()
        .map(|&candidate| (strsim::jaro_winkler(word, candidate), candidate))
        .filter(|&(alike, _)| alike >= ALIKE_MIN)
        .max_by(|(one, _), (other, _)| one.total_cmp(other))
        .map(|(_, candidate)| candidate)
}

/// How alike two words must be (Jaro-Winkler) for one to be suggested: `memroy` and `memory` are
/// 0.95, `upstream` and `route` 0.5.
const ALIKE_MIN: f64 = 0.8;

fn advice(message: &str, hint: Option<String>) -> Advice {
    Advice {
        message: message.to_owned(),
        hint,
    }
}

fn hint_for(
    word: &str,
    what: &str,
    known: &[&str],
    home_of: impl Fn(&str) -> Option<String>,
) -> String {
    match (nearest(word, known), home_of(word)) {
        (Some(word), _) => format!("did you mean `{word}`?"),
        (None, Some(path)) => format!("that key has another place: `{path}`"),
        (None, None) => format!("the {what} known here are {}", known.join(", ")),
    }
}

/// The word, and those that are known. `rest` begins after the back quote that opens the word.
fn word_and_known(rest: &str) -> (&str, Vec<&str>) {
    let (word, known) = rest.split_once('`').unwrap_or((rest, ""));
    (word, known.split('`').skip(1).step_by(2).collect())
}

/// serde names Rust's types; people know ranges.
fn with_kind_of_number(message: &str) -> String {
    let integer = |most: u64| format!("an integer from 0 to {most}");
    let kinds = [
        (", expected u8", integer(u8::MAX.into())),
        (", expected u16", integer(u16::MAX.into())),
        (", expected u32", integer(u32::MAX.into())),
        // TOML has no larger ones
        (", expected u64", integer(i64::MAX.unsigned_abs())),
        (", expected f64", "a number".to_owned()),
    ];
    let named = kinds.iter().find_map(|(name, kind)| {
        let front = message.strip_suffix(name)?;
        Some(format!("{front}, expected {kind}"))
    });
    named.unwrap_or_else(|| message.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(message: &str, expected: &str, hint: Option<&str>) {
        let home_of = |key: &str| (key == "memory").then(|| "cache.memory".to_owned());
        let found = advise(message, home_of);
        assert_eq!(found.message, expected);
        assert_eq!(found.hint.as_deref(), hint, "{message}");
    }

    #[test]
    fn unknown_key_gets_a_suggestion_and_a_missing_key_is_named() {
        check(
            "unknown field `memroy`, expected one of `memory`, `eviction`, `name`",
            "unknown key `memroy`",
            Some("did you mean `memory`?"),
        );
        check(
            "unknown field `memory`, expected `workers` or `cache`",
            "unknown key `memory`",
            Some("that key has another place: `cache.memory`"),
        );
        check(
            "unknown field `zzz`, expected `workers` or `cache`",
            "unknown key `zzz`",
            Some("the keys known here are workers, cache"),
        );
        check("missing field `address`", "missing key `address`", None);
    }

    #[test]
    fn expected_range_is_given_in_numbers_not_rust_types() {
        for (kind, range) in [
            ("u16", "an integer from 0 to 65535"),
            ("u64", "an integer from 0 to 9223372036854775807"),
            ("f64", "a number"),
            ("a time", "a time"),
        ] {
            check(
                &format!("invalid value: integer `70000`, expected {kind}"),
                &format!("invalid value: integer `70000`, expected {range}"),
                None,
            );
        }
    }

    #[test]
    fn unknown_value_gets_a_suggestion_only_if_one_is_similar() {
        let message = "unknown value `s3fifo`, expected one of `s3-fifo`, `sieve`, `lru`";
        check(message, message, Some("did you mean `s3-fifo`?"));
        let message = "unknown value `arc`, expected one of `s3-fifo`, `sieve`, `lru`";
        check(message, message, None);
        check(
            "unknown variant `2`, expected `1.0` or `1.1`",
            "unknown value `2`",
            Some("the values known here are 1.0, 1.1"),
        );
        check(
            "unknown unit `MB`, expected one of `B`, `MiB`; did you mean `64MiB`?",
            "unknown unit `MB`, expected one of `B`, `MiB`",
            Some("did you mean `64MiB`?"),
        );
    }
}
