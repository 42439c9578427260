//! The authority that issues certificates by itself (ACME, RFC 8555).

use crate::config::listener::Listener;
use crate::config::listener::tls::CertificateSource;
use crate::config::setting::invalid::Invalid;
use crate::config::setting::mistakes::Mistakes;
use crate::config::setting::table;
use crate::config::values::host::Host;
use crate::config::values::text::{BadValue, Form, choice, text_value};
use crate::config::values::time::span::Span;
use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};
use weir_acme::NAMES_MAX;

table! {
    /// The `[acme]` table: whom the certificates of `listener[].tls.certificates` with `acme` are
    /// ordered from.
    pub struct Acme in "acme" {
        /// The URL of the authority's directory, `https`. The default is Let's Encrypt's; its
        /// directory for tests is `https://acme-staging-v02.api.letsencrypt.org/directory`.
        directory: DirectoryUrl = DirectoryUrl(LETS_ENCRYPT.to_owned());
        /// Whether you agree to the terms of service that the authority's directory names: no
        /// certificate is ordered without.
        terms_agreed: bool = false;
        /// URLs by which the authority reaches you, such as `mailto:` ones; it may require none.
        contact: Vec<ContactUrl> = Vec::new();
        /// How it is proved that a name is served here: `http-01` by a response at port 80, which a
        /// listener in clear gives, `tls-alpn-01` in a handshake at port 443, where a listener with
        /// TLS is. Both ports as the authority reaches them.
        challenge: AcmeChallenge = AcmeChallenge::Http01;
        /// The certificates of authorities that the authority's own one must be from, a file in
        /// PEM: for one of a company or of tests. `system` are those that the system trusts.
        ca: CaFile = CaFile::System;
        /// The folder with the key of the account and the certificates with their keys, which its
        /// owner alone can read. It must outlive restarts: authorities limit how often they issue.
        folder: AcmeFolder = AcmeFolder(PathBuf::from("/var/lib/weir/acme"));
        /// The wait after an order that failed; it grows three-fold with each one, up to 6 h. A
        /// minute makes five attempts in the first hour, as many failures as Let's Encrypt permits.
        retry: Span = Span::from_mins(1), from Span::from_secs(1), to Span::from_hours(6);
    }
}

/// The directory of Let's Encrypt.
const LETS_ENCRYPT: &str = "https://acme-v02.api.letsencrypt.org/directory";

/// The longest URL, bytes.
const URL_BYTES_MAX: usize = 1024;

/// A URL of scheme `https`, which an authority has its directory at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirectoryUrl(pub(crate) String);

impl fmt::Display for DirectoryUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::str::FromStr for DirectoryUrl {
    type Err = BadValue;

    fn from_str(text: &str) -> Result<Self, BadValue> {
        check_url(text)?;
        let Some(place) = text.strip_prefix("https://") else {
            let refused = BadValue::new(format!(
                "`{text}` is no https:// URL: what an authority says in clear can be forged"
            ));
            return Err(match text.strip_prefix("http://") {
                Some(place) => refused.suggesting(format!("https://{place}")),
                None => refused,
            });
        };
        let host = place.split(['/', '?', '#']).next().unwrap_or_default();
        match host.is_empty() || host.contains('@') {
            true => Err(BadValue::new(format!("`{text}` has no host, or a user"))),
            false => Ok(Self(text.to_owned())),
        }
    }
}

impl Form for DirectoryUrl {
    const FORM: &'static str = "an https:// URL";
}

text_value!(DirectoryUrl);

/// A URL by which an authority reaches the operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContactUrl(pub(crate) String);

impl fmt::Display for ContactUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::str::FromStr for ContactUrl {
    type Err = BadValue;

