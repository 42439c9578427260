//! One transfer from a server to the proxy: packets through the shared queue, and what the proxy
//! offers to take.
//!
//! A packet that is acknowledged at `t` releases others that come to the queue at `t + round trip`.
//! The window that an acknowledgement offers is what the proxy has taken so far and as much as
//! `policy::fetch` lets lie in the kernel's buffer. What was on its way when a transfer
//! is stopped still goes over the link, and is wasted.

use super::Simulator;
use super::next_hop::Answer;
use crate::journal::What;
use crate::network::tcp::Tcp;
use crate::world::{Event, Nanos};
use std::collections::VecDeque;
use weir_policy::fetch::{ByteSpan, FetchEnd, FetchId};

/// The owner of a fetch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum FetchOwner {
    /// None any more: what is on its way is wasted.
    #[default]
    None,
    /// This request's: its response head has not come.
    Request(u32),
    /// An in-flight response's, as this fetch of it.
    InFlight(u32, FetchId),
}

/// A transfer from a server.
#[derive(Debug, Default)]
pub(super) struct Fetch {
    pub(super) owner: FetchOwner,
    /// No other one has it, ever.
    pub(super) number: u64,
    pub(super) answer: Option<Answer>,
    pub(super) connection: u32,
    /// Segments that may be under way.
    pub(super) window: u32,
    pub(super) rtt: Nanos,
    pub(super) head_bytes: u64,
    /// Head and content, as far as they will come.
    pub(super) total: u64,
    /// Bytes that the proxy offers to take beyond those it has taken.
    pub(super) offered: u64,
    /// Its connection is kept open afterwards.
    pub(super) is_persistent: bool,
    /// The server breaks off at the end of it.
    pub(super) is_cut: bool,
    /// It breaks off before a head.
    pub(super) fails: bool,
    /// Its connection was used before.
    pub(super) is_reused: bool,
    /// Its head shows that it is not the requested response.
    pub(super) refuses: Option<FetchEnd>,
    /// It brings what a reader is missing: the row whose request it is, and which bytes.
    pub(super) gap: Option<(u64, ByteSpan)>,
    /// What the head says.
    pub(super) status: u16,
    /// Bytes sent, bytes that have come, and bytes that were taken.
    pub(super) sent: u64,
    pub(super) came: u64,
    pub(super) taken: u64,
    /// Bytes it may take in the background before the next call.
    pub(super) granted: u64,
    pub(super) is_waiting_for_grant: bool,
    /// It breaks off with what came with its head: that is seen after those that wait for it were
    /// let on.
    pub(super) breaks_off_next: bool,
    /// No more is sent, and what comes is thrown away.
    pub(super) is_stopped: bool,
    /// The whole span was taken.
    pub(super) is_done: bool,
    /// An event works on it.
    pub(super) is_held: bool,
    /// Its place was given away.
    pub(super) is_released: bool,
    pub(super) under_way: u32,
    /// Bytes that come to the queue, and when.
    pub(super) to_queue: VecDeque<(Nanos, u64)>,
    pub(super) is_queue_due: bool,
    /// Packets in it, or on the link behind it.
    pub(super) on_link: u32,
}

impl Fetch {
    /// A new transfer; what the place was used for before is forgotten, but not its memory.
    pub(super) fn begin(&mut self, fetch: Self) {
        let mut to_queue = std::mem::take(&mut self.to_queue);
        to_queue.clear();
        *self = Self { to_queue, ..fetch };
    }

    /// Bytes of content that have come and were not taken.
    pub(super) const fn waiting(&self) -> u64 {
        let taken = if self.taken > self.head_bytes {
            self.taken
        } else {
            self.head_bytes
        };
        self.came.saturating_sub(taken)
    }

