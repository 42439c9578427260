//! The reference of the kind `wasm`, printed from the tables of the code.

use crate::guest::functions::FUNCTIONS;
use crate::guest::properties::{FIELD_PATHS, PROPERTIES};
use crate::options::OPTIONS;
use weir_wasm::{CallKind, Limits, Support, SupportedCall, supported_calls};

/// The page `docs/reference/filters.md`.
#[must_use]
pub fn reference() -> String {
    let mut page = Page::default();
    page.line("# Filters in WebAssembly: reference");
    page.text(
        "Made from the code: `WEIR_BLESS=1 cargo test -p weir-filters --test reference` writes it anew. [Modules](../modules.md) explains the kind `wasm`.",
    );
    options(&mut page);
    limits(&mut page);
    properties(&mut page);
    functions(&mut page);
    calls(&mut page);
    page.0
}

#[derive(Default)]
struct Page(String);

impl Page {
    fn line(&mut self, line: &str) {
        self.0.push_str(line);
        self.0.push('\n');
    }

    fn heading(&mut self, text: &str) {
        self.line("");
        self.line(&format!("## {text}"));
    }

    /// A paragraph, in lines of at most 100 columns.
    fn text(&mut self, text: &str) {
        self.line("");
        let mut line = String::new();
        for word in text.split(' ') {
            if !line.is_empty() && line.len() + 1 + word.len() > 100 {
                self.line(&line);
                line.clear();
            }
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
        self.line(&line);
    }

    fn table<const N: usize>(
        &mut self,
        titles: [&str; N],
        rows: impl IntoIterator<Item = [String; N]>,
    ) {
        self.line("");
        self.line(&format!("| {} |", titles.join(" | ")));
        self.line(&format!("|{}", " --- |".repeat(N)));
        for row in rows {
            self.line(&format!("| {} |", row.join(" | ")));
        }
    }
}

fn code(text: &str) -> String {
    format!("`{text}`")
}

fn options(page: &mut Page) {
    page.heading("Options");
    let rows = OPTIONS.iter().map(|it| {
        [
            code(&format!("options.{}", it.name)),
            it.value.to_owned(),
            it.help.to_owned(),
        ]
    });
    page.table(["option", "value", "meaning"], rows);
}

fn limits(page: &mut Page) {
    page.heading("Limits");
    let limits = Limits::default();
    page.text(&format!(
        "`module[].deadline` bounds each call, and `module[].hold` the content of one message that \
         is held for the filter (at least 64 KiB). Beside them an instance has at most {} streams, \
         {} HTTP calls under way, {} KiB of content in one call of the host, and {} elements in \
         a table of functions; its ticks are at least {} ms apart. All instances of a module \
         together have at most `module[].requests_max` (16) HTTP calls under way: unless that is \
         set higher than {}, it is the limit that holds.",
        limits.streams_max,
        limits.http_calls_max,
        limits.content_bytes_max >> 10,
        limits.table_elements_max,
        limits.tick_period_min.as_millis(),
        limits.http_calls_max,
    ));
}

fn properties(page: &mut Page) {
    page.heading("Properties");
    page.text(
        "Paths are written with dots; in a call a NUL stands for each. Beside these, \
         `plugin_name`, `plugin_root_id` and `plugin_vm_id` are those of the filter itself. A \
         filter may set properties of other names, which live as long as their stream.",
    );
    let fields = FIELD_PATHS.iter().map(|path| {
        let help = "The first field of this name.".to_owned();
        [code(&format!("{path}.NAME")), "string".to_owned(), help]
    });
    let rows = PROPERTIES
        .iter()
        .map(|it| [code(it.path), it.form.to_owned(), it.help.to_owned()]);
    page.table(["property", "form", "value"], rows.chain(fields));
}

fn functions(page: &mut Page) {
    page.heading("Foreign functions");
    page.text(
        "They are there with `options.objects = true`. The arguments are lines of text: `gateway` or `forward`, a space and the target URI; what \
         the table says; fields of the request that selects the response. The result is a number \
         of 4 bytes, little-endian. When the call is complete, `proxy_on_foreign_function` has \
         this number as its function, and as its arguments a line `ok`, or `error:` and the \
         reason, and what is known of the response.",
    );
    let rows = FUNCTIONS
        .iter()
        .map(|it| [code(it.name), it.takes.to_owned(), it.help.to_owned()]);
    page.table(["function", "takes", "what it does"], rows);
}

fn calls(page: &mut Page) {
    page.heading("Calls");
    page.text(
        "ABI 0.2.1, and 0.2.0 where it is the same. A call that does nothing links and answers \
         `Unimplemented` (12), or an error number of WASI; `weir modules` names those that a \
         filter imports.",
    );
    let kinds = [
        ("Calls of the host", CallKind::HostCall, "env"),
        (
            "WASI preview 1",
            CallKind::HostCall,
            "wasi_snapshot_preview1",
        ),
        ("Callbacks", CallKind::Callback, ""),
    ];
    for (title, kind, module) in kinds {
        let of_kind = |call: &&SupportedCall| call.kind == kind && call.module == module;
        let calls: Vec<_> = supported_calls().iter().filter(of_kind).collect();
        let names = |support| {
            let chosen = calls.iter().filter(|call| call.support == support);
            let names: Vec<String> = chosen.map(|call| code(call.name)).collect();
            names.join(", ")
        };
        page.text(&format!(
            "**{title}**, supported: {}.",
            names(Support::Full)
        ));
        page.text(&format!("Not supported: {}.", names(Support::None)));
    }
}
