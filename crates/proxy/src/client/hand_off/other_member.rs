//! Another member that is sent messages about a connection.

use super::{HandOffs, Message};
use crate::cluster::Cluster;
use crate::settings::Settings;
use crate::worker::core::Worker;
use std::rc::Rc;
use std::sync::Arc;
use weir_policy::route::Place;

/// Another member.
#[derive(Clone)]
pub(super) struct OtherMember<'m> {
    pub(super) worker: &'m Rc<Worker>,
    pub(super) settings: &'m Arc<Settings>,
    pub(super) hand_offs: &'m HandOffs,
    pub(super) cluster: Arc<Cluster>,
    pub(super) place: Place,
}

impl OtherMember<'_> {
    /// Sends it `content`, proved for a nonce of its own. The status and the content of its answer;
    /// `None` without one.
    pub(super) async fn tell(
        &self,
        target: &'static str,
        content: &[u8],
    ) -> Option<(u16, Vec<u8>)> {
        let nonce = self.cluster.nonce();
        let content = self.cluster.prove_hand_off(self.place, &nonce, content)?;
        self.post(nonce, target, content).await
    }

    /// The same where `content` is a ticket of that member, for which it is proved.
    pub(super) async fn tell_ticket(
        &self,
        target: &'static str,
        ticket: &str,
    ) -> Option<(u16, Vec<u8>)> {
        let proved = self
            .cluster
            .prove_hand_off(self.place, ticket, ticket.as_bytes())?;
        self.post(self.cluster.nonce(), target, proved).await
    }

    async fn post(
        &self,
        nonce: String,
        target: &'static str,
        content: Vec<u8>,
    ) -> Option<(u16, Vec<u8>)> {
        let message = Message {
            settings: Arc::clone(self.settings),
            cluster: Arc::clone(&self.cluster),
            place: self.place,
            target,
            nonce,
            content,
        };
        self.hand_offs.send(self.worker, message).await
    }
}
