//! What one request did and cost, gathered on its way: one method for each fact.
//!
//! Counters, access log and recorder are made from it when the request has ended, so a fact has one
//! place. To add one: a field and its method here, the call where the fact is known, and its line
//! in `access_log` (`Entry` names every field that a format can show).

use crate::log::forward_log::ForwardLog;
use crate::log::logged_proxy::LoggedProxy;
use crate::log::phase_times::PhaseTimes;
use crate::log::record::{ContentTimes, End, RecordDetails};
use crate::log::top::Weights;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;
use weir_net::http::NextHopFacts;
use weir_policy::connections::hand_off::Stay;
use weir_policy::route::Why;
use weir_policy::{Phase, Phases};
use weir_store::StoredResponse;

/// The source of content that was sent to a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ContentSource {
    /// Read from the next hop for this client first.
    NextHop,
    /// The store, a whole response.
    Store,
    /// The store, a part that was kept from a fetch which did not end well.
    StoredPart,
    /// Made by this proxy.
    Own,
}

impl ContentSource {
    /// That of a stored response.
    pub(crate) fn of(response: &StoredResponse) -> Self {
        if response.is_part() {
            Self::StoredPart
        } else {
            Self::Store
        }
    }
}

/// Which readers there are of a request's log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LogReaders {
    /// An access log.
    pub(crate) access_log: bool,
    /// A recorder.
    pub(crate) recorder: bool,
}

/// The log of one request. Bytes are counted as they pass, times are microseconds from the first
/// byte of the request.
#[derive(Clone, Debug)]
pub(crate) struct RequestLog {
    /// When the first byte of the request was read.
    pub(super) started: Instant,
    pub(super) readers: LogReaders,
    /// The phases that were reached.
    pub(super) reached: Phases,
    /// When they were reached, if a log or recorder reads times.
    pub(super) times: PhaseTimes,
    /// Bytes of the request, head and content.
    pub(super) request_bytes: u64,
    /// Bytes of the response sent to the client, head and content.
    pub(super) response_bytes: u64,
    /// Content bytes among them.
    pub(super) body_bytes: u64,
    /// Content bytes among them from the store.
    pub(super) store_bytes: u64,
    /// Content bytes among these that were kept as a part of a response.
    pub(super) recovered_bytes: u64,
    /// Content bytes among them that are our own.
    pub(super) own_bytes: u64,
    /// Status sent to the client; 0 if none was.
    pub(super) status: u16,
    /// What was done at its next hop, if anything was: a hit is not to be as large.
    pub(super) forward: Option<Box<ForwardLog>>,
    /// What its next hop is, if that is a parent or sibling.
    pub(crate) proxy: Option<LoggedProxy>,
    /// The connection to the next hop was open before.
    pub(super) next_hop_reused: bool,
    /// The next hop was asked by HTTP/2.
    pub(super) is_next_hop_http2: bool,
    /// Why it is this node of the cluster, or this node asks the origin.
    pub(super) node_choice: Option<Why>,
    /// Why it is this next hop of its route.
    pub(super) next_hop_choice: Option<Why>,
    /// Why a front end did not hand its connection over, if it was to be.
    pub(super) stay: Option<Stay>,
    /// What went wrong, as a word.
    pub(super) error: Option<&'static str>,
    /// How the response ended.
    pub(super) end: End,
    /// `Content-Type` of the response, for the access log.
    pub(super) content_type: Box<[u8]>,
    /// The user who has logged in to the proxy.
    pub(super) user: Option<Arc<str>>,
    /// What only a recorder reads, of a request that left the fast path.
    pub(super) details: Option<Box<RecordDetails>>,
}

impl RequestLog {
    /// The log of a request whose first byte was read at `started`, and whose head has
    /// `head_bytes`.
    pub(crate) fn new(started: Instant, head_bytes: usize, readers: LogReaders) -> Self {
        Self {
            started,
            readers,
            reached: Phases::NONE,
            times: PhaseTimes::NONE,
            request_bytes: head_bytes as u64,
            response_bytes: 0,
            body_bytes: 0,
            store_bytes: 0,
            recovered_bytes: 0,
            own_bytes: 0,
            status: 0,
            forward: None,
            proxy: None,
            next_hop_reused: false,
            is_next_hop_http2: false,
            node_choice: None,
            next_hop_choice: None,
            stay: None,
            error: None,
            end: End::Whole,
            content_type: Box::default(),
            user: None,
            details: None,
        }
    }

