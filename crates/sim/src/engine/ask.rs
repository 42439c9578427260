//! What the next hop is asked, and what the trace says that it answers.

use super::Simulator;
use super::exchange::{Exchange, Stage};
use super::fetch::{Fetch, For};
use crate::cache::Stored;
use crate::facts::Ask;
use crate::settings::Keep;
use weir_policy::fetch::{ByteSpan, Pace};
use weir_semantics::{ByteRange, ContentRange, ResponseFacts};

/// What the origin answers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Answer {
    pub(super) facts: ResponseFacts,
    /// It brings what was asked for of the stored representation.
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
        let now = self.now();
        let tcp = self.settings.network.tcp;
        let exchange = self.exchanges.at_mut(id);
        exchange.stage = Stage::Waiting;
        let answer = answer_to(exchange);
        let ask = exchange.ask();
        let (head_bytes, server, fails) = (ask.head_bytes, ask.server, ask.fails);
        let lives_on = match self.settings.server_connections {
            Keep::Never => false,
            Keep::Always => true,
            Keep::AsInTrace => ask.persistent.1,
        };
        let (rtt, think) = (exchange.server_rtt, exchange.think);
        let taken = self.servers.take(now, server, tcp.initial_window);
        let setup = if taken.is_new { rtt } else { 0 };
        let fetch = self.fetches.reuse();
        let window = Pace::new(self.settings.lead, now).window(None);
        self.fetches.at_mut(fetch).begin(Fetch {
            owner: For::Request(id),
            answer: Some(answer),
            connection: taken.id,
            window: taken.window,
            rtt,
            head_bytes: u64::from(head_bytes),
            total: u64::from(head_bytes) + answer.content_bytes,
            lives_on,
            is_cut: answer.content_bytes < answer.span.len(),
            fails,
            offered: window.map_or(tcp.receive_window_bytes, u64::from),
            ..Fetch::default()
        });
        let first = self.world.at() + setup + rtt + think;
        self.send_more(fetch, first);
    }
}

/// What the origin answers to this request in the form in which it is asked.
fn answer_to(exchange: &Exchange) -> Answer {
    let ask = exchange.ask();
    match &exchange.kept {
        Some(stored) if exchange.forwarding.validate => to_validation(ask, stored),
        Some(stored) if exchange.forwarding.complete => {
            let wants = exchange.wants(stored.complete_length);
            to_rest(ask, stored, wants)
        }
        _ => as_traced(ask),
    }
}

/// To a request with the stored validators (RFC 9111 §4.3.1): 304 if they are the present ones.
fn to_validation(ask: &Ask, stored: &Stored) -> Answer {
    let is_found = matches!(ask.response.status, 200 | 203 | 206 | 304);
    if is_found && stored.validators.still_hold(ask.validators) {
        let facts = ResponseFacts {
            status: 304,
            has_content_range: false,
            content_range: None,
            ..ask.response
        };
        return Answer::without_content(facts);
    }
    whole_unless_traced(ask, stored)
}

/// To a request for what a stored part lacks of `wants`, with If-Range (RFC 9110 §13.1.5).
fn to_rest(ask: &Ask, stored: &Stored, wants: ByteSpan) -> Answer {
    let is_found = matches!(ask.response.status, 200 | 203 | 206 | 304);
    let rest = stored.part.as_ref().and_then(|part| {
        let gap = part.first_gap(wants)?;
        // up to the last byte that is missing: what is there in between is fetched too, as the live proxy does
        let behind = part.run_start(wants.to);
        let to = if behind < wants.to && behind > gap.from {
            behind
        } else {
            wants.to
        };
        ByteSpan::new(gap.from, to)
    });
    let (Some(span), true) = (
        rest,
        is_found && stored.validators.same_strongly(ask.validators),
    ) else {
        return whole_unless_traced(ask, stored);
    };
    if stored.complete_length.is_none() {
        return whole_unless_traced(ask, stored);
    }
    let range = ByteRange {
        first: span.from,
        last: span.to - 1,
    };
    let facts = ResponseFacts {
        status: 206,
        has_content_range: true,
        content_range: Some(ContentRange::Part {
            range,
            complete_length: stored.complete_length,
        }),
        ..ask.response
    };
    Answer {
        facts,
        is_rest: true,
        span,
        complete_length: stored.complete_length,
        content_bytes: span.len(),
    }
}

/// The representation is another one now: the whole of it. Where the trace has only a 304 or a part of it, it is taken to be as long as the
/// one that is stored.
fn whole_unless_traced(ask: &Ask, stored: &Stored) -> Answer {
    if !matches!(ask.response.status, 206 | 304) || ask.range.is_some() {
        return as_traced(ask);
    }
    let length = stored.complete_length.unwrap_or(0);
    Answer {
        facts: ResponseFacts {
            status: 200,
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
