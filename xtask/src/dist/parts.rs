//! What all archives are made of, in `target/dist/parts`: the program without symbols, and what it
//! says of itself.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use xtask::command::{git, output};
use xtask::failure::{During, Failure};
use xtask::root;

/// Shells, and the names of the files with what they complete.
const SHELLS: [(&str, &str); 3] = [
    ("bash", "weir.bash"),
    ("zsh", "_weir"),
    ("fish", "weir.fish"),
];

/// The parts, and what is said of them.
pub(super) struct Parts {
    /// Where they are.
    pub(super) directory: PathBuf,
    /// Of the program, such as `0.1.0`.
    pub(super) version: String,
    /// The time of all files, seconds since 1970.
    pub(super) epoch: u64,
    /// Debian's name of the architecture, such as `amd64`; OCI's is the same.
    pub(super) architecture: String,
}

impl Parts {
    /// Makes them anew.
    pub(super) fn make(program: &Path) -> Result<Self, Failure> {
        let directory = root::directory().join("target/dist/parts");
        if directory.exists() {
            fs::remove_dir_all(&directory).during("remove the parts of a former run")?;
        }
        fs::create_dir_all(&directory).during("make a directory for parts")?;
        let stripped = stripped(program)?;
        let weir = directory.join("weir");
        fs::rename(&stripped, &weir).during("move the program")?;
        let said = output(Command::new(&weir).arg("--version"))?;
        let version = said.trim().strip_prefix("weir ").unwrap_or_default();
        let architecture = output(Command::new("dpkg").arg("--print-architecture"))?;
        let parts = Self {
            version: version.to_owned(),
            epoch: epoch()?,
            architecture: architecture.trim().to_owned(),
            directory,
        };
        parts.write_pages(&weir)?;
        for (shell, name) in SHELLS {
            let script = output(Command::new(&weir).args(["generate", "completions", shell]))?;
            parts.write(name, &script)?;
        }
        parts.write("changelog", &parts.changelog()?)?;
        Ok(parts)
    }

    /// A part.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    fn write(&self, name: &str, text: &str) -> Result<(), Failure> {
        fs::write(self.path(name), text).during(format_args!("write `{name}`"))
    }

    fn write_pages(&self, weir: &Path) -> Result<(), Failure> {
        let mut generate = Command::new(weir);
        output(generate.args(["generate", "man"]).arg(&self.directory))?;
        for section in ["man1", "man5"] {
            let pages = xtask::files::list(&self.path(section))?;
            // without name and time of the file
            output(Command::new("gzip").args(["-9n", "--"]).args(pages))?;
        }
        Ok(())
    }

    /// In Debian's form; what has changed is said elsewhere.
    fn changelog(&self) -> Result<String, Failure> {
        let at = format!("--date=@{}", self.epoch);
        let date = output(Command::new("date").args(["--utc", "--rfc-email", &at]))?;
        let version = &self.version;
        Ok(format!(
            "weir ({version}-1) unstable; urgency=medium\n\n  * See CHANGELOG.md of the source.\n\n \
             -- Weir authors <weir@packages.invalid>  {}\n",
            date.trim()
        ))
    }

    /// `tar`, whose output depends on names, content and modes of files alone.
    pub(super) fn tar(&self) -> Command {
        let mut tar = Command::new("tar");
        tar.args(["--sort=name", "--numeric-owner", "--format=ustar"])
            .arg(format!("--mtime=@{}", self.epoch))
            // not those that the umask of a user leaves
            .arg("--mode=u=rwX,go=rX");
        tar
    }

    /// `gzip` of a file, which it takes the place of.
    pub(super) fn compress(&self, file: &Path, is_fast: bool) -> Result<(), Failure> {
        let level = if is_fast { "-1n" } else { "-9n" };
        output(
            Command::new("gzip")
                .args(["--force", level, "--"])
                .arg(file),
        )
        .map(drop)
    }
}

/// A copy of a program without symbols, beside it.
pub(super) fn stripped(program: &Path) -> Result<PathBuf, Failure> {
    let stripped = program.with_extension("stripped");
    let mut objcopy = Command::new("objcopy");
    objcopy.args(["--strip-all", "--remove-section=.comment"]);
    output(objcopy.arg(program).arg(&stripped))?;
    Ok(stripped)
}

/// `SOURCE_DATE_EPOCH` where it is set, or the time of the last commit.
pub(super) fn epoch() -> Result<u64, Failure> {
    let text = match std::env::var("SOURCE_DATE_EPOCH") {
        Ok(text) => text,
        Err(_) => git(&["log", "-1", "--format=%ct"])?,
    };
    let text = text.trim();
    let number = text.parse();
    number.map_err(|_| Failure::Usage(format!("`{text}` is no time in seconds since 1970")))
}
