//! One step of one request: what the live proxy does between two waits.

use super::node::Copy;
use super::request::{Answer, OnDisk, OriginReason, Request, RequestId, Stage};
use super::world::World;
use weir_policy::Handling;
use weir_policy::route::policy::PolicyKind;
use weir_policy::route::{
    AskedBy, AskedNode, HoldsIt, LateralRequest, NODES_ASKED_MAX, NodeState, Place, StoredRequest,
    Why,
};
use weir_semantics::{Fwd, Method};

impl World {
    /// Moves a request on; whether it could move.
    ///
    /// # Errors
    /// The promise that was broken.
    pub(crate) fn step(&mut self, id: RequestId) -> Result<bool, String> {
        let mut request = self.requests.remove(&id).unwrap();
        if let Stage::Over(_) = request.stage {
            let is_awaited = self.is_awaited(&request);
            if is_awaited {
                self.requests.insert(id, request);
            }
            return Ok(!is_awaited);
        }
        if self.nodes[request.at].is_silent {
            self.requests.insert(id, request);
            return Ok(false);
        }
        let before = request.stage;
        let answer = self.advance(id, &mut request)?;
        let has_moved = answer.is_some() || request.stage != before;
        match answer {
            None => {
                self.requests.insert(id, request);
            }
            Some(answer) => self.finish(id, request, answer)?,
        }
        Ok(has_moved)
    }

    fn advance(&mut self, id: RequestId, request: &mut Request) -> Result<Option<Answer>, String> {
        match request.stage {
            Stage::New => return Ok(self.look_up(id, request)),
            Stage::Following(leader) => {
                if !self.requests.contains_key(&leader) {
                    return Err(format!("request {id} follows none"));
                }
            }
            Stage::Choosing => request.stage = Stage::Sending(self.choose(request)?),
            Stage::Sending(None) => {
                let ticket = self.nodes[request.at].tickets[request.target];
                request.stage = Stage::AtOrigin { ticket };
            }
            Stage::Sending(Some(node)) => self.send(id, request, node)?,
            Stage::AtNode {
                node,
                child,
                ticket,
                since,
            } => {
                if let Stage::Over(answer) = self.requests[&child].stage {
                    self.requests.remove(&child);
                    self.take(request, node, ticket, answer);
                } else if !self.can_answer(request.at, node.place.index()) {
                    self.tally.count("silent");
                    self.requests.get_mut(&child).unwrap().parent = None;
                    self.leave(request, node);
                    self.pass(request, node.place, Some(since));
                }
            }
            Stage::AtSilentNode { node, since } => {
                self.leave(request, node);
                self.pass(request, node.place, Some(since));
            }
            Stage::AtOrigin { ticket } => {
                if !self.nodes[request.at].has_origin {
                    self.tally.count("no-origin");
                    return Ok(Some(Answer::NoOrigin));
                }
                self.asked[request.target] += 1;
                request.stage = Stage::Arriving {
                    version: self.versions[request.target],
                    received: self.now,
                    is_kept: true,
                    ticket,
                };
            }
            Stage::Arriving {
                version,
                received,
                is_kept,
                ticket,
            } => {
                if is_kept {
                    let copy = Copy {
                        version,
                        received,
                        is_doubtful: false,
                    };
                    self.nodes[request.at].keep(request.target, copy, ticket);
                }
                let is_hit = false;
                return Ok(Some(Answer::Version { version, is_hit }));
            }
            Stage::Over(_) => {}
        }
        Ok(None)
    }

    /// Answers from the store, waits for another request, or leads.
    fn look_up(&mut self, id: RequestId, request: &mut Request) -> Option<Answer> {
        let (at, target) = (request.at, request.target);
        if let Some(version) = self.nodes[at].copy(target) {
            if let Some(node) = self.instead_of_read(request) {
                request.on_disk = OnDisk::AskedElsewhere;
                request.stage = Stage::Sending(Some(node));
                return None;
            }
            self.tally.count("hit");
            let is_hit = true;
            return Some(Answer::Version { version, is_hit });
        }
        if request.is_stored_only {
            return Some(Answer::NotStored);
        }
        request.stage = Stage::Choosing;
        if request.is_alone {
            return None;
        }
        match self.nodes[at].leaders.get(&target) {
            None => {
                self.nodes[at].leaders.insert(target, id);
            }
            Some(leader) if self.may_wait(request, *leader) => {
                self.tally.count("followed");
                request.stage = Stage::Following(*leader);
            }
            Some(_) => request.is_alone = true,
        }
        None
    }

