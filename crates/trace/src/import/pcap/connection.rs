//! One TCP connection: two streams, and the HTTP in them.

use super::exchange::{Endpoints, Exchange, ImportContext, Place, Side};
use super::head::{Kind, looks_like};
use super::limits::{HELD_BYTES_MAX, PATIENCE_PACKETS};
use super::stream::{Fin, SegmentKind, Stream};
use crate::import::pcap::packets::decode::Segment;

/// A connection that is followed.
#[derive(Debug)]
pub(super) struct Connection {
    number: u64,
    /// `None` once it is over: what comes late is recognised and ignored.
    exchange: Option<Box<Exchange>>,
    client: Stream,
    server: Stream,
    /// The client's SYN: its sequence number and time.
    syn: Option<(u32, i64)>,
    /// A SYN-ACK with another sequence number than the server's: any host can send one, so it
    /// counts when the client acknowledges it.
    rival: Option<Rival>,
    /// When the last packet came.
    latest_us: i64,
    /// Packets since something waits, and where both streams stood then.
    waited_packets: u32,
    standing: Standing,
    has_reset: bool,
}

/// A second SYN-ACK.
#[derive(Clone, Copy, Debug)]
struct Rival {
    /// The first byte of data that its sender would send.
    first: u32,
    /// What it acknowledges.
    acknowledges: Option<u32>,
    time_us: i64,
}

/// [`Stream::standing`] of both streams.
type Standing = ((u64, u64), (u64, u64));

/// Whether a segment begins a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Beginning {
    /// The client's SYN.
    Syn,
    /// The server's answer to a SYN that was not seen.
    SynAck,
    /// A request in a connection that was there before.
    Request,
    /// A response in one.
    Response,
}

impl Beginning {
    /// What the segment begins, where no connection is known.
    pub(super) fn of(segment: &Segment<'_>) -> Option<Self> {
        match (segment.is_syn, segment.acknowledgement) {
            (true, None) => Some(Self::Syn),
            (true, Some(_)) => Some(Self::SynAck),
            (false, _) if segment.is_rst => None,
            (false, _) if looks_like(Kind::Request, segment.data) => Some(Self::Request),
            (false, _) if looks_like(Kind::Response, segment.data) => Some(Self::Response),
            (false, _) => None,
        }
    }

    /// The sender.
    pub(super) const fn side(self) -> Side {
        match self {
            Self::Syn | Self::Request => Side::Client,
            Self::SynAck | Self::Response => Side::Server,
        }
    }
}

impl Connection {
    /// The connection that `segment` begins; the segment itself is yet to be [taken](Self::take).
    pub(super) fn new(
        beginning: Beginning,
        endpoints: Endpoints,
        segment: &Segment<'_>,
        context: &mut ImportContext<'_>,
    ) -> Self {
        let is_whole = matches!(beginning, Beginning::Syn | Beginning::SynAck);
        let opened = is_whole.then(|| context.window.begin(segment.time_us));
        if is_whole {
            context.counts.connections += 1;
        } else {
            context.counts.joined += 1;
        }
        let server_at = match beginning.side() {
            Side::Client => segment.acknowledgement.unwrap_or(0),
            Side::Server => segment.sequence,
        };
        Self {
            number: endpoints.connection,
            exchange: Some(Box::new(Exchange::new(endpoints, opened, server_at))),
            client: Stream::default(),
            server: Stream::default(),
            syn: None,
            rival: None,
            latest_us: segment.time_us,
            waited_packets: 0,
            standing: Standing::default(),
            has_reset: false,
        }
    }

    /// Its number: connections are counted as they begin.
    pub(super) const fn number(&self) -> u64 {
        self.number
    }

    /// When the last packet came, microseconds since 1970.
    pub(super) const fn latest_us(&self) -> i64 {
        self.latest_us
    }

    /// Whether nothing of it is expected any more.
    pub(super) const fn is_over(&self) -> bool {
        self.exchange.is_none()
    }

