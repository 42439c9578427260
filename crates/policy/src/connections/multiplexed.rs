//! Connections to a next hop that carry many requests at once (RFC 9113 §5): which one carries the
//! next request, how wide the windows of its streams are, and when it is closed.
//!
//! *The fullest one that has room* carries the next request, of several as full the newest. Streams
//! have windows of their own, so that sharing costs a request nothing but its part of the path,
//! which it would share anyway; the fullest has the widest congestion window and the longest table
//! of fields. The one with the fewest would keep all connections of a peak in use for ever: this
//! way those that the present load does not need get no requests, and are closed, as PROXIM has it
//! for idle connections. Its price: a lost packet holds back all streams of a connection.
//!
//! *Room* is what the next hop permits (`SETTINGS_MAX_CONCURRENT_STREAMS`), what we do, and what
//! the windows of its streams may hold in memory together, since all readers may stop at once. Of a
//! connection whose settings have not come, it is what was permitted on the last one: requests that
//! are sent before (RFC 9113 §3.4) would be refused if they are more.
//!
//! *None has room*: one is opened, and the requests that come meanwhile wait for it, as many as it
//! will carry.
//!
//! *An exclusive connection* carries one request until that is answered, and then others too.
//! Requests that are repeated after a connection which they shared has broken get one each: the
//! request that has brought that about is among them, and would break the connection of all others
//! once more.
//!
//! A window is set for all streams of a connection alike (`SETTINGS_INITIAL_WINDOW_SIZE`), as wide
//! as the stream needs that needs most, within what one stream may have. While requests are under
//! way it only grows: where one becomes smaller than what is under way, it is up to the details of
//! both sides when it opens again, and some never do that.

use super::{ConnectionId, IdleLimits};
use crate::now::Tick;
use alloc::collections::BTreeMap;

/// What connections may carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamRules {
    /// Requests on one connection at once.
    pub streams_max: u32,
    /// Bytes that the windows of all streams of one connection may have together.
    pub windows_bytes_max: u32,
    /// Bytes that the window of one stream may have.
    pub window_bytes_max: u32,
}

impl Default for StreamRules {
    /// 100 requests, as RFC 9113 §6.5.2 recommends at least; 256 KiB for each, what one of a client
    /// may hold in any case, which bring 2.5 MB/s over 100 ms.
    fn default() -> Self {
        Self {
            streams_max: 100,
            windows_bytes_max: 100 * (256 << 10),
            window_bytes_max: 256 << 10,
        }
    }
}

/// A repetition takes a connection only if the next hop has sent something on it within so many
/// milliseconds: another one may be as dead as that which has failed it.
const ALIVE_MS: u64 = 1000;

/// A connection without requests is closed after so many milliseconds if another one has room.
const SURPLUS_MS: u64 = 1000;

/// A next hop that has sent nothing for so many milliseconds while a request waited for it so long
/// gets no more requests on that connection.
const SILENT_MS: u64 = 30_000;

/// After so many requests that were given up, each of which has waited for [`GIVEN_UP_MS`] while
/// nothing was received, a connection gets no more, though it was silent for a shorter time: those
/// who wait may have less patience than [`SILENT_MS`].
const GIVEN_UP_MAX: u32 = 3;

/// How long such a request has waited at least, milliseconds.
const GIVEN_UP_MS: u64 = 1000;

/// What a request does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamChoice {
    /// It is sent on this connection.
    Take(ConnectionId),
    /// It waits for one that is being opened, or until another request ends.
    Wait,
    /// A connection is to be opened.
    Open,
}

/// An open connection.
#[derive(Clone, Copy, Debug)]
struct Multiplexed {
    opened: Tick,
    /// Requests under way.
    streams: u32,
    /// What the next hop permits.
    peer_max: u32,
    /// The window of each stream, bytes.
    window_bytes: u32,
    /// It gets no further requests.
    is_draining: bool,
    /// It gets no further requests before the one that it was opened for has ended.
    is_exclusive: bool,
    /// When the last request ended, or it was opened.
    idle_since: Tick,
    /// When something was received.
    heard: Tick,
    /// Requests that began since, and were given up.
    given_up: u32,
}

