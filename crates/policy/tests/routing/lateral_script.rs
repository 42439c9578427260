//! A conversation with a node's view of its cluster, in lines.
//!
//! ```text
//! node a of a b c                 this node, and all, by place; later, the members have changed
//! order /x -> a c b               by distance
//! state c=draining                as the list of members has it
//! answered b in load=40           what it said of itself with a response, after 1 ms
//! answered b in load=0 pressure=5
//! failed b                        it did not answer as a member does
//! silent b since 3s               it was asked then, and said nothing
//! serving 50                      requests that this node serves
//! pressure 5                      reads and fetches of this node that wait
//! asked b 7                       requests of this node that are outstanding at b
//! digest b has /x                 as far as its digest says; `lacks`, `unknown`
//! at 21s
//! client /x -> c first-in-order           asks c, which keeps the response
//! client /x -> c replica, copied          this node keeps it, too
//! client /x -> origin first-in-order      this node is the owner
//! client /x after c b -> origin           they were asked in vain
//! node b /x -> a previous-owner, copied, stored only
//! known b -> gone for 7000 ms
//! stored /x -> b lateral, stored only     for what is on the disk of this node
//! stored /x without b -> read disk-busy   b may not be asked
//! held b /x                       b had it in memory when it was asked; `lost`
//! ```

use super::random::hash_of;
use super::stage::Stage;
use std::collections::BTreeMap;
use weir_policy::route::policy::{Hash, Policy as _, PolicyKind, RoutedRequest};
use weir_policy::route::{
    AskedBy, Balancing, ClusterView, HoldsIt, LateralRequest, Members, Node, NodeKey, NodeReport,
    NodeState, Place, Source, StoredRequest, TargetKey,
};
use weir_policy::{Handling, Tick};
use weir_semantics::{Fwd, Method};

/// A node, and what it knows of its cluster.
pub(crate) struct NodeStage {
    kind: PolicyKind,
    now: Tick,
    names: Vec<String>,
    nodes: Vec<Node>,
    requests: Vec<u32>,
    held: BTreeMap<(Place, String), HoldsIt>,
    members: Members,
}

impl Stage for NodeStage {
    fn new(kind: PolicyKind) -> Self {
        Self {
            kind,
            now: Tick(0),
            names: Vec::new(),
            nodes: Vec::new(),
            requests: Vec::new(),
            held: BTreeMap::new(),
            members: Members::new(Vec::new(), Place(0), &Balancing::default(), 1),
        }
    }

    fn play(&mut self, line: &str) -> String {
        let (event, rest) = line.split_once(' ').unwrap();
        match event {
            "node" if rest.contains(" of ") => self.set_nodes(rest),
            "at" => self.now = at(rest),
            "state" => {
                let (name, state) = rest.split_once('=').unwrap();
                let place = self.place(name);
                self.members
                    .set_state(place, NodeState::named(state).unwrap());
            }
            "answered" => self.answered(rest),
            "failed" => {
                let place = self.place(rest);
                self.members.failed(self.now, place, None);
            }
            "silent" => {
                let (name, since) = rest.split_once(" since ").unwrap();
                let place = self.place(name);
                self.members.failed(self.now, place, Some(at(since)));
            }
            "pressure" => self.members.set_own_pressure(rest.parse().unwrap()),
            "serving" => self.requests[self.members.own().index()] = rest.parse().unwrap(),
            "asked" => {
                let (name, requests) = rest.split_once(' ').unwrap();
                let place = self.place(name);
                self.requests[place.index()] = requests.parse().unwrap();
            }
            "digest" => {
                let [name, says, target] = rest.split(' ').collect::<Vec<_>>().try_into().unwrap();
                let holds = match says {
                    "has" => HoldsIt::Yes,
                    "lacks" => HoldsIt::No,
                    _ => HoldsIt::Unknown,
                };
                self.held
                    .insert((self.place(name), target.to_owned()), holds);
            }
            "held" | "lost" => {
                let (name, target) = rest.split_once(' ').unwrap();
                let place = self.place(name);
                self.members
                    .correct(TargetKey(hash_of(target)), place, event == "held");
            }
            "stored" => return self.stored(rest),
            "order" => return self.order(rest),
            "client" => return self.request("client", AskedBy::Client, rest),
            "node" => {
                let (name, rest) = rest.split_once(' ').unwrap();
                let by = AskedBy::Node(self.place(name));
                return self.request(&format!("node {name}"), by, rest);
            }
            "known" => return self.known(rest),
            other => panic!("no event `{other}`"),
        }
        line.to_owned()
    }
}

impl NodeStage {
    fn set_nodes(&mut self, text: &str) {
        let (own, all) = text.split_once(" of ").unwrap();
        let before =
            std::mem::replace(&mut self.names, all.split(' ').map(str::to_owned).collect());
        let nodes = self.names.iter();
        self.nodes = nodes
            .map(|name| Node::new(NodeKey(hash_of(name))))
            .collect();
        self.requests = vec![0; self.nodes.len()];
        let balancing = Balancing {
            policy: self.kind,
            ..Balancing::default()
        };
        let members = Members::new(self.nodes.clone(), self.place(own), &balancing, 1);
        let mut left = std::mem::replace(&mut self.members, members);
        let places = before
            .iter()
            .map(|name| self.names.contains(name).then(|| self.place(name)));
        self.members
            .take_over(&mut left, &places.collect::<Vec<_>>());
    }

