//! The certificates of listeners, read from their files.

use crate::config::{CertificateSource, Config, Invalid, Listener, ListenerTls, TlsVersion};
use crate::settings::{Settings, acme, next_hop_tls};
use arc_swap::ArcSwap;
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read as _};
use std::net::SocketAddr;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};
use weir_acme::Storage;
use weir_net::tls::TlsServer;
use weir_net::tls::server::{
    Ages, Certificate, CertificateError, PemFile, ServerCertificates, TicketKeys, Validations,
    VersionMin,
};

/// Bytes of a file with a chain or a key: a chain of a few certificates has some KiB.
const FILE_BYTES_MAX: u64 = 256 * 1024;

/// The names of protocols where the handshake chooses one (RFC 7301), best first.
const PROTOCOLS: [&[u8]; 2] = [HTTP2, b"http/1.1"];

/// The name of HTTP/2 (RFC 9113 §3.2).
pub(crate) const HTTP2: &[u8] = b"h2";

/// What the listeners with TLS offer, by the addresses that they are configured with.
#[derive(Debug, Default)]
pub(crate) struct TlsServers {
    /// Those with certificates that are ordered are replaced when one is renewed.
    servers: HashMap<SocketAddr, ArcSwap<Offered>>,
    /// Held while they are.
    replacing: Mutex<()>,
}

/// What a listener offers.
#[derive(Debug)]
struct Offered {
    server: Arc<TlsServer>,
    /// The places in the configuration of the certificates of `server`, in their order.
    configured: Vec<usize>,
}

impl Offered {
    /// The certificate with this place in the configuration, if there is one.
    fn certificate(&self, place: usize) -> Option<&Certificate> {
        let index = self.configured.iter().position(|it| *it == place)?;
        self.server.certificates().get(index)
    }
}

/// A certificate that a listener has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ServedCertificate {
    /// The names of hosts that it is for, then the addresses.
    pub(crate) names: Vec<String>,
    /// When it ends, seconds since 1970.
    pub(crate) end_unix_s: u64,
}

/// When a certificate ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CertificateExpiry {
    /// The first of its names; where it has none, the address of the listener.
    pub(crate) name: String,
    /// Seconds since 1970.
    pub(crate) unix_s: u64,
}

impl TlsServers {
    /// Reads the files of a valid configuration; authorities that validate names are answered by
    /// `validations`. Keys of session tickets go on from `before`.
    ///
    /// # Errors
    ///
    /// A file that cannot be used, and why.
    pub(crate) fn read(
        config: &Config,
        validations: &Arc<Validations>,
        before: Option<&Self>,
    ) -> Result<Self, Invalid> {
        let listeners = config.listeners.iter().enumerate();
        let servers = listeners.filter_map(|(index, listener)| {
            listener.tls.as_ref()?;
            let before = before.and_then(|before| before.of(listener.address));
            let before = Before {
                server: before.as_deref(),
                kept: None,
            };
            let read = read_server(config, (index, listener), validations, before);
            let server = read.and_then(|(server, unread)| unread.map_or(Ok(server), Err));
            Some(server.map(|offered| (listener.address, ArcSwap::from_pointee(offered))))
        });
        Ok(Self {
            servers: servers.collect::<Result<_, _>>()?,
            replacing: Mutex::default(),
        })
    }

    /// What the listener that is configured with this address offers.
    pub(crate) fn of(&self, address: SocketAddr) -> Option<Arc<TlsServer>> {
        let offered = self.servers.get(&address)?.load();
        Some(Arc::clone(&offered.server))
    }

    /// The certificates of a listener, by their places in the configuration.
    pub(crate) fn served(&self, address: SocketAddr) -> HashMap<usize, ServedCertificate> {
        let Some(offered) = self.servers.get(&address) else {
            return HashMap::new();
        };
        let offered = offered.load();
        let certificates = offered.server.certificates().iter();
        let served = certificates.map(|certificate| ServedCertificate {
            names: {
                let names = certificate.names().map(ToOwned::to_owned);
                let addresses = certificate.addresses().iter();
                names.chain(addresses.map(ToString::to_string)).collect()
            },
            end_unix_s: certificate.valid_s().1,
        });
        offered.configured.iter().copied().zip(served).collect()
    }

