//! A stored response in the files of a store that no process uses.

use super::{bad_url, check_whole, damaged, not_stored, refusal, several};
use crate::messages::Failure;
use crate::store::flags::ExportFlags;
use crate::store::source::failure;
use std::io::Write;
use weir_disk::offline::{Directory, IntactRecord, OfflineError, StoredItem, Survey};
use weir_proxy::config::Mode;
use weir_proxy::on_disk::{OnDisk, ResponseOnDisk, RulesOnDisk, key_of_url};

/// A response that was found.
pub(super) struct ResponseInFiles {
    directory: Directory,
    stored: IntactRecord,
    response: ResponseOnDisk,
}

impl ResponseInFiles {
    /// The one that is meant, all of it.
    pub(super) fn find(directories: Vec<Directory>, flags: &ExportFlags) -> Result<Self, Failure> {
        let mut chosen = Vec::new();
        for directory in directories {
            let survey = directory.survey().map_err(|error| failure(&error))?;
            let mut found = candidates(flags, &directory, &survey)?;
            match (found.len(), found.pop()) {
                (1, Some((stored, response))) => chosen.push(Self {
                    directory,
                    stored,
                    response,
                }),
                (0, _) => {}
                (_, last) => {
                    found.extend(last);
                    let keys = found.iter().map(|(stored, _)| stored.key_text());
                    return Err(several(&keys.collect::<Vec<_>>()));
                }
            }
        }
        let Some(chosen) = chosen.pop() else {
            return Err(not_stored());
        };
        check_whole(
            chosen.stored.is_contiguous(),
            chosen.stored.header.content_bytes,
            chosen.response.complete_length,
        )?;
        Ok(chosen)
    }

    /// Writes head and content.
    pub(super) fn write(&self, output: &mut dyn Write) -> Result<(), OfflineError> {
        let head = [&self.response.head, &b"\r\n"[..]].concat();
        output
            .write_all(&head)
            .map_err(OfflineError::Output)
            .and_then(|()| self.directory.write_content(&self.stored, output))
            .and_then(|_| output.flush().map_err(OfflineError::Output))
    }
}

type Read = (IntactRecord, ResponseOnDisk);

/// The live responses that are meant: usually one; several if the target varies.
fn candidates(
    flags: &ExportFlags,
    directory: &Directory,
    survey: &Survey,
) -> Result<Vec<Read>, Failure> {
    if let Some(text) = &flags.key {
        let found = survey.records().find(|found| found.key_text() == *text);
        let live = found.and_then(|found| survey.live(directory, found.key));
        return match live {
            Some(found) => read(directory, found).map(|read| responses(read).collect()),
            None => Ok(Vec::new()),
        };
    }
    let url = flags.url.as_deref().unwrap_or_default();
    let modes = [Mode::Forward, Mode::Gateway];
    let modes = modes
        .into_iter()
        .filter(|mode| flags.mode.is_none_or(|only| only == *mode));
    let mut all = Vec::new();
    for mode in modes {
        let secret = directory.secret();
        let key = key_of_url(mode, url, &secret).map_err(|error| bad_url(url, error))?;
        let Some(found) = survey.live(directory, key) else {
            continue;
        };
        match read(directory, found)? {
            (stored, OnDisk::Response(response)) => all.push((stored, response)),
            (stored, OnDisk::Rules(rules)) => {
                all.extend(variants(directory, survey, &stored, &rules)?);
            }
        }
    }
    Ok(all)
}

fn responses((stored, what): (IntactRecord, OnDisk)) -> impl Iterator<Item = Read> {
    let response = match what {
        OnDisk::Response(response) => Some((stored, response)),
        OnDisk::Rules(_) => None,
    };
    response.into_iter()
}

/// The variants of a target have keys of their own, which depend on a request: each response is
/// compared.
fn variants(
    directory: &Directory,
    survey: &Survey,
    target: &IntactRecord,
    rules: &RulesOnDisk,
) -> Result<Vec<Read>, Failure> {
    let secret = directory.secret();
    let mut variants = Vec::new();
    for found in survey.records() {
        let is_live = survey.is_live(directory, found);
        if !is_live || found.key == target.header.key {
            continue;
        }
        for (stored, response) in responses(read(directory, found)?) {
            if rules.lead_to(&secret, target.header.key, found.key, &response) {
                variants.push((stored, response));
            }
        }
    }
    Ok(variants)
}

fn read(directory: &Directory, found: &StoredItem) -> Result<(IntactRecord, OnDisk), Failure> {
    let stored = directory.read(found).map_err(|error| damaged(&error))?;
    let what = OnDisk::read(&stored.meta).map_err(|error| refusal(&error, None))?;
    Ok((stored, what))
}
