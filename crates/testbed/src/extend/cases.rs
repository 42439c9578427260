//! The cases: weir without a module, and with each of the modules that the paper measured, run in
//! each way that there is; and a Squid that asks an ICAP server.

use crate::proxy::contender::{Contender, WEIR};
use std::path::PathBuf;
use xtask::failure::Failure;
use xtask::filters;

/// Where the configurations of this benchmark are, below `peers/`.
const FOLDER: &str = "extend";

/// The ICAP server with the echo service: it returns what it is sent as it is, or says that nothing
/// is to be changed.
pub(super) const ECHO: Contender = Contender {
    name: "c-icap",
    installed_as: Some("c-icap"),
    version: "c-icap -V",
    files: &["c-icap.conf"],
    command: "c-icap -N -f @DIR@/c-icap.conf",
    is_cache: false,
    ..Contender::NONE.with(FOLDER)
};

/// Weir as an ICAP server.
const SERVICES: Contender = Contender {
    name: "weir icap",
    files: &["services.toml"],
    command: "@WEIR@ icap --config @DIR@/services.toml --listen @HOST@:@PORT@ --workers 1",
    is_cache: false,
    ..Contender::NONE.with(FOLDER)
};

/// The servers that modules ask, each with the word that stands for its address.
pub(super) static SERVERS: [(Contender, &str); 2] = [(ECHO, "ICAP_ECHO"), (SERVICES, "ICAP_WEIR")];

/// All programs that take part.
pub(crate) static PROGRAMS: [Contender; 4] = [Contender::WEIR, Contender::SQUID, ECHO, SERVICES];

/// A filter in WebAssembly: the way that runs it, and the word that stands for its file.
pub(super) type Filter = (Way, &'static str, fn() -> Result<PathBuf, Failure>);

/// The filters in WebAssembly, and what builds each.
pub(super) static FILTERS: [Filter; 2] = [
    (Way::Wasm, "FILTER_RUST", filters::rust_probe),
    (Way::WasmGo, "FILTER_GO", filters::go_probe),
];

/// What the module does: a column of the paper's Table 5.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Work {
    /// There is no module.
    Baseline,
    /// There is one, and it is not for the requests that are sent.
    Enabled,
    /// It is called, and does nothing.
    Empty,
    /// It adds a field on each of the four paths.
    Headers,
    /// It does that, and takes the content of each response and puts it out again.
    Body,
    /// It has compressed the stored response, for a client before: no column of the paper.
    Compressed,
}

impl Work {
    /// The columns of the paper.
    pub(super) const COLUMNS: [Self; 5] = [
        Self::Baseline,
        Self::Enabled,
        Self::Empty,
        Self::Headers,
        Self::Body,
    ];

    /// Whether responses get a field.
    pub(super) const fn adds_fields(self) -> bool {
        matches!(self, Self::Headers | Self::Body)
    }

    /// The head of its column.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Baseline => "baseline",
            Self::Enabled => "enabled",
            Self::Empty => "empty callback",
            Self::Headers => "add headers",
            Self::Body => "body + headers",
            Self::Compressed => "compressed before",
        }
    }
}

/// Where the module runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// In the worker, as a part of the program.
    Native,
    /// In the worker, as a filter in WebAssembly that was written in Rust.
    Wasm,
    /// The same, written in Go.
    WasmGo,
    /// In an ICAP server that is weir.
    IcapWeir,
    /// In the ICAP server with the echo service.
    IcapEcho,
    /// In the ICAP server with the echo service, which Squid asks.
    SquidIcap,
}

impl Way {
    /// The ways of weir.
    pub(super) const OF_WEIR: [Self; 5] = [
        Self::Native,
        Self::Wasm,
        Self::WasmGo,
        Self::IcapWeir,
        Self::IcapEcho,
    ];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Native => "native",
            Self::Wasm => "wasm, Rust",
            Self::WasmGo => "wasm, Go",
            Self::IcapWeir => "ICAP, weir",
            Self::IcapEcho => "ICAP, c-icap",
            Self::SquidIcap => "ICAP, Squid",
        }
    }
}

/// One case: a row of the tables.
#[derive(Debug)]
pub(super) struct Case {
    /// Weir or Squid, by the name of the case.
    pub(super) contender: Contender,
    pub(super) way: Way,
    pub(super) work: Work,
    /// The `[[module]]` tables of its configuration, to be filled in. Under callgrind, or where
    /// other programs run, a call may take longer than the default deadline, which counts as a
    /// failure.
    pub(super) tables: &'static str,
    /// The programs that it needs.
    pub(super) programs: &'static [&'static str],
}

impl Case {
    pub(super) const fn name(&self) -> &'static str {
        self.contender.name
    }

    /// Whether it is weir.
    pub(super) fn is_weir(&self) -> bool {
        Way::OF_WEIR.contains(&self.way)
    }

    /// Its name in those of files.
    pub(super) fn file_name(&self) -> String {
        let letters = self
            .name()
            .chars()
            .filter(|c| !matches!(c, ':' | ',' | '\''));
        letters.map(|c| if c == ' ' { '-' } else { c }).collect()
    }
}

/// What others are compared with.
pub(super) const BASELINE: &str = "no module";

/// The content of each response passes a module.
pub(super) const BODY: &str = "native: body + headers";

