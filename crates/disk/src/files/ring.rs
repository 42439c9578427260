//! A batch by the kernel's `io_uring`: all transfers that were begun are handed over in one call,
//! which waits as well.
//!
//! A virtual device is notified once for all of them, without a change of threads for each. Where
//! the kernel has it not, or an administrator forbids it (`kernel.io_uring_disabled`, a container's
//! seccomp filter), reads are done by threads that wait for one each.

use super::batch::{Batch, Interrupter, Transfer, TransferResult};
use io_uring::types::{Fd, SubmitArgs, Timespec};
use io_uring::{IoUring, opcode, squeue};
use rustix::event::{EventfdFlags, eventfd};
use rustix::io::Errno;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

/// The token of the read of the event counter; a transfer's token is smaller.
const BELL: u64 = u64::MAX;

/// Bytes of what an event counter says.
const COUNT_BYTES: usize = 8;

/// Transfers of one thread in a ring.
pub(super) struct Ring {
    ring: IoUring,
    /// By token. What the kernel reads into and from stays here until it says that it has ended.
    under_way: Vec<Option<Transfer>>,
    /// Ended before they had begun.
    refused: Vec<TransferResult>,
    interrupter: Arc<Counter>,
    /// Where the kernel writes the event count.
    rung: Box<[u8; COUNT_BYTES]>,
    /// The kernel reads the event counter.
    is_listening: bool,
}

impl std::fmt::Debug for Ring {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let under_way = self.under_way.iter().flatten().count();
        write!(f, "Ring({under_way} under way)")
    }
}

impl Ring {
    /// For at most `max` transfers at once; `None` if the kernel has none for us, or an old one.
    pub(super) fn new(max: usize) -> Option<Self> {
        let entries = u32::try_from(max + 1).ok()?.checked_next_power_of_two()?;
        // completions are reported when the thread next enters the kernel, and do not interrupt it
        // (Linux 5.19)
        let built = IoUring::builder().setup_coop_taskrun().build(entries);
        let ring = built.or_else(|_| IoUring::new(entries)).ok()?;
        // a wait with a limit (Linux 5.11)
        if !ring.params().is_feature_ext_arg() {
            return None;
        }
        // not nonblocking: a read of it is to wait
        let interrupter = eventfd(0, EventfdFlags::CLOEXEC).ok()?;
        Some(Self {
            ring,
            under_way: (0..max).map(|_| None).collect(),
            refused: Vec::new(),
            interrupter: Arc::new(Counter(interrupter)),
            rung: Box::default(),
            is_listening: false,
        })
    }

    /// Puts an entry where the kernel finds it at the next call.
    #[expect(unsafe_code, reason = "only we know how long memory lives")]
    fn push(&mut self, entry: &squeue::Entry) -> bool {
        // SAFETY: an entry names memory and a descriptor of a transfer in `under_way`, or of the
        // interrupter. They are given up when the kernel says that the entry has ended; a ring that
        // is dropped before gives them up never.
        unsafe { self.ring.submission().push(entry).is_ok() }
    }

    fn listen(&mut self) {
        if !self.is_listening {
            let into = self.rung.as_mut_ptr();
            let len = u32::try_from(COUNT_BYTES).unwrap_or(0);
            let entry = opcode::Read::new(Fd(self.interrupter.0.as_raw_fd()), into, len).build();
            self.is_listening = self.push(&entry.user_data(BELL));
        }
    }

    /// Hands over what was begun, and waits.
    fn enter(&mut self, longest: Duration) -> io::Result<()> {
        let (least, limit) = match self.refused.is_empty() {
            true => (1, longest),
            false => (0, Duration::ZERO),
        };
        let limit = Timespec::from(limit);
        let wait = SubmitArgs::new().timespec(&limit);
        match self.ring.submitter().submit_with_args(least, &wait) {
            Ok(_) => Ok(()),
            Err(error) => match Errno::from_io_error(&error) {
                // what was not taken is handed over again
                Some(Errno::TIME | Errno::INTR | Errno::AGAIN | Errno::BUSY) => Ok(()),
                _ => Err(error),
            },
        }
    }

    /// What the kernel says has ended.
    fn collect(&mut self, came: &mut Vec<TransferResult>) {
        came.append(&mut self.refused);
        for ended in self.ring.completion() {
            if ended.user_data() == BELL {
                self.is_listening = false;
                continue;
            }
            let token = usize::try_from(ended.user_data()).unwrap_or(usize::MAX);
            if let Some(transfer) = self.under_way.get_mut(token).and_then(Option::take) {
                came.push(TransferResult {
                    token,
                    result: result(ended.result(), transfer.is_direct),
                    memory: transfer.memory,
                });
            }
        }
    }
}

fn result(returned: i32, is_direct: bool) -> io::Result<usize> {
    if let Ok(count) = usize::try_from(returned) {
        return Ok(count);
    }
    match Errno::from_raw_os_error(-returned) {
        Errno::INVAL | Errno::OPNOTSUPP if is_direct => Err(io::ErrorKind::Unsupported.into()),
        // it would have had to wait where the kernel cannot: once more
        Errno::AGAIN => Err(io::ErrorKind::Interrupted.into()),
        error => Err(error.into()),
    }
}

impl Batch for Ring {
    fn begin(&mut self, mut transfer: Transfer) {
        let token = transfer.token;
        let is_free = matches!(self.under_way.get(token), Some(None));
        let file = match transfer.is_direct {
            true => transfer.file.system_direct(),
            false => transfer.file.system().map(|file| &**file),
        };
        let entry = file.and_then(|file| {
            let room = transfer.memory.room(transfer.into.end);
            let into = &mut room[transfer.into.clone()];
            let len = u32::try_from(into.len()).ok()?;
            let read = opcode::Read::new(Fd(file.as_raw_fd()), into.as_mut_ptr(), len);
            Some(read.offset(transfer.offset).build().user_data(token as u64))
        });
        if is_free && entry.is_some_and(|entry| self.push(&entry)) {
            self.under_way[token] = Some(transfer);
        } else {
            self.refused.push(TransferResult {
                token,
                memory: transfer.memory,
                result: Err(io::ErrorKind::Unsupported.into()),
            });
        }
    }

    fn wait(&mut self, longest: Duration, came: &mut Vec<TransferResult>) -> io::Result<()> {
        self.listen();
        let entered = self.enter(longest);
        self.collect(came);
        entered
    }

    fn interrupter(&self) -> Arc<dyn Interrupter> {
        Arc::<Counter>::clone(&self.interrupter)
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // the device may still write there, hours later if it hangs: bytes that are lost are better
        // than bytes that change
        if self.under_way.iter().any(Option::is_some) {
            std::mem::forget(std::mem::take(&mut self.under_way));
        }
        if self.is_listening {
            std::mem::forget(std::mem::take(&mut self.rung));
        }
    }
}

/// An event counter of the kernel.
#[derive(Debug)]
struct Counter(OwnedFd);

impl Interrupter for Counter {
    fn interrupt(&self) {
        // it can only fail after 2^64 interrupts that were not read
        match rustix::io::write(&self.0, &1_u64.to_ne_bytes()) {
            Ok(_) | Err(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Other tests skip the ring if there is none: this one fails if it is missing through a fault
    /// of ours.
    #[test]
    fn io_uring_is_used_exactly_when_the_kernel_supports_it() {
        let plain = IoUring::new(2);
        let can = plain.is_ok_and(|ring| ring.params().is_feature_ext_arg());
        for max in [1, 32, 100] {
            assert_eq!(Ring::new(max).is_some(), can, "{max}");
        }
    }
}
