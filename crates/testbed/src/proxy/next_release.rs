//! Programs of Debian's next release, beside those that are installed: a comparison with versions
//! that are some years old says little of the programs of today.
//!
//! They are unpacked below the target directory, with the libraries that they need, and started by
//! their own dynamic loader. Nothing of the system is changed, and none of their scripts run.

use std::path::{Path, PathBuf};
use std::process::Command;
use xtask::command::output;
use xtask::failure::{During, Failure};
use xtask::{need, root};

/// The suite that becomes the next release.
const SUITE: &str = "testing";

const MIRROR: &str = "http://deb.debian.org/debian";

/// Where they are unpacked, below the target directory.
const FOLDER: &str = "debian-testing";

/// The directory that stands for `/`.
pub(super) fn directory() -> PathBuf {
    root::target().join(FOLDER)
}

/// Whether a program is there. On an architecture whose loader has another name none is.
pub(super) fn has(program: &str) -> bool {
    let directory = directory();
    let loader = directory.join("usr/lib64/ld-linux-x86-64.so.2");
    loader.is_file() && directory.join("usr/sbin").join(program).is_file()
}

/// Gets all of these programs, if one is missing.
///
/// # Errors
/// This is not root, or the packages cannot be had.
pub(super) fn install(programs: &[&str]) -> Result<(), Failure> {
    if programs.iter().all(|program| has(program)) {
        return Ok(());
    }
    need::programs(&["mmdebstrap"])?;
    let packages = programs.iter().map(|program| need::known(program));
    let packages: Vec<&str> = packages
        .map(|need| need.map(|(_, package)| package))
        .collect::<Result<_, _>>()?;
    let (directory, made) = (directory(), root::target().join("debian-testing.new"));
    eprintln!("unpacking {} of Debian {SUITE}", packages.join(" "));
    remove(&made)?;
    let mut mmdebstrap = Command::new("mmdebstrap");
    mmdebstrap
        .args(["--quiet", "--variant=extract"])
        // what is signed is enough: a mirror may be one of some weeks ago
        .arg("--aptopt=Acquire::Check-Valid-Until \"false\"")
        .arg(format!("--include={}", packages.join(",")))
        .arg(SUITE)
        .args([made.as_path(), Path::new(MIRROR)]);
    output(&mut mmdebstrap)?;
    remove(&directory)?;
    std::fs::rename(&made, &directory).during(format_args!("make `{}`", directory.display()))
}

fn remove(directory: &Path) -> Result<(), Failure> {
    match std::fs::remove_dir_all(directory) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).during(format_args!("remove `{}`", directory.display()))
        }
        _ => Ok(()),
    }
}
