//! The forwarded request, and the response to it by the trace.

use super::Simulator;
use super::exchange::{Exchange, Stage};
use super::fetch::{Fetch, FetchOwner};
use crate::cache::StoredResponse;
use crate::facts::Ask;
use crate::journal::{Question, What};
use crate::network::connections::ConnectionUse;
use crate::settings::Keep;
use weir_policy::catalog::Refusal;
use weir_policy::fetch::{ByteSpan, Pace};
use weir_policy::retry::{BodySent, FailedAttempt, may_retry};
use weir_policy::{NotStored, Storing};
use weir_semantics::{ByteRange, ContentRange, ResponseFacts};

/// What the origin answers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Answer {
    pub(super) facts: ResponseFacts,
    /// It has the requested range of the stored representation.
    pub(super) is_rest: bool,
    /// Which bytes of the representation it has; empty without content.
    pub(super) span: ByteSpan,
    /// Length of the whole, as far as it tells.
    pub(super) complete_length: Option<u64>,
    /// Content that comes before the server breaks off.
    pub(super) content_bytes: u64,
}

impl Simulator {
    /// Sends the request to the next hop, on an idle connection or a new one.
    pub(super) fn ask(&mut self, id: u32) {
        if self.lose_forgotten(id) && self.exchanges.at(id).is_background {
            // the next request for it is forwarded
            let gone = NotStored::Catalog(Refusal::NotResident);
            let target = self.exchanges.at(id).ask().target;
            self.refreshes.end(target, Some(Storing::NotStored(gone)));
            self.over(id);
            return;
        }
        let now = self.now();
        let tcp = self.settings.network.tcp;
        let target = self.exchanges.at(id).ask().target;
        let epoch = self.epoch(target);
        let exchange = self.exchanges.at_mut(id);
        exchange.stage = Stage::Waiting;
        exchange.epoch = epoch;
        let answer = answer_to(exchange);
        let (row, question) = (exchange.number, question(exchange));
        let ask = exchange.ask();
        let (head_bytes, server, fails) = (ask.head_bytes, ask.server, ask.fails);
        let is_persistent = match self.settings.server_connections {
            Keep::Never => false,
            Keep::Always => true,
            Keep::AsInTrace => ask.persistent.1,
        };
        let server_delay = exchange.server_delay;
        let taken = if exchange.is_retry {
            self.servers.take_new(now, server, tcp.initial_window)
        } else {
            self.servers.take(now, server, tcp.initial_window)
        };
        let sent = self.world.at() + server_delay.setup_of(taken);
        let sent = self.world.now_at(sent);
        self.exchanges.at_mut(id).tx().sent(sent);
        let window = Pace::new(self.settings.read_ahead, now).window(None);
        let fetch = Fetch {
            owner: FetchOwner::Request(id),
            status: answer.facts.status,
            answer: Some(answer),
            connection: taken.id,
            is_reused: !taken.is_new,
            window: taken.window,
            rtt: server_delay.rtt,
            head_bytes: u64::from(head_bytes),
            total: u64::from(head_bytes) + answer.content_bytes,
            is_persistent,
            is_cut: answer.content_bytes < answer.span.len(),
            fails,
            offered: window.map_or(tcp.receive_window_bytes, u64::from),
            ..Fetch::default()
        };
        let fetch = self.begin_fetch(fetch, row, taken, question);
        let first = self.world.at() + server_delay.first_packet_of(taken);
        self.send_more(fetch, first);
    }

    /// A transfer is requested.
    pub(super) fn begin_fetch(
        &mut self,
        fetch: Fetch,
        row: u64,
        taken: ConnectionUse,
        question: Question,
    ) -> u32 {
        let transfer = self.transfers;
        self.transfers += 1;
        let id = self.fetches.reuse();
        self.fetches.at_mut(id).begin(Fetch {
            number: transfer,
            ..fetch
        });
        self.enter(|| What::Asked {
            row,
            transfer,
            connection: taken.id,
            is_new: taken.is_new,
            question,
        });
        id
    }

    /// Whether the request is sent once more, after its connection was closed without a byte of an
    /// answer; then as a repetition.
    pub(super) fn repeats(&mut self, id: u32) -> bool {
        let exchange = self.exchanges.at_mut(id);
        let attempt = FailedAttempt {
            method: exchange.ask().request.method,
            body: if exchange.ask().has_content {
                BodySent::Consumed
            } else {
                BodySent::None
            },
            connection_was_reused: true,
            shared_connection_broke: false,
            is_unprocessed: false,
            response_begun: false,
            is_retry: exchange.is_retry,
        };
        let repeats = may_retry(&attempt).is_ok();
        exchange.is_retry |= repeats;
        repeats
    }
}

/// The forwarded request.
fn question(exchange: &Exchange) -> Question {
    match &exchange.kept {
        Some(_) if exchange.forwarding.validate && exchange.is_background => Question::Refresh,
        Some(_) if exchange.forwarding.validate => Question::Validation,
        Some(stored) if exchange.forwarding.complete => {
            missing(exchange, stored).map_or(Question::AsSent, Question::Part)
        }
        _ if exchange.is_background => Question::Refresh,
        _ => Question::AsSent,
    }
}

