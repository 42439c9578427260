//! `weir top`: what a running proxy does, in a terminal or once as text.

#[cfg(test)]
mod example;
mod numbers;
mod reading;
#[cfg(feature = "top")]
mod screen;
mod text;
mod units;

use super::find::{self, AdminFlags};
use crate::messages::{Failure, give, json};
use clap::builder::PossibleValuesParser;
use reading::{Selection, Source};
use std::time::Duration;
use weir_measure::Label as _;
use weir_measure::live::{TOP_ROWS_MAX, TopBy, TopOf};

/// Rows of what is printed once.
const ROWS: u16 = 20;

/// The flags of `weir top`.
#[derive(Debug, clap::Args)]
pub(crate) struct TopFlags {
    /// Of what the heaviest are listed
    #[arg(long, value_name = "WHAT", default_value = "urls",
        value_parser = PossibleValuesParser::new(TopOf::WORDS.iter().copied()))]
    of: String,

    /// By what they are found; all but requests, misses and errors are bytes
    #[arg(long, value_name = "MEASURE", default_value = "to-clients",
        value_parser = PossibleValuesParser::new(TopBy::WORDS.iter().copied()))]
    by: String,

    /// Most rows of what is printed once
    #[arg(long, value_name = "N", default_value_t = ROWS,
        value_parser = clap::value_parser!(u16).range(1..=i64::from(TOP_ROWS_MAX)))]
    rows: u16,

    /// Print it once, as text; so it is where there is no terminal
    #[arg(long)]
    once: bool,

    /// Print what was read once, as JSON
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    admin: AdminFlags,
}

impl TopFlags {
    fn selection(&self) -> Selection {
        // clap has checked the words
        Selection {
            of: TopOf::from_word(&self.of).unwrap_or(TopOf::Urls),
            by: TopBy::from_word(&self.by).unwrap_or(TopBy::ToClients),
            rows: self.rows.into(),
        }
    }
}

/// How long each answer may take: the admin interface gives it from memory.
const ANSWER_MAX: Duration = Duration::from_secs(10);

/// Shows what a proxy does until a key ends it, or prints it once.
///
/// # Errors
///
/// A token that is wrong or missing (exit 2); no proxy, or a terminal that cannot be used (exit 3).
pub(crate) fn top(flags: &TopFlags) -> Result<(), Failure> {
    let mut endpoint = find::endpoint(&flags.admin)?;
    endpoint.answer_max.get_or_insert(ANSWER_MAX);
    let source = Source::new(endpoint);
    let selection = flags.selection();
    #[cfg(feature = "top")]
    if !flags.once && !flags.json && screen::has_terminal() {
        return screen::run(source, selection);
    }
    let reading = source.read_first(selection)?;
    if flags.json {
        give(&escaped(&json(&reading)?))
    } else {
        give(&text::page(&source.address(), &reading))
    }
}

/// JSON that a terminal can be given: what is no visible ASCII is in strings, and written in digits
/// there (RFC 8259 §7).
fn escaped(json: &str) -> String {
    let mut ascii = String::with_capacity(json.len());
    for character in json.chars() {
        match character {
            ' '..='~' | '\n' => ascii.push(character),
            _ => {
                let mut units = [0; 2];
                for unit in character.encode_utf16(&mut units) {
                    ascii.push_str(&format!("\\u{unit:04x}"));
                }
            }
        }
    }
    ascii
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_visible_ascii_and_says_the_same() {
        let reading = example::reading();
        let plain = json(&reading).expect("JSON");
        let ascii = escaped(&plain);
        assert!(
            ascii
                .bytes()
                .all(|byte| matches!(byte, b' '..=b'~' | b'\n'))
        );
        let before: serde_json::Value = serde_json::from_str(&plain).expect("JSON");
        let after: serde_json::Value = serde_json::from_str(&ascii).expect("JSON");
        assert_eq!(before, after);
        assert!(escaped("\u{7f}\u{1f600}") == "\\u007f\\ud83d\\ude00");
    }
}
