//! Where the repository is: records, documents and configurations of other proxies lie in it.

use std::path::{Path, PathBuf};

/// The directory of the root `Cargo.toml`; the chores work from any directory below it.
#[must_use]
pub fn directory() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_path_buf()
}

/// The directory that programs are built in.
#[must_use]
pub fn target() -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    directory().join(target.unwrap_or_else(|| "target".into()))
}

/// The `cargo` that started this program, so that all that it builds uses the same toolchain. It
/// does not build incrementally: that takes twice the room on the disk, and what is made would
/// depend on what was built before, where instructions are counted.
#[must_use]
pub fn cargo() -> std::process::Command {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = std::process::Command::new(program);
    command.current_dir(directory());
    command.env("CARGO_INCREMENTAL", "0");
    command
}