    /// The places in the configuration of those certificates of a listener that clients may get
    /// which name this host, in lower case, the best first; `None` without TLS.
    pub(crate) fn offered_for(
        &self,
        address: SocketAddr,
        host: Option<&str>,
    ) -> Option<Vec<usize>> {
        let offered = self.servers.get(&address)?.load();
        let places = offered.server.offered_for(host).iter();
        Some(places.map(|place| offered.configured[*place]).collect())
    }

    /// Reads the certificates that are ordered again. Those from files stay as they are, since an
    /// operator may be writing them.
    ///
    /// # Errors
    ///
    /// The first one that cannot be used, and why: the one from before stays in its place. All
    /// others are used.
    pub(crate) fn use_ordered(
        &self,
        config: &Config,
        validations: &Arc<Validations>,
    ) -> Result<(), Invalid> {
        let _one_after_the_other = self
            .replacing
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let mut unusable = None;
        for (index, listener) in config.listeners.iter().enumerate() {
            let certificates = listener.tls.iter().flat_map(|tls| &tls.certificates);
            let mut sources = certificates.map(|certificate| certificate.source());
            let is_ordered = |source| matches!(source, Some(CertificateSource::Acme(_)));
            let server = self.servers.get(&listener.address);
            if let Some(server) = server.filter(|_| sources.any(is_ordered)) {
                let offered = server.load_full();
                let before = Before {
                    server: Some(&offered.server),
                    kept: Some(&offered),
                };
                match read_server(config, (index, listener), validations, before) {
                    Ok((read, unread)) => {
                        server.store(Arc::new(read));
                        unusable = unusable.or(unread);
                    }
                    Err(invalid) => unusable = unusable.or(Some(invalid)),
                }
            }
        }
        unusable.map_or(Ok(()), Err)
    }

    /// When each certificate ends.
    pub(crate) fn expiries(&self) -> Vec<CertificateExpiry> {
        let mut all = Vec::new();
        for (address, server) in &self.servers {
            let offered = server.load();
            all.extend(offered.server.certificates().iter().map(|it| {
                CertificateExpiry {
                    name: it
                        .names()
                        .next()
                        .map_or_else(|| address.to_string(), ToOwned::to_owned),
                    unix_s: it.valid_s().1,
                }
            }));
        }
        all
    }
}

/// Refuses a configuration whose certificates cannot be used.
///
/// # Errors
///
/// The first file that cannot be used, and why.
pub fn check_certificates(config: &Config) -> Result<(), Invalid> {
    TlsServers::read(config, &Arc::default(), None)?;
    acme::compile(config)?;
    next_hop_tls::read(config, None).map(drop)
}

/// A start is warned if a certificate ends within this time: once it has ended, another start is
/// refused.
const ENDS_SOON_S: u64 = 3 * 24 * 3600;

/// What is probably a mistake with certificates that can be used: gateways that have one for a host
/// which no route is for, files that are for no host, and those that end soon.
#[must_use]
pub fn certificate_warnings(config: &Config) -> Vec<Invalid> {
    let listeners = || config.listeners.iter().enumerate();
    let now_s = now_s();
    let mut all: Vec<Invalid> = listeners()
        .flat_map(|listener| without_route(config, listener))
        .collect();
    for (index, listener) in listeners() {
        let certificates = listener.tls.iter().flat_map(|tls| &tls.certificates);
        for (place, certificate) in certificates.enumerate() {
            if let Some(CertificateSource::Files { chain, key }) = certificate.source() {
                let path = format!("listener[{index}].tls.certificates[{place}]");
                if let Ok(read) = read_certificate(&path, (chain, key), now_s) {
                    all.extend(doubts(&path, chain, &read, now_s));
                }
            }
        }
    }
    all
}

/// What is doubtful about a certificate from a file.
fn doubts(path: &str, chain: &Path, read: &Certificate, now_s: u64) -> Vec<Invalid> {
    let doubt = |reason: String, hint: &str| {
        let reason = format!("`{}`: {reason}", chain.display());
        Invalid::new(format!("{path}.chain"), reason, hint)
    };
    let mut all = Vec::new();
    if read.names().next().is_none() {
        all.push(doubt(
            "the certificate is for no host by name: clients that use a name refuse it".to_owned(),
            "have it issued with a subjectAltName: `openssl req -x509 ... -addext \
             subjectAltName=DNS:www.example.com`",
        ));
    }
    let left_s = read.valid_s().1.saturating_sub(now_s);
    if left_s < ENDS_SOON_S {
        all.push(doubt(
            format!(
                "the certificate ends in {} hours; a start after that is refused",
                left_s.div_ceil(3600)
            ),
            "have it renewed, then `weir reload`",
        ));
    }
    all
}

