//! Which of several requests for one target are forwarded, and which wait for the response to
//! another one (RFC 9211 §2.6: collapsed requests).
//!
//! The first request of a target leads a *group*; those that are received while it is forwarded
//! follow. Until the response head they wait; from then on they read the in-flight response, and so
//! do newcomers. The driver reports events and carries out the commands that they return:
//!
//! ```text
//! want ─┬─ Lead      (the first)
//!       ├─ Wait      (another request asks)
//!       ├─ Read      (a response of another request is in flight)
//!       └─ Bypass    (may not lead, hit-for-miss, too many groups, passed by three groups)
//!
//! leader ─┬─ sent            followers of other nodes: LookUp, if it is sent to one of them
//!         ├─ head            followers: Read ── leave (each, once it reads or does not want to)
//!         ├─ stored          followers: LookUp
//!         ├─ refused         followers: Bypass, and hit-for-miss for a while
//!         ├─ failed          followers: one TakeOver, or Bypass after LEADERS_MAX leaders
//!         └─ disconnected    as failed, but this leader does not count
//!
//! follower ── leave          the last one: NotAwaited to the leader that asks
//!
//! in-flight response ─┬─ publish     (without a leader that others wait for)
//!                     ├─ withdraw    (no newcomers)
//!                     └─ close       (over)
//!
//! target ─┬─ forget    (purged or invalidated: no newcomers, followers stay)
//!         └─ shared    (no hit-for-miss any more)
//! ```
//!
//! Each group has one owner at a time, its leader or its in-flight response, and lasts until the
//! owner reports an end. RFC 9111 §4 allows collapsing and says little about it; whether a response
//! answers a request that it was not sent for is decided by [`Transaction::joined`], and whether a
//! request may follow or lead by [`Transaction::follows`] and [`Transaction::leads`].
//!
//! [`Transaction::joined`]: crate::Transaction::joined
//! [`Transaction::follows`]: crate::Transaction::follows
//! [`Transaction::leads`]: crate::Transaction::leads

mod command;
mod group;
mod passes;
mod uncollapsible;

pub use command::{Command, FollowerId, GroupId, Selection};
pub use passes::{PASSES_MAX, Passes};
pub use uncollapsible::{UNCOLLAPSIBLE_MAX, Uncollapsible};

use crate::now::{Now, Tick};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use group::{Follower, Group, Groups, Stage};

/// Requests that are forwarded for one group: the first, and one more if that fails before a
/// response head. If both fail, each follower is forwarded by itself: the reason may be in the
/// fields of a request, and two such requests must not deny the target to others.
pub const LEADERS_MAX: u32 = 2;

/// Open groups of one target: one for each variant that is requested. Beyond it requests bypass.
pub const GROUPS_PER_TARGET_MAX: usize = 64;

/// What a request may do with others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// It may lead.
    pub leads: bool,
    /// It may wait: it has not waited for as long as a request may.
    pub waits: bool,
    /// It may wait for a request that was sent to another node of the cluster. One that another
    /// node sent must not: that node may wait for it, by another request.
    pub waits_for_nodes: bool,
    /// Followers that a group takes.
    pub followers_max: usize,
}

/// The groups of some targets, and the targets that are hit-for-miss.
///
/// `K` names a target, `V` a variant of one, `R` a request of the driver, `P` an in-flight
/// response. A driver that shares the groups between threads has one value for each part of the
/// targets, with a lock around it. Nothing is allocated for a group without followers, beyond what
/// is used again.
#[derive(Debug)]
pub struct Collapse<K, R, P, V> {
    groups: Groups<K, R, P, V>,
    /// The first open group of each target: in-flight responses without followers, the newest
    /// first, then the others as they began.
    first: BTreeMap<K, GroupId>,
    uncollapsible: Uncollapsible<K>,
}

impl<K: Copy + Ord, R: Copy, P: Clone, V: Copy + PartialEq> Collapse<K, R, P, V> {
    /// No groups; one of `parts` equal parts of all targets.
    #[must_use]
    pub fn part_of(parts: usize) -> Self {
        Self {
            groups: Groups::default(),
            first: BTreeMap::new(),
            uncollapsible: Uncollapsible::part_of(parts),
        }
    }