impl Multiplexed {
    /// How many more requests it can carry.
    fn room(&self, rules: &StreamRules) -> u32 {
        if self.is_draining || self.is_exclusive {
            return 0;
        }
        let by_windows = rules.windows_bytes_max / self.window_bytes.max(1);
        let most = self.peer_max.min(rules.streams_max).min(by_windows.max(1));
        most.saturating_sub(self.streams)
    }
}

/// The connections of one driver to one next hop that carry many requests.
#[derive(Clone, Debug, Default)]
pub struct MultiplexedHop {
    rules: StreamRules,
    connections: BTreeMap<ConnectionId, Multiplexed>,
    /// Connections that are being opened.
    opening: u32,
    /// Requests that wait.
    waiting: u32,
    /// What the next hop has permitted last, on any connection.
    permitted: Option<u32>,
}

impl MultiplexedHop {
    /// None yet.
    #[must_use]
    pub fn new(rules: StreamRules) -> Self {
        Self {
            rules,
            ..Self::default()
        }
    }

    /// Requests that a connection carries at once before the next hop has said how many it permits
    /// there: as many as it did on the last one.
    #[must_use]
    pub fn initial_streams_max(&self) -> u32 {
        let most = self.rules.streams_max;
        self.permitted.map_or(most, |permitted| permitted.min(most))
    }

    /// What the next request does; with `fresh` it is repeated, as a connection has failed it.
    #[must_use]
    pub fn choose(&self, now: Tick, limits: &IdleLimits, fresh: bool) -> StreamChoice {
        let usable = self.connections.iter().filter(|(_, it)| {
            it.room(&self.rules) > 0
                && now.ms_since(it.opened) < limits.lifetime_ms
                && (!fresh || now.ms_since(it.heard) < ALIVE_MS)
        });
        let fullest = usable.max_by_key(|(id, it)| (it.streams, it.opened, **id));
        if let Some((id, _)) = fullest {
            return StreamChoice::Take(*id);
        }
        // as many as the first of those that are being opened will carry, as far as is known
        let each = self.initial_streams_max();
        match self.opening.saturating_mul(each) > self.waiting {
            true => StreamChoice::Wait,
            false => StreamChoice::Open,
        }
    }

    /// A connection is being opened.
    pub fn opening_begins(&mut self) {
        self.opening += 1;
    }

    /// It is open, or cannot be opened.
    pub fn opening_ends(&mut self) {
        self.opening = self.opening.saturating_sub(1);
    }

    /// Whether a connection is being opened.
    #[must_use]
    pub const fn is_opening(&self) -> bool {
        self.opening > 0
    }

    /// A request starts to wait.
    pub fn wait_begins(&mut self) {
        self.waiting += 1;
    }

    /// Its wait has ended.
    pub fn wait_ends(&mut self) {
        self.waiting = self.waiting.saturating_sub(1);
    }

    /// A connection is open, whose streams begin with this window.
    pub fn opened(&mut self, now: Tick, id: ConnectionId, window_bytes: u32) {
        let connection = Multiplexed {
            opened: now,
            streams: 0,
            peer_max: self.initial_streams_max(),
            window_bytes,
            is_draining: false,
            is_exclusive: false,
            idle_since: now,
            heard: now,
            given_up: 0,
        };
        self.connections.insert(id, connection);
    }

    /// A connection that was opened is for the request that begins on it next, and gets others once
    /// that has ended.
    pub fn set_exclusive(&mut self, id: ConnectionId) {
        if let Some(connection) = self.connections.get_mut(&id) {
            connection.is_exclusive = true;
        }
    }

    /// A connection is closed.
    pub fn closed(&mut self, id: ConnectionId) {
        self.connections.remove(&id);
    }

    /// A request begins on a connection.
    pub fn stream_begins(&mut self, id: ConnectionId) {
        if let Some(connection) = self.connections.get_mut(&id) {
            connection.streams += 1;
        }
    }