    /// The node that is asked for what is stored at this one, if that is on its disk, and the disk
    /// is busy: one in two is.
    fn instead_of_read(&mut self, request: &Request) -> Option<AskedNode> {
        let is_client = request.asked_by == AskedBy::Client;
        let may_ask = is_client && request.on_disk == OnDisk::Unread && self.random.below(2) == 0;
        if !may_ask || self.nodes[request.at].held[request.target] > self.now {
            return None;
        }
        let holds = self.holds(request.target);
        let holds = |place: Place| holds[place.index()];
        let stored = StoredRequest {
            policy: PolicyKind::ExtendedLard,
            asked_by: Some(AskedBy::Client),
            method: Method::Get,
            is_no_cache: false,
            is_for_caches_alone: false,
            is_background: false,
            has_variant: false,
        };
        let asks = LateralRequest::instead_of_read(&stored, || true)?;
        let asks = match self.has_digests {
            true => asks.with_holds(&holds),
            false => asks,
        };
        let target = self.targets[request.target];
        let node = &mut self.nodes[request.at];
        let counts: Vec<u32> = (0..)
            .map(Place)
            .take(node.requests.len())
            .map(|place| node.outstanding(place))
            .collect();
        node.members.set_own_pressure(u32::MAX);
        let requests = |place: Place| counts[place.index()];
        let source = node
            .members
            .source_of_stored(self.now, target, asks, requests);
        node.members.set_own_pressure(0);
        source.and_then(|source| source.node)
    }

    /// The response is read from disk; `false` if it was not asked of another node instead.
    fn read_after_all(&mut self, request: &mut Request) -> bool {
        if request.on_disk != OnDisk::AskedElsewhere {
            return false;
        }
        self.tally.count("read-after-all");
        request.on_disk = OnDisk::ToBeRead;
        request.stage = Stage::New;
        true
    }

    /// A request of another node does not wait for one that waits for another node: that one may
    /// wait for it. One for what is stored alone waits for nothing, so that it may be waited for.
    fn may_wait(&self, request: &Request, leader: RequestId) -> bool {
        let waits_for_node = match self.requests[&leader].stage {
            Stage::AtNode { node, .. } | Stage::AtSilentNode { node, .. } => !node.is_stored_only,
            _ => false,
        };
        let is_client = request.asked_by == AskedBy::Client;
        is_client || !waits_for_node || self.rules.members_wait_for_members
    }

    /// What the digests of the nodes say of a target: some are old, some take it for held.
    fn holds(&mut self, target: usize) -> Vec<HoldsIt> {
        let digests = self.nodes.iter().map(|node| {
            let is_stored = node.stored[target].is_some();
            match self.random.below(8) {
                0 => HoldsIt::Unknown,
                1 => HoldsIt::Yes,
                2 => HoldsIt::No,
                _ if is_stored => HoldsIt::Yes,
                _ => HoldsIt::No,
            }
        });
        digests.collect()
    }

    fn choose(&mut self, request: &mut Request) -> Result<Option<AskedNode>, String> {
        let holds = self.holds(request.target);
        let holds = |place: Place| holds[place.index()];
        let node = &mut self.nodes[request.at];
        let is_held = node.held[request.target] > self.now;
        let handling = Handling::Forward(Fwd::UriMiss);
        if is_held {
            request.at_origin = Some(OriginReason::Held);
            return Ok(None);
        }
        let asks = LateralRequest::of(handling, request.asked_by, true, &request.failed);
        let Some(asks) = asks else {
            request.at_origin = Some(OriginReason::NodesAsked);
            return Ok(None);
        };
        let asks = if self.has_digests {
            asks.with_holds(&holds)
        } else {
            asks
        };
        let target = self.targets[request.target];
        let counts: Vec<u32> = (0..)
            .map(Place)
            .take(node.requests.len())
            .map(|place| node.outstanding(place))
            .collect();
        let source = node
            .members
            .source(self.now, target, asks, |place| counts[place.index()]);
        let Some(asked) = source.node else {
            let is_owner = source.why != Some(Why::AllEjected);
            request.at_origin = Some(if is_owner {
                OriginReason::Owner
            } else {
                OriginReason::NoNode
            });
            return match self.other_taking(request) {
                Some(other) if !is_owner => Err(format!("{request:?} does not go to {other:?}")),
                _ => Ok(None),
            };
        };
        if source.why == Some(Why::Probe) {
            self.tally.count("probe");
        }
        if node.is_front_end {
            self.tally.count("by-front-end");
        }
        let is_second = request.asked_by != AskedBy::Client && !asked.is_stored_only;
        let is_repeated = request.failed.contains(&asked.place);
        if is_second || is_repeated || asked.place == node.place {
            return Err(format!("{request:?} goes to {asked:?}"));
        }
        Ok(Some(asked))
    }

