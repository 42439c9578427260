//! The cluster that this node is in, as its members change while requests are served.
//!
//! A source of members (`weir_cluster`) hands over lists; each makes a new [`Cluster`], which takes
//! over what is known of the nodes that stay. A request goes on with the one that it found.

use crate::cluster::members::{Asker, Cluster, ClusterTerms, Maker};
use crate::cluster::nodes_to_ask::NodesToAsk;
use crate::cluster::own_url::OwnUrl;
use crate::cluster::proof::ClusterSecret;
use crate::cluster::purges::valid_since::ValidSince;
use crate::cluster::report::{ClusterReport, MemberReport, MembersReport};
use crate::config::{Config, ListenerKind, MembersSource};
use crate::log::access_log::Say;
use arc_swap::ArcSwapOption;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Instant;
use tokio::sync::Notify;
use weir_cluster::{MemberList, MemberSink, MembersTask, OwnNode, Source, SourceReport};
use weir_measure::{Counters, Metric};
use weir_net::next_hops::HopKey;
use weir_net::resolver::Resolver;
use weir_policy::Now;
use weir_policy::now::Tick;
use weir_policy::route::{NodeState, Weight};
use weir_semantics::PeerRequest;
use weir_wire::RequestHead;

/// The cluster of this process; without members it is in none.
#[derive(Default)]
pub(crate) struct Membership {
    current: ArcSwapOption<Cluster>,
    /// The cluster is another one: for the task that tells members of purges.
    changed: Notify,
    /// The state of this node is another one: for the task that tells the others.
    state_changed: Notify,
    /// What is stored from before must be validated.
    pub(crate) valid_since: ValidSince,
    /// Members that are to be asked at once how they are.
    pub(crate) to_ask: NodesToAsk,
    /// Where the URL of this node leads.
    pub(crate) own_url: OwnUrl,
    inner: Mutex<Inner>,
}

struct Inner {
    /// This node's own state, which it tells the others.
    own_state: NodeState,
    join: Join,
    /// How long it is joining.
    join_ms: u64,
    /// What the configuration in force says; `None` without a cluster.
    terms: Option<ClusterTerms>,
    /// The last good list.
    list: Option<MemberList>,
    followed: Option<FollowedSource>,
    /// The number of the source that is followed: what an earlier one had is not put in force.
    number: u64,
}

impl Default for Inner {
    fn default() -> Self {
        Self {
            own_state: NodeState::In,
            join: Join::Ahead,
            join_ms: 0,
            terms: None,
            list: None,
            followed: None,
            number: 0,
        }
    }
}

/// How far this process is with joining.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Join {
    /// There was no other member yet.
    Ahead,
    /// It has begun, until then; `None`: the time was not told since.
    Until(Option<Tick>),
    /// It is over.
    Done,
}

struct FollowedSource {
    source: Source,
    own: OwnNode,
    task: MembersTask,
}

impl Inner {
    /// The cluster had others when this node came: its own store is to be filled.
    fn begin_joining(&mut self) {
        if self.join_ms == 0 {
            self.join = Join::Done;
            return;
        }
        self.join = Join::Until(None);
        self.own_state = NodeState::Joining;
        if let Some(followed) = &self.followed {
            followed.task.announce(NodeState::Joining);
        }
    }
}

impl Membership {
    /// The cluster as it is now; `None` if there is none, or this node is not a member of it.
    pub(crate) fn current(&self) -> Option<Arc<Cluster>> {
        self.current.load_full()
    }

    /// Who sends a request with this field and head.
    pub(crate) fn asker(&self, asked: &PeerRequest<'_>, head: &RequestHead<'_, '_>) -> Asker {
        match &*self.current.load() {
            Some(cluster) => cluster.asker(asked, head),
            None => {
                let inner = self.inner();
                let terms = inner.terms.as_ref();
                terms.map_or(Asker::Stranger, |terms| terms.asker(asked, head))
            }
        }
    }

