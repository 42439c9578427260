//! Words that the house has given up for those of the field: in names, and in prose about programs.
//!
//! The list holds what no reader would take for something else; the glossary has the terms, and the
//! rest is a reviewer's to judge.

use super::columns::prose;
use super::rust_text::{Source, has_word};
use crate::tidy::complaint::Complaint;
use crate::tidy::tree::File;

/// Parts of names, and the term.
const NAMES: [(&str, &str); 15] = [
    ("board", "the collapsed requests"),
    ("crew", "worker pool"),
    ("deserted", "without readers"),
    ("door", "listener"),
    ("doomed", "the outcome"),
    ("flights", "collapsed requests"),
    ("keeper", "the store's writer"),
    ("knob", "setting"),
    ("knobs", "settings"),
    ("landed", "the outcome"),
    ("lie", "content mismatch"),
    ("lies", "content mismatches"),
    ("recall", "disk lookup"),
    ("teller", "progress reporter"),
    ("twin", "reference model"),
];

/// Words for persons, which say nothing of a program.
const PERSONS: [&str; 5] = ["anybody", "likewise", "nobody", "somebody", "whoever"];

/// Comments and documents.
pub(crate) fn check_prose(file: &File) -> Vec<Complaint> {
    let is_document = file.path.ends_with(".md");
    if !is_document && !file.is_rust() {
        return Vec::new();
    }
    let mut complaints = Vec::new();
    for (number, line) in file.lines() {
        let Some(text) = prose(line, is_document) else {
            continue;
        };
        let text = without_code(text).to_lowercase();
        for word in PERSONS.iter().filter(|word| has_word(&text, word)) {
            let instead = "name the program, or say that no program does it";
            complaints.push(file.complaint(number, format!("the word `{word}`"), instead));
        }
    }
    complaints
}

/// A line of prose without what stands between back quotes.
fn without_code(text: &str) -> String {
    text.split('`').step_by(2).collect::<Vec<_>>().join(" ")
}

/// Names in code.
pub(crate) fn check_names(source: &Source<'_>) -> Vec<Complaint> {
    let mut complaints = Vec::new();
    for (number, code, _) in source.lines() {
        let parts = parts(code);
        for (word, instead) in NAMES {
            if parts.iter().any(|part| part == word) {
                let what = format!("a name with `{word}`");
                complaints.push(source.file.complaint(number, what, instead));
            }
        }
    }
    complaints
}

/// The parts of all names in a line, in lower case: `read_ahead` and `ReadAhead` have two.
fn parts(code: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    for letter in code.chars() {
        if letter.is_uppercase() || !letter.is_alphanumeric() {
            parts.push(String::new());
        }
        if let Some(part) = parts.last_mut().filter(|_| letter.is_alphanumeric()) {
            part.extend(letter.to_lowercase());
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::complaint::expect;

    #[test]
    fn word_for_a_person_in_comment_or_document_is_refused() {
        for word in PERSONS {
            let text = format!("let a = \"{word}\";\n    // so that {word} waits\n");
            expect(&check_prose(&File::new("a.rs", &text)), &[(2, word)]);
            expect(
                &check_prose(&File::new("a.md", &text)),
                &[(1, word), (2, word)],
            );
        }
    }

    #[test]
    fn name_with_a_word_that_was_given_up_is_refused() {
        for (word, _) in NAMES {
            let capital = format!("{}{}", word[..1].to_uppercase(), &word[1..]);
            let text = format!("fn a_{word}_b() {{}}\nstruct A{capital};\n// {word}\n");
            let file = File::new("a.rs", &text);
            expect(
                &check_names(&Source::new(&file, false)),
                &[(1, word), (2, word)],
            );
        }
    }

    #[test]
    fn longer_word_quoted_word_and_text_in_a_literal_are_accepted() {
        let quoted = File::new("a.md", "The value is `nobody` there.\n");
        expect(&check_prose(&quoted), &[]);
        let file = File::new(
            "a.rs",
            "let keyboard = \"a board\"; // client\nlet belief = 1;\n",
        );
        expect(&check_names(&Source::new(&file, false)), &[]);
        expect(&check_prose(&file), &[]);
    }
}
