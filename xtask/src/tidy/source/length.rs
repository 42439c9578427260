//! A file that outgrows its reader either holds two nouns or says at the top why it is whole.

use crate::tidy::complaint::Complaint;
use crate::tidy::tree::File;

/// The guide questions files of 500 lines, and those near 1000 need a reason; beyond this number
/// the reason must be written down.
const LINES_MAX: usize = 700;

/// How far down the answer may stand.
const TOP_LINES: usize = 40;

const ANSWER: &str = "whole because: ";

/// Code only: a document may be long.
const CODE: [&str; 6] = [".rs", ".py", ".sh", ".js", ".lua", "Makefile"];

pub(crate) fn check(file: &File) -> Option<Complaint> {
    let is_code = CODE.iter().any(|ending| file.path.ends_with(ending));
    let count = file.text.lines().count();
    if !is_code || count <= LINES_MAX || file.text.lines().take(TOP_LINES).any(has_answer) {
        return None;
    }
    let what = format!("{count} lines, more than {LINES_MAX}");
    let instead = format!("split it by its nouns, or write `// {ANSWER}...` near the top");
    Some(file.complaint(1, what, &instead))
}

fn has_answer(line: &str) -> bool {
    let comment = line.trim_start().trim_start_matches(['/', '!', '#', '-']);
    comment
        .trim_start()
        .strip_prefix(ANSWER)
        .is_some_and(|reason| !reason.trim().is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::complaint::expect;

    fn check_lines(path: &str, top: &str, count: usize, expected: &[(usize, &str)]) {
        let text = format!("{top}\n{}", "x\n".repeat(count - 1));
        let complaints: Vec<Complaint> = check(&File::new(path, &text)).into_iter().collect();
        expect(&complaints, expected);
    }

    #[test]
    fn long_code_file_without_a_reason_is_refused() {
        check_lines("a.rs", "//! Docs.", LINES_MAX, &[]);
        check_lines("a.rs", "//! Docs.", LINES_MAX + 1, &[(1, "701 lines")]);
        check_lines(
            "a.rs",
            "//! whole because: ",
            LINES_MAX + 1,
            &[(1, "701 lines")],
        );
    }

    #[test]
    fn long_file_with_a_reason_or_without_code_is_accepted() {
        check_lines(
            "a.rs",
            "//! whole because: it is one table",
            LINES_MAX + 1,
            &[],
        );
        check_lines(
            "a.py",
            "# whole because: it is one table",
            LINES_MAX + 1,
            &[],
        );
        check_lines("README.md", "# Title", LINES_MAX + 1, &[]);
    }
}
