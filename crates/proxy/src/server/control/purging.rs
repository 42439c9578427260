//! Purges of an operator: here, at the other nodes of the cluster, and in its log.

use super::Control;
use crate::admin::{MemberPurge, PurgeCall, PurgeFailure, PurgeReach, PurgeReport};
use crate::cache::invalidate::DURABLE_WAIT;
use crate::cache::purge::apply;
use crate::cluster::Lead;
use crate::cluster::purges::PurgedTarget;
use crate::cluster::purges::Waiter;
use crate::server::purge_log;
use std::time::Duration;
use tokio::time::{Instant, timeout_at};
use weir_measure::Metric;
use weir_store::Purge;

impl Control {
    /// Purges `what`: here, and at the other nodes of the cluster if it is for them, each of which
    /// is awaited for `cluster.peer_timeout` and what a disk may take, once all have room for it.
    /// At this node it survives a crash when this returns.
    ///
    /// # Errors
    ///
    /// What is wrong with the URL, or with the disk of this node.
    pub fn purge(&self, what: &PurgeCall, reach: PurgeReach) -> Result<PurgeReport, PurgeFailure> {
        let shared = &self.shared;
        let settings = shared.settings.load();
        let cluster = settings.cluster();
        let cluster = cluster.as_deref().filter(|_| reach == PurgeReach::Cluster);
        let what = match what {
            PurgeCall::Url(url) => PurgedTarget::Url(url.clone()),
            PurgeCall::All => PurgedTarget::All,
        };
        let wait = settings.config.cluster.peer_timeout.as_duration() + DURABLE_WAIT;
        let patience = settings.config.cluster.peer_timeout.as_duration();
        let is_told = reach == PurgeReach::Cluster && settings.config.cluster.exists();
        let outboxes = &shared.cluster_purges.outboxes;
        let hold = cluster.map_or(Duration::ZERO, |_| wait + patience);
        let mut now = std::time::Instant::now();
        // first: what is purged in a hurry is not to be served while others have no room for it
        let mut purges = apply(shared, &what, hold).map_err(PurgeFailure::Url)?;
        let line = purge_log::written(&what);
        let turn = outboxes.turn(Waiter::Operator, 1, what.url_bytes());
        let turn = is_told.then(|| self.runtime.block_on(turn));
        if turn.as_ref().is_some_and(|turn| turn.has_waited) {
            now = std::time::Instant::now();
            purges.extend(apply(shared, &what, hold).map_err(PurgeFailure::Url)?);
        }
        let until = now + wait;
        let log = self.purge_log.load_full();
        let log = log.filter(|_| reach == PurgeReach::Cluster);
        let awaited = turn.map(|turn| {
            // a node that is not listed at the moment tells those that were with it
            let others = cluster.into_iter().flat_map(|cluster| cluster.others());
            turn.tell(others, vec![what], (now, until, patience))
        });
        let may_be_more_on_disk = purges.iter().any(|purge| purge.may_be_more);
        let own = self.settle(purges);
        let others = cluster.map(|cluster| cluster.others().map(str::to_owned).collect());
        let (answers, entered) = self.runtime.block_on(async {
            tokio::join!(
                async { Some(outboxes.answers(awaited?, until).await) },
                async {
                    let members = others.unwrap_or_default();
                    Some(log?.log.enter(line, members, until.into()).await)
                }
            )
        });
        let known = entered.as_ref().and_then(|entered| entered.as_ref().ok());
        let applied = known.map(|entered| &*entered.applied).unwrap_or_default();
        let away = known.map(|entered| entered.behind.clone());
        let members = answers.unwrap_or_default().into_iter();
        let members = members.map(|(name, outcome)| MemberPurge {
            outcome: match outcome {
                Ok(outcome) => Ok((outcome.removed, outcome.is_durable)),
                // it has read it in the log
                Err(_) if applied.iter().any(|other| **other == *name) => Ok((0, true)),
                Err(why) => Err(why),
            },
            name: name.into(),
        });
        let members: Vec<MemberPurge> = members.collect();
        let untold = members.iter().filter(|member| member.outcome.is_err());
        let counters = shared.common_counters();
        counters.add_shared(Metric::PeerPurgesUntold, untold.count() as u64);
        let log = entered.map(|entered| entered.map(|entered| entered.revision));
        let is_logged = matches!(log, Some(Ok(_)));
        let problem = self.purge_problem(reach, is_logged);
        Ok(PurgeReport {
            node: cluster.map(|cluster| cluster.own_name().to_owned()),
            purged: own?,
            may_be_more_on_disk,
            members,
            away: away.unwrap_or_default(),
            log,
            problem,
        })
    }

    /// Why a node may have missed a purge without being named; what is in the log reaches all.
    fn purge_problem(&self, reach: PurgeReach, is_logged: bool) -> Option<String> {
        if reach == PurgeReach::ThisNode {
            return None;
        }
        let settings = self.shared.settings.load();
        let membership = &settings.membership;
        match membership.own_url.lead() {
            lead @ Lead::Elsewhere { .. } => Some(lead.to_string()),
            _ if is_logged => None,
            _ => {
                let why = membership.why_alone()?;
                Some(format!("no other node was told: {why}"))
            }
        }
    }

    /// Waits until `purges` survive a crash, for [`DURABLE_WAIT`] at most; returns how many
    /// responses were dropped.
    fn settle(&self, purges: Vec<Purge>) -> Result<u64, PurgeFailure> {
        let purged = purges.iter().map(|purge| purge.removed as u64).sum();
        let counters = self.shared.common_counters();
        counters.add_shared(Metric::Purged, purged);
        let mut failed = None;
        let until = Instant::now() + DURABLE_WAIT;
        for purge in purges {
            let durable = async { timeout_at(until, purge.durable()).await };
            let failure = match self.runtime.block_on(durable) {
                Ok(Ok(())) => continue,
                Ok(Err(error)) => PurgeFailure::Disk(error),
                Err(_) => PurgeFailure::Slow(DURABLE_WAIT),
            };
            counters.add_shared(Metric::PurgesNotDurable, 1);
            failed = Some(failure);
        }
        failed.map_or(Ok(purged), Err)
    }
}