    /// What it counts among the heavy hitters on the side of its next hop. What a fetch brings
    /// behind the head is counted by the fetch.
    pub(crate) fn next_hop_weights(&self) -> Weights {
        Weights {
            from_next_hops: self.forward().from_next_hop_bytes,
            wasted: self.forward().wasted_bytes,
            ..Weights::default()
        }
    }

    /// Something went wrong that its client has no part in.
    pub(crate) fn has_failed(&self) -> bool {
        self.error.is_some() && self.end != End::ClientLeft
    }

    /// What went wrong, as a word of `Proxy-Status` or of the end of a response.
    pub(crate) const fn error(&self) -> Option<&'static str> {
        self.error
    }

    /// Bytes sent to the client, head and content.
    pub(crate) fn response_bytes(&self) -> u64 {
        self.response_bytes
    }

    /// Status sent to the client; 0 if none was.
    pub(crate) fn status(&self) -> u16 {
        self.status
    }

    /// The next hop that the request was sent to last.
    pub(crate) fn next_hop(&self) -> Option<SocketAddr> {
        self.forward().next_hop
    }

    /// What was done at its next hop.
    pub(super) fn forward(&self) -> &ForwardLog {
        static NONE: ForwardLog = ForwardLog::NONE;
        self.forward.as_deref().unwrap_or(&NONE)
    }

    fn forward_mut(&mut self) -> &mut ForwardLog {
        let new = || Box::new(ForwardLog::NONE);
        self.forward.get_or_insert_with(new)
    }

    /// All of it, for a request that was answered: this one is not read any more. A move would copy
    /// it more often.
    #[inline]
    pub(crate) fn take(&mut self) -> Self {
        Self {
            content_type: std::mem::take(&mut self.content_type),
            user: self.user.take(),
            details: self.details.take(),
            forward: self.forward.take(),
            ..*self
        }
    }

    /// It is a request of a user who has logged in to the proxy.
    pub(crate) fn set_user(&mut self, user: &Arc<str>) {
        self.user = Some(Arc::clone(user));
    }

    /// The log of a request without a client: it is not written, and only bytes count.
    pub(crate) fn unread() -> Self {
        Self::new(Instant::now(), 0, LogReaders::default())
    }

    /// When the first byte of the request was read.
    pub(crate) fn started(&self) -> Instant {
        self.started
    }

    // ---- phases and their times

    /// `phase` is complete. Costs a comparison when times are not read.
    pub(crate) fn reach(&mut self, phase: Phase) {
        self.reached = self.reached.with(phase);
        if self.readers != LogReaders::default() {
            self.times.set(phase, self.us_until(Instant::now()));
        }
    }

    /// The phases that were reached.
    pub(crate) fn reached(&self) -> Phases {
        self.reached
    }

    /// The request is done: at `moment` the kernel had the last byte of the response that it took.
    pub(crate) fn done(&mut self, moment: Instant) {
        let us = self.us_until(moment);
        self.times.set(Phase::Done, us);
        if self.end == End::Whole {
            self.times.set(Phase::ResponseContent, us);
        }
    }

    /// When `phase` was reached, microseconds from the first byte of the request.
    pub(super) fn reached_us(&self, phase: Phase) -> Option<u64> {
        self.times.us(phase)
    }

    /// Microseconds from the first byte of the request to now.
    pub(crate) fn elapsed_us(&self) -> u64 {
        self.us_until(Instant::now())
    }

    /// Microseconds from the first byte of the request to `moment`.
    pub(super) fn us_until(&self, moment: Instant) -> u64 {
        let since = moment.saturating_duration_since(self.started);
        u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
    }

    // ---- the request

    /// The request leaves the fast path: from now on a recorder reads details of it. `head` is the
    /// request head as it was received.
    pub(crate) fn keep_details(&mut self, head: &[u8]) {
        if self.readers.recorder {
            self.details = Some(Box::new(RecordDetails::new(head)));
        }
    }

    /// So many bytes of the request's content were read to be forwarded, with and without framing.
    pub(crate) fn request_content(&mut self, bytes: u64, content_bytes: u64) {
        self.request_bytes += bytes;
        self.detail(|details| details.request_content(content_bytes));
    }

    /// These are forwarded again, and will be counted then.
    pub(crate) fn request_content_again(&mut self, bytes: u64) {
        self.request_bytes = self.request_bytes.saturating_sub(bytes);
    }

    // ---- the next hop

    /// Why the request is sent where it is: the reason for the node of the cluster, and that for
    /// the next hop of its route.
    pub(crate) fn chosen(&mut self, node: Option<Why>, next_hop: Option<Why>) {
        self.node_choice = node.or(self.node_choice);
        self.next_hop_choice = next_hop;
    }

    /// The client's connection is not handed over with the request, and why.
    pub(crate) fn stays(&mut self, why: Stay) {
        self.stay = Some(why);
    }

    /// The request is sent to `next_hop`.
    pub(crate) fn connected(&mut self, next_hop: &NextHopFacts<'_>) {
        let forward = self.forward_mut();
        forward.next_hop = Some(next_hop.address);
        forward.link = next_hop.link.cloned();
        self.next_hop_reused = next_hop.reused;
        self.is_next_hop_http2 = next_hop.is_http2;
        self.reach(Phase::Forward);
        self.detail(|details| details.connected(next_hop));
    }

    /// The spent quota of this link keeps the request from its next hop.
    pub(crate) fn kept_from(&mut self, link: &Arc<str>) {
        self.forward_mut().link = Some(Arc::clone(link));
    }

    /// The node that was asked in the place of the busy disk of this one did not answer with it:
    /// the response is read.
    pub(crate) fn read_after_all(&mut self) {
        self.node_choice = Some(Why::DiskBusy);
        self.forward_mut().next_hop = None;
        (self.next_hop_reused, self.is_next_hop_http2) = (false, false);
        self.times.forget(Phase::Forward);
        self.detail(RecordDetails::forget_next_hop);
    }

    /// So many bytes were written to the next hop.
    pub(crate) fn sent_to_next_hop(&mut self, bytes: u64) {
        self.forward_mut().to_next_hop_bytes += bytes;
    }

    /// The next hop has the whole request head.
    pub(crate) fn request_head_sent(&mut self) {
        self.detail(RecordDetails::request_head_sent);
    }

    /// So many bytes were received from the next hop; they count as overhead until they are found
    /// to be content.
    pub(crate) fn received(&mut self, bytes: u64) {
        let forward = self.forward_mut();
        forward.from_next_hop_bytes += bytes;
        forward.next_hop_overhead_bytes += bytes;
    }

    /// So many of the received bytes are counted by a relay or a fetch: they are no overhead.
    pub(crate) fn handed_on(&mut self, bytes: u64) {
        self.forward_mut().next_hop_overhead_bytes -= bytes;
    }

    /// A final response head was received from the next hop; `is_persistent` if the connection can
    /// be used again after it.
    pub(crate) fn answered(&mut self, is_persistent: bool) {
        self.detail(|details| details.answered(is_persistent));
    }

    /// Whether the connection to the next hop could be used again in the end.
    pub(crate) fn connection_kept(&mut self, is_persistent: bool) {
        self.detail(|details| details.connection_kept(is_persistent));
    }

    /// Content that was read from the next hop reaches no client.
    pub(crate) fn waste(&mut self, content_bytes: u64) {
        let forward = self.forward_mut();
        forward.next_hop_content_bytes += content_bytes;
        forward.wasted_bytes += content_bytes;
    }

    /// The content among `received` bytes reaches no client.
    pub(crate) fn waste_received(&mut self, content_bytes: u64) {
        self.handed_on(content_bytes);
        self.waste(content_bytes);
    }

    /// A relay read `bytes` from the next hop: `delivered` and `wasted` content, and overhead.
    pub(crate) fn relayed(&mut self, bytes: u64, delivered: u64, wasted: u64, overhead: u64) {
        let forward = self.forward_mut();
        forward.from_next_hop_bytes += bytes;
        forward.next_hop_content_bytes += delivered;
        forward.next_hop_overhead_bytes += overhead;
        self.waste(wasted);
    }

    /// The fetch that this request began has brought `bytes` of content, `with_head` of them with
    /// the response head.
    pub(crate) fn fetched(&mut self, bytes: u64, with_head: u64) {
        self.forward_mut().fetched_bytes = bytes - with_head;
        self.detail(|details| details.fetched(bytes));
    }

    /// A fetch for it was up to so many bytes ahead of its fastest reader.
    pub(crate) fn read_ahead(&mut self, bytes: u64) {
        if bytes > self.forward().read_ahead_max_bytes {
            self.forward_mut().read_ahead_max_bytes = bytes;
        }
    }

    // ---- the response

    /// The response head for the client is made, with this status.
    pub(crate) fn response_head(&mut self, status: u16, head: &[u8]) {
        self.status = status;
        self.reach(Phase::ResponseHead);
        if self.readers.access_log {
            self.content_type = content_type(head).into();
        }
        self.detail(|details| details.response_head(head));
    }

    /// The response of a hit is made: it is logged from the bytes that are sent.
    pub(crate) fn response_made(&mut self, status: u16) {
        self.status = status;
        let at_once = Phases::NONE.with(Phase::ResponseHead);
        let at_once = at_once.with(Phase::ResponseContent).with(Phase::Done);
        self.reached = self.reached.union(at_once);
        if self.readers.recorder {
            self.reach(Phase::ResponseHead);
        }
    }

    /// `Content-Type` of the response, if an access log reads it.
    pub(crate) fn content_type(&self) -> &[u8] {
        &self.content_type
    }

    /// So many bytes were sent to the client, head and framing included.
    pub(crate) fn sent(&mut self, bytes: u64) {
        self.response_bytes += bytes;
    }

    /// So many bytes of content were sent to the client.
    pub(crate) fn sent_content(&mut self, bytes: u64, source: ContentSource) {
        self.body_bytes += bytes;
        match source {
            ContentSource::NextHop => {}
            ContentSource::Store => self.store_bytes += bytes,
            ContentSource::StoredPart => {
                self.store_bytes += bytes;
                self.recovered_bytes += bytes;
            }
            ContentSource::Own => self.own_bytes += bytes,
        }
    }

    /// A clock for when content is sent; it runs if a recorder reads it.
    pub(crate) fn content_times(&self) -> ContentTimes {
        ContentTimes::new(self.details.is_some())
    }

    /// When content was sent.
    pub(crate) fn content_left(&mut self, times: ContentTimes) {
        self.detail(|details| details.content_left(times));
    }

    /// What went wrong, as a word, where the response is whole nevertheless.
    pub(crate) fn failed(&mut self, word: &'static str) {
        self.error = Some(word);
    }

    /// Whether the response was sent to the client, to its end.
    pub(crate) fn is_whole(&self) -> bool {
        self.status > 0 && self.end == End::Whole
    }

    /// How the response ended.
    pub(crate) fn ended(&mut self, end: End) {
        self.end = end;
    }

    /// The response has ended early: on which side, and the word for it.
    pub(crate) fn broke_off(&mut self, end: End, word: &'static str) {
        self.end = end;
        self.error = Some(word);
    }

    /// A tunnel has ended after so many bytes each way.
    pub(crate) fn tunnelled(&mut self, to_client: u64, to_next_hop: u64) {
        self.response_bytes += to_client;
        self.request_bytes += to_next_hop;
        let forward = self.forward_mut();
        forward.from_next_hop_bytes += to_client;
        forward.tunnel_bytes += to_client;
        forward.to_next_hop_bytes += to_next_hop;
        self.detail(|details| details.tunnelled(to_client, to_next_hop));
    }

    fn detail(&mut self, enter: impl FnOnce(&mut RecordDetails)) {
        if let Some(details) = &mut self.details {
            enter(details);
        }
    }
}

/// The value of `Content-Type` in a response head as it is sent; empty if it has none.
pub(super) fn content_type(head: &[u8]) -> &[u8] {
    const NAME: &[u8] = b"content-type:";
    let mut lines = head.split(|byte| *byte == b'\n').skip(1);
    let value = lines.find_map(|line| {
        let (name, value) = line.split_at_checked(NAME.len())?;
        name.eq_ignore_ascii_case(NAME).then_some(value)
    });
    value.unwrap_or_default().trim_ascii()
}

#[cfg(test)]
impl RequestLog {
    /// The log with these times, microseconds.
    pub(super) fn with_times(mut self, times: &[(Phase, u32)]) -> Self {
        for (phase, us) in times {
            self.times.set(*phase, u64::from(*us));
        }
        self
    }
}
