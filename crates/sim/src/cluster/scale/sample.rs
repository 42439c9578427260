//! Which targets of the trace are simulated.

use super::setting::ScaleSetting;
use crate::hashing::{ByNumber, mix};
use crate::hit_ratio::keys::{Access, KeyRule, Keys, NumberedRequest, TooManyKeys};
use crate::hit_ratio::mrc::{rank, threshold};
use weir_policy::route::TargetKey;
use weir_trace::{Row, TraceMethod};

/// Targets that are simulated whole, at most. Their requests are some ten times as many as those of
/// the sample, and what one of them does is seen in the whole network.
pub const HOT_TARGETS: usize = 4096;

/// Requests at the beginning of the trace that are counted to find them; 16 to 64 bytes each.
const COUNTED_MAX: u64 = 1 << 22;

/// The part of the trace that is counted at most: one request in so many.
const COUNTED_IS_ONE_IN: u64 = 4;

/// Requests a batch.
pub(super) const BATCH: usize = 8192;

/// A request of the sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ScaleRequest {
    /// Its number in the trace: that tells when it comes.
    pub(super) index: u64,
    /// A hash of the client's connection.
    pub(super) connection: u64,
    /// What tells the node that keeps the response.
    pub(super) target: TargetKey,
    /// What is requested; hot targets have the first numbers.
    pub(super) access: NumberedRequest,
}

/// Some requests in order.
#[derive(Debug, Default)]
pub(super) struct Batch {
    /// Hashes of connections, of all requests that count.
    pub(super) connections: Vec<u64>,
    /// The requests of the sample among them.
    pub(super) asked: Vec<ScaleRequest>,
    /// Bytes of all of them.
    pub(super) bytes: u64,
}

impl Batch {
    pub(super) fn is_full(&self) -> bool {
        self.connections.len() >= BATCH
    }
}

/// Picks requests.
#[derive(Debug)]
pub(super) struct Sampler {
    keys: Keys,
    hot: ByNumber<u32>,
    seed: u64,
    /// Ranks up to this one are taken.
    last: u64,
}

/// Rows at the beginning that [`Sampler::new`] needs.
pub(super) fn counted(setting: &ScaleSetting) -> u64 {
    match setting.is_sampled() {
        true => setting
            .requests
            .get()
            .div_ceil(COUNTED_IS_ONE_IN)
            .min(COUNTED_MAX),
        false => 0,
    }
}

/// What a row asks for: GET, status 200, and content; what is not said speaks for a row.
pub(super) fn access(row: &Row) -> Option<Access> {
    let is_get = row.method.is_none_or(|it| it == TraceMethod::Get);
    let is_ok = row.status.is_none_or(|status| status == 200);
    let size_bytes = row.received_bytes.or(row.declared_bytes);
    let size_bytes = size_bytes.filter(|bytes| is_get && is_ok && *bytes > 0)?;
    Some(Access {
        key: row.target,
        size_bytes,
    })
}

/// What tells the node of a target: the same whatever else is in the sample. The seed stands for
/// the secret of the nodes.
pub(super) fn target(key: u64, seed: u64) -> TargetKey {
    TargetKey(mix(key ^ mix(seed ^ TARGET_SALT)))
}

const TARGET_SALT: u64 = 0x0074_6172_6765_7473;

/// Connections are spread over the nodes by a hash of them, as ECMP or a balancer does.
pub(super) fn connection(row: &Row, index: u64) -> u64 {
    match (row.client, row.connection) {
        (client, Some(connection)) => mix(mix(connection) ^ client.unwrap_or(0)),
        (Some(client), None) => mix(client),
        (None, None) => mix(index ^ UNKNOWN_SALT),
    }
}

const UNKNOWN_SALT: u64 = 0x636f_6e6e_6563_7400;

impl Sampler {
    /// For the targets of `beginning`, see [`counted`]; the most requested ones are hot.
    pub(super) fn new(
        setting: &ScaleSetting,
        beginning: impl Iterator<Item = Access>,
    ) -> Result<Self, TooManyKeys> {
        let mut counts: ByNumber<(u32, u64)> = ByNumber::default();
        for access in beginning {
            let (count, _) = counts.entry(access.key).or_insert((0, access.size_bytes));
            *count = count.saturating_add(1);
        }
        let mut counts: Vec<(u32, Access)> = counts
            .into_iter()
            .map(|(key, (count, size_bytes))| (count, Access { key, size_bytes }))
            .collect();
        counts.sort_unstable_by_key(|(count, access)| (std::cmp::Reverse(*count), access.key));
        counts.truncate(HOT_TARGETS);
        let mut keys = Keys::new(KeyRule::FirstSize);
        let mut hot = ByNumber::default();
        for (_, access) in counts {
            hot.insert(access.key, keys.number(access)?.number);
        }
        Ok(Self {
            keys,
            hot,
            seed: setting.seed,
            last: match setting.is_sampled() {
                true => threshold(f64::from(setting.one_in.get()).recip()),
                false => u64::MAX,
            },
        })
    }

    /// Numbers below this one are of hot targets.
    pub(super) fn hot(&self) -> u32 {
        u32::try_from(self.hot.len()).unwrap_or(u32::MAX)
    }

    /// The request of a row, if its target is in the sample.
    pub(super) fn take(&mut self, access: Access) -> Result<Option<NumberedRequest>, TooManyKeys> {
        let is_taken =
            rank(access.key, self.seed) <= self.last || self.hot.contains_key(&access.key);
        match is_taken {
            true => self.keys.number(access).map(Some),
            false => Ok(None),
        }
    }
}
