//! Whom certificates are ordered from, and which ones.

use super::next_hop_tls::{FILE_BYTES_MAX, PEM_OF_AUTHORITIES};
use super::tls::read_file;
use crate::config::{AcmeChallenge, CaFile, Config, Invalid, acme_orders};
use weir_acme::{AcmeSettings, ChallengeKind, Storage};
use weir_net::tls::client::Authorities;

/// What is to be ordered by a valid configuration; `None` if nothing is.
///
/// # Errors
///
/// There is nothing by which the authority could be verified, and why.
pub(crate) fn compile(config: &Config) -> Result<Option<AcmeSettings>, Invalid> {
    let orders = acme_orders(&config.listeners);
    if orders.is_empty() {
        return Ok(None);
    }
    let acme = &config.acme;
    let refuse = |reason: String, hint: &str| Invalid::new("acme.ca", reason, hint);
    let authorities = match &acme.ca {
        CaFile::System => Authorities::of_system().map_err(|error| {
            let hint = "install the package ca-certificates, or name a file in `acme.ca`";
            refuse(
                format!("{} cannot be verified: {error}", acme.directory),
                hint,
            )
        })?,
        CaFile::At(path) => {
            let text = read_file(path, FILE_BYTES_MAX).map_err(|error| {
                let reason = format!("`{}` cannot be read: {error}", path.display());
                refuse(reason, "name a file that the user of this program can read")
            })?;
            Authorities::from_pem(&text).map_err(|error| {
                refuse(format!("`{}`: {error}", path.display()), PEM_OF_AUTHORITIES)
            })?
        }
    };
    Ok(Some(AcmeSettings {
        directory: acme.directory.to_string(),
        authorities,
        contact: acme.contact.iter().map(ToString::to_string).collect(),
        challenge: match acme.challenge {
            AcmeChallenge::Http01 => ChallengeKind::Http01,
            AcmeChallenge::TlsAlpn01 => ChallengeKind::TlsAlpn01,
        },
        folder: acme.folder.path().to_owned(),
        retry_min: acme.retry.as_duration(),
        certificates: orders.into_iter().map(|(_, names)| names).collect(),
    }))
}

/// Where what is ordered by a configuration is kept.
pub(crate) fn storage(config: &Config) -> Storage {
    Storage::new(
        config.acme.folder.path(),
        &config.acme.directory.to_string(),
    )
}
