//! Filters in text form, which do one thing at each callback.

use crate::bed::{filter, text};
use std::path::PathBuf;
use tempfile::TempDir;
use weir_proxy::config::{Module as ModuleTable, ModuleOption};
use weir_wasm::{CallKind, Support, SupportedCall, supported_calls};

/// A filter in a file of its own.
pub(crate) struct TextFilter {
    _directory: TempDir,
    pub(crate) file: PathBuf,
}

impl TextFilter {
    /// With these functions beside those that every filter has.
    pub(crate) fn new(body: &str) -> Self {
        Self::of(&module(body))
    }

    /// Whose text is this.
    pub(crate) fn of(text: &str) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("filter.wasm");
        let this = Self {
            _directory: directory,
            file,
        };
        this.write(text);
        this
    }

    /// Replaces the file.
    pub(crate) fn write(&self, text: &str) {
        let bytes = wat::parse_str(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        std::fs::write(&self.file, bytes).expect("written");
    }

    /// Its table.
    pub(crate) fn table(&self, options: &[(&str, ModuleOption)]) -> ModuleTable {
        filter(&self.file, options)
    }
}

/// The text of a module: imports, memory, an allocator that only grows.
pub(crate) fn module(body: &str) -> String {
    let calls = supported_calls().iter();
    let calls = calls.filter(|it| it.kind == CallKind::HostCall && it.support == Support::Full);
    let imports: Vec<String> = calls.map(import).collect();
    format!(
        r#"(module
        {}
        (memory (export "memory") 1)
        (global $top (mut i32) (i32.const 32768))
        (func (export "proxy_abi_version_0_2_1"))
        (func (export "proxy_on_memory_allocate") (param $size i32) (result i32)
            (local $place i32)
            (if (i32.gt_u (local.get $size) (i32.const 32767)) (then unreachable))
            (if (i32.gt_u (i32.add (global.get $top) (local.get $size)) (i32.const 65535))
                (then (global.set $top (i32.const 32768))))
            (local.set $place (global.get $top))
            (global.set $top (i32.add (global.get $top) (local.get $size)))
            (local.get $place))
        {body})"#,
        imports.join("\n")
    )
}

fn import(call: &SupportedCall) -> String {
    let words = |letters: &str| -> String {
        let word = |letter| if letter == 'I' { " i64" } else { " i32" };
        letters.chars().map(word).collect()
    };
    let (parameters, result) = (words(call.parameters), words(call.result));
    format!(
        "(import \"{}\" \"{}\" (func ${} (param{parameters}) (result{result})))",
        call.module, call.name, call.name
    )
}

/// A callback with three parameters that gives an action.
pub(crate) fn callback(name: &str, body: &str) -> String {
    format!("(func (export \"{name}\") (param i32 i32 i32) (result i32) {body})")
}

/// Text that the modules of these tests have in their memory, with its place.
pub(crate) fn data(at: u32, text: &str) -> String {
    format!("(data (i32.const {at}) \"{text}\")")
}

/// The options of a filter for requests without content.
pub(crate) fn heads_only() -> Vec<(&'static str, ModuleOption)> {
    vec![("bodies", ModuleOption::List(Vec::new()))]
}

/// A list of one.
pub(crate) fn only(name: &str) -> ModuleOption {
    ModuleOption::List(vec![text(name)])
}
