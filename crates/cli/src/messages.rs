//! A failure: what could not be done, why, and what to do about it.
//!
//! ```text
//! error: cannot use config `weir.toml`
//!   caused by: weir.toml:2:1: unknown key `memroy`
//!      2 | memroy = "1GiB"
//!        | ^^^^^^
//! hint: did you mean `memory`?
//! ```

use serde::Serialize;
use std::fmt;
use std::io::{self, Write as _};
use std::path::Path;
use std::process::ExitCode;
use weir_workload::output;

/// How the process ends when it is not done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// A check ran and said no: a store is damaged, a response is not stored.
    CheckSaidNo = 1,
    /// Bad usage or config: nothing was started.
    BadUsage = 2,
    /// The outside failed: an address in use, a log that cannot be written.
    OutsideFailed = 3,
}

/// A failure as it is printed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    /// The exit code.
    pub(crate) exit: Exit,
    /// What could not be done: a fragment after `error: `.
    pub(crate) what: String,
    /// Why: a fragment after `caused by: `, with further lines indented under it.
    pub(crate) cause: String,
    /// What to do about it: a fragment after `hint: `.
    pub(crate) hint: Option<String>,
}

impl Failure {
    /// The usage or the config is wrong.
    pub(crate) fn usage(what: impl Into<String>, cause: impl ToString) -> Self {
        Self {
            exit: Exit::BadUsage,
            what: what.into(),
            cause: cause.to_string(),
            hint: None,
        }
    }

    /// A check ran and said no.
    pub(crate) fn check_said_no(what: impl Into<String>, cause: impl ToString) -> Self {
        Self {
            exit: Exit::CheckSaidNo,
            ..Self::usage(what, cause)
        }
    }

    /// Something outside of us failed.
    pub(crate) fn outside(what: impl Into<String>, cause: impl ToString) -> Self {
        Self {
            exit: Exit::OutsideFailed,
            ..Self::usage(what, cause)
        }
    }

    /// The same failure with a hint.
    pub(crate) fn hint(self, hint: impl Into<String>) -> Self {
        self.hint_if(Some(hint.into()))
    }

    /// The same failure with this hint, if there is one.
    pub(crate) fn hint_if(self, hint: Option<String>) -> Self {
        Self { hint, ..self }
    }

    /// Several failures of one attempt as one, and those `more` that are not described: what the
    /// first could not do, and each cause with its hint.
    ///
    /// # Panics
    ///
    /// Without any failure.
    pub(crate) fn join(mut all: Vec<Self>, more: usize) -> Self {
        if all.len() == 1 && more == 0 {
            return all.remove(0);
        }
        let causes: Vec<String> = all.iter().map(Self::cause_and_hint).collect();
        let mut cause = causes.join("\n  caused by: ");
        if more > 0 {
            cause.push_str(&format!("\n  and {more} more"));
        }
        let what = format!("{}: {} mistakes", all[0].what, all.len() + more);
        Self {
            what,
            cause,
            hint: None,
            exit: all[0].exit,
        }
    }

    fn cause_and_hint(&self) -> String {
        match &self.hint {
            Some(hint) => format!("{}\n       hint: {hint}", self.cause),
            None => self.cause.clone(),
        }
    }

    /// A file that the operator named could not be written.
    pub(crate) fn output(path: &Path, error: &io::Error) -> Self {
        Self::outside(format!("cannot write `{}`", path.display()), error)
            .hint_if(output::hint(path, error))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "error: {}", self.what)?;
        write!(f, "  caused by: {}", self.cause)?;
        match &self.hint {
            Some(hint) => write!(f, "\nhint: {hint}"),
            None => Ok(()),
        }
    }
}

/// Prints a failure and gives the exit code.
pub(crate) fn exit_code(done: Result<(), Failure>) -> ExitCode {
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            tell(&failure);
            ExitCode::from(failure.exit as u8)
        }
    }
}

/// A message on stderr. A closed stderr is no failure.
pub(crate) fn tell(message: &impl fmt::Display) {
    let _unread = writeln!(std::io::stderr(), "{message}");
}

/// `data` as JSON on stdout.
pub(crate) fn give_json(data: &impl Serialize) -> Result<(), Failure> {
    give(&json(data)?)
}

/// `data` as JSON for people, with a line end.
pub(crate) fn json(data: &impl Serialize) -> Result<String, Failure> {
    let text = serde_json::to_string_pretty(data)
        .map_err(|error| Failure::outside("cannot write JSON", error))?;
    Ok(text + "\n")
}

/// Data on stdout. A reader that has seen enough (`| head`) is no failure.
pub(crate) fn give(data: &str) -> Result<(), Failure> {
    give_bytes(data.as_bytes())
}

/// The same of data that need not be text.
pub(crate) fn give_bytes(data: &[u8]) -> Result<(), Failure> {
    let mut stdout = std::io::stdout().lock();
    match stdout.write_all(data).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Failure::outside("cannot write to stdout", &error))
        }
        _ => Ok(()),
    }
}
