//! How many frames of HTTP/2 a client, or a next hop, may have handled that carry no request and no
//! content (RFC 9113 §10.5): each costs it a few bytes, and the receiver more.
//!
//! Each kind has a bucket of its own. One that empties one is an attacker or broken: its connection
//! ends, a client's with `ENHANCE_YOUR_CALM`. On a connection that a trusted proxy has for several
//! clients each bucket is as large as those of so many connections: what ends a connection of one
//! client does not end this one for the others. Resets are counted by client there, too
//! ([`super::ClientResets`]).

use crate::now::Tick;

/// Streams that may be reset at once, by either side, and each second after that: a browser that
/// leaves a page resets some dozens. By the client it is Rapid Reset (CVE-2023-44487), by the
/// server, for errors that the client provokes, MadeYouReset (CVE-2025-8671). Not counted are those
/// that the server makes for reasons of its own ([`FrameKind::of_sent_reset`]).
pub(super) const RESETS: Rate = Rate {
    at_once: 200,
    each_s: 30,
};

/// PING, SETTINGS, PRIORITY, CONTINUATION, GOAWAY, DATA without content that ends nothing, and
/// frames of unknown types: programs send one of them a second, or a few with a request.
const CONTROL: Rate = Rate {
    at_once: 1000,
    each_s: 100,
};

/// `WINDOW_UPDATE` beyond those that requests and content bring about.
const WINDOW_UPDATES: Rate = Rate {
    at_once: 1000,
    each_s: 100,
};

/// Field lines of requests beyond [`FIELD_LINES_FREE`] each, which the crumbs of `Cookie` alone can
/// have (RFC 9113 §8.2.3): a byte each on the wire, and a fifth of a microsecond to decode. A
/// browser keeps 180 cookies of a host, and sends one a line.
const FIELD_LINES: Rate = Rate {
    at_once: 20_000,
    each_s: 2000,
};

/// So many field lines of a request are free: as many as are taken once crumbs are joined.
const FIELD_LINES_FREE: u32 = 128;

/// Frames without content that a request to a next hop brings about: the head of its response, of
/// interim ones and their CONTINUATION frames, trailers.
const CONTROL_EACH: u32 = 8;

/// Frames without content that a DATA frame which was sent brings about: its receiver may measure
/// the path with a PING each (gRPC does, one in a round trip).
const CONTROL_EACH_CONTENT: u32 = 1;

/// Streams that are reset for a request to a next hop: by us, as its client has left, and by the
/// next hop, as it has no use for the rest.
const RESETS_EACH: u32 = 2;

/// `WINDOW_UPDATE` frames that a request brings about, and that a DATA frame does which was sent:
/// one for the stream and one for the connection, and as many for a client with a small window.
const UPDATES_EACH: u32 = 4;

/// DATA frames that a small window makes short, and that are sent at once; further ones wait for
/// the window to be opened further. A client with windows of 100 bytes has 10 KB a second.
const SHORT_FRAMES: Rate = Rate {
    at_once: 200,
    each_s: 100,
};

/// What a frame is to the budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameKind {
    /// `RST_STREAM`: of the client, of this side for errors of the client, or of either side of a
    /// connection to a next hop.
    Reset,
    /// Of the peer: a frame that carries no request, no response and no content.
    Control,
    /// Of the peer.
    WindowUpdate,
    /// Of the client: HEADERS.
    Request,
    /// To the client, or a next hop: DATA.
    SentContent,
    /// To a next hop: HEADERS.
    SentRequest,
}

impl FrameKind {
    /// What `RST_STREAM` that is sent to a client counts as, by its error code (RFC 9113 §7);
    /// `None`: it does not count, as the client did not bring it about. A refusal for want of room
    /// is not the client's error either, and has cost a decoded head.
    #[must_use]
    pub const fn of_sent_reset(error_code: u32) -> Option<Self> {
        const NO_ERROR: u32 = 0;
        const INTERNAL_ERROR: u32 = 2;
        const REFUSED_STREAM: u32 = 7;
        const CANCEL: u32 = 8;
        const CONNECT_ERROR: u32 = 10;
        const ENHANCE_YOUR_CALM: u32 = 11;
        match error_code {
            NO_ERROR | INTERNAL_ERROR | CANCEL | CONNECT_ERROR => None,
            REFUSED_STREAM | ENHANCE_YOUR_CALM => Some(Self::Control),
            _ => Some(Self::Reset),
        }
    }
}

