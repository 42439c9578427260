//! Certificates that an authority issues by itself (ACME, RFC 8555).
//!
//! An [`Issuer`] is a thread that orders certificates and renews them: [`AcmeSettings`] says which
//! ones and from whom, `weir_policy::connections::renewal` decides when. [`Storage`] keeps the key
//! of the account and the certificates with their keys; each file is replaced whole, so that what
//! reads one has an old certificate or a new one. [`PendingChallenges`] has what proves to the
//! authority that the names are served here: listeners answer from it, by HTTP (RFC 8555 §8.3) or
//! in handshakes (RFC 8737).
//!
//! `instant-acme` has the messages and signatures of the protocol, over a client of our own
//! (`client`). Deliberately absent: challenges by DNS, and with them names with wildcards; external
//! accounts; revocation; sharing what is pending between nodes.

#![forbid(unsafe_code)]

mod pending;
mod report;
mod settings;
mod storage;

#[cfg(feature = "client")]
mod client;
#[cfg(feature = "client")]
mod identifier;
#[cfg(feature = "client")]
mod issuer;
#[cfg(feature = "client")]
mod order;

#[cfg(not(feature = "client"))]
mod absent;

#[cfg(not(feature = "client"))]
pub use absent::Issuer;
#[cfg(feature = "client")]
pub use issuer::Issuer;
pub use pending::PendingChallenges;
pub use report::{CertificateReport, Means, OrderReport};
pub use settings::{AcmeSettings, ChallengeKind, NAMES_MAX};
pub use storage::Storage;

/// Whether this build can order certificates.
pub const CAN_ORDER: bool = cfg!(feature = "client");
