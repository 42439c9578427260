//! The text files of the repository: what git tracks or would track.

use super::complaint::Complaint;
use std::path::Path;
use xtask::command::git;
use xtask::failure::{During, Failure};

/// Endings (or whole names) of files that the rules read. Recorded numbers and lock files are not
/// written by hand.
const TEXT: &[&str] = &[
    ".rs", ".md", ".toml", ".lua", ".sh", ".py", ".js", ".html", ".css", ".conf", ".cfg", ".vcl",
    ".config", ".yaml", ".yml", ".txt", "Makefile", ".ci/run",
];

/// More of them.
const LICENCES: [&str; 2] = ["LICENSE-APACHE", "LICENSE-MIT"];

/// A text file; `path` is relative to the root and has `/` between its parts.
#[derive(Debug)]
pub(crate) struct File {
    pub(crate) path: String,
    pub(crate) text: String,
}

impl File {
    pub(crate) fn new(path: &str, text: &str) -> Self {
        Self {
            path: path.to_owned(),
            text: text.to_owned(),
        }
    }

    pub(crate) fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    /// A complaint about one of its lines.
    pub(crate) fn complaint(
        &self,
        line: usize,
        what: impl Into<String>,
        instead: &str,
    ) -> Complaint {
        Complaint::new(&self.path, line, what, instead)
    }

    /// Lines with their numbers, from 1.
    pub(crate) fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        (1..).zip(self.text.lines())
    }
}

/// All files the rules read.
#[derive(Debug)]
pub(crate) struct Tree(Vec<File>);

impl Tree {
    #[cfg(test)]
    pub(crate) fn new(files: Vec<File>) -> Self {
        Self(files)
    }

    /// Reads the names from git, so that nothing ignored is read and nothing new is overlooked.
    pub(crate) fn read(root: &Path) -> Result<Self, Failure> {
        let names = git(&[
            "ls-files",
            "-z",
            "--cached",
            "--others",
            "--exclude-standard",
        ])?;
        let mut files = Vec::new();
        for path in names.split('\0').filter(|path| is_text(path)) {
            let full = root.join(path);
            // a tracked file that was just removed is still listed
            if full.is_file() {
                let bytes = std::fs::read(&full).during(format_args!("read `{path}`"))?;
                files.push(File::new(path, &String::from_utf8_lossy(&bytes)));
            }
        }
        files.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(Self(files))
    }

    pub(crate) fn files(&self) -> &[File] {
        &self.0
    }

    pub(crate) fn text(&self, path: &str) -> Option<&str> {
        self.0
            .iter()
            .find(|file| file.path == path)
            .map(|file| file.text.as_str())
    }
}

fn is_text(path: &str) -> bool {
    let mut known = TEXT.iter().chain(&LICENCES);
    known.any(|ending| path.ends_with(ending))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lock_file_and_records_are_not_read_as_text() {
        for (path, expected) in [
            ("crates/wire/src/lib.rs", true),
            ("Makefile", true),
            (".ci/run", true),
            ("peers/haproxy.cfg", true),
            ("Cargo.lock", false),
            ("records/peers-2026-01-01.json", false),
        ] {
            assert_eq!(is_text(path), expected, "{path}");
        }
    }
}
