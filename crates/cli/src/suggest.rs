//! What was probably meant: unknown keys and words, with the known ones beside.

use weir_proxy::config::knobs;

/// A message as serde and our own types word it, taken apart for people.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Advice {
    /// What is wrong.
    pub(crate) message: String,
    /// What to do, if that is known.
    pub(crate) hint: Option<String>,
}

/// Rewords a message and finds its hint.
pub(crate) fn advise(message: &str) -> Advice {
    if let Some((problem, meant)) = message.split_once("; did you mean ") {
        return advice(problem, Some(format!("did you mean {meant}")));
    }
    if let Some(rest) = message.strip_prefix("unknown field `") {
        return unknown_key(rest);
    }
    if let Some(rest) = message.strip_prefix("missing field `") {
        return advice(&format!("missing key `{rest}"), None);
    }
    if let Some((_, rest)) = message.split_once("unknown value `")
        && let Some((word, known)) = rest.split_once('`')
    {
        let hint = nearest(word, &quoted(known)).map(|word| format!("did you mean `{word}`?"));
        return advice(message, hint);
    }
    advice(&with_range(message), None)
}

/// serde names Rust's integer types; people know ranges.
fn with_range(message: &str) -> String {
    let ranges = [
        (", expected u8", u64::from(u8::MAX)),
        (", expected u16", u64::from(u16::MAX)),
        (", expected u32", u64::from(u32::MAX)),
    ];
    let named = ranges.iter().find_map(|(name, most)| {
        let front = message.strip_suffix(name)?;
        Some(format!("{front}, expected an integer from 0 to {most}"))
    });
    named.unwrap_or_else(|| message.to_owned())
}

/// How alike two words must be (Jaro-Winkler) for one to be suggested: `memroy` and `memory` are 0.95,
/// `upstream` and `route` 0.5.
const ALIKE_MIN: f64 = 0.8;

fn advice(message: &str, hint: Option<String>) -> Advice {
    Advice {
        message: message.to_owned(),
        hint,
    }
}

/// `rest` begins after the back quote that opens the key.
fn unknown_key(rest: &str) -> Advice {
    let (key, known) = rest.split_once('`').unwrap_or((rest, ""));
    let known = quoted(known);
    let hint = match (nearest(key, &known), home_of(key)) {
        (Some(word), _) => format!("did you mean `{word}`?"),
        (None, Some(path)) => format!("that key has another place: `{path}`"),
        (None, None) => format!("the keys known here are {}", known.join(", ")),
    };
    advice(&format!("unknown key `{key}`"), Some(hint))
}

/// The first knob anywhere whose last part is `key`.
fn home_of(key: &str) -> Option<String> {
    knobs()
        .into_iter()
        .map(|knob| knob.path)
        .find(|path| path.rsplit('.').next() == Some(key))
}

fn nearest<'k>(word: &str, known: &[&'k str]) -> Option<&'k str> {
    known
        .iter()
        .map(|&candidate| (strsim::jaro_winkler(word, candidate), candidate))
        .filter(|&(alike, _)| alike >= ALIKE_MIN)
        .max_by(|(one, _), (other, _)| one.total_cmp(other))
        .map(|(_, candidate)| candidate)
}

/// The words between back quotes.
fn quoted(list: &str) -> Vec<&str> {
    list.split('`').skip(1).step_by(2).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(message: &str, expected: &str, hint: Option<&str>) {
        let found = advise(message);
        assert_eq!(found.message, expected);
        assert_eq!(found.hint.as_deref(), hint, "{message}");
    }

    #[test]
    fn unknown_key_is_left_without_a_suggestion() {
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
    }

    #[test]
    fn range_is_given_in_the_words_of_rust() {
        check(
            "invalid value: integer `70000`, expected u16",
            "invalid value: integer `70000`, expected an integer from 0 to 65535",
            None,
        );
    }

    #[test]
    fn unknown_word_gets_a_suggestion_that_is_far_from_it() {
        let message = "unknown value `s3fifo`, expected one of `s3-fifo`, `sieve`, `lru`";
        check(message, message, Some("did you mean `s3-fifo`?"));
        let message = "unknown value `arc`, expected one of `s3-fifo`, `sieve`, `lru`";
        check(message, message, None);
        check(
            "unknown unit `MB`, expected one of `B`, `MiB`; did you mean `64MiB`?",
            "unknown unit `MB`, expected one of `B`, `MiB`",
            Some("did you mean `64MiB`?"),
        );
    }
}
