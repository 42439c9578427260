//! File descriptors: how many the process may open.

use rustix::process::{Resource, getrlimit, setrlimit};

/// Raises the limit of open files to what the system allows this process, and returns it. Connections are what a
/// proxy is made of, and the usual limit of 1024 is from a time of `select`.
#[must_use]
pub fn raise_descriptor_limit() -> Option<u64> {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // refused means that the old limit stays, which `clients_max` then follows
    let _ = setrlimit(Resource::Nofile, limit);
    getrlimit(Resource::Nofile).current
}
