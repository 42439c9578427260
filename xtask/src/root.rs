//! Where the repository is.

use std::path::{Path, PathBuf};

/// The directory of the root `Cargo.toml`; the chores work from any directory below it.
pub(crate) fn directory() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_path_buf()
}

/// The `cargo` that runs this chore, so that every step uses the same toolchain.
pub(crate) fn cargo() -> std::process::Command {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = std::process::Command::new(program);
    command.current_dir(directory());
    command
}
