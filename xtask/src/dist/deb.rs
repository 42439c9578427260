//! The Debian package, by cargo-deb: its metadata is in `crates/cli/Cargo.toml`, maintainer scripts
//! and the unit in `packaging/debian`.

use super::parts::Parts;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use xtask::command::output;
use xtask::failure::{During, Failure};
use xtask::root;

/// The version whose output was looked at.
const CARGO_DEB: &str = "3.8.0";

/// Makes it in a directory.
pub(super) fn make(parts: &Parts, directory: &Path, is_fast: bool) -> Result<PathBuf, Failure> {
    let file = directory.join(format!(
        "weir_{}-1_{}.deb",
        parts.version, parts.architecture
    ));
    let mut deb = Command::new(tool()?);
    deb.current_dir(root::directory())
        .args(["--no-build", "--no-strip", "--locked", "--quiet"])
        .args(["--package", "weir-cli", "--output"])
        .arg(&file)
        .env("SOURCE_DATE_EPOCH", parts.epoch.to_string());
    if is_fast {
        deb.arg("--fast");
    }
    output(&mut deb)?;
    Ok(file)
}

/// cargo-deb below `target/tools`, built if it is not there.
fn tool() -> Result<PathBuf, Failure> {
    let tools = root::directory().join("target/tools");
    let tool = tools.join("bin/cargo-deb");
    let said = output(Command::new(&tool).arg("--version"));
    if said.is_ok_and(|said| said.split_whitespace().last() == Some(CARGO_DEB)) {
        return Ok(tool);
    }
    let mut install = root::cargo();
    install
        .args(["install", "cargo-deb", "--version", CARGO_DEB, "--locked"])
        .args(["--force", "--root"])
        .arg(&tools)
        // its own, so that features of dependencies are not those of this workspace
        .env("CARGO_TARGET_DIR", tools.join("build"))
        .stderr(Stdio::inherit());
    output(&mut install)?;
    std::fs::remove_dir_all(tools.join("build")).during("remove what cargo-deb was built of")?;
    Ok(tool)
}
