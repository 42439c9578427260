//! The options of a filter.

use std::collections::BTreeMap;
use std::path::PathBuf;
use weir_extend::{LoadError, OptionValue, Options};

/// An option: its name, what it takes, and what it does.
pub(crate) struct OptionHelp {
    pub(crate) name: &'static str,
    pub(crate) value: &'static str,
    pub(crate) help: &'static str,
}

const fn help(name: &'static str, value: &'static str, help: &'static str) -> OptionHelp {
    OptionHelp { name, value, help }
}

/// All of them.
pub(crate) static OPTIONS: [OptionHelp; 14] = [
    help(
        "file",
        "a path",
        "The filter, a `.wasm` file. It is read at each load and reload.",
    ),
    help(
        "configuration",
        "a string",
        "What the filter reads in `proxy_on_configure`.",
    ),
    help(
        "vm_configuration",
        "a string",
        "What the filter reads in `proxy_on_vm_start`.",
    ),
    help(
        "root_id",
        "a string",
        "The property `plugin_root_id`, by which a file with several filters chooses one.",
    ),
    help(
        "strict",
        "true or false",
        "Refuse a file that imports a call that does nothing here. SDKs import all calls, used or not. Default: false.",
    ),
    help(
        "memory",
        "a size",
        "The most memory of an instance, of which there is one a worker. Default: 64 MiB.",
    ),
    help(
        "bodies",
        "a list",
        "The messages whose content the filter gets: `request`, `response`. Default: both, if the filter has callbacks for them, which SDKs always export. Say `[]` for a filter that only reads heads: responses then keep their length, ranges and entity tag.",
    ),
    help(
        "stored",
        "true or false",
        "Call the filter for a response when it is received, once a fetch, so that its changes are stored; not when it is sent, once a client. Default: false.",
    ),
    help(
        "plain",
        "true or false",
        "Undo content codings (gzip, deflate, br, zstd) of a response before the filter gets its content. Default: false.",
    ),
    help(
        "upstreams",
        "a table",
        "Destinations of HTTP calls: the name that the filter uses, and a URL such as `\"http://127.0.0.1:9000\"`. Rules for destinations hold.",
    ),
    help(
        "objects",
        "true or false",
        "Permit the functions `weir_object_*`. They work with what is stored for any target, and request any target that the rules for destinations allow, whatever `host`, `path` and `upstreams` say. Default: false.",
    ),
    help(
        "environment",
        "a table",
        "Environment variables of the filter. Those of the proxy are never visible.",
    ),
    help(
        "arguments",
        "a list",
        "Arguments of the filter, as WASI has them.",
    ),
    help(
        "start_deadline",
        "milliseconds",
        "How long each step of the start of an instance may take. Default: 10000.",
    ),
];

/// The most memory of an instance by default, bytes.
const MEMORY_BYTES_DEFAULT: u64 = 64 << 20;

/// The most that an operator may permit, bytes.
const MEMORY_BYTES_MAX: u64 = 1 << 30;

/// The longest time that an operator may permit for a step of the start, ms.
const START_DEADLINE_MS_MAX: u64 = 600_000;

/// Most upstreams, environment variables and arguments, each.
const ENTRIES_MAX: usize = 64;

/// What the table of a filter says.
#[derive(Debug)]
pub(crate) struct FilterOptions {
    pub(crate) file: PathBuf,
    pub(crate) configuration: String,
    pub(crate) vm_configuration: String,
    pub(crate) root_id: String,
    pub(crate) strict: bool,
    pub(crate) memory_bytes_max: usize,
    pub(crate) request_body: bool,
    pub(crate) response_body: bool,
    pub(crate) stored: bool,
    pub(crate) plain: bool,
    pub(crate) upstreams: BTreeMap<Vec<u8>, String>,
    pub(crate) objects: bool,
    pub(crate) environment: Vec<(String, String)>,
    pub(crate) arguments: Vec<String>,
    pub(crate) start_deadline_ms: u64,
}

