//! The limit of the size of files that a process writes.

use std::io;

/// Has a write beyond that limit (`RLIMIT_FSIZE`) fail with `EFBIG`, as one to a full disk fails:
/// else the kernel ends the process (`SIGXFSZ`), which says nothing.
///
/// # Errors
///
/// The kernel refuses it.
#[expect(
    unsafe_code,
    reason = "std and rustix do not change what a signal does"
)]
pub fn ignore_file_size_signal() -> io::Result<()> {
    // SAFETY: no handler is installed: the signal is ignored, which a write then says itself
    match unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) } {
        libc::SIG_ERR => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}