    /// A request that began at `began` has ended; `answered` if its response was whole. One that
    /// was given up after a long silence of the connection takes that out of use.
    pub fn stream_ends(&mut self, now: Tick, id: ConnectionId, began: Tick, answered: bool) {
        let Some(connection) = self.connections.get_mut(&id) else {
            return;
        };
        connection.streams = connection.streams.saturating_sub(1);
        connection.idle_since = now;
        // one that was given up may still end the connection
        connection.is_draining |= connection.is_exclusive && !answered;
        connection.is_exclusive = false;
        let waited_ms = now.ms_since(began);
        if !answered && connection.heard <= began && waited_ms >= GIVEN_UP_MS {
            connection.given_up += 1;
        }
        let is_silent = now.ms_since(connection.heard) >= SILENT_MS;
        let is_long_silent = !answered && is_silent && waited_ms >= SILENT_MS;
        if is_long_silent || connection.given_up >= GIVEN_UP_MAX {
            connection.is_draining = true;
        }
    }

    /// Something was received on a connection.
    pub fn heard(&mut self, now: Tick, id: ConnectionId) {
        if let Some(connection) = self.connections.get_mut(&id) {
            connection.heard = now;
            connection.given_up = 0;
        }
    }

    /// The next hop permits so many requests at once.
    pub fn set_peer_max(&mut self, id: ConnectionId, streams: u32) {
        // none at all are permitted for a short time only (RFC 9113 §6.5.2)
        if streams > 0 {
            self.permitted = Some(streams);
        }
        if let Some(connection) = self.connections.get_mut(&id) {
            connection.peer_max = streams;
        }
    }

    /// A connection gets no further requests: the next hop has said so (RFC 9113 §6.8), or it must
    /// not be used any more.
    pub fn drain(&mut self, id: ConnectionId) {
        if let Some(connection) = self.connections.get_mut(&id) {
            connection.is_draining = true;
        }
    }

    /// Whether that is so, or one was silent for long while a request waited.
    #[must_use]
    pub fn is_draining(&self, id: ConnectionId) -> bool {
        self.connections.get(&id).is_none_or(|it| it.is_draining)
    }

    /// The window to give the streams of a connection, of which one needs as many bytes and the
    /// others no more. It grows by a quarter or more, and becomes smaller by as much where no
    /// request is under way; `None`: not now.
    pub fn window(&mut self, id: ConnectionId, needed: u32) -> Option<u32> {
        let connection = self.connections.get_mut(&id)?;
        let window = needed.min(self.rules.window_bytes_max);
        let now = connection.window_bytes;
        let grows = window > now.saturating_add(now / 4);
        let shrinks = connection.streams == 0 && window < now - now / 4;
        let changes = grows || shrinks;
        if changes {
            connection.window_bytes = window;
        }
        changes.then_some(window)
    }

    /// How many more requests a connection can carry.
    #[must_use]
    pub fn room(&self, id: ConnectionId) -> u32 {
        let connection = self.connections.get(&id);
        connection.map_or(0, |connection| connection.room(&self.rules))
    }

    /// After how many milliseconds from now on a connection has been idle, or open, for as long as
    /// is allowed; `None` while it carries a request.
    #[must_use]
    pub fn idle_timeout_ms(&self, now: Tick, id: ConnectionId, limits: &IdleLimits) -> Option<u64> {
        let Some(connection) = self.connections.get(&id) else {
            return Some(0);
        };
        if connection.streams > 0 {
            return None;
        }
        if connection.is_draining {
            return Some(0);
        }
        let others = self.connections.iter().filter(|(other, _)| **other != id);
        // of two that are idle one stays
        let is_surplus = others
            .filter(|(_, it)| it.room(&self.rules) > 0)
            .any(|(other, it)| it.streams > 0 || *other > id);
        let idle_ms = match is_surplus {
            true => SURPLUS_MS.min(limits.idle_timeout_ms),
            false => limits.idle_timeout_ms,
        };
        let idle_ms = idle_ms.saturating_sub(now.ms_since(connection.idle_since));
        let age_ms = now.ms_since(connection.opened);
        Some(idle_ms.min(limits.lifetime_ms.saturating_sub(age_ms)))
    }

    /// Connections that are open.
    #[must_use]
    pub fn len(&self) -> usize {
        self.connections.len()
    }

