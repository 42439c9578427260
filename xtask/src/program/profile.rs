//! How often each part of weir ran when it was measured. A release is compiled with it: code that
//! ran often is laid out together and inlined more, and branches that were not taken are moved out
//! of its way.

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

/// What a profile was made of; kept beside it.
///
/// The compiler's names of functions depend on all of it but the commit, and counts are found by
/// these names. So does the name of each function on the features of its crate.
#[derive(Debug, Deserialize, Serialize)]
pub struct Origin {
    /// The source that was measured.
    pub commit: String,
    /// The version of weir.
    pub version: String,
    /// The compiler and what it compiles for.
    pub rustc: String,
    /// Git's digest of `Cargo.lock`: which libraries.
    pub libraries: String,
}

impl Origin {
    /// That of a profile that is made now.
    ///
    /// # Errors
    /// Git or the compiler fails.
    pub fn now() -> Result<Self, Failure> {
        let mut rustc = Command::new("rustc");
        let said = output(rustc.arg("-vV").current_dir(root::directory()))?;
        let mut lines = said.lines();
        let release = lines.next().unwrap_or_default();
        let host = lines.find_map(|line| line.strip_prefix("host: "));
        Ok(Self {
            commit: git(&["rev-parse", "HEAD"])?.trim().to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            rustc: format!("{release}, {}", host.unwrap_or("of an unknown host")),
            libraries: git(&["hash-object", "Cargo.lock"])?.trim().to_owned(),
        })
    }

    /// What differs between two, beside the commit.
    fn differences(&self, other: &Self) -> Vec<String> {
        let mut found = Vec::new();
        if self.rustc != other.rustc {
            found.push(self.rustc.clone());
        }
        if self.version != other.version {
            found.push(format!("weir {}", self.version));
        }
        if self.libraries != other.libraries {
            found.push("another Cargo.lock".to_owned());
        }
        found
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

/// Refuses source that is not that of a commit.
///
/// # Errors
/// Files are changed, or git fails.
pub fn refuse_changed_source() -> Result<(), Failure> {
    let changed = git(&["status", "--porcelain", "--untracked-files=no"])?;
    if changed.is_empty() {
        return Ok(());
    }
    Err(Failure::Refused(format!(
        "a profile is one of a commit, and these files are changed:\n{changed}"
    )))
}

/// Says so if the profile has less effect than it had, or none.
///
/// # Errors
/// It is not known what it was made of, or what there is now.
pub fn warn_if_stale() -> Result<(), Failure> {
    let made: Origin = files::read_json(&Origin::file())?;
    let differences = made.differences(&Origin::now()?);
    if !differences.is_empty() {
        eprintln!(
            "note: {} has little effect or none: it is of {}\nhint: `cargo xtask profile` makes it anew",
            file().display(),
            differences.join(", ")
        );
    }
    Ok(())
}

/// Variables of the environment that cargo takes flags from before it looks at [`cargo_arguments`].
const OTHER_FLAGS: [&str; 2] = ["RUSTFLAGS", "CARGO_ENCODED_RUSTFLAGS"];

/// Says so if flags of the environment stand in place of [`cargo_arguments`].
pub fn warn_of_other_flags() {
    let set = OTHER_FLAGS.into_iter();
    for variable in set.filter(|variable| std::env::var_os(variable).is_some()) {
        eprintln!("note: {variable} is set: the program is compiled without its profile");
    }
}

/// Flags with which the compiler uses the profile. A function that was changed since is compiled as
/// without one, and nothing is said of it.
#[must_use]
pub fn compiler_flags() -> [String; 2] {
    [
        format!("-Cprofile-use={}", file().display()),
        "-Cllvm-args=-no-pgo-warn-mismatch".to_owned(),
    ]
}

/// The same for cargo, as the `Makefile` has it: a program that is built with other flags is
/// compiled again.
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
        let expected = format!("{option} '{}'", value.replace(&directory, "$(HERE)"));
        assert!(makefile.contains(&expected), "{expected}");
    }

    #[test]
    fn profile_is_one_of_llvm_and_a_commit() {
        let made: Origin = files::read_json(&Origin::file()).expect("it is there");
        assert_eq!(made.commit.len(), 40, "{made:?}");
        let profile = std::fs::read(file()).expect("it is there");
        // `IndexedInstrProf::Magic` of LLVM
        assert_eq!(profile.first_chunk(), Some(b"\xfflprofi\x81"));
    }

    #[test]
    fn what_names_of_functions_depend_on_is_named_where_it_differs() {
        let made = |version: &str, rustc: &str, libraries: &str| Origin {
            commit: "a".repeat(40),
            version: version.to_owned(),
            rustc: rustc.to_owned(),
            libraries: libraries.to_owned(),
        };
        let one = made("1.0.0", "rustc 1, here", "b");
        assert!(one.differences(&one).is_empty());
        let other = made("1.1.0", "rustc 2, here", "c");
        let expected = ["rustc 1, here", "weir 1.0.0", "another Cargo.lock"];
        assert_eq!(one.differences(&other), expected);
    }
}
