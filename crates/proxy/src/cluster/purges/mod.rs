//! Purges and invalidation for all nodes of a cluster (RFC 9111 §4.4): what this node tells the
//! others, and what they tell it.
//!
//! A node that purges a target does so at once, and tells each other member by a message to its
//! peer listener ([`outboxes`], `host::purge_sender`); `cache::peer_purges` carries it out there.
//! It answers its client or operator when they have answered, or the time for that is over.
//! Messages to one member follow each other, so that one says all that has gathered meanwhile.
//!
//! **No response from before a purge comes back** to a node that has answered. Say an unsafe
//! request was answered at node A. What an origin sends from then on is new. Each node drops what
//! it has stored and has in flight when it learns of that; but a node X that has may then fetch the
//! target from a node Y that has not. Two rules prevent that:
//!
//! 1. A node that learns of a purge *holds* the target ([`holds`]): it fetches it from the origin
//!    alone until the answers are due, and for A's patience more. The length of the hold is what
//!    remains of that when the message is sent, so that no clocks are compared.
//! 2. A member that has not answered A when its answer is due is *behind*. A notes that, and tells
//!    all others with the next message, at once if there is none ([`members_behind`]). That message
//!    has to be answered, too, before A's patience ends: a member that does not is behind itself.
//!    No node asks a member that any member, A included, says is behind. That one is in step again
//!    is told, too, but by no time: until then it is asked for nothing.
//!
//! A node is *in step* with A while it has answered all in time. By induction over time, what a
//! node that is in step stores of the target once it has learnt of the purge is new: while it holds
//! the target, it has it from the origin; afterwards every node has answered A, or is behind and
//! this node was told so before its hold ended. So what it fetches is from a node that has learnt
//! of the purge, and is in step or was when it answered. A node that falls out of step may have a
//! response of a node that is behind, even of a target for which it had answered. Therefore all
//! members that are behind share the list of what any of them has missed, and one is in step again
//! when it has been told all of that, with the names of those that are behind. The client is
//! answered when the members in step know which ones are not; that a member has applied a purge is
//! said of those in step alone. One round of messages suffices while all answer. A process that has
//! stood still goes by times, not by what it has noted: a member is behind from the moment on at
//! which its answer is due. `model_tests` plays that with the real outboxes.
//!
//! **Back-pressure** ([`turns`]): what a member has no room for is told to none before it has, and
//! answered later. A drops it again then, as if it learnt of it at that moment. Purges of the
//! operator have room of their own, and do not wait behind those of clients.
//!
//! Both are looked at again behind the ticket that the response will be stored with: a purge
//! between the two finds the ticket, and the response is not stored.
//!
//! **Memory is bounded** ([`late_orders`]): of more than there is room for, members are told to
//! *validate* all that they have stored before, and to purge everything if those are purges of the
//! operator. Of more members behind than a message may name it says that all are: then no node asks
//! another one. If A is no member for a minute, or does not answer for a minute, those that know
//! which members were behind tell these to validate, and the others that. A member that has not
//! been listed for a minute is told so when it is back.
//!
//! **A node that stops** tells members until each has answered all, or does not answer a message
//! ([`Outboxes::told`]): for a minute nothing else tells them.
//!
//! **A process that is new** knows neither whom an earlier one was to tell, nor who is behind. Each
//! process has a name, which is in its messages about purges and in its answers to those about its
//! state. A node that learns of a new one of A does as if A had gone for good: by what it was told
//! at last it knows of all that A was to tell, as otherwise it is behind itself. It tells A which
//! members are behind, if there are any. Until then, which takes moments, A may ask one of them:
//! for that time A is not in step.
//!
//! **The log of purges** has the same rule with another clock: what a node applies from it is held
//! until each other node has applied it, too, or has lost touch with the log and validates what it
//! has (`weir_cluster::etcd::APPLY_MAX`).

mod boxes;
pub(crate) mod holds;
pub(crate) mod inbox;
mod late_orders;
pub(crate) mod members_behind;
#[cfg(test)]
mod model_tests;
mod orders;
mod outbox;
pub(crate) mod outboxes;
mod turn_queues;
mod turns;
pub(crate) mod valid_since;
pub(crate) mod valid_since_file;

