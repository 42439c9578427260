//! Where the repository is: configurations of other proxies, records and documents lie in it.

use std::path::{Path, PathBuf};

/// The directory of the root `Cargo.toml`.
pub(crate) fn directory() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).unwrap_or(here).to_path_buf()
}

/// The `cargo` that started this program, so that all that is measured uses the same toolchain.
pub(crate) fn cargo() -> std::process::Command {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = std::process::Command::new(program);
    command.current_dir(directory());
    command
}
