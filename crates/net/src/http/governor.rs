//! Keeps one transfer from a next hop to one client within its read-ahead: sets on both streams
//! what the pace allows.

use super::response_receiver::ResponseReceiver;
use super::response_sender::ResponseSender;
use crate::flow::{LOOK_MS, first_window};
use std::io;
use std::task::Poll;
use weir_policy::fetch::{Pace, ReadAhead};
use weir_policy::{Now, Tick};

/// A larger read-ahead, or one without a bound, leaves connections alone no longer than this one.
const SHARED_BYTES_MAX: u64 = 64 * 1024;

/// The pace of a transfer and what it has set.
#[derive(Debug)]
pub struct Governor {
    pace: Pace,
    looked: Tick,
    /// Bytes that the client's kernel has accepted since they were last reported to the pace.
    handed_over: u64,
    /// The client's kernel did not take all there was at once.
    waited: bool,
}

impl Governor {
    /// How many bytes of a response of `length` may be written to a client before there has to be a
    /// governor. The first window towards the next hop is a share of the read-ahead, and bounds
    /// alone what is read at once. A response that fits into it needs no other; one that does not
    /// has one from its first byte, as each time that window is used up takes a round trip. Where
    /// the length is not known, half of a share tells a small response from a large one.
    pub fn free_bytes(read_ahead: ReadAhead, length: Option<u64>) -> u64 {
        let share = share(read_ahead);
        match length {
            Some(length) if length > share => 0,
            Some(_) => 2 * share,
            None => share / 2,
        }
    }

    /// Whether a response of `length` fits into the first window towards the next hop: that alone
    /// bounds it, and nothing is set or measured for it.
    pub fn is_small(read_ahead: ReadAhead, length: Option<u64>) -> bool {
        length.is_some_and(|length| length <= share(read_ahead))
    }

    /// A governor for a transfer from `next_hop` to `client`, which may have begun; `None` if its
    /// read-ahead has no bound: then the kernel alone sizes the connection's buffers, also if they
    /// were bounded before.
    pub fn new(
        read_ahead: ReadAhead,
        now: Now,
        next_hop: &mut ResponseReceiver<'_>,
        client: &ResponseSender<'_>,
    ) -> Option<Self> {
        let Some(base) = first_window(read_ahead, now) else {
            next_hop.begin_window(0);
            next_hop.set_window(None, None);
            return None;
        };
        let next_hop_us = next_hop.begin_window(base);
        let mut pace = Pace::new(read_ahead, now);
        pace.set_round_trips(client.round_trip_us().unwrap_or(0), next_hop_us);
        Some(Self {
            pace,
            looked: now.tick,
            handed_over: client.sent_bytes(),
            waited: false,
        })
    }

    /// How many bytes may be read at once, when all that was read before is written.
    pub fn read_max(&self) -> usize {
        usize::try_from(self.pace.ahead()).unwrap_or(usize::MAX)
    }

    /// Reports to the pace what the client has taken, and sets the windows that follow; to be
    /// called before each read. `remaining` is how many bytes are still to be read, if that is
    /// known.
    pub fn before_read(
        &mut self,
        now: Now,
        next_hop: &mut ResponseReceiver<'_>,
        client: &mut ResponseSender<'_>,
        remaining: Option<u64>,
    ) {
        let starving = !std::mem::take(&mut self.waited);
        let bytes = std::mem::take(&mut self.handed_over);
        self.pace.handed_over(now, bytes, starving);
        self.look(now, next_hop, client);
        let window = self.pace.window(None);
        next_hop.set_window(window, remaining);
        client.set_unsent_limit(self.pace.unsent());
    }

    /// Content was offered to the client, with the result `sent`.
    pub fn sent(&mut self, sent: &Poll<io::Result<usize>>) {
        match sent {
            Poll::Pending => self.waited = true,
            Poll::Ready(Ok(bytes)) => self.handed_over += *bytes as u64,
            Poll::Ready(Err(_)) => {}
        }
    }

    fn look(&mut self, now: Now, next_hop: &mut ResponseReceiver<'_>, client: &ResponseSender<'_>) {
        if now.tick.ms_since(self.looked) < LOOK_MS {
            return;
        }
        self.looked = now.tick;
        let next_hop_us = next_hop.measure_round_trip().unwrap_or(0);
        let client_us = client.round_trip_us().unwrap_or(0);
        self.pace.set_round_trips(client_us, next_hop_us);
    }
}

/// The share of the read-ahead that the first window towards the next hop is, bytes.
fn share(read_ahead: ReadAhead) -> u64 {
    read_ahead.bytes().min(SHARED_BYTES_MAX) / 4
}
