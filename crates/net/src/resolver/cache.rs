//! Answers and failures by name, with a bound on their number.
//!
//! Pure: the time is an argument. An entry holds the last good answer and, beside it, the last
//! failure; while the failure is recent the good answer is used if it is not too old (RFC 8767 §5),
//! and no query is sent.

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use weir_measure::DnsOutcome;

use super::{ADDRESSES_MAX, Addresses, LookupResult, Resolution, ResolveError, ResolverConfig};

/// How long a failure of the name servers is remembered: RFC 9520 §3.2 demands at least one second.
const FAILURE_TTL: Duration = Duration::from_secs(1);

pub(super) struct Cache {
    entries: HashMap<Arc<str>, Entry>,
    /// Names in order of arrival: the clock hand advances over it when room is needed.
    order: VecDeque<Arc<str>>,
    entries_max: usize,
    ttl_min: Duration,
    ttl_max: Duration,
    negative_ttl: Duration,
    stale_max: Duration,
}

/// The state of a name in the cache.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum CacheState {
    /// It is known: use this.
    Known(Resolution),
    /// Send a query; if that fails, use this older answer.
    Stale(Addresses),
    /// Not known: send a query.
    Nothing,
}

#[derive(Default)]
struct Entry {
    good: Option<Good>,
    failure: Option<Failure>,
    /// Looked up since the clock hand last passed.
    used: bool,
}

struct Good {
    addresses: Addresses,
    fresh_until: Instant,
    stale_until: Instant,
}

struct Failure {
    error: ResolveError,
    retry_at: Instant,
}

impl Cache {
    pub(super) fn new(config: &ResolverConfig) -> Self {
        Self {
            entries: HashMap::new(),
            order: VecDeque::new(),
            entries_max: config.cache_max_entries.max(1),
            ttl_min: config.ttl_min,
            ttl_max: config.ttl_max,
            negative_ttl: config.negative_ttl,
            stale_max: config.stale_max,
        }
    }

    pub(super) fn get(&mut self, name: &str, now: Instant) -> CacheState {
        let Some(entry) = self.entries.get_mut(name) else {
            return CacheState::Nothing;
        };
        entry.used = true;
        if let Some(failure) = entry
            .failure
            .as_ref()
            .filter(|failure| now < failure.retry_at)
        {
            let error = failure.error;
            return CacheState::Known(
                entry
                    .usable(now)
                    .map_or_else(|| Resolution::failed(error), Resolution::stale),
            );
        }
        match &entry.good {
            Some(good) if now < good.fresh_until => {
                let answer = Ok(Arc::clone(&good.addresses));
                CacheState::Known(Resolution {
                    outcome: DnsOutcome::CacheHit,
                    answer,
                })
            }
            _ => entry
                .usable(now)
                .map_or(CacheState::Nothing, CacheState::Stale),
        }
    }

    /// Keeps the result of a lookup; what the callers that waited for it use.
    pub(super) fn put(&mut self, name: &str, found: LookupResult, now: Instant) -> Resolution {
        let (ttl_min, ttl_max) = (self.ttl_min, self.ttl_max);
        let (negative_ttl, stale_max) = (self.negative_ttl, self.stale_max);
        let entry = self.entry(name, now);
        match found {
            Ok((addresses, ttl)) => {
                let addresses = keep(addresses);
                let fresh_until = now + ttl.max(ttl_min).min(ttl_max);
                let good = Good {
                    addresses: Arc::clone(&addresses),
                    fresh_until,
                    stale_until: fresh_until + stale_max,
                };
                *entry = Entry {
                    good: Some(good),
                    failure: None,
                    used: entry.used,
                };
                Resolution {
                    outcome: DnsOutcome::Answered,
                    answer: Ok(addresses),
                }
            }
            Err(ResolveError::NotFound) => {
                // the name server did answer: an older answer is wrong now, not stale (RFC 8767 §4)
                let failure = Failure {
                    error: ResolveError::NotFound,
                    retry_at: now + negative_ttl,
                };
                *entry = Entry {
                    good: None,
                    failure: Some(failure),
                    used: entry.used,
                };
                Resolution::failed(ResolveError::NotFound)
            }
            Err(error) => {
                entry.failure = Some(Failure {
                    error,
                    retry_at: now + FAILURE_TTL,
                });
                entry
                    .usable(now)
                    .map_or_else(|| Resolution::failed(error), Resolution::stale)
            }
        }
    }

    /// The entry of `name`, made if there is none; another one is evicted for it if need be.
    fn entry(&mut self, name: &str, now: Instant) -> &mut Entry {
        if !self.entries.contains_key(name) {
            while self.entries.len() >= self.entries_max {
                self.evict_one(now);
            }
            self.order.push_back(Arc::from(name));
        }
        self.entries.entry(Arc::from(name)).or_default()
    }

    /// Second chance (CLOCK): an entry that was looked up since the last round and can still be
    /// used stays for one more.
    fn evict_one(&mut self, now: Instant) {
        while let Some(name) = self.order.pop_front() {
            let Some(entry) = self.entries.get_mut(&name) else {
                continue;
            };
            if std::mem::take(&mut entry.used) && !entry.is_spent(now) {
                self.order.push_back(name);
                continue;
            }
            self.entries.remove(&name);
            return;
        }
    }
}

impl Entry {
    /// The good answer, fresh or stale.
    fn usable(&self, now: Instant) -> Option<Addresses> {
        self.good
            .as_ref()
            .filter(|good| now < good.stale_until)
            .map(|good| Arc::clone(&good.addresses))
    }

    fn is_spent(&self, now: Instant) -> bool {
        self.usable(now).is_none()
            && self
                .failure
                .as_ref()
                .is_none_or(|failure| failure.retry_at <= now)
    }
}

