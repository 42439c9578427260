//! A request that waits for the response of another one.

use super::slots::SlotId;
use super::{CollapsedRequests, Commands, Leader};
use crate::fetch::in_flight::InFlightResponse;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use weir_policy::Digest;
use weir_policy::collapse::{Command, FollowerId, GroupId};

/// A follower of a group, from the wait until it reads or [gives up](Self::leave).
pub(crate) struct Follower {
    requests: Arc<CollapsedRequests>,
    key: Digest,
    id: FollowerId,
    /// Until it gives up, or leads.
    slot: Option<SlotId>,
}

/// How a wait ended.
pub(crate) enum WaitResult {
    /// The leader failed: this request leads the group now.
    Lead(Leader),
    /// The response is in flight.
    Read(Arc<InFlightResponse>),
    /// The response is stored: look it up again.
    LookUp,
    /// The response is not for others, or all leaders failed: this request is forwarded by itself.
    Bypass,
}

impl Follower {
    pub(super) const fn new(
        requests: Arc<CollapsedRequests>,
        key: Digest,
        id: FollowerId,
        slot: SlotId,
    ) -> Self {
        Self {
            requests,
            key,
            id,
            slot: Some(slot),
        }
    }

    /// The group it follows in.
    pub(crate) const fn group(&self) -> GroupId {
        self.id.group
    }

    /// Ends the wait: the request reads, is answered otherwise, or its client has disconnected.
    /// Returns the response if no other waiting request may read it now.
    pub(crate) fn leave(&mut self) -> Option<Arc<InFlightResponse>> {
        let slot = self.slot.take()?;
        let mut commands = Commands::new();
        let mut shard = self.requests.shard(self.key);
        let unread = shard.slots.give_back(slot);
        let command = unread.as_ref().and_then(|slot| slot.command.as_ref());
        let idle = match command {
            Some(Command::TakeOver(group)) => {
                shard.policy.disconnected(*group, &mut commands);
                None
            }
            _ => shard.policy.leave(self.id, &mut commands),
        };
        let woken = shard.slots.tell(commands);
        drop(shard);
        drop((woken, unread));
        idle
    }
}

impl Future for Follower {
    type Output = WaitResult;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<WaitResult> {
        let Some(id) = self.slot else {
            return Poll::Ready(WaitResult::Bypass);
        };
        let mut shard = self.requests.shard(self.key);
        let slot = shard.slots.at(id);
        let result = match slot.command.take() {
            None => {
                let waker = cx.waker();
                if !slot
                    .waker
                    .as_ref()
                    .is_some_and(|known| known.will_wake(waker))
                {
                    slot.waker = Some(waker.clone());
                }
                return Poll::Pending;
            }
            Some(Command::Lead(group) | Command::TakeOver(group)) => {
                drop(shard);
                self.slot = None;
                let requests = Arc::clone(&self.requests);
                WaitResult::Lead(Leader::new(requests, self.key, group, id))
            }
            Some(Command::Read(_, response)) => WaitResult::Read(response),
            Some(Command::LookUp(_)) => WaitResult::LookUp,
            Some(Command::Wait(_) | Command::Bypass | Command::NotAwaited) => WaitResult::Bypass,
        };
        Poll::Ready(result)
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        drop(self.leave());
    }
}
