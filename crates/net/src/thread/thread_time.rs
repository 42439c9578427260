//! The processor time of a thread.
#![expect(
    unsafe_code,
    reason = "std has no such clock, and rustix finds the kernel's in a way that ends a program under callgrind"
)]

use std::time::Duration;

/// The processor time that the calling thread has taken.
#[must_use]
pub fn thread_time() -> Duration {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` is valid for writes until the call is over; the kernel writes one timespec.
    let result = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    debug_assert_eq!(result, 0, "a kernel without this clock");
    let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
    Duration::from_secs(seconds) + Duration::from_nanos(time.tv_nsec.unsigned_abs())
}
