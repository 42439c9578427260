//! What the connections with one trust share.

use super::trust::{Authorities, Trust};
use super::verifier::verifier;
use crate::tls::provider;
use rustls::ClientConfig;
use rustls::client::Resumption;
use rustls::version::{TLS12, TLS13};
use std::collections::HashMap;
use std::sync::Arc;

/// Hosts whose sessions are kept to be resumed.
const SESSION_HOSTS_MAX: usize = 256;

/// The name of HTTP/1.1 where the protocol is chosen by the handshake (RFC 7301).
const HTTP1: &[u8] = b"http/1.1";

/// That of HTTP/2 (RFC 9113 §3.2).
const HTTP2: &[u8] = b"h2";

/// What the connections with one trust share. It does not change.
#[derive(Debug)]
pub struct TlsClient {
    config: Arc<ClientConfig>,
    /// The same where HTTP/2 may be spoken, too. They share sessions.
    http2_config: Arc<ClientConfig>,
    /// None: certificates are not verified.
    authorities: Option<Authorities>,
}

impl TlsClient {
    /// Connections to what has a certificate from one of `authorities` for its host; without them,
    /// to anything.
    ///
    /// # Panics
    ///
    /// The provider of cryptography does not know the versions: it is built with both.
    #[must_use]
    pub fn new(authorities: Option<Authorities>) -> Self {
        let config = ClientConfig::builder_with_provider(provider());
        let config = config.with_protocol_versions(&[&TLS13, &TLS12]);
        let config = config.expect("a provider with both versions");
        let config = config
            .dangerous()
            .with_custom_certificate_verifier(verifier(authorities.as_ref()));
        let mut config = config.with_no_client_auth();
        config.alpn_protocols = vec![HTTP1.to_vec()];
        config.resumption = Resumption::in_memory_sessions(SESSION_HOSTS_MAX);
        let mut http2_config = config.clone();
        http2_config.alpn_protocols = vec![HTTP2.to_vec(), HTTP1.to_vec()];
        Self {
            config: Arc::new(config),
            http2_config: Arc::new(http2_config),
            authorities,
        }
    }

    /// What a connection is opened with; HTTP/2 is offered on it if it `offers_http2`.
    pub(super) const fn config(&self, offers_http2: bool) -> &Arc<ClientConfig> {
        match offers_http2 {
            true => &self.http2_config,
            false => &self.config,
        }
    }

    /// Whether it trusts whom `authorities` say.
    fn trusts(&self, authorities: Option<&Authorities>) -> bool {
        match (&self.authorities, authorities) {
            (Some(own), Some(others)) => own.0.roots == others.0.roots,
            (None, None) => true,
            (Some(_), None) | (None, Some(_)) => false,
        }
    }
}

/// What connections are opened with, by whom they trust.
#[derive(Clone, Debug, Default)]
pub struct TlsClients(HashMap<Trust, Arc<TlsClient>>);

impl TlsClients {
    /// Has connections with `trust` be opened with `authorities`, or with what those of `before`
    /// share if it trusts the same: their connections and sessions are used on.
    pub fn put(&mut self, trust: Trust, authorities: Option<Authorities>, before: Option<&Self>) {
        let before = before.and_then(|before| before.0.get(&trust));
        let same = before.filter(|client| client.trusts(authorities.as_ref()));
        let client = same.map_or_else(|| Arc::new(TlsClient::new(authorities)), Arc::clone);
        self.0.insert(trust, client);
    }

    /// Whether connections with `trust` can be opened.
    #[must_use]
    pub fn has(&self, trust: &Trust) -> bool {
        self.0.contains_key(trust)
    }

    pub(crate) fn of(&self, trust: &Trust) -> Option<&Arc<TlsClient>> {
        self.0.get(trust)
    }
}
