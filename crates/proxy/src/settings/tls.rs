//! The certificates of listeners, read from their files.

use crate::config::{CertificateFiles, Config, Invalid, Listener, ListenerTls, TlsVersion};
use crate::settings::{Settings, next_hop_tls};
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read as _};
use std::net::SocketAddr;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};
use weir_net::tls::TlsServer;
use weir_net::tls::server::{Certificate, CertificateError, PemFile, TicketKeys, VersionMin};

/// Bytes of a file with a chain or a key: a chain of a few certificates has some KiB.
const FILE_BYTES_MAX: u64 = 256 * 1024;

/// The names of protocols where the handshake chooses one (RFC 7301), best first.
const PROTOCOLS: [&[u8]; 2] = [HTTP2, b"http/1.1"];

/// The name of HTTP/2 (RFC 9113 §3.2).
pub(crate) const HTTP2: &[u8] = b"h2";

/// What the listeners with TLS offer, by the addresses that they are configured with.
#[derive(Clone, Debug, Default)]
pub(crate) struct TlsServers(HashMap<SocketAddr, Arc<TlsServer>>);

impl TlsServers {
    /// Reads the files of a valid configuration. Keys of session tickets go on from `before`.
    ///
    /// # Errors
    ///
    /// A file that cannot be used, and why.
    pub(crate) fn read(config: &Config, before: Option<&Self>) -> Result<Self, Invalid> {
        let listeners = config.listeners.iter().enumerate();
        let servers = listeners.filter_map(|(index, listener)| {
            let tls = listener.tls.as_ref()?;
            let before = before.and_then(|before| before.of(listener.address));
            let tickets = before.map(|before| before.tickets());
            let protocols = &PROTOCOLS[usize::from(!listener.has_http2())..];
            let server = read_server(index, tls, protocols, tickets);
            Some(server.map(|server| (listener.address, Arc::new(server))))
        });
        servers.collect::<Result<_, _>>().map(Self)
    }

    /// What the listener that is configured with this address offers.
    pub(crate) fn of(&self, address: SocketAddr) -> Option<&Arc<TlsServer>> {
        self.0.get(&address)
    }
}

/// Refuses a configuration whose certificates cannot be used.
///
/// # Errors
///
/// The first file that cannot be used, and why.
pub fn check_certificates(config: &Config) -> Result<(), Invalid> {
    TlsServers::read(config, None)?;
    next_hop_tls::read(config, None).map(drop)
}

/// What is probably a mistake with certificates that can be used: gateways that have one for a host
/// which no route is for.
#[must_use]
pub fn certificate_warnings(config: &Config) -> Vec<Invalid> {
    let Ok(servers) = TlsServers::read(config, None) else {
        return Vec::new();
    };
    let mut warnings = Vec::new();
    for (index, listener) in config.listeners.iter().enumerate() {
        if let Some(server) = servers.of(listener.address) {
            warnings.extend(without_route(config, (index, listener), server));
        }
    }
    warnings
}

fn without_route(
    config: &Config,
    (index, listener): (usize, &Listener),
    server: &TlsServer,
) -> Vec<Invalid> {
    use crate::config::{HostPattern, ListenerKind};
    let is_any = config.routes.iter().any(|route| route.host.is_none());
    if listener.mode != ListenerKind::Gateway || is_any {
        return Vec::new();
    }
    let has_route = |name: &str| {
        let mut hosts = config.routes.iter().filter_map(|route| route.host.as_ref());
        let parent = name.strip_prefix("*.");
        hosts.any(|host| match host {
            HostPattern::Exact(host) => match parent {
                None => host.as_str() == name,
                Some(parent) => is_below(host.as_str(), parent),
            },
            HostPattern::Suffix(above) => {
                let above = above.as_str();
                is_below(name, above) || parent.is_some_and(|parent| is_below(above, parent))
            }
        })
    };
    let certificates = server.certificates().iter().enumerate();
    let lacking = certificates.filter_map(|(place, certificate)| {
        let names: Vec<&str> = certificate
            .names()
            .filter(|name| !has_route(name))
            .collect();
        let first = names.first()?;
        let others = match names.len() - 1 {
            0 => String::new(),
            others => format!(", and {others} more of its names"),
        };
        Some(Invalid::new(
            format!("listener[{index}].tls.certificates[{place}].chain"),
            format!("no route is for `{first}`, which the certificate is for{others}"),
            "add a route for the host, or use a certificate without it",
        ))
    });
    lacking.collect()
}

