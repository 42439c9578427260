//! Filter lists, as they are read.

use adblock::lists::{FilterFormat, FilterParseError, ParseOptions, RuleTypes, parse_filter};
use std::fs::File;
use std::io::Read as _;
use weir_extend::LoadError;

/// Most bytes of one list. The largest in common use have 10 MiB.
const LIST_BYTES_MAX: u64 = 32 * 1024 * 1024;

/// Most bytes of a line that are shown.
const SHOWN_BYTES_MAX: usize = 60;

/// A list that was read.
#[derive(Debug)]
pub(super) struct FilterList {
    path: String,
    pub(super) text: String,
    /// Rules about requests.
    rules: usize,
    /// Lines that are no rule that is understood, and the first of them.
    unknown: usize,
    first_unknown: Option<usize>,
}

impl FilterList {
    /// Reads a file. `strict` refuses one with a line that is not understood.
    pub(super) fn read(
        option: &str,
        path: &str,
        format: FilterFormat,
        strict: bool,
    ) -> Result<Self, LoadError> {
        let refuse = |what: String, hint: &str| {
            LoadError::new(option, format!("`{path}`: {what}"), hint.to_owned())
        };
        let hint = "name a file that weir can read, of at most 32 MiB";
        let mut bytes = Vec::new();
        File::open(path)
            .and_then(|file| file.take(LIST_BYTES_MAX + 1).read_to_end(&mut bytes))
            .map_err(|error| refuse(format!("cannot read it: {error}"), hint))?;
        if bytes.len() as u64 > LIST_BYTES_MAX {
            return Err(refuse("it is too large".to_owned(), hint));
        }
        let text = String::from_utf8(bytes).map_err(|error| {
            let before = &error.as_bytes()[..error.utf8_error().valid_up_to()];
            let line = before.split(|byte| *byte == b'\n').count();
            refuse(format!("line {line} is not UTF-8"), "name a filter list")
        })?;
        let mut list = Self {
            path: path.to_owned(),
            text,
            rules: 0,
            unknown: 0,
            first_unknown: None,
        };
        if let Some((line, error)) = list.count(format).filter(|_| strict) {
            let what = format!("line {line}: {error}: `{}`", list.shown(line));
            return Err(refuse(
                what,
                "correct or remove it, or set `strict = false`",
            ));
        }
        if list.rules == 0 || list.text.trim_start().starts_with('<') {
            let what = "it has no rule about requests".to_owned();
            return Err(refuse(
                what,
                "name a filter list; `format` says which syntax it has",
            ));
        }
        Ok(list)
    }

    /// Counts the lines. The first that is not understood, and why.
    fn count(&mut self, format: FilterFormat) -> Option<(usize, FilterParseError)> {
        let mut first = None;
        for (index, line) in self.text.lines().enumerate() {
            match parse_filter(line, false, parse_options(format)) {
                Ok(_) => self.rules += 1,
                // comments, and rules about pages
                Err(FilterParseError::Empty | FilterParseError::Unsupported) => {}
                Err(error) => {
                    self.unknown += 1;
                    first.get_or_insert((index + 1, error));
                }
            }
        }
        self.first_unknown = first.as_ref().map(|(line, _)| *line);
        first
    }

    fn shown(&self, line: usize) -> String {
        let text = self.text.lines().nth(line - 1).unwrap_or_default().trim();
        let mut end = text.len().min(SHOWN_BYTES_MAX);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        text[..end].to_owned()
    }

    /// What an operator should know of it.
    pub(super) fn note(&self) -> String {
        let counted = format!("`{}`: {} rules", self.path, self.rules);
        match self.first_unknown {
            None => counted,
            Some(line) => format!(
                "{counted}; {} lines are not understood, the first is line {line}: `{}`",
                self.unknown,
                self.shown(line)
            ),
        }
    }
}

/// How a list of this format is read: for its rules about requests alone.
pub(super) fn parse_options(format: FilterFormat) -> ParseOptions {
    ParseOptions {
        format,
        rule_types: RuleTypes::NetworkOnly,
        ..ParseOptions::default()
    }
}