    /// Whether both sides have said that they are done.
    pub(super) const fn is_closing(&self) -> bool {
        self.client.is_finished() && self.server.is_finished()
    }

    /// What it holds for later, bytes: segments, and heads.
    pub(super) fn memory_bytes(&self) -> usize {
        let heads = self
            .exchange
            .as_ref()
            .map_or(0, |exchange| exchange.held_bytes());
        self.held_bytes() + heads
    }

    /// What it holds of segments.
    const fn held_bytes(&self) -> usize {
        self.client.held_bytes() + self.server.held_bytes()
    }

    /// Whether this segment is the SYN or SYN-ACK of another connection with the same addresses and
    /// ports.
    pub(super) fn is_another(&self, segment: &Segment<'_>, from: Side) -> bool {
        let first = segment.sequence.wrapping_add(1);
        match (segment.is_syn, from, self.syn) {
            (true, Side::Client, Some((sequence, _))) => sequence != segment.sequence,
            // only the SYN-ACK was seen of it, or less
            (true, Side::Client, None) => !self.client.begins_at(first),
            // it is taken as a rival, and counts when the client acknowledges it
            (true, Side::Server, _) => false,
            (false, Side::Client, _) => self.acknowledges_rival(segment) && !self.is_rivals(),
            (false, Side::Server, _) => false,
        }
    }

    /// Whether a segment of the client acknowledges the second SYN-ACK, and not what the server has
    /// sent.
    fn acknowledges_rival(&self, segment: &Segment<'_>) -> bool {
        let rival = self.rival.filter(|_| !segment.is_syn && !segment.is_rst);
        rival.is_some_and(|rival| segment.acknowledgement == Some(rival.first))
            && !(self.server.has_data()
                && self.server.is_near(segment.acknowledgement.unwrap_or(0)))
    }

    /// Whether the client's side of this connection is the one that the second SYN-ACK answers, and
    /// nothing else has come from the server.
    fn is_rivals(&self) -> bool {
        let acknowledges = self.rival.and_then(|rival| rival.acknowledges);
        let is_of_client = acknowledges.is_none_or(|number| self.client.begins_at(number));
        !self.server.has_data() && (is_of_client || !self.client.has_begun())
    }

    /// The second SYN-ACK was the server's: what the first one said is forgotten.
    fn follow_rival(&mut self) {
        let Some(rival) = self.rival.take() else {
            return;
        };
        self.server.forget_data();
        self.server.begin_at(rival.first);
        let syn_us = self.syn.map(|(_, syn_us)| syn_us);
        let setup_us =
            syn_us.and_then(|syn_us| u64::try_from(rival.time_us.saturating_sub(syn_us)).ok());
        if let Some(exchange) = &mut self.exchange {
            exchange.set_up_again(setup_us);
        }
    }

    /// The streams of a sender and of the other side.
    fn streams(&mut self, from: Side) -> (&mut Stream, &mut Stream) {
        match from {
            Side::Client => (&mut self.client, &mut self.server),
            Side::Server => (&mut self.server, &mut self.client),
        }
    }

    /// Takes a segment.
    pub(super) fn take(
        &mut self,
        segment: &Segment<'_>,
        from: Side,
        context: &mut ImportContext<'_>,
    ) {
        self.latest_us = self.latest_us.max(segment.time_us);
        self.streams(from).0.was_seen = true;
        if self.exchange.is_none() {
            return;
        }
        let data_at = segment.sequence.wrapping_add(u32::from(segment.is_syn));
        let is_second = from == Side::Server
            && segment.is_syn
            && self.server.has_begun()
            && !self.server.begins_at(data_at);
        if is_second {
            context.counts.foreign += 1;
            self.rival = Some(Rival {
                first: data_at,
                acknowledges: segment.acknowledgement,
                time_us: segment.time_us,
            });
            return;
        }
        if from == Side::Client && self.acknowledges_rival(segment) && self.is_rivals() {
            self.follow_rival();
        }
        self.begin(segment, from, data_at);
        if segment.is_rst {
            self.reset(segment, from, context);
            return;
        }
        let (own, other) = self.streams(from);
        if !own.has_begun() {
            return;
        }
        let taken = own.insert(
            data_at,
            segment.data,
            segment.cut_bytes,
            segment.time_us,
            segment.acknowledgement,
        );
        match taken {
            SegmentKind::Fresh => context.counts.missing_bytes += u64::from(segment.cut_bytes),
            SegmentKind::Again => context.counts.again += 1,
            SegmentKind::Foreign => {
                context.counts.foreign += 1;
                return;
            }
        }
        if let Some(acknowledgement) = segment.acknowledgement {
            other.acknowledge(acknowledgement);
        }
        if segment.is_fin {
            self.fin(segment, from, data_at);
        }
        self.wait_or_go_on(context);
    }

