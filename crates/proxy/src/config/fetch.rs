//! How a response is fetched: how far ahead of its readers, for how many of them, and for how long
//! after they left.

use crate::config::invalid::Invalid;
use crate::config::setting::table;
use crate::config::values::byte_size::ByteSize;
use crate::config::values::read_ahead::ReadAhead;
use crate::config::values::span::Span;
use weir_policy::fetch::AbortKind;

table! {
    /// The `[fetch]` table.
    pub struct Fetch in "fetch" {
        /// How many bytes a fetch may be ahead of what its fastest client has acknowledged, the
        /// kernel's buffers on both sides included and one round trip at the client's rate not;
        /// from `16KiB` to `1GiB`, or `unbounded`. What a client never reads is then not fetched. A
        /// route may have its own.
        read_ahead: ReadAhead = ReadAhead::DEFAULT;
        /// What becomes of a fetch when its last reader leaves. `stop` and `finish` say it; `squid`
        /// decides by `squid_min`, `squid_max` and `squid_pct`; `value` goes on if it is expected
        /// to save more bytes than it costs: by how often the response is asked for and how much is
        /// still to come.
        abort: AbortKind = AbortKind::Value;
        /// With `abort = "value"`: a fetch with no more than this still to come goes on, whatever
        /// its worth. It is Squid's number, and a quarter of the default `read_ahead`: what was on
        /// its way anyhow when the client left.
        abort_little: ByteSize = ByteSize::from_kib(16), from ByteSize::from_bytes(0), to ByteSize::from_gib(1);
        /// With `abort = "squid"`: a fetch with less than this still to come goes on. Squid's
        /// `quick_abort_min`.
        squid_min: ByteSize = ByteSize::from_kib(16), from ByteSize::from_bytes(0), to ByteSize::from_gib(4096);
        /// With `abort = "squid"`: a fetch with more than this still to come stops, unless
        /// `squid_min` kept it. Squid's `quick_abort_max`.
        squid_max: ByteSize = ByteSize::from_kib(16), from ByteSize::from_bytes(0), to ByteSize::from_gib(4096);
        /// With `abort = "squid"`: a fetch of which more than this percentage has come goes on,
        /// unless `squid_max` stopped it. Squid's `quick_abort_pct`.
        squid_pct: u8 = 95, from 0, to 100;
        /// Bytes a second that may be fetched for nobody, all fetches that go on without a reader
        /// together, and the content of new responses that validations in the background bring
        /// (`stale-while-revalidate`). 1 MiB/s is a twelfth of a line of 100 Mbit/s: clients do not
        /// feel it. On a thin link use a tenth of the link; 0 fetches nothing for nobody: a
        /// validation in the background then brings a 304, or what comes with the response head.
        background_rate: ByteSize = ByteSize::from_mib(1), from ByteSize::from_bytes(0), to ByteSize::from_gib(4);
        /// For how long a client that has closed its sending side is still served while nothing
        /// moves; then it is taken to have left. Closing one side is allowed (RFC 9112 §9.6) and
        /// rare; a program that ended looks the same until the next byte is sent to it.
        half_closed: Span = Span::from_secs(5), from Span::ZERO, to Span::from_hours(1);
        /// Fetches that may fill one response at once: readers far apart each want their own. As
        /// many as a player or a download tool opens.
        fetches_per_response_max: u32 = 8, from 1, to 64;
        /// Requests that may wait for one fetch, or read from it; more are forwarded on their own.
        /// As many as there are ports to come from, which no crowd of clients should meet. 0 shares
        /// no fetch.
        followers_max: u32 = 65536, from 0, to 1 << 20;
        /// For how long a request waits for the response head that another one asks for; then it
        /// asks for itself. Else one request that the next hop never answers would hold up all who
        /// want the same. As long as nginx's `proxy_cache_lock_timeout`. Where pages take longer to
        /// make, more than that, or each who waits asks for one too; 0 waits for nobody.
        follower_wait: Span = Span::from_secs(5), from Span::ZERO, to Span::from_hours(1);
        /// For how long a target whose response could not be shared is remembered, so that its
        /// requests do not wait for each other in vain. As long as Varnish's hit-for-miss; 0
        /// forgets at once.
        uncollapsible_for: Span = Span::from_mins(2), from Span::ZERO, to Span::from_days(1);
    }
}

/// Refuses a read-ahead outside its range.
pub(super) fn check(fetch: &Fetch) -> Result<(), Invalid> {
    fetch.read_ahead.check("fetch.read_ahead")
}
