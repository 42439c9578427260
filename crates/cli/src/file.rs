//! A config file: its text, what it says, and where it says it.

mod likely;
mod unreadable;

use crate::messages::Failure;
use std::io::Read as _;
use std::ops::Range;
use std::path::{Path, PathBuf};
use toml::de::DeTable;
use unreadable::Unreadable;
use weir_proxy::config::{Config, Invalid, Mistakes, settings};
use weir_workload::toml_text::{self, KNOWN_KEYS, LINE_CHARS_MAX, Place};

/// A config file as it was read.
#[derive(Clone, Debug)]
pub(crate) struct Document {
    path: PathBuf,
    text: String,
}

impl Document {
    /// Reads the file at `path`.
    ///
    /// # Errors
    ///
    /// When it cannot be read, is longer than [`FILE_BYTES_MAX`], or is not UTF-8.
    pub(crate) fn read(path: &Path) -> Result<Self, Failure> {
        let bytes = read_bytes(path).map_err(|error| {
            Failure::usage(format!("cannot read config `{}`", path.display()), error)
        })?;
        match String::from_utf8(bytes) {
            Ok(text) => Ok(Self {
                path: path.to_owned(),
                text,
            }),
            Err(error) => Err(not_text(path, &error).into_failure(path)),
        }
    }

    /// What the file says. Values are well formed; whether they make sense together is not checked
    /// here.
    ///
    /// # Errors
    ///
    /// Syntax errors; or unknown keys, and values that are none of their kind.
    pub(crate) fn parse(&self) -> Result<Config, Failure> {
        let mut config: Config =
            toml::from_str(&self.text).map_err(|error| self.unreadable(error))?;
        self.add_lines(&mut config);
        Ok(config)
    }

    /// The failure of a text that cannot be read, by what stands first in it.
    fn unreadable(&self, first: toml::de::Error) -> Failure {
        let found = Unreadable::find(&self.text, first);
        let errors = found.errors.iter().map(|error| self.refusal(error));
        let ranges = found.mistakes.described().iter();
        let mut all: Vec<ConfigError> = errors.chain(ranges.map(|it| self.at_key(it))).collect();
        let position = |error: &ConfigError| error.place.as_ref().map(|it| (it.line, it.column));
        all.sort_by_key(position);
        // what is left of a table that is none has the same mistake
        all.dedup_by(|one, other| one.message == other.message && position(one) == position(other));
        let failures = all.into_iter().map(|error| error.into_failure(&self.path));
        Failure::join(failures.collect(), found.more + found.mistakes.more())
    }

    /// Notes in which line each rule begins.
    fn add_lines(&self, config: &mut Config) {
        if config.rules.is_empty() {
            return;
        }
        let Ok(document) = DeTable::parse(&self.text) else {
            return;
        };
        for (index, rule) in config.rules.iter_mut().enumerate() {
            let span = toml_text::find(document.get_ref(), &format!("rule[{index}]"));
            let line = span.map(|span| Place::of(&self.text, &span).line);
            rule.line = line.and_then(|line| u32::try_from(line).ok());
        }
    }

    /// Does the file itself state this key?
    pub(crate) fn states(&self, key_path: &str) -> bool {
        self.find(key_path).is_some()
    }

    /// The failure of values that make no sense together, with the place where the file states the
    /// key.
    pub(crate) fn contradiction(&self, invalid: &Invalid) -> Failure {
        self.at_key(invalid).into_failure(&self.path)
    }

    /// The failure of all of them.
    pub(crate) fn contradictions(&self, mistakes: &Mistakes) -> Failure {
        let all = mistakes.described().iter().map(|it| self.contradiction(it));
        Failure::join(all.collect(), mistakes.more())
    }

    fn at_key(&self, invalid: &Invalid) -> ConfigError {
        let place = self
            .find(&invalid.key_path)
            .map(|span| Place::of(&self.text, &span));
        ConfigError {
            place,
            message: invalid.to_string(),
            hint: Some(invalid.hint.clone()),
        }
    }

    /// The same of values that are served all the same, in a line or two.
    pub(crate) fn warning(&self, invalid: &Invalid) -> String {
        let path = self.path.display();
        let place = match self.find(&invalid.key_path) {
            Some(span) => {
                let Place { line, column, .. } = Place::of(&self.text, &span);
                format!("{path}:{line}:{column}")
            }
            None => path.to_string(),
        };
        format!("warning: {place}: {invalid}\nhint: {}", invalid.hint)
    }

    fn find(&self, key_path: &str) -> Option<Range<usize>> {
        let document = DeTable::parse(&self.text).ok()?;
        toml_text::find(document.get_ref(), key_path)
    }

