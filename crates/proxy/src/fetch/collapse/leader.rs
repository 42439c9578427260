//! A request that is forwarded for its followers too.

use super::slots::SlotId;
use super::{CollapsedGroup, CollapsedRequests, Commands, Policy};
use crate::fetch::in_flight::InFlightResponse;
use std::sync::Arc;
use std::task::{Context, Poll};
use weir_policy::collapse::GroupId;
use weir_policy::{Digest, Now, Tick};

/// The leader of a group. If it is dropped before it says how that ended, it has failed.
#[derive(Debug)]
pub(crate) struct Leader {
    requests: Arc<CollapsedRequests>,
    key: Digest,
    group: GroupId,
    /// Until it reports an end.
    slot: Option<SlotId>,
}

impl Leader {
    pub(super) const fn new(
        requests: Arc<CollapsedRequests>,
        key: Digest,
        group: GroupId,
        slot: SlotId,
    ) -> Self {
        Self {
            requests,
            key,
            group,
            slot: Some(slot),
        }
    }

    /// Whether other requests wait for the response.
    pub(crate) fn is_awaited(&self) -> bool {
        self.requests.shard(self.key).policy.is_awaited(self.group)
    }

    /// Ready once no other request waits for the response.
    pub(crate) fn poll_not_awaited(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut shard = self.requests.shard(self.key);
        if let Some(slot) = self.slot
            && shard.policy.is_awaited(self.group)
        {
            shard.slots.at(slot).waker = Some(cx.waker().clone());
            return Poll::Pending;
        }
        Poll::Ready(())
    }

    /// It is about to be sent to another node of the cluster, or to the origin.
    pub(crate) fn sent(&self, is_to_node: bool) {
        let group = self.group;
        self.requests.report(self.key, None, |policy, commands| {
            policy.sent(group, is_to_node, commands);
        });
    }

    /// The response head is there: followers read the in-flight response, and newcomers may. Yields
    /// the group, to be closed when the response is over.
    pub(crate) fn head(mut self, response: &Arc<InFlightResponse>) -> CollapsedGroup {
        let (group, response) = (self.group, Arc::clone(response));
        self.end(|policy, commands| policy.head(group, response, commands));
        CollapsedGroup::new(Arc::clone(&self.requests), self.key, group)
    }

    /// The response is stored already.
    pub(crate) fn stored(mut self) {
        let group = self.group;
        self.end(|policy, commands| policy.stored(group, commands));
    }

    /// The response is for this request only; the target is hit-for-miss until `until`.
    pub(crate) fn refused(mut self, now: Now, until: Option<Tick>) {
        let group = self.group;
        self.end(|policy, commands| policy.refused(now, group, until, commands));
    }

    /// There was no usable response.
    pub(crate) fn failed(self) {
        drop(self);
    }

    /// The client has disconnected, and nothing is known of the next hop.
    pub(crate) fn disconnected(mut self) {
        let group = self.group;
        self.end(|policy, commands| policy.disconnected(group, commands));
    }

    fn end(&mut self, event: impl FnOnce(&mut Policy, &mut Commands)) {
        if let Some(slot) = self.slot.take() {
            self.requests.report(self.key, Some(slot), event);
        }
    }
}

impl Drop for Leader {
    fn drop(&mut self) {
        let group = self.group;
        self.end(|policy, commands| policy.failed(group, commands));
    }
}
