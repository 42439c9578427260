//! The last phase: what happened is counted and logged, once, in the words of the verdict.

use crate::client::connection::Client;
use crate::exchange::state::Exchange;
use crate::log::access_log::{Entry, Phases};
use crate::log::account::Account;
use crate::send::heads;
use crate::worker::core::Worker;
use crate::worker::settings::Settings;
use std::net::SocketAddr;
use std::time::{SystemTime, UNIX_EPOCH};
use weir_measure::{
    Counters, Joined, Label as _, Metric, NotStored as Label, Source, StatusClass, Verdict as Word,
};
use weir_policy::catalog::Refusal;
use weir_policy::{Handling, Hit, NotStored, Refused, Storing, Verdict};
use weir_semantics::{Fwd, NotStorable, line_named};
use weir_wire::{RequestHead, Version};

/// Reports a finished request of a client: its response is with the kernel. `total_us` is what it
/// took.
pub(crate) fn done(client: &Client, ended: &Ended<'_>) {
    count(client, ended.verdict, ended.account);
    let counters = client.worker.counters();
    counters.record_response_time(source(ended.verdict), ended.total_us);
    if client.worker.shared.access_log.is_on() {
        ended.log(client.worker.as_ref(), client.peer, client.requests > 1);
    }
}

/// Reports what was asked in the background: it has no client, and only what it cost the next hop
/// counts.
pub(crate) fn background(worker: &Worker, exchange: &Exchange) {
    from_next_hop(worker.counters(), &exchange.account);
}

/// Where the response came from.
pub(crate) fn source(verdict: &Verdict) -> Source {
    match verdict.handling {
        Handling::Hit(_) => Source::Store,
        Handling::StaleInstead(_)
        | Handling::Forward(_)
        | Handling::Collapsed(_)
        | Handling::Tunnel => Source::NextHop,
        Handling::Refused(_) => Source::Proxy,
    }
}

/// The value of `Content-Type` in a response head as it is sent; empty if it has none.
pub(crate) fn content_type(head: &[u8]) -> &[u8] {
    const NAME: &[u8] = b"content-type:";
    let mut lines = head.split(|byte| *byte == b'\n').skip(1);
    let value = lines.find_map(|line| {
        let (name, value) = line.split_at_checked(NAME.len())?;
        name.eq_ignore_ascii_case(NAME).then_some(value)
    });
    value.unwrap_or_default().trim_ascii()
}

/// Counts a request of a client that is answered, but for the time it takes.
pub(crate) fn count(client: &Client, verdict: &Verdict, account: &Account) {
    let counters = client.worker.counters();
    if client.requests <= 1 {
        counters.inc(Metric::FirstRequests);
    }
    counters.inc(Metric::Requests(word(verdict)));
    counters.inc(Metric::Responses(StatusClass::of(account.status)));
    match verdict.handling {
        Handling::Hit(hit) => {
            if verdict.from_disk {
                counters.inc(Metric::DiskHits);
            }
            if matches!(hit, Hit::MaxStale | Hit::WhileRevalidate) {
                counters.inc(Metric::ServedStale);
            }
        }
        Handling::StaleInstead(_) => counters.inc(Metric::ServedStale),
        Handling::Forward(_) | Handling::Collapsed(_) | Handling::Tunnel | Handling::Refused(_) => {
        }
    }
    if let Some(joined) = joined(verdict) {
        counters.inc(Metric::Joined(joined));
    }
    counters.add(Metric::BodyBytesToClients, account.body_bytes);
    if account.store_bytes > 0 {
        counters.add(Metric::BytesFromStore, account.store_bytes);
    }
    counters.add(Metric::BytesRecovered, account.recovered_bytes);
    counters.add(Metric::BodyBytesOfOurs, account.own_bytes);
    if account.from_next_hop_bytes > 0 {
        from_next_hop(counters, account);
    }
}

fn from_next_hop(counters: &Counters, account: &Account) {
    let bytes = account.from_next_hop_bytes - account.tunnel_bytes;
    for (metric, bytes) in [
        (Metric::BytesFromNextHops, bytes),
        (
            Metric::BodyBytesFromNextHops,
            account.next_hop_content_bytes,
        ),
        (
            Metric::OverheadFromNextHops,
            account.next_hop_overhead_bytes,
        ),
        (Metric::BytesWasted, account.wasted_bytes),
    ] {
        counters.add(metric, bytes);
    }
}

/// How the request came to share another's response, if it did.
fn joined(verdict: &Verdict) -> Option<Joined> {
    match verdict.handling {
        Handling::Collapsed(_) => Some(Joined::Collapsed),
        Handling::Hit(Hit::Delayed) => Some(Joined::Delayed),
        _ => None,
    }
}

/// Counts what became of a response that could have been stored.
pub(crate) fn storing(worker: &Worker, verdict: &Verdict) {
    match verdict.storing {
        Some(Storing::Stored) => worker.counters().inc(Metric::Stored),
        Some(Storing::NotStored(why)) => not_stored(worker, why),
        None => {}
    }
}

/// Counts what became of a response that was merged into the stored one: what is stored is counted
/// where it is.
pub(crate) fn merged(worker: &Worker, verdict: &Verdict) {
    if let Some(Storing::NotStored(why)) = verdict.storing {
        not_stored(worker, why);
    }
}

/// Counts a response that was not stored.
pub(crate) fn not_stored(worker: &Worker, why: NotStored) {
    worker
        .counters()
        .inc(Metric::ResponsesNotStored(label(why)));
}

