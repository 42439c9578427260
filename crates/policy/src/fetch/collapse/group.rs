//! A group, and the table of groups by number.

use super::{FollowerId, GroupId};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// Requests that share a response.
#[derive(Debug)]
pub(super) struct Group<K, R, P, V> {
    pub(super) key: K,
    pub(super) stage: Stage<R, P>,
    /// The variant that the leader's request selects, if it is known.
    pub(super) variant: Option<V>,
    /// The leader was sent to another node of the cluster.
    pub(super) is_at_node: bool,
    /// Requests that have led so far, but for those whose client disconnected.
    pub(super) leaders: u32,
    /// Those that wait for the head or are about to read, as they came.
    pub(super) followers: BTreeMap<u64, Follower<R, V>>,
    /// How many ever followed.
    joined: u64,
    /// The next open group of the target, if this one is open.
    pub(super) next: Option<GroupId>,
}

/// How far the response of a group is, and the owner of the group.
#[derive(Debug)]
pub(super) enum Stage<R, P> {
    /// This request is forwarded.
    Asking(R),
    /// There is a response head.
    InFlight(P),
}

/// A request that waits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Follower<R, V> {
    pub(super) request: R,
    /// The variant that it selects, if it is known.
    pub(super) variant: Option<V>,
    /// It may take over.
    pub(super) leads: bool,
    /// It may wait for a leader that was sent to another node.
    pub(super) waits_for_nodes: bool,
}

impl<K, R: Copy, P, V: Copy + PartialEq> Group<K, R, P, V> {
    pub(super) const fn new(key: K, stage: Stage<R, P>, variant: Option<V>) -> Self {
        Self {
            key,
            stage,
            variant,
            is_at_node: false,
            leaders: 1,
            followers: BTreeMap::new(),
            joined: 0,
            next: None,
        }
    }

    pub(super) fn join(&mut self, group: GroupId, follower: Follower<R, V>) -> FollowerId {
        let place = self.joined;
        self.joined += 1;
        self.followers.insert(place, follower);
        FollowerId { group, place }
    }

    /// Whether its response may be the variant that a request selects.
    pub(super) fn may_be(&self, wanted: Option<V>) -> bool {
        self.variant.is_none() || wanted.is_none() || self.variant == wanted
    }

    pub(super) fn requests(&self) -> impl Iterator<Item = R> + '_ {
        self.followers.values().map(|follower| follower.request)
    }
}

/// Groups by number; a place is used again.
#[derive(Debug)]
pub(super) struct Groups<K, R, P, V> {
    places: Vec<Place<K, R, P, V>>,
    vacant: Vec<u32>,
    /// Groups so far.
    made: u64,
}

#[derive(Debug)]
struct Place<K, R, P, V> {
    /// The serial number of the group that is here, or was here last.
    serial: u64,
    group: Option<Group<K, R, P, V>>,
}

impl<K, R, P, V> Default for Groups<K, R, P, V> {
    fn default() -> Self {
        Self {
            places: Vec::new(),
            vacant: Vec::new(),
            made: 0,
        }
    }
}

impl<K, R, P, V> Groups<K, R, P, V> {
    pub(super) fn insert(&mut self, group: Group<K, R, P, V>) -> GroupId {
        self.made += 1;
        let serial = self.made;
        let new = Place {
            serial,
            group: Some(group),
        };
        let place = match self.vacant.pop() {
            Some(place) => {
                self.places[place as usize] = new;
                place
            }
            None => {
                self.places.push(new);
                u32::try_from(self.places.len() - 1).unwrap_or(u32::MAX)
            }
        };
        GroupId { place, serial }
    }

    pub(super) fn get(&self, id: GroupId) -> Option<&Group<K, R, P, V>> {
        let place = self.places.get(id.place as usize);
        place
            .filter(|place| place.serial == id.serial)?
            .group
            .as_ref()
    }

    pub(super) fn get_mut(&mut self, id: GroupId) -> Option<&mut Group<K, R, P, V>> {
        let place = self.places.get_mut(id.place as usize);
        place
            .filter(|place| place.serial == id.serial)?
            .group
            .as_mut()
    }

    pub(super) fn remove(&mut self, id: GroupId) -> Option<Group<K, R, P, V>> {
        let place = self.places.get_mut(id.place as usize);
        let group = place
            .filter(|place| place.serial == id.serial)?
            .group
            .take()?;
        self.vacant.push(id.place);
        Some(group)
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.places.len() == self.vacant.len()
    }
}
