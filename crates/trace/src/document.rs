//! The tables of `docs/trace.md` are what the code says.

use super::row::Column;
use crate::row::directives::{RequestBit, ResponseBit};
use crate::row::words::{AbortedBy, TraceMethod, TraceScheme, TraceVersion};
use std::fmt::Write as _;

const DOCUMENT: &str = include_str!("../../../docs/trace.md");

fn check(mark: &str, expected: &str) {
    let begin = format!("<!-- {mark}:begin -->\n");
    let (_, rest) = DOCUMENT.split_once(&begin).expect("a beginning");
    let end = format!("<!-- {mark}:end -->");
    let (found, _) = rest.split_once(&end).expect("an end");
    assert!(
        found == expected,
        "between the marks `{mark}` should stand:\n{expected}"
    );
}

#[test]
fn document_lists_the_columns_of_the_code() {
    let mut text = String::new();
    let mut section = "";
    for column in Column::ALL {
        let about = column.about();
        if about.section != section {
            section = about.section;
            let _ = write!(
                text,
                "\n### {section}\n\n| column | type | unit | meaning |\n| --- | --- | --- | --- |\n"
            );
        }
        let (name, column_type, unit) = (about.name, about.column_type.as_str(), about.unit);
        let required = if about.is_optional {
            ""
        } else {
            ", never null"
        };
        let _ = writeln!(
            text,
            "| `{name}` | {column_type}{required} | {unit} | {} |",
            about.meaning
        );
    }
    check("columns", &format!("{text}\n"));
}

#[test]
fn document_lists_the_enumeration_values_of_the_code() {
    let mut text = String::from("| column | words |\n| --- | --- |\n");
    let listed = |words: Vec<&str>| {
        let words: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
        words.join(", ")
    };
    let rows = [
        (
            "method",
            listed(TraceMethod::ALL.iter().map(|word| word.as_str()).collect()),
        ),
        (
            "scheme",
            listed(TraceScheme::ALL.iter().map(|word| word.as_str()).collect()),
        ),
        (
            "version",
            listed(TraceVersion::ALL.iter().map(|word| word.as_str()).collect()),
        ),
        (
            "aborted_by",
            listed(AbortedBy::ALL.iter().map(|word| word.as_str()).collect()),
        ),
    ];
    for (column, words) in rows {
        let _ = writeln!(text, "| `{column}` | {words} |");
    }
    check("words", &text);
}

#[test]
fn document_lists_the_directive_bits_of_the_code() {
    let mut text = String::from(
        "| bit | value | `request_directives` | `response_directives` |\n| --- | --- | --- | --- |\n",
    );
    let cell = |word: Option<&str>| word.map_or_else(String::new, |word| format!("`{word}`"));
    for index in 0..ResponseBit::ALL.len().max(RequestBit::ALL.len()) {
        let request = cell(RequestBit::ALL.get(index).map(|bit| bit.as_str()));
        let response = cell(ResponseBit::ALL.get(index).map(|bit| bit.as_str()));
        let _ = writeln!(
            text,
            "| {index} | {} | {request} | {response} |",
            1_u32 << index
        );
    }
    check("bits", &text);
}
