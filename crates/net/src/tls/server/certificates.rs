//! The certificates of a listener, and which of them a client gets.

use super::certificate::Certificate;
use super::validations::{ACME_TLS, Validations};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::{CipherSuite, SignatureAlgorithm, SignatureScheme};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

/// What a listener has to show its clients.
#[derive(Debug, Default)]
pub struct ServerCertificates {
    /// The certificates; the first is also for clients that name no host, or one that none is for.
    pub ready: Vec<Certificate>,
    /// Names that a certificate is to come for, in lower case: their clients get none until then,
    /// but one with a wildcard.
    pub awaited: Vec<Box<str>>,
    /// Whether the first certificate is one of those: clients that name no host, or one that none
    /// is for, get none.
    pub is_first_awaited: bool,
    /// Certificates for authorities that validate names.
    pub validations: Arc<Validations>,
}

impl From<Vec<Certificate>> for ServerCertificates {
    fn from(ready: Vec<Certificate>) -> Self {
        Self {
            ready,
            ..Self::default()
        }
    }
}

/// Certificates by the names that they are for.
#[derive(Debug)]
pub(super) struct Certificates {
    all: Box<[Certificate]>,
    /// Places in `all` by name, those with wildcards as they are written; of each name first those
    /// whose handshakes cost least. Of a name that a certificate is to come for there is none.
    by_name: HashMap<Box<str>, Vec<usize>>,
    /// Places of those with the names of the first.
    default: Vec<usize>,
    validations: Arc<Validations>,
}

impl Certificates {
    pub(super) fn new(certificates: ServerCertificates) -> Self {
        let ServerCertificates {
            ready: all,
            awaited,
            is_first_awaited,
            validations,
        } = certificates;
        let mut by_name: HashMap<Box<str>, Vec<usize>> = HashMap::new();
        for (place, certificate) in all.iter().enumerate() {
            for name in certificate.names() {
                let places = by_name.entry(name.into()).or_default();
                if !places.contains(&place) {
                    places.push(place);
                }
            }
        }
        // a signature by RSA takes many times as long as one on an elliptic curve
        for places in by_name.values_mut() {
            places.sort_by_key(|place| all[*place].algorithm() == SignatureAlgorithm::RSA);
        }
        let first = all.first().filter(|_| !is_first_awaited);
        let of_its_names = |first: &Certificate| {
            let name = first.names().next();
            let places = name.and_then(|name| by_name.get(name)).cloned();
            places.unwrap_or_else(|| vec![0])
        };
        let default = first.map(of_its_names).unwrap_or_default();
        for name in awaited {
            by_name.entry(name).or_default();
        }
        Self {
            default,
            all: all.into(),
            by_name,
            validations,
        }
    }

    pub(super) const fn all(&self) -> &[Certificate] {
        &self.all
    }

    /// The places of those that clients may get which name this host, best first; of those that
    /// name none without one.
    pub(super) fn offered_for(&self, host: Option<&str>) -> &[usize] {
        host.map_or(&self.default[..], |host| self.places(host))
    }

    /// The places of those for a host, best first.
    fn places(&self, host: &str) -> &[usize] {
        let host = host.strip_suffix('.').unwrap_or(host);
        let exact = self.by_name.get(host);
        if let Some(places) = exact
            && !places.is_empty()
        {
            return places;
        }
        let wildcard = host.split_once('.').and_then(|(_, parent)| {
            let parent = format!("*.{parent}");
            self.by_name.get(&*parent)
        });
        wildcard.or(exact).unwrap_or(&self.default)
    }

    /// The certificate for a client, by what it has said; `None` if it can verify none of them.
    fn choose(
        &self,
        host: Option<&str>,
        schemes: &[SignatureScheme],
        suites: &[CipherSuite],
    ) -> Option<usize> {
        let places = self.offered_for(host);
        let is_usable = |place: &&usize| {
            let certificate = &self.all[**place];
            let key = &certificate.certified_key().key;
            key.choose_scheme(schemes).is_some() && has_suite(certificate.algorithm(), suites)
        };
        places.iter().find(is_usable).copied()
    }
}

/// Whether a client that knows these cipher suites can use a key of this algorithm: those of TLS
/// 1.2 name one.
fn has_suite(algorithm: SignatureAlgorithm, suites: &[CipherSuite]) -> bool {
    let provider = super::super::provider();
    let mut known = provider.cipher_suites.iter();
    known.any(|suite| {
        suites.contains(&suite.suite()) && suite.usable_for_signature_algorithm(algorithm)
    })
}

/// Chooses the certificate of one connection, and remembers which.
#[derive(Debug)]
pub(in crate::tls) struct ConnectionCertificate {
    certificates: Arc<Certificates>,
    chosen: OnceLock<(Option<Box<str>>, usize)>,
    /// There is none for the client: `rustls` has no error of its own for that.
    is_lacking: AtomicBool,
}

impl ConnectionCertificate {
    pub(super) const fn new(certificates: Arc<Certificates>) -> Self {
        Self {
            certificates,
            chosen: OnceLock::new(),
            is_lacking: AtomicBool::new(false),
        }
    }

    /// Whether an authority may validate a name now.
    pub(super) fn may_validate(&self) -> bool {
        !self.certificates.validations.is_empty()
    }

    /// The name that the client has called the host by, and the certificate that it was given, once
    /// it was.
    pub(super) fn chosen(&self) -> Option<(Option<&str>, &Certificate)> {
        let (name, place) = self.chosen.get()?;
        Some((name.as_deref(), &self.certificates.all[*place]))
    }

    /// Whether there is no certificate for the client.
    pub(super) fn is_lacking(&self) -> bool {
        self.is_lacking.load(Ordering::Relaxed)
    }

    fn certificate_for(&self, hello: &ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let name = hello.server_name().map(str::to_ascii_lowercase);
        let certificates = &self.certificates;
        if is_validation(hello) {
            return certificates.validations.of(name.as_deref()?);
        }
        let place = certificates.choose(
            name.as_deref(),
            hello.signature_schemes(),
            hello.cipher_suites(),
        )?;
        // called again after a HelloRetryRequest, whose client says the same
        let _ = self.chosen.set((name.map(Into::into), place));
        Some(Arc::clone(certificates.all[place].certified_key()))
    }
}

impl ResolvesServerCert for ConnectionCertificate {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let certificate = self.certificate_for(&hello);
        self.is_lacking
            .store(certificate.is_none(), Ordering::Relaxed);
        certificate
    }
}

/// Whether an authority validates a name: it offers that protocol and no other (RFC 8737 §3).
fn is_validation(hello: &ClientHello<'_>) -> bool {
    let Some(mut offered) = hello.alpn() else {
        return false;
    };
    offered.next() == Some(ACME_TLS) && offered.next().is_none()
}