    /// What may be sent now: full segments, and the last one.
    fn release(&mut self, tcp: &Tcp) -> u64 {
        let edge = self.taken.saturating_add(self.offered).min(self.total);
        let mut bytes = 0;
        while self.under_way < self.window && self.sent < self.total {
            let segment = u64::from(tcp.segment_bytes).min(self.total - self.sent);
            let room = edge.saturating_sub(self.sent);
            // a window smaller than a segment is used only if nothing else is under way (RFC 9293
            // §3.8.6.2.1)
            let segment = match room {
                0 => break,
                room if room >= segment => segment,
                room if self.under_way == 0 => room,
                _ => break,
            };
            self.sent += segment;
            self.under_way += 1;
            bytes += segment;
        }
        bytes
    }

    /// Nothing is on its way, and nothing will be.
    const fn is_over(&self) -> bool {
        !self.is_queue_due
            && self.on_link == 0
            && !self.is_held
            && !self.is_waiting_for_grant
            && !self.breaks_off_next
    }
}

impl Simulator {
    /// The server sends what it may; it is at the queue at `at`.
    pub(super) fn send_more(&mut self, id: u32, at: Nanos) {
        let fetch = self.fetches.at_mut(id);
        if fetch.is_stopped {
            return;
        }
        let bytes = fetch.release(&self.settings.network.tcp);
        if bytes == 0 {
            return;
        }
        fetch.to_queue.push_back((at, bytes));
        if !fetch.is_queue_due {
            fetch.is_queue_due = true;
            self.world.schedule(at, Event::Queued(id));
        }
    }

    /// Packets of a fetch are at the queue in front of the proxy.
    pub(super) fn queued(&mut self, id: u32) {
        let (at, tcp) = (self.world.at(), self.settings.network.tcp);
        let rate = self.settings.network.internet;
        let fetch = self.fetches.at_mut(id);
        fetch.is_queue_due = false;
        while let Some((due, bytes)) = fetch.to_queue.front().copied() {
            if due > at {
                fetch.is_queue_due = true;
                self.world.schedule(due, Event::Queued(id));
                break;
            }
            fetch.to_queue.pop_front();
            let mut left = bytes;
            while left > 0 {
                #[expect(clippy::cast_possible_truncation, reason = "at most a segment")]
                let segment = left.min(u64::from(tcp.segment_bytes)) as u32;
                let carried = &mut self.tally.from_servers;
                let departs = self
                    .internet
                    .carry(rate, at, segment + tcp.header_bytes, carried);
                fetch.on_link += 1;
                self.on_internet.push_back(segment);
                self.world.schedule(departs, Event::Arrived(id));
                left -= u64::from(segment);
            }
        }
    }

    /// A packet of a fetch is at the proxy.
    pub(super) fn arrived(&mut self, id: u32) {
        let window_max = self.settings.network.tcp.window_max();
        // packets leave the link in the order in which they came to it
        let Some(bytes) = self.on_internet.pop_front() else {
            return;
        };
        let fetch = self.fetches.at_mut(id);
        fetch.on_link -= 1;
        let had_head = fetch.came >= fetch.head_bytes;
        let content_before = fetch.came.saturating_sub(fetch.head_bytes);
        fetch.came += u64::from(bytes);
        fetch.under_way -= 1;
        let content = fetch.came.saturating_sub(fetch.head_bytes) - content_before;
        self.tally.traffic.from_servers_bytes += content;
        self.tally.traffic.from_servers_head_bytes += u64::from(bytes) - content;
        if fetch.is_stopped {
            self.tally.traffic.wasted_bytes += content;
            self.release_fetch(id);
            return;
        }
        fetch.is_held = true;
        fetch.window = (fetch.window + 1).min(window_max);
        if !had_head && fetch.came >= fetch.head_bytes {
            fetch.taken = fetch.head_bytes;
            self.head_came(id);
        }
        self.taken_or_done(id);
        let at = self.world.at();
        let rtt = self.fetches.at(id).rtt;
        self.send_more(id, at + rtt);
        self.fetches.at_mut(id).is_held = false;
        self.release_fetch(id);
    }

