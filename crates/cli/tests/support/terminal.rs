//! A terminal, and what a program writes to it.

use super::PATIENCE;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use std::fs::File;
use std::io::Read as _;
use std::os::fd::OwnedFd;

/// A terminal of 24 rows.
#[derive(Debug)]
pub(crate) struct Terminal {
    screen: File,
    /// What a program has for its output.
    line: OwnedFd,
}

impl Terminal {
    /// One with so many columns.
    pub(crate) fn of_columns(columns: u16) -> Self {
        let screen = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)
            .expect("there are terminals");
        grantpt(&screen).expect("it is ours");
        unlockpt(&screen).expect("it is ours");
        let size = Winsize {
            ws_row: 24,
            ws_col: columns,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        tcsetwinsize(&screen, size).expect("it has a size");
        let name = ptsname(&screen, Vec::new()).expect("it has a name");
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        let line = rustix::fs::open(name, flags, Mode::empty()).expect("it is unlocked");
        Self {
            screen: screen.into(),
            line,
        }
    }

    /// Where a program writes.
    pub(crate) fn output(&self) -> OwnedFd {
        self.line.try_clone().expect("a descriptor")
    }

    /// The next `count` lines that are written to it, byte by byte as they were.
    pub(crate) fn lines(&mut self, count: usize) -> Vec<Vec<u8>> {
        let (mut lines, mut line) = (Vec::new(), Vec::new());
        while lines.len() < count {
            match self.byte() {
                b'\n' => {
                    // the terminal puts a return in front of the line feed
                    assert_eq!(line.pop(), Some(b'\r'), "{line:?}");
                    lines.push(std::mem::take(&mut line));
                }
                byte => line.push(byte),
            }
        }
        lines
    }

    fn byte(&mut self) -> u8 {
        let patience = Timespec::try_from(PATIENCE).expect("it is short");
        let ready = poll(
            &mut [PollFd::new(&self.screen, PollFlags::IN)],
            Some(&patience),
        );
        assert_eq!(ready, Ok(1), "nothing more is written");
        let mut byte = [0];
        self.screen.read_exact(&mut byte).expect("it can be read");
        byte[0]
    }
}