fn without_route(config: &Config, (index, listener): (usize, &Listener)) -> Vec<Invalid> {
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
    let certificates = listener.tls.iter().flat_map(|tls| &tls.certificates);
    let lacking = certificates.enumerate().filter_map(|(place, certificate)| {
        let path = format!("listener[{index}].tls.certificates[{place}]");
        let (key, mut names) = match certificate.source()? {
            CertificateSource::Acme(names) => ("acme", names.to_vec()),
            CertificateSource::Files { chain, key } => {
                let read = read_certificate(&path, (chain, key), now_s()).ok()?;
                ("chain", read.names().map(ToOwned::to_owned).collect())
            }
        };
        names.retain(|name| !has_route(name));
        let first = names.first()?;
        let others = match names.len() - 1 {
            0 => String::new(),
            others => format!(", and {others} more of its names"),
        };
        Some(Invalid::new(
            format!("{path}.{key}"),
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

fn now_s() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0, |now| now.as_secs())
}

/// What a listener has offered before.
#[derive(Clone, Copy)]
struct Before<'a> {
    /// Its keys of session tickets go on.
    server: Option<&'a TlsServer>,
    /// With this one, of the same configuration, files are not read again.
    kept: Option<&'a Offered>,
}

/// What the listener with this index offers, and why one that is ordered could not be read in whose
/// place that from before is used.
fn read_server(
    config: &Config,
    (index, listener): (usize, &Listener),
    validations: &Arc<Validations>,
    before: Before<'_>,
) -> Result<(Offered, Option<Invalid>), Invalid> {
    let Some(tls) = &listener.tls else {
        return Err(Invalid::new(
            format!("listener[{index}].tls"),
            "there is no TLS",
            "add the table",
        ));
    };
    let read = read_certificates(index, tls, &acme::storage(config), before.kept)?;
    let certificates = ServerCertificates {
        validations: Arc::clone(validations),
        ..read.certificates
    };
    let protocols = &PROTOCOLS[usize::from(!listener.has_http2())..];
    let period = tls.ticket_rotation.as_duration();
    let before = before.server.map(TlsServer::tickets);
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
    let server = TlsServer::new(certificates, tickets, version_min, protocols);
    let offered = Offered {
        server: Arc::new(server),
        configured: read.configured,
    };
    Ok((offered, read.unread))
}

#[derive(Default)]
struct ReadCertificates {
    certificates: ServerCertificates,
    /// The places in the configuration of those that are ready.
    configured: Vec<usize>,
    /// Why the first could not be read of those that are ordered, in whose place one is used that
    /// was used before.
    unread: Option<Invalid>,
}

impl ReadCertificates {
    fn push(&mut self, place: usize, certificate: Certificate) {
        self.certificates.ready.push(certificate);
        self.configured.push(place);
    }
}

/// The certificates of the listener with this index. Of those that are ordered there may be none
/// yet, and one that has expired is used until another is there. With those that are `kept`, those
/// from files are not read again.
fn read_certificates(
    index: usize,
    tls: &ListenerTls,
    storage: &Storage,
    kept: Option<&Offered>,
) -> Result<ReadCertificates, Invalid> {
    let mut all = ReadCertificates::default();
    for (place, certificate) in tls.certificates.iter().enumerate() {
        let path = format!("listener[{index}].tls.certificates[{place}]");
        let before = kept.and_then(|kept| kept.certificate(place));
        match certificate.source() {
            Some(CertificateSource::Files { chain, key }) => {
                if let Some(before) = before {
                    all.push(place, before.clone());
                    continue;
                }
                let certificate = read_certificate(&path, (chain, key), now_s())?;
                if place > 0 && certificate.names().next().is_none() {
                    return Err(Invalid::new(
                        format!("{path}.chain"),
                        format!(
                            "`{}`: it is for no host by name, so that no client gets it",
                            chain.display()
                        ),
                        "have it issued for the names that clients use (subjectAltName), or make it \
                         the first, which clients get that name no host",
                    ));
                }
                all.push(place, certificate);
            }
            Some(CertificateSource::Acme(names)) => {
                let names = names.iter().map(|name| name.to_ascii_lowercase());
                let names: Vec<String> = names.collect();
                let first = names.first().map(String::as_str).unwrap_or_default();
                let read = storage.certificate(first, now_s());
                if let (Err(reason), Some(_)) = (&read, before) {
                    let hint = "see whether it can be read; `weir reload` tries again";
                    let unread = Invalid::new(format!("{path}.acme"), reason.clone(), hint);
                    all.unread.get_or_insert(unread);
                }
                // what is wrong with the file says the thread that orders another one, else
                let ordered = read.ok().flatten().or_else(|| before.cloned());
                let is_covered = |name: &String| ordered.as_ref().is_some_and(|it| it.covers(name));
                let awaited = names.iter().filter(|name| !is_covered(name));
                let certificates = &mut all.certificates;
                certificates
                    .awaited
                    .extend(awaited.map(|name| name.as_str().into()));
                certificates.is_first_awaited |= place == 0 && ordered.is_none();
                if let Some(ordered) = ordered {
                    all.push(place, ordered);
                }
            }
            None => {}
        }
    }
    Ok(all)
}

fn read_certificate(
    path: &str,
    (chain_path, key_path): (&Path, &Path),
    now_s: u64,
) -> Result<Certificate, Invalid> {
    let unreadable = |key: &str, file: &Path, error: io::Error| {
        Invalid::new(
            format!("{path}.{key}"),
            format!("`{}` cannot be read: {error}", file.display()),
            unreadable_hint(file),
        )
    };
    let chain = read_file(chain_path, FILE_BYTES_MAX);
    let chain = chain.map_err(|error| unreadable("chain", chain_path, error))?;
    let key = read_file(key_path, FILE_BYTES_MAX);
    let key = key.map_err(|error| unreadable("key", key_path, error))?;
    // what is no key may be read by all
    if has_private_key(&key) {
        let private = check_private(key_path);
        private.map_err(|reason| {
            Invalid::new(
                format!("{path}.key"),
                format!("`{}`: {reason}", key_path.display()),
                "take the right to read it from other users: `chmod 600`",
            )
        })?;
    }
    Certificate::from_pem(&chain, &key, now_s, Ages::Valid).map_err(|error| {
        let CertificateError { file, reason, hint } = error;
        let (key, file) = match file {
            PemFile::Chain => ("chain", chain_path),
            PemFile::Key => ("key", key_path),
        };
        Invalid::new(
            format!("{path}.{key}"),
            format!("`{}`: {reason}", file.display()),
            hint,
        )
    })
}

/// Whether a text in PEM has a private key.
fn has_private_key(text: &[u8]) -> bool {
    text.windows(PRIVATE_KEY.len()).any(|it| it == PRIVATE_KEY)
}

/// How the label of a private key ends, of each kind (RFC 7468 §10, §11).
const PRIVATE_KEY: &[u8] = b"PRIVATE KEY-----";

/// Refuses a private key that users other than its owner and group can read: why.
fn check_private(path: &Path) -> Result<(), String> {
    let metadata = std::fs::metadata(path).map_err(|error| error.to_string())?;
    let mode = metadata.permissions().mode() & 0o777;
    match mode & 0o007 {
        0 => Ok(()),
        _ => Err(format!(
            "it is a private key that every user can read (mode {mode:03o})"
        )),
    }
}

/// What to do about a file that cannot be read. Where a relative path is looked for depends on how
/// the program was started: the directory is named.
pub(super) fn unreadable_hint(file: &Path) -> String {
    let hint = "name a file that the user of this program can read";
    match std::env::current_dir() {
        Ok(directory) if file.is_relative() => format!(
            "{hint}; a relative path is taken from the directory that weir is started in, here `{}`: write whole paths",
            directory.display()
        ),
        _ => hint.to_owned(),
    }
}

/// The text of a file.
pub(super) fn read_file(path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    // a FIFO would make us wait for a writer
    let nonblocking = i32::try_from(rustix::fs::OFlags::NONBLOCK.bits()).unwrap_or_default();
    let mut options = File::options();
    let file = options.read(true).custom_flags(nonblocking).open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(io::Error::other("it is no file"));
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
