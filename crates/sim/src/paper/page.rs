//! What the pages of papers have in common: the frame, links to the exhibits, pictures.

use super::drawing::{Picture, escape};
use std::fmt::{self, Write as _};

const STYLE: &str = include_str!("style.css");

/// A page with this title and body; it needs nothing else.
pub(super) fn document(title: &str, body: &str) -> String {
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"/>\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\
         <title>{title}</title><style>{STYLE}</style></head>\n<body><main>\n<h1>{title}</h1>\n{body}\
         </main></body></html>\n"
    )
}

/// Adds to the page.
pub(super) fn put(page: &mut String, markup: fmt::Arguments<'_>) {
    // into a string
    let _infallible = page.write_fmt(markup);
}

/// Links to the exhibits of these names.
pub(super) fn contents<'a>(names: impl Iterator<Item = &'a str>, page: &mut String) {
    page.push_str("<nav>");
    for name in names {
        put(
            page,
            format_args!("<a href=\"#{0}\">{0}</a> ", escape(name)),
        );
    }
    page.push_str("</nav>\n");
}

/// Pictures side by side, with what is seen in them.
pub(super) fn pictures(pictures: &[Picture], page: &mut String) {
    if pictures.is_empty() {
        return;
    }
    page.push_str("<div class=\"figures\">");
    for one in pictures {
        picture(one, page);
    }
    page.push_str("</div>\n");
}

fn picture(picture: &Picture, page: &mut String) {
    put(
        page,
        format_args!(
            "<figure><figcaption><b>{}</b> <span>{}</span>",
            escape(picture.title()),
            escape(picture.note())
        ),
    );
    page.push_str("<span class=\"legend\">");
    for (series, stroke, name) in picture.legend() {
        put(
            page,
            format_args!(
                "<span class=\"key\"><i class=\"{} s{series}\"></i>{}</span> ",
                stroke.as_str(),
                escape(&name)
            ),
        );
    }
    if picture.has_paper() {
        page.push_str("<span class=\"key\"><i class=\"hollow\"></i>the paper</span>");
    }
    page.push_str("</span></figcaption>");
    page.push_str(&picture.svg());
    page.push_str("</figure>\n");
}