/// Whether a name ends in a dot and `parent`.
fn is_below(name: &str, parent: &str) -> bool {
    let before = name.strip_suffix(parent);
    before.is_some_and(|before| before.ends_with('.'))
}

fn read_server(
    index: usize,
    tls: &ListenerTls,
    protocols: &[&[u8]],
    before: Option<&TicketKeys>,
) -> Result<TlsServer, Invalid> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let now_s = now.map_or(0, |now| now.as_secs());
    let certificates = tls.certificates.iter().enumerate().map(|(place, files)| {
        let path = format!("listener[{index}].tls.certificates[{place}]");
        let certificate = read_certificate(&path, files, now_s)?;
        if place > 0 && certificate.names().next().is_none() {
            return Err(Invalid::new(
                format!("{path}.chain"),
                format!(
                    "`{}`: it is for no host by name, so that no client gets it",
                    files.chain.display()
                ),
                "have it issued for the names that clients use (subjectAltName), or make it the \
                 first, which clients get that name no host",
            ));
        }
        Ok(certificate)
    });
    let certificates = certificates.collect::<Result<Vec<_>, _>>()?;
    let period = tls.ticket_rotation.as_duration();
    let tickets = match before.filter(|before| before.period() == period) {
        Some(before) => before.clone(),
        None => TicketKeys::new(period).map_err(|error| {
            Invalid::new(
                format!("listener[{index}].tls"),
                format!("no keys for session tickets can be made: {error}"),
                "see whether this system gives random bytes",
            )
        })?,
    };
    let version_min = match tls.version_min {
        TlsVersion::Tls12 => VersionMin::Tls12,
        TlsVersion::Tls13 => VersionMin::Tls13,
    };
    Ok(TlsServer::new(
        certificates,
        tickets,
        version_min,
        protocols,
    ))
}

fn read_certificate(
    path: &str,
    files: &CertificateFiles,
    now_s: u64,
) -> Result<Certificate, Invalid> {
    let unreadable = |key: &str, file: &Path, error: io::Error| {
        Invalid::new(
            format!("{path}.{key}"),
            format!("`{}` cannot be read: {error}", file.display()),
            "name a file that the user of this program can read",
        )
    };
    let chain = read_file(&files.chain, false, FILE_BYTES_MAX);
    let chain = chain.map_err(|error| unreadable("chain", &files.chain, error))?;
    let key = read_file(&files.key, true, FILE_BYTES_MAX);
    let key = key.map_err(|error| unreadable("key", &files.key, error))?;
    Certificate::from_pem(&chain, &key, now_s).map_err(|error| {
        let CertificateError { file, reason, hint } = error;
        let (key, file) = match file {
            PemFile::Chain => ("chain", &files.chain),
            PemFile::Key => ("key", &files.key),
        };
        Invalid::new(
            format!("{path}.{key}"),
            format!("`{}`: {reason}", file.display()),
            hint,
        )
    })
}

/// The text of a file; of a private one, which users other than its owner and group must not be
/// able to read.
pub(super) fn read_file(path: &Path, is_private: bool, bytes_max: u64) -> io::Result<Vec<u8>> {
    // a FIFO would make us wait for a writer
    let nonblocking = i32::try_from(rustix::fs::OFlags::NONBLOCK.bits()).unwrap_or_default();
    let mut options = File::options();
    let file = options.read(true).custom_flags(nonblocking).open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(io::Error::other("it is no file"));
    }
    let mode = metadata.permissions().mode() & 0o777;
    if is_private && mode & 0o007 != 0 {
        return Err(io::Error::other(format!(
            "it is a private key that every user can read (mode {mode:03o}; chmod 600 it)"
        )));
    }
    let mut text = Vec::new();
    file.take(bytes_max + 1).read_to_end(&mut text)?;
    if text.len() as u64 > bytes_max {
        return Err(io::Error::other(format!(
            "it is longer than {bytes_max} bytes"
        )));
    }
    Ok(text)
}

impl Settings {
    /// The same with what its listeners with TLS offer.
    pub(crate) fn with_tls(self, tls: TlsServers) -> Self {
        Self { tls, ..self }
    }
}