    /// What a segment says about where the streams begin, and about the time it took to set the
    /// connection up.
    fn begin(&mut self, segment: &Segment<'_>, from: Side, data_at: u32) {
        let (own, other) = self.streams(from);
        if segment.is_syn {
            own.begin_at(data_at);
        }
        let is_head = match from {
            Side::Client => looks_like(Kind::Request, segment.data),
            Side::Server => looks_like(Kind::Response, segment.data),
        };
        if is_head {
            own.begin_at(data_at);
        }
        // the other side's next byte is what this one acknowledges; a reset of what never was
        // acknowledges it too
        if let Some(acknowledgement) = segment.acknowledgement
            && own.has_begun()
        {
            other.begin_at(acknowledgement);
        }
        if !segment.is_syn {
            return;
        }
        match (from, segment.acknowledgement) {
            (Side::Client, None) => {
                self.syn.get_or_insert((segment.sequence, segment.time_us));
            }
            (Side::Server, Some(_)) => {
                let setup_us = self.syn.and_then(|(_, syn_us)| {
                    u64::try_from(segment.time_us.saturating_sub(syn_us)).ok()
                });
                if let Some(exchange) = &mut self.exchange {
                    exchange.set_up(setup_us);
                }
            }
            _ => {}
        }
    }

    fn fin(&mut self, segment: &Segment<'_>, from: Side, data_at: u32) {
        let length = u32::try_from(segment.data.len()).unwrap_or(u32::MAX);
        let end = data_at.wrapping_add(length).wrapping_add(segment.cut_bytes);
        let (own, _) = self.streams(from);
        own.finish_at(end);
        own.fin.get_or_insert(Fin {
            acknowledged_by: end.wrapping_add(1),
            acknowledges: segment.acknowledgement,
        });
        let Some(exchange) = &mut self.exchange else {
            return;
        };
        exchange.close(from, segment.time_us, false);
        if let (Some(client), Some(server)) = (self.client.fin, self.server.fin) {
            if client.follows(&server) {
                exchange.server_closed_first(true);
            } else if server.follows(&client) {
                exchange.server_closed_first(false);
            }
        }
    }

    /// A reset, if it is of this connection: then nothing that comes later was received.
    fn reset(&mut self, segment: &Segment<'_>, from: Side, context: &mut ImportContext<'_>) {
        let (own, other) = self.streams(from);
        // one that answers a SYN has no sequence number of its own
        if own.has_begun() && !own.is_near(segment.sequence) {
            context.counts.foreign += 1;
            return;
        }
        if let Some(acknowledgement) = segment.acknowledgement {
            other.acknowledge(acknowledgement);
        }
        let never_stood = from == Side::Server && !self.server_stood();
        if never_stood {
            context.counts.refused += 1;
        }
        context.counts.resets += u64::from(!self.has_reset);
        self.has_reset = true;
        self.go_on(context, false);
        if let Some(exchange) = &mut self.exchange {
            exchange.close(from, segment.time_us, true);
        }
        self.finish(context);
    }

    /// Whether the server ever said anything but no.
    const fn server_stood(&self) -> bool {
        self.server.has_begun() && self.client.has_begun() && self.server.was_seen
    }

