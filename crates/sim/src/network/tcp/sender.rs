//! A sender whose packets stand in a queue right in front of it, or at a fixed distance.

use super::Tcp;
use crate::network::link::{Link, LinkRate, LinkTraffic};
use crate::world::Nanos;
use std::collections::VecDeque;

/// One response on its way to a client, packet by packet.
///
/// From a packet's departure from the link it takes `after_ns` to reach the client; `loop_ns` after
/// its departure the packets that its acknowledgement releases stand in the queue.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sender {
    /// Segments that may be under way.
    pub(crate) window: u32,
    /// When the packets that are released by those under way come to the queue, in order.
    under_way: VecDeque<Nanos>,
    /// Bytes that were sent.
    pub(crate) sent: u64,
    /// Packets that carried them.
    pub(crate) packets: u64,
    /// When the first packet reached the client.
    pub(crate) first_at: Option<Nanos>,
    /// When the last one sent so far reaches it.
    pub(crate) last_at: Nanos,
    /// When the client left: with the packet that brought it enough. Neither that nor those behind
    /// it are acknowledged.
    left: Option<Nanos>,
}

/// What sending needs to know.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms {
    pub(crate) tcp: Tcp,
    pub(crate) rate: LinkRate,
    pub(crate) loop_ns: Nanos,
    pub(crate) after_ns: Nanos,
    /// Bytes that are there to be sent.
    pub(crate) written: u64,
    /// No more will be written.
    pub(crate) is_all: bool,
    /// The client disconnects when it has so many bytes.
    pub(crate) leaves_at: Option<u64>,
}

/// What came of sending as much as was possible.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SendResult {
    /// Something is left that an acknowledgement would release: it comes then.
    pub(crate) blocked_until: Option<Nanos>,
    /// The client had enough and left: when.
    pub(crate) left_at: Option<Nanos>,
}

impl Sender {
    /// Ready for another response; keeps its memory.
    pub(crate) fn begin(&mut self, window: u32) {
        self.window = window;
        self.under_way.clear();
        self.sent = 0;
        self.packets = 0;
        self.first_at = None;
        self.last_at = 0;
        self.left = None;
    }

    /// Becomes the same as another one, in the memory that it has.
    pub(crate) fn copy(&mut self, other: &Self) {
        let mut under_way = std::mem::take(&mut self.under_way);
        under_way.clear();
        under_way.extend(&other.under_way);
        *self = Self {
            under_way,
            ..*other
        };
    }

    /// Everything is sent and acknowledged.
    pub(crate) fn end(&mut self, sent: u64, packets: u64, last_at: Nanos, window: u32) {
        self.under_way.clear();
        self.sent = sent;
        self.packets = packets;
        self.last_at = last_at;
        self.window = window;
    }

    /// Acknowledgements that are back by `at` open the window.
    fn acknowledge(&mut self, at: Nanos, window_max: u32) {
        while self.under_way.front().is_some_and(|back| *back <= at) {
            self.under_way.pop_front();
            self.window = (self.window + 1).min(window_max);
        }
    }

    /// Sends what may be sent at `at`.
    pub(crate) fn send(
        &mut self,
        terms: &Terms,
        link: &mut Link,
        carried: &mut LinkTraffic,
        at: Nanos,
    ) -> SendResult {
        let tcp = &terms.tcp;
        self.acknowledge(at, tcp.window_max());
        let mut outcome = SendResult::default();
        while self.sent < terms.written {
            let left = terms.written - self.sent;
            let is_last = terms.is_all && left <= u64::from(tcp.segment_bytes);
            let is_short = left < u64::from(tcp.segment_bytes) && !is_last;
            let is_full = self.under_way.len() >= self.window as usize;
            if is_full || is_short && !self.under_way.is_empty() {
                outcome.blocked_until = self.under_way.front().copied();
                break;
            }
            #[expect(clippy::cast_possible_truncation, reason = "at most a segment")]
            let bytes = left.min(u64::from(tcp.segment_bytes)) as u32;
            let departs = link.carry(terms.rate, at, bytes + tcp.header_bytes, carried);
            let arrives = departs + terms.after_ns;
            self.sent += u64::from(bytes);
            self.packets += 1;
            self.first_at.get_or_insert(arrives);
            self.last_at = arrives;
            if self.left.is_none() && terms.leaves_at.is_some_and(|enough| self.sent >= enough) {
                self.left = Some(arrives);
                outcome.left_at = Some(arrives);
            }
            // a disconnected client acknowledges nothing
            self.under_way.push_back(match self.left {
                None => departs + terms.loop_ns,
                Some(_) => Nanos::MAX,
            });
        }
        if outcome.blocked_until == Some(Nanos::MAX) {
            outcome.blocked_until = None;
        }
        outcome
    }

    /// The window once all that is under way is acknowledged.
    pub(crate) fn window_afterwards(&self, tcp: &Tcp) -> u32 {
        let more = u32::try_from(self.under_way.len()).unwrap_or(u32::MAX);
        self.window.saturating_add(more).min(tcp.window_max())
    }
}
