//! A conversation with a policy, in lines.
//!
//! ```text
//! nodes a b c:2                      names, and weights other than 1
//! load a=30 b=70                     outstanding requests
//! state c=draining
//! time a=1000                        microseconds
//! pressure a=6
//! holds b=yes c=no                   what is known of every target, until told otherwise
//! at 21s
//! order /x -> a c b                  by distance, costs of `hash`
//! request /x -> a first-in-order
//! request /x by b -> a lateral       on a connection that `b` handles
//! held /x by a                       corrects the table
//! lost /x by a
//! ```
//!
//! `request /x x3` is three of them; equal answers are written once. Loads change by `load` alone.

use super::random::hash_of;
use super::stage::Stage;
use std::num::NonZeroU32;
use weir_policy::Tick;
use weir_policy::route::policy::{Hash, Policy, PolicyKind, PolicyRules, RoutedRequest};
use weir_policy::route::{
    ClusterView, HoldsIt, Load, Node, NodeKey, NodeState, Place, TargetKey, Weight,
};

/// A policy, and the cluster that it sees.
pub(crate) struct PolicyStage {
    policy: Box<dyn Policy>,
    now: Tick,
    names: Vec<String>,
    nodes: Vec<Node>,
    holds: Vec<HoldsIt>,
    choices: u64,
}

impl Stage for PolicyStage {
    fn new(kind: PolicyKind) -> Self {
        Self {
            policy: kind.build(&PolicyRules::PRESET_1999, 1),
            now: Tick(0),
            names: Vec::new(),
            nodes: Vec::new(),
            holds: Vec::new(),
            choices: 0,
        }
    }

    fn play(&mut self, line: &str) -> String {
        let (event, rest) = line.split_once(' ').unwrap();
        match event {
            "nodes" => self.set_nodes(rest),
            "at" => self.now = Tick(rest.strip_suffix('s').unwrap().parse::<u64>().unwrap() * 1000),
            "load" => self.each(rest, |node, value| {
                node.load = Load::requests(value.parse().unwrap());
            }),
            "time" => self.each(rest, |node, value| {
                node.response_time_us = NonZeroU32::new(value.parse().unwrap());
            }),
            "pressure" => self.each(rest, |node, value| {
                node.miss_pressure = value.parse().unwrap();
            }),
            "state" => self.each(rest, |node, value| {
                let is_named = |state: &NodeState| state.as_str() == value;
                node.state = NodeState::ALL.into_iter().find(is_named).unwrap();
            }),
            "holds" => self.set_holds(rest),
            "held" | "lost" => {
                let (target, name) = rest.split_once(" by ").unwrap();
                let place = self.place(name);
                self.policy
                    .correct(target_of(target), place, event == "held");
            }
            "order" => return self.order(rest),
            "request" => return self.request(rest),
            other => panic!("no event `{other}`"),
        }
        line.to_owned()
    }
}

impl PolicyStage {
    fn set_nodes(&mut self, text: &str) {
        for node in text.split(' ') {
            let (name, weight) = node.split_once(':').unwrap_or((node, "1"));
            self.names.push(name.to_owned());
            self.nodes.push(Node {
                weight: Weight::new(weight.parse().unwrap()).unwrap(),
                ..Node::new(NodeKey(hash_of(name)))
            });
            self.holds.push(HoldsIt::Unknown);
        }
    }

    fn each(&mut self, text: &str, mut set: impl FnMut(&mut Node, &str)) {
        for pair in text.split(' ') {
            let (name, value) = pair.split_once('=').unwrap();
            let place = self.place(name);
            set(&mut self.nodes[place.index()], value);
        }
    }

    fn set_holds(&mut self, text: &str) {
        for pair in text.split(' ') {
            let (name, value) = pair.split_once('=').unwrap();
            let place = self.place(name);
            let is_named = |holds: &HoldsIt| holds.as_str() == value;
            self.holds[place.index()] = HoldsIt::ALL.into_iter().find(is_named).unwrap();
        }
    }

    fn place(&self, name: &str) -> Place {
        let index = self.names.iter().position(|other| other == name).unwrap();
        Place(u16::try_from(index).unwrap())
    }

    fn order(&self, text: &str) -> String {
        let target = text.split(' ').next().unwrap();
        let view = ClusterView::new(&self.nodes);
        let request = RoutedRequest::new(target_of(target), 0);
        let mut names = self.names.clone();
        names.sort_by_key(|name| Hash.costs(&view, &request, self.place(name)).total());
        format!("order {target} -> {}", names.join(" "))
    }

    fn request(&mut self, text: &str) -> String {
        let (asked, _) = text.split_once(" -> ").unwrap_or((text, ""));
        let (rest, times) = match asked.rsplit_once(" x") {
            Some((rest, times)) => (rest, times.parse().unwrap()),
            None => (asked, 1),
        };
        let (target, handling) = match rest.split_once(" by ") {
            Some((target, name)) => (target, Some(self.place(name))),
            None => (rest, None),
        };
        let answers = (0..times).map(|_| self.choose(target, handling));
        let mut answers: Vec<String> = answers.collect();
        if answers.windows(2).all(|pair| pair[0] == pair[1]) {
            answers.truncate(1);
        }
        format!("request {asked} -> {}", answers.join(", "))
    }

    fn choose(&mut self, target: &str, handling: Option<Place>) -> String {
        self.choices += 1;
        let request = RoutedRequest {
            handling,
            ..RoutedRequest::new(target_of(target), hash_of(&self.choices.to_string()))
        };
        let view = ClusterView::new(&self.nodes).with_holds(&self.holds);
        match self.policy.choose(self.now, &view, &request) {
            Some(choice) => format!(
                "{} {}",
                self.names[choice.place.index()],
                choice.why.as_str()
            ),
            None => "none".to_owned(),
        }
    }
}

fn target_of(text: &str) -> TargetKey {
    TargetKey(hash_of(text))
}
