//! Comments and the prose of documents end at column 100, as `rustfmt` has it for code.

use crate::tidy::complaint::Complaint;
use crate::tidy::tree::File;

/// Characters in a line at most.
const COLUMNS_MAX: usize = 100;

/// Where a generated table begins and ends.
const TABLE: [&str; 2] = ["<!-- table ", "<!-- end of table"];

pub(crate) fn check(file: &File) -> Vec<Complaint> {
    let is_document = file.path.ends_with(".md");
    if !is_document && !file.is_rust() {
        return Vec::new();
    }
    let mut complaints = Vec::new();
    let mut is_verbatim = false;
    for (number, line) in file.lines() {
        let Some(text) = prose(line, is_document) else {
            is_verbatim = false;
            continue;
        };
        if text.starts_with("```") {
            is_verbatim = !is_verbatim;
        } else if is_document && TABLE.iter().any(|mark| text.starts_with(mark)) {
            is_verbatim = text.starts_with(TABLE[0]);
        } else if !is_verbatim && line.chars().count() > COLUMNS_MAX && can_be_broken(text) {
            let columns = line.chars().count();
            let what = format!("{columns} columns, more than {COLUMNS_MAX}");
            complaints.push(file.complaint(number, what, "break the line between two words"));
        }
    }
    complaints
}

/// The text of a comment, or a line of a document.
pub(super) fn prose(line: &str, is_document: bool) -> Option<&str> {
    let text = line.trim_start();
    if is_document {
        return Some(text);
    }
    let comment = text.strip_prefix("//")?;
    Some(comment.trim_start_matches(['/', '!']).trim_start())
}

/// Not a row of a table, a heading, or one long word, such as an address or a code span.
fn can_be_broken(text: &str) -> bool {
    let text = text.trim_start_matches(['*', '-', '>', ' ']);
    !text.starts_with(['|', '#']) && text.contains(' ')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::complaint::expect;

    fn check_text(path: &str, text: &str, expected: &[(usize, &str)]) {
        expect(&check(&File::new(path, text)), expected);
    }

    /// A line of so many characters, of two words.
    fn line(begin: &str, columns: usize) -> String {
        let rest = columns - begin.chars().count() - 2;
        format!("{begin}a {}", "é".repeat(rest))
    }

    #[test]
    fn comment_of_more_than_100_columns_is_refused() {
        for begin in ["// ", "    /// ", "//! "] {
            check_text("a.rs", &line(begin, 100), &[]);
            check_text("a.rs", &line(begin, 101), &[(1, "101 columns")]);
        }
        check_text("a.rs", &line("let a = ", 101), &[]);
        check_text("a.toml", &line("# ", 101), &[]);
    }

    #[test]
    fn prose_of_a_document_of_more_than_100_columns_is_refused() {
        check_text("a.md", &line("", 100), &[]);
        check_text("a.md", &line("", 101), &[(1, "101 columns")]);
    }

    #[test]
    fn tables_code_and_single_words_may_be_longer() {
        check_text("a.md", &line("| ", 101), &[]);
        check_text("a.md", &line("## ", 101), &[]);
        check_text("a.rs", &line("/// | ", 101), &[]);
        check_text("a.md", &format!("* {}", "a".repeat(101)), &[]);
        let long = line("", 101);
        check_text(
            "a.md",
            &format!("```sh\n{long}\n```\n{long}"),
            &[(4, "101")],
        );
        let fence = format!("//! ```text\n//! {long}\n//! ```\n//! {long}");
        check_text("a.rs", &fence, &[(4, "105")]);
        let table = format!("<!-- table a: b -->\n{long}\n<!-- end of table -->\n{long}");
        check_text("a.md", &table, &[(4, "101")]);
    }
}