/// The response of the origin to this request in its forwarded form.
fn answer_to(exchange: &Exchange) -> Answer {
    match &exchange.kept {
        Some(stored) if exchange.forwarding.validate => to_validation(exchange, stored),
        Some(stored) if exchange.forwarding.complete => to_rest(exchange, stored),
        Some(stored) if exchange.is_background => whole_unless_traced(exchange, stored),
        _ => as_traced(exchange.ask()),
    }
}

/// Whether the origin has the representation, as far as its answer in the trace tells.
pub(super) const fn is_found(status: u16) -> bool {
    matches!(status, 200 | 203 | 206 | 304)
}

/// To a request with the stored validators (RFC 9111 §4.3.1): 304 if they are the present ones.
fn to_validation(exchange: &Exchange, stored: &StoredResponse) -> Answer {
    let ask = exchange.ask();
    if is_found(ask.response.status) && stored.validators.still_hold(ask.validators) {
        let facts = ResponseFacts {
            status: 304,
            has_content_range: false,
            content_range: None,
            ..ask.response
        };
        return Answer::without_content(facts);
    }
    whole_unless_traced(exchange, stored)
}

/// The first missing range of a stored part in the request's span; open where the length of the
/// whole is not known.
fn missing(exchange: &Exchange, stored: &StoredResponse) -> Option<ByteSpan> {
    let part = stored.part.as_ref()?;
    if stored.complete_length.is_some() {
        return part.first_missing(exchange.wants(stored.complete_length));
    }
    let gap = exchange.ask().range.and_then(|(first, last)| {
        let to = last.map_or(ByteSpan::OPEN, |last| last.saturating_add(1));
        part.first_missing(ByteSpan::new(first, to)?)
    });
    // if nothing is missing, the response shows at least which representation it is of
    gap.or(ByteSpan::new(part.run_end(0), ByteSpan::OPEN))
}

/// To a request for what a stored part lacks, with If-Range (RFC 9110 §13.1.5).
fn to_rest(exchange: &Exchange, stored: &StoredResponse) -> Answer {
    let ask = exchange.ask();
    let whole = stored.complete_length.or(ask.whole_bytes);
    let is_same = is_found(ask.response.status) && stored.validators.same_strongly(ask.validators);
    let (Some(gap), Some(whole), true) = (missing(exchange, stored), whole, is_same) else {
        return whole_unless_traced(exchange, stored);
    };
    let Some(span) = ByteSpan::new(gap.from, gap.to.min(whole)) else {
        return Answer::without_content(ResponseFacts {
            status: 416,
            ..ask.response
        });
    };
    let range = ByteRange {
        first: span.from,
        last: span.to - 1,
    };
    let facts = ResponseFacts {
        status: 206,
        has_content_range: true,
        content_range: Some(ContentRange::Part {
            range,
            complete_length: Some(whole),
        }),
        ..ask.response
    };
    Answer {
        facts,
        is_rest: true,
        span,
        complete_length: Some(whole),
        content_bytes: span.len(),
    }
}

/// The representation is another one now: the whole of it, as the client's own range and conditions
/// are not sent. Where the trace does not have its length, that of the stored one is used.
fn whole_unless_traced(exchange: &Exchange, stored: &StoredResponse) -> Answer {
    let ask = exchange.ask();
    // a validation in the background is a GET, whatever the client's request was
    let wants_content = ask.is_bare() && exchange.is_background;
    if !matches!(ask.response.status, 206 | 304) && !wants_content {
        return as_traced(ask);
    }
    let length = match ask.whole_bytes.or(stored.complete_length) {
        Some(length) if !ask.is_bare() || wants_content => length,
        _ => 0,
    };
    Answer {
        facts: ResponseFacts {
            status: match ask.response.status {
                206 | 304 => 200,
                status => status,
            },
            has_content_range: false,
            content_range: None,
            ..ask.response
        },
        is_rest: false,
        span: ByteSpan {
            from: 0,
            to: length,
        },
        complete_length: Some(length),
        content_bytes: length,
    }
}

/// What the trace has.
fn as_traced(ask: &Ask) -> Answer {
    let (from, complete_length) = match ask.response.content_range {
        Some(ContentRange::Part {
            range,
            complete_length,
        }) => (range.first, complete_length),
        _ => (0, Some(ask.content_bytes)),
    };
    Answer {
        facts: ask.response,
        is_rest: false,
        span: ByteSpan {
            from,
            to: from + ask.content_bytes,
        },
        complete_length,
        content_bytes: ask.cut_at.unwrap_or(ask.content_bytes),
    }
}

impl Answer {
    pub(super) const fn without_content(facts: ResponseFacts) -> Self {
        Self {
            facts,
            is_rest: false,
            span: ByteSpan { from: 0, to: 0 },
            complete_length: Some(0),
            content_bytes: 0,
        }
    }
}
