//! The outcome of a run.

use super::message::{ClientsResult, OriginResult, Role};
use crate::client::ClientResult;
use crate::origin::OriginCounts;
use crate::usage::ThreadLoad;
use std::time::SystemTime;
use weir_measure::record::{Host, LinkShaping, UsageSecond};

/// What all participants brought, added up.
#[derive(Clone, Debug)]
pub struct RunOutcome {
    /// When it started.
    pub started: SystemTime,
    /// From the start to the last result of clients.
    pub seconds: f64,
    /// The participants, origins first.
    pub participants: Vec<Participant>,
    /// What the clients saw, without samples.
    pub clients: ClientResult,
    /// What the origins saw.
    pub origin: OriginCounts,
    /// How busy the clients' threads were, the worst of all.
    pub client_load: ThreadLoad,
    /// How busy the origins' threads were, the worst of all.
    pub origin_load: ThreadLoad,
    /// The proxy's process tree.
    pub usage: Vec<UsageSecond>,
    /// What there is to say of it.
    pub usage_warnings: Vec<String>,
    /// Files of samples.
    pub samples: Vec<String>,
    /// What shaped the clients' links; `None` where there are none.
    pub link_shaping: Option<LinkShaping>,
    /// Participants that were lost, when and how: a sentence each.
    pub lost: Vec<String>,
    /// It was interrupted.
    pub is_interrupted: bool,
    /// All roles were threads of one process.
    pub is_one_process: bool,
}

/// A participant.
#[derive(Clone, Debug, PartialEq)]
pub struct Participant {
    /// What it did.
    pub role: Role,
    /// What it called itself.
    pub name: String,
    /// The version of its program.
    pub version: String,
    /// Its machine.
    pub host: Host,
}

impl RunOutcome {
    /// Nothing yet.
    pub(super) fn begun(participants: Vec<Participant>) -> Self {
        Self {
            started: SystemTime::now(),
            seconds: 0.0,
            participants,
            clients: ClientResult::default(),
            origin: OriginCounts::default(),
            client_load: ThreadLoad::default(),
            origin_load: ThreadLoad::default(),
            usage: Vec::new(),
            usage_warnings: Vec::new(),
            samples: Vec::new(),
            link_shaping: None,
            lost: Vec::new(),
            is_interrupted: false,
            is_one_process: false,
        }
    }

    /// The participants of this role.
    pub fn with_role(&self, role: Role) -> impl Iterator<Item = &Participant> {
        self.participants.iter().filter(move |one| one.role == role)
    }

    pub(super) fn add_clients(&mut self, result: ClientsResult) {
        self.clients.merge(result.clients);
        worst(&mut self.client_load, &result.load);
        if let Some(theirs) = result.link_shaping {
            let before = self.link_shaping;
            self.link_shaping = Some(before.map_or(theirs, |before| before.with(theirs)));
        }
        self.samples.extend(result.samples);
    }

    pub(super) fn add_origin(&mut self, result: &OriginResult) {
        self.origin.merge(&result.counts);
        worst(&mut self.origin_load, &result.load);
    }
}

/// Each participant must have kept up by itself: shares are the worst, memory is the sum.
fn worst(all: &mut ThreadLoad, one: &ThreadLoad) {
    let is_busier = |one: &ThreadLoad, than: &ThreadLoad| {
        u128::from(one.busy_seconds) * u128::from(than.seconds)
            > u128::from(than.busy_seconds) * u128::from(one.seconds)
    };
    if all.seconds == 0 || is_busier(one, all) {
        (all.seconds, all.busy_seconds) = (one.seconds, one.busy_seconds);
    }
    all.cpu_share = all.cpu_share.max(one.cpu_share);
    all.wait_share = all.wait_share.max(one.wait_share);
    all.memory_peak_bytes += one.memory_peak_bytes;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differing_link_shapings_of_participants_are_reported_as_mixed() {
        let together = |all: &[Option<LinkShaping>]| {
            let mut gathered = RunOutcome::begun(Vec::new());
            for &link_shaping in all {
                gathered.add_clients(ClientsResult {
                    link_shaping,
                    ..ClientsResult::default()
                });
            }
            gathered.link_shaping
        };
        let (user, namespace) = (Some(LinkShaping::User), Some(LinkShaping::Namespace));
        assert_eq!(together(&[None, None]), None);
        assert_eq!(together(&[namespace, namespace]), namespace);
        assert_eq!(together(&[user, namespace]), Some(LinkShaping::Mixed));
    }

    #[test]
    fn merged_load_keeps_the_busiest_share_and_sums_memory() {
        let load = |seconds, busy_seconds| ThreadLoad {
            seconds,
            busy_seconds,
            cpu_share: 0.5,
            wait_share: 0.0,
            memory_peak_bytes: 10,
        };
        let mut all = ThreadLoad::default();
        for one in [load(100, 0), load(10, 4), load(1000, 10)] {
            worst(&mut all, &one);
        }
        assert_eq!((all.seconds, all.busy_seconds), (10, 4));
        assert_eq!(all.memory_peak_bytes, 30);
    }
}
