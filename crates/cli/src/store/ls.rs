//! `weir store ls`: a line for each stored response.

use super::directories::{self, failure};
use super::flags::LsFlags;
use crate::messages::{Failure, give, tell};
use weir_disk::offline::{Directory, IntactRecord, OfflineError, RecordState, StoredItem};
use weir_proxy::on_disk::OnDisk;

/// Lines are written in stretches of about this size.
const OUTPUT_BYTES: usize = 64 * 1024;

/// Lists what is stored.
///
/// # Errors
///
/// A directory cannot be read. A record that cannot is a line on stderr.
pub(super) fn ls(flags: &LsFlags) -> Result<(), Failure> {
    let mut lines = String::new();
    for directory in directories::open(&flags.directories)? {
        let survey = directory.survey().map_err(|error| failure(&error))?;
        for found in survey.records() {
            let life = survey.state_of(&directory, found);
            if life != RecordState::Live && !flags.all {
                continue;
            }
            let mut line = line(&directory, found)?;
            if flags.all {
                line.push_str("  ");
                line.push_str(word(life));
            }
            lines.push_str(line.trim_end());
            lines.push('\n');
            if lines.len() > OUTPUT_BYTES {
                give(&lines)?;
                lines.clear();
            }
        }
    }
    give(&lines)
}

fn line(directory: &Directory, found: &StoredItem) -> Result<String, Failure> {
    let place = format!(
        "{}  {:>10}  {:016x}:{:<9}",
        found.key_text(),
        found.generation,
        found.segment,
        found.at
    );
    match directory.read(found) {
        Ok(stored) => Ok(format!(
            "{place}  {:>10}  {}",
            stored.header.content_bytes,
            what(&stored)
        )),
        Err(OfflineError::Format { path, error }) => {
            tell(&format!("note: {}: {error}", path.display()));
            Ok(format!("{place}           -  damaged"))
        }
        Err(error) => Err(failure(&error)),
    }
}

/// Status, content type and URL, or what the target varies on.
fn what(stored: &IntactRecord) -> String {
    match OnDisk::read(&stored.meta) {
        Ok(OnDisk::Response(response)) => {
            let content_type = content_type(&response.head);
            match response.target {
                Some(target) => format!("{}  {content_type:<24}  {target}", response.status),
                None => format!("{}  {content_type}", response.status),
            }
        }
        Ok(OnDisk::Rules(rules)) => {
            let sets: Vec<String> = rules.fields.iter().map(|names| names.join(",")).collect();
            format!("rules  {}", sets.join(" "))
        }
        Err(error) => format!("unknown  {error}"),
    }
}

fn content_type(head: &[u8]) -> String {
    let head = String::from_utf8_lossy(head);
    let fields = head.lines().filter_map(|line| line.split_once(':'));
    let mut types = fields.filter(|(name, _)| name.eq_ignore_ascii_case("content-type"));
    let value = types.next().map_or("-", |(_, value)| value.trim());
    // what an origin sent is not let loose on a terminal
    value.chars().filter(|c| !c.is_control()).collect()
}

pub(super) const fn word(life: RecordState) -> &'static str {
    match life {
        RecordState::Live => "live",
        RecordState::Purged => "purged",
        RecordState::Superseded => "superseded",
        RecordState::Doubtful => "doubtful",
    }
}
