//! Which certificates are ordered, and from whom.

use std::path::PathBuf;
use std::time::Duration;
use weir_net::tls::client::Authorities;

/// Names of one certificate: Let's Encrypt permits as many.
pub const NAMES_MAX: usize = 100;

/// How it is proved that a name is served here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChallengeKind {
    /// By a response at port 80 (RFC 8555 §8.3).
    Http01,
    /// By a certificate at port 443 (RFC 8737).
    TlsAlpn01,
}

/// Which certificates are ordered, and from whom.
#[derive(Clone, Debug)]
pub struct AcmeSettings {
    /// The URL of the authority's directory, of scheme `https`.
    pub directory: String,
    /// Whom the authority's own certificate must be from.
    pub authorities: Authorities,
    /// URLs by which the authority reaches the operator, such as `mailto:` ones.
    pub contact: Vec<String>,
    /// How names are proved.
    pub challenge: ChallengeKind,
    /// The folder of [`Storage`](crate::Storage).
    pub folder: PathBuf,
    /// The wait after the first failure.
    pub retry_min: Duration,
    /// The names of each certificate, in lower case, at least one and at most [`NAMES_MAX`].
    pub certificates: Vec<Vec<Box<str>>>,
}
