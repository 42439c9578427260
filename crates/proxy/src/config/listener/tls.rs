//! TLS of a listener.

use crate::config::setting::invalid::Invalid;
use crate::config::setting::{Setting, check_range};
use crate::config::values::text::{Form, choice};
use crate::config::values::time::span::Span;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// The `tls` table of a listener.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ListenerTls {
    /// The least version that is spoken.
    #[serde(default)]
    pub version_min: TlsVersion,
    /// How long one key makes session tickets.
    #[serde(default = "ticket_rotation")]
    pub ticket_rotation: Span,
    /// Certificates and their keys; the first is also for clients that name no host, or one that
    /// none is for.
    pub certificates: Vec<ListenerCertificate>,
}

/// A certificate of a listener: its files, in PEM, or the names that it is ordered for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ListenerCertificate {
    /// The certificate, then those of the authorities in between.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chain: Option<PathBuf>,
    /// Its private key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<PathBuf>,
    /// The names that it is ordered for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub acme: Option<Vec<String>>,
}

/// Where a certificate comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CertificateSource<'c> {
    /// From these files.
    Files {
        /// The certificate, then those of the authorities in between.
        chain: &'c Path,
        /// Its private key.
        key: &'c Path,
    },
    /// From the authority in `[acme]`, for these names.
    Acme(&'c [String]),
}

impl ListenerCertificate {
    /// Where it comes from; `None` if that contradicts itself or is not whole.
    #[must_use]
    pub fn source(&self) -> Option<CertificateSource<'_>> {
        match (&self.chain, &self.key, &self.acme) {
            (Some(chain), Some(key), None) => Some(CertificateSource::Files { chain, key }),
            (None, None, Some(names)) => Some(CertificateSource::Acme(names)),
            _ => None,
        }
    }

    /// Why it has no source.
    fn check(&self, path: &str) -> Result<(), Invalid> {
        if self.source().is_some() {
            return Ok(());
        }
        let (key, reason, hint) = match (&self.chain, &self.key, &self.acme) {
            (_, _, Some(_)) => (
                ".acme",
                "a certificate that is ordered has no files of its own",
                "remove `chain` and `key`, or `acme`",
            ),
            (Some(_), _, None) => (
                ".chain",
                "the certificate has no `key`",
                "name the file with its private key in `key`",
            ),
            (None, Some(_), None) => (
                ".key",
                "the key has no certificate",
                "name the file with its certificate in `chain`",
            ),
            (None, None, None) => (
                "",
                "it names no certificate",
                "name its files in `chain` and `key`, or the names to order one for in `acme`",
            ),
        };
        Err(Invalid::new(format!("{path}{key}"), reason, hint))
    }
}

choice! {
    /// A version of TLS.
    #[derive(Default)]
    pub enum TlsVersion {
        /// RFC 5246.
        #[default]
        Tls12 = "1.2",
        /// RFC 8446.
        Tls13 = "1.3",
    }
}

impl Form for Vec<ListenerCertificate> {
    const FORM: &'static str = "a list of files in PEM, such as [{ chain = \"/etc/weir/example.com.pem\", key = \"/etc/weir/example.com.key\" }], or of names, such as [{ acme = [\"www.example.com\"] }]";
}

/// As long as `rustls` has its keys make tickets by default.
const fn ticket_rotation() -> Span {
    Span::from_hours(6)
}

/// A shorter time makes tickets useless: browsers come back after minutes.
const TICKET_ROTATION_MIN: Span = Span::from_secs(1);

/// Certificates of a listener: a handshake looks one up, and a reload reads them all.
const CERTIFICATES_MAX: usize = 10_000;

pub(super) fn settings() -> Vec<Setting> {
    vec![
        Setting::new::<Vec<ListenerCertificate>>(
            "listener[].tls.certificates",
            &[
                "With a `tls` table, clients connect to the listener by TLS. Each certificate is for the names in it, with",
                "wildcards; the client gets the one for the host that it names (SNI), of several the one that takes least",
                "time and that it can verify (ECDSA before RSA). The first is also for clients that name no host, or",
                "another one. `chain` is the certificate and those between it and an authority, `key` its private key,",
                "which other users must not be able to read. A relative path is taken from the directory that Weir is",
                "started in. A reload reads the files again. `acme` has a certificate for these names ordered from the",
                "authority in `[acme]`, and renewed.",
            ],
        ),
        Setting::new::<TlsVersion>(
            "listener[].tls.version_min",
            &[
                "The least version of TLS that is spoken; the other is 1.3. TLS 1.2 is spoken, too, by default, as some",
                "programs and devices that are in use know no other.",
            ],
        )
        .by_default(&TlsVersion::default()),
        Setting::new::<Span>(
            "listener[].tls.ticket_rotation",
            &[
                "How long one key makes session tickets, by which clients come back without a whole handshake. It is taken",
                "for as long again, then forgotten: who learns a key can read no more than the sessions of that time, and",
                "of those with TLS 1.3 none. All workers share the keys; a reload keeps them.",
            ],
        )
        .by_default(&ticket_rotation())
        .within(&TICKET_ROTATION_MIN, &ticket_rotation()),
    ]
}

/// Refuses what makes no sense of the `tls` table of the listener with this index.
pub(super) fn check(index: usize, tls: &ListenerTls) -> Result<(), Invalid> {
    let path = |key: &str| format!("listener[{index}].tls.{key}");
    for (place, certificate) in tls.certificates.iter().enumerate() {
        certificate.check(&path(&format!("certificates[{place}]")))?;
    }
    check_range(
        &path("ticket_rotation"),
        &tls.ticket_rotation,
        &TICKET_ROTATION_MIN,
        &ticket_rotation(),
    )?;
    if tls.certificates.is_empty() {
        return Err(Invalid::new(
            path("certificates"),
            "there is no certificate",
            "name the files of one, or remove the `tls` table",
        ));
    }
    if tls.certificates.len() > CERTIFICATES_MAX {
        return Err(Invalid::new(
            path("certificates"),
            format!(
                "{} certificates are more than the maximum, {CERTIFICATES_MAX}",
                tls.certificates.len()
            ),
            "use certificates for several names, or several listeners",
        ));
    }
    Ok(())
}
