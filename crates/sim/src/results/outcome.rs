//! What a run came to.

use crate::facts::Assumptions;
pub use crate::network::connections::Connections;
use crate::network::link::LinkTraffic;
use crate::results::forecast::LinkForecast;
use crate::results::spread::{Spread, Summary};
use serde::Serialize;
use std::collections::BTreeMap;
use weir_policy::{Handling, Hit, Verdict};

/// The result of one run. The same trace, settings and seed make the same one.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Outcome {
    /// Where the bytes passed.
    pub path: &'static str,
    /// The request, and how it was answered.
    pub requests: Requests,
    /// Every verdict in the words that Cache-Status and the access log use (`word` or
    /// `word/detail`), and how often it was given.
    pub verdicts: BTreeMap<String, u64>,
    /// What went over the links.
    pub traffic: Traffic,
    /// How long requests took.
    pub latency: Latency,
    /// Toward clients; without a proxy, between clients and servers.
    pub client_connections: Connections,
    /// Toward servers; all zero without a proxy.
    pub server_connections: Connections,
    /// Transfers that ended early.
    pub aborts: Aborts,
    /// Stored responses at the end.
    pub stored: u64,
    /// Their heads and content, bytes.
    pub stored_bytes: u64,
    /// Stored responses that left for room.
    pub evictions: u64,
    /// Responses that the rule of admission kept out, by its word.
    pub not_admitted: BTreeMap<&'static str, u64>,
    /// What the trace did not say, what was assumed, and for how many requests.
    pub assumed: BTreeMap<&'static str, u64>,
    /// How long responses are fresh whose heads the source of the trace did not know, seconds.
    pub assumed_lifetime_s: Option<u32>,
    /// Rows that were earlier than the one before them: taken as if they had come with it.
    pub out_of_order: u64,
    /// When the quotas of links would be spent.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<LinkForecast>,
}

/// Requests by how they were answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Requests {
    /// All.
    pub count: u64,
    /// Answered without the next hop, delayed hits included.
    pub hits: u64,
    /// Of the hits, those answered with a response that was still arriving for another request.
    pub delayed_hits: u64,
    /// Answered with the response to another request, which they waited for: they are no hits, and
    /// were not forwarded.
    pub collapsed: u64,
    /// Answered with a stored response that the origin confirmed.
    pub validated: u64,
    /// Content that clients received, bytes.
    pub content_bytes: u64,
    /// Of that, bytes that did not have to come from a server for this request.
    pub hit_bytes: u64,
}

impl Requests {
    /// Hits by requests; 0 without any.
    #[must_use]
    pub fn hit_ratio(&self) -> f64 {
        ratio(self.hits, self.count)
    }

    /// Bytes from the cache by bytes that clients received.
    #[must_use]
    pub fn byte_hit_ratio(&self) -> f64 {
        ratio(self.hit_bytes, self.content_bytes)
    }
}

/// Bytes on the links.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Traffic {
    /// Content that came from servers, bytes; over the one link there is, without a proxy.
    pub from_servers_bytes: u64,
    /// Response heads that did.
    pub from_servers_head_bytes: u64,
    /// With heads and the headers of packets.
    pub from_servers_wire_bytes: u64,
    /// Packets that carried them.
    pub from_servers_packets: u64,
    /// Content sent to clients, whether they were still there or not, bytes.
    pub to_clients_bytes: u64,
    /// Response heads that were.
    pub to_clients_head_bytes: u64,
    /// With heads and the headers of packets.
    pub to_clients_wire_bytes: u64,
    /// Packets that carried them.
    pub to_clients_packets: u64,
    /// Content from servers that was given to clients' connections, bytes: the first client of each
    /// byte counts.
    pub relayed_bytes: u64,
    /// Content from servers that no client got: with the bytes relayed, all that came.
    pub wasted_bytes: u64,
    /// Packets that a queue as long as the links' limits say would have dropped.
    pub over_queue_limit: u64,
}

/// The three parts of a request's latency, and their sum, as clients see them.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Latency {
    /// Until a connection was there; 0 on a connection that was.
    pub setup: Summary,
    /// From then until the first byte of the response.
    pub response: Summary,
    /// From there to the last byte, or the last one before the client left.
    pub transfer: Summary,
    /// All of it.
    pub total: Summary,
}

impl Connections {
    /// Which part of the requests opened a new one.
    #[must_use]
    pub fn new_share(&self) -> f64 {
        ratio(self.opened, self.requests)
    }

    /// Requests on a connection, on average.
    #[must_use]
    pub fn requests_each(&self) -> f64 {
        ratio(self.requests, self.opened)
    }
}

/// Transfers that ended early.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Aborts {
    /// Clients that left.
    pub by_clients: u64,
    /// Responses that their server broke off.
    pub by_servers: u64,
    /// What was decided about fetches without readers, in the policy's words.
    pub fetches: BTreeMap<&'static str, u64>,
    /// Parts that were stored.
    pub parts_kept: u64,
    /// Bytes that were taken from a stored part for a response that was completed.
    pub completed_bytes: u64,
    /// The furthest a fetch ever was ahead of all its readers, bytes.
    pub read_ahead_max_bytes: u64,
}

/// What is counted on the way.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) requests: Requests,
    verdicts: Vec<(Verdict, u64)>,
    pub(crate) traffic: Traffic,
    pub(crate) from_servers: LinkTraffic,
    pub(crate) to_clients: LinkTraffic,
    pub(crate) setup: Spread,
    pub(crate) response: Spread,
    pub(crate) transfer: Spread,
    pub(crate) total: Spread,
    pub(crate) aborts: Aborts,
    pub(crate) not_admitted: BTreeMap<&'static str, u64>,
    pub(crate) assumed: Assumptions,
    pub(crate) out_of_order: u64,
}

impl Tally {
    /// One request's verdict.
    pub(crate) fn verdict(&mut self, verdict: &Verdict) {
        match verdict.handling {
            Handling::Hit(hit) => {
                self.requests.hits += 1;
                self.requests.delayed_hits += u64::from(hit == Hit::Delayed);
            }
            Handling::Collapsed(_) => self.requests.collapsed += 1,
            _ => {}
        }
        // few different ones: words are made of them at the end
        let shape = Verdict {
            ttl: None,
            fwd_status: None,
            ..*verdict
        };
        let same = |known: &Verdict| {
            known.handling == shape.handling
                && (known.storing == shape.storing
                    || known.storing.map(word_of) == shape.storing.map(word_of))
        };
        let Some(place) = self.verdicts.iter().position(|(known, _)| same(known)) else {
            self.verdicts.push((shape, 1));
            return;
        };
        self.verdicts[place].1 += 1;
        // what is frequent is soon found soon
        if place > 0 && self.verdicts[place].1 > self.verdicts[place - 1].1 {
            self.verdicts.swap(place, place - 1);
        }
    }

    pub(crate) fn words(&self) -> BTreeMap<String, u64> {
        let mut words = BTreeMap::new();
        for (verdict, count) in &self.verdicts {
            let word = verdict.handling.as_str();
            let word = match verdict.reason() {
                Some(detail) => format!("{word}/{detail}"),
                None => word.to_owned(),
            };
            *words.entry(word).or_insert(0) += count;
        }
        words
    }
}

fn word_of(storing: weir_policy::Storing) -> &'static str {
    match storing {
        weir_policy::Storing::Stored => "stored",
        weir_policy::Storing::NotStored(why) => why.as_str(),
    }
}

pub(crate) fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 {
        return 0.0;
    }
    part as f64 / whole as f64
}
