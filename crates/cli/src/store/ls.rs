//! `weir store ls`: a line for each stored response.

use super::flags::LsFlags;
use super::source::{self, Source, failure};
use crate::messages::{Failure, give, tell};
use std::io::IsTerminal as _;
use weir_disk::offline::{Directory, RecordState};
use weir_proxy::on_disk::report::{RecordKind, RecordReport};

/// Lines are written in stretches of about this size.
const OUTPUT_BYTES: usize = 64 * 1024;

/// Lists what is stored.
///
/// # Errors
///
/// A directory cannot be read, or the proxy that uses it does not answer. A record that cannot be
/// read is a line on stderr.
pub(super) fn ls(flags: &LsFlags) -> Result<(), Failure> {
    let mut lines = Lines {
        text: String::new(),
        // what reads a pipe has no use for it
        lacks_head: std::io::stdout().is_terminal() && !flags.whole.json,
        flags,
    };
    match source::open(&flags.whole.store(), "ls")? {
        Source::Files(directories) => {
            for directory in &directories {
                each_record(directory, flags.all, &mut |record| lines.add(record))?;
            }
        }
        Source::Proxy(proxy) => {
            let call = if flags.all { "ls?all&" } else { "ls?" };
            let mut take =
                |page: Vec<RecordReport>| page.iter().try_for_each(|record| lines.add(record));
            proxy.each_page(call, "cannot list what is stored", &mut take)?;
        }
    }
    give(&lines.text)
}

fn each_record(
    directory: &Directory,
    all: bool,
    take: &mut dyn FnMut(&RecordReport) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let survey = directory.survey().map_err(|error| failure(&error))?;
    for found in survey.records() {
        let state = survey.state_of(directory, found);
        if state != RecordState::Live && !all {
            continue;
        }
        let record = RecordReport::of(found, state, directory.read(found));
        take(&record.map_err(|error| failure(&error))?)?;
    }
    Ok(())
}

/// What is not written yet.
struct Lines<'a> {
    text: String,
    /// The columns are to be named above the next line.
    lacks_head: bool,
    flags: &'a LsFlags,
}

impl Lines<'_> {
    fn add(&mut self, record: &RecordReport) -> Result<(), Failure> {
        if std::mem::take(&mut self.lacks_head) {
            self.text.push_str(&head(record, self.flags.all));
        }
        if self.flags.whole.json {
            let line = serde_json::to_string(record);
            let line = line.map_err(|error| Failure::outside("cannot write JSON", error))?;
            self.text.push_str(&line);
        } else {
            if let RecordKind::Damaged { why } = &record.what {
                tell(&format!("note: {why}"));
            }
            let mut line = line(record);
            if self.flags.all {
                line.push_str("  ");
                line.push_str(&record.state);
            }
            self.text.push_str(line.trim_end());
        }
        self.text.push('\n');
        if self.text.len() > OUTPUT_BYTES {
            give(&self.text)?;
            self.text.clear();
        }
        Ok(())
    }
}

/// The names of the columns, as wide as those of `record`; the last one where `all` are listed.
fn head(record: &RecordReport, all: bool) -> String {
    let key = record.key.len();
    let place = record.segment.len() + 10;
    let state = if all { ", state" } else { "" };
    format!(
        "{:<key$}  {:>10}  {:<place$}  {:>10}  status, type, URL{state}\n",
        "key", "generation", "at", "bytes"
    )
}

fn line(record: &RecordReport) -> String {
    let place = format!(
        "{}  {:>10}  {}:{:<9}",
        record.key, record.generation, record.segment, record.offset
    );
    let bytes = record.content_bytes;
    let bytes = bytes.map_or_else(|| "-".to_owned(), |bytes| bytes.to_string());
    format!("{place}  {bytes:>10}  {}", what(&record.what))
}

/// Status, content type and URL, or what the target varies on.
fn what(what: &RecordKind) -> String {
    match what {
        RecordKind::Response {
            status,
            content_type,
            url,
        } => {
            let content_type = content_type.as_deref().unwrap_or("-");
            match url {
                Some(url) => format!("{status}  {content_type:<24}  {url}"),
                None => format!("{status}  {content_type}"),
            }
        }
        RecordKind::Rules { fields } => {
            let sets: Vec<String> = fields.iter().map(|names| names.join(",")).collect();
            format!("rules  {}", sets.join(" "))
        }
        RecordKind::Unknown { why } => format!("unknown  {why}"),
        RecordKind::Damaged { .. } => "damaged".to_owned(),
    }
}
