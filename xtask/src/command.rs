//! Programs that run to their end, and what they print.

use crate::failure::{During, Failure};
use crate::root;
use serde::de::DeserializeOwned;
use std::process::{Command, Stdio};

/// What a program prints.
///
/// # Errors
/// It cannot be run, or fails; the text has what it printed to standard error.
pub fn output(command: &mut Command) -> Result<String, Failure> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.stdin(Stdio::null()).output();
    let output = output.during(format_args!("run `{name}`"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let errors = String::from_utf8_lossy(&output.stderr);
    let (status, errors) = (output.status, errors.trim());
    Err(Failure::Outside(format!(
        "`{name}` ended with {status}: {errors}"
    )))
}

/// The same of a program that prints JSON.
///
/// # Errors
/// As [`output`], or it is not what is expected.
pub fn json<T: DeserializeOwned>(command: &mut Command) -> Result<T, Failure> {
    let text = output(command)?;
    let name = command.get_program().display();
    serde_json::from_str(&text).during(format_args!("understand what `{name}` prints"))
}

/// What git prints about this repository, whichever user owns it.
///
/// # Errors
/// As [`output`].
pub fn git(arguments: &[&str]) -> Result<String, Failure> {
    let mut git = Command::new("git");
    git.args(["-c", "safe.directory=*"]).args(arguments);
    output(git.current_dir(root::directory()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failure_of_a_program_has_its_status_and_standard_error() {
        let shell = |script| output(Command::new("sh").args(["-c", script]));
        assert_eq!(shell("echo a; echo b >&2").ok().as_deref(), Some("a\n"));
        let failure = shell("echo b >&2; exit 3").expect_err("it fails");
        let text = failure.to_string();
        assert!(
            text.contains("exit status: 3") && text.ends_with(": b"),
            "{text}"
        );
    }
}