    /// Reads on as far as it goes. What waits for packets that may yet come waits so long and no
    /// longer.
    fn wait_or_go_on(&mut self, context: &mut ImportContext<'_>) {
        self.go_on(context, false);
        let is_waiting = self.held_bytes() > 0
            || self.client.hole_bytes().is_some()
            || self.server.hole_bytes().is_some();
        if !is_waiting {
            self.waited_packets = 0;
            self.end_if_over(context);
            return;
        }
        let standing = (self.client.standing(), self.server.standing());
        if standing != self.standing {
            self.standing = standing;
            self.waited_packets = 0;
        }
        self.waited_packets += 1;
        let is_full =
            self.client.held_bytes() > HELD_BYTES_MAX || self.server.held_bytes() > HELD_BYTES_MAX;
        if is_full || self.waited_packets > PATIENCE_PACKETS {
            self.waited_packets = 0;
            self.press_on(context, is_full);
        }
        self.end_if_over(context);
    }

    /// Gives up what is waited for: holes that were acknowledged (with `all`, others too), and
    /// requests of responses that are there.
    pub(super) fn press_on(&mut self, context: &mut ImportContext<'_>, all: bool) {
        loop {
            self.go_on(context, false);
            if self.skip_hole(Side::Client, context, all) {
                continue;
            }
            let held = self.held_bytes();
            self.go_on(context, true);
            if self.held_bytes() < held || self.skip_hole(Side::Server, context, all) {
                continue;
            }
            return;
        }
    }

    fn skip_hole(&mut self, side: Side, context: &mut ImportContext<'_>, all: bool) -> bool {
        let (stream, other) = self.streams(side);
        let Some(bytes) = stream.hole_bytes() else {
            return false;
        };
        // a capture of one direction has no acknowledgements
        if !all && other.was_seen && !stream.is_hole_acknowledged() {
            return false;
        }
        context.counts.holes += 1;
        context.counts.missing_bytes += bytes;
        stream.skip_hole();
        true
    }

    /// Reads both streams in turn, until neither has more.
    fn go_on(&mut self, context: &mut ImportContext<'_>, is_impatient: bool) {
        let Some(exchange) = &mut self.exchange else {
            return;
        };
        context.is_impatient = is_impatient;
        loop {
            let mut has_moved = false;
            for side in [Side::Client, Side::Server] {
                let stream = match side {
                    Side::Client => &mut self.client,
                    Side::Server => &mut self.server,
                };
                while let Some((next, time_us, acknowledgement)) = stream.front() {
                    let place = Place {
                        time_us,
                        sequence: stream.front_sequence(),
                        acknowledgement,
                    };
                    let used = match side {
                        Side::Client => exchange.take_request(next, place, context),
                        Side::Server => exchange.take_response(next, place, context),
                    };
                    if used == 0 {
                        break;
                    }
                    has_moved = true;
                    stream.consume(used);
                }
            }
            if !has_moved {
                return;
            }
        }
    }

    /// Ends it when both sides are done and everything was read, or when nothing of it can become a
    /// row.
    fn end_if_over(&mut self, context: &mut ImportContext<'_>) {
        let is_over = self
            .exchange
            .as_ref()
            .is_some_and(|exchange| exchange.is_over());
        let is_done = self.client.is_at_end() && self.server.is_at_end();
        if is_over || is_done {
            self.finish(context);
        }
    }

    /// The connection is over, as far as it will be seen.
    pub(super) fn finish(&mut self, context: &mut ImportContext<'_>) {
        self.press_on(context, false);
        let dropped = self.client.drop_ahead() + self.server.drop_ahead();
        context.counts.unacknowledged_bytes += dropped;
        self.press_on(context, true);
        if let Some(exchange) = self.exchange.take() {
            context.is_impatient = true;
            exchange.finish(context);
        }
        self.client = Stream::default();
        self.server = Stream::default();
    }
}
