//! White space left by an editor.

use crate::tidy::complaint::Complaint;
use crate::tidy::tree::File;

pub(crate) fn check(file: &File) -> Vec<Complaint> {
    if is_data(&file.path) {
        return Vec::new();
    }
    let mut complaints = Vec::new();
    for (number, line) in (1..).zip(file.text.split('\n')) {
        if line.ends_with([' ', '\t', '\r']) {
            let instead = "cut it off (a break in Markdown is a `\\`)";
            complaints.push(file.complaint(number, "white space at the end of the line", instead));
        }
        if file.is_rust() && line.contains('\t') {
            let instead = "indent with spaces, write `\\t` in a literal";
            complaints.push(file.complaint(number, "a tab", instead));
        }
    }
    let last = file.text.lines().count().max(1);
    if !file.text.is_empty() && !file.text.ends_with('\n') {
        complaints.push(file.complaint(last, "no newline at the end of the file", "add one"));
    }
    if file.text.ends_with("\n\n") {
        complaints.push(file.complaint(last, "empty lines at the end of the file", "remove them"));
    }
    complaints
}

/// What tests compare with is as it is: its white space may be the point.
fn is_data(path: &str) -> bool {
    path.contains("/tests/") && !path.ends_with(".rs")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::complaint::expect;

    fn check_text(path: &str, text: &str, expected: &[(usize, &str)]) {
        expect(&check(&File::new(path, text)), expected);
    }

    #[test]
    fn trailing_white_space_is_refused() {
        check_text("a.rs", "a\nb\n", &[]);
        check_text("a.md", "a\nb \n", &[(2, "white space")]);
        check_text("a.md", "a\r\nb\n", &[(1, "white space")]);
    }

    #[test]
    fn white_space_in_test_data_is_accepted() {
        check_text("crates/cli/tests/help.txt", "a \nb", &[]);
        check_text("crates/cli/tests/help.rs", "a\nb", &[(2, "no newline")]);
    }

    #[test]
    fn tab_is_refused_only_in_rust_files() {
        check_text("a.rs", "\ta\n", &[(1, "a tab")]);
        check_text("Makefile", "a:\n\tb\n", &[]);
    }

    #[test]
    fn file_ends_with_exactly_one_newline() {
        check_text("a.rs", "a\nb", &[(2, "no newline")]);
        check_text("a.rs", "a\n\n", &[(2, "empty lines")]);
        check_text("a.rs", "", &[]);
    }
}
