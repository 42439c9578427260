//! What a cache would hit that has room for everything and never forgets.
//!
//! PROXIM's: a request **may use the cache** if it has none of the causes of
//! [`Cause`](super::Cause). It **hits** if its target was kept before, and keeps it otherwise if
//! the method is GET and the status one that caches of 1998 stored by default: 200, 203, 300, 301,
//! 410 (RFC 2068 §13.4; 206 is left out). A method or status that the trace does not say counts as
//! GET and 200. Nothing becomes stale or changes, as in the paper, whose cache is sized so that
//! nothing is evicted. Ratios are of all requests, those that may not use the cache included, and
//! of all bytes that clients received (else: that were declared).
//!
//! K1: only GET with status 200 and content counts; the size of a target is that of its first such
//! row, for every later row too. It knows no causes, and is what simulators of traces
//! with three columns compute.

use super::super::Row;
use super::causes::CauseSet;
use super::population::TargetCounts;
use crate::row::words::TraceMethod;
use serde::Serialize;
use weir_measure::share;

/// Hits of a cache, by request and by byte.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Ratios {
    /// Requests that hit.
    pub hits: u64,
    /// Requests that count.
    pub requests: u64,
    /// Bytes of those that hit.
    pub hit_bytes: u64,
    /// Bytes of all that count.
    pub bytes: u64,
}

impl Ratios {
    fn add(&mut self, is_hit: bool, bytes: u64) {
        self.requests += 1;
        self.bytes = self.bytes.saturating_add(bytes);
        if is_hit {
            self.hits += 1;
            self.hit_bytes = self.hit_bytes.saturating_add(bytes);
        }
    }

    /// Hits of requests, from 0 to 1.
    #[must_use]
    pub fn hit_ratio(&self) -> f64 {
        share(self.hits, self.requests)
    }

    /// Bytes of hits, of all bytes, from 0 to 1; `None` where there are none.
    #[must_use]
    pub fn byte_hit_ratio(&self) -> Option<f64> {
        (self.bytes > 0).then(|| share(self.hit_bytes, self.bytes))
    }
}

/// Hit ratios of an infinite cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Infinite {
    /// A cookie is a cause like others.
    pub obeying_cookies: Ratios,
    /// A cookie is no cause.
    pub ignoring_cookies: Ratios,
    /// GET with status 200 and content only, sizes of first rows.
    pub k1: Ratios,
}

impl Infinite {
    pub(super) fn add(&mut self, row: &Row, seen: &mut TargetCounts, found: CauseSet) {
        let bytes = row.content_bytes().unwrap_or(0);
        let is_get = row.method.is_none_or(|method| method == TraceMethod::Get);
        let is_kept = is_get && row.status.is_none_or(is_kept_1998);
        let cases = [
            (&mut self.obeying_cookies, found, &mut seen.is_kept),
            (
                &mut self.ignoring_cookies,
                found.without_cookies(),
                &mut seen.is_kept_ignoring_cookies,
            ),
        ];
        for (ratios, found, is_there) in cases {
            ratios.add(found.is_empty() && *is_there, bytes);
            *is_there |= found.is_empty() && is_kept;
        }
        if is_get && row.status.is_none_or(|status| status == 200) && bytes > 0 {
            let first = *seen.first_bytes.get_or_insert(bytes);
            self.k1.add(seen.is_in_k1, first);
            seen.is_in_k1 = true;
        }
    }
}

const fn is_kept_1998(status: u16) -> bool {
    matches!(status, 200 | 203 | 300 | 301 | 410)
}
