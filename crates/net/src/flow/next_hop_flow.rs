//! The receive window: how many unread bytes the kernel accepts from a next hop.
//!
//! What bounds it is the memory of the receive buffer (`SO_RCVBUF`, never tuned by the kernel), not
//! `TCP_WINDOW_CLAMP`: a clamp only says how much may be sent before it is acknowledged, and the
//! kernel acknowledges until its memory is full. The clamp has two uses. Growing needs it, since it
//! stays where the memory once was. And it comes first when the window shrinks: a window that was
//! offered must be kept open (RFC 9293 §3.8.6), so the memory must not go below what may still
//! come, or segments are dropped and the next hop waits for its retransmission timer, doubled each
//! time. `docs/read-ahead.md` has the reason behind each line.

use super::socket::{SocketOption, number, read_option, set_number};
use super::tcp_info::{TcpInfo, tcp_info};
use rustix::io::ioctl_fionread;
use rustix::net::sockopt::set_socket_recv_buffer_size_force;
use socket2::SockRef;
use std::io;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU32, Ordering};

/// The window of one connection to a next hop: the options that are set, so that the kernel is
/// called only for a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NextHopFlow {
    /// The window of a connection at rest, bytes of content.
    base: u32,
    /// Not tuned by the kernel.
    locked: bool,
    /// Memory for what is received, bytes with the kernel's bookkeeping, as `SO_RCVBUF` reads back.
    memory: u32,
    /// What `TCP_WINDOW_CLAMP` was when we last looked.
    clamp: u32,
    /// How much of the memory is content, of [`WHOLE`]: the kernel measures it by the size of
    /// segments.
    content: u32,
    /// Smaller windows would hold less than two segments: the next hop would wait for a timer to
    /// send a part of one.
    least: u32,
    /// The round trip in whole milliseconds, at least one.
    rtt_ms: u32,
}

/// Gives a new socket its first window, before it is connected. The kernel would settle the
/// window's scale by a locked buffer, and the window could never grow beyond 64 KiB: so it is
/// unlocked until the connection is open.
///
/// # Errors
/// The kernel is older than Linux 5.14, or the socket is not a new one: the window is then as the
/// kernel likes.
pub fn before_connect(socket: &impl AsFd, window: u32) -> io::Result<()> {
    // a kernel that cannot unlock it would keep it small for ever
    number(socket.as_fd(), SocketOption::SO_BUF_LOCK)?;
    let options = SockRef::from(socket);
    options.set_recv_buffer_size(window as usize / 2)?;
    set_number(socket.as_fd(), SocketOption::SO_BUF_LOCK, 0)?;
    options.set_tcp_mss(SEGMENT_MAX.min(window / 2))
}

/// Keeps the first window from being tuned, once the connection is open.
///
/// # Errors
/// The kernel is older than Linux 5.14.
pub fn after_connect(socket: &impl AsFd) -> io::Result<()> {
    lock(socket, true)
}

impl NextHopFlow {
    /// The options of a connection as the kernel has them now; `base` is the window at rest, bytes.
    /// With 0 the kernel decides on windows: one that is set nevertheless, as by what a quota has
    /// left, closes to 64 KiB.
    pub fn of(socket: &impl AsFd, base: u32) -> Self {
        Self::known(socket, base, &tcp_info(socket).unwrap_or_default())
    }

    /// The same with `info` that was just read from the kernel.
    pub fn known(socket: &impl AsFd, base: u32, info: &TcpInfo) -> Self {
        let ask = |option| number(socket.as_fd(), option).unwrap_or(0);
        let base = match base {
            0 => WINDOW_AT_REST,
            _ => base,
        };
        let mut flow = Self {
            base,
            locked: ask(SocketOption::SO_BUF_LOCK) & RECEIVE_LOCK != 0,
            memory: memory_of(socket),
            clamp: 0,
            content: HALF,
            least: info.segment_max.saturating_mul(2),
            rtt_ms: (info.rtt_us / 1000).max(1),
        };
        flow.look_at_clamp(socket);
        flow
    }

    /// Looks again at what the kernel has measured: the round trip, and how much of its memory is
    /// content.
    pub fn look(&mut self, socket: &impl AsFd, rtt_us: u32) {
        self.rtt_ms = (rtt_us / 1000).max(1);
        self.look_at_clamp(socket);
    }

    /// Bytes the kernel takes that are not read; `None` if it decides that itself.
    #[cfg(test)]
    pub fn window(&self) -> Option<u32> {
        self.locked.then(|| self.window_of(self.memory))
    }

