//! What the thread that orders certificates has from the proxy, and what it reports.

use crate::pending::PendingChallenges;
use std::fmt;
use std::sync::Arc;
use weir_measure::{AcmeOrderEnd, Counters};
use weir_net::clock::Clock;
use weir_net::resolver::Resolver;
use weir_semantics::Timestamp;

/// What the thread has from the proxy.
pub struct Means {
    /// Finds the authority.
    pub resolver: Resolver,
    /// The time.
    pub clock: Clock,
    /// Counts orders.
    pub counters: Arc<Counters>,
    /// What listeners answer from.
    pub pending: Arc<PendingChallenges>,
    /// Writes a line for the operator.
    pub say: Arc<dyn Fn(&str) + Send + Sync>,
    /// Called when a certificate was replaced in the storage: it is to be used from then on. An
    /// error says why it is not.
    pub installed: Box<dyn Fn() -> Result<(), String> + Send>,
}

impl fmt::Debug for Means {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Means").finish_non_exhaustive()
    }
}

/// How it is with one certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateReport {
    /// The first of its names.
    pub name: Box<str>,
    /// Orders that have failed since the last one that did not.
    pub failures: u32,
    /// When one is ordered, as far as is known: a new one, or the first.
    pub order_at: Timestamp,
    /// The last order of this process.
    pub last: Option<OrderReport>,
}

/// How an order has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrderReport {
    /// When.
    pub at: Timestamp,
    /// How.
    pub end: AcmeOrderEnd,
    /// What is said of it; parts of that are the authority's. `None` of one that was issued.
    pub reason: Option<String>,
}