/// IPv4 and IPv6 by turns, so that either family survives the bound (RFC 8305 §4), and no address
/// twice.
fn keep(addresses: Vec<IpAddr>) -> Addresses {
    let (v4, v6): (Vec<_>, Vec<_>) = addresses.into_iter().partition(IpAddr::is_ipv4);
    let (mut v4, mut v6) = (v4.into_iter(), v6.into_iter());
    let mut kept = Vec::with_capacity(ADDRESSES_MAX);
    loop {
        let round = [v4.next(), v6.next()];
        if round == [None, None] || kept.len() >= ADDRESSES_MAX {
            return kept.into();
        }
        for address in round.into_iter().flatten() {
            if kept.len() < ADDRESSES_MAX && !kept.contains(&address) {
                kept.push(address);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{Ipv4Addr, Ipv6Addr};

    const S: Duration = Duration::from_secs(1);

    fn cache(entries_max: usize) -> (Cache, Instant) {
        let config = ResolverConfig {
            ttl_min: 2 * S,
            ttl_max: 100 * S,
            negative_ttl: 10 * S,
            stale_max: 50 * S,
            cache_max_entries: entries_max,
            ..ResolverConfig::default()
        };
        (Cache::new(&config), Instant::now())
    }

    fn address(last: u8) -> IpAddr {
        Ipv4Addr::new(192, 0, 2, last).into()
    }

    fn good(last: u8, ttl: Duration) -> LookupResult {
        Ok((vec![address(last)], ttl))
    }

    fn hit(last: u8) -> CacheState {
        CacheState::Known(Resolution {
            outcome: DnsOutcome::CacheHit,
            answer: Ok(Arc::new([address(last)])),
        })
    }

    #[test]
    fn answer_is_fresh_exactly_until_its_clamped_ttl() {
        // (TTL of the record, how long it is used): below, between and above the bounds
        for (ttl, used) in [(0, 2), (1, 2), (2, 2), (30, 30), (100, 100), (5000, 100)] {
            let (mut cache, start) = cache(9);
            cache.put("a", good(1, ttl * S), start);
            let end = start + used * S;
            assert_eq!(cache.get("a", end - S / 1000), hit(1), "TTL {ttl}");
            assert_eq!(
                cache.get("a", end),
                CacheState::Stale(Arc::new([address(1)])),
                "TTL {ttl}"
            );
        }
    }

    #[test]
    fn failed_lookup_serves_the_stale_answer_until_its_maximum_age() {
        let (mut cache, start) = cache(9);
        cache.put("a", good(1, 10 * S), start);
        let stale = Resolution::stale(Arc::new([address(1)]));
        assert_eq!(
            cache.put("a", Err(ResolveError::Timeout), start + 11 * S),
            stale
        );
        assert_eq!(
            cache.get("a", start + 11 * S),
            CacheState::Known(stale.clone()),
            "asked again at once"
        );
        assert_eq!(
            cache.get("a", start + 12 * S),
            CacheState::Stale(Arc::new([address(1)])),
            "never asked again"
        );
        assert_eq!(
            cache.put(
                "a",
                Err(ResolveError::ServerFailure),
                start + 60 * S - S / 1000
            ),
            stale
        );
        let failed = Resolution::failed(ResolveError::ServerFailure);
        assert_eq!(
            cache.put("a", Err(ResolveError::ServerFailure), start + 60 * S),
            failed
        );
        assert_eq!(cache.get("a", start + 60 * S), CacheState::Known(failed));
        assert_eq!(cache.get("a", start + 61 * S), CacheState::Nothing);
    }

    #[test]
    fn nxdomain_replaces_the_stale_answer() {
        let (mut cache, start) = cache(9);
        cache.put("a", good(1, 10 * S), start);
        let gone = Resolution::failed(ResolveError::NotFound);
        assert_eq!(
            cache.put("a", Err(ResolveError::NotFound), start + 11 * S),
            gone
        );
        assert_eq!(
            cache.get("a", start + 21 * S - S / 1000),
            CacheState::Known(gone)
        );
        assert_eq!(cache.get("a", start + 21 * S), CacheState::Nothing);
    }

    #[test]
    fn cache_is_bounded_and_evicts_the_least_recently_used_name() {
        let (mut cache, start) = cache(3);
        for name in ["a", "b", "c"] {
            cache.put(name, good(1, 90 * S), start);
        }
        assert_eq!(cache.get("a", start), hit(1));
        cache.put("d", good(2, 90 * S), start);
        assert_eq!(cache.entries.len(), 3);
        assert_eq!(
            cache.get("b", start),
            CacheState::Nothing,
            "`b` is the oldest that was not asked for"
        );
        assert_eq!(cache.get("a", start), hit(1), "`a` was asked for");
        for number in 0..100 {
            cache.put(&format!("n{number}"), Err(ResolveError::NotFound), start);
        }
        assert_eq!((cache.entries.len(), cache.order.len()), (3, 3));
    }

    #[test]
    fn truncated_address_list_keeps_an_address_of_each_family() {
        let mut addresses: Vec<IpAddr> = (0..1000)
            .map(|n| Ipv4Addr::from_bits(0xc000_0200 + n).into())
            .collect();
        let last = IpAddr::from(Ipv6Addr::LOCALHOST);
        addresses.push(last);
        addresses.insert(0, addresses[0]);
        let kept = keep(addresses);
        assert_eq!(kept.len(), ADDRESSES_MAX);
        assert_eq!(kept[1], last);
        assert!(
            kept.iter()
                .enumerate()
                .all(|(place, one)| !kept[..place].contains(one)),
            "an address twice"
        );
    }
}
