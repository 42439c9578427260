//! Record files: everything that was measured, with what is needed to measure it again, as JSON.

pub(crate) mod benchmark;
pub(crate) mod host;
pub(crate) mod markdown;
pub(crate) mod newest;

use clap::Args;
use host::Host;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;
use weir_workload::output;
use xtask::failure::{During, Failure};
use xtask::files;
use xtask::root;

/// A benchmark, by the figures that it puts into a record.
pub(crate) trait Benchmark: Default + Serialize + DeserializeOwned {
    /// What can be said of it; kept in the record.
    type Options: Args + Serialize + DeserializeOwned;

    /// What names of record files begin with.
    const FILE: &'static str;

    /// Raised when a field changes its meaning.
    const SCHEMA: u32;

    /// What the record says of the seed, if it is not among the options.
    const SEED: Option<&'static str> = None;

    /// Features that weir is built with, comma separated; none of them are on by default.
    const WEIR_FEATURES: &'static str = "";

    /// Measures, into the record. Long ones may write it to `file` meanwhile.
    fn measure(record: &mut Record<Self>, file: &Path) -> Result<(), Failure>;

    /// The tables, as Markdown.
    fn render(record: &Record<Self>) -> String;

    /// What went wrong with weir; what another proxy cannot do is a figure.
    fn faults(record: &Record<Self>) -> Vec<String>;
}

/// The record of a benchmark.
#[derive(Debug, Serialize, Deserialize)]
#[serde(bound = "")]
pub(crate) struct Record<B: Benchmark> {
    pub(crate) schema: u32,
    pub(crate) command: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) seed: Option<String>,
    pub(crate) commit: String,
    pub(crate) begun: String,
    pub(crate) host: Host,
    #[serde(default)]
    pub(crate) versions: BTreeMap<String, String>,
    pub(crate) settings: B::Options,
    /// Whether to install missing programs.
    #[serde(skip)]
    pub(crate) install: bool,
    /// Proxies, and parts of the measurement, that did not take part, with the reason.
    #[serde(default)]
    pub(crate) left_out: BTreeMap<String, String>,
    #[serde(flatten)]
    pub(crate) figures: B,
}

impl<B: Benchmark> Record<B> {
    /// An empty record of this machine.
    pub(crate) fn begin(settings: B::Options, arguments: &[String]) -> Self {
        Self {
            schema: B::SCHEMA,
            command: format!("cargo xtask {}", arguments.join(" ")),
            seed: B::SEED.map(str::to_owned),
            commit: host::commit(),
            begun: host::time(),
            host: Host::here(),
            versions: BTreeMap::new(),
            settings,
            install: false,
            left_out: BTreeMap::new(),
            figures: B::default(),
        }
    }

    /// # Errors
    /// The file is not there, is not understood, or has another schema.
    pub(crate) fn read(file: &Path) -> Result<Self, Failure> {
        let record: Self = files::read_json(file)?;
        if record.schema == B::SCHEMA {
            return Ok(record);
        }
        let (name, found, known) = (file.display(), record.schema, B::SCHEMA);
        Err(Failure::Usage(format!(
            "`{name}` has schema {found}, this is for {known}"
        )))
    }

    /// # Errors
    /// The file cannot be written.
    pub(crate) fn write(&self, file: &Path) -> Result<(), Failure> {
        let text = serde_json::to_string_pretty(self).during("write the record as JSON")? + "\n";
        output::write(file, text.as_bytes()).during(format_args!("write `{}`", file.display()))
    }

    /// What could be measured; what could not is left out.
    pub(crate) fn kept<T>(
        &mut self,
        what: impl Into<String>,
        outcome: Result<T, Failure>,
    ) -> Option<T> {
        outcome.map_err(|why| self.leave_out(what, &why)).ok()
    }

    /// Skips something, with a message.
    fn leave_out(&mut self, what: impl Into<String>, why: &Failure) {
        let what = what.into();
        eprintln!("  {what}: {why}");
        self.left_out.insert(what, why.to_string());
    }
}

/// The path that a record is written to: `given` if it was named on the command line, else
/// `records/NAME` in the repository.
///
/// A record below `records/` can be cited by a document, so it must name a commit that has all that
/// was measured. Call this before the measurement begins.
///
/// # Errors
/// The path is below `records/`, and files outside of `records/` have uncommitted changes.
pub(crate) fn place(given: Option<PathBuf>, name: &str) -> Result<PathBuf, Failure> {
    let records = root::directory().join("records");
    let path = given.unwrap_or_else(|| records.join(name));
    if is_below(&path, &records) {
        refuse_changes(&path, &host::changes())?;
    }
    // a record names its own file in the command it was made by: the same on every machine
    let here = std::env::current_dir().ok();
    let relative = here.and_then(|here| path.strip_prefix(here).ok().map(PathBuf::from));
    Ok(relative.unwrap_or(path))
}

/// A time as records have it, milliseconds.
pub(crate) fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

fn is_below(path: &Path, directory: &Path) -> bool {
    std::path::absolute(path).is_ok_and(|path| path.starts_with(directory))
}

fn refuse_changes(path: &Path, changes: &[String]) -> Result<(), Failure> {
    const NAMED_MAX: usize = 5;
    if changes.is_empty() {
        return Ok(());
    }
    let named: Vec<&str> = changes.iter().take(NAMED_MAX).map(String::as_str).collect();
    let more = if changes.len() > NAMED_MAX {
        ", …"
    } else {
        ""
    };
    Err(Failure::Usage(format!(
        "`{}` would be the record of a tree with uncommitted changes: {}{more}\n\
         hint: commit them first, or write the record to a path outside of `records/`",
        path.display(),
        named.join(", ")
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn record_in_the_records_folder_requires_a_clean_tree() {
        let path = Path::new("records/a.json");
        assert!(refuse_changes(path, &[]).is_ok());
        let changes: Vec<String> = (0..7).map(|n| format!("src/{n}.rs")).collect();
        let refused = refuse_changes(path, &changes).map_err(|failure| failure.to_string());
        let text = refused.expect_err("seven files have changes");
        for part in ["records/a.json", "src/0.rs", "src/4.rs, …", "hint: commit"] {
            assert!(text.contains(part), "`{text}` does not say `{part}`");
        }
        assert!(!text.contains("src/5.rs"), "{text}");
    }

    #[test]
    fn only_paths_below_the_records_folder_count_as_records() {
        let records = root::directory().join("records");
        assert!(is_below(&records.join("a/b.json"), &records));
        assert!(!is_below(&std::env::temp_dir().join("a.json"), &records));
        assert!(!is_below(&root::directory().join("records.json"), &records));
    }

    #[test]
    fn record_outside_the_records_folder_is_always_accepted() {
        let path = std::env::temp_dir().join("a.json");

        assert_eq!(place(Some(path.clone()), "b.json").ok(), Some(path));
    }
}
