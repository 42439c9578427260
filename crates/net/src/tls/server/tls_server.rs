//! What a listener offers.

use super::certificate::Certificate;
use super::certificates::{Certificates, ConnectionCertificate, ServerCertificates};
use super::validations::ACME_TLS;
use crate::tls::provider;
use rustls::crypto::GetRandomFailed;
use rustls::server::{NoServerSessionStorage, ProducesTickets};
use rustls::ticketer::TicketRotator;
use rustls::version::{TLS12, TLS13};
use rustls::{ServerConfig, SupportedProtocolVersion};
use std::sync::Arc;
use std::time::Duration;

/// The least version of TLS that is spoken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VersionMin {
    /// TLS 1.2 (RFC 5246) and 1.3 (RFC 8446).
    Tls12,
    /// TLS 1.3 alone.
    Tls13,
}

impl VersionMin {
    fn versions(self) -> &'static [&'static SupportedProtocolVersion] {
        static FROM_12: [&SupportedProtocolVersion; 2] = [&TLS13, &TLS12];
        static FROM_13: [&SupportedProtocolVersion; 1] = [&TLS13];
        match self {
            Self::Tls12 => &FROM_12,
            Self::Tls13 => &FROM_13,
        }
    }
}

/// The longest time that one key makes session tickets.
pub const TICKET_PERIOD_MAX: Duration = Duration::from_hours(6);

/// The keys by which session tickets are made (RFC 8446 §4.6.1, RFC 5077), shared by all workers.
///
/// A key makes tickets for one period and is taken for one more, and then forgotten. A session is
/// resumed for the name only that it was begun for: `rustls` compares it (RFC 6066 §3).
#[derive(Clone, Debug)]
pub struct TicketKeys {
    rotator: Arc<dyn ProducesTickets>,
    period: Duration,
}

impl TicketKeys {
    /// New keys, which change after each `period`: from 1 s to [`TICKET_PERIOD_MAX`].
    ///
    /// # Errors
    ///
    /// The system gives no random bytes.
    pub fn new(period: Duration) -> Result<Self, rustls::Error> {
        let seconds = u32::try_from(period.as_secs()).unwrap_or(u32::MAX).max(1);
        let rotator = TicketRotator::new(seconds, || Ok(Box::new(TicketKey::new()?)))?;
        Ok(Self {
            rotator: Arc::new(rotator),
            period,
        })
    }

    /// How long a key makes tickets.
    #[must_use]
    pub const fn period(&self) -> Duration {
        self.period
    }
}

/// A key of session tickets as `rustls` makes one: it changes by itself after
/// [`TICKET_PERIOD_MAX`].
#[derive(Debug)]
struct TicketKey(Arc<dyn ProducesTickets>);

impl TicketKey {
    fn new() -> Result<Self, GetRandomFailed> {
        let key = rustls::crypto::aws_lc_rs::Ticketer::new();
        Ok(Self(key.map_err(|_| GetRandomFailed)?))
    }
}

impl ProducesTickets for TicketKey {
    fn enabled(&self) -> bool {
        self.0.enabled()
    }

    fn lifetime(&self) -> u32 {
        self.0.lifetime()
    }

    fn encrypt(&self, plain: &[u8]) -> Option<Vec<u8>> {
        self.0.encrypt(plain)
    }

    fn decrypt(&self, cipher: &[u8]) -> Option<Vec<u8>> {
        self.0.decrypt(cipher)
    }
}

/// What a listener offers: it does not change, and connections share it.
#[derive(Debug)]
pub struct TlsServer {
    config: ServerConfig,
    certificates: Arc<Certificates>,
    tickets: TicketKeys,
}

impl TlsServer {
    /// `protocols` are the names of those that are spoken over TLS (RFC 7301), best first.
    ///
    /// # Panics
    ///
    /// The provider of cryptography does not know the versions: it is built with both.
    #[must_use]
    pub fn new(
        certificates: impl Into<ServerCertificates>,
        tickets: TicketKeys,
        version_min: VersionMin,
        protocols: &[&[u8]],
    ) -> Self {
        let certificates = Arc::new(Certificates::new(certificates.into()));
        let config = ServerConfig::builder_with_provider(provider());
        let config = config.with_protocol_versions(version_min.versions());
        let config = config.expect("a provider with both versions");
        let resolver = ConnectionCertificate::new(Arc::clone(&certificates));
        let mut config = config
            .with_no_client_auth()
            .with_cert_resolver(Arc::new(resolver));
        config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
        // programs on OpenSSL put AES-256 first where they need not
        config.ignore_client_order = true;
        // tickets alone: sessions that are kept here would need a bound of their own
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.ticketer = Arc::clone(&tickets.rotator);
        config.send_tls13_tickets = TICKETS;
        Self {
            config,
            certificates,
            tickets,
        }
    }

    /// Its certificates.
    #[must_use]
    pub fn certificates(&self) -> &[Certificate] {
        self.certificates.all()
    }

    /// The places, among [`Self::certificates`], of those that clients may get which name this
    /// host, in lower case, the best first; without a host of those that name none. Which one a
    /// client gets depends on what it can verify.
    #[must_use]
    pub fn offered_for(&self, host: Option<&str>) -> &[usize] {
        self.certificates.offered_for(host)
    }

    /// The keys of its session tickets, for what takes its place.
    #[must_use]
    pub const fn tickets(&self) -> &TicketKeys {
        &self.tickets
    }

    /// The configuration of one connection, and what chooses its certificate.
    pub(in crate::tls) fn for_connection(&self) -> (Arc<ServerConfig>, Arc<ConnectionCertificate>) {
        let certificate = Arc::new(ConnectionCertificate::new(Arc::clone(&self.certificates)));
        let mut config = self.config.clone();
        config.cert_resolver = Arc::clone(&certificate) as _;
        if certificate.may_validate() {
            config.alpn_protocols.push(ACME_TLS.to_vec());
        }
        (Arc::new(config), certificate)
    }
}

/// Tickets that a connection of TLS 1.3 gets: most clients use one, and browsers open two
/// connections at once.
const TICKETS: usize = 2;

/// By what name a client has called the host, and what the certificate that it was given is for.
#[derive(Debug)]
pub struct ClientName {
    certificate: Arc<ConnectionCertificate>,
}

impl ClientName {
    pub(super) const fn new(certificate: Arc<ConnectionCertificate>) -> Self {
        Self { certificate }
    }

    /// Whether requests for `host`, in lower case, may come on the connection: it is the name that
    /// the client has called (RFC 6066 §3), or one that the certificate is for. A client that has
    /// named none has proved nothing else either.
    #[must_use]
    pub fn permits(&self, host: &str) -> bool {
        match self.certificate.chosen() {
            Some((Some(name), certificate)) => {
                let host = host.strip_suffix('.').unwrap_or(host);
                name == host || certificate.covers(host)
            }
            Some((None, _)) | None => true,
        }
    }

    /// Whether `host`, in lower case, is the name that the client has called, or one that the
    /// certificate is for which it was given: what it takes this server for (RFC 9110 §4.3.3).
    #[must_use]
    pub fn is_for(&self, host: &str) -> bool {
        self.certificate
            .chosen()
            .is_some_and(|(name, certificate)| {
                let host = host.strip_suffix('.').unwrap_or(host);
                name.is_some_and(|name| name == host) || certificate.covers(host)
            })
    }
}
