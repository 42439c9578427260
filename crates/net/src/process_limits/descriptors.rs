//! File descriptors: how many the process may open.

use std::fs::File;
use std::io;

use rustix::process::{Resource, getrlimit, setrlimit};

/// Raises the limit of open files to what the system allows this process, and returns it.
/// A proxy needs one for each connection; the usual limit of 1024 dates from `select`.
#[must_use]
pub fn raise_descriptor_limit() -> Option<u64> {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // refused means that the old limit stays, which `clients_max` then follows
    let _ = setrlimit(Resource::Nofile, limit);
    getrlimit(Resource::Nofile).current
}

/// Descriptors that one request needs beside what is open at the start: the client's connection,
/// the next hop's, and two sockets of a name look-up.
const REQUEST_DESCRIPTORS: usize = 4;

/// Descriptors that a process opens when its proxy has started: signals with the runtime that takes
/// them, and the file that says that it runs.
const LATER_DESCRIPTORS: usize = 7;

/// Whether one request could be served: as many descriptors as it needs are opened, and closed
/// again.
///
/// # Errors
///
/// The error of the system if there are fewer.
pub fn room_for_a_request() -> io::Result<()> {
    let all: io::Result<Vec<File>> = (0..LATER_DESCRIPTORS + REQUEST_DESCRIPTORS)
        .map(|_| File::open("/dev/null"))
        .collect();
    all.map(drop)
}
