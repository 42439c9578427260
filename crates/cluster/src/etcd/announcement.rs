//! What this node says of itself in etcd: a key that ends with a lease, and the lease is kept.

use super::client::{Client, LeaseId};
use super::error::EtcdError;
use super::member_value::{members_prefix, write};
use crate::member::Member;
use crate::output::{Output, Reporter};
use crate::own::OwnNode;
use crate::retry::Retry;
use std::cell::Cell;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::sleep;
use weir_policy::route::NodeState;

/// How long a node is a member after it was heard last.
///
/// etcd itself stands still for a second or two when it chooses another leader; a node that stands
/// still is passed over by `peer_timeout` long before.
pub(crate) const LEASE_TTL: Duration = Duration::from_secs(10);

/// How often the lease is kept: two of these may fail. So the lease of a node that etcd hears no
/// more lasts for another 7 s, less the time that the last answer took.
pub(crate) const KEEP_EVERY: Duration = Duration::from_secs(3);

/// This node in etcd.
pub(crate) struct Announcement {
    client: Client,
    key: String,
    own: OwnNode,
    state: watch::Receiver<NodeState>,
    reporter: Reporter,
    lease: Cell<Option<LeaseId>>,
    /// Set when the key has gone though the lease was kept; counts.
    again: watch::Sender<u64>,
    /// Whether it was tried once.
    tried: watch::Sender<bool>,
}

impl Announcement {
    pub(crate) fn new(
        client: Client,
        prefix: &str,
        state: watch::Receiver<NodeState>,
        output: &Output,
    ) -> Self {
        let own = output.own.clone();
        let name = own.name.as_deref().unwrap_or_default();
        Self {
            client,
            key: members_prefix(prefix) + name,
            state,
            reporter: output.reporter.clone(),
            lease: Cell::new(None),
            again: watch::Sender::new(0),
            tried: watch::Sender::new(false),
            own,
        }
    }

    /// This node as it announces itself now.
    pub(crate) fn member(&self) -> Option<Member> {
        self.own.member(*self.state.borrow())
    }

    /// Whether its key was set, as far as is known.
    pub(crate) fn is_made(&self) -> bool {
        self.lease.get().is_some()
    }

    /// Its key has gone: it is to be set again.
    pub(crate) fn make_again(&self) {
        self.again.send_modify(|count| *count += 1);
    }

    /// Ready when it was tried to set its key.
    pub(crate) async fn tried(&self) {
        let mut tried = self.tried.subscribe();
        let _open = tried.wait_for(|tried| *tried).await;
    }

    /// Ready when the state of this node has changed.
    pub(crate) async fn changed(&self, seen: &mut watch::Receiver<NodeState>) {
        if seen.changed().await.is_err() {
            // the task ends
            std::future::pending::<()>().await;
        }
    }

    /// The state, for [`Self::changed`].
    pub(crate) fn state(&self) -> watch::Receiver<NodeState> {
        self.state.clone()
    }

    /// Announces this node for ever.
    pub(crate) async fn keep(&self) {
        let mut retry = Retry::default();
        loop {
            let made = self.make().await;
            self.tried.send_replace(true);
            let kept = match made {
                Ok(lease) => {
                    retry = Retry::default();
                    self.keep_lease(lease).await
                }
                Err(error) => Err(error),
            };
            if let Err(error) = kept {
                self.reporter.fail(&error);
                retry.wait().await;
            }
        }
    }

    /// Sets the key, under a lease of its own.
    async fn make(&self) -> Result<LeaseId, EtcdError> {
        let lease = self.client.grant(LEASE_TTL).await?;
        self.put(lease).await?;
        self.lease.set(Some(lease));
        Ok(lease)
    }

    async fn put(&self, lease: LeaseId) -> Result<(), EtcdError> {
        let Some(member) = self.member() else {
            return Ok(());
        };
        let value = write(&member);
        self.client.put(&self.key, &value, Some(lease)).await?;
        Ok(())
    }

    /// Keeps the lease until it has ended all the same.
    async fn keep_lease(&self, lease: LeaseId) -> Result<(), EtcdError> {
        let (mut state, mut again) = (self.state(), self.again.subscribe());
        // what was put may be older
        state.mark_changed();
        loop {
            let kept = tokio::select! {
                () = sleep(KEEP_EVERY) => self.client.keep_alive(lease).await,
                () = self.changed(&mut state) => self.put(lease).await.map(|()| true),
                _open = again.changed() => self.put(lease).await.map(|()| true),
            };
            match kept {
                Ok(true) => {}
                Err(error) if !error.is_not_found() => {
                    // a lease that outlives this is kept on
                    self.reporter.fail(&error);
                }
                Ok(false) | Err(_) => {
                    self.lease.set(None);
                    return Ok(());
                }
            }
        }
    }

    /// Ends it at once.
    pub(crate) async fn revoke(&self) {
        if let Some(lease) = self.lease.take() {
            let _over = self.client.revoke(lease).await;
        }
    }
}
