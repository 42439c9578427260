//! Why a chore ended early, grouped by whose fault it is; the exit codes are those of every command
//! of the house.

use std::fmt;

/// A chore that did not end well.
#[derive(Debug)]
pub enum Failure {
    /// A check said no: exit code 1.
    Refused(String),
    /// The command line or a file of this repository cannot be understood: exit code 2.
    Usage(String),
    /// A program, a file system or the network did not do its part: exit code 3.
    Outside(String),
}

impl Failure {
    /// Of the process that ends with it.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Refused(_) => 1,
            Self::Usage(_) => 2,
            Self::Outside(_) => 3,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(what) | Self::Usage(what) | Self::Outside(what) => f.write_str(what),
        }
    }
}

impl From<Failure> for String {
    fn from(failure: Failure) -> Self {
        failure.to_string()
    }
}

/// Turns an error of the outside into a [`Failure`] that says what was being done.
pub trait During<T> {
    /// `what` is a fragment after "cannot".
    ///
    /// # Errors
    /// There was one.
    fn during(self, what: impl fmt::Display) -> Result<T, Failure>;
}

impl<T, E: fmt::Display> During<T> for Result<T, E> {
    fn during(self, what: impl fmt::Display) -> Result<T, Failure> {
        self.map_err(|error| Failure::Outside(format!("cannot {what}: {error}")))
    }
}