    /// `request` must be forwarded, and [follows](crate::Transaction::follows). `passes` are the
    /// groups it was in; `select` is true for an in-flight response that is the variant for it. It
    /// does not wait for a group of another variant, as far as both are known.
    pub fn want(
        &mut self,
        now: Now,
        key: K,
        request: R,
        terms: Terms,
        passes: &mut Passes<V>,
        mut select: impl FnMut(&P) -> Selection<V>,
    ) -> Command<P> {
        if passes.is_full() {
            return Command::Bypass;
        }
        let (mut last, mut open) = (None, 0);
        let mut at = self.first.get(&key).copied();
        while let Some(id) = at {
            let Some(group) = self.groups.get_mut(id) else {
                break;
            };
            (last, at) = (Some(id), group.next);
            open += 1;
            if passes.contains(id) {
                continue;
            }
            match &group.stage {
                Stage::InFlight(response) => match select(response) {
                    Selection::Selected => return Command::Read(id, response.clone()),
                    Selection::Other(variant) => passes.wants_variant(variant),
                },
                Stage::Asking(_)
                    if group.followers.len() < terms.followers_max
                        && group.may_be(passes.variant)
                        && (terms.waits_for_nodes || !group.is_at_node) =>
                {
                    if !terms.waits {
                        return Command::Bypass;
                    }
                    let follower = Follower {
                        request,
                        variant: passes.variant,
                        leads: terms.leads,
                        waits_for_nodes: terms.waits_for_nodes,
                    };
                    return Command::Wait(group.join(id, follower));
                }
                Stage::Asking(_) => {}
            }
        }
        if !terms.leads || open >= GROUPS_PER_TARGET_MAX || self.uncollapsible.contains(now, key) {
            return Command::Bypass;
        }
        let id = self
            .groups
            .insert(Group::new(key, Stage::Asking(request), passes.variant));
        match last.and_then(|last| self.groups.get_mut(last)) {
            Some(last) => last.next = Some(id),
            None => _ = self.first.insert(key, id),
        }
        Command::Lead(id)
    }

    /// The leader is sent to another node of the cluster, or is not. Followers that may not wait
    /// for that look for another group.
    pub fn sent(&mut self, id: GroupId, is_to_node: bool, commands: &mut Vec<(R, Command<P>)>) {
        let Some(group) = self.groups.get_mut(id) else {
            return;
        };
        group.is_at_node = is_to_node;
        if !is_to_node || group.followers.is_empty() {
            return;
        }
        let released = group.followers.extract_if(.., |_, it| !it.waits_for_nodes);
        commands.extend(released.map(|(_, it)| (it.request, Command::LookUp(id))));
        if let Stage::Asking(leader) = group.stage
            && group.followers.is_empty()
        {
            commands.push((leader, Command::NotAwaited));
        }
    }

    /// The leader has the head of a response that others may read; from now on that owns the group.
    pub fn head(&mut self, id: GroupId, response: P, commands: &mut Vec<(R, Command<P>)>) {
        let Some(group) = self.groups.get_mut(id) else {
            return;
        };
        let followers = group.followers.values();
        commands.extend(
            followers.map(|follower| (follower.request, Command::Read(id, response.clone()))),
        );
        group.stage = Stage::InFlight(response);
        self.uncollapsible.remove(group.key);
    }

    /// A response of `key` is in flight, and no request waits for it: later ones may read it.
    /// `None` if there are too many groups.
    pub fn publish(&mut self, key: K, response: P) -> Option<GroupId> {
        self.uncollapsible.remove(key);
        let first = self.first.get(&key).copied();
        let open = core::iter::successors(first, |id| self.groups.get(*id)?.next).count();
        if open >= GROUPS_PER_TARGET_MAX {
            return None;
        }
        let mut group = Group::new(key, Stage::InFlight(response), None);
        group.next = first;
        let id = self.groups.insert(group);
        self.first.insert(key, id);
        Some(id)
    }

    /// The leader's response is stored already.
    pub fn stored(&mut self, id: GroupId, commands: &mut Vec<(R, Command<P>)>) {
        if let Some(group) = self.remove(id) {
            self.uncollapsible.remove(group.key);
            commands.extend(
                group
                    .requests()
                    .map(|request| (request, Command::LookUp(id))),
            );
        }
    }

    /// The leader's response is for its own request only; if the same is expected of the next one,
    /// the target is hit-for-miss until `until`.
    pub fn refused(
        &mut self,
        now: Now,
        id: GroupId,
        until: Option<Tick>,
        commands: &mut Vec<(R, Command<P>)>,
    ) {
        if let Some(group) = self.remove(id) {
            commands.extend(group.requests().map(|request| (request, Command::Bypass)));
            if let Some(until) = until {
                self.uncollapsible.insert(now, group.key, until);
            }
        }
    }