/// What there was too much of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flood {
    /// Streams that were reset.
    Resets,
    /// Frames that carry no request and no content.
    Control,
    /// `WINDOW_UPDATE` frames.
    WindowUpdates,
    /// Field lines of requests.
    FieldLines,
}

/// The budget of one connection.
#[derive(Clone, Debug)]
pub struct FrameBudget {
    resets: Bucket,
    control: Bucket,
    window_updates: Bucket,
    field_lines: Bucket,
    short_frames: Bucket,
}

impl FrameBudget {
    /// That of a connection which begins now.
    #[must_use]
    pub const fn new(now: Tick) -> Self {
        Self::of_clients(now, 1)
    }

    /// That of a connection which begins now, and is shared by so many `clients` at most.
    #[must_use]
    pub const fn of_clients(now: Tick, clients: u32) -> Self {
        Self {
            resets: Bucket::full(RESETS.times(clients), now),
            control: Bucket::full(CONTROL.times(clients), now),
            window_updates: Bucket::full(WINDOW_UPDATES.times(clients), now),
            field_lines: Bucket::full(FIELD_LINES.times(clients), now),
            short_frames: Bucket::full(SHORT_FRAMES.times(clients), now),
        }
    }

    /// Notes a request of a client whose head has so many field lines.
    ///
    /// # Errors
    ///
    /// They are too many.
    pub fn note_field_lines(&mut self, now: Tick, lines: usize) -> Result<(), Flood> {
        let lines = u32::try_from(lines).unwrap_or(u32::MAX);
        match lines.saturating_sub(FIELD_LINES_FREE) {
            0 => Ok(()),
            more => self
                .field_lines
                .take_many(now, more)
                .ok_or(Flood::FieldLines),
        }
    }

    /// Notes a head, or trailers, of so many bytes, of which the lines are not known: each has a
    /// byte at least. One alone is not too much, whatever it has: it was refused, and others are
    /// under way.
    ///
    /// # Errors
    ///
    /// They are too many.
    pub fn note_unknown_lines(&mut self, now: Tick, bytes: usize) -> Result<(), Flood> {
        let most = usize::try_from(self.field_lines.rate.at_once).unwrap_or(usize::MAX);
        self.note_field_lines(now, bytes.min(most))
    }

    /// Whether a DATA frame that a small window has made short may be sent at once; notes it.
    pub fn may_send_short(&mut self, now: Tick) -> bool {
        self.short_frames.take(now).is_some()
    }

    /// Notes that so many bytes were sent together, once their window had been opened for them: of
    /// each byte there may have been a `WINDOW_UPDATE`, and a frame for that.
    pub fn note_gathered(&mut self, bytes: usize) {
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        self.window_updates.give(bytes.saturating_mul(UPDATES_EACH));
    }

    /// Notes a frame.
    ///
    /// # Errors
    ///
    /// It is one too many.
    pub fn note(&mut self, now: Tick, frame: FrameKind) -> Result<(), Flood> {
        match frame {
            FrameKind::Reset => self.resets.take(now).ok_or(Flood::Resets),
            FrameKind::Control => self.control.take(now).ok_or(Flood::Control),
            FrameKind::WindowUpdate => {
                let taken = self.window_updates.take(now);
                taken.ok_or(Flood::WindowUpdates)
            }
            FrameKind::Request => {
                self.window_updates.give(UPDATES_EACH);
                Ok(())
            }
            FrameKind::SentContent => {
                self.window_updates.give(UPDATES_EACH);
                self.control.give(CONTROL_EACH_CONTENT);
                Ok(())
            }
            FrameKind::SentRequest => {
                self.window_updates.give(UPDATES_EACH);
                self.control.give(CONTROL_EACH);
                self.resets.give(RESETS_EACH);
                Ok(())
            }
        }
    }
}

/// So many at once, and so many more each second.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rate {
    pub(super) at_once: u32,
    pub(super) each_s: u32,
}

impl Rate {
    pub(super) const fn times(self, clients: u32) -> Self {
        Self {
            at_once: self.at_once.saturating_mul(clients),
            each_s: self.each_s.saturating_mul(clients),
        }
    }
}

/// What is left of a rate.
#[derive(Clone, Debug)]
struct Bucket {
    rate: Rate,
    /// Thousandths.
    left: u64,
    filled: Tick,
}

impl Bucket {
    const fn full(rate: Rate, now: Tick) -> Self {
        Self {
            rate,
            left: rate.at_once as u64 * 1000,
            filled: now,
        }
    }

