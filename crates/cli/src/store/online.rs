//! A store that a proxy uses, by its admin interface: page after page.

use crate::messages::Failure;
use crate::operate::{self, AdminEndpoint, AdminFlags, Reply};
use serde::de::DeserializeOwned;
use weir_proxy::config::AdminAddress;
use weir_proxy::on_disk::report::StorePage;

/// A proxy that uses a store.
pub(super) struct OnlineStore(AdminEndpoint);

impl OnlineStore {
    /// The one that is meant.
    pub(super) fn find(flags: &AdminFlags) -> Result<Self, Failure> {
        operate::endpoint(flags).map(Self)
    }

    /// Where it is asked.
    pub(super) const fn address(&self) -> &AdminAddress {
        &self.0.address
    }

    /// What it answers to a call, whatever that is.
    pub(super) fn reply(&self, call: &str, what: &str) -> Result<Reply, Failure> {
        operate::post_for_reply(&self.0, &format!("/store/{call}"), what)
    }

    /// The failure for an answer that is not what was asked for.
    pub(super) fn refused(&self, reply: &Reply, what: &str) -> Failure {
        operate::refused(&self.0, reply, what)
    }

    /// Has `take` each page of what a call gives; `call` ends with `?`, or with `&` behind its
    /// parameters.
    pub(super) fn each_page<T: DeserializeOwned>(
        &self,
        call: &str,
        what: &str,
        take: &mut dyn FnMut(Vec<T>) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let mut from = String::new();
        loop {
            let reply = self.reply(&format!("{call}{from}"), what)?;
            if reply.status != 200 {
                return Err(self.refused(&reply, what));
            }
            let page: StorePage<T> = self.read(&reply, what)?;
            take(page.items)?;
            match page.next {
                Some(next) => from = format!("from={next}"),
                None => return Ok(()),
            }
        }
    }

    /// A reply as what it should be.
    pub(super) fn read<T: DeserializeOwned>(
        &self,
        reply: &Reply,
        what: &str,
    ) -> Result<T, Failure> {
        serde_json::from_str(&reply.body).map_err(|error| {
            let cause = format!(
                "the proxy at {} answered something else: {error}",
                self.0.address
            );
            Failure::outside(what, cause).hint("is it of the version of this `weir`?")
        })
    }
}