    /// Sends it to a node. The hold is looked at again behind the ticket.
    fn send(
        &mut self,
        id: RequestId,
        request: &mut Request,
        node: AskedNode,
    ) -> Result<(), String> {
        let (at, other) = (request.at, node.place.index());
        let ticket = self.nodes[at].tickets[request.target];
        if self.nodes[at].held[request.target] > self.now {
            self.tally.count("held-behind-choice");
            if !self.read_after_all(request) {
                request.stage = Stage::Choosing;
            }
            return Ok(());
        }
        let own = self.nodes[at].place;
        let is_member =
            self.nodes[other].listed[own.index()] != weir_policy::route::NodeState::Gone;
        if !self.can_connect(at, other) || !is_member {
            self.tally
                .count(if is_member { "unreachable" } else { "stranger" });
            self.pass(request, node.place, None);
            return Ok(());
        }
        self.nodes[at].requests[other] += 1;
        let since = self.now;
        if self.nodes[other].is_silent {
            request.stage = Stage::AtSilentNode { node, since };
            return Ok(());
        }
        let mut way = request.way.clone();
        way.push(other);
        let is_loop = request.way.contains(&other);
        if is_loop || way.len() > 2 && !(way.len() == 3 && node.is_stored_only) {
            return Err(format!("a request goes by nodes {way:?}"));
        }
        let child = self.add(Request {
            at: other,
            target: request.target,
            asked_by: AskedBy::Node(own),
            is_stored_only: node.is_stored_only,
            parent: Some(id),
            way,
            version_min: 0,
            failed: Vec::new(),
            at_origin: None,
            is_alone: false,
            on_disk: OnDisk::Unread,
            stage: Stage::New,
        });
        request.stage = Stage::AtNode {
            node,
            child,
            ticket,
            since,
        };
        if !node.is_stored_only && !self.rules.members_wait_for_members {
            self.release(id, |follower| follower.asked_by != AskedBy::Client);
        }
        Ok(())
    }

    /// Takes what another node answered.
    fn take(&mut self, request: &mut Request, node: AskedNode, ticket: u64, answer: Answer) {
        self.leave(request, node);
        let place = node.place;
        let is_report_lost = !self.is_quiet && self.random.below(16) == 0;
        if is_report_lost {
            self.tally.count("report-lost");
        }
        let is_lost = answer == Answer::Broken || is_report_lost;
        if is_lost {
            self.pass(request, place, None);
            return;
        }
        let report = self.nodes[place.index()].report();
        let members = &mut self.nodes[request.at].members;
        members.answered(self.now, place, 1000, report);
        match answer {
            Answer::Version { version, is_hit } => {
                members.correct(self.targets[request.target], place, is_hit);
                self.tally.count(match node {
                    AskedNode {
                        is_instead_of_read: true,
                        ..
                    } => "instead-of-read",
                    AskedNode {
                        is_stored_only: true,
                        ..
                    } => "stored-only-hit",
                    AskedNode {
                        is_copied: true, ..
                    } => "copied",
                    _ => "lateral",
                });
                request.stage = Stage::Arriving {
                    version,
                    received: self.now,
                    is_kept: node.is_copied,
                    ticket,
                };
            }
            Answer::NotStored if request.on_disk == OnDisk::AskedElsewhere => {
                members.correct(self.targets[request.target], place, false);
                self.read_after_all(request);
            }
            Answer::NotStored => {
                self.tally.count("stored-only-miss");
                request.failed.push(place);
                request.stage = Stage::Choosing;
            }
            Answer::NoOrigin | Answer::Broken => {
                self.tally.count("node-without-origin");
                request.at_origin = Some(OriginReason::OwnerHasNone);
                request.stage = Stage::Sending(None);
            }
        }
    }

