//! The command line of a chore that measures: options with a value, and `--install`.

use crate::failure::Failure;
use crate::proxy::contender::{self, Contender};
use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;

/// What is asked for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Task<Options> {
    /// Print the table of this record.
    Show(String),
    Measure(Options),
}

/// What can be said of a measurement.
pub(crate) trait Said: Default {
    /// Programs that are missing are to be installed.
    fn install(&mut self);

    /// Takes in one option; `false`: it is none of these.
    ///
    /// # Errors
    /// Its value cannot be meant.
    fn set(&mut self, option: Given<'_>) -> Result<bool, Failure>;
}

/// An option and its value, as they were given.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Given<'a> {
    pub(crate) name: &'a str,
    pub(crate) value: &'a str,
}

impl Given<'_> {
    /// Writes a number within `range` to `place`.
    pub(crate) fn number<T>(self, place: &mut T, range: RangeInclusive<T>) -> Result<(), Failure>
    where
        T: FromStr + PartialOrd + Display,
    {
        let parsed = self.value.parse().ok();
        let Some(number) = parsed.filter(|number| range.contains(number)) else {
            let Self { name, value } = self;
            return Err(Failure::Usage(format!(
                "`{name} {value}` is not a number from {} to {}",
                range.start(),
                range.end()
            )));
        };
        *place = number;
        Ok(())
    }

    /// Writes a list of names of `all` to `place`.
    pub(crate) fn contenders(
        self,
        place: &mut Vec<String>,
        all: &'static [Contender],
    ) -> Result<(), Failure> {
        let names = self.value.split(',').map(|name| name.trim().to_owned());
        *place = names.collect();
        contender::named(all, place).map(|_| ())
    }

    /// Writes the name of a file to `place`.
    pub(crate) fn file(self, place: &mut Option<String>) {
        *place = Some(self.value.to_owned());
    }
}

/// # Errors
/// An option that nobody knows, without a value, or with one that cannot be meant.
pub(crate) fn parse<Options: Said>(arguments: &[String]) -> Result<Task<Options>, Failure> {
    let mut options = Options::default();
    let mut rest = arguments.iter();
    while let Some(name) = rest.next() {
        if name == "--install" {
            options.install();
            continue;
        }
        let Some(value) = rest.next() else {
            return Err(Failure::Usage(format!(
                "`{name}` wants a value, or is no option; see `cargo xtask help`"
            )));
        };
        if name == "--show" {
            return Ok(Task::Show(value.clone()));
        }
        if !options.set(Given { name, value })? {
            return Err(Failure::Usage(format!(
                "`{name}` is not an option; see `cargo xtask help`"
            )));
        }
    }
    Ok(Task::Measure(options))
}

/// A line of options, taken apart as a shell does that knows no quotes; `None` if it is refused.
#[cfg(test)]
pub(crate) fn parse_line<Options: Said>(line: &str) -> Option<Task<Options>> {
    let arguments: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
    parse(&arguments).ok()
}
