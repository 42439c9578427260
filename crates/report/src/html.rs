//! HTML that is well-formed by construction: what is opened is closed, what is text is escaped.

/// A page under construction.
#[derive(Debug, Default)]
pub struct Html {
    text: String,
    open: Vec<&'static str>,
}

impl Html {
    /// Opens an element; `class` may be empty.
    pub fn open(&mut self, tag: &'static str, class: &str) {
        self.begin(tag, &[("class", class)]);
        self.open.push(tag);
    }

    /// Opens an element with attributes; those without a value are left out.
    pub fn open_with(&mut self, tag: &'static str, attributes: &[(&str, &str)]) {
        self.begin(tag, attributes);
        self.open.push(tag);
    }

    /// Closes the element that was opened last.
    pub fn close(&mut self) {
        if let Some(tag) = self.open.pop() {
            self.text.push_str("</");
            self.text.push_str(tag);
            self.text.push('>');
            if !is_inline(tag) {
                self.text.push('\n');
            }
        }
    }

    /// An element with nothing but text in it.
    pub fn element(&mut self, tag: &'static str, class: &str, text: &str) {
        self.open(tag, class);
        self.text(text);
        self.close();
    }

    /// Text.
    pub fn text(&mut self, text: &str) {
        self.text.push_str(&escape(text));
    }

    /// A drawing or a style sheet of ours, as it is.
    pub fn raw(&mut self, markup: &str) {
        self.text.push_str(markup);
    }

    /// The head cell of a row.
    pub fn row_head(&mut self, text: &str) {
        self.open_with("th", &[("scope", "row")]);
        self.text(text);
        self.close();
    }

    /// Cells of a row.
    pub fn cells(&mut self, cells: impl IntoIterator<Item: AsRef<str>>) {
        for cell in cells {
            self.element("td", "", cell.as_ref());
        }
    }

    /// A table with these columns, in a box that scrolls; `body` writes its rows.
    pub fn table<C: AsRef<str>>(
        &mut self,
        class: &str,
        columns: &[C],
        body: impl FnOnce(&mut Self),
    ) {
        self.open("div", "wide");
        self.open("table", class);
        self.open("thead", "");
        self.open("tr", "");
        for column in columns {
            self.element("th", "", column.as_ref());
        }
        self.close();
        self.close();
        self.open("tbody", "");
        body(self);
        for _ in 0..3 {
            self.close();
        }
    }

    /// The page, with everything closed.
    pub fn finish(mut self) -> String {
        while !self.open.is_empty() {
            self.close();
        }
        self.text
    }

    fn begin(&mut self, tag: &str, attributes: &[(&str, &str)]) {
        self.text.push('<');
        self.text.push_str(tag);
        for (name, value) in attributes.iter().filter(|(_, value)| !value.is_empty()) {
            self.text.push(' ');
            self.text.push_str(name);
            self.text.push_str("=\"");
            self.text.push_str(&escape(value));
            self.text.push('"');
        }
        self.text.push('>');
    }
}

fn is_inline(tag: &str) -> bool {
    matches!(tag, "span" | "b" | "i" | "code" | "a")
}

/// Text that is nothing but text: in content, in attributes, in an SVG. Control characters, which
/// XML has no place for, become the sign for what cannot be shown.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\n' | '\t' => out.push(character),
            control if control.is_control() => out.push('\u{fffd}'),
            other => out.push(other),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn html_text_and_attributes_are_escaped() {
        let mut html = Html::default();
        html.open_with("p", &[("title", "\"><b>"), ("class", "")]);
        html.element("b", "x", "<i>&\u{1}");
        html.text("'");
        assert_eq!(
            html.finish(),
            "<p title=\"&quot;&gt;&lt;b&gt;\"><b class=\"x\">&lt;i&gt;&amp;\u{fffd}</b>&#39;</p>\n"
        );
    }
}
