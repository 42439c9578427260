//! What the connections with one trust share.

use super::trust::{Authorities, Trust};
use crate::tls::provider;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{Resumption, WebPkiServerVerifier};
use rustls::crypto::{WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::version::{TLS12, TLS13};
use rustls::{ClientConfig, DigitallySignedStruct, Error, SignatureScheme};
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
        let mut config = match &authorities {
            Some(Authorities(roots)) => {
                let roots = Arc::new(roots.clone());
                let verifier = WebPkiServerVerifier::builder_with_provider(roots, provider());
                let verifier = verifier.build().expect("authorities are never none");
                config.with_webpki_verifier(verifier)
            }
            None => {
                let algorithms = provider().signature_verification_algorithms;
                let verifier = Arc::new(Unverified { algorithms });
                config
                    .dangerous()
                    .with_custom_certificate_verifier(verifier)
            }
        }
        .with_no_client_auth();
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

/// Accepts every certificate. What it says is still signed with its key.
#[derive(Debug)]
struct Unverified {
    algorithms: WebPkiSupportedAlgorithms,
}

impl ServerCertVerifier for Unverified {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signed, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signed, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
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