    fn answered(&mut self, text: &str) {
        let (text, pressure) = text.split_once(" pressure=").unwrap_or((text, "0"));
        let [name, state, load] = text.split(' ').collect::<Vec<_>>().try_into().unwrap();
        let report = NodeReport {
            state: NodeState::named(state).unwrap(),
            outstanding: load.strip_prefix("load=").unwrap().parse().unwrap(),
            miss_pressure: pressure.parse().unwrap(),
        };
        self.members
            .answered(self.now, self.place(name), 1000, report);
    }

    fn place(&self, name: &str) -> Place {
        let index = self.names.iter().position(|other| other == name).unwrap();
        Place(u16::try_from(index).unwrap())
    }

    fn name(&self, place: Place) -> &str {
        &self.names[place.index()]
    }

    fn order(&self, text: &str) -> String {
        let target = text.split(' ').next().unwrap();
        let view = ClusterView::new(&self.nodes);
        let request = RoutedRequest::new(TargetKey(hash_of(target)), 0);
        let mut names = self.names.clone();
        names.sort_by_key(|name| Hash.costs(&view, &request, self.place(name)).total());
        format!("order {target} -> {}", names.join(" "))
    }

    fn request(&mut self, asker: &str, by: AskedBy, text: &str) -> String {
        let (asked, _) = text.split_once(" -> ").unwrap_or((text, ""));
        let (target, failed) = asked.split_once(" after ").unwrap_or((asked, ""));
        let failed = failed.split_whitespace().map(|name| self.place(name));
        let failed: Vec<Place> = failed.collect();
        let handling = Handling::Forward(Fwd::UriMiss);
        let source = match LateralRequest::of(handling, by, true, &failed) {
            Some(request) => {
                let says = |place: Place| self.held.get(&(place, target.to_owned()));
                let holds = |place: Place| says(place).copied().unwrap_or(HoldsIt::Unknown);
                let request = request.with_holds(&holds);
                let target = TargetKey(hash_of(target));
                let requests = |place: Place| self.requests[place.index()];
                self.members.source(self.now, target, request, requests)
            }
            None => Source {
                node: None,
                why: None,
            },
        };
        format!("{asker} {asked} -> {}", self.answer(&source))
    }

    fn stored(&mut self, text: &str) -> String {
        let (asked, _) = text.split_once(" -> ").unwrap();
        let (target, without) = asked.split_once(" without ").unwrap_or((asked, ""));
        let without = without.split_whitespace().map(|name| self.place(name));
        let without: Vec<Place> = without.collect();
        let says = |place: Place| self.held.get(&(place, target.to_owned()));
        let holds = |place: Place| says(place).copied().unwrap_or(HoldsIt::Unknown);
        let request = LateralRequest::instead_of_read(&STORED, || true)
            .expect("rule 8 applies")
            .with_holds(&holds)
            .without(&without);
        let requests = |place: Place| self.requests[place.index()];
        let key = TargetKey(hash_of(target));
        let source = self
            .members
            .source_of_stored(self.now, key, request, requests);
        let answer = match source {
            None => "read".to_owned(),
            Some(source) => self.answer(&source).replace("origin", "read"),
        };
        format!("stored {asked} -> {answer}")
    }

    fn answer(&self, source: &Source) -> String {
        let mut answer = match source.node {
            Some(node) => self.name(node.place).to_owned(),
            None => "origin".to_owned(),
        };
        if let Some(why) = source.why {
            answer.push(' ');
            answer.push_str(why.as_str());
        }
        if source.node.is_some_and(|node| node.is_copied) {
            answer.push_str(", copied");
        }
        if source.node.is_some_and(|node| node.is_stored_only) {
            answer.push_str(", stored only");
        }
        answer
    }

    fn known(&self, text: &str) -> String {
        let name = text.split(' ').next().unwrap();
        let known = self.members.known(self.now, self.place(name));
        match known.ejected_for_ms {
            Some(ms) => format!("known {name} -> {} for {ms} ms", known.state.as_str()),
            None => format!("known {name} -> {}", known.state.as_str()),
        }
    }
}

/// A request of a client for what is on the disk of its node, with the policy that looks at that.
pub(crate) const STORED: StoredRequest = StoredRequest {
    policy: PolicyKind::ExtendedLard,
    asked_by: Some(AskedBy::Client),
    method: Method::Get,
    is_no_cache: false,
    is_for_caches_alone: false,
    is_background: false,
    has_variant: false,
};

fn at(text: &str) -> Tick {
    Tick(text.strip_suffix('s').unwrap().parse::<u64>().unwrap() * 1000)
}
