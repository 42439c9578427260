//! What `weir sim hits` came to, as it is recorded.

use super::admission::admission_word;
use super::crowd::Summary;
use super::simulation::{Setting, Totals};
use crate::hit_ratio::keys::KeyRule;
use serde::{Deserialize, Serialize};

/// A trace and some caches.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HitsRecord {
    /// The trace's name.
    pub trace: String,
    /// What a response is that comes with another size, a word of [`KeyRule`].
    pub keys_by: String,
    /// Requests.
    pub requests: u64,
    /// The bytes of their requests.
    pub bytes: u64,
    /// Different keys.
    pub keys: u64,
    /// What these come to, bytes.
    pub footprint_bytes: u64,
    /// Of a cache that never evicts.
    pub infinite_hit_ratio: f64,
    /// Of a cache that never evicts.
    pub infinite_byte_hit_ratio: f64,
    /// The caches, in the order of the flags.
    pub caches: Vec<CacheRecord>,
}

/// A cache.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CacheRecord {
    /// Bytes of content that it may hold.
    pub capacity_bytes: u64,
    /// The eviction algorithm.
    pub policy: String,
    /// The rule of admission.
    pub admission: String,
    /// Requests whose response was there.
    pub hits: u64,
    /// What these come to, bytes.
    pub hit_bytes: u64,
    /// Of requests.
    pub hit_ratio: f64,
    /// Of bytes.
    pub byte_hit_ratio: f64,
    /// Responses that left for others.
    pub evictions: u64,
    /// Misses that the rule of admission did not let in.
    pub refused: u64,
    /// Misses that are larger than the cache.
    pub too_large: u64,
    /// Misses that fit into the cache and not into its small queue.
    pub too_large_for_small_queue: u64,
    /// Responses there at the end.
    pub residents: u64,
    /// What they come to, bytes.
    pub resident_bytes: u64,
}

impl HitsRecord {
    /// Puts a record together.
    #[must_use]
    pub fn new(
        trace: String,
        rule: KeyRule,
        summary: &Summary,
        caches: impl Iterator<Item = (Setting, Totals)>,
    ) -> Self {
        let infinite = summary.infinite();
        Self {
            trace,
            keys_by: rule.to_string(),
            requests: summary.requests,
            bytes: summary.bytes,
            keys: summary.keys,
            footprint_bytes: summary.footprint_bytes,
            infinite_hit_ratio: infinite.hit_ratio(),
            infinite_byte_hit_ratio: infinite.byte_hit_ratio(),
            caches: caches
                .map(|(setting, totals)| CacheRecord::new(setting, &totals))
                .collect(),
        }
    }
}

impl CacheRecord {
    fn new(setting: Setting, totals: &Totals) -> Self {
        Self {
            capacity_bytes: setting.capacity_bytes,
            policy: setting.eviction.to_string(),
            admission: admission_word(setting.admission),
            hits: totals.hits,
            hit_bytes: totals.hit_bytes,
            hit_ratio: totals.hit_ratio(),
            byte_hit_ratio: totals.byte_hit_ratio(),
            evictions: totals.evictions,
            refused: totals.refused,
            too_large: totals.too_large,
            too_large_for_small_queue: totals.too_large_for_small_queue,
            residents: totals.residents,
            resident_bytes: totals.resident_bytes,
        }
    }
}
