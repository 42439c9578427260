//! Whether nodes agree on which of them keeps a target: each says a hash of what decides that, and
//! the others compare it with their own.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use weir_cluster::Member;
use weir_policy::route::{Balancing, NodeState};
use weir_policy::{KeyHasher, Secret};

/// A hash of what decides which node keeps a target: the policy with its constants, the names and
/// weights of the members, which of them are front ends, and the key of targets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Placement(u32);

impl Placement {
    /// Of `members`, sorted by name. `target_key` is made of the cluster's secret, so that the hash
    /// tells no program without that anything.
    pub(super) fn new(target_key: &Secret, balancing: &Balancing, members: &[Member]) -> Self {
        let mut hasher = KeyHasher::new(target_key);
        let policy = balancing.policy;
        hasher.part(policy.as_str().as_bytes());
        for constant in policy.owner_constants(&balancing.rules) {
            hasher.number(constant);
        }
        for member in members {
            hasher.part(member.name.as_bytes());
            hasher.number(u64::from(member.weight.get()));
            hasher.number(u64::from(member.state == NodeState::FrontEnd));
        }
        let [a, b, c, d, ..] = hasher.finish().0.to_le_bytes();
        Self(u32::from_le_bytes([a, b, c, d]))
    }

    /// As nodes say it.
    pub(super) const fn get(self) -> u32 {
        self.0
    }
}

/// The placement of another node, as that said it last.
#[derive(Debug, Default)]
pub(super) struct OtherPlacement {
    /// One more than the hash; 0 before it said one.
    said: AtomicU64,
    /// The operator was told that it differs.
    is_reported: AtomicBool,
}

impl OtherPlacement {
    /// The node says `theirs`. Whether it differs from `own`, if the operator is to be told that:
    /// it begins to, or ends.
    pub(super) fn note(&self, own: Placement, theirs: u32) -> Option<bool> {
        let said = u64::from(theirs) + 1;
        // most responses say what the one before them said
        if self.said.load(Ordering::Relaxed) != said {
            self.said.store(said, Ordering::Relaxed);
        }
        let differs = theirs != own.0;
        let is_news = self.is_reported.load(Ordering::Relaxed) != differs
            && self.is_reported.swap(differs, Ordering::Relaxed) != differs;
        is_news.then_some(differs)
    }

    /// Whether the node said another one than `own`.
    pub(super) fn differs(&self, own: Placement) -> bool {
        let said = self.said.load(Ordering::Relaxed);
        said != 0 && said != u64::from(own.0) + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_net::next_hops::HopKey;
    use weir_policy::route::Weight;
    use weir_policy::route::policy::{PolicyKind, PolicyRules};

    const KEY: Secret = Secret([7; 16]);

    fn member(name: &str, weight: u16, state: NodeState) -> Member {
        Member {
            name: name.to_owned(),
            hop: HopKey::new("127.0.0.1", 4000 + weight),
            weight: Weight::new(weight).expect("a weight"),
            state,
        }
    }

    fn balancing(policy: PolicyKind, change: fn(&mut PolicyRules)) -> Balancing {
        let mut balancing = Balancing {
            policy,
            ..Balancing::default()
        };
        change(&mut balancing.rules);
        balancing
    }

    #[test]
    fn placement_depends_on_all_that_decides_the_owner_and_on_nothing_else() {
        let members = [member("a", 1, NodeState::In), member("b", 2, NodeState::In)];
        let of = |members: &[Member]| {
            Placement::new(&KEY, &balancing(PolicyKind::Hash, |_| {}), members)
        };
        let own = of(&members);
        let with = |kind, change| Placement::new(&KEY, &balancing(kind, change), &members);
        for alike in [
            of(&[
                member("a", 1, NodeState::Draining),
                Member {
                    hop: members[0].hop.clone(),
                    ..members[1].clone()
                },
            ]),
            // `hash` has no constant
            with(PolicyKind::Hash, |rules| rules.limits.high = 2),
        ] {
            assert_eq!(alike, own);
        }
        for other in [
            of(&members[..1]),
            of(&[member("a", 1, NodeState::In), member("c", 2, NodeState::In)]),
            of(&[member("a", 2, NodeState::In), member("b", 2, NodeState::In)]),
            of(&[members[0].clone(), member("b", 2, NodeState::FrontEnd)]),
            with(PolicyKind::BoundedHash, |_| {}),
            Placement::new(
                &Secret([8; 16]),
                &balancing(PolicyKind::Hash, |_| {}),
                &members,
            ),
        ] {
            assert_ne!(other, own);
        }
        let bounded = with(PolicyKind::BoundedHash, |_| {});
        assert_ne!(
            bounded,
            with(PolicyKind::BoundedHash, |rules| rules.limits.high = 2)
        );
    }

    #[test]
    fn operator_is_told_when_a_difference_begins_and_when_it_ends() {
        let other = OtherPlacement::default();
        let own = Placement(7);
        assert!(!other.differs(own), "nothing was said");
        assert_eq!(other.note(own, 7), None);
        assert_eq!(other.note(own, u32::MAX), Some(true));
        assert_eq!(other.note(own, 0), None, "it differs still");
        assert!(other.differs(own) && !other.differs(Placement(0)));
        assert_eq!(other.note(own, 7), Some(false));
        assert!(!other.differs(own));
        // this node is configured anew
        assert!(other.differs(Placement(8)));
        assert_eq!(other.note(Placement(8), 7), Some(true));
    }
}