    fn refusal(&self, error: &toml::de::Error) -> ConfigError {
        let advice = toml_text::advise(error.message(), home_of);
        let span = error.span();
        let document = DeTable::parse(&self.text).ok();
        let likely = document.zip(span.as_ref());
        let likely =
            likely.and_then(|(it, span)| likely::likely(it.get_ref(), span, error.message()));
        let (message, hint) = match likely {
            Some(likely) => (likely.message, Some(likely.hint)),
            None => (None, advice.hint.map(with_all_settings)),
        };
        ConfigError {
            place: span.map(|span| Place::of(&self.text, &span)),
            message: message.unwrap_or(advice.message),
            hint,
        }
    }
}

/// A hint that lists the keys of a table says where those of the others are.
fn with_all_settings(hint: String) -> String {
    match hint.starts_with(KNOWN_KEYS) {
        true => format!("{hint}; `weir settings` lists all"),
        false => hint,
    }
}

/// The first setting anywhere whose last part is `key`.
fn home_of(key: &str) -> Option<String> {
    settings()
        .into_iter()
        .map(|setting| setting.path)
        .find(|path| path.rsplit('.').next() == Some(key))
}

/// The longest config file read, in bytes: hundreds of thousands of routes, and no device file to
/// the end.
pub(crate) const FILE_BYTES_MAX: u64 = 64 << 20;

/// What is wrong with a config file, and where.
#[derive(Debug)]
struct ConfigError {
    place: Option<Place>,
    message: String,
    hint: Option<String>,
}

impl ConfigError {
    fn into_failure(self, path: &Path) -> Failure {
        let path = path.display();
        let cause = match &self.place {
            None => self.message,
            Some(place) => format!(
                "{path}:{}:{}: {}\n{place}",
                place.line, place.column, self.message
            ),
        };
        Failure::usage(format!("cannot use config `{path}`"), cause).hint_if(self.hint)
    }
}

fn read_bytes(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    std::fs::File::open(path)?
        .take(FILE_BYTES_MAX + 1)
        .read_to_end(&mut bytes)?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(std::io::Error::other(format!(
            "it is longer than {FILE_BYTES_MAX} bytes"
        )));
    }
    Ok(bytes)
}

fn not_text(path: &Path, error: &std::string::FromUtf8Error) -> ConfigError {
    let at = error.utf8_error().valid_up_to();
    let bytes = error.as_bytes();
    // Enough for the rest of the line; what is no text becomes U+FFFD.
    let end = bytes.len().min(at + 4 * LINE_CHARS_MAX);
    let text = String::from_utf8_lossy(&bytes[..end]);
    ConfigError {
        place: Some(Place::of(&text, &(at..at + 1))),
        message: format!("byte 0x{:02x} is not UTF-8 text", bytes[at]),
        hint: Some(format!("is `{}` the config file?", path.display())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document(text: &str) -> Document {
        Document {
            path: PathBuf::from("weir.toml"),
            text: text.to_owned(),
        }
    }

    #[test]
    fn hint_for_a_misplaced_key_names_its_full_path() {
        let failure = document("memory = \"1GiB\"\n")
            .parse()
            .expect_err("it is in `cache`");
        let hint = failure.hint.expect("a hint");
        assert_eq!(hint, "that key has another place: `cache.memory`");
    }

    #[test]
    fn rule_knows_the_line_in_which_its_table_begins() {
        let text = "workers = 2\n\n[[rule]]\nbypass = true\n\n# more\n[[rule]]\nbypass = false\n";
        let config = document(text).parse().expect("a config");
        let lines: Vec<_> = config.rules.iter().map(|rule| rule.line).collect();
        assert_eq!(lines, [Some(3), Some(7)]);
    }

    #[test]
    fn truncated_config_parses_or_is_refused_with_the_error_position() {
        let whole = "# é\nworkers = 2\n[[listener]]\naddress = \"127.0.0.1:1\"\nmode = \"gateway\"\n[[route]]\nnext_hops = [\"http://a\"]\n[limits]\nconnect = \"1s\"\n";
        assert!(document(whole).parse().is_ok());
        for end in (0..whole.len()).filter(|&end| whole.is_char_boundary(end)) {
            if let Err(failure) = document(&whole[..end]).parse() {
                assert!(failure.cause.starts_with("weir.toml:"), "{end}: {failure}");
                assert!(failure.cause.contains('^'), "{end}: {failure}");
            }
        }
    }

    #[test]
    fn config_with_a_corrupt_byte_does_not_panic_the_parser() {
        let whole = b"[cache]\nmemory = \"1MiB\"\nname = 'x'\n[dns]\nservers = [\"::1\"]\n";
        for at in 0..whole.len() {
            for flip in [0x01, 0x20, 0x80, 0xff] {
                let mut bytes = whole.to_vec();
                bytes[at] ^= flip;
                if let Ok(text) = std::str::from_utf8(&bytes) {
                    let _either = document(text).parse();
                }
            }
        }
    }
}