    /// Appends the field line of this node's own answer to `asked`, a request of `asker`, to the
    /// head of that, which begins at `from`. `reads_waiting` are reads that wait for the disk of
    /// this node.
    pub(crate) fn seal_own(
        &self,
        (asked, asker): (&PeerRequest<'_>, Asker),
        reads_waiting: u32,
        (out, from): (&mut Vec<u8>, usize),
    ) {
        if let Some(cluster) = &*self.current.load() {
            let of = (Maker::Node, asker);
            return cluster.seal_response(asked, (reads_waiting, None), of, (out, from));
        }
        let inner = self.inner();
        if let Some(terms) = &inner.terms {
            terms.seal_unlisted(asked, (out, from));
        }
    }

    fn put(&self, cluster: Option<Arc<Cluster>>) {
        if let Some(replaced) = self.current.swap(cluster) {
            replaced.set_replaced();
        }
        self.changed.notify_one();
    }

    /// Ready when the cluster may be another one. For one task.
    pub(crate) async fn changed(&self) {
        self.changed.notified().await;
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts the cluster of a valid configuration in force; `secret` is what `cluster.secret_file`
    /// holds. Members from elsewhere than the configuration stay until [`Self::follow`] has others.
    pub(crate) fn configure(&self, config: &Config, secret: &ClusterSecret) {
        let mut inner = self.inner();
        inner.terms = config.cluster.exists().then(|| ClusterTerms {
            balancing: config.cluster.constants().balancing(config.cluster.policy),
            secret: secret.clone(),
        });
        inner.join_ms = config.cluster.join_time.as_millis();
        if config.cluster.source == MembersSource::Config {
            inner.number += 1;
            inner.followed = None;
            inner.list = list_of(config);
        }
        if self.rebuild(&mut inner).is_err() {
            // what proves members is not there any more
            inner.list = None;
            self.put(None);
        }
    }

    /// Follows the source that the configuration names, if it names one that is not followed yet.
    /// `listeners` are all listeners as bound.
    ///
    /// # Errors
    ///
    /// A thread cannot be started.
    pub(crate) fn follow(
        self: &Arc<Self>,
        config: &Config,
        listeners: &[(ListenerKind, SocketAddr)],
        resolver: &Resolver,
        (counters, say): (&Arc<Counters>, &Say),
    ) -> io::Result<()> {
        let Some(source) = config.cluster.followed_source() else {
            return Ok(());
        };
        let peers = listeners.iter();
        let peers = peers.filter(|(kind, _)| *kind == ListenerKind::Peer);
        let own = OwnNode {
            name: config.cluster.node.clone(),
            listeners: peers.map(|(_, address)| *address).collect(),
            hop: config.cluster.url.as_ref().map(HopKey::from),
            weight: Weight::new(config.cluster.weight).unwrap_or(Weight::ONE),
        };
        let mut inner = self.inner();
        let is_followed = inner
            .followed
            .as_ref()
            .is_some_and(|followed| followed.source == source && followed.own == own);
        if is_followed {
            return Ok(());
        }
        inner.number += 1;
        let sink = Arc::new(Sink {
            membership: Arc::downgrade(self),
            number: inner.number,
            source: source.to_string(),
            own: own.clone(),
            counters: Arc::clone(counters),
            say: Arc::clone(say),
        });
        let (resolver, state) = (resolver.clone(), inner.own_state);
        let task = MembersTask::start(source.clone(), own.clone(), state, resolver, sink)?;
        inner.followed = Some(FollowedSource { source, own, task });
        Ok(())
    }

    /// This node takes no new targets from now on; or does again, if `drains` is `false`. It tells
    /// the others.
    pub(crate) fn set_draining(&self, drains: bool) {
        let mut inner = self.inner();
        inner.join = Join::Done;
        let state = match drains {
            true => NodeState::Draining,
            false => NodeState::In,
        };
        self.set_own_state(&mut inner, state);
    }

    /// Whether this node takes no new targets.
    pub(crate) fn is_draining(&self) -> bool {
        self.inner().own_state == NodeState::Draining
    }

    /// Called each second.
    pub(crate) fn tick(&self, now: Tick) {
        let mut inner = self.inner();
        match inner.join {
            Join::Until(None) => inner.join = Join::Until(Some(now.plus_ms(inner.join_ms))),
            Join::Until(Some(until)) if now >= until => {
                inner.join = Join::Done;
                self.set_own_state(&mut inner, NodeState::In);
            }
            _ => {}
        }
    }

    fn set_own_state(&self, inner: &mut Inner, state: NodeState) {
        inner.own_state = state;
        if let Some(followed) = &inner.followed {
            followed.task.announce(state);
        }
        if let Some(cluster) = self.current().filter(|cluster| !cluster.is_front_end()) {
            cluster.set_own_state(state);
        }
        self.state_changed.notify_one();
    }

    /// Has the others told how this node is: its listeners are open, and one that has found them
    /// closed has it as gone.
    pub(crate) fn tell_state(&self) {
        self.state_changed.notify_one();
    }

    /// Ready when the state of this node is another one, or is to be told. For one task.
    pub(crate) async fn state_changed(&self) {
        self.state_changed.notified().await;
    }

    /// No source is followed any more. What is returned is ready when none announces this node, or
    /// that takes too long.
    pub(crate) fn leave(&self) -> impl Future<Output = ()> + use<> {
        let mut inner = self.inner();
        inner.number += 1;
        let followed = inner.followed.take();
        let stopped = followed.map(|followed| followed.task.stop());
        async move {
            if let Some(stopped) = stopped {
                stopped.await;
            }
        }
    }

    /// Makes the cluster of the list anew.
    ///
    /// # Errors
    ///
    /// A member could be any program.
    fn rebuild(&self, inner: &mut Inner) -> Result<(), String> {
        let (Some(terms), Some(list)) = (inner.terms.clone(), inner.list.clone()) else {
            self.put(None);
            return Ok(());
        };
        if !terms.secret.is_some() {
            check_loopback(&list)?;
        }
        let before = self.current.load();
        let cluster = Cluster::new(&list, &terms, before.as_deref());
        if let Some(cluster) = &cluster {
            let listed = list.own.map(|own| list.members[own].state);
            let is_front_end = listed == Some(NodeState::FrontEnd);
            if !is_front_end && inner.join == Join::Ahead && list.members.len() > 1 {
                inner.begin_joining();
            }
            cluster.set_own_state(match is_front_end {
                true => NodeState::FrontEnd,
                false => inner.own_state,
            });
        }
        self.put(cluster.map(Arc::new));
        Ok(())
    }

    /// Where members come from, and how that source is; `None` for the configuration.
    pub(crate) fn source(&self) -> Option<(String, SourceReport)> {
        let inner = self.inner();
        let followed = inner.followed.as_ref()?;
        Some((followed.source.to_string(), followed.task.report()))
    }

    /// How many members there are.
    pub(crate) fn count(&self) -> usize {
        let inner = self.inner();
        inner.list.as_ref().map_or(0, |list| list.members.len())
    }

    /// Why this node serves alone although its configuration has a cluster; `None` if it is a
    /// member, or has none.
    pub(crate) fn why_alone(&self) -> Option<String> {
        if self.current().is_some() {
            return None;
        }
        let inner = self.inner();
        inner.terms.as_ref()?;
        let why = match &inner.list {
            Some(list) => format!("none of the {} members is this node", list.members.len()),
            None => "there is no list of members yet".to_owned(),
        };
        let Some(followed) = &inner.followed else {
            return Some(why);
        };
        let source = &followed.source;
        let why = match inner.list {
            Some(_) => format!("{why}: {}", followed.own.lacking()),
            None => why,
        };
        Some(match followed.task.report().problem {
            Some(problem) => format!("{why} ({source}: {problem})"),
            None => format!("{why} ({source})"),
        })
    }

    /// The cluster for an operator; `None` if the configuration has none. `reads_waiting` are reads
    /// that wait for the disk of this node.
    pub(crate) fn report(&self, now: Now, reads_waiting: u32) -> Option<ClusterReport> {
        let source = self.source().map(|(source, report)| MembersReport {
            source,
            problem: report.problem,
            errors: report.errors,
            age_ms: report.age.map(|age| {
                let ms = age.as_millis();
                u64::try_from(ms).unwrap_or(u64::MAX)
            }),
        });
        let report = match self.current() {
            Some(cluster) => cluster.report(now, reads_waiting),
            None => self.report_of_others()?,
        };
        let problem = self.own_url.problem(Instant::now());
        Some(ClusterReport {
            source,
            problem,
            ..report
        })
    }

    /// Of a cluster that this node is not a member of, or knows no member of.
    fn report_of_others(&self) -> Option<ClusterReport> {
        let inner = self.inner();
        let policy = inner.terms.as_ref()?.balancing.policy.as_str();
        let list = inner.list.as_ref();
        let members = list.into_iter().flat_map(|list| &list.members);
        Some(ClusterReport {
            node: None,
            policy,
            source: None,
            problem: None,
            members: members.map(MemberReport::unknown).collect(),
        })
    }
}

/// The members that a configuration lists.
fn list_of(config: &Config) -> Option<MemberList> {
    let node = config.cluster.node.as_deref()?;
    let members = config.cluster.members.iter();
    let members = members.map(|member| weir_cluster::Member {
        name: member.name.clone(),
        hop: (&member.url).into(),
        weight: Weight::new(member.weight).unwrap_or(Weight::ONE),
        state: match member.front_end {
            true => NodeState::FrontEnd,
            false => NodeState::In,
        },
    });
    let mut members: Vec<weir_cluster::Member> = members.collect();
    members.sort_by(|one, other| one.name.cmp(&other.name));
    let own = members.iter().position(|member| member.name == node);
    Some(MemberList { members, own })
}

/// Refuses members beyond the loopback: without a secret nothing proves that they are members.
fn check_loopback(list: &MemberList) -> Result<(), String> {
    let is_loopback = |host: &str| {
        let ip: Option<IpAddr> = host.parse().ok();
        ip.is_some_and(|ip| ip.is_loopback())
    };
    let mut members = list.members.iter();
    match members.find(|member| !is_loopback(&member.hop.host)) {
        None => Ok(()),
        Some(member) => Err(format!(
            "`{}` at http://{} is not on the loopback, and there is no cluster.secret_file to prove that it is a member",
            member.name, member.hop
        )),
    }
}

/// What the lists of one source become.
struct Sink {
    /// It outlives the cluster of a proxy that ends.
    membership: Weak<Membership>,
    number: u64,
    source: String,
    own: OwnNode,
    counters: Arc<Counters>,
    say: Say,
}

impl MemberSink for Sink {
    fn put_in_force(&self, list: &MemberList) -> Result<(), String> {
        let Some(membership) = self.membership.upgrade() else {
            return Ok(());
        };
        let mut inner = membership.inner();
        if inner.number != self.number {
            return Ok(());
        }
        let before = inner.list.replace(list.clone());
        let rebuilt = membership.rebuild(&mut inner);
        if rebuilt.is_err() {
            inner.list = before;
            return rebuilt;
        }
        drop(inner);
        let members = list.members.len();
        let alone = match list.own {
            Some(_) => String::new(),
            None => {
                let lacking = self.own.lacking();
                format!(", none of which is this node ({lacking}): it serves alone")
            }
        };
        self.tell(&format!("members {members}{alone}"));
        Ok(())
    }

    fn has_members(&self) -> bool {
        let membership = self.membership.upgrade();
        membership.is_some_and(|membership| membership.inner().list.is_some())
    }

    fn count_error(&self) {
        self.counters.add_shared(Metric::MemberSourceErrors, 1);
    }

    fn tell(&self, line: &str) {
        (self.say)(&format!("cluster: {}: {line}", self.source));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::placement::Placement;
    use weir_policy::route::Place;
    use weir_semantics::{PeerReport, Timestamp};

    const NOW: Now = Now {
        wall: Timestamp(0),
        tick: Tick(0),
    };

    fn member(name: &str, host: &str) -> weir_cluster::Member {
        weir_cluster::Member {
            name: name.to_owned(),
            hop: HopKey::new(host, 4000 + u16::from(name.as_bytes()[0])),
            weight: Weight::ONE,
            state: NodeState::In,
        }
    }

    fn list(names: &[&str], own: &str) -> MemberList {
        let members = names.iter().map(|name| member(name, "127.0.0.1"));
        MemberList {
            members: members.collect(),
            own: names.iter().position(|name| *name == own),
        }
    }

    fn sink(membership: &Arc<Membership>, number: u64) -> Sink {
        Sink {
            membership: Arc::downgrade(membership),
            number,
            source: "file:m.toml".into(),
            own: OwnNode {
                name: None,
                listeners: Vec::new(),
                hop: None,
                weight: Weight::ONE,
            },
            counters: Arc::new(Counters::new()),
            say: Arc::new(|_| {}),
        }
    }

    fn membership(secret: Option<&str>) -> Arc<Membership> {
        let membership = Arc::new(Membership::default());
        let mut config = Config::default();
        config.cluster.source = "file:m.toml".parse().unwrap();
        membership.configure(&config, &ClusterSecret::new(secret));
        membership
    }

    /// Outstanding requests of each member.
    fn outstanding(membership: &Membership) -> Vec<(String, u32)> {
        let report = membership.report(NOW, 0).unwrap();
        let members = report.members.into_iter();
        members.map(|it| (it.name, it.outstanding)).collect()
    }

    #[test]
    fn request_in_flight_counts_at_its_node_whatever_place_that_has() {
        let membership = membership(None);
        let sink = sink(&membership, 0);
        sink.put_in_force(&list(&["b", "c"], "b")).unwrap();
        let first = membership.current().unwrap();
        let (asked, served) = (first.state().ask(Place(1)), first.state().serve());
        sink.put_in_force(&list(&["a", "b", "c"], "b")).unwrap();
        let counts = |of: [u32; 3]| {
            let names = ["a", "b", "c"].map(str::to_owned);
            names.into_iter().zip(of).collect::<Vec<_>>()
        };
        assert_eq!(outstanding(&membership), counts([0, 1, 1]));
        let second = membership.current().unwrap().state().ask(Place(2));
        assert_eq!(outstanding(&membership), counts([0, 1, 2]));
        drop((asked, served));
        assert_eq!(outstanding(&membership), counts([0, 0, 1]));
        drop(second);
        assert_eq!(outstanding(&membership), counts([0, 0, 0]));
    }

    #[test]
    fn answer_to_a_request_of_before_a_reload_does_not_change_whether_nodes_agree() {
        let membership = membership(None);
        let sink = sink(&membership, 0);
        let note = |cluster: &Cluster, placement| {
            let report = PeerReport {
                node: "b",
                state: "in",
                outstanding: 0,
                miss_pressure: 0,
                placement: Some(placement),
                proof: "",
                is_own: true,
                is_unlisted: false,
                process: None,
            };
            cluster.note_placement(Place(1), &report)
        };
        let differs = || {
            let report = membership.report(NOW, 0).unwrap();
            report.members[1].placement_differs
        };
        sink.put_in_force(&list(&["a", "b"], "a")).unwrap();
        let placement = |names: &[&str]| {
            let inner = membership.inner();
            let ClusterTerms { balancing, secret } = inner.terms.as_ref().unwrap();
            Placement::new(&secret.target_key(), balancing, &list(names, "a").members).get()
        };
        let before = membership.current().unwrap();
        let (first, second) = (placement(&["a", "b"]), placement(&["a", "b", "c"]));
        assert_eq!((note(&before, first), differs()), (None, false));
        sink.put_in_force(&list(&["a", "b", "c"], "a")).unwrap();
        let current = membership.current().unwrap();
        assert!(differs(), "it has not said its new one");
        assert_eq!((note(&current, second), differs()), (None, false));
        assert_eq!((note(&before, first), differs()), (None, false));
        assert_eq!((note(&current, first), differs()), (Some(true), true));
    }

    #[test]
    fn node_that_is_not_listed_is_in_no_cluster() {
        let membership = membership(None);
        let sink = sink(&membership, 0);
        let why = membership.why_alone();
        assert_eq!(why.as_deref(), Some("there is no list of members yet"));
        sink.put_in_force(&list(&["a", "b"], "c")).unwrap();
        assert!(membership.current().is_none());
        let report = membership.report(NOW, 0).unwrap();
        assert_eq!((report.node, report.members.len()), (None, 2));
        let why = membership.why_alone();
        assert_eq!(why.as_deref(), Some("none of the 2 members is this node"));
        sink.put_in_force(&list(&["a", "b", "c"], "c")).unwrap();
        assert!(membership.current().is_some());
    }

    #[test]
    fn list_with_a_member_beyond_the_loopback_needs_a_secret() {
        let away = MemberList {
            members: vec![member("a", "127.0.0.1"), member("b", "192.0.2.1")],
            own: Some(0),
        };
        let check = |secret: Option<&str>, expected: bool| {
            let membership = membership(secret);
            let sink = sink(&membership, 0);
            sink.put_in_force(&list(&["a", "c"], "a")).unwrap();
            let result = sink.put_in_force(&away);
            assert_eq!(result.is_ok(), expected, "{result:?}");
            let second = membership.current().unwrap();
            let name = if expected { "b" } else { "c" };
            assert_eq!(second.name(Place(1)), name);
        };
        check(None, false);
        check(Some("a-secret-that-all-members-have"), true);
    }

    #[test]
    fn list_of_a_source_that_is_not_followed_any_more_is_dropped() {
        let membership = membership(None);
        let sink = sink(&membership, 7);
        sink.put_in_force(&list(&["a", "b"], "a")).unwrap();
        assert!(membership.current().is_none());
    }

    #[test]
    fn node_with_others_is_joining_for_the_time_that_is_set_and_once() {
        let membership = Arc::new(Membership::default());
        let mut config = Config::default();
        config.cluster.source = "file:m.toml".parse().unwrap();
        config.cluster.join_time = "10s".parse().unwrap();
        membership.configure(&config, &ClusterSecret::new(None));
        let sink = sink(&membership, 0);
        let state = |expected: &str| {
            let report = membership.report(NOW, 0).unwrap();
            let mut members = report.members.iter();
            assert_eq!(members.find(|it| it.is_own).unwrap().state, expected);
        };
        sink.put_in_force(&list(&["a"], "a")).unwrap();
        membership.tick(Tick(1_000));
        state("in");
        sink.put_in_force(&list(&["a", "b"], "a")).unwrap();
        state("joining");
        membership.tick(Tick(2_000));
        sink.put_in_force(&list(&["a", "b", "c"], "a")).unwrap();
        membership.tick(Tick(11_999));
        state("joining");
        membership.tick(Tick(12_000));
        state("in");
        sink.put_in_force(&list(&["a", "b"], "a")).unwrap();
        membership.tick(Tick(90_000));
        state("in");
        membership.set_draining(true);
        sink.put_in_force(&list(&["a", "b", "c"], "a")).unwrap();
        state("draining");
        assert!(membership.is_draining());
        membership.set_draining(false);
        state("in");
    }
}
