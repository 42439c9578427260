//! How a response is fetched: how far ahead of its readers, for how many of them, and for how long
//! after they left.

use crate::config::setting::invalid::Invalid;
use crate::config::setting::table;
use crate::config::values::byte_size::ByteSize;
use crate::config::values::read_ahead::ReadAhead;
use crate::config::values::time::span::Span;
use weir_policy::fetch::AbortKind;

table! {
    /// The `[fetch]` table.
    pub struct Fetch in "fetch" {
        /// Bytes that a fetch may be ahead of what its fastest client has acknowledged: from
        /// `16KiB` to `1GiB`, or `unbounded`. The kernel's buffers on both sides count; one round
        /// trip at the client's rate does not. Content that a client never reads is then not
        /// fetched. A route may have its own value.
        read_ahead: ReadAhead = ReadAhead::DEFAULT;
        /// Handling of a fetch without a reader, when the last client has disconnected. `stop` ends
        /// it, `finish` completes it. `squid` decides by `squid_min`, `squid_max` and `squid_pct`.
        /// `value` continues it if that is expected to save more bytes than it costs, by how often
        /// the response is requested and how much of it is missing.
        abort: AbortKind = AbortKind::Value;
        /// With `abort = "finish"`, also of a rule: time for which a fetch continues without a
        /// reader if its response does not say how long it is. One that never ends, such as a
        /// stream of events, would be fetched as long as its next hop sends.
        finish_unknown_length: Span = Span::from_mins(10), from Span::ZERO, to Span::from_days(1);
        /// With `abort = "value"`: a fetch that lacks no more than this continues in any case. It
        /// is Squid's number, and a quarter of the default `read_ahead`: as much may be on its way
        /// when the client disconnects.
        abort_little: ByteSize = ByteSize::from_kib(16), from ByteSize::from_bytes(0), to ByteSize::from_gib(1);
        /// With `abort = "squid"`: a fetch that lacks less than this continues. Squid's
        /// `quick_abort_min`.
        squid_min: ByteSize = ByteSize::from_kib(16), from ByteSize::from_bytes(0), to ByteSize::from_gib(4096);
        /// With `abort = "squid"`: a fetch that lacks more than this stops, unless `squid_min` kept
        /// it. Squid's `quick_abort_max`.
        squid_max: ByteSize = ByteSize::from_kib(16), from ByteSize::from_bytes(0), to ByteSize::from_gib(4096);
        /// With `abort = "squid"`: a fetch of which more than this percentage was received
        /// continues, unless `squid_max` stopped it. Squid's `quick_abort_pct`.
        squid_pct: u8 = 95, from 0, to 100;
        /// Bytes a second for fetches that no client reads, all together: fetches that continue
        /// without a reader, and new content of validations in the background
        /// (`stale-while-revalidate`). 1 MiB/s is a twelfth of a line of 100 Mbit/s, which clients
        /// do not notice. On a slow link use a tenth of its rate. With 0 no fetch continues without
        /// a reader, and a validation in the background receives a 304 or the bytes that arrive
        /// with the response head.
        background_rate: ByteSize = ByteSize::from_mib(1), from ByteSize::from_bytes(0), to ByteSize::from_gib(4);
        /// Time for which a client that has closed its sending side is served without progress;
        /// then it counts as disconnected. Closing one side is allowed (RFC 9112 §9.6) and rare; a
        /// program that has ended looks the same until the next byte is sent to it.
        half_closed: Span = Span::from_secs(5), from Span::ZERO, to Span::from_hours(1);
        /// Fetches that may fill one response at once, for readers at positions far apart. A player
        /// or a download tool opens as many.
        fetches_per_response_max: u32 = 8, from 1, to 64;
        /// Requests that may wait for one fetch or read from it; more are forwarded by themselves.
        /// There are as many TCP ports, so no usual crowd of clients reaches the limit. With 0 no
        /// fetch is shared.
        followers_max: u32 = 65536, from 0, to 1 << 20;
        /// Time that a request waits for the response head of another request; then it is forwarded
        /// itself. Without a limit, one request that the next hop never answers would block all
        /// others for its target. nginx's `proxy_cache_lock_timeout` is as long. If the origin
        /// takes longer for its pages, use a longer time; otherwise each waiting request is
        /// forwarded, too. With 0 no request waits.
        follower_wait: Span = Span::from_secs(5), from Span::ZERO, to Span::from_hours(1);
        /// Time for which requests for a target do not wait for each other, after its response
        /// could not be shared. Varnish's hit-for-miss is as long. With 0 none is remembered.
        uncollapsible_for: Span = Span::from_mins(2), from Span::ZERO, to Span::from_days(1);
    }
}

/// Refuses a read-ahead outside its range.
pub(super) fn check(fetch: &Fetch) -> Result<(), Invalid> {
    fetch.read_ahead.check("fetch.read_ahead")
}
