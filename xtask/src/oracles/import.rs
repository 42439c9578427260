//! Which traces there are, and what our importer makes of them.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use xtask::command::json;
use xtask::failure::Failure;
use xtask::files;

/// Folders of traces, and which of the times of a transaction its sources write down.
const FOLDERS: [(&str, LoggedTime); 4] = [
    ("clf", LoggedTime::Arrival),
    ("squid", LoggedTime::End),
    ("har", LoggedTime::Arrival),
    ("cdn", LoggedTime::Arrival),
];

/// The logs of a real Squid among other files.
const SQUID_GT: &str = "squid_gt";

/// When a source says that a transaction was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LoggedTime {
    /// When it began.
    Arrival,
    /// When it ended.
    End,
}

/// A trace of another program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Source {
    pub(crate) path: PathBuf,
    pub(crate) logged: LoggedTime,
}

/// A trace that was imported.
#[derive(Debug)]
pub(crate) struct ImportedTrace<'a> {
    pub(crate) source: &'a Source,
    /// What `weir trace import --json` says of it.
    pub(crate) summary: Value,
    /// The Parquet file.
    pub(crate) trace: PathBuf,
}

impl Source {
    fn new(path: PathBuf, logged: LoggedTime) -> Self {
        Self { path, logged }
    }

    /// Its name in the tables: that of the file without what says how it is compressed.
    pub(crate) fn name(&self) -> String {
        let name = self.path.file_name().unwrap_or_default().to_string_lossy();
        let name = name.strip_suffix(".gz").unwrap_or(&name);
        match name.strip_suffix(".access.log") {
            Some(run) => format!("{SQUID_GT}_{run}"),
            None => name.to_owned(),
        }
    }

    /// Whether it is an archive of a browser.
    pub(crate) fn is_har(&self) -> bool {
        self.name().ends_with(".har")
    }
}

/// All of them, in the order of their names.
pub(crate) fn sources(data: &Path) -> Result<Vec<Source>, Failure> {
    let mut sources = Vec::new();
    for (folder, logged) in FOLDERS {
        let listed = files::list(&data.join(folder))?;
        sources.extend(listed.into_iter().map(|path| Source::new(path, logged)));
    }
    let is_log = |path: &PathBuf| path.to_string_lossy().contains(".access.log");
    let logs = files::list(&data.join(SQUID_GT))?
        .into_iter()
        .filter(is_log);
    sources.extend(logs.map(|path| Source::new(path, LoggedTime::End)));
    Ok(sources)
}

/// Imports one; what cannot be read is skipped, so that it is counted.
pub(crate) fn import<'a>(
    weir: &Path,
    source: &'a Source,
    place: &Path,
) -> Result<ImportedTrace<'a>, Failure> {
    let trace = place.join(format!("{}.parquet", source.name()));
    let mut command = Command::new(weir);
    command
        // the figures are of rows in the order of their files
        .args(["trace", "import", "--order", "source"])
        .args(["--on-damage", "skip", "--json", "--out"])
        .args([&trace, &source.path])
        .stderr(Stdio::inherit());
    let summary = json(&mut command).map_err(|failure| {
        let path = source.path.display();
        Failure::Refused(format!("`{path}` cannot be imported: {failure}"))
    })?;
    Ok(ImportedTrace {
        source,
        summary,
        trace,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trace_name_is_derived_from_its_path() {
        for (path, name) in [
            ("clf/elastic_apache_logs.gz", "elastic_apache_logs"),
            ("clf/nasa_jul95_head.log", "nasa_jul95_head.log"),
            ("har/theverge.har.gz", "theverge.har"),
            ("squid_gt/dev.access.log.gz", "squid_gt_dev"),
        ] {
            let source = Source::new(path.into(), LoggedTime::End);
            assert_eq!(source.name(), name);
        }
    }
}