/// A client that gets what was compressed for the one before it.
pub(super) const COMPRESSED: &str = "compression, second client";

/// The other proxy that asks the ICAP server.
pub(super) const SQUID_ICAP: &str = "Squid: ICAP, c-icap with echo";

/// Weir that asks the same server.
pub(super) const ICAP_ECHO: &str = "ICAP, c-icap: echo";

/// The other weir, without a module.
pub(super) const AGAINST: &str = "no module, the other weir";

/// An empty filter in Rust, and one that adds fields.
pub(super) const WASM_EMPTY: &str = "wasm, Rust: empty callback";
pub(super) const WASM_HEADERS: &str = "wasm, Rust: add headers";

/// All cases, in the order of the tables.
pub(super) static CASES: [Case; 17] = [
    weir(BASELINE, Way::Native, Work::Baseline, ""),
    weir(AGAINST, Way::Native, Work::Baseline, ""),
    weir(
        "enabled, out of scope",
        Way::Native,
        Work::Enabled,
        r#"[[module]]
name = "probe"
kind = "probe"
deadline = "10s"
host = "elsewhere.example"
"#,
    ),
    weir(
        "native: empty callback",
        Way::Native,
        Work::Empty,
        r#"[[module]]
name = "probe"
kind = "probe"
deadline = "10s"
"#,
    ),
    weir(
        "native: add headers",
        Way::Native,
        Work::Headers,
        r#"[[module]]
name = "probe"
kind = "probe"
deadline = "10s"
options.field = "X-Probe"
"#,
    ),
    weir(
        BODY,
        Way::Native,
        Work::Body,
        r#"[[module]]
name = "probe"
kind = "probe"
deadline = "10s"
options.field = "X-Probe"
options.content = true
"#,
    ),
    weir(
        COMPRESSED,
        Way::Native,
        Work::Compressed,
        r#"[[module]]
name = "compress"
kind = "compress"
deadline = "10s"
options.types = ["application/octet-stream"]
"#,
    ),
    weir(
        WASM_EMPTY,
        Way::Wasm,
        Work::Empty,
        r#"[[module]]
name = "probe"
kind = "wasm"
deadline = "10s"
options.file = "@FILTER_RUST@"
options.configuration = "empty"
options.bodies = []
"#,
    ),
    weir(
        WASM_HEADERS,
        Way::Wasm,
        Work::Headers,
        r#"[[module]]
name = "probe"
kind = "wasm"
deadline = "10s"
options.file = "@FILTER_RUST@"
options.configuration = "fields"
options.bodies = []
"#,
    ),
    weir(
        "wasm, Rust: body + headers",
        Way::Wasm,
        Work::Body,
        r#"[[module]]
name = "probe"
kind = "wasm"
deadline = "10s"
options.file = "@FILTER_RUST@"
options.configuration = "content"
options.bodies = ["response"]
"#,
    ),
    weir(
        "wasm, Go: empty callback",
        Way::WasmGo,
        Work::Empty,
        r#"[[module]]
name = "probe"
kind = "wasm"
deadline = "10s"
options.file = "@FILTER_GO@"
options.configuration = "empty"
options.bodies = []
"#,
    ),
    weir(
        "wasm, Go: add headers",
        Way::WasmGo,
        Work::Headers,
        r#"[[module]]
name = "probe"
kind = "wasm"
deadline = "10s"
options.file = "@FILTER_GO@"
options.configuration = "fields"
options.bodies = []
"#,
    ),
    icap(
        "ICAP, weir: empty callback",
        Way::IcapWeir,
        Work::Empty,
        r#"[[module]]
name = "icap"
kind = "icap"
deadline = "10s"
options.service = "icap://@ICAP_WEIR@/empty"
"#,
    ),
    icap(
        "ICAP, weir: add headers",
        Way::IcapWeir,
        Work::Headers,
        r#"[[module]]
name = "icap"
kind = "icap"
deadline = "10s"
options.service = "icap://@ICAP_WEIR@/fields"
"#,
    ),
    icap(
        "ICAP, weir: body + headers",
        Way::IcapWeir,
        Work::Body,
        r#"[[module]]
name = "icap"
kind = "icap"
deadline = "10s"
options.service = "icap://@ICAP_WEIR@/content"
"#,
    ),
    icap(
        ICAP_ECHO,
        Way::IcapEcho,
        Work::Empty,
        r#"[[module]]
name = "icap"
kind = "icap"
deadline = "10s"
options.service = "icap://@ICAP_ECHO@/echo"
"#,
    ),
    Case {
        contender: Contender {
            name: SQUID_ICAP,
            ..Contender::SQUID.with(FOLDER)
        },
        way: Way::SquidIcap,
        work: Work::Empty,
        tables: "",
        programs: &[Contender::SQUID.name, ECHO.name],
    },
];

const fn weir(name: &'static str, way: Way, work: Work, tables: &'static str) -> Case {
    Case {
        contender: Contender {
            name,
            ..Contender::WEIR
        },
        way,
        work,
        tables,
        programs: &[WEIR],
    }
}

const fn icap(name: &'static str, way: Way, work: Work, tables: &'static str) -> Case {
    let programs: &[&str] = match way {
        Way::IcapEcho => &[WEIR, ECHO.name],
        _ => &[WEIR, SERVICES.name],
    };
    Case {
        programs,
        ..weir(name, way, work, tables)
    }
}
