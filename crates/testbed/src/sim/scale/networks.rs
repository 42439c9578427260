//! What `weir sim cluster --model caches --json` prints, as far as tables need it.

use serde::Deserialize;
use weir_measure::float;

/// All networks of one run.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Networks {
    pub(crate) trace: String,
    pub(crate) requests: u64,
    pub(crate) one_in: u32,
    /// Requests of clients that a node gets each second.
    pub(crate) rate_per_s: u32,
    pub(crate) cache_bytes: u64,
    pub(crate) eviction: String,
    pub(crate) seed: u64,
    policies: Vec<OfPolicy>,
}

#[derive(Clone, Debug, Deserialize)]
struct OfPolicy {
    networks: Vec<Network>,
}

/// One network.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Network {
    pub(crate) nodes: u16,
    pub(crate) requests: u64,
    pub(crate) bytes: u64,
    pub(crate) hit_ratio: Estimated,
    pub(crate) own_hit_ratio: Estimated,
    pub(crate) origin_requests: Estimated,
    pub(crate) origin_bytes: Estimated,
    pub(crate) lateral_requests: Estimated,
    pub(crate) lateral_bytes: Estimated,
    pub(crate) busiest: Estimated,
    pub(crate) residents: u64,
    pub(crate) messages: Messages,
    pub(crate) join: Option<Estimated>,
    pub(crate) death: Option<Estimated>,
    pub(crate) flash_crowd: Option<FlashCrowd>,
}

/// A number and half of its 95 % interval.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
pub(crate) struct Estimated {
    pub(crate) value: f64,
    pub(crate) error: f64,
}

/// What nodes tell each other.
#[derive(Clone, Copy, Debug, Deserialize)]
pub(crate) struct Messages {
    /// A whole digest of one node.
    pub(crate) digest_bytes: Option<u64>,
    /// Additions that a node gets.
    pub(crate) digest_bytes_per_s: f64,
    /// Messages about states, both ways.
    pub(crate) state_bytes_per_s: f64,
}

/// What a new target with 30 % of the requests does.
#[derive(Clone, Copy, Debug, Deserialize)]
pub(crate) struct FlashCrowd {
    pub(crate) everywhere_ms: Option<f64>,
    pub(crate) origin_requests: u64,
    pub(crate) busiest_at_first: f64,
    pub(crate) busiest_later: f64,
}

impl Networks {
    /// Those of the first policy, by size.
    pub(crate) fn all(&self) -> &[Network] {
        self.policies.first().map_or(&[], |it| &it.networks)
    }

    /// The one with so many nodes.
    pub(crate) fn of(&self, nodes: u16) -> Option<&Network> {
        self.all().iter().find(|network| network.nodes == nodes)
    }

    /// The largest one.
    pub(crate) fn largest(&self) -> Option<&Network> {
        self.all().iter().max_by_key(|network| network.nodes)
    }
}

impl Network {
    /// Content of a response, bytes.
    pub(crate) fn mean_bytes(&self) -> f64 {
        float(self.bytes) / float(self.requests.max(1))
    }

    /// Of all requests, those that go to another node.
    pub(crate) fn lateral_share(&self) -> f64 {
        self.lateral_requests.value / float(self.requests.max(1))
    }

    /// Of all content, what comes from another node.
    pub(crate) fn lateral_bytes_share(&self) -> f64 {
        self.lateral_bytes.value / float(self.bytes.max(1))
    }

    /// Of all content, what comes from the origin.
    pub(crate) fn origin_bytes_share(&self) -> f64 {
        self.origin_bytes.value / float(self.bytes.max(1))
    }

    /// Other nodes than one.
    pub(crate) fn others(&self) -> f64 {
        f64::from(self.nodes) - 1.0
    }
}

#[cfg(test)]
pub(crate) mod made {
    use super::*;

    /// Two networks, of which each node gets 1000 requests of 10 KB a second.
    pub(crate) fn networks() -> Networks {
        let network = |nodes: u64| {
            let count = |value: f64| serde_json::json!({"value": value, "error": 1.0});
            let others = weir_measure::float(nodes - 1);
            serde_json::json!({
                "nodes": nodes, "requests": 1_000_000, "bytes": 10_000_000_000_u64,
                "hit_ratio": count(0.9), "own_hit_ratio": count(0.5),
                "origin_requests": count(100_000.0), "origin_bytes": count(2e9),
                "lateral_requests": count(400_000.0), "lateral_bytes": count(5e9),
                "busiest": count(1.25), "residents": 1_000_000,
                "messages": {
                    "digest_bytes": 1_250_000, "digest_bytes_per_s": 1000.0 * others,
                    "state_bytes_per_s": 250.0 * others,
                },
                "join": count(10.0), "death": count(20.0),
                "flash_crowd": {
                    "everywhere_ms": 12.0, "origin_requests": 1, "busiest_at_first": 1.5,
                    "busiest_later": 1.0,
                },
            })
        };
        let networks = serde_json::json!({
            "trace": "web-2026", "requests": 1_000_000, "one_in": 16, "rate_per_s": 1000,
            "cache_bytes": 1, "eviction": "s3-fifo", "seed": 1,
            "policies": [{"networks": [network(16), network(1024)]}],
        });
        serde_json::from_value(networks).expect("networks")
    }
}
