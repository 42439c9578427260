//! Rules of admission as words: `always`, `second-request`, `small:64KiB`.

use crate::hit_ratio::mrc::Size;
use weir_policy::admission::Rule;

/// The rule that a word means.
///
/// # Errors
/// It means none; the text says which words do.
pub fn admission_from_word(word: &str) -> Result<Rule, String> {
    match (word, word.split_once(':')) {
        ("always", _) => Ok(Rule::Always),
        ("second-request", _) => Ok(Rule::SecondRequest),
        (_, Some(("small", size))) => match size.parse()? {
            Size::Bytes(largest) => Ok(Rule::Small { largest }),
            Size::Percent(_) => Err(format!(
                "`{word}` needs a size in bytes, such as `small:64KiB`"
            )),
        },
        _ => Err(format!(
            "unknown value `{word}`, expected one of `always`, `second-request`, `small:SIZE`"
        )),
    }
}

/// The word for a rule.
#[must_use]
pub fn admission_word(rule: Rule) -> String {
    match rule {
        Rule::Always => "always".to_owned(),
        Rule::SecondRequest => "second-request".to_owned(),
        Rule::Small { largest } => format!("small:{}", Size::Bytes(largest)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn admission_rule_round_trips_as_text_and_unknown_words_are_refused() {
        for rule in [
            Rule::Always,
            Rule::SecondRequest,
            Rule::Small { largest: 65_536 },
            Rule::Small { largest: 1001 },
        ] {
            assert_eq!(admission_from_word(&admission_word(rule)), Ok(rule));
        }
        for word in ["", "small", "small:", "small:1%", "second", "Always"] {
            assert!(admission_from_word(word).is_err(), "{word}");
        }
    }
}
