//! The program of the nodes, held in memory: a node that has lost pages of its program would read
//! them from its slow disk, behind all requests that wait there.

use std::path::{Path, PathBuf};
use xtask::failure::{During, Failure};

/// A file system in memory that Linux has.
const MEMORY: &str = "/dev/shm";

/// A copy of a program; removed when dropped.
#[derive(Debug)]
pub(super) struct ProgramInMemory(PathBuf);

impl ProgramInMemory {
    /// # Errors
    /// It cannot be copied.
    pub(super) fn copy(program: &Path) -> Result<Self, Failure> {
        let copy = Path::new(MEMORY).join(format!("weir-figure13-{}", std::process::id()));
        std::fs::copy(program, &copy).during(format_args!("copy `{}`", program.display()))?;
        Ok(Self(copy))
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for ProgramInMemory {
    fn drop(&mut self) {
        // it does no harm but for its memory, until the machine ends
        let _ = std::fs::remove_file(&self.0);
    }
}