    /// Sets the window, in bytes of content not yet read; `None` leaves it to the kernel.
    /// `remaining` is how many bytes of the response are still to be read, if that is known:
    /// towards the end the window closes to its base, and the connection is small when it is used
    /// again.
    ///
    /// To be called just before a read of at least the base. Calls the kernel only to make the
    /// window a quarter larger or smaller, or to close it. A window that shrinks does so in steps,
    /// a read each.
    pub fn set_window(&mut self, socket: &impl AsFd, window: Option<u32>, remaining: Option<u64>) {
        let Some(wanted) = window else {
            return self.unlock(socket);
        };
        let wanted = wanted.max(self.least);
        if !self.locked && !self.lock_again(socket, wanted) {
            return;
        }
        let now = self.window_of(self.memory);
        let is_to_shrink = wanted < now - now / 4;
        if let Some(remaining) = remaining
            // what is to come may be more than is wanted
            && !is_to_shrink
            && now > quarter_more(self.base)
            && remaining < 2 * u64::from(now) + CLOSING_MARGIN
        {
            return self.close(socket, remaining, now);
        }
        if wanted > quarter_more(now) {
            self.grow(socket, wanted);
        } else if is_to_shrink {
            self.shrink(socket, wanted);
        } else if self.clamp < wanted - wanted / 4 {
            // it shrank, and the memory had not followed yet
            self.set_clamp(socket, wanted);
        }
    }

    /// A response has ended and nothing of it is left unread: makes the connection small again.
    /// Returns how many bytes the next hop may send without a further request: the window that was
    /// offered, which cannot be taken back.
    pub fn settle(&mut self, socket: &impl AsFd) -> u32 {
        if !self.locked {
            return self.window_of(self.memory);
        }
        if self.window_of(self.memory) <= quarter_more(self.base) && self.clamp >= self.base / 2 {
            return self.base;
        }
        let offered = offered(socket).unwrap_or(self.clamp);
        let memory = self.memory_for(self.base.max(offered)).min(self.memory);
        self.set_memory(socket, memory);
        self.set_clamp(socket, self.window_of(self.memory));
        offered.max(self.base)
    }

    /// Memory first, so that the new window has room; then the clamp, which would stay where it
    /// was.
    fn grow(&mut self, socket: &impl AsFd, wanted: u32) {
        self.look_at_clamp(socket);
        // the kernel doubles the size that is set
        let half = self.memory_for(wanted) / 2;
        self.set_memory(socket, 2 * half);
        if self.memory < 2 * half {
            // more than an unprivileged process may set (net.core.rmem_max)
            if set_socket_recv_buffer_size_force(socket, half as usize).is_err() {
                MEMORY_MAX.fetch_min(self.memory, Ordering::Relaxed);
                return self.unlock(socket);
            }
            self.memory = memory_of(socket);
        }
        self.set_clamp(socket, wanted);
    }

    /// The clamp first: from now on less is offered. The memory follows as what was offered before
    /// is used up. The next hop fills all free memory, so the memory shrinks just before the read
    /// that frees it; the bytes already offered still fit, except for these few microseconds.
    fn shrink(&mut self, socket: &impl AsFd, wanted: u32) {
        if self.clamp > wanted {
            self.set_clamp(socket, wanted);
        }
        let least = self.memory_for(wanted);
        let memory = match offered(socket) {
            // nothing is on its way: bytes held already stay, whatever the memory
            Some(0) => least,
            Some(offered) => {
                let used = held(socket).unwrap_or(self.memory);
                let read_now = self.base.min(unread(socket));
                // part of it may have come already: there was never offered more than had room
                let needed = used.saturating_add(self.memory_for(offered));
                least.max(needed.min(self.memory).saturating_sub(read_now))
            }
            None => self.memory,
        };
        if memory.saturating_add(self.base / 4) <= self.memory {
            self.set_memory(socket, memory);
        }
    }

    /// Offers no more than is still to come. Bytes that arrive before the next look are offered
    /// again meanwhile, so it offers a little less: what one window a round trip brings in a
    /// millisecond.
    fn close(&mut self, socket: &impl AsFd, remaining: u64, now: u32) {
        let to_come = remaining.saturating_sub(u64::from(unread(socket)));
        let margin = u64::from(now / self.rtt_ms).min(to_come / 4 * 3);
        let end = (self.base / 2).max(self.least);
        let wanted = u32::try_from(to_come - margin).unwrap_or(u32::MAX).max(end);
        let step = self.base / 4;
        if wanted.saturating_add(step) <= self.clamp || (wanted == end && self.clamp > end) {
            self.set_clamp(socket, wanted);
        }
    }

    /// Sets the window instead of the kernel; `false` if it must be larger than we may set.
    fn lock_again(&mut self, socket: &impl AsFd, wanted: u32) -> bool {
        if self.memory_for(wanted) > MEMORY_MAX.load(Ordering::Relaxed)
            || lock(socket, true).is_err()
        {
            return false;
        }
        self.locked = true;
        self.memory = memory_of(socket);
        self.look_at_clamp(socket);
        true
    }

