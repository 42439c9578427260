//! A new target that suddenly takes a large part of the requests.

use super::caches::CROWD_TARGET;
use super::network::{NodeNetwork, NodeRequest};
use super::sample::target;
use super::setting::ScaleSetting;
use crate::hit_ratio::keys::NumberedRequest;
use serde::Serialize;
use weir_policy::Tick;
use weir_workload::Chance;

/// What a flash crowd does: 30 % of the requests are for one target that nothing holds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct FlashCrowd {
    /// Until every node has had it, milliseconds; `None` if some have not after a second.
    pub everywhere_ms: Option<f64>,
    /// Requests that the origin gets for it.
    pub origin_requests: u64,
    /// Requests that nodes send each other for it.
    pub lateral_requests: u64,
    /// Requests of the busiest node in the first 100 ms, those of other nodes counted, in parts of
    /// the mean. All other requests are taken to be spread evenly.
    pub busiest_at_first: f64,
    /// The same from then on, until the end.
    pub busiest_later: f64,
}

/// The target's part of the requests, in tenths.
const TENTHS: u64 = 3;

/// The size of the response, bytes; ours.
const SIZE_BYTES: u64 = 100_000;

/// How long it is watched, milliseconds.
const LASTS_MS: u64 = 1000;

/// The beginning, milliseconds.
const AT_FIRST_MS: u64 = 100;

/// Sends the crowd to the network, which has served the trace until `from_ms`. All other requests
/// are left out. Nodes get `lateral_share` lateral requests for each of their clients.
pub(super) fn flash_crowd(
    network: &mut NodeNetwork,
    setting: &ScaleSetting,
    from_ms: u64,
    lateral_share: f64,
) -> FlashCrowd {
    let nodes = network.count();
    let a_second = u64::from(setting.rate_per_s.get()) * nodes as u64 * TENTHS / 10;
    let mut chance = Chance::new(setting.seed, CROWD_STREAM);
    let mut has_had = vec![false; nodes];
    let mut lack = nodes;
    let mut crowd = FlashCrowd {
        everywhere_ms: None,
        origin_requests: 0,
        lateral_requests: 0,
        busiest_at_first: 0.0,
        busiest_later: 0.0,
    };
    let mut served = [vec![0_u64; nodes], vec![0_u64; nodes]];
    for step in 0..a_second * LASTS_MS / 1000 {
        let ms = step * 1000 / a_second.max(1);
        let node = usize::try_from(chance.below(nodes as u64)).unwrap_or(0);
        let answer = network.ask(NodeRequest {
            at: Tick(from_ms + ms),
            node,
            target: target(u64::from(CROWD_TARGET), setting.seed),
            access: NumberedRequest {
                number: CROWD_TARGET,
                size_bytes: SIZE_BYTES,
            },
        });
        let served = &mut served[usize::from(ms >= AT_FIRST_MS)];
        served[node] += 1;
        let Some(answer) = answer else { continue };
        crowd.origin_requests += u64::from(answer.is_from_origin);
        if let Some(owner) = answer.lateral {
            crowd.lateral_requests += 1;
            served[owner] += 1;
        }
        for place in [Some(node), answer.lateral].into_iter().flatten() {
            if !has_had[place] && network.caches.holds(place, CROWD_TARGET) {
                has_had[place] = true;
                lack -= 1;
            }
        }
        if lack == 0 && crowd.everywhere_ms.is_none() {
            crowd.everywhere_ms = Some((step + 1) as f64 * 1000.0 / a_second as f64);
        }
    }
    let others = (10 - TENTHS) as f64 / 10.0 * f64::from(setting.rate_per_s.get());
    let others_per_ms = others * (1.0 + lateral_share) / 1000.0;
    let [first, later] = &served;
    crowd.busiest_at_first = busiest(first, others_per_ms * AT_FIRST_MS as f64);
    crowd.busiest_later = busiest(later, others_per_ms * (LASTS_MS - AT_FIRST_MS) as f64);
    crowd
}

/// Of random numbers, those of the crowd.
const CROWD_STREAM: u64 = 0x63_726f_7764;

/// The busiest node in parts of the mean, if each has `others` more requests.
fn busiest(served: &[u64], others: f64) -> f64 {
    let of = |requests: f64| requests + others;
    let most = served.iter().max().copied().unwrap_or(0) as f64;
    let mean = served.iter().sum::<u64>() as f64 / served.len().max(1) as f64;
    of(most) / of(mean).max(f64::MIN_POSITIVE)
}
