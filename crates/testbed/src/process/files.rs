//! The limit of open files.

use crate::failure::{During, Failure};
use rustix::process::{Resource, getrlimit, setrlimit};

/// What else a process of this kind has open.
const FILES_BESIDE: usize = 100;

/// Raises the limit of open files as far as allowed; children inherit it.
///
/// # Errors
/// Says so when `connections` would not fit.
pub(crate) fn raise_limit(connections: usize, fewer_by: &str) -> Result<u64, Failure> {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    setrlimit(Resource::Nofile, limit).during("raise the limit of open files")?;
    let files = getrlimit(Resource::Nofile)
        .current
        .unwrap_or(u64::from(u32::MAX));
    if files < u64::try_from(connections + FILES_BESIDE).unwrap_or(u64::MAX) {
        return Err(Failure::Outside(format!(
            "{connections} connections do not fit under the limit of {files} open files\n\
             hint: `ulimit -Hn`, or fewer by {fewer_by}"
        )));
    }
    Ok(files)
}
