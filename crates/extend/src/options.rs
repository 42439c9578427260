//! The options of a module: what its table in the configuration says beside the settings that every
//! module has.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;

/// Options by name, and the settings that every module has.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Options {
    values: BTreeMap<String, OptionValue>,
    settings: ModuleSettings,
}

/// What the settings say that every module has, as far as a module can depend on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModuleSettings {
    /// Its name.
    pub name: String,
    /// How long a call may take.
    pub deadline: Duration,
    /// How long a request may wait for what the module deferred for.
    pub wait: Duration,
    /// Content of one message that it may leave for a later call, bytes.
    pub hold_bytes: usize,
}

impl Default for ModuleSettings {
    /// No name, and what `module[].deadline`, `wait` and `hold` are by default.
    fn default() -> Self {
        Self {
            name: String::new(),
            deadline: Duration::from_millis(10),
            wait: Duration::from_secs(5),
            hold_bytes: 256 * 1024,
        }
    }
}

/// The value of an option.
#[derive(Clone, Debug, PartialEq)]
pub enum OptionValue {
    /// A string.
    Text(String),
    /// A whole number.
    Number(i64),
    /// `true` or `false`.
    Flag(bool),
    /// Several values.
    List(Vec<OptionValue>),
    /// Values by name.
    Table(BTreeMap<String, OptionValue>),
}

impl OptionValue {
    /// What it is, for messages.
    #[must_use]
    pub const fn form(&self) -> &'static str {
        match self {
            Self::Text(_) => "a string",
            Self::Number(_) => "a number",
            Self::Flag(_) => "true or false",
            Self::List(_) => "a list",
            Self::Table(_) => "a table",
        }
    }

    /// A size in bytes: a number of bytes, or a string with a unit, such as `"64MiB"`, as the
    /// settings of the proxy have it. `None` if it is none.
    #[must_use]
    pub fn size_bytes(&self) -> Option<u64> {
        let text = match self {
            Self::Number(bytes) => return u64::try_from(*bytes).ok(),
            Self::Text(text) => text,
            _ => return None,
        };
        let (number, shift) = SIZE_UNITS
            .into_iter()
            .find_map(|(unit, shift)| Some((text.strip_suffix(unit)?, shift)))?;
        let number = number.trim_end_matches(' ');
        let is_number = number.bytes().all(|byte| byte.is_ascii_digit());
        let number: u64 = number.parse().ok().filter(|_| is_number)?;
        number.checked_mul(1 << shift)
    }
}

/// The units of sizes, and how many bits each shifts. The last one is a part of the others.
const SIZE_UNITS: [(&str, u32); 4] = [("KiB", 10), ("MiB", 20), ("GiB", 30), ("B", 0)];

/// Why a module is not loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadError {
    /// The option that is wrong; empty if it is none.
    pub option: String,
    /// What is wrong with it.
    pub what: String,
    /// What to do.
    pub hint: String,
}

impl LoadError {
    /// `what` is wrong with `option`; `hint` says what to do. Characters that a terminal or a
    /// reader of lines may take for more than text are escaped: a message may quote the module.
    #[must_use]
    pub fn new(
        option: impl Into<String>,
        what: impl Into<String>,
        hint: impl Into<String>,
    ) -> Self {
        Self {
            option: visible(&option.into()),
            what: visible(&what.into()),
            hint: visible(&hint.into()),
        }
    }
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.option.is_empty() {
            write!(f, "{}: ", self.option)?;
        }
        write!(f, "{}; {}", self.what, self.hint)
    }
}

impl core::error::Error for LoadError {}

fn visible(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            // a path may have them
            '\'' | '"' | '\\' => out.push(character),
            _ => out.extend(character.escape_debug()),
        }
    }
    out
}

impl Options {
    /// These options.
    #[must_use]
    pub fn new(values: BTreeMap<String, OptionValue>) -> Self {
        Self {
            values,
            settings: ModuleSettings::default(),
        }
    }

    /// The same of a module with these settings.
    #[must_use]
    pub fn with_settings(mut self, settings: ModuleSettings) -> Self {
        self.settings = settings;
        self
    }

    /// The settings that every module has.
    #[must_use]
    pub const fn settings(&self) -> &ModuleSettings {
        &self.settings
    }

    /// All options that were not taken out.
    #[must_use]
    pub const fn values(&self) -> &BTreeMap<String, OptionValue> {
        &self.values
    }

    /// Takes out an option.
    pub fn take(&mut self, name: &str) -> Option<OptionValue> {
        self.values.remove(name)
    }

    /// Ends the reading of options: none may be left, as a misspelt one would have no effect.
    ///
    /// # Errors
    ///
    /// One is left; `known` are those that there are.
    pub fn finish(self, known: &[&str]) -> Result<(), LoadError> {
        match self.values.into_keys().next() {
            None => Ok(()),
            Some(unknown) => {
                let hint = alloc::format!("use {}", known.join(", "));
                Err(LoadError::new(unknown, "there is no such option", hint))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn option_that_is_not_read_is_refused() {
        let values = BTreeMap::from([
            ("a".to_owned(), OptionValue::Flag(true)),
            ("b".to_owned(), OptionValue::Number(1)),
        ]);
        let mut options = Options::new(values);
        assert_eq!(options.take("a"), Some(OptionValue::Flag(true)));
        assert_eq!(options.take("a"), None);
        let error = options.finish(&["a", "c"]).expect_err("`b` is left");
        assert_eq!(error.to_string(), "b: there is no such option; use a, c");
        assert_eq!(Options::default().finish(&[]), Ok(()));
    }

    #[test]
    fn size_is_a_number_of_bytes_or_a_number_with_a_binary_unit() {
        let size = |text: &str| OptionValue::Text(text.to_owned()).size_bytes();
        for (text, expected) in [
            ("0B", Some(0)),
            ("1KiB", Some(1 << 10)),
            ("64MiB", Some(64 << 20)),
            ("2GiB", Some(2 << 30)),
            ("17179869183GiB", Some(17_179_869_183 << 30)),
            ("17179869184GiB", None),
            ("99999999999999999999B", None),
            ("64 MiB", Some(64 << 20)),
            ("64MB", None),
            ("64", None),
            ("MiB", None),
            ("+1MiB", None),
            ("-1MiB", None),
            (" 1MiB", None),
            ("", None),
        ] {
            assert_eq!(size(text), expected, "{text}");
        }
        assert_eq!(OptionValue::Number(7).size_bytes(), Some(7));
        assert_eq!(OptionValue::Number(-7).size_bytes(), None);
        assert_eq!(OptionValue::Flag(true).size_bytes(), None);
    }

    #[test]
    fn error_that_quotes_a_module_has_no_character_that_is_not_text() {
        let quoted = "it said: \x1b[2J\r\nerror: forged \u{202e}\u{7f}\0";
        let error = LoadError::new("file", quoted, "correct it");
        assert_eq!(
            error.to_string(),
            "file: it said: \\u{1b}[2J\\r\\nerror: forged \\u{202e}\\u{7f}\\0; correct it"
        );
        // what is text is left as it is
        let path = "`/etc/Über \"a\\b\" 'c'`: no such file";
        assert_eq!(LoadError::new("", path, "").what, path);
    }
}
