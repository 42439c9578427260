//! The cluster with its network, its clients and its origin, and what happens to it.

use super::log::Log;
use super::model_tally::Tally;
use super::node::Process;
use super::purge::{Purge, WAIT_MS};
use super::random::{Random, hash_of};
use super::request::{Answer, OnDisk, Request, RequestId, Stage};
use std::collections::BTreeMap;
use weir_policy::Tick;
use weir_policy::route::policy::PolicyKind;
use weir_policy::route::{AskedBy, Balancing, Members, Node, NodeKey, NodeState, Place, TargetKey};

/// Rules around the choice of a node, each of which can be left out. The live proxy does not have
/// all of them (`docs/cluster.md`, Limits): without a log of purges, it leaves `holds_at_start` and
/// `validates_after_absence` to its operator; with one, `remembers_what_was_missed`.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a rule by itself")]
pub(crate) struct Rules {
    /// A request of a member waits for one that waits for another member: it must not.
    pub(crate) members_wait_for_members: bool,
    /// What was purged is fetched from the origin alone until the purge is over.
    pub(crate) holds: bool,
    /// What is under way when a target is purged is not stored, and no newcomer gets it.
    pub(crate) forgets_fetches: bool,
    /// A node that starts fetches everything from the origin alone for as long as a purge may take.
    pub(crate) holds_at_start: bool,
    /// A node that was no member for a time validates what it has on disk.
    pub(crate) validates_after_absence: bool,
    /// A node that has started, or has lost touch with the log of purges, validates what it had
    /// stored before, until it has read the log.
    pub(crate) validates_without_touch: bool,
    /// It notices that it has lost touch before the others take it for gone.
    pub(crate) loses_touch_before_its_lease: bool,
    /// A node whose next entries were dropped validates all that it had.
    pub(crate) knows_what_was_dropped: bool,
    /// A node that finds another log validates all that it had.
    pub(crate) knows_another_log: bool,
    /// Such a node applies the entries that are there all the same, for what is under way.
    pub(crate) applies_what_is_there: bool,
    /// What must be validated for want of entries must be after a restart, too.
    pub(crate) remembers_what_was_missed: bool,
}

impl Rules {
    /// All of them.
    pub(crate) const ALL: Self = Self {
        members_wait_for_members: false,
        holds: true,
        holds_at_start: true,
        validates_after_absence: true,
        forgets_fetches: true,
        validates_without_touch: true,
        loses_touch_before_its_lease: true,
        knows_what_was_dropped: true,
        knows_another_log: true,
        applies_what_is_there: true,
        remembers_what_was_missed: true,
    };
}

/// How large a cluster is, and how fast time passes in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scale {
    /// Three nodes, one target, and less time than a purge may take: they have to do with each
    /// other.
    Small,
    /// Two or three nodes and a target, with a log of purges, to which most of what happens does.
    Log,
    /// Up to eight nodes and four targets.
    Any,
}

/// What happens, each of it in some run: a model in which it does not has not tested it.
pub(crate) const EVENTS: &[&str] = &[
    // requests
    "hit",
    "followed",
    "lateral",
    "copied",
    "stored-only-hit",
    "stored-only-miss",
    "instead-of-read",
    "read-after-all",
    "unreachable",
    "silent",
    "stranger",
    "report-lost",
    "released",
    "node-without-origin",
    "held-behind-choice",
    "no-origin",
    "probe",
    "by-front-end",
    // nodes
    "join",
    "joined",
    "drain",
    "drain-ended",
    "left",
    "death",
    "flap",
    "start-with-disk",
    "start-without-disk",
    "stands-still",
    "partition",
    "stale-list",
    // purges
    "purged-by-all",
    "purge-not-in-log",
    "purged-by-log",
    "purged-while-a-node-is-away",
    "answered-by-log",
    "log-missed",
    "log-read-after-absence",
    "log-dropped",
    "log-emptied",
    "touch-lost",
    "lease-ended",
    "announced-again",
];

