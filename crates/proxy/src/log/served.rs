//! Requests that were answered at once, until the kernel has accepted their responses.
//!
//! Their time, log and record end there. The clock is read once for all responses of one write.

use super::access_log::RequestLine;
use super::client::ClientFacts;
use super::record::End;
use super::report::{FinishedRequest, LogSinks};
use super::request_log::{RequestLog, content_type};
use crate::settings::Settings;
use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;
use weir_net::tunnel::TunnelEnd;
use weir_policy::Verdict;
use weir_wire::{LineBuffer, Progress, parse_request};

/// Why a response was not sent as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Interruption {
    /// Its client has disconnected, or takes no bytes.
    ClientLeft,
    /// The end of a drain.
    Drained,
}

impl Interruption {
    /// Enters it into `log`.
    pub(crate) fn enter(self, log: &mut RequestLog) {
        match self {
            Self::ClientLeft => log.broke_off(End::ClientLeft, "client-left"),
            Self::Drained => log.broke_off(End::Ours, TunnelEnd::Drained.word()),
        }
    }
}

/// A request that was answered at once.
#[derive(Clone, Debug)]
pub(crate) struct ServedRequest {
    pub(crate) log: RequestLog,
    pub(crate) verdict: Verdict,
    /// Which request of its connection it is, from 1.
    pub(crate) sequence: u32,
    /// Where its head is among the bytes received; `None` if they were no request.
    pub(crate) request: Option<Range<usize>>,
    /// Where the head of the response is among the bytes to send.
    pub(crate) response: Range<usize>,
    /// Where the response ends among them, as far as it is not sent from the store.
    pub(crate) end: usize,
    /// Content of the request, bytes, if it is known.
    pub(crate) request_content_bytes: Option<u64>,
    /// The request does not say for which host it is.
    pub(crate) lacks_host: bool,
    /// The client's connection is used on.
    pub(crate) is_persistent: bool,
    /// Its head came with one read: the client had no part in its time.
    pub(crate) came_at_once: bool,
}

impl ServedRequest {
    /// Bytes of the response, head and content.
    pub(crate) fn response_bytes(&self) -> u64 {
        self.log.response_bytes
    }

    /// Reports its time, its line and its row: at `now` the kernel had accepted its response, or
    /// the client had disconnected.
    fn report(
        &mut self,
        sinks: &LogSinks<'_>,
        client: ClientFacts<'_>,
        settings: &Settings,
        (received, sent): (&[u8], &[u8]),
        now: Instant,
    ) {
        let total_us = self.log.us_until(now);
        if self.came_at_once {
            settings.modules.note_time(total_us);
        }
        if sinks.are_silent() {
            return sinks.record_time(&self.verdict, total_us);
        }
        self.log.done(now);
        let request = self.request.clone().and_then(|range| received.get(range));
        let response = sent.get(self.response.clone()).unwrap_or_default();
        let mut lines = LineBuffer::new();
        let logged = request.filter(|_| sinks.access_log.is_on());
        let head =
            logged.and_then(
                |bytes| match parse_request(bytes, &settings.heads, &mut lines) {
                    Ok(Progress::Complete { head, .. }) => Some(head),
                    _ => None,
                },
            );
        sinks.report(&FinishedRequest {
            settings,
            client: ClientFacts {
                sequence: self.sequence,
                ..client
            },
            line: head.as_ref().map(RequestLine::of),
            heads: request.map(|request| (request, response)),
            verdict: &self.verdict,
            log: &self.log,
            content_type: logged.map_or(&[], |_| match self.log.content_type() {
                [] => content_type(response),
                known => known,
            }),
            total_us,
            request_content_bytes: self.request_content_bytes,
            lacks_host: self.lacks_host,
            is_persistent: self.is_persistent,
        });
    }
}

/// Requests whose responses the kernel has not accepted entirely.
pub(crate) struct UnsentResponses {
    settings: Arc<Settings>,
    served: Vec<ServedRequest>,
    /// Their heads and those of the responses, if a log or recorder will read them: at most what
    /// was received and gathered at once.
    heads: Vec<u8>,
}

impl UnsentResponses {
    /// Reports them: the kernel has accepted everything, or there was an interruption.
    pub(crate) fn report(
        mut self,
        sinks: &LogSinks<'_>,
        client: ClientFacts<'_>,
        interruption: Option<Interruption>,
    ) {
        let now = Instant::now();
        for served in &mut self.served {
            if let Some(interruption) = interruption {
                interruption.enter(&mut served.log);
            }
            let heads = (&self.heads[..], &self.heads[..]);
            served.report(sinks, client, &self.settings, heads, now);
        }
    }
}

/// Reports the requests whose responses are in the first `written` bytes of `sent`, which the
/// kernel has accepted at `now`; returns the rest. After an interruption there is none.
pub(crate) fn report(
    sinks: &LogSinks<'_>,
    client: ClientFacts<'_>,
    settings: &Arc<Settings>,
    (received, sent): (&[u8], &[u8]),
    written: Result<usize, Interruption>,
    now: Instant,
    served: &mut Vec<ServedRequest>,
) -> Option<Box<UnsentResponses>> {
    if served.is_empty() {
        return None;
    }
    let complete = match written {
        Ok(written) => served.partition_point(|one| one.end <= written),
        Err(_) => served.len(),
    };
    for one in &mut served[..complete] {
        if let Err(interruption) = written {
            interruption.enter(&mut one.log);
        }
        one.report(sinks, client, settings, (received, sent), now);
    }
    if complete == served.len() {
        served.clear();
        return None;
    }
    served.drain(..complete);
    let heads_wanted = sinks.access_log.is_on() || sinks.recorder.is_some();
    let mut heads = Vec::new();
    let mut keep = |bytes: Option<&[u8]>| {
        let start = heads.len();
        heads.extend_from_slice(bytes.filter(|_| heads_wanted).unwrap_or_default());
        start..heads.len()
    };
    let mut rest = std::mem::take(served);
    for one in &mut rest {
        one.request = one.request.clone().map(|range| keep(received.get(range)));
        one.response = keep(sent.get(one.response.clone()));
    }
    Some(Box::new(UnsentResponses {
        settings: Arc::clone(settings),
        served: rest,
        heads,
    }))
}
