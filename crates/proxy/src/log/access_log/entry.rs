//! What a format can show of a finished request.

use super::privacy::LoggedClient;
use crate::config::Mechanism;
use crate::log::request_log::RequestLog;
use crate::log::words;
use weir_measure::Label as _;
use weir_policy::{Phase, Storing, Verdict};
use weir_semantics::line_named;
use weir_wire::RequestHead;

/// One request, from its first byte to the last of its response.
///
/// Text from clients and next hops may hold any bytes: it is escaped, and cut at 8 KiB (target) or
/// 1 KiB (the rest). Which of it the JSON format shows, and under what names, is in `fields`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry<'a> {
    /// When the response ended, milliseconds since 1970 UTC.
    pub(crate) time_unix_ms: u64,
    /// The client.
    pub(crate) client: LoggedClient,
    /// Not the first request on the client's connection.
    pub(crate) client_reused: bool,
    /// The name of the listener that it came to; empty if it has none.
    pub(crate) listener: &'a str,
    /// How the response gets from the node to the client, where front ends hand connections over.
    pub(crate) mechanism: Option<Mechanism>,
    /// The request.
    pub(crate) request: RequestLine<'a>,
    /// What was decided.
    pub(crate) verdict: &'a Verdict,
    /// The value of the `Cache-Status` field sent (RFC 9211).
    pub(crate) cache_status: &'a [u8],
    /// What it did and cost.
    pub(crate) log: &'a RequestLog,
    /// `Content-Type` of the response.
    pub(crate) content_type: &'a [u8],
    /// From the first byte of the request to the last of the response, microseconds.
    pub(crate) total_us: u64,
}

/// The words of a request; all empty if the bytes received were none.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RequestLine<'a> {
    /// Request method, as received.
    pub(crate) method: &'a str,
    /// Target URI, as received.
    pub(crate) target: &'a str,
    /// The scheme of a target that names none; empty if it names one.
    pub(crate) scheme: &'static str,
    /// `Host`, as received, where the target names none; else empty.
    pub(crate) host: &'a [u8],
    /// `HTTP/1.0`, `HTTP/1.1` or `HTTP/2.0`.
    pub(crate) version: &'a str,
    /// `User-Agent`.
    pub(crate) user_agent: &'a [u8],
    /// `Referer`.
    pub(crate) referer: &'a [u8],
}

impl<'a> RequestLine<'a> {
    /// The words of a request head.
    pub(crate) fn of(head: &RequestHead<'_, 'a>) -> Self {
        let field = |name| line_named(head.fields, name).unwrap_or_default();
        Self {
            method: head.method,
            target: head.target,
            scheme: "",
            host: field("host"),
            version: head.version.as_str(),
            user_agent: field("user-agent"),
            referer: field("referer"),
        }
    }
}

impl Entry<'_> {
    /// The verdict's word.
    pub(super) fn verdict_word(&self) -> &'static str {
        words::word(self.verdict).word()
    }

    /// Its reason.
    pub(super) fn detail(&self) -> &'static str {
        self.verdict.reason().unwrap_or_default()
    }

    pub(super) fn is_stored(&self) -> bool {
        self.verdict.storing == Some(Storing::Stored)
    }

    pub(super) fn next_hop_status(&self) -> Option<u16> {
        self.verdict.fwd_status
    }

    pub(super) fn joined(&self) -> &'static str {
        words::joined(self.verdict).map_or("", weir_measure::Label::word)
    }

    /// Bytes read from the next hop for this request.
    pub(super) fn next_hop_bytes(&self) -> u64 {
        self.log.forward().from_next_hop_bytes + self.log.forward().fetched_bytes
    }

    /// The user who has logged in to the proxy; empty without a login.
    pub(super) fn user(&self) -> &[u8] {
        self.log.user.as_deref().unwrap_or_default().as_bytes()
    }

    /// From the first byte of the request to the end of its head, microseconds.
    pub(super) fn head_us(&self) -> u64 {
        self.log.reached_us(Phase::RequestHead).unwrap_or(0)
    }

    /// From there to the decision, microseconds.
    pub(super) fn choose_us(&self) -> u64 {
        let chosen = self.log.reached_us(Phase::Choose).unwrap_or(0);
        chosen.saturating_sub(self.head_us())
    }

    /// From the decision to the connection to the next hop, microseconds.
    pub(super) fn connect_us(&self) -> Option<u64> {
        let connected = self.log.reached_us(Phase::Forward)?;
        let chosen = self.log.reached_us(Phase::Choose).unwrap_or(0);
        Some(connected.saturating_sub(chosen))
    }

    /// From that connection to the head of the response, microseconds.
    pub(super) fn first_byte_us(&self) -> Option<u64> {
        let connected = self.log.reached_us(Phase::Forward)?;
        let response = self.log.reached_us(Phase::ResponseHead)?;
        Some(response.saturating_sub(connected))
    }
}
