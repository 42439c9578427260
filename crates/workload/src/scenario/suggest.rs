//! What was probably meant: unknown keys and words, with the known ones beside.

/// A message as serde and our own types word it, taken apart for people: what is wrong, and what to do.
pub(super) fn advise(message: &str) -> (String, Option<String>) {
    if let Some((problem, meant)) = message.split_once("; did you mean ") {
        return (problem.to_owned(), Some(format!("did you mean {meant}")));
    }
    if let Some(rest) = message.strip_prefix("unknown field `") {
        return unknown("key", rest);
    }
    if let Some(rest) = message.strip_prefix("unknown variant `") {
        return unknown("value", rest);
    }
    if let Some(rest) = message.strip_prefix("missing field `") {
        let hint =
            "`weir bench scenarios NAME` prints a built-in scenario with every key explained";
        return (format!("missing key `{rest}"), Some(hint.to_owned()));
    }
    (with_kind_of_number(message), None)
}

/// serde names Rust's types; people know ranges.
fn with_kind_of_number(message: &str) -> String {
    let kinds = [
        (
            ", expected u32",
            format!(", expected an integer from 0 to {}", u32::MAX),
        ),
        (
            ", expected u64",
            format!(", expected an integer from 0 to {}", i64::MAX),
        ),
        (", expected f64", ", expected a number".to_owned()),
    ];
    let named = kinds
        .iter()
        .find_map(|(name, kind)| Some(format!("{}{kind}", message.strip_suffix(name)?)));
    named.unwrap_or_else(|| message.to_owned())
}

/// The word most like `word`, if one is.
pub(super) fn nearest<'k>(word: &str, known: &[&'k str]) -> Option<&'k str> {
    known
        .iter()
        .map(|&candidate| (strsim::jaro_winkler(word, candidate), candidate))
        .filter(|&(alike, _)| alike >= ALIKE_MIN)
        .max_by(|(one, _), (other, _)| one.total_cmp(other))
        .map(|(_, candidate)| candidate)
}

/// How alike two words must be (Jaro-Winkler) for one to be suggested, as for the keys of a config file.
const ALIKE_MIN: f64 = 0.8;

/// `rest` begins after the back quote that opens the word.
fn unknown(what: &str, rest: &str) -> (String, Option<String>) {
    let (word, known) = rest.split_once('`').unwrap_or((rest, ""));
    let known: Vec<&str> = known.split('`').skip(1).step_by(2).collect();
    let hint = match nearest(word, &known) {
        Some(word) => format!("did you mean `{word}`?"),
        None => format!("known here: {}", known.join(", ")),
    };
    (format!("unknown {what} `{word}`"), Some(hint))
}
