//! A timer that ends a poll to the microsecond. The timeout of a poll has milliseconds, and a hit
//! takes a tenth of one.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::Duration;

use mio::unix::SourceFd;
use mio::{Interest, Registry, Token};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};

use super::timers::NEVER_US;

/// A timer of the kernel.
#[derive(Debug)]
pub(super) struct TimerFd {
    timer: OwnedFd,
    set_for_us: u64,
}

impl TimerFd {
    /// # Errors
    /// No descriptor for a timer can be had.
    pub(super) fn new(registry: &Registry, token: Token) -> io::Result<Self> {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let timer = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        registry.register(&mut SourceFd(&timer.as_raw_fd()), token, Interest::READABLE)?;
        Ok(Self {
            timer,
            set_for_us: NEVER_US,
        })
    }

    /// Sets the timer to this time; `now_us` gives the delay. Setting the same time again costs
    /// nothing.
    ///
    /// # Errors
    /// The kernel does not take the time.
    pub(super) fn set(&mut self, at_us: u64, now_us: u64) -> io::Result<()> {
        if at_us == self.set_for_us {
            return Ok(());
        }
        self.set_for_us = at_us;
        // zero would switch it off
        let left = Duration::from_micros(at_us.saturating_sub(now_us).max(1));
        let value = Timespec::try_from(left).map_err(io::Error::other)?;
        let once = Itimerspec {
            it_interval: Timespec::default(),
            it_value: value,
        };
        timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &once)?;
        Ok(())
    }

    /// It has fired, and is not set any more.
    pub(super) fn fired(&mut self) {
        self.set_for_us = NEVER_US;
    }
}
