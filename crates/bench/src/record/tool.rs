//! The tool that measured.

use std::path::Path;
use std::process::{Command, Stdio};
use weir_measure::record::Tool;

/// This program, called from the working directory.
pub(super) fn tool(version: &str, command: &str) -> Tool {
    Tool {
        name: "weir bench".into(),
        version: version.to_owned(),
        commit: commit(Path::new(".")),
        command: command.to_owned(),
    }
}

/// The commit of a directory, with `+` if it has changes; `None` without git or outside of a
/// repository.
fn commit(directory: &Path) -> Option<String> {
    let git = |arguments: &[&str]| {
        let output = Command::new("git")
            .arg("-C")
            .arg(directory)
            .args(arguments)
            .stdin(Stdio::null())
            .output()
            .ok()?;
        let text = String::from_utf8(output.stdout).ok()?;
        output.status.success().then(|| text.trim().to_owned())
    };
    let commit = git(&["rev-parse", "HEAD"])?;
    let changes = git(&["status", "--porcelain", "--untracked-files=no"])?;
    let mark = if changes.is_empty() { "" } else { "+" };
    Some(format!("{commit}{mark}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directory_outside_a_repository_has_no_commit() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        assert_eq!(commit(folder.path()), None);
    }
}
