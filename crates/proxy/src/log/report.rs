//! The last phase: a finished request is counted, logged and recorded, once, in the words of its
//! verdict.

use super::access_log::{AccessLog, Entry, LoggedClient, RequestLine};
use super::client::{ClientFacts, ForPeers, HttpVersions};
use super::record::{Finished, Record};
use super::request_log::RequestLog;
use super::words::{joined, label, phase_label, source, word, write_cache_status};
use crate::config::Mechanism;
use crate::settings::Settings;
use std::time::{SystemTime, UNIX_EPOCH};
use weir_measure::{Counters, HttpVersion, Metric, RequestPhase, RuleDeviation, StatusClass};
use weir_policy::verdict::Deviation;
use weir_policy::{Handling, Hit, NotStored, Phases, Storing, Verdict};
use weir_semantics::Scheme;

/// Where a worker writes down what its requests did.
#[derive(Clone, Copy)]
pub(crate) struct LogSinks<'a> {
    /// The worker's own.
    pub(crate) counters: &'a Counters,
    pub(crate) access_log: &'a AccessLog,
    pub(crate) recorder: Option<&'a Record>,
}

/// A request whose response has ended: the kernel has accepted all of it, or the client has
/// disconnected.
#[derive(Clone, Copy)]
pub(crate) struct FinishedRequest<'a> {
    pub(crate) settings: &'a Settings,
    pub(crate) client: ClientFacts<'a>,
    /// The request in words; for the access log alone. `None` if the bytes received were no
    /// request.
    pub(crate) line: Option<RequestLine<'a>>,
    /// Request head and response head as they were received and sent; for the recorder alone, of a
    /// request whose log has no details. `None` if what came was no request.
    pub(crate) heads: Option<(&'a [u8], &'a [u8])>,
    pub(crate) verdict: &'a Verdict,
    pub(crate) log: &'a RequestLog,
    /// `Content-Type` of the response; for the access log alone.
    pub(crate) content_type: &'a [u8],
    /// From the first byte of the request to the last of the response that the kernel took,
    /// microseconds.
    pub(crate) total_us: u64,
    /// Content of the request, bytes, if it is known and the log does not say it.
    pub(crate) request_content_bytes: Option<u64>,
    /// The request does not say for which host it is.
    pub(crate) lacks_host: bool,
    /// The client's connection is used on.
    pub(crate) is_persistent: bool,
}

impl LogSinks<'_> {
    /// Reports a request: time, line and row. Its counts are raised by [`count`], which happens
    /// earlier where many responses leave in one write.
    pub(crate) fn report(&self, finished: &FinishedRequest<'_>) {
        self.record_time(finished.verdict, finished.total_us);
        if self.access_log.is_on() {
            self.write_line(finished);
        }
        if let (Some(recorder), Some(heads)) = (self.recorder, finished.heads) {
            recorder.tell(Finished::of(finished, heads));
        }
    }

    /// Whether nothing but counters is written.
    pub(super) fn are_silent(&self) -> bool {
        !self.access_log.is_on() && self.recorder.is_none()
    }

    /// Counts the time that a request took, microseconds.
    pub(super) fn record_time(&self, verdict: &Verdict, total_us: u64) {
        self.counters
            .record_response_time(source(verdict), total_us);
    }

    fn write_line(&self, finished: &FinishedRequest<'_>) {
        let mut cache_status = Vec::with_capacity(96);
        write_cache_status(finished.settings, finished.verdict, &mut cache_status);
        let value = cache_status
            .strip_prefix(b"Cache-Status: ")
            .and_then(|rest| rest.strip_suffix(b"\r\n"))
            .unwrap_or_default();
        let names = &finished.settings.listener_names;
        let mut line = finished.line.unwrap_or_default();
        if finished.client.listener.versions == HttpVersions::Http2 && !line.version.is_empty() {
            // the head is judged in the form of HTTP/1.1
            line.version = "HTTP/2.0";
        }
        let listener = finished.client.listener;
        match is_origin_form(&line) {
            true if listener.is_tls() => line.scheme = Scheme::Https.as_str(),
            true => line.scheme = listener.scheme.as_str(),
            false => line.host = b"",
        }
        self.access_log.log(&Entry {
            time_unix_ms: unix_ms(),
            client: LoggedClient::At(finished.client.peer),
            client_reused: finished.client.is_reused(),
            listener: names.given(finished.client.listener).unwrap_or_default(),
            mechanism: mechanism(finished),
            request: line,
            verdict: finished.verdict,
            cache_status: value,
            log: finished.log,
            content_type: finished.content_type,
            total_us: finished.total_us,
        });
    }
}

/// Whether the target names no host, and `Host` one that may be shown: user information in it is
/// malformed, and can be a password.
fn is_origin_form(line: &RequestLine<'_>) -> bool {
    line.target.starts_with(['/', '*']) && !line.host.is_empty() && !line.host.contains(&b'@')
}

