//! Programs built from this repository.

use crate::failure::{During, Failure};
use crate::root;
use std::process::Stdio;

/// Builds one program in release and asks cargo where it is.
///
/// # Errors
/// It cannot be built.
pub fn build(what: &[&str], name: &str) -> Result<String, Failure> {
    build_for_tests(&[&["--release"], what].concat(), name)
}

/// Builds one program as tests use it, which is quickly built and slow, and asks cargo where it is.
///
/// # Errors
/// It cannot be built.
pub fn build_for_tests(what: &[&str], name: &str) -> Result<String, Failure> {
    let output = root::cargo()
        .args(["build", "--locked"])
        .args(["--message-format", "json-render-diagnostics"])
        .args(what)
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .during("run cargo build")?;
    if !output.status.success() {
        return Err(Failure::Refused(format!("{name} cannot be built")));
    }
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let messages = text
        .lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    let named = messages.filter(|message| message["target"]["name"] == name);
    let executable = named
        .filter_map(|message| message["executable"].as_str().map(str::to_owned))
        .next_back();
    executable.ok_or_else(|| Failure::Outside(format!("cargo does not say where {name} is")))
}
