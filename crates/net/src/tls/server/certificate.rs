//! A certificate with its chain and key, checked.

use super::addresses::addresses;
use super::private_key;
use crate::tls::provider;
use crate::tls::time_length::length;
use crate::tls::variant_words::variant_words;
use rustls::SignatureAlgorithm;
use rustls::pki_types::pem::{self, PemObject as _};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use rustls::sign::CertifiedKey;
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;
use webpki::{EndEntityCert, KeyUsage, anchor_from_trusted_cert};

/// A certificate with its chain and its key, which its clones share.
#[derive(Clone, Debug)]
pub struct Certificate {
    key: Arc<CertifiedKey>,
    /// Names of hosts, in lower case; `*.` begins one that stands for each label.
    names: Box<[Box<str>]>,
    addresses: Box<[IpAddr]>,
    valid_s: (u64, u64),
    serial: Box<[u8]>,
}

/// Of what age a certificate may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ages {
    /// It must be valid now.
    Valid,
    /// It may have expired, or not be valid yet.
    Any,
}

/// Of which file something is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PemFile {
    /// The certificate and those between it and an authority.
    Chain,
    /// The private key.
    Key,
}

/// Why a certificate cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateError {
    /// The file at fault.
    pub file: PemFile,
    /// What is wrong with it.
    pub reason: String,
    /// What to do.
    pub hint: &'static str,
}

impl CertificateError {
    fn chain(reason: impl Into<String>, hint: &'static str) -> Self {
        Self {
            file: PemFile::Chain,
            reason: reason.into(),
            hint,
        }
    }

    pub(super) fn key(reason: impl Into<String>, hint: &'static str) -> Self {
        Self {
            file: PemFile::Key,
            reason: reason.into(),
            hint,
        }
    }
}

impl fmt::Display for CertificateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)
    }
}

impl std::error::Error for CertificateError {}

impl Certificate {
    /// A certificate from the text of two files in PEM (RFC 7468): `chain` begins with it, and goes
    /// on with those that lead to an authority, each signing the one before. `now_s` is the time,
    /// seconds since 1970.
    ///
    /// # Errors
    ///
    /// One of them cannot be read, the key is that of another certificate, or the certificate is
    /// not valid now, if it has to be, or not for servers.
    pub fn from_pem(
        chain: &[u8],
        key: &[u8],
        now_s: u64,
        ages: Ages,
    ) -> Result<Self, CertificateError> {
        let text = chain;
        let chain: Result<Vec<_>, pem::Error> = CertificateDer::pem_slice_iter(chain).collect();
        let chain = chain.map_err(|error| CertificateError::chain(reason(&error), CHAIN_FORM))?;
        let Some(first) = chain.first().cloned() else {
            return Err(match is_swapped(text, key) {
                true => CertificateError::chain(
                    "it has a private key, and the file of the key has a certificate",
                    "`chain` and `key` are exchanged",
                ),
                false => CertificateError::chain("it has no certificate", CHAIN_FORM),
            });
        };
        let key = private_key::signing_key(&private_key::read(key)?)?;
        let parsed = EndEntityCert::try_from(&first).map_err(|error| {
            let reason = format!(
                "its first certificate cannot be read: {}",
                variant_words(&error)
            );
            CertificateError::chain(reason, "use a certificate of X.509 version 3")
        })?;
        let names = parsed.valid_dns_names();
        let names: Box<[Box<str>]> = names.map(|name| name.to_ascii_lowercase().into()).collect();
        let addresses = addresses(&parsed, &first).into();
        let valid_s = validity_of(&parsed, &first)?;
        check_validity(&parsed, &first, (valid_s, now_s), ages)?;
        let serial = parsed.serial().into();
        let key = CertifiedKey::new(chain, key);
        if key.keys_match().is_err() {
            return Err(CertificateError::key(
                "it is the key of another certificate than the first one of the chain",
                "name the key that the certificate was issued for; the server's own certificate is \
                 the first of the chain",
            ));
        }
        Ok(Self {
            key: Arc::new(key),
            names,
            addresses,
            valid_s,
            serial,
        })
    }

    /// From when until when it is valid, seconds since 1970.
    #[must_use]
    pub const fn valid_s(&self) -> (u64, u64) {
        self.valid_s
    }

    /// Its serial number, as it is encoded (RFC 5280 §4.1.2.2).
    #[must_use]
    pub fn serial(&self) -> &[u8] {
        &self.serial
    }

    /// The certificate in DER.
    #[must_use]
    pub fn der(&self) -> &[u8] {
        self.key.cert.first().map_or(&[], |der| der)
    }