const STEPS: usize = 200;

/// Purges under way at once: of many none would end in time.
const PURGES_MAX: usize = 2;

/// By how much time passes at once, milliseconds.
const JUMPS_MS: [u64; 5] = [1, 20, 400, 3000, 12_000];

pub(crate) struct World {
    pub(crate) rules: Rules,
    scale: Scale,
    pub(crate) random: Random,
    pub(crate) now: Tick,
    /// Nodes have digests of the others.
    pub(crate) has_digests: bool,
    /// Reports and answers arrive, all of them.
    pub(crate) is_quiet: bool,
    pub(crate) balancing: Balancing,
    pub(crate) nodes: Vec<Process>,
    keys: Vec<Node>,
    /// Whether a node can open a connection to another one.
    pub(crate) reach: Vec<Vec<bool>>,
    /// The members as they are: what lists of nodes say sooner or later.
    pub(crate) listed: Vec<NodeState>,
    pub(crate) targets: Vec<TargetKey>,
    /// What the origin has.
    pub(crate) versions: Vec<u64>,
    /// Requests that the origin was sent.
    pub(crate) asked: Vec<u64>,
    pub(crate) requests: BTreeMap<RequestId, Request>,
    next_request: RequestId,
    pub(crate) purges: Vec<Purge>,
    /// Purges in their order, in etcd; nodes of other clusters have none.
    pub(crate) log: Option<Log>,
    /// The oldest version that may be served, as purges were answered.
    pub(crate) purged: Vec<u64>,
    pub(crate) tally: Tally,
}

impl World {
    pub(crate) fn new(seed: u64, scale: Scale, rules: Rules) -> Self {
        let mut random = Random(seed);
        let (count, targets) = match scale {
            Scale::Small => (3, 1),
            Scale::Log => (2 + random.below(2), 1),
            Scale::Any => (1 + random.below(8), 1 + random.below(4)),
        };
        let balancing = Balancing {
            policy: PolicyKind::ALL[random.below(PolicyKind::ALL.len())],
            ..small_tables()
        };
        let keys: Vec<Node> = (0..count)
            .map(|number| Node {
                weight: random.weight(3),
                state: match random.below(9) {
                    // some come later
                    0..3 if number > 0 => NodeState::Gone,
                    3 if number > 0 => NodeState::FrontEnd,
                    _ => NodeState::In,
                },
                ..Node::new(NodeKey(hash_of(&format!("node{number}"))))
            })
            .collect();
        let places = (0..).map(Place);
        let nodes = keys.iter().zip(places).map(|(key, place)| {
            let mut node = Process::new(place, &keys, &balancing, seed, targets);
            node.is_up = key.state != NodeState::Gone;
            node
        });
        let mut world = Self {
            rules,
            scale,
            now: Tick(100_000),
            has_digests: random.below(2) == 0,
            is_quiet: false,
            balancing,
            nodes: nodes.collect(),
            reach: vec![vec![true; count]; count],
            listed: keys.iter().map(|node| node.state).collect(),
            keys,
            targets: (0..targets).map(|_| TargetKey(random.next())).collect(),
            versions: vec![1; targets],
            asked: vec![0; targets],
            requests: BTreeMap::new(),
            next_request: 0,
            purges: Vec::new(),
            log: (scale == Scale::Log || random.below(2) == 0).then(Log::new),
            purged: vec![1; targets],
            tally: Tally::new(EVENTS),
            random,
        };
        for node in 0..count {
            world.begin_log(node);
        }
        world
    }

