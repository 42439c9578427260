//! Whom a next hop's certificate must be from.

use super::certificate_refusal::certificate_refusal;
use crate::tls::server::pem_reason;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::{self, PemObject as _};
use rustls::{Error, RootCertStore};
use std::fmt;
use std::path::PathBuf;

/// How a next hop proves that it is the one that is meant.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Trust {
    /// By a certificate for its host from an authority that the system trusts.
    #[default]
    System,
    /// By one from an authority in this file, and from no other.
    File(PathBuf),
    /// By nothing: what accepts the connection is believed to be the next hop.
    Unverified,
}

/// The certificates of authorities.
#[derive(Clone, Debug)]
pub struct Authorities(pub(super) RootCertStore);

/// Why there are no authorities.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuthoritiesError {
    /// What is wrong.
    pub reason: String,
}

impl fmt::Display for AuthoritiesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)
    }
}

impl std::error::Error for AuthoritiesError {}

impl Authorities {
    /// Those of the system: of the file and the folder in `SSL_CERT_FILE` and `SSL_CERT_DIR`, else
    /// of where this kind of system has them. Certificates that cannot be read are left out.
    ///
    /// # Errors
    ///
    /// There is none.
    pub fn of_system() -> Result<Self, AuthoritiesError> {
        let found = rustls_native_certs::load_native_certs();
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(found.certs);
        if !roots.is_empty() {
            return Ok(Self(roots));
        }
        let reason = match found.errors.first() {
            Some(error) => format!("this system has no certificates of authorities: {error}"),
            None => "this system has no certificates of authorities".to_owned(),
        };
        Err(AuthoritiesError { reason })
    }

    /// Those in the text of a file in PEM (RFC 7468).
    ///
    /// # Errors
    ///
    /// It has none, or one that cannot be read.
    pub fn from_pem(text: &[u8]) -> Result<Self, AuthoritiesError> {
        let error = |reason| Err(AuthoritiesError { reason });
        let certificates: Result<Vec<_>, pem::Error> =
            CertificateDer::pem_slice_iter(text).collect();
        let certificates = match certificates {
            Ok(certificates) => certificates,
            Err(wrong) => return error(pem_reason(&wrong)),
        };
        if certificates.is_empty() {
            return error("it has no certificate".to_owned());
        }
        let mut roots = RootCertStore::empty();
        for (place, certificate) in certificates.into_iter().enumerate() {
            if let Err(wrong) = roots.add(certificate) {
                let number = place + 1;
                let wrong = match &wrong {
                    Error::InvalidCertificate(why) => certificate_refusal(why),
                    other => other.to_string(),
                };
                return error(format!("its certificate {number} is refused: {wrong}"));
            }
        }
        Ok(Self(roots))
    }
}
