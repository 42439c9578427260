//! A record that a document cites was measured at a commit of this history, without changes on top
//! of it.

use crate::tidy::complaint::Complaint;
use crate::tidy::tree::Tree;
use serde_json::Value;
use std::path::Path;
use xtask::command::git;
use xtask::failure::Failure;
use xtask::files;
use xtask::root;

/// The folder, as documents name it.
const FOLDER: &str = "records/";

/// Complains about cited records. `commits` answers for a path below `records/` with the commit of
/// each record there; `is_known` whether the history has a commit.
pub(in crate::tidy) fn check(
    tree: &Tree,
    commits: impl Fn(&str) -> Result<Vec<String>, Failure>,
    is_known: impl Fn(&str) -> bool,
) -> Result<Vec<Complaint>, Failure> {
    let mut complaints = Vec::new();
    let documents = tree
        .files()
        .iter()
        .filter(|file| file.path.ends_with(".md"));
    for (file, number, line) in
        documents.flat_map(|file| file.lines().map(move |(number, line)| (file, number, line)))
    {
        for path in cited(line) {
            let commits = commits(&path)?;
            if let Some(what) = commits.iter().find_map(|commit| wrong(commit, &is_known)) {
                let instead = "measure again at a clean commit, or do not cite it";
                complaints.push(file.complaint(number, format!("`{path}` {what}"), instead));
            }
        }
    }
    Ok(complaints)
}

/// Paths `records/NAME` that a line names. `DATE` and the like stand for a name.
fn cited(line: &str) -> Vec<String> {
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let rest = line.split(FOLDER).skip(1);
    let names = rest.map(|rest| {
        let end = rest.find(|c| !is_of_name(c)).unwrap_or(rest.len());
        rest[..end].trim_end_matches('.')
    });
    names
        .filter(|name| name.chars().any(|c| c.is_ascii_digit()))
        .map(|name| format!("{FOLDER}{name}"))
        .collect()
}

fn wrong(commit: &str, is_known: &impl Fn(&str) -> bool) -> Option<String> {
    let bare = commit.trim_end_matches('+');
    if bare.len() != commit.len() || commit.contains(' ') || commit.ends_with("-dirty") {
        return Some(format!(
            "was measured with uncommitted changes (`{commit}`)"
        ));
    }
    (!is_known(bare)).then(|| format!("was measured at `{bare}`, which is not in the history"))
}

/// The commits of the record at `path`, or of all records in the folder at `path`.
pub(in crate::tidy) fn commits_at(path: &str) -> Result<Vec<String>, Failure> {
    let full = root::directory().join(path);
    if full.is_file() {
        return Ok(vec![commit_of(&full)?]);
    }
    let listed = files::list(&full)?.into_iter();
    let records = listed.filter(|file| file.extension().is_some_and(|ending| ending == "json"));
    records.map(|file| commit_of(&file)).collect()
}

fn commit_of(file: &Path) -> Result<String, Failure> {
    let record: Value = files::read_json(file)?;
    // `weir bench` keeps it with the rest that it says of itself
    let commit = record
        .get("commit")
        .or_else(|| record.pointer("/tool/commit"));
    Ok(commit.and_then(Value::as_str).unwrap_or("none").to_owned())
}

/// Whether HEAD or one of its ancestors is `commit`. In a clone without its history every commit
/// passes.
pub(in crate::tidy) fn is_in_history(commit: &str) -> bool {
    let shallow = git(&["rev-parse", "--is-shallow-repository"]);
    shallow.is_ok_and(|text| text.starts_with("true"))
        || git(&["merge-base", "--is-ancestor", commit, "HEAD"]).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::complaint::expect;
    use crate::tidy::tree::File;

    fn check_text(text: &str, expected: &[(usize, &str)]) {
        let tree = Tree::new(vec![File::new("docs/a.md", text)]);
        let commits = |path: &str| {
            Ok(match path {
                "records/clean-1.json" => vec!["abc".to_owned()],
                "records/dirty-1.json" => vec!["abc and changes".to_owned()],
                "records/runs-1" => vec!["abc".to_owned(), "abc+".to_owned()],
                _ => vec!["def".to_owned()],
            })
        };
        let complaints = check(&tree, commits, |commit| commit == "abc").expect("records");
        expect(&complaints, expected);
    }

    #[test]
    fn cited_record_with_uncommitted_changes_is_refused() {
        check_text(
            "[a](../records/clean-1.json) and `records/peers-DATE.json`\n",
            &[],
        );
        check_text(
            "x\nsee `records/dirty-1.json`.\n",
            &[(2, "uncommitted changes")],
        );
        check_text("[runs](../records/runs-1)\n", &[(1, "`records/runs-1`")]);
    }

    #[test]
    fn cited_record_of_a_commit_outside_the_history_is_refused() {
        check_text(
            "[b](../records/gone-1.json)\n",
            &[(1, "not in the history")],
        );
    }

    #[test]
    fn head_is_in_the_history_and_an_unknown_name_is_not() {
        assert!(is_in_history("HEAD"));
        assert!(!is_in_history("no-such-commit"));
    }
}
