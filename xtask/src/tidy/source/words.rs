//! Work that is not done lives in the README's table or in an issue, not in a mark in the code.

use crate::tidy::complaint::Complaint;
use crate::tidy::source::rust_text::has_word;
use crate::tidy::tree::File;

/// Spelled in two parts so that this file does not refuse itself.
const MARKS: [&str; 2] = [concat!("TO", "DO"), concat!("FIX", "ME")];

pub(crate) fn check(file: &File) -> Vec<Complaint> {
    // a document may speak about the marks
    if file.path.ends_with(".md") {
        return Vec::new();
    }
    let mut complaints = Vec::new();
    for (number, line) in file.lines() {
        if let Some(mark) = MARKS.iter().find(|mark| has_word(line, mark)) {
            let instead = "do it now, or say in the documents what does not work yet";
            complaints.push(file.complaint(number, format!("a `{mark}`"), instead));
        }
    }
    complaints
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::complaint::expect;

    #[test]
    fn unfinished_work_mark_in_code_is_refused() {
        for mark in MARKS {
            let text = format!("a\n// {mark}: later\n");
            expect(&check(&File::new("a.rs", &text)), &[(2, mark)]);
            expect(&check(&File::new("Makefile", &text)), &[(2, mark)]);
            expect(&check(&File::new("CONTRIBUTING.md", &text)), &[]);
        }
    }

    #[test]
    fn mark_inside_a_longer_word_is_accepted() {
        let text = format!("let {}NE = 1; // todo list\n", MARKS[0]);
        expect(&check(&File::new("a.rs", &text)), &[]);
    }
}