    fn from_str(text: &str) -> Result<Self, BadValue> {
        check_url(text)?;
        match text.split_once(':') {
            Some((scheme, place)) if !scheme.contains('@') && !place.is_empty() => {
                Ok(Self(text.to_owned()))
            }
            _ => {
                let refused = BadValue::new(format!("`{text}` is no URL"));
                Err(match text.contains('@') {
                    true => refused.suggesting(format!("mailto:{text}")),
                    false => refused,
                })
            }
        }
    }
}

impl Form for ContactUrl {
    const FORM: &'static str = "a URL, such as \"mailto:web@example.com\"";
}

impl Form for Vec<ContactUrl> {
    const FORM: &'static str = "a list of URLs, such as [\"mailto:web@example.com\"]";
}

text_value!(ContactUrl);

fn check_url(text: &str) -> Result<(), BadValue> {
    let is_graphic = text.bytes().all(|byte| byte.is_ascii_graphic());
    match is_graphic && (1..=URL_BYTES_MAX).contains(&text.len()) {
        true => Ok(()),
        false => Err(BadValue::new(format!(
            "`{}` is no URL of 1 to {URL_BYTES_MAX} bytes",
            text.escape_debug()
        ))),
    }
}

/// Whom the certificate of an authority's server must be from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CaFile {
    /// From an authority that the system trusts: `"system"`.
    System,
    /// From one in this file.
    At(PathBuf),
}

impl fmt::Display for CaFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::System => f.write_str("system"),
            Self::At(path) => path.display().fmt(f),
        }
    }
}

impl std::str::FromStr for CaFile {
    type Err = BadValue;

    fn from_str(text: &str) -> Result<Self, BadValue> {
        match text {
            "system" => Ok(Self::System),
            "" => Err(BadValue::new(
                "`` is not a file; a path or \"system\" is expected",
            )),
            _ => Ok(Self::At(PathBuf::from(text))),
        }
    }
}

impl Form for CaFile {
    const FORM: &'static str = "a path, or \"system\"";
}

text_value!(CaFile);

/// The folder of an authority's files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AcmeFolder(pub(crate) PathBuf);

impl AcmeFolder {
    /// Its path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl fmt::Display for AcmeFolder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.display().fmt(f)
    }
}

impl std::str::FromStr for AcmeFolder {
    type Err = BadValue;

    fn from_str(text: &str) -> Result<Self, BadValue> {
        match text {
            "" => Err(BadValue::new("`` is not a folder; a path is expected")),
            _ => Ok(Self(PathBuf::from(text))),
        }
    }
}

impl Form for AcmeFolder {
    const FORM: &'static str = "a path";
}

text_value!(AcmeFolder);

choice! {
    /// How it is proved that a name is served here.
    pub enum AcmeChallenge {
        /// By a response at port 80 (RFC 8555 §8.3).
        Http01 = "http-01",
        /// By a certificate at port 443 (RFC 8737).
        TlsAlpn01 = "tls-alpn-01",
    }
}

/// The names of certificates that are ordered, each list once, with the keys of the listeners that
/// have it: lower case.
pub(crate) fn orders(listeners: &[Listener]) -> Vec<(String, Vec<Box<str>>)> {
    let mut orders: Vec<(String, Vec<Box<str>>)> = Vec::new();
    for (index, listener) in listeners.iter().enumerate() {
        let certificates = listener.tls.iter().flat_map(|tls| &tls.certificates);
        for (place, certificate) in certificates.enumerate() {
            if let Some(CertificateSource::Acme(names)) = certificate.source() {
                let key = format!("listener[{index}].tls.certificates[{place}].acme");
                let names: Vec<Box<str>> = names
                    .iter()
                    .map(|name| name.to_ascii_lowercase().into())
                    .collect();
                if !orders.iter().any(|(_, other)| *other == names) {
                    orders.push((key, names));
                }
            }
        }
    }
    orders
}