    /// The head of a fetch has come, or the end of the connection in its place.
    fn head_came(&mut self, id: u32) {
        let fetch = self.fetches.at(id);
        let (transfer, status, fails) = (fetch.number, fetch.status, fetch.fails);
        let (owner, refuses, is_reused) = (fetch.owner, fetch.refuses, fetch.is_reused);
        self.enter(|| {
            if fails {
                What::Broken { transfer }
            } else {
                What::Head { transfer, status }
            }
        });
        match owner {
            FetchOwner::Request(exchange) if fails => {
                self.stop(id);
                if is_reused && self.repeats(exchange) {
                    self.ask(exchange);
                } else {
                    self.failed(exchange);
                }
                self.release(exchange);
            }
            FetchOwner::Request(exchange) => {
                self.head(exchange, id);
                self.release(exchange);
            }
            FetchOwner::InFlight(in_flight, fetch_id) => {
                if fails && is_reused {
                    self.repeat_gap(in_flight, fetch_id, id);
                } else if let Some(how) = refuses {
                    self.end(in_flight, fetch_id, id, how);
                    self.drive(in_flight);
                } else if let Some(fill) = &mut self.in_flight.at_mut(in_flight).fill {
                    fill.confirmed(fetch_id);
                    self.accept_with_head(in_flight, fetch_id, id);
                    self.drive(in_flight);
                }
            }
            FetchOwner::None => {}
        }
    }

    /// Something has come: its owner takes it; a head may be all there is.
    fn taken_or_done(&mut self, id: u32) {
        let fetch = self.fetches.at_mut(id);
        match fetch.owner {
            FetchOwner::InFlight(in_flight, _) => self.drive(in_flight),
            // a head that its request has had, and nothing behind it
            FetchOwner::Request(_) | FetchOwner::None => {
                if fetch.came >= fetch.total && fetch.total == fetch.head_bytes && !fetch.is_stopped
                {
                    self.end_fetch(id);
                }
            }
        }
    }

    /// The whole span was received: the connection can be used again, if the server keeps it and
    /// nothing follows.
    pub(super) fn end_fetch(&mut self, id: u32) {
        let now = self.now();
        let fetch = self.fetches.at_mut(id);
        if fetch.is_done || fetch.is_stopped {
            return;
        }
        let is_whole = fetch.came >= fetch.total && !fetch.is_cut;
        fetch.is_done = true;
        fetch.owner = FetchOwner::None;
        self.background
            .give_back(std::mem::take(&mut fetch.granted));
        let (connection, window) = (fetch.connection, fetch.window);
        let is_reusable = is_whole && fetch.is_persistent;
        let transfer = fetch.number;
        self.enter(|| What::Ended {
            transfer,
            is_reusable,
        });
        let fetch = self.fetches.at_mut(id);
        if is_reusable {
            self.servers.give_back(now, connection, window);
        } else {
            fetch.is_stopped = !is_whole;
            self.tally.traffic.wasted_bytes += fetch.waiting();
            self.servers.close(connection);
        }
    }

    /// The transfer is given up: its connection is closed, as HTTP/1.1 knows no other way (RFC 9112
    /// §9.3).
    pub(super) fn stop(&mut self, id: u32) {
        let fetch = self.fetches.at_mut(id);
        if fetch.is_done || fetch.is_stopped {
            return;
        }
        fetch.is_stopped = true;
        fetch.owner = FetchOwner::None;
        self.background
            .give_back(std::mem::take(&mut fetch.granted));
        self.tally.traffic.wasted_bytes += fetch.waiting();
        self.servers.close(fetch.connection);
        let transfer = fetch.number;
        self.enter(|| What::Ended {
            transfer,
            is_reusable: false,
        });
    }

    /// Gives its place away once nothing of it is on its way.
    pub(super) fn release_fetch(&mut self, id: u32) {
        let fetch = self.fetches.at_mut(id);
        if (fetch.is_done || fetch.is_stopped) && fetch.is_over() && !fetch.is_released {
            fetch.is_released = true;
            self.fetches.remove(id);
        }
    }
}