    /// The names that it is for, in lower case. Addresses, which clients do not name, are not among
    /// them.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(|name| &**name)
    }

    /// The addresses that it is for.
    #[must_use]
    pub fn addresses(&self) -> &[IpAddr] {
        &self.addresses
    }

    /// Whether it is for `host`, which is in lower case (RFC 6125 §6.4).
    #[must_use]
    pub fn covers(&self, host: &str) -> bool {
        let host = host.strip_suffix('.').unwrap_or(host);
        let behind_first_label = host.split_once('.').map(|(_, rest)| rest);
        self.names().any(|name| match name.strip_prefix("*.") {
            Some(parent) => behind_first_label == Some(parent),
            None => name == host,
        })
    }

    pub(super) const fn certified_key(&self) -> &Arc<CertifiedKey> {
        &self.key
    }

    pub(super) fn algorithm(&self) -> SignatureAlgorithm {
        self.key.key.algorithm()
    }
}

const CHAIN_FORM: &str = "use a file in PEM: the certificate of the server, then those of the \
                          authorities in between, each from `-----BEGIN CERTIFICATE-----` on";

/// Whether the text for the chain has a key instead, and the other way round.
fn is_swapped(chain: &[u8], key: &[u8]) -> bool {
    let has_certificate = CertificateDer::pem_slice_iter(key).any(|it| it.is_ok());
    has_certificate && PrivateKeyDer::from_pem_slice(chain).is_ok()
}

/// What is wrong with a file in PEM.
pub(in crate::tls) fn reason(error: &pem::Error) -> String {
    match error {
        pem::Error::MissingSectionEnd { end_marker } => {
            let marker = String::from_utf8_lossy(end_marker);
            format!("a section has no end `{}`", marker.trim_end_matches('-'))
        }
        pem::Error::IllegalSectionStart { line } => {
            let line = String::from_utf8_lossy(line);
            format!("a section begins with `{}`", line.trim_end())
        }
        pem::Error::Base64Decode(_) => "a section is no base64".to_owned(),
        other => other.to_string(),
    }
}

/// Refuses a certificate that is not valid at this time, or that is not for servers. Whether
/// clients trust its authority is not known here.
fn check_validity(
    parsed: &EndEntityCert<'_>,
    certificate: &CertificateDer<'_>,
    (valid_s, now_s): ((u64, u64), u64),
    ages: Ages,
) -> Result<(), CertificateError> {
    // inside of what it is valid for, of which each certificate has some second
    let at_s = match ages {
        Ages::Valid => now_s,
        Ages::Any => valid_s.0,
    };
    match verify_at(parsed, certificate, at_s) {
        Err(webpki::Error::CertExpired { not_after, .. }) => Err(CertificateError::chain(
            format!(
                "its first certificate has expired {}",
                ago(now_s, not_after)
            ),
            "have it renewed",
        )),
        Err(webpki::Error::CertNotValidYet { not_before, .. }) => Err(CertificateError::chain(
            format!(
                "its first certificate is not valid yet: it is in {}",
                length(not_before.as_secs().saturating_sub(now_s))
            ),
            "see whether the clock of this machine is right",
        )),
        Err(webpki::Error::RequiredEkuNotFoundContext(_)) => Err(CertificateError::chain(
            "its first certificate is not for servers (extended key usage)",
            "have it issued for the authentication of servers",
        )),
        _ => Ok(()),
    }
}

/// What is found wrong before a chain is looked for, which does not depend on the authority.
fn verify_at(
    parsed: &EndEntityCert<'_>,
    certificate: &CertificateDer<'_>,
    at_s: u64,
) -> Result<(), webpki::Error> {
    let Ok(anchor) = anchor_from_trusted_cert(certificate) else {
        return Ok(());
    };
    let anchors = [anchor];
    let algorithms = provider().signature_verification_algorithms;
    let verified = parsed.verify_for_usage(
        algorithms.all,
        &anchors,
        &[],
        UnixTime::since_unix_epoch(Duration::from_secs(at_s)),
        KeyUsage::server_auth(),
        None,
        None,
    );
    verified.map(|_| ())
}

/// From when until when a certificate is valid, seconds since 1970: what is wrong with it long
/// before and long after says so.
///
/// # Errors
///
/// It ends before it begins, or its times cannot be read.
fn validity_of(
    parsed: &EndEntityCert<'_>,
    certificate: &CertificateDer<'_>,
) -> Result<(u64, u64), CertificateError> {
    let begin = match verify_at(parsed, certificate, 0) {
        Err(webpki::Error::CertNotValidYet { not_before, .. }) => not_before.as_secs(),
        _ => 0,
    };
    match verify_at(parsed, certificate, u64::MAX) {
        Err(webpki::Error::CertExpired { not_after, .. }) => Ok((begin, not_after.as_secs())),
        Err(webpki::Error::InvalidCertValidity) => Err(CertificateError::chain(
            "its first certificate has expired: it ends before it begins",
            "have it issued again, for a time that has not passed",
        )),
        _ => Err(CertificateError::chain(
            "the time that its first certificate is valid for cannot be read",
            "have it issued again",
        )),
    }
}

fn ago(now_s: u64, then: UnixTime) -> String {
    format!("{} ago", length(now_s.saturating_sub(then.as_secs())))
}