    /// Lets things happen, then lets the cluster come to rest.
    ///
    /// # Errors
    /// The promise that was broken.
    pub(crate) fn run(mut self) -> Result<Tally, String> {
        // each seed has its own pace
        let jumps = match self.scale {
            // leases end
            Scale::Small if self.log.is_some() && self.random.below(2) == 0 => 4,
            Scale::Small => 2,
            Scale::Log => 4,
            Scale::Any => 1 + self.random.below(JUMPS_MS.len()),
        };
        let [events, purges, clients, messages] = [(); 4].map(|()| 1 + self.random.below(4));
        let (purges, clients) = (events + purges, events + purges + clients);
        let messages = clients + messages;
        for _ in 0..STEPS {
            match self.random.below(30) {
                drawn if drawn < events => self.happen(),
                drawn if drawn < purges => self.purge_one(),
                drawn if drawn < clients => self.ask(),
                drawn if drawn < messages => self.tell(),
                27.. if self.scale == Scale::Log => self.pass_time(jumps),
                29 => self.pass_time(jumps),
                _ => self.step_one()?,
            }
            self.check()?;
        }
        self.come_to_rest()?;
        self.check_quiet()?;
        Ok(self.tally)
    }

    fn check(&self) -> Result<(), String> {
        match self.nodes.iter().find(|node| !node.has_bounded_tables()) {
            Some(node) => Err(format!("tables of node {} grew", node.place.0)),
            None => Ok(()),
        }
    }

    /// Whether a connection from one node to another can be had.
    pub(crate) fn can_connect(&self, from: usize, to: usize) -> bool {
        self.nodes[from].is_up && self.nodes[to].is_up && self.reach[from][to]
    }

    /// A client asks a node.
    fn ask(&mut self) {
        let at = self.random.below(self.nodes.len());
        let target = self.random.below(self.targets.len());
        self.ask_at(at, target);
    }

    pub(crate) fn ask_at(&mut self, at: usize, target: usize) {
        if self.nodes[at].is_up {
            self.add(Request {
                at,
                target,
                asked_by: AskedBy::Client,
                is_stored_only: false,
                parent: None,
                way: vec![at],
                version_min: self.version_min(at, target),
                failed: Vec::new(),
                at_origin: None,
                is_alone: false,
                on_disk: OnDisk::Unread,
                stage: Stage::New,
            });
        }
    }

    pub(crate) fn add(&mut self, request: Request) -> RequestId {
        let node = &mut self.nodes[request.at];
        node.requests[request.at] += 1;
        self.next_request += 1;
        self.requests.insert(self.next_request, request);
        self.next_request
    }

    fn step_one(&mut self) -> Result<(), String> {
        if self.requests.is_empty() {
            return Ok(());
        }
        let index = self.random.below(self.requests.len());
        let id = *self.requests.keys().nth(index).unwrap();
        self.step(id).map(|_| ())
    }

    fn pass_time(&mut self, jumps: usize) {
        let ms = JUMPS_MS[self.random.below(jumps)];
        self.now = self.now.plus_ms(ms);
        self.pass_log_time();
    }

    fn happen(&mut self) {
        let node = self.random.below(self.nodes.len());
        let other = self.random.below(self.nodes.len());
        let (of_log, of_all) = match self.scale {
            Scale::Log => (3, 4),
            Scale::Small | Scale::Any => (1, 2),
        };
        if self.log.is_some() && self.random.below(of_all) < of_log {
            self.happen_to_log(node);
            return;
        }
        let drawn = match self.scale {
            Scale::Log => [1, 1, 2, 10][self.random.below(4)],
            Scale::Small | Scale::Any => self.random.below(12),
        };
        match drawn {
            0 => {
                self.count_if("death", self.nodes[node].is_up);
                self.end(node);
            }
            1 => {
                self.count_if("flap", self.nodes[node].is_up);
                self.end(node);
                self.start(node);
            }
            2 | 3 => self.start(node),
            4 => {
                self.count_if("stands-still", self.nodes[node].is_up);
                self.nodes[node].is_silent = self.nodes[node].is_up;
            }
            5 => self.nodes[node].is_silent = false,
            6 => {
                let is_open = node == other || self.random.below(2) == 0;
                self.count_if("partition", !is_open);
                self.reach[node][other] = is_open;
            }
            7 => self.nodes[node].has_origin = self.random.below(3) > 0,
            8 => self.change_state(node),
            9 => self.nodes[node].others = [0, 35, 200][self.random.below(3)],
            _ => {
                let listed = self.listed.clone();
                self.count_if("stale-list", self.nodes[node].listed != listed);
                self.nodes[node].learn(&listed);
            }
        }
    }