/// Counts a request of a client whose response is made, but for the time it takes.
pub(crate) fn count(
    counters: &Counters,
    client: &ClientFacts<'_>,
    verdict: &Verdict,
    log: &RequestLog,
) {
    if !client.is_reused() {
        counters.inc(Metric::FirstRequests);
    }
    counters.inc(Metric::Requests(word(verdict)));
    counters.inc(Metric::RequestVersions(match client.listener.versions {
        HttpVersions::Http2 => HttpVersion::Http2,
        HttpVersions::Http1 | HttpVersions::Any => HttpVersion::Http1,
    }));
    counters.inc(Metric::Responses(StatusClass::of(log.status)));
    match verdict.handling {
        Handling::Hit(hit) => {
            if verdict.marks.are_any() {
                count_marks(counters, verdict);
            }
            if matches!(hit, Hit::MaxStale | Hit::WhileRevalidate) {
                counters.inc(Metric::ServedStale);
            }
        }
        Handling::StaleInstead(_) => {
            counters.inc(Metric::ServedStale);
            count_marks(counters, verdict);
        }
        Handling::Collapsed(_) => count_marks(counters, verdict),
        Handling::Forward(_) | Handling::Refused(_) if verdict.marks.are_any() => {
            count_marks(counters, verdict);
        }
        Handling::Forward(_) | Handling::Tunnel | Handling::Refused(_) => {}
    }
    if let Some(joined) = joined(verdict) {
        counters.inc(Metric::Joined(joined));
    }
    counters.add(Metric::BodyBytesToClients, log.body_bytes);
    if log.store_bytes > 0 {
        counters.add(Metric::BytesFromStore, log.store_bytes);
    }
    counters.add(Metric::BytesRecovered, log.recovered_bytes);
    counters.add(Metric::BodyBytesOfOurs, log.own_bytes);
    if log.forward().from_next_hop_bytes > 0 {
        count_next_hop(counters, log);
    }
}

#[cold]
fn count_marks(counters: &Counters, verdict: &Verdict) {
    if matches!(verdict.handling, Handling::Hit(_)) && verdict.marks.is_from_disk() {
        counters.inc(Metric::DiskHits);
    }
    for deviation in verdict.marks.deviations() {
        counters.inc(Metric::RuleDeviations(match deviation {
            Deviation::RequestDirective => RuleDeviation::RequestDirective,
            Deviation::LifetimeForced => RuleDeviation::LifetimeForced,
            Deviation::Stale => RuleDeviation::Stale,
            Deviation::ResponseDirective => RuleDeviation::ResponseDirective,
            Deviation::Shared => RuleDeviation::Shared,
            Deviation::Key => RuleDeviation::Key,
        }));
    }
}

/// Counts the phases that a request reached.
pub(crate) fn count_phases(counters: &Counters, reached: Phases) {
    for phase in reached.iter() {
        counters.inc(Metric::PhaseReached(phase_label(phase)));
    }
}

/// Counts the phases of a request that is answered at once: always the same, so that no set has to
/// be read.
pub(crate) fn count_phases_at_once(counters: &Counters) {
    counters.inc(Metric::PhaseReached(RequestPhase::RequestHead));
    counters.inc(Metric::PhaseReached(RequestPhase::Authorise));
    counters.inc(Metric::PhaseReached(RequestPhase::Choose));
    counters.inc(Metric::PhaseReached(RequestPhase::ResponseHead));
    counters.inc(Metric::PhaseReached(RequestPhase::ResponseContent));
    counters.inc(Metric::PhaseReached(RequestPhase::Done));
}

/// Counts the bytes of a request at the next hop; nothing else is counted of a request without a
/// client.
pub(crate) fn count_next_hop(counters: &Counters, log: &RequestLog) {
    let forward = log.forward();
    let bytes = forward.from_next_hop_bytes - forward.tunnel_bytes;
    for (metric, bytes) in [
        (Metric::BytesFromNextHops, bytes),
        (
            Metric::BodyBytesFromNextHops,
            forward.next_hop_content_bytes,
        ),
        (
            Metric::OverheadFromNextHops,
            forward.next_hop_overhead_bytes,
        ),
        (Metric::BytesWasted, forward.wasted_bytes),
    ] {
        counters.add(metric, bytes);
    }
}

/// Counts what became of a response that could have been stored.
pub(crate) fn count_storing(counters: &Counters, verdict: &Verdict) {
    match verdict.storing {
        Some(Storing::Stored) => counters.inc(Metric::Stored),
        Some(Storing::NotStored(why)) => count_not_stored(counters, why),
        None => {}
    }
}

/// Counts what became of a response that was merged into the stored one: what is stored is counted
/// where it is.
pub(crate) fn count_merged(counters: &Counters, verdict: &Verdict) {
    if let Some(Storing::NotStored(why)) = verdict.storing {
        count_not_stored(counters, why);
    }
}

/// Counts a response that was not stored.
pub(crate) fn count_not_stored(counters: &Counters, why: NotStored) {
    counters.inc(Metric::ResponsesNotStored(label(why)));
}

/// How the response gets to the client; `None` where no front end hands connections over.
fn mechanism(finished: &FinishedRequest<'_>) -> Option<Mechanism> {
    let FinishedRequest {
        settings, client, ..
    } = finished;
    if client.listener.is_handed_over {
        return Some(Mechanism::HandOff);
    }
    let cluster = &settings.config.cluster;
    let is_forwarded = cluster.mechanism == Mechanism::HandOff
        && cluster.device.is_some()
        && client.listener.peers == ForPeers::No;
    is_forwarded.then_some(Mechanism::Forwarding)
}

fn unix_ms() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(0))
}
