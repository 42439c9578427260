//! Where and with what a record was made.

use crate::process::guarded;
use crate::proxy::contender::Contender;
use crate::proxy::template::Words;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::process::Command;
use std::time::Duration;
use weir_bench::record::look_at_host;
use xtask::command::{git, output};

/// The machine.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Host {
    pub(crate) cpu: String,
    pub(crate) cores: u32,
    pub(crate) kernel: String,
    /// One-minute load average when the record was begun: above about 0.5 other programs were
    /// running.
    pub(crate) load_average: String,
    pub(crate) memory_kib: String,
}

impl Host {
    pub(crate) fn here() -> Self {
        let host = look_at_host();
        Self {
            cpu: host.cpu,
            cores: host.cores,
            kernel: host.kernel.trim_start_matches("Linux ").to_owned(),
            load_average: format!("{:.2}", host.load_average),
            memory_kib: (host.memory_bytes / 1024).to_string(),
        }
    }
}

/// The commit of the work tree, marked when there are changes on top of it.
pub(crate) fn commit() -> String {
    match git(&["rev-parse", "--verify", "HEAD"]) {
        Err(_) => "none".to_owned(),
        Ok(commit) if changes().is_empty() => commit.trim().to_owned(),
        Ok(commit) => format!("{} and changes", commit.trim()),
    }
}

/// Paths of the repository with uncommitted changes. Changes below `records/` do not count: they
/// are what measurements write.
pub(crate) fn changes() -> Vec<String> {
    let said = git(&["status", "--porcelain", "--", ".", ":!records"]);
    let Ok(said) = said else {
        return vec!["git does not tell".to_owned()];
    };
    let lines = said.lines().map(str::trim_start);
    lines
        .map(|line| line.split_once(' ').map_or(line, |(_, path)| path.trim()))
        .map(str::to_owned)
        .collect()
}

/// What takes part and the compiler say of themselves.
pub(crate) fn versions(present: &[&Contender], words: &Words) -> BTreeMap<String, String> {
    let commands = present
        .iter()
        .map(|contender| (contender.name, contender.version))
        .chain([("rustc", "rustc --version")]);
    commands
        .filter(|(_, command)| !command.is_empty())
        .map(|(name, command)| (name.to_owned(), version(command, words)))
        .collect()
}

/// The first line that a program prints about itself and that has a number in it; some print it to
/// standard error.
pub(crate) fn version(command: &str, words: &Words) -> String {
    let arguments = command.split_whitespace().map(|word| words.fill(word));
    let output = arguments
        .collect::<Result<Vec<String>, _>>()
        .ok()
        .and_then(|arguments| {
            let mut command = guarded::command(&arguments, Duration::from_secs(10));
            command.output().ok()
        });
    let text = output.map_or_else(Vec::new, |output| [output.stdout, output.stderr].concat());
    let text = String::from_utf8_lossy(&text).into_owned();
    let mut lines = text.lines();
    let line = lines.find(|line| line.contains(|c: char| c.is_ascii_digit()));
    line.map_or("unknown", str::trim).to_owned()
}

/// The user that nginx runs as: that of this process.
pub(crate) fn user_name() -> String {
    let name = output(Command::new("id").arg("-un"));
    name.map_or_else(|_| "nobody".to_owned(), |name| name.trim().to_owned())
}

/// Today in UTC, `YYYY-MM-DD`.
pub(crate) fn date() -> String {
    jiff::Timestamp::now().strftime("%Y-%m-%d").to_string()
}

/// Now in UTC, `YYYY-MM-DDThh:mm:ssZ`.
pub(crate) fn time() -> String {
    format!("{:.0}", jiff::Timestamp::now())
}