impl FilterOptions {
    /// Reads them.
    ///
    /// # Errors
    ///
    /// One is missing, wrong or unknown.
    pub(crate) fn read(mut options: Options) -> Result<Self, LoadError> {
        let take = &mut options;
        let file = text(take, "file")?.unwrap_or_default();
        let (request_body, response_body) = bodies(take)?;
        let read = Self {
            file: file.into(),
            configuration: text(take, "configuration")?.unwrap_or_default(),
            vm_configuration: text(take, "vm_configuration")?.unwrap_or_default(),
            root_id: text(take, "root_id")?.unwrap_or_default(),
            strict: flag(take, "strict")?,
            memory_bytes_max: memory(take)?,
            request_body,
            response_body,
            stored: flag(take, "stored")?,
            plain: flag(take, "plain")?,
            upstreams: upstreams(take)?,
            objects: flag(take, "objects")?,
            environment: table(take, "environment")?,
            arguments: list(take, "arguments")?.unwrap_or_default(),
            start_deadline_ms: start_deadline(take)?,
        };
        let names: Vec<&str> = OPTIONS.iter().map(|option| option.name).collect();
        options.finish(&names)?;
        if read.file.as_os_str().is_empty() {
            let hint = "give the path of a `.wasm` file";
            return Err(LoadError::new("file", "there is no filter", hint));
        }
        Ok(read)
    }
}

fn wrong(name: &str, expected: &str, found: &OptionValue) -> LoadError {
    let what = format!("expected {expected}, found {}", found.form());
    LoadError::new(name, what, format!("write {expected}"))
}

fn text(options: &mut Options, name: &str) -> Result<Option<String>, LoadError> {
    match options.take(name) {
        None => Ok(None),
        Some(OptionValue::Text(text)) => Ok(Some(text)),
        Some(other) => Err(wrong(name, "a string", &other)),
    }
}

fn flag(options: &mut Options, name: &str) -> Result<bool, LoadError> {
    match options.take(name) {
        None => Ok(false),
        Some(OptionValue::Flag(flag)) => Ok(flag),
        Some(other) => Err(wrong(name, "true or false", &other)),
    }
}

fn list(options: &mut Options, name: &str) -> Result<Option<Vec<String>>, LoadError> {
    let values = match options.take(name) {
        None => return Ok(None),
        Some(OptionValue::List(values)) => values,
        Some(other) => return Err(wrong(name, "a list of strings", &other)),
    };
    check_count(name, values.len())?;
    let texts = values.into_iter().map(|value| match value {
        OptionValue::Text(text) => Ok(text),
        other => Err(wrong(name, "a list of strings", &other)),
    });
    texts.collect::<Result<_, _>>().map(Some)
}

fn table(options: &mut Options, name: &str) -> Result<Vec<(String, String)>, LoadError> {
    let values = match options.take(name) {
        None => return Ok(Vec::new()),
        Some(OptionValue::Table(values)) => values,
        Some(other) => return Err(wrong(name, "a table of strings", &other)),
    };
    check_count(name, values.len())?;
    let texts = values.into_iter().map(|(key, value)| match value {
        OptionValue::Text(text) => Ok((key, text)),
        other => Err(wrong(&format!("{name}.{key}"), "a string", &other)),
    });
    texts.collect()
}

fn check_count(name: &str, count: usize) -> Result<(), LoadError> {
    if count <= ENTRIES_MAX {
        return Ok(());
    }
    let what = format!("it has {count} entries, more than {ENTRIES_MAX}");
    Err(LoadError::new(name, what, "use fewer"))
}

fn bodies(options: &mut Options) -> Result<(bool, bool), LoadError> {
    let Some(names) = list(options, "bodies")? else {
        return Ok((true, true));
    };
    let unknown = names
        .iter()
        .find(|it| !matches!(it.as_str(), "request" | "response"));
    if let Some(unknown) = unknown {
        let what = format!("there is no message `{unknown}`");
        return Err(LoadError::new(
            "bodies",
            what,
            "use `request` and `response`",
        ));
    }
    let has = |name: &str| names.iter().any(|it| it == name);
    Ok((has("request"), has("response")))
}

fn memory(options: &mut Options) -> Result<usize, LoadError> {
    let hint = "write a size such as \"64MiB\", from \"64KiB\" to \"1GiB\"";
    let wrong = |what: String| LoadError::new("memory", what, hint);
    let bytes = match options.take("memory") {
        None => Some(MEMORY_BYTES_DEFAULT),
        Some(value) => value.size_bytes(),
    };
    let bytes = bytes.filter(|bytes| (64 << 10..=MEMORY_BYTES_MAX).contains(bytes));
    let bytes = bytes.and_then(|bytes| usize::try_from(bytes).ok());
    bytes.ok_or_else(|| wrong("it is no size in the range".to_owned()))
}