    /// Goes on after a node that did not answer as a member does.
    fn pass(
        &mut self,
        request: &mut Request,
        place: Place,
        silent_since: Option<weir_policy::Tick>,
    ) {
        let members = &mut self.nodes[request.at].members;
        members.failed(self.now, place, silent_since);
        if self.read_after_all(request) {
            return;
        }
        request.failed.push(place);
        request.stage = Stage::Choosing;
        assert!(request.failed.len() <= NODES_ASKED_MAX);
    }

    /// It is outstanding at the node no more.
    fn leave(&mut self, request: &Request, node: AskedNode) {
        let requests = &mut self.nodes[request.at].requests[node.place.index()];
        *requests = requests.saturating_sub(1);
    }

    fn can_answer(&self, at: usize, other: usize) -> bool {
        self.can_connect(at, other) && !self.nodes[other].is_silent
    }

    fn is_awaited(&self, request: &Request) -> bool {
        request
            .parent
            .is_some_and(|parent| self.requests.contains_key(&parent))
    }

    /// The request is over, and those that wait for it have its answer.
    fn finish(
        &mut self,
        id: RequestId,
        mut request: Request,
        answer: Answer,
    ) -> Result<(), String> {
        let (at, target) = (request.at, request.target);
        let node = &mut self.nodes[at];
        node.requests[at] = node.requests[at].saturating_sub(1);
        if node.leaders.get(&target) == Some(&id) {
            node.leaders.remove(&target);
        }
        if let Answer::Version { .. } = answer {
            let is_follower =
                |(_, other): &(&RequestId, &Request)| other.stage == Stage::Following(id);
            let followers = self.requests.iter().filter(is_follower);
            let followers: Vec<RequestId> = followers.map(|(id, _)| *id).collect();
            for follower in followers {
                let request = self.requests.remove(&follower).unwrap();
                self.finish(follower, request, answer)?;
            }
        } else {
            self.release(id, |_| true);
        }
        if request.asked_by == AskedBy::Client {
            return self.check_answer(&request, answer);
        }
        if self.is_awaited(&request) {
            request.stage = Stage::Over(answer);
            self.requests.insert(id, request);
        }
        Ok(())
    }

    /// Followers wait no longer.
    fn release(&mut self, leader: RequestId, which: impl Fn(&Request) -> bool) {
        let followers = self.requests.values_mut();
        let followers = followers.filter(|it| it.stage == Stage::Following(leader) && which(it));
        for follower in followers {
            self.tally.count("released");
            follower.stage = Stage::New;
            follower.is_alone = true;
        }
    }

    fn check_answer(&self, request: &Request, answer: Answer) -> Result<(), String> {
        match answer {
            Answer::Version { version, .. } if version < request.version_min => Err(format!(
                "a purge came back: version {version} where {} is the oldest: {request:?}",
                request.version_min
            )),
            Answer::Version { .. } => Ok(()),
            Answer::NoOrigin if self.may_fail(request) => Ok(()),
            _ => Err(format!("no answer, but {answer:?}: {request:?}")),
        }
    }

    /// Whether the origin cannot be reached, and no node that may be asked could have answered.
    fn may_fail(&self, request: &Request) -> bool {
        let has_asked_all = match request.at_origin {
            // the origin alone may be asked, or the node that asks the origin has answered
            Some(OriginReason::Held | OriginReason::OwnerHasNone | OriginReason::NoNode) => true,
            Some(OriginReason::NodesAsked) => request.failed.len() == NODES_ASKED_MAX,
            // a front end is no owner
            Some(OriginReason::Owner) => !self.nodes[request.at].is_front_end,
            None => false,
        };
        has_asked_all && !self.nodes[request.at].has_origin
    }

    /// The first other node that takes requests, as far as this one knows, and was not asked for
    /// it.
    fn other_taking(&self, request: &Request) -> Option<Place> {
        let node = &self.nodes[request.at];
        let mut others = (0..).map(Place).take(self.nodes.len());
        others.find(|place| {
            let state = node.members.known(self.now, *place).state;
            let takes = matches!(state, NodeState::In | NodeState::Joining);
            takes && *place != node.place && !request.failed.contains(place)
        })
    }
}
