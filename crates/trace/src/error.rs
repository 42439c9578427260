//! Why a trace cannot be read or written.

use std::fmt;
use std::io;
use std::path::Path;
use weir_workload::output;

/// Whose fault it is, which decides how a program ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// What was given is not what is needed: no trace, a newer one, a foreign one with a column of
    /// another kind.
    Usage,
    /// The outside: a file that cannot be read or written, or that is damaged.
    Outside,
}

/// What could not be done, why, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceError {
    /// Whose fault.
    pub fault: Fault,
    /// What could not be done: a fragment that names the file.
    pub what: String,
    /// Why: a fragment that holds the place and the value.
    pub cause: String,
    /// What to do.
    pub hint: Option<String>,
}

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.what, self.cause)?;
        match &self.hint {
            Some(hint) => write!(f, " ({hint})"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for TraceError {}

/// The cause, before the caller adds the name of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Wrong {
    pub(super) fault: Fault,
    pub(super) cause: String,
    pub(super) hint: Option<String>,
}

impl Wrong {
    /// The outside failed.
    pub(super) fn outside(cause: impl fmt::Display) -> Self {
        Self {
            fault: Fault::Outside,
            cause: cause.to_string(),
            hint: None,
        }
    }

    /// A file could not be written.
    pub(super) fn output(path: &Path, error: &io::Error) -> Self {
        Self {
            hint: output::hint(path, error),
            ..Self::outside(error)
        }
    }

    /// What was given is not what is needed.
    pub(super) fn usage(cause: impl Into<String>, hint: impl Into<String>) -> Self {
        Self {
            fault: Fault::Usage,
            cause: cause.into(),
            hint: Some(hint.into()),
        }
    }

    /// The file is not what was written.
    pub(super) fn damaged(cause: impl fmt::Display) -> Self {
        Self {
            fault: Fault::Outside,
            cause: format!("it is damaged: {cause}"),
            hint: Some(
                "make it again, or take it from where it was copied; nothing of it was used".into(),
            ),
        }
    }

    /// Says what could not be done.
    pub(super) fn at(self, what: impl Into<String>) -> TraceError {
        TraceError {
            fault: self.fault,
            what: what.into(),
            cause: self.cause,
            hint: self.hint,
        }
    }
}
