//! What an operator sees of a running proxy: its numbers, modules and cluster, and where a request
//! would be sent. Nothing changes by it.

use super::Control;
use crate::cache::purge::purge_target;
use crate::cluster::Lead;
use crate::cluster::report::{ClusterReport, RouteReport};
use crate::config::Mode;
use crate::exchange::next_hop::places_behind;
use crate::modules::report::ModuleReport;
use crate::request::judge::key_of;
use crate::request::key::key_by_rule;
use crate::server::disk_tier;
use weir_extend::ListenerMode;
use weir_measure::live::{LinkRow, RecentMisses, TopBy, TopOf, TopTable};
use weir_measure::{Metric, Snapshot};
use weir_policy::route::TargetKey;
use weir_semantics::HostName;

impl Control {
    /// The modules of the configuration in force, in their order.
    #[must_use]
    pub fn modules(&self) -> Vec<ModuleReport> {
        self.shared.settings.load().modules.reports()
    }

    /// What is moved over links to next hops, in the order of the configuration.
    #[must_use]
    pub fn links(&self) -> Vec<LinkRow> {
        self.shared.links.rows()
    }

    /// The cluster as this node knows it; `None` if the configuration has none.
    #[must_use]
    pub fn cluster(&self) -> Option<ClusterReport> {
        let settings = self.shared.settings.load();
        let now = self.shared.clock().now();
        let mut report = settings
            .membership
            .report(now, self.shared.reads_waiting())?;
        let purges = &self.shared.cluster_purges;
        for member in &mut report.members {
            member.purges_overdue = purges.outboxes.overdue_of(&member.name);
            member.behind_at = purges.behind_at(&member.name);
        }
        Some(report)
    }

    /// Where a request for `url` would be sent that a listener of `mode` receives, if nothing is
    /// stored here for it: without a mode, of the one mode that all listeners have. Nothing is
    /// requested, and no policy notes it.
    ///
    /// # Errors
    ///
    /// There are listeners of both modes, or none of this one; no route is for the URL, or it is
    /// none.
    pub fn route(&self, mode: Option<ListenerMode>, url: &str) -> Result<RouteReport, String> {
        let mode = match self.mode_of_a_listener(mode)? {
            ListenerMode::Forward => Mode::Forward,
            ListenerMode::Gateway => Mode::Gateway,
        };
        let mut host = HostName::EMPTY;
        let target = purge_target(url, &mut host)?;
        let now = self.shared.clock().now();
        let settings = self.shared.settings.load();
        let mut report = RouteReport {
            url: url.to_owned(),
            mode: mode.as_str(),
            node: None,
            is_copied: false,
            candidates: Vec::new(),
            direct: None,
        };
        if let Some(cluster) = settings.cluster() {
            let (rules, secret) = (&settings.operator_rules, cluster.target_secret());
            let by_rule = key_by_rule(rules, mode, &target, secret);
            let key = TargetKey(by_rule.unwrap_or_else(|| key_of(mode, &target, secret)).0);
            let reads_waiting = self.shared.reads_waiting();
            let behind = places_behind(&self.shared.cluster_purges, &cluster);
            (report.candidates, report.is_copied) =
                cluster.candidates(now, key, reads_waiting, &behind);
            report.node = cluster.report(now, 0).node;
        }
        if mode == Mode::Gateway {
            let hops = settings.route_candidates(now, &target);
            let hops = hops.map_err(|none| format!("{none} ({url})"))?;
            report.candidates.extend(hops);
        } else if !settings.hierarchy.is_empty() {
            let (host, path) = (target.host.as_str(), target.path_and_query);
            let candidates = settings.hierarchy.candidates(now, host, path);
            report.candidates.extend(candidates);
            report.direct = Some(settings.hierarchy.direct(host, path).as_str());
        }
        Ok(report)
    }

    /// The heaviest `rows_max` by a measure; `None` if the configuration has nothing counted.
    #[must_use]
    pub fn top(&self, of: TopOf, by: TopBy, rows_max: usize) -> Option<TopTable> {
        let settings = self.shared.settings.load();
        let admin = &settings.config.admin;
        let tops = &self.shared.tops;
        admin.top.then(|| tops.table(of, by, rows_max, admin))
    }

    /// The last misses and refusals; `None` if the configuration has none remembered.
    #[must_use]
    pub fn misses(&self) -> Option<RecentMisses> {
        let settings = self.shared.settings.load();
        let admin = &settings.config.admin;
        admin.top.then(|| self.shared.tops.misses(admin))
    }

    /// The sum of all counters.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        let mut snapshot = Snapshot::sum(self.shared.network.counters().iter().map(AsRef::as_ref));
        self.shared.store.settle();
        let memory = self.shared.store.memory_use();
        let settings = self.shared.settings.load();
        let network = &self.shared.network;
        for (metric, value) in [
            (
                Metric::PeerPurgesOverdue,
                self.shared.cluster_purges.outboxes.overdue(),
            ),
            (Metric::DigestBytes, self.shared.digests.bytes() as u64),
            (Metric::StoreUsedBytes, memory.used_bytes),
            (Metric::StoreLingeringBytes, memory.lingering_bytes),
            (Metric::StoreFileBytes, memory.file_bytes),
            (Metric::StoreEntries, memory.entries),
            (Metric::Evicted, memory.evictions),
            (
                Metric::ReadAheadMaxBytes,
                self.shared.read_ahead_max_bytes(),
            ),
            (
                Metric::StoreBudgetBytes,
                settings.config.cache.memory.bytes(),
            ),
            (
                Metric::NextHopsOpen,
                network.open_connections().total() as u64,
            ),
            (
                Metric::NextHopsOpenMost,
                network.open_connections().total_max() as u64,
            ),
            (Metric::ClientsOpenMost, network.clients_open_max() as u64),
            (
                Metric::ConnectionCacheIdle,
                network.idle_connections() as u64,
            ),
            (Metric::LogLinesDropped, self.shared.access_log.dropped()),
            (Metric::Workers, network.workers() as u64),
        ] {
            snapshot.set(metric, value);
        }
        let membership = &settings.membership;
        snapshot.set(Metric::ClusterMembers, membership.count() as u64);
        let is_elsewhere = matches!(membership.own_url.lead(), Lead::Elsewhere { .. });
        let is_behind = membership.valid_since.is_behind();
        snapshot.set(Metric::PurgeLogBehind, u64::from(is_behind));
        snapshot.set(Metric::OwnUrlElsewhere, u64::from(is_elsewhere));
        let age = membership.source().and_then(|(_, report)| report.age);
        snapshot.set(Metric::MembersAge, age.map_or(0, |age| age.as_secs()));
        if let Some(record) = &self.shared.record {
            record.tally().count_in(&mut snapshot);
        }
        if let Some(disk) = self.shared.store.disk() {
            disk_tier::count(&disk.usage(), &mut snapshot);
        }
        snapshot
    }
}