    /// The leader has no response for others, because the next hop failed, or for an unknown
    /// reason. The first follower that may lead takes over, and those before it are forwarded by
    /// themselves.
    pub fn failed(&mut self, id: GroupId, commands: &mut Vec<(R, Command<P>)>) {
        let Some(group) = self.groups.get_mut(id) else {
            return;
        };
        if group.leaders < LEADERS_MAX {
            while let Some((_, follower)) = group.followers.pop_first() {
                if follower.leads {
                    group.stage = Stage::Asking(follower.request);
                    group.is_at_node = false;
                    group.variant = follower.variant;
                    group.leaders += 1;
                    commands.push((follower.request, Command::TakeOver(id)));
                    return;
                }
                commands.push((follower.request, Command::Bypass));
            }
        }
        if let Some(group) = self.remove(id) {
            commands.extend(group.requests().map(|request| (request, Command::Bypass)));
        }
    }

    /// The leader's client has disconnected, and nothing is known of the next hop.
    pub fn disconnected(&mut self, id: GroupId, commands: &mut Vec<(R, Command<P>)>) {
        if let Some(group) = self.groups.get_mut(id) {
            group.leaders -= 1;
        }
        self.failed(id, commands);
    }

    /// A follower waits no longer: it reads the in-flight response, is answered otherwise, or its
    /// client has disconnected. The in-flight response, if no other follower is about to read it;
    /// it may have no reader now.
    pub fn leave(
        &mut self,
        follower: FollowerId,
        commands: &mut Vec<(R, Command<P>)>,
    ) -> Option<P> {
        let group = self.groups.get_mut(follower.group)?;
        group.followers.remove(&follower.place)?;
        if !group.followers.is_empty() {
            return None;
        }
        match &group.stage {
            Stage::Asking(leader) => {
                commands.push((*leader, Command::NotAwaited));
                None
            }
            Stage::InFlight(response) => Some(response.clone()),
        }
    }

    /// Whether followers wait for the response head, or are about to read the in-flight response.
    #[must_use]
    pub fn is_awaited(&self, id: GroupId) -> bool {
        let group = self.groups.get(id);
        group.is_some_and(|group| !group.followers.is_empty())
    }

    /// The in-flight response is not for newcomers any more.
    pub fn withdraw(&mut self, id: GroupId) {
        let Some(group) = self.groups.get(id) else {
            return;
        };
        let (key, next) = (group.key, group.next);
        let first = self.first.get(&key).copied();
        if first == Some(id) {
            match next {
                Some(next) => _ = self.first.insert(key, next),
                None => _ = self.first.remove(&key),
            }
            return;
        }
        let groups = &self.groups;
        let mut open = core::iter::successors(first, |id| groups.get(*id)?.next);
        let before = open.find(|before| groups.get(*before).is_some_and(|it| it.next == Some(id)));
        if let Some(before) = before.and_then(|before| self.groups.get_mut(before)) {
            before.next = next;
        }
    }

    /// The in-flight response is over, and so is its group. The response, for the driver to drop
    /// where it likes.
    pub fn close(&mut self, id: GroupId) -> Option<P> {
        match self.remove(id)?.stage {
            Stage::InFlight(response) => Some(response),
            Stage::Asking(_) => None,
        }
    }

    /// The target was purged or invalidated: responses requested before are only for the present
    /// followers.
    pub fn forget(&mut self, key: K) {
        let mut at = self.first.remove(&key);
        while let Some(group) = at.and_then(|id| self.groups.get_mut(id)) {
            at = group.next.take();
        }
    }

    /// All targets were purged.
    pub fn forget_all(&mut self) {
        while let Some((key, _)) = self.first.first_key_value() {
            self.forget(*key);
        }
    }

    /// A response of the target answers other requests: it is not hit-for-miss any more.
    pub fn shared(&mut self, key: K) {
        self.uncollapsible.remove(key);
    }

    /// Whether the target is hit-for-miss: its responses are not for others.
    #[must_use]
    pub fn is_uncollapsible(&self, now: Now, key: K) -> bool {
        self.uncollapsible.contains(now, key)
    }

    /// Whether there is no group, open or not.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    fn remove(&mut self, id: GroupId) -> Option<Group<K, R, P, V>> {
        self.withdraw(id);
        self.groups.remove(id)
    }
}