/// Refuses names that no certificate can be ordered for, and certificates that cannot be ordered.
pub(in crate::config) fn check(acme: &Acme, listeners: &[Listener], mistakes: &mut Mistakes) {
    let orders = orders(listeners);
    let mut first_names: HashMap<&str, &str> = HashMap::new();
    for (key, names) in &orders {
        mistakes.note(check_names(key, names));
        let Some(first) = names.first() else {
            continue;
        };
        if let Some(earlier) = first_names.insert(first, key) {
            mistakes.note(Err(Invalid::new(
                key,
                format!("`{first}` comes first in another list, too, at `{earlier}`"),
                "name the same list in both places, or begin with another name: certificates are \
                 kept by the first",
            )));
        }
    }
    let Some((key, _)) = orders.first() else {
        return;
    };
    if !weir_acme::CAN_ORDER {
        mistakes.note(Err(Invalid::new(
            key,
            "this program was built without the feature `acme`",
            "name the files of a certificate, or use a build with the feature",
        )));
    }
    if !acme.terms_agreed {
        mistakes.note(Err(Invalid::new(
            key,
            format!(
                "certificates are ordered from {} only if you agree to its terms of service",
                acme.directory
            ),
            "read them, and set terms_agreed = true in [acme]",
        )));
    }
    let is_clear = |listener: &Listener| listener.tls.is_none() && listener.mode.mode().is_some();
    if acme.challenge == AcmeChallenge::Http01 && !listeners.iter().any(is_clear) {
        mistakes.note(Err(Invalid::new(
            key,
            "the authority asks in clear whether the name is served here (http-01), and no listener \
             is in clear",
            "add a listener without `tls` on port 80, or set challenge = \"tls-alpn-01\" in [acme]",
        )));
    }
}

fn check_names(key: &str, names: &[Box<str>]) -> Result<(), Invalid> {
    let refuse = |reason: String, hint: &str| Err(Invalid::new(key, reason, hint));
    if names.is_empty() || names.len() > NAMES_MAX {
        return refuse(
            format!("{} names are not 1 to {NAMES_MAX}", names.len()),
            "name the hosts that the certificate is to be for, or divide the list",
        );
    }
    for (at, name) in names.iter().enumerate() {
        if name.starts_with("*.") {
            return refuse(
                format!("`{name}` can be proved by DNS alone, which is not done here"),
                "name each host, or name the files of a certificate that another program renews",
            );
        }
        match name.parse::<Host>() {
            Ok(host) if host.ip().is_some() => {
                return refuse(
                    format!("`{name}` is an address, and certificates are ordered for names"),
                    "name a host, or the files of a certificate",
                );
            }
            Ok(_) => {}
            Err(error) => {
                return refuse(error.to_string(), "name hosts, such as \"www.example.com\"");
            }
        }
        if names[..at].contains(name) {
            return refuse(format!("`{name}` is named twice"), "remove one of them");
        }
    }
    Ok(())
}

/// What is probably not meant: an authority looks at port 80 or 443.
pub(in crate::config) fn warnings(acme: &Acme, listeners: &[Listener]) -> Vec<Invalid> {
    let orders = orders(listeners);
    let Some((key, _)) = orders.first() else {
        return match *acme == Acme::default() {
            true => Vec::new(),
            false => vec![Invalid::new(
                "acme",
                "no listener has a certificate that is ordered from there",
                "write certificates = [{ acme = [\"www.example.com\"] }] in the `tls` of a listener",
            )],
        };
    };
    let (port, is_tls) = match acme.challenge {
        AcmeChallenge::Http01 => (80, false),
        AcmeChallenge::TlsAlpn01 => (443, true),
    };
    let has_port =
        |listener: &Listener| listener.address.port() == port && listener.tls.is_some() == is_tls;
    if listeners.iter().any(has_port) {
        return Vec::new();
    }
    vec![Invalid::new(
        key,
        format!(
            "the authority looks at port {port} of each name ({}), where no listener is",
            acme.challenge
        ),
        "have a listener there, or what hands the port on to one, such as a rule of the firewall",
    )]
}