    fn unlock(&mut self, socket: &impl AsFd) {
        if !self.locked {
            return;
        }
        // from a smaller one the kernel never sees more than the window come in a round trip, and
        // stays there
        if self.memory < MEMORY_TUNED_MIN {
            self.set_memory(socket, MEMORY_TUNED_MIN);
        }
        if lock(socket, false).is_ok() {
            self.locked = false;
            // it follows the memory from now on, but would not begin to
            self.set_clamp(socket, CLAMP_NONE);
        }
    }

    /// The kernel sets the clamp to the content its memory holds whenever it measures that again.
    fn look_at_clamp(&mut self, socket: &impl AsFd) {
        let clamp = number(socket.as_fd(), SocketOption::TCP_WINDOW_CLAMP).unwrap_or(0);
        if clamp == self.clamp || clamp == 0 {
            return;
        }
        self.clamp = clamp;
        if clamp <= self.memory {
            let content = u64::from(clamp) * u64::from(WHOLE) / u64::from(self.memory.max(1));
            self.content = u32::try_from(content).unwrap_or(WHOLE).max(CONTENT_MIN);
        }
    }

    fn set_memory(&mut self, socket: &impl AsFd, bytes: u32) {
        // the kernel doubles it
        if SockRef::from(socket)
            .set_recv_buffer_size(bytes as usize / 2)
            .is_ok()
        {
            self.memory = memory_of(socket);
        }
    }

    fn set_clamp(&mut self, socket: &impl AsFd, bytes: u32) {
        if set_number(socket.as_fd(), SocketOption::TCP_WINDOW_CLAMP, bytes).is_ok() {
            self.clamp = bytes;
        }
    }

    fn window_of(&self, memory: u32) -> u32 {
        scaled(memory, self.content, WHOLE)
    }

    fn memory_for(&self, window: u32) -> u32 {
        scaled(window, WHOLE, self.content)
    }
}

/// Bytes that the next hop may still send; `None` if the kernel does not report it.
fn offered(socket: &impl AsFd) -> Option<u32> {
    tcp_info(socket)?.receive_window
}

/// Bytes received and not read.
fn unread(socket: &impl AsFd) -> u32 {
    let bytes = ioctl_fionread(socket).unwrap_or(0);
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

/// Memory in use for what is received and not read, with the bookkeeping.
fn held(socket: &impl AsFd) -> Option<u32> {
    let mut first = [0; size_of::<u32>()];
    read_option(socket.as_fd(), SocketOption::SO_MEMINFO, &mut first).ok()?;
    Some(u32::from_ne_bytes(first))
}

fn memory_of(socket: &impl AsFd) -> u32 {
    let bytes = SockRef::from(socket).recv_buffer_size().unwrap_or(0);
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

fn lock(socket: &impl AsFd, receive: bool) -> io::Result<()> {
    let now = number(socket.as_fd(), SocketOption::SO_BUF_LOCK)?;
    let wanted = if receive {
        now | RECEIVE_LOCK
    } else {
        now & !RECEIVE_LOCK
    };
    set_number(socket.as_fd(), SocketOption::SO_BUF_LOCK, wanted)
}

fn scaled(bytes: u32, by: u32, of: u32) -> u32 {
    u32::try_from(u64::from(bytes) * u64::from(by) / u64::from(of.max(1))).unwrap_or(u32::MAX)
}

const fn quarter_more(bytes: u32) -> u32 {
    bytes.saturating_add(bytes / 4)
}

/// The window at rest of a connection whose windows the kernel decides on, bytes: what it begins
/// with itself.
const WINDOW_AT_REST: u32 = 64 * 1024;

/// The bit of `SO_BUF_LOCK` for the receive buffer.
const RECEIVE_LOCK: u32 = 2;

/// The largest segment a next hop is to send, bytes. On loopback it would be 64 KiB, and a smaller
/// window would bring one part of a segment each 200 ms; on Ethernet it is 1460, and this changes
/// nothing.
const SEGMENT_MAX: u32 = 8 * 1024;

/// The kernel counts the content of its memory in parts of 256.
const WHOLE: u32 = 256;
/// What it assumes before it has seen segments.
const HALF: u32 = WHOLE / 2;
/// Segments so small that less than a quarter of the memory is content are the exception; the next
/// ones are not.
const CONTENT_MIN: u32 = WHOLE / 4;

/// A clamp that does nothing: windows are below 1 GiB (RFC 7323 §2.3).
const CLAMP_NONE: u32 = 1 << 30;

/// Where the kernel begins to tune the memory of a connection it is given whole
/// (`net.ipv4.tcp_rmem`), bytes.
const MEMORY_TUNED_MIN: u32 = 128 * 1024;

/// A read brings up to this much while a window is closing, bytes.
const CLOSING_MARGIN: u64 = 64 * 1024;

/// The largest memory this process was ever given: `net.core.rmem_max` twice, unless it may exceed
/// that. Beyond it the kernel's own tuning, which may go to `net.ipv4.tcp_rmem`, is the only way
/// not to slow a fast reader.
static MEMORY_MAX: AtomicU32 = AtomicU32::new(u32::MAX);
