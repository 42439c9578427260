//! One direction of a tunnel.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::io;

use super::carrier::{Carrier, FillResult, Means};
use super::{Activity, End, Side};
use crate::next_hops::LinkUse;

/// Rounds (each at most a pipe full, 64 KiB) before the other tasks of the thread get their turn.
const ROUNDS_MAX: u32 = 16;

pub(super) struct Pump<'a> {
    pub(super) from: (End<'a>, Side),
    pub(super) to: (End<'a>, Side),
    pub(super) first: &'a [u8],
    pub(super) activity: &'a Activity,
    pub(super) moved: &'a Cell<u64>,
    /// The link of the next hop, in this direction; borrowed for a call.
    pub(super) link: Option<RefCell<&'a mut LinkUse>>,
}

/// A connection failed.
pub(super) struct Fault {
    pub(super) side: Side,
    pub(super) kind: io::ErrorKind,
}

impl Pump<'_> {
    /// Relays bytes until the end of `from` has been signalled to `to`.
    pub(super) async fn run(&self, mut means: Means) -> Result<(), Fault> {
        self.send_first().await?;
        loop {
            // no pipe is borrowed while there is nothing to move
            self.from
                .0
                .readable()
                .await
                .map_err(|error| self.cannot_read(&error))?;
            let most = self.permitted().await?;
            let mut carrier = Carrier::borrow_by(means);
            match self.burst(&mut carrier, most).await? {
                Burst::Quiet => {}
                Burst::UsedUp => {
                    // no pipe is held while the link is waited for, and other tasks have their turn
                    drop(carrier);
                    tokio::task::yield_now().await;
                }
                Burst::SpliceRefused => means = Means::Copy,
                Burst::Ended => {
                    let closed = self.to.0.close().await;
                    return closed.or_else(|error| self.already_gone(&error));
                }
            }
        }
    }

    /// Moves bytes until `from` has no more for now; over a link, `most` of them.
    async fn burst(&self, carrier: &mut Carrier, most: usize) -> Result<Burst, Fault> {
        let mut rounds = 0;
        loop {
            // only an empty carrier is filled: then "would block" can only mean the socket, never a
            // full pipe
            let filled = carrier.fill(self.from.0, most);
            self.note_filled(carrier.held());
            match filled {
                Ok(FillResult::Some) => self.activity.touch(),
                Ok(FillResult::End) => return Ok(Burst::Ended),
                Ok(FillResult::SpliceRefused) => return Ok(Burst::SpliceRefused),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(Burst::Quiet),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(self.cannot_read(&error)),
            }
            while !carrier.is_empty() {
                let sent = carrier.drain(self.to.0);
                self.note_sent(sent).await?;
            }
            if self.link.is_some() {
                return Ok(Burst::UsedUp);
            }
            rounds += 1;
            if rounds == ROUNDS_MAX {
                rounds = 0;
                tokio::task::yield_now().await;
            }
        }
    }

    /// How many bytes the link permits to move now; waits for that.
    async fn permitted(&self) -> Result<usize, Fault> {
        let Some(link) = &self.link else {
            return Ok(usize::MAX);
        };
        let permit = poll_fn(|cx| link.borrow_mut().poll_permit(cx, usize::MAX));
        let permit = self.activity.held_back(permit).await;
        permit.map_err(|error| Fault {
            side: Side::NextHop,
            kind: error.kind(),
        })
    }

    /// So many bytes go over the link.
    fn note_filled(&self, bytes: usize) {
        if let Some(link) = &self.link {
            let mut link = link.borrow_mut();
            match self.from.1 {
                Side::NextHop => link.received(self.from.0.take_received().unwrap_or(bytes)),
                // under TLS it is counted when it is sent
                Side::Client if self.to.0.is_tls() && bytes > 0 => {}
                Side::Client => link.sent(bytes),
            }
        }
    }

    async fn send_first(&self) -> Result<(), Fault> {
        let mut rest = self.first;
        // towards the client it was counted when it was received
        if self.to.1 == Side::NextHop {
            self.note_filled(rest.len());
        }
        while !rest.is_empty() {
            let sent = self.to.0.try_write(rest);
            rest = &rest[self.note_sent(sent).await?..];
        }
        Ok(())
    }

    /// Counts what was sent; waits if `to` cannot take more.
    async fn note_sent(&self, sent: io::Result<usize>) -> Result<usize, Fault> {
        if let (Some(link), Side::NextHop) = (&self.link, self.to.1)
            && let Some(bytes @ 1..) = self.to.0.take_sent()
        {
            link.borrow_mut().sent(bytes);
        }
        match sent {
            Ok(bytes) => {
                self.moved.set(self.moved.get() + bytes as u64);
                self.activity.touch();
                Ok(bytes)
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                self.to
                    .0
                    .writable()
                    .await
                    .map_err(|error| self.cannot_write(&error))?;
                Ok(0)
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(0),
            Err(error) => Err(self.cannot_write(&error)),
        }
    }

    fn cannot_read(&self, error: &io::Error) -> Fault {
        Fault {
            side: self.from.1,
            kind: error.kind(),
        }
    }

    fn cannot_write(&self, error: &io::Error) -> Fault {
        Fault {
            side: self.to.1,
            kind: error.kind(),
        }
    }

    /// Shutting down a half that is closed already is no failure.
    fn already_gone(&self, error: &io::Error) -> Result<(), Fault> {
        if error.kind() == io::ErrorKind::NotConnected {
            Ok(())
        } else {
            Err(self.cannot_write(error))
        }
    }
}

enum Burst {
    Quiet,
    /// What the link permitted was moved.
    UsedUp,
    Ended,
    SpliceRefused,
}
