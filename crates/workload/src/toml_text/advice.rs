//! What was probably meant: unknown keys and words, with the known ones beside.

use super::alike::all_nearest;

/// How a hint begins that guesses nothing: it lists the keys.
pub const KNOWN_KEYS: &str = "the keys known here are ";

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
        let hint = did_you_mean(&all_nearest(word, &known));
        return advice(message, hint);
    }
    in_words_of_files(message)
}

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
    let belongs = || home_of(word).map(|path| format!("that key has another place: `{path}`"));
    did_you_mean(&all_nearest(word, known))
        .or_else(belongs)
        .unwrap_or_else(|| format!("the {what} known here are {}", known.join(", ")))
}

fn did_you_mean(words: &[&str]) -> Option<String> {
    let (last, others) = words.split_last()?;
    let others = others.iter().map(|word| format!("`{word}`"));
    let others = others.collect::<Vec<_>>().join(", ");
    Some(match others.is_empty() {
        true => format!("did you mean `{last}`?"),
        false => format!("did you mean {others} or `{last}`?"),
    })
}

/// The word, and those that are known. `rest` begins after the back quote that opens the word.
fn word_and_known(rest: &str) -> (&str, Vec<&str>) {
    let (word, known) = rest.split_once('`').unwrap_or((rest, ""));
    (word, known.split('`').skip(1).step_by(2).collect())
}

/// The words of a file in the place of those of Rust and of its libraries.
fn in_words_of_files(message: &str) -> Advice {
    if message.ends_with("expected literal string") {
        return advice(
            "a value is expected here",
            Some("text stands in quotes: \"text\"".into()),
        );
    }
    let parts = ["invalid type: ", "invalid value: "]
        .iter()
        .find_map(|kind| {
            let (found, expected) = message.strip_prefix(kind)?.split_once(", expected ")?;
            Some((found, expected))
        });
    let Some((found, expected)) = parts else {
        return advice(message, None);
    };
    let is_table = expected == "a map" || expected.starts_with("struct ");
    let is_list = expected == "a sequence" || expected.starts_with("a list");
    let hint = match found {
        "map" if is_list => Some("tables of a list have two brackets: `[[name]]`"),
        "sequence" if is_table => Some("a single table has one bracket on each side: `[name]`"),
        _ if is_list => Some("a list stands in brackets, also of one value: `[\"a\"]`"),
        _ => None,
    };
    let hint = hint.map_or_else(|| with_unit(found, expected), |hint| Some(hint.to_owned()));
    let expected = match expected {
        "a sequence" => "a list".to_owned(),
        _ if is_table => "a table".to_owned(),
        _ => kind_of_number(expected),
    };
    let found = match found {
        "map" => "a table".to_owned(),
        "sequence" => "a list".to_owned(),
        found => match found.split_once(' ') {
            Some(("floating", rest)) => rest.replacen("point", "the number", 1),
            Some((kind @ ("integer" | "boolean" | "string"), rest)) => {
                format!("the {kind} {}", rest.trim_end_matches(" as i128"))
            }
            _ => found.to_owned(),
        },
    };
    let message = format!("{found} stands where {expected} is expected");
    advice(&message, hint)
}

/// How the number of `found` is written, where a value with a unit is expected.
fn with_unit(found: &str, expected: &str) -> Option<String> {
    let number = found.strip_prefix("integer `")?;
    let end = number.find(|character: char| !character.is_ascii_digit())?;
    let number = &number[..end];
    let units = ["s", "min"].map(|unit| format!("\"{number}{unit}\""));
    (expected.contains("with its unit") && !number.is_empty())
        .then(|| format!("give it a unit, in quotes: {} or {}", units[0], units[1]))
}

/// Ranges in the place of Rust's types.
fn kind_of_number(expected: &str) -> String {
    let integer = |most: u64| format!("an integer from 0 to {most}");
    match expected {
        "u8" => integer(u8::MAX.into()),
        "u16" => integer(u16::MAX.into()),
        "u32" => integer(u32::MAX.into()),
        // TOML has no larger ones
        "u64" => integer(i64::MAX.unsigned_abs()),
        "f64" => "a number".to_owned(),
        other => other.to_owned(),
    }
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
                &format!("the integer `70000` stands where {range} is expected"),
                None,
            );
        }
    }

    #[test]
    fn kinds_of_values_are_those_of_the_file() {
        for (message, expected, hint) in [
            (
                "invalid type: integer `5`, expected struct Cache",
                "the integer `5` stands where a table is expected",
                None,
            ),
            (
                "invalid type: string \"a\", expected a sequence",
                "the string \"a\" stands where a list is expected",
                Some("a list stands in brackets, also of one value: `[\"a\"]`"),
            ),
            (
                "invalid type: map, expected a sequence",
                "a table stands where a list is expected",
                Some("tables of a list have two brackets: `[[name]]`"),
            ),
            (
                "invalid type: sequence, expected struct Cache",
                "a list stands where a table is expected",
                Some("a single table has one bracket on each side: `[name]`"),
            ),
            (
                "invalid type: integer `5`, expected a duration with its unit, such as \"30s\"",
                "the integer `5` stands where a duration with its unit, such as \"30s\" is expected",
                Some("give it a unit, in quotes: \"5s\" or \"5min\""),
            ),
            (
                "invalid type: integer `-5`, expected a duration with its unit, such as \"30s\"",
                "the integer `-5` stands where a duration with its unit, such as \"30s\" is expected",
                None,
            ),
            (
                "invalid type: floating point `2.5`, expected u16",
                "the number `2.5` stands where an integer from 0 to 65535 is expected",
                None,
            ),
            (
                "invalid type: integer `99999999999999999999` as i128, expected u8",
                "the integer `99999999999999999999` stands where an integer from 0 to 255 is expected",
                None,
            ),
            (
                "string values must be quoted, expected literal string",
                "a value is expected here",
                Some("text stands in quotes: \"text\""),
            ),
        ] {
            check(message, expected, hint);
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
