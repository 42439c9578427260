//! Programs built from this repository.

pub mod h2spec;
pub mod profile;

use crate::failure::{During, Failure};
use crate::{command, root};
use std::process::Stdio;

/// Builds one program in release, as `make release` does, and returns its path from cargo.
///
/// # Errors
/// It cannot be built.
pub fn build(what: &[&str], name: &str) -> Result<String, Failure> {
    profile::warn_if_stale()?;
    profile::warn_of_other_flags();
    let guided = profile::cargo_arguments();
    let how = ["--release", &guided[0], &guided[1]];
    build_for_tests(&[&how, what].concat(), name)
}

/// Builds one program as tests use it, which is quick to build and slow, and returns its path from
/// cargo.
///
/// # Errors
/// It cannot be built.
pub fn build_for_tests(what: &[&str], name: &str) -> Result<String, Failure> {
    let mut command = root::cargo();
    command
        .args(["build", "--locked"])
        .args(["--message-format", "json-render-diagnostics"])
        .args(what)
        .stderr(Stdio::inherit());
    let text = command::output(&mut command);
    let text = text.map_err(|_| Failure::Refused(format!("{name} cannot be built")))?;
    let messages = text
        .lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    let named = messages.filter(|message| message["target"]["name"] == name);
    let executable = named
        .filter_map(|message| message["executable"].as_str().map(str::to_owned))
        .next_back();
    executable.ok_or_else(|| Failure::Outside(format!("cargo does not say where {name} is")))
}

/// The path of this program, which starts itself again in other roles.
///
/// # Errors
/// The system does not say.
pub fn own() -> Result<String, Failure> {
    let own = std::env::current_exe().during("find this program")?;
    Ok(own.display().to_string())
}
