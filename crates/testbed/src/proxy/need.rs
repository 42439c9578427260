//! Programs that a measurement needs. `cargo xtask need` knows their packages and installs them.

use crate::failure::{During, Failure};
use crate::root;
use std::path::PathBuf;

/// Where daemons live that are not on everybody's `PATH`.
const MORE_DIRECTORIES: [&str; 3] = ["/usr/local/sbin", "/usr/sbin", "/sbin"];

/// Finds a program on `PATH` or where Debian keeps daemons.
pub(crate) fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(MORE_DIRECTORIES.map(PathBuf::from))
        .map(|directory| directory.join(program))
        .find(|candidate| candidate.is_file())
}

/// Installs what is missing of these programs.
///
/// # Errors
/// A program is not known, or cannot be installed from here.
pub(crate) fn install(programs: &[&str]) -> Result<(), Failure> {
    let mut command = root::cargo();
    command.args(["xtask", "need"]).args(programs);
    let status = command.status().during("run `cargo xtask need`")?;
    if status.success() {
        return Ok(());
    }
    Err(Failure::Outside(
        "not every program could be installed".to_owned(),
    ))
}

/// Whether `cargo xtask need` has a package for a program.
#[cfg(test)]
pub(crate) fn is_known(program: &str) -> bool {
    let known = std::fs::read_to_string(root::directory().join("xtask/src/need.rs"));
    known.is_ok_and(|text| text.contains(&format!("(\"{program}\", ")))
}
