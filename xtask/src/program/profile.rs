//! How often each part of weir ran when it was measured: a release is compiled with it. Code that
//! ran often is laid out together and inlined more, and what was not taken is moved out of its way.

use crate::command::{git, output};
use crate::failure::{During, Failure};
use crate::{files, root};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::process::Command;

/// The profile; `cargo xtask profile` makes it.
#[must_use]
pub fn file() -> PathBuf {
    root::directory().join("profile/weir.profdata")
}

/// How the profile was made; kept beside it.
#[derive(Debug, Deserialize, Serialize)]
pub struct Origin {
    /// What was measured.
    pub commit: String,
    /// The compiler: the names of functions are others with another one.
    pub rustc: String,
}

impl Origin {
    /// That of a profile that is made here and now.
    ///
    /// # Errors
    /// Files of the repository are changed, or git or the compiler fails.
    pub fn now() -> Result<Self, Failure> {
        let changed = git(&[
            "status",
            "--porcelain",
            "--untracked-files=no",
            "--",
            "crates",
        ])?;
        if !changed.is_empty() {
            return Err(Failure::Refused(format!(
                "a profile is one of a commit, and these files are changed:\n{changed}"
            )));
        }
        Ok(Self {
            commit: git(&["rev-parse", "HEAD"])?.trim().to_owned(),
            rustc: compiler()?,
        })
    }

    fn file() -> PathBuf {
        file().with_extension("json")
    }

    /// Writes it beside the profile.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(&self) -> Result<(), Failure> {
        let file = Self::file();
        let what = || format!("write `{}`", file.display());
        let text = serde_json::to_string_pretty(self).during(what())?;
        std::fs::write(&file, text + "\n").during(what())
    }
}

fn compiler() -> Result<String, Failure> {
    let mut rustc = Command::new("rustc");
    let version = output(rustc.arg("--version").current_dir(root::directory()))?;
    Ok(version.trim().to_owned())
}

/// Says so if the profile is one of another compiler.
///
/// # Errors
/// It is not known which compiler it is of, or which one there is.
pub fn warn_of_another_compiler() -> Result<(), Failure> {
    let origin: Origin = files::read_json(&Origin::file())?;
    let compiler = compiler()?;
    if origin.rustc != compiler {
        eprintln!(
            "note: {} is of {}, and has no effect with {compiler}; `cargo xtask profile` makes it anew",
            file().display(),
            origin.rustc
        );
    }
    Ok(())
}

/// What has the compiler use the profile. A function that was changed since is compiled as if it
/// was not measured, and nothing is said of it.
#[must_use]
pub fn compiler_flags() -> [String; 2] {
    [
        format!("-Cprofile-use={}", file().display()),
        "-Cllvm-args=-no-pgo-warn-mismatch".to_owned(),
    ]
}

/// The same for cargo, as the `Makefile` has it: programs that are built in other ways with other
/// flags would be compiled again. `RUSTFLAGS` of the environment stand in their place.
#[must_use]
pub fn cargo_arguments() -> [String; 2] {
    // strings of JSON are strings of TOML
    let flags = serde_json::json!(compiler_flags());
    ["--config".to_owned(), format!("build.rustflags={flags}")]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_those_of_the_makefile() {
        let makefile = root::directory().join("Makefile");
        let makefile = std::fs::read_to_string(makefile).expect("it is there");
        let directory = root::directory().display().to_string();
        let [option, value] = cargo_arguments();
        let expected = format!("{option} '{}'", value.replace(&directory, "$(CURDIR)"));
        assert!(makefile.contains(&expected), "{expected}");
    }

    #[test]
    fn profile_is_one_of_llvm_and_a_commit() {
        let origin: Origin = files::read_json(&Origin::file()).expect("it is there");
        assert_eq!(origin.commit.len(), 40, "{origin:?}");
        let profile = std::fs::read(file()).expect("it is there");
        // `IndexedInstrProf::Magic` of LLVM, in the order of bytes of this machine
        assert_eq!(profile.first_chunk(), Some(b"\xfflprofi\x81"));
    }
}