fn upstreams(options: &mut Options) -> Result<BTreeMap<Vec<u8>, String>, LoadError> {
    let mut upstreams = BTreeMap::new();
    for (name, url) in table(options, "upstreams")? {
        let authority = url
            .strip_prefix("http://")
            .map(|rest| rest.trim_end_matches('/'));
        let authority = authority.filter(|it| !it.is_empty() && !it.contains('/'));
        let Some(authority) = authority else {
            let what = format!("`{url}` is no URL of a server");
            let hint = "write `http://`, a host, and a port if it is not 80";
            return Err(LoadError::new(format!("upstreams.{name}"), what, hint));
        };
        upstreams.insert(name.into_bytes(), format!("http://{authority}"));
    }
    Ok(upstreams)
}

fn start_deadline(options: &mut Options) -> Result<u64, LoadError> {
    let hint = "write milliseconds, from 1 to 600000";
    let ms = match options.take("start_deadline") {
        None => Some(10_000),
        Some(OptionValue::Number(ms)) => u64::try_from(ms).ok(),
        Some(_) => None,
    };
    let ms = ms.filter(|ms| (1..=START_DEADLINE_MS_MAX).contains(ms));
    ms.ok_or_else(|| LoadError::new("start_deadline", "it is no time in the range", hint))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(values: &[(&str, OptionValue)]) -> Result<FilterOptions, String> {
        let values = values.iter();
        let values = values.map(|(name, value)| ((*name).to_owned(), value.clone()));
        FilterOptions::read(Options::new(values.collect())).map_err(|error| error.to_string())
    }

    fn text(text: &str) -> OptionValue {
        OptionValue::Text(text.to_owned())
    }

    #[test]
    fn file_is_needed_and_unknown_options_are_refused() {
        assert!(read(&[]).is_err_and(|error| error.starts_with("file: there is no filter")));
        let error = read(&[("file", text("a.wasm")), ("fil", text("b"))]);
        assert!(error.is_err_and(|error| error.starts_with("fil: there is no such option")));
        let options = read(&[("file", text("a.wasm"))]).expect("a file");
        assert_eq!(options.memory_bytes_max, 64 << 20);
        assert!(options.request_body && options.response_body && !options.stored);
    }

    #[test]
    fn sizes_have_units_and_a_range() {
        for (value, expected) in [
            ("64KiB", Some(64 << 10)),
            ("1GiB", Some(1 << 30)),
            ("63KiB", None),
            ("2GiB", None),
            ("1", None),
            ("99999999999999999999GiB", None),
        ] {
            let options = read(&[("file", text("a")), ("memory", text(value))]);
            assert_eq!(
                options.ok().map(|it| it.memory_bytes_max),
                expected,
                "{value}"
            );
        }
    }

    #[test]
    fn upstream_is_a_server_and_nothing_more() {
        for (url, expected) in [
            ("http://127.0.0.1:9000", Some("http://127.0.0.1:9000")),
            ("http://a.example/", Some("http://a.example")),
            ("https://a.example", None),
            ("http://a.example/path", None),
            ("a.example", None),
            ("http://", None),
        ] {
            let table = BTreeMap::from([("auth".to_owned(), text(url))]);
            let read = read(&[
                ("file", text("a")),
                ("upstreams", OptionValue::Table(table)),
            ]);
            let found = read
                .ok()
                .map(|options| options.upstreams[&b"auth"[..]].clone());
            assert_eq!(found.as_deref(), expected, "{url}");
        }
    }

    #[test]
    fn bodies_are_those_that_are_named() {
        for (names, expected) in [
            (&[][..], Some((false, false))),
            (&["request"], Some((true, false))),
            (&["response", "request"], Some((true, true))),
            (&["trailers"], None),
        ] {
            let list = OptionValue::List(names.iter().map(|name| text(name)).collect());
            let read = read(&[("file", text("a")), ("bodies", list)]);
            let found = read.ok().map(|it| (it.request_body, it.response_body));
            assert_eq!(found, expected, "{names:?}");
        }
    }
}