    /// Whether there is none, and none is being opened.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.connections.is_empty() && self.opening == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: IdleLimits = IdleLimits {
        per_hop_max: 64,
        total_max: 1024,
        idle_timeout_ms: 30_000,
        lifetime_ms: 3_600_000,
    };
    const KIB: u32 = 1024;

    fn hop(connections: u32) -> MultiplexedHop {
        let mut hop = MultiplexedHop::new(StreamRules::default());
        for id in 0..connections {
            hop.opened(Tick(u64::from(id)), ConnectionId(id), 16 * KIB);
        }
        hop
    }

    fn choose(hop: &MultiplexedHop, now: u64) -> StreamChoice {
        hop.choose(Tick(now), &LIMITS, false)
    }

    #[test]
    fn fullest_connection_with_room_carries_the_next_request() {
        let mut hop = hop(3);
        // the newest of those as full
        assert_eq!(choose(&hop, 10), StreamChoice::Take(ConnectionId(2)));
        hop.stream_begins(ConnectionId(0));
        assert_eq!(choose(&hop, 10), StreamChoice::Take(ConnectionId(0)));
        hop.set_peer_max(ConnectionId(0), 1);
        assert_eq!(choose(&hop, 10), StreamChoice::Take(ConnectionId(2)));
        hop.stream_ends(Tick(10), ConnectionId(0), Tick(5), true);
        hop.drain(ConnectionId(2));
        hop.drain(ConnectionId(1));
        assert_eq!(choose(&hop, 10), StreamChoice::Take(ConnectionId(0)));
        assert_eq!(choose(&hop, 3_600_000), StreamChoice::Open);
    }

    #[test]
    fn requests_wait_for_a_connection_that_is_being_opened_as_many_as_it_carries() {
        let mut hop = hop(0);
        assert_eq!(choose(&hop, 0), StreamChoice::Open);
        hop.opening_begins();
        for _ in 0..100 {
            assert_eq!(choose(&hop, 0), StreamChoice::Wait);
            hop.wait_begins();
        }
        assert_eq!(choose(&hop, 0), StreamChoice::Open);
        hop.opening_begins();
        assert_eq!(choose(&hop, 0), StreamChoice::Wait);
        for _ in 0..2 {
            hop.opening_ends();
        }
        assert_eq!(choose(&hop, 0), StreamChoice::Open);
    }

    #[test]
    fn new_connection_carries_as_many_as_the_last_one_was_permitted() {
        let mut hop = hop(1);
        assert_eq!(hop.initial_streams_max(), 100);
        hop.set_peer_max(ConnectionId(0), 2);
        hop.closed(ConnectionId(0));
        // each that is opened is for as many that wait
        for _ in 0..2 {
            assert_eq!(choose(&hop, 0), StreamChoice::Open);
            hop.opening_begins();
            for _ in 0..2 {
                assert_eq!(choose(&hop, 0), StreamChoice::Wait);
                hop.wait_begins();
            }
        }
        hop.opened(Tick(0), ConnectionId(1), 16 * KIB);
        assert_eq!(hop.room(ConnectionId(1)), 2);
        // that it permits none for a while says nothing of others
        hop.set_peer_max(ConnectionId(1), 0);
        hop.opened(Tick(0), ConnectionId(2), 16 * KIB);
        assert_eq!(hop.room(ConnectionId(2)), 2);
        hop.set_peer_max(ConnectionId(2), u32::MAX);
        assert_eq!(hop.initial_streams_max(), 100);
    }

    #[test]
    fn exclusive_connection_carries_others_once_its_request_has_ended() {
        let mut hop = hop(1);
        let id = ConnectionId(0);
        hop.set_exclusive(id);
        // before its request begins, and while it is under way
        assert_eq!(choose(&hop, 1), StreamChoice::Open);
        hop.stream_begins(id);
        assert_eq!((choose(&hop, 1), hop.room(id)), (StreamChoice::Open, 0));
        assert_eq!(hop.idle_timeout_ms(Tick(1), id, &LIMITS), None);
        hop.stream_ends(Tick(2), id, Tick(1), true);
        assert_eq!(choose(&hop, 2), StreamChoice::Take(id));
        assert_eq!(hop.room(id), 100);
        // not if that was given up: what it asks for may end the connection still
        hop.set_exclusive(id);
        hop.stream_begins(id);
        hop.stream_ends(Tick(3), id, Tick(2), false);
        assert_eq!((choose(&hop, 3), hop.room(id)), (StreamChoice::Open, 0));
    }

    #[test]
    fn repetition_takes_a_connection_that_is_known_to_live() {
        let mut hop = hop(1);
        let fresh = |hop: &MultiplexedHop, now| hop.choose(Tick(now), &LIMITS, true);
        assert_eq!(fresh(&hop, 999), StreamChoice::Take(ConnectionId(0)));
        assert_eq!(fresh(&hop, 1000), StreamChoice::Open);
        hop.heard(Tick(1000), ConnectionId(0));
        assert_eq!(fresh(&hop, 1000), StreamChoice::Take(ConnectionId(0)));
    }

    #[test]
    fn windows_of_all_streams_stay_within_the_memory() {
        let mut hop = hop(1);
        let id = ConnectionId(0);
        assert_eq!(hop.window(id, 17 * KIB), None);
        assert_eq!(hop.window(id, 64 * KIB), Some(64 * KIB));
        assert_eq!(hop.window(id, 4 << 20), Some(256 * KIB));
        // it only grows while a request is under way
        hop.stream_begins(id);
        assert_eq!(hop.window(id, 16 * KIB), None);
        let mut streams = 1;
        while hop.room(id) > 0 {
            hop.stream_begins(id);
            streams += 1;
        }
        assert_eq!(streams, 100);
        assert_eq!(choose(&hop, 1), StreamChoice::Open);
        let rules = StreamRules {
            windows_bytes_max: 1 << 20,
            ..StreamRules::default()
        };
        let mut hop = MultiplexedHop::new(rules);
        hop.opened(Tick(0), id, 256 * KIB);
        assert_eq!(hop.room(id), 4);
    }

    #[test]
    fn idle_connection_is_closed_and_a_surplus_one_soon() {
        let mut hop = hop(2);
        let timeout = |hop: &MultiplexedHop, now, id| {
            hop.idle_timeout_ms(Tick(now), ConnectionId(id), &LIMITS)
        };
        assert_eq!(timeout(&hop, 1, 1), Some(30_000));
        assert_eq!(timeout(&hop, 0, 0), Some(1000));
        hop.stream_begins(ConnectionId(1));
        assert_eq!(timeout(&hop, 1, 1), None);
        assert_eq!(timeout(&hop, 500, 0), Some(500));
        hop.set_peer_max(ConnectionId(1), 1);
        assert_eq!(timeout(&hop, 500, 0), Some(29_500));
        hop.stream_ends(Tick(600), ConnectionId(1), Tick(1), true);
        hop.drain(ConnectionId(1));
        assert_eq!(timeout(&hop, 600, 1), Some(0));
        assert_eq!(timeout(&hop, 3_599_990, 0), Some(0));
    }

    #[test]
    fn windows_are_small_again_for_the_next_request_once_none_is_under_way() {
        let mut hop = hop(1);
        let id = ConnectionId(0);
        hop.stream_begins(id);
        assert_eq!(hop.window(id, 256 * KIB), Some(256 * KIB));
        hop.stream_ends(Tick(1), id, Tick(0), true);
        assert_eq!(hop.window(id, 250 * KIB), None);
        assert_eq!(hop.window(id, 64 * KIB), Some(64 * KIB));
    }

    #[test]
    fn connection_that_is_silent_while_a_request_waits_gets_no_further_ones() {
        for (began, ended, answered, expected) in [
            (0, 30_000, false, 0),
            (0, 29_999, false, 100),
            (0, 30_000, true, 100),
            (4000, 30_000, false, 100),
        ] {
            let mut hop = hop(1);
            let id = ConnectionId(0);
            hop.stream_begins(id);
            hop.stream_ends(Tick(ended), id, Tick(began), answered);
            assert_eq!(hop.room(id), expected, "{began} {ended} {answered}");
            assert_eq!(hop.is_draining(id), expected == 0);
        }
    }

    #[test]
    fn connection_on_which_three_requests_were_given_up_without_a_word_gets_no_further_ones() {
        for (waited, heard, expected) in
            [(1000, None, 0), (999, None, 100), (1000, Some(4500), 100)]
        {
            let mut hop = hop(1);
            let id = ConnectionId(0);
            for began in [1000, 3000, 5000] {
                if let Some(heard) = heard.filter(|heard| *heard < began) {
                    hop.heard(Tick(heard), id);
                }
                hop.stream_begins(id);
                hop.stream_ends(Tick(began + waited), id, Tick(began), false);
            }
            assert_eq!(hop.room(id), expected, "{waited} {heard:?}");
        }
    }
}
