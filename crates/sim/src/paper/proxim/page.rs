//! The paper as one HTML file that needs nothing else: no network, no script.
//!
//! The frame is small and its own. That of `weir bench report` belongs to records of runs, and
//! lives where sockets are; what both could share, text in elements, is a few lines.

use super::experiment::Kind;
use super::shown::{ComparedExhibit, Line, Paper};
use super::text;
use crate::paper::drawing::escape;
use crate::paper::page::{contents, document, pictures};
use std::fmt::Write as _;

/// The page.
#[must_use]
pub fn html(paper: &Paper) -> String {
    let about = &paper.about;
    let mut body = format!(
        "<p class=\"sub\">Performance of Web Proxy Caching in Heterogeneous Bandwidth Environments (A. Feldmann, R. Cáceres, F. Douglis, \
         G. Glass, M. Rabinovich: INFOCOM 1999), on traces made up after its tables. weir {}, {} requests of each trace, seed {}.</p>\n\
         <p class=\"lead\">{}.</p>\n",
        about.version,
        about.requests,
        about.seed,
        escape(&paper.count_words())
    );
    contents(
        paper.exhibits.iter().map(|shown| shown.exhibit.as_str()),
        &mut body,
    );
    for shown in &paper.exhibits {
        exhibit(shown, &mut body);
    }
    document("PROXIM, made again", &body)
}

fn put(page: &mut String, markup: &str) {
    page.push_str(markup);
}

fn exhibit(shown: &ComparedExhibit, page: &mut String) {
    let _infallible = write!(
        page,
        "<section id=\"{}\"><h2>{}</h2>\n<p>{}</p>\n",
        shown.exhibit.as_str(),
        escape(shown.exhibit.title()),
        escape(&shown.about)
    );
    pictures(&shown.pictures, page);
    table(shown, page);
    if !shown.notes.is_empty() {
        put(page, "<ul class=\"notes\">");
        for note in &shown.notes {
            let _infallible = write!(
                page,
                "<li><b>[{}]</b> {}</li>",
                note.number,
                escape(note.text)
            );
        }
        put(page, "</ul>\n");
    }
    put(page, "</section>\n");
}

fn table(shown: &ComparedExhibit, page: &mut String) {
    let kinds: Vec<Kind> = Kind::ALL
        .into_iter()
        .filter(|kind| shown.lines.iter().any(|line| line.cell(*kind).is_some()))
        .collect();
    if kinds.is_empty() {
        return;
    }
    put(page, "<div class=\"wide\"><table><thead><tr><th></th>");
    for kind in &kinds {
        let _infallible = write!(
            page,
            "<th colspan=\"3\" scope=\"colgroup\">{}</th>",
            kind.as_str()
        );
    }
    put(page, "</tr><tr><th></th>");
    for _ in &kinds {
        put(
            page,
            "<th scope=\"col\">ours</th><th scope=\"col\">paper</th><th scope=\"col\">differs</th>",
        );
    }
    put(page, "</tr></thead><tbody>\n");
    for line in &shown.lines {
        let _infallible = write!(page, "<tr><th scope=\"row\">{}</th>", escape(&line.what));
        for kind in &kinds {
            cells(line, *kind, page);
        }
        put(page, "</tr>\n");
    }
    put(page, "</tbody></table></div>\n");
}

fn cells(line: &Line, kind: Kind, page: &mut String) {
    let Some(cell) = line.cell(kind) else {
        put(page, "<td class=\"first\"></td><td></td><td></td>");
        return;
    };
    let place = cell.paper.map_or_else(String::new, |paper| {
        format!(" title=\"{}\"", escape(paper.place))
    });
    let class = if cell.is_off { " class=\"off\"" } else { "" };
    let _infallible = write!(
        page,
        "<td class=\"first\">{}</td><td{place}>{}</td><td{class}>{}",
        escape(&text::ours(cell, line.unit)),
        escape(&text::paper(cell)),
        escape(&text::difference(cell)),
    );
    let mark = text::mark(cell);
    if !mark.is_empty() {
        let _infallible = write!(page, "<sup>{}</sup>", escape(&mark));
    }
    put(page, "</td>");
}
