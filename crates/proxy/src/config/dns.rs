//! How names are resolved, and for how long an answer is used.

use crate::config::setting::invalid::Invalid;
use crate::config::setting::table;
use crate::config::values::address::DnsServer;
use crate::config::values::time::span::Span;

table! {
    /// The `[dns]` table.
    pub struct Dns in "dns" {
        /// Name servers to use instead of those in `/etc/resolv.conf`, in order.
        servers: Vec<DnsServer> = Vec::new();
        /// Names whose addresses are remembered; the oldest are dropped first.
        cache_entries_max: u32 = 4096, from 0, to 1 << 20;
        /// The shortest time that an answer is used. Some names have a time to live of 0 s, which
        /// would mean a query for every connection.
        ttl_min: Span = Span::from_secs(1), from Span::ZERO, to Span::from_hours(1);
        /// The longest time that an answer is used, so that an origin that moves is followed within
        /// the hour.
        ttl_max: Span = Span::from_hours(1), from Span::from_secs(1), to Span::from_days(7);
        /// The longest time that "there is no such name" is used. It is short, since such mistakes
        /// are corrected.
        negative_ttl: Span = Span::from_secs(10), from Span::ZERO, to Span::from_hours(1);
    }
}

/// Refuses a least time to live above the greatest.
pub(super) fn check(dns: &Dns) -> Result<(), Invalid> {
    if dns.ttl_min > dns.ttl_max {
        return Err(Invalid::new(
            "dns.ttl_min",
            format!("{} is more than dns.ttl_max, {}", dns.ttl_min, dns.ttl_max),
            format!("raise ttl_max, or use at most \"{}\"", dns.ttl_max),
        ));
    }
    Ok(())
}