    fn count_if(&mut self, name: &str, happens: bool) {
        if happens {
            self.tally.count(name);
        }
    }

    fn purge_one(&mut self) {
        let node = self.random.below(self.nodes.len());
        if self.nodes[node].is_up && self.purges.len() < PURGES_MAX {
            let target = self.random.below(self.targets.len());
            self.purge(node, target);
        }
    }

    /// A process ends, by `kill -9`.
    fn end(&mut self, node: usize) {
        if !self.nodes[node].is_up {
            return;
        }
        self.nodes[node].end();
        self.purges.retain(|purge| purge.at != node);
        let here = self.requests.values_mut();
        for request in here.filter(|request| request.at == node) {
            request.stage = Stage::Over(Answer::Broken);
        }
        self.requests
            .retain(|_, request| request.at != node || request.parent.is_some());
    }

    /// A process of a node that has none begins.
    pub(crate) fn start(&mut self, node: usize) {
        if self.nodes[node].is_up {
            return;
        }
        let mut nodes = self.keys.clone();
        for (node, state) in nodes.iter_mut().zip(&self.listed) {
            node.state = *state;
        }
        let place = self.nodes[node].place;
        let members = Members::new(nodes, place, &self.balancing, self.random.next());
        let keeps_store = self.random.below(2) == 0;
        self.tally.count(if keeps_store {
            "start-with-disk"
        } else {
            "start-without-disk"
        });
        if self.listed[node] == NodeState::Gone {
            let is_front_end = self.nodes[node].is_front_end;
            self.count_if("join", !is_front_end);
            self.list(
                node,
                if is_front_end {
                    NodeState::FrontEnd
                } else {
                    NodeState::Joining
                },
            );
            // with a log, a node reads there what it has missed
            if self.rules.validates_after_absence && self.log.is_none() {
                let copies = self.nodes[node].stored.iter_mut().flatten();
                copies.for_each(|copy| copy.is_doubtful = true);
            }
        }
        let listed = self.listed.clone();
        let process = &mut self.nodes[node];
        process.listed = listed;
        process.start(members, keeps_store);
        if self.rules.holds_at_start {
            process.held.fill(self.now.plus_ms(WAIT_MS));
        }
        self.begin_log(node);
    }

    pub(crate) fn list(&mut self, node: usize, state: NodeState) {
        self.listed[node] = state;
        let place = self.nodes[node].place;
        self.nodes[node].listed[node] = state;
        self.nodes[node].members.set_state(place, state);
    }

    /// A node goes on in its life: it has joined, drains, or leaves. One stays in.
    fn change_state(&mut self, node: usize) {
        let (event, next) = match self.listed[node] {
            NodeState::Joining => ("joined", NodeState::In),
            NodeState::In if node > 0 => ("drain", NodeState::Draining),
            NodeState::Draining if self.random.below(2) == 0 => ("drain-ended", NodeState::In),
            NodeState::Draining | NodeState::FrontEnd => {
                self.end(node);
                ("left", NodeState::Gone)
            }
            _ => return,
        };
        self.tally.count(event);
        self.list(node, next);
    }
}

/// Tables of a few targets, so that some are forgotten.
fn small_tables() -> Balancing {
    use weir_policy::route::policy::{MappedMax, PolicyRules};
    Balancing {
        rules: PolicyRules {
            mapped_max: MappedMax::new(3),
            ..PolicyRules::default()
        },
        ..Balancing::default()
    }
}
