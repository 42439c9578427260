//! What must hold of the archives, shown by the programs of those who get them.

mod container;
mod debian_tree;
mod origin;
mod served;
mod unit;

use super::Archives;
use std::path::Path;
use std::process::Command;
use xtask::command::output;
use xtask::failure::Failure;
use xtask::need;

/// What the checks are made with.
const PROGRAMS: [&str; 8] = [
    "chroot",
    "curl",
    "lintian",
    "mmdebstrap",
    "mount",
    "runc",
    "systemd-analyze",
    "unshare",
];

/// Runs all checks.
///
/// # Errors
/// A program is missing or fails, or a check says no.
pub(super) fn run(archives: &Archives) -> Result<(), Failure> {
    if !rustix::process::geteuid().is_root() {
        return Err(Failure::Outside(
            "to install into a Debian tree takes root".to_owned(),
        ));
    }
    need::programs(&PROGRAMS)?;
    println!("unit: {}", unit::check()?);
    lint(&archives.deb)?;
    println!("package: lintian has no warning");
    container::check(&archives.image)?;
    println!("image: runs, not as root, with a read-only root and the unit's system calls");
    let first_look = debian_tree::check(&archives.deb)?;
    println!("package: installed, upgraded, removed and purged");
    println!(
        "first look: {:.1} s from install to the first saved byte",
        first_look.as_secs_f64()
    );
    Ok(())
}

/// Errors and warnings of lintian are refused. What it is only unsure of are spelling and hardening
/// of a program in Rust.
fn lint(deb: &Path) -> Result<(), Failure> {
    let mut lintian = Command::new("lintian");
    lintian.args(["--allow-root", "--no-cfg", "--fail-on", "error,warning"]);
    let said = lintian.arg(deb).output();
    let said = said.map_err(|error| Failure::Outside(format!("cannot run `lintian`: {error}")))?;
    if said.status.success() {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&said.stdout).into_owned();
    let errors = String::from_utf8_lossy(&said.stderr);
    Err(Failure::Refused(format!(
        "lintian says no:\n{text}{errors}"
    )))
}

/// What a program prints, or what it is for a check that it fails.
fn must(command: &mut Command) -> Result<String, Failure> {
    output(command).map_err(|failure| Failure::Refused(failure.to_string()))
}

/// Says no unless it holds.
fn require(holds: bool, what: impl FnOnce() -> String) -> Result<(), Failure> {
    if holds {
        Ok(())
    } else {
        Err(Failure::Refused(what()))
    }
}