    fn take(&mut self, now: Tick) -> Option<()> {
        self.take_many(now, 1)
    }

    fn take_many(&mut self, now: Tick, count: u32) -> Option<()> {
        let full = u64::from(self.rate.at_once) * 1000;
        let passed_ms = now.ms_since(self.filled);
        let more = passed_ms.saturating_mul(u64::from(self.rate.each_s));
        // what was given beyond a full bucket stays
        if self.left < full {
            self.left = self.left.saturating_add(more).min(full);
        }
        self.filled = self.filled.max(now);
        self.left = self.left.checked_sub(u64::from(count) * 1000)?;
        Some(())
    }

    /// Adds some, to twice a full bucket.
    fn give(&mut self, count: u32) {
        let most = u64::from(self.rate.at_once) * 2000;
        let more = u64::from(count) * 1000;
        self.left = self.left.saturating_add(more).min(most.max(self.left));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(budget: &mut FrameBudget, now: Tick, frame: FrameKind, most: u32) -> u32 {
        let counted = (0..most).take_while(|_| budget.note(now, frame).is_ok());
        u32::try_from(counted.count()).unwrap_or(u32::MAX)
    }

    #[test]
    fn field_lines_beyond_128_a_request_are_20000_at_once_and_2000_a_second() {
        let mut budget = FrameBudget::new(Tick(5));
        let requests = |budget: &mut FrameBudget, now, lines| {
            let noted = (0..20_000).take_while(|_| budget.note_field_lines(now, lines).is_ok());
            noted.count()
        };
        assert_eq!(requests(&mut budget, Tick(5), 128), 20_000);
        // one beyond the budget takes nothing
        assert_eq!(
            budget.note_field_lines(Tick(5), 20_129),
            Err(Flood::FieldLines)
        );
        assert_eq!(requests(&mut budget, Tick(5), 228), 200);
        assert_eq!(requests(&mut budget, Tick(1005), 228), 20);
        assert_eq!(requests(&mut budget, Tick(3_600_000), 1128), 20);
        let shared = FrameBudget::of_clients(Tick(5), 3);
        assert_eq!(requests(&mut shared.clone(), Tick(5), 228), 600);
    }

    #[test]
    fn resets_are_200_at_once_and_30_a_second() {
        let mut budget = FrameBudget::new(Tick(5));
        assert_eq!(times(&mut budget, Tick(5), FrameKind::Reset, 1000), 200);
        assert_eq!(budget.note(Tick(5), FrameKind::Reset), Err(Flood::Resets));
        assert_eq!(times(&mut budget, Tick(1005), FrameKind::Reset, 1000), 30);
        let hour = Tick(3_600_000);
        assert_eq!(times(&mut budget, hour, FrameKind::Reset, 1000), 200);
        assert_eq!(budget.note(hour, FrameKind::Control), Ok(()));
    }

    #[test]
    fn kinds_have_budgets_of_their_own() {
        let mut budget = FrameBudget::new(Tick(0));
        assert_eq!(times(&mut budget, Tick(0), FrameKind::Control, 5000), 1000);
        let flood = budget.note(Tick(0), FrameKind::Control);
        assert_eq!(flood, Err(Flood::Control));
        assert_eq!(times(&mut budget, Tick(0), FrameKind::Reset, 5000), 200);
    }

    #[test]
    fn window_updates_grow_with_requests_and_content() {
        let mut budget = FrameBudget::new(Tick(0));
        let updates = FrameKind::WindowUpdate;
        for _ in 0..100_000 {
            assert_eq!(budget.note(Tick(0), FrameKind::SentContent), Ok(()));
            assert_eq!(times(&mut budget, Tick(0), updates, 4), 4);
        }
        assert_eq!(times(&mut budget, Tick(0), updates, 5000), 1000);
        assert_eq!(budget.note(Tick(0), updates), Err(Flood::WindowUpdates));
        // what content brings about is bounded, too
        for _ in 0..100_000 {
            assert_eq!(budget.note(Tick(0), FrameKind::Request), Ok(()));
        }
        assert_eq!(times(&mut budget, Tick(0), updates, 5000), 2000);
    }

    #[test]
    fn head_of_any_size_is_one_head() {
        let mut budget = FrameBudget::new(Tick(0));
        assert_eq!(budget.note_unknown_lines(Tick(0), 90_000), Ok(()));
        let next = budget.note_unknown_lines(Tick(1000), 90_000);
        assert_eq!(next, Err(Flood::FieldLines));
        assert_eq!(budget.note_unknown_lines(Tick(10_000), 90_000), Ok(()));
    }

    #[test]
    fn ping_may_come_for_each_frame_of_content() {
        let mut budget = FrameBudget::new(Tick(0));
        for _ in 0..100_000 {
            assert_eq!(budget.note(Tick(0), FrameKind::SentContent), Ok(()));
            assert_eq!(times(&mut budget, Tick(0), FrameKind::Control, 1), 1);
        }
        assert_eq!(times(&mut budget, Tick(0), FrameKind::Control, 5000), 1000);
    }

    #[test]
    fn short_frames_are_200_at_once_and_100_a_second() {
        let mut budget = FrameBudget::new(Tick(0));
        let sent = |budget: &mut FrameBudget, now| {
            let sent = (0..1000).take_while(|_| budget.may_send_short(now));
            sent.count()
        };
        assert_eq!(sent(&mut budget, Tick(0)), 200);
        assert_eq!(sent(&mut budget, Tick(1000)), 100);
        let mut shared = FrameBudget::of_clients(Tick(0), 3);
        assert_eq!(sent(&mut shared, Tick(0)), 600);
    }

    #[test]
    fn bytes_that_are_sent_together_give_what_frames_of_a_byte_would() {
        let mut budget = FrameBudget::new(Tick(0));
        let updates = FrameKind::WindowUpdate;
        assert_eq!(times(&mut budget, Tick(0), updates, 5000), 1000);
        budget.note_gathered(100);
        assert_eq!(times(&mut budget, Tick(0), updates, 5000), 400);
        budget.note_gathered(usize::MAX);
        assert_eq!(times(&mut budget, Tick(0), updates, 5000), 2000);
    }

    #[test]
    fn next_hop_may_reset_what_is_requested_and_little_more() {
        let mut budget = FrameBudget::new(Tick(0));
        for _ in 0..100_000 {
            assert_eq!(budget.note(Tick(0), FrameKind::SentRequest), Ok(()));
            assert_eq!(times(&mut budget, Tick(0), FrameKind::Reset, 2), 2);
            assert_eq!(times(&mut budget, Tick(0), FrameKind::Control, 8), 8);
        }
        assert_eq!(times(&mut budget, Tick(0), FrameKind::Reset, 1000), 200);
        assert_eq!(times(&mut budget, Tick(0), FrameKind::Control, 5000), 1000);
    }

    #[test]
    fn clock_that_steps_back_refills_nothing() {
        let mut budget = FrameBudget::new(Tick(1000));
        assert_eq!(times(&mut budget, Tick(1000), FrameKind::Reset, 1000), 200);
        assert_eq!(times(&mut budget, Tick(0), FrameKind::Reset, 1000), 0);
        assert_eq!(times(&mut budget, Tick(1000), FrameKind::Reset, 1000), 0);
    }

    #[test]
    fn resets_that_the_client_did_not_bring_about_do_not_count() {
        let count = FrameKind::of_sent_reset;
        // by `h2`: PROTOCOL_ERROR, FLOW_CONTROL_ERROR, STREAM_CLOSED, FRAME_SIZE_ERROR
        assert_eq!([1, 3, 5, 6].map(count), [Some(FrameKind::Reset); 4]);
        // the request was answered, failed, timed out, or its tunnel broke
        assert_eq!([0, 2, 8, 10].map(count), [None; 4]);
        // refused: bounded as frames are that carry nothing
        assert_eq!([7, 11].map(count), [Some(FrameKind::Control); 2]);
        assert_eq!(count(u32::MAX), Some(FrameKind::Reset));
    }

    #[test]
    fn connection_of_several_clients_has_the_budgets_of_all() {
        let mut budget = FrameBudget::of_clients(Tick(0), 100);
        let resets = times(&mut budget, Tick(0), FrameKind::Reset, 50_000);
        assert_eq!(resets, 20_000);
        assert_eq!(times(&mut budget, Tick(1000), FrameKind::Reset, 5000), 3000);
        let control = times(&mut budget, Tick(0), FrameKind::Control, 200_000);
        assert_eq!(control, 100_000);
        let mut most = FrameBudget::of_clients(Tick(0), u32::MAX);
        assert_eq!(most.note(Tick(0), FrameKind::Reset), Ok(()));
    }
}