/// The verdict's word.
pub(crate) fn word(verdict: &Verdict) -> Word {
    match verdict.handling {
        Handling::Hit(_) => Word::Hit,
        Handling::Collapsed(_) => Word::Collapsed,
        Handling::Forward(Fwd::Bypass) => Word::Bypass,
        Handling::Forward(Fwd::Method) => Word::Method,
        Handling::Forward(Fwd::UriMiss) => Word::UriMiss,
        Handling::Forward(Fwd::VaryMiss) => Word::VaryMiss,
        Handling::Forward(Fwd::Miss) => Word::Miss,
        Handling::Forward(Fwd::Request) => Word::Request,
        Handling::Forward(Fwd::Stale) | Handling::StaleInstead(_) => Word::Stale,
        Handling::Forward(Fwd::Partial) => Word::Partial,
        Handling::Refused(Refused::BadRequest) => Word::Invalid,
        Handling::Refused(Refused::OnlyIfCached | Refused::AnsweredHere) => Word::Local,
        Handling::Refused(_) => Word::Refused,
        Handling::Tunnel => Word::Tunnel,
    }
}

fn label(why: NotStored) -> Label {
    match why {
        NotStored::Rule(rule) => match rule {
            NotStorable::Method => Label::Method,
            NotStorable::RequestNoStore => Label::RequestNoStore,
            NotStorable::ResponseNoStore => Label::ResponseNoStore,
            NotStorable::Private => Label::Private,
            NotStorable::Authorization => Label::Authorization,
            NotStorable::StatusNotFinal => Label::StatusNotFinal,
            NotStorable::StatusNotUnderstood => Label::StatusNotUnderstood,
            NotStorable::PartialContent => Label::PartialContent,
            NotStorable::LineEnds => Label::LineEnds,
            NotStorable::VaryStar => Label::VaryStar,
            _ => Label::NoLifetime,
        },
        NotStored::SetCookie => Label::SetCookie,
        NotStored::StoredIsUsable => Label::StoredIsUsable,
        NotStored::VaryChanged => Label::VaryChanged,
        NotStored::Useless => Label::NoLifetime,
        NotStored::Conditional => Label::Conditional,
        NotStored::Profile(_) => Label::Profile,
        NotStored::Catalog(Refusal::TooLarge { .. }) => Label::TooLarge,
        NotStored::Catalog(Refusal::TooLargeForSmallQueue { .. }) => Label::TooLargeForSmallQueue,
        NotStored::Catalog(Refusal::AllInUse { .. }) => Label::AllInUse,
        NotStored::Catalog(_) => Label::Refused,
        NotStored::Incomplete => Label::Incomplete,
        NotStored::Bypass => Label::Other,
    }
}

/// A request whose response has ended.
#[derive(Clone, Copy)]
pub(crate) struct Ended<'a> {
    pub(crate) settings: &'a Settings,
    /// Its head; for the log alone.
    pub(crate) head: Option<&'a RequestHead<'a, 'a>>,
    pub(crate) verdict: &'a Verdict,
    pub(crate) account: &'a Account,
    /// `Content-Type` of the response; for the log alone.
    pub(crate) content_type: &'a [u8],
    /// From the first byte of the request to the last of the response that the kernel took,
    /// microseconds.
    pub(crate) total_us: u64,
}

impl Ended<'_> {
    /// Writes its line.
    pub(crate) fn log(&self, worker: &Worker, peer: SocketAddr, client_reused: bool) {
        let (verdict, account) = (self.verdict, self.account);
        let mut cache_status = Vec::with_capacity(96);
        heads::write_cache_status(self.settings, verdict, &mut cache_status);
        let value = cache_status
            .strip_prefix(b"Cache-Status: ")
            .and_then(|rest| rest.strip_suffix(b"\r\n"))
            .unwrap_or_default();
        let field = |name: &str| {
            self.head
                .and_then(|head| line_named(head.fields, name))
                .unwrap_or_default()
        };
        worker.shared.access_log.log(&Entry {
            time_unix_ms: unix_ms(),
            client: peer,
            method: self.head.map_or("", |head| head.method),
            target: self.head.map_or("", |head| head.target),
            version: self.head.map_or("", |head| match head.version {
                Version::Http10 => "HTTP/1.0",
                Version::Http11 => "HTTP/1.1",
            }),
            status: account.status,
            verdict: word(verdict).word(),
            detail: verdict.reason().unwrap_or_default(),
            cache_status: value,
            stored: verdict.storing == Some(Storing::Stored),
            next_hop_status: verdict.fwd_status,
            request_bytes: account.request_bytes,
            response_bytes: account.response_bytes,
            body_bytes: account.body_bytes,
            store_bytes: account.store_bytes,
            recovered_bytes: account.recovered_bytes,
            wasted_bytes: account.wasted_bytes,
            read_ahead_max_bytes: account.read_ahead_max_bytes,
            joined: joined(verdict).map(weir_measure::Label::word),
            from_next_hop_bytes: account.from_next_hop_bytes + account.fetched_bytes,
            to_next_hop_bytes: account.to_next_hop_bytes,
            next_hop: account.next_hop,
            client_reused,
            next_hop_reused: account.next_hop_reused,
            phases: phases(account, self.total_us),
            error: account.error,
            content_type: self.content_type,
            user_agent: field("user-agent"),
            referer: field("referer"),
        });
    }
}

fn phases(account: &Account, total_us: u64) -> Phases {
    let chosen = account.chosen_us;
    let connected = account.connected_us;
    Phases {
        head_us: account.head_us,
        choose_us: chosen,
        connect_us: connected.map(|at| at.saturating_sub(chosen)),
        first_byte_us: account
            .first_byte_us
            .zip(connected)
            .map(|(first, connected)| first.saturating_sub(connected)),
        total_us,
    }
}

fn unix_ms() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(0))
}
