//! Whether a certificate is that of the next hop that is meant.

use super::trust::Authorities;
use crate::tls::provider;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::{WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{
    CertificateError, DigitallySignedStruct, Error, OtherError, RootCertStore, SignatureScheme,
};
use std::sync::Arc;
use webpki::{EndEntityCert, anchor_from_trusted_cert};

/// Accepts the certificates of hosts that one of `authorities` has issued; without them, all.
///
/// # Panics
///
/// There are authorities, and none among them.
pub(in crate::tls) fn verifier(authorities: Option<&Authorities>) -> Arc<dyn ServerCertVerifier> {
    let Some(Authorities(roots)) = authorities else {
        let algorithms = provider().signature_verification_algorithms;
        return Arc::new(Unverified { algorithms });
    };
    let roots = Arc::new(roots.clone());
    let chain = WebPkiServerVerifier::builder_with_provider(Arc::clone(&roots), provider());
    let chain = chain.build().expect("authorities are never none");
    Arc::new(Verified { chain, roots })
}

/// Accepts certificates that an authority has issued, and those of authorities themselves, as they
/// are self-made: the default of `openssl req -x509` is an authority's (`CA:TRUE`). RFC 5280 §6.1
/// leaves to others what a certificate is that is trusted by itself; OpenSSL and browsers take it.
#[derive(Debug)]
struct Verified {
    chain: Arc<WebPkiServerVerifier>,
    roots: Arc<RootCertStore>,
}

impl Verified {
    /// Verifies the certificate of an authority, whose age has been found right: it must be one of
    /// those that are trusted, by name and key, and be for the host. The handshake proves that its
    /// key is there. What its key is for (extended key usage) decides nothing.
    fn verify_authority(
        &self,
        certificate: &CertificateDer<'_>,
        host: &ServerName<'_>,
        refusal: Error,
    ) -> Result<ServerCertVerified, Error> {
        let Ok(anchor) = anchor_from_trusted_cert(certificate) else {
            return Err(refusal);
        };
        if self.roots.roots.contains(&anchor) {
            let parsed = ParsedCertificate::try_from(certificate)?;
            return verify_server_name(&parsed, host).map(|()| ServerCertVerified::assertion());
        }
        let parsed = EndEntityCert::try_from(certificate);
        match parsed.is_ok_and(|parsed| parsed.issuer() == anchor.subject.as_ref()) {
            true => Err(CertificateError::UnknownIssuer.into()),
            false => Err(refusal),
        }
    }
}

/// Whether a certificate is refused because it is an authority's; that is found behind its age.
fn is_of_authority(error: &Error) -> bool {
    let Error::InvalidCertificate(CertificateError::Other(OtherError(other))) = error else {
        return false;
    };
    let found = other.downcast_ref::<webpki::Error>();
    found.is_some_and(|found| *found == webpki::Error::CaUsedAsEndEntity)
}

impl ServerCertVerifier for Verified {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        host: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let verified =
            self.chain
                .verify_server_cert(end_entity, intermediates, host, ocsp_response, now);
        match verified {
            Err(error) if is_of_authority(&error) => self.verify_authority(end_entity, host, error),
            verified => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.chain
            .verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.chain
            .verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.chain.supported_verify_schemes()
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
