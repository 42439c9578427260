//! TLS toward next hops.
//!
//! A [`Trust`] says whom the certificate of a next hop must be from; a [`TlsClient`] is the state
//! of all connections with one: authorities and sessions to resume. A certificate that is neither
//! from one of them nor theirs, or not for the host by whose name the next hop is configured, ends
//! the handshake, and nothing is sent that is not of the handshake.

mod certificate_refusal;
mod handshake;
mod tls_client;
mod trust;
mod verified_stream;
mod verifier;

pub(crate) use certificate_refusal::UNTRUSTED;
pub(crate) use handshake::{TlsFailure, handshake};
pub use tls_client::{TlsClient, TlsClients};
pub use trust::{Authorities, AuthoritiesError, Trust};
pub use verified_stream::VerifiedStream;
#[cfg(test)]
pub(super) use {certificate_refusal::certificate_refusal, verifier::verifier};

use rustls::client::UnbufferedClientConnection;

/// A connection to a next hop under TLS.
pub(crate) type NextHopTls = super::TlsStream<UnbufferedClientConnection>;
