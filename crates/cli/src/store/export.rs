//! `weir store export`: one stored response, verified.

use super::directories::{self, failure};
use super::flags::ExportFlags;
use crate::messages::Failure;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use weir_disk::offline::{Directory, IntactRecord, OfflineError, StoredItem, Survey};
use weir_proxy::config::Mode;
use weir_proxy::on_disk::{OnDisk, ResponseOnDisk, RulesOnDisk, key_of_url};
use weir_workload::output::{self, OutputFile};

/// A response that was found.
struct ResponseToExport {
    directory: Directory,
    stored: IntactRecord,
    response: ResponseOnDisk,
}

/// Writes head and content.
///
/// # Errors
///
/// It is not stored, not whole, or damaged (exit 1); several are meant (exit 2); the store cannot
/// be read (exit 3).
pub(super) fn export(flags: &ExportFlags) -> Result<(), Failure> {
    let mut chosen = Vec::new();
    for directory in directories::open(&flags.directories)? {
        let survey = directory.survey().map_err(|error| failure(&error))?;
        let mut found = candidates(flags, &directory, &survey)?;
        match (found.len(), found.pop()) {
            (1, Some((stored, response))) => chosen.push(ResponseToExport {
                directory,
                stored,
                response,
            }),
            (0, _) => {}
            (_, last) => {
                found.extend(last);
                return Err(several(&found));
            }
        }
    }
    let Some(chosen) = chosen.pop() else {
        return Err(refusal(
            "it is not stored, or not live any more",
            Some("`weir store ls` lists what is"),
        ));
    };
    check_whole(&chosen)?;
    match &flags.out {
        None => write(&chosen, &mut io::stdout().lock()),
        Some(path) => write_file(&chosen, path),
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

/// A part is not given out as if it were all.
fn check_whole(chosen: &ResponseToExport) -> Result<(), Failure> {
    let mut at = 0;
    for extent in &chosen.stored.extents {
        if extent.from != at {
            break;
        }
        at += u64::from(extent.len);
    }
    let whole = chosen.response.complete_length;
    if at == chosen.stored.header.content_bytes && whole.is_none_or(|whole| whole == at) {
        return Ok(());
    }
    let of = whole.map_or_else(|| "an unknown number".to_owned(), |whole| whole.to_string());
    Err(refusal(
        &format!(
            "only a part of it is stored, {} of {of} bytes",
            chosen.stored.header.content_bytes
        ),
        None,
    ))
}

fn write_file(chosen: &ResponseToExport, path: &Path) -> Result<(), Failure> {
    let failed = |error: io::Error| Failure::output(path, &error);
    let replaced = output::replaceable(path).map_err(failed)?;
    if replaced.is_some_and(|replaced| replaced.exists()) {
        return Err(Failure {
            hint: Some("name another file, or remove this one".to_owned()),
            ..failed(io::Error::new(
                io::ErrorKind::AlreadyExists,
                "a file of that name exists",
            ))
        });
    }
    let output = OutputFile::create(path).map_err(failed)?;
    let mut file = BufWriter::new(output.file().map_err(failed)?);
    write(chosen, &mut file)?;
    file.flush().map_err(failed)?;
    output.commit().map_err(failed)
}

fn write(chosen: &ResponseToExport, output: &mut dyn Write) -> Result<(), Failure> {
    let head = [&chosen.response.head, &b"\r\n"[..]].concat();
    let written = output
        .write_all(&head)
        .map_err(OfflineError::Output)
        .and_then(|()| chosen.directory.write_content(&chosen.stored, output))
        .and_then(|_| output.flush().map_err(OfflineError::Output));
    match written {
        Ok(()) => Ok(()),
        // a reader that has seen enough is no failure
        Err(OfflineError::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        Err(error @ OfflineError::Format { .. }) => Err(damaged(&error)),
        Err(error) => Err(failure(&error)),
    }
}

fn damaged(error: &OfflineError) -> Failure {
    match error {
        OfflineError::Format { .. } => refusal(&error.to_string(), None),
        _ => failure(error),
    }
}

fn refusal(cause: &str, hint: Option<&str>) -> Failure {
    Failure::check_said_no("cannot export the response", cause).hint_if(hint.map(str::to_owned))
}

fn bad_url(url: &str, cause: String) -> Failure {
    Failure::usage(format!("cannot use `{url}` as a URL"), cause)
}

fn several(found: &[Read]) -> Failure {
    let keys: Vec<String> = found.iter().map(|(stored, _)| stored.key_text()).collect();
    Failure::usage(
        "cannot tell which response is meant",
        format!("{} are stored for it: {}", found.len(), keys.join(", ")),
    )
    .hint("name one by --key, or the listener's kind by --mode")
}
