//! TLS toward clients.
//!
//! A [`TlsServer`] is what a listener offers: certificates, versions, keys of session tickets. It
//! does not change; a connection keeps the one that its handshake began with.

mod addresses;
mod certificate;
mod certificates;
mod handshake;
mod private_key;
mod tls_server;
mod validations;

pub(in crate::tls) use certificate::reason as pem_reason;
pub use certificate::{Ages, Certificate, CertificateError, PemFile};
pub use certificates::ServerCertificates;
pub use handshake::{HandshakeFailure, HandshakeRules, Handshakes};
pub use tls_server::{ClientName, TICKET_PERIOD_MAX, TicketKeys, TlsServer, VersionMin};
pub use validations::{ACME_TLS, Validations};
