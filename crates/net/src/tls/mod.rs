//! TLS (RFC 8446, RFC 5246) by `rustls`, with `aws-lc-rs` as the one provider of cryptography.
//!
//! * `RecordLayer` has the state of one connection, of either side, and no socket: records in,
//!   content out, and the other way. It uses the unbuffered interface of `rustls`: records pass
//!   through memory of the thread, so that a connection that waits owns no buffer. What it does
//!   hold is the begin of a record whose rest has not come, and records that the kernel has not
//!   taken.
//! * [`TlsStream`] is that over a socket, with the calls that HTTP streams make.
//! * [`server`] is the side toward clients: certificates by name, session tickets, the handshake
//!   and its limits.
//! * [`client`] is the side toward next hops: whom their certificates must be from, the handshake,
//!   and why one fails.
//!
//! Deliberately absent: 0-RTT (a request could be replayed), client certificates, and OCSP.

pub mod client;
mod record_layer;
mod scratch;
pub mod server;
mod stream;
#[cfg(test)]
mod tests;
mod time_length;
mod variant_words;

pub use client::{TlsClient, TlsClients, Trust};
pub use server::TlsServer;
pub use stream::TlsStream;

use rustls::CipherSuite;
use rustls::crypto::CryptoProvider;
use std::sync::{Arc, OnceLock};

/// The provider of cryptography, which all connections share: its defaults, with AES-128 and
/// SHA-256 first, as browsers have it. They are what every peer has (RFC 8446 §9.1), and what most
/// processors have instructions for: a session is resumed at half the cost.
fn provider() -> Arc<CryptoProvider> {
    static PROVIDER: OnceLock<Arc<CryptoProvider>> = OnceLock::new();
    let provider = PROVIDER.get_or_init(|| {
        let mut provider = rustls::crypto::aws_lc_rs::default_provider();
        let suites = &mut provider.cipher_suites;
        suites.sort_by_key(|suite| !is_aes_128(suite.suite()));
        Arc::new(provider)
    });
    Arc::clone(provider)
}

fn is_aes_128(suite: CipherSuite) -> bool {
    matches!(
        suite,
        CipherSuite::TLS13_AES_128_GCM_SHA256
            | CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256
            | CipherSuite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256
    )
}
