//! Where servers keep their files while they run.

use crate::failure::{During, Failure};
use std::path::{Path, PathBuf};

/// A directory that is removed at the end.
#[derive(Debug)]
pub struct Workplace(PathBuf);

impl Workplace {
    /// `chore` is part of its name.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn make(chore: &str) -> Result<Self, Failure> {
        let path = std::env::temp_dir().join(format!("weir-{chore}-{}", std::process::id()));
        std::fs::create_dir_all(&path).during(format_args!("make `{}`", path.display()))?;
        Ok(Self(path))
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Workplace {
    fn drop(&mut self) {
        // what is left is in the system's temporary directory and does no harm
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
