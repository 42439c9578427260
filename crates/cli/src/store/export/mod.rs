//! `weir store export`: one stored response, verified.

mod files;
mod online;

use super::flags::ExportFlags;
use super::source::{self, Source, failure};
use crate::messages::Failure;
use files::ResponseInFiles;
use online::OnlineResponse;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use weir_disk::offline::OfflineError;
use weir_proxy::admin::NOT_STORED;
use weir_workload::output::{self, OutputFile};

/// A response that was found.
enum Response {
    InFiles(Box<ResponseInFiles>),
    Online(Box<OnlineResponse>),
}

/// Writes head and content.
///
/// # Errors
///
/// It is not stored, not whole, or damaged (exit 1); several are meant (exit 2); the store cannot
/// be read (exit 3).
pub(super) fn export(flags: &ExportFlags) -> Result<(), Failure> {
    let meant = match (&flags.url, &flags.key) {
        (Some(url), _) => format!("export {url}"),
        (None, key) => format!("export --key {}", key.as_deref().unwrap_or_default()),
    };
    let chosen = match source::open(&flags.store, &meant)? {
        Source::Files(directories) => {
            Response::InFiles(Box::new(ResponseInFiles::find(directories, flags)?))
        }
        Source::Proxy(proxy) => Response::Online(Box::new(OnlineResponse::find(proxy, flags)?)),
    };
    match &flags.out {
        None => write(&chosen, &mut io::stdout().lock()),
        Some(path) => write_file(&chosen, path),
    }
}

/// A part is not given out as if it were all.
fn check_whole(is_contiguous: bool, stored: u64, whole: Option<u64>) -> Result<(), Failure> {
    if is_contiguous && whole.is_none_or(|whole| whole == stored) {
        return Ok(());
    }
    let of = whole.map_or_else(|| "an unknown number".to_owned(), |whole| whole.to_string());
    Err(refusal(
        &format!("only a part of it is stored, {stored} of {of} bytes"),
        None,
    ))
}

fn write_file(chosen: &Response, path: &Path) -> Result<(), Failure> {
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

fn write(chosen: &Response, output: &mut dyn Write) -> Result<(), Failure> {
    let written = match chosen {
        Response::InFiles(response) => response.write(output),
        Response::Online(response) => response.write(output)?,
    };
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

fn not_stored() -> Failure {
    refusal(NOT_STORED, Some("`weir store ls` lists what is"))
}

fn several(keys: &[String]) -> Failure {
    Failure::usage(
        "cannot tell which response is meant",
        format!("{} are stored for it: {}", keys.len(), keys.join(", ")),
    )
    .hint("name one by --key, or the listener's kind by --mode")
}
