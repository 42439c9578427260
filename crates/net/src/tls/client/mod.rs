//! TLS toward next hops.
//!
//! A [`Trust`] says whom the certificate of a next hop must be from; a [`TlsClient`] is the state
//! of all connections with one: authorities and sessions to resume. A certificate that is not from
//! one of them, or not for the host by whose name the next hop is configured, ends the handshake,
//! and nothing is sent that is not of the handshake.

mod handshake;
mod tls_client;
mod trust;
mod verified_stream;

pub(crate) use handshake::{TlsFailure, UNTRUSTED, handshake};
pub use tls_client::{TlsClient, TlsClients};
pub use trust::{Authorities, AuthoritiesError, Trust};
pub use verified_stream::VerifiedStream;

use rustls::client::UnbufferedClientConnection;

/// A connection to a next hop under TLS.
pub(crate) type NextHopTls = super::TlsStream<UnbufferedClientConnection>;
