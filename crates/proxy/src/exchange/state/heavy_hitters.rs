//! An exchange as the heavy hitters count it.

use super::RequestState;
use crate::log::client::ForPeers;
use crate::log::top::accumulator::CountedRequest;
use crate::log::top::fetch_names::FetchNames;
use crate::log::top::{MissFacts, TargetName, Weights};
use crate::log::words;
use std::time::{SystemTime, UNIX_EPOCH};
use weir_measure::Verdict;
use weir_policy::verdict::StaleReason;
use weir_policy::{Digest, Handling, NotStored, RefuseReason, Storing};
use weir_semantics::Method;

impl RequestState {
    /// Counts a request of a client whose response has ended.
    pub(crate) fn count_heavy_hitters(&self) {
        let facts = self.client.facts();
        let admin = &self.settings.config.admin;
        if !admin.top || facts.listener.peers != ForPeers::No {
            return;
        }
        let verdict = self.tx.verdict();
        let is_miss = match verdict.handling {
            // nothing was forwarded
            Handling::StaleInstead(StaleReason::LinkSpent) => false,
            Handling::Forward(_) | Handling::StaleInstead(_) => true,
            _ => was_kept_from_next_hops(verdict),
        };
        let log = &self.log;
        let client = facts.peer.ip();
        let miss = is_miss.then(|| MissFacts {
            at_unix_ms: unix_ms(),
            method: self.request.method_token(),
            client,
            why: words::word(verdict),
            status: log.status(),
            not_stored: match verdict.storing {
                // what a module or an operator keeps from the store was not to be stored
                Some(Storing::NotStored(NotStored::Bypass)) | None | Some(Storing::Stored) => None,
                Some(Storing::NotStored(why)) => Some(words::label(why)),
            },
            refused: match verdict.handling {
                // the proxy error says how
                Handling::Refused(RefuseReason::NextHop) => log.error().or(verdict.detail()),
                Handling::Refused(_) => verdict.detail(),
                _ => None,
            },
        });
        let mut sums = self.worker.top.borrow_mut();
        sums.count(
            admin,
            &CountedRequest {
                target: self.target_name(),
                key: self.target_key(),
                client: Some(client),
                next_hop: log.next_hop(),
                weights: Weights {
                    requests: 1,
                    to_clients: log.response_bytes(),
                    misses: u64::from(is_miss),
                    errors: u64::from(is_miss && log.has_failed()),
                    ..log.next_hop_weights()
                },
                miss,
            },
        );
    }

    /// Counts what a request without a client has brought from its next hop.
    pub(crate) fn count_heavy_hitters_in_background(&self) {
        let admin = &self.settings.config.admin;
        if !admin.top {
            return;
        }
        let mut sums = self.worker.top.borrow_mut();
        sums.count(
            admin,
            &CountedRequest {
                target: self.target_name(),
                key: self.target_key(),
                client: None,
                next_hop: self.log.next_hop(),
                weights: self.log.next_hop_weights(),
                miss: None,
            },
        );
    }

    /// The names that a fetch which this exchange begins is counted under, if any are counted.
    pub(crate) fn fetch_names(&self) -> Option<Box<FetchNames>> {
        let admin = &self.settings.config.admin;
        let target = self.target_name().filter(|_| admin.top)?;
        let sums = self.worker.top.borrow();
        let next_hop = self.log.next_hop();
        Some(Box::new(FetchNames::new(&sums, admin, &target, next_hop)))
    }

    /// The cache key, if it is that of its target alone: not of a tunnel, nor where rules have
    /// changed what is in it.
    fn target_key(&self) -> Option<Digest> {
        let is_of_target = self.key != Digest::default() && !self.is_rekeyed;
        is_of_target.then_some(self.key)
    }

    /// Its target, if it stands for something: that of a refused request may not.
    fn target_name(&self) -> Option<TargetName<'_>> {
        let request = &self.request;
        let verdict = self.tx.verdict();
        let is_refused = matches!(words::word(verdict), Verdict::Invalid | Verdict::Refused);
        if is_refused && !was_kept_from_next_hops(verdict) {
            return None;
        }
        let path = (request.method != Method::Connect).then(|| request.path_and_query());
        Some(TargetName::new(
            request.scheme,
            request.host.as_bytes(),
            request.port,
            path,
        ))
    }
}

/// Whether it was to be forwarded, and no next hop could be used for it.
fn was_kept_from_next_hops(verdict: &weir_policy::Verdict) -> bool {
    let is_one = |why: RefuseReason| why.is_of_next_hop() || why == RefuseReason::LinkSpent;
    matches!(verdict.handling, Handling::Refused(why) if is_one(why))
}

fn unix_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| {
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    })
}