pub(crate) use outbox::Batch;
pub(crate) use turn_queues::one_client;
pub(crate) use turns::Waiter;

use crate::cluster::Nonces;
use crate::config::Mode;
use holds::Holds;
use inbox::Inbox;
use members_behind::{Behind, ToldBehind};
use outboxes::{AWAY_MAX, Outboxes};
use std::collections::BTreeSet;
use std::time::Instant;
use weir_policy::Digest;
use weir_semantics::MembersBehind;

/// The target of a message, on a peer listener.
pub(crate) const TARGET: &str = "/weir/purges";

/// What is purged or invalidated.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum PurgedTarget {
    /// A target of the listeners of one mode, by an unsafe request.
    Invalidated { mode: Mode, url: String },
    /// A URL at listeners of both modes, by the operator.
    Url(String),
    /// Everything, by the operator.
    All,
    /// Nothing is dropped: what was stored before is validated at its next use.
    Validate,
}

impl PurgedTarget {
    /// Whether it is of the operator.
    const fn is_of_operator(&self) -> bool {
        matches!(self, Self::Url(_) | Self::All)
    }

    /// Bytes of its URL.
    pub(crate) const fn url_bytes(&self) -> usize {
        match self {
            Self::Invalidated { url, .. } | Self::Url(url) => url.len(),
            Self::All | Self::Validate => 0,
        }
    }
}

/// What the workers share of purges for the whole cluster.
#[derive(Debug, Default)]
pub(crate) struct ClusterPurges {
    /// What members are told.
    pub(crate) outboxes: Outboxes,
    /// What members have told this node.
    pub(crate) inbox: Inbox,
    /// What is fetched from the origin alone.
    pub(crate) holds: Holds,
    /// Which members others say are behind.
    told_behind: ToldBehind,
    /// What this process calls itself.
    pub(crate) process: ProcessName,
}

/// A name that no other process has.
#[derive(Debug)]
pub(crate) struct ProcessName(pub(crate) String);

impl Default for ProcessName {
    fn default() -> Self {
        Self(Nonces::default().next())
    }
}

impl ClusterPurges {
    /// Whether `key` must not be fetched from another node now.
    pub(crate) fn is_held(&self, key: Digest) -> bool {
        self.holds.is_held(key)
    }

    /// Whether any member of the list at this address may have what was purged: few requests have
    /// to look at which.
    pub(crate) fn is_any_behind(&self, list: usize) -> bool {
        self.told_behind.is_any() || self.outboxes.is_any_behind(list, Instant::now())
    }

    /// Whether the member of that name may have what was purged: it is not asked.
    pub(crate) fn is_behind(&self, member: &str) -> bool {
        self.told_behind.contains(member) || self.outboxes.is_behind(member, Instant::now())
    }

    /// Other members that say the one of that name is behind.
    pub(crate) fn behind_at(&self, member: &str) -> Vec<String> {
        self.told_behind.by(member)
    }

    /// Takes what `sender` says of the other members.
    pub(crate) fn take_behind(&self, sender: &str, said: &MembersBehind<'_>) {
        self.hear_of_process(sender, said.process);
        self.told_behind.take(sender, said);
    }

    /// `member` is this process now. If it was another one, those that this was to tell are told by
    /// this node to validate; and which members are behind, the new one is told again.
    pub(crate) fn hear_of_process(&self, member: &str, process: &str) {
        let hand_over = |behind: &Behind| self.outboxes.demand_validation(behind);
        if self.told_behind.is_another(member, process, hand_over) {
            self.outboxes.tell_again(member);
        }
    }

    /// `gone` are the members that do not answer now. Those that one of them was to tell, which has
    /// not answered for long, are told to validate by this node.
    pub(crate) fn note_gone(&self, now: Instant, gone: &BTreeSet<&str>) {
        for sender in self.told_behind.gone_for(AWAY_MAX, now, gone) {
            self.forget(&sender);
        }
    }

    /// `sender` has not been a member for long: what it was to tell is told to validate.
    pub(crate) fn forget(&self, sender: &str) {
        let hand_over = |behind: &Behind| self.outboxes.demand_validation(behind);
        self.told_behind.forget(sender, hand_over);
    }
}
