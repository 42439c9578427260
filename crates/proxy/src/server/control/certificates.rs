//! The thread that orders certificates, and what it has replaced.

use super::Control;
use crate::config::{CertificateSource, Listener, Mode};
use crate::server::run::StartError;
use crate::settings::Settings;
use crate::settings::tls::CertificateExpiry;
use crate::worker::shared::Shared;
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::sync::{Arc, MutexGuard, PoisonError};
use weir_acme::{AcmeSettings, CertificateReport, Issuer, Means, Storage};
use weir_measure::Label as _;
use weir_measure::live::{CertificateOrder, ListenerCertificate};

/// A certificate of listeners, for the numbers of the admin interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateRow {
    /// The first of its names.
    pub name: String,
    /// When it ends, seconds since 1970; of several with the name the first; `None` if there is
    /// none yet.
    pub expires_unix_s: Option<u64>,
    /// Orders that have failed in a row, of one that is ordered.
    pub failures: Option<u32>,
}

/// Makes the folder of what is ordered.
///
/// # Errors
///
/// Files cannot be written there.
pub(crate) fn open_storage(acme: Option<&AcmeSettings>) -> Result<(), StartError> {
    let Some(acme) = acme else {
        return Ok(());
    };
    let storage = Storage::new(&acme.folder, &acme.directory);
    storage.open().map_err(|cause| StartError {
        what: format!(
            "keep certificates in `{}` (acme.folder)",
            storage.folder().display()
        ),
        cause,
        hint: Some("name a folder in which the user of this program can write".to_owned()),
    })
}

/// Has listeners use the certificates that were ordered, as they are in the storage now.
///
/// # Errors
///
/// One that cannot be used, and what to do.
fn use_ordered(shared: &Shared) -> Result<(), String> {
    let settings = shared.settings.load_full();
    let validations = shared.challenges.validations();
    let used = settings.tls.use_ordered(&settings.config, validations);
    used.map_err(|invalid| format!("{invalid}; {}", invalid.hint))
}

impl Control {
    /// Orders what these settings say from now on; nothing without any.
    ///
    /// # Errors
    ///
    /// The thread cannot be started.
    pub(crate) fn order_certificates(&self, acme: Option<AcmeSettings>) -> Result<(), StartError> {
        let mut issuer = self.issuer();
        match (acme, &*issuer) {
            (None, _) => *issuer = None,
            (Some(acme), Some(issuer)) => issuer.put(acme),
            (Some(acme), None) => {
                let started = Issuer::start(acme, self.means());
                *issuer = Some(started.map_err(|cause| StartError {
                    what: "start the thread that orders certificates".to_owned(),
                    cause,
                    hint: None,
                })?);
            }
        }
        drop(issuer);
        // one may have been replaced while a reload was under way
        if let Err(error) = use_ordered(&self.shared) {
            (self.shared.say)(&format!("a certificate stays as it was: {error}"));
        }
        Ok(())
    }

    fn issuer(&self) -> MutexGuard<'_, Option<Issuer>> {
        self.issuer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn means(&self) -> Means {
        let shared = &self.shared;
        let installed = Arc::downgrade(shared);
        Means {
            resolver: shared.network.resolver().clone(),
            clock: shared.clock().clone(),
            counters: Arc::clone(shared.common_counters()),
            pending: Arc::clone(&shared.challenges),
            say: Arc::clone(&shared.say),
            installed: Box::new(move || {
                // it outlives a proxy that ends
                let shared = installed.upgrade();
                shared.map_or(Ok(()), |shared| use_ordered(&shared))
            }),
        }
    }

    /// The certificates of listeners with TLS, in the order of the configuration.
    #[must_use]
    pub fn listener_certificates(&self) -> Vec<ListenerCertificate> {
        let settings = self.shared.settings.load_full();
        let all = settings.config.listeners.iter();
        all.flat_map(|listener| self.rows_of(&settings, listener))
            .collect()
    }

    /// Those that clients may get which request `host`, best first: at the gateway listener with
    /// this name or address if it has TLS, else at all that have.
    pub(crate) fn certificates_for(
        &self,
        listener: Option<&str>,
        host: &str,
    ) -> Vec<ListenerCertificate> {
        let settings = self.shared.settings.load_full();
        let host = host.to_ascii_lowercase();
        // clients name no address (RFC 6066 §3)
        let is_address = host.starts_with('[') || host.parse::<Ipv4Addr>().is_ok();
        let named = (!is_address).then_some(&*host);
        let all = settings.config.listeners.iter();
        let with_tls: Vec<&Listener> = all
            .filter(|it| it.tls.is_some() && it.mode.mode() == Some(Mode::Gateway))
            .collect();
        let is_it = |it: &&&Listener| Some(&*it.name_or_address()) == listener;
        let one = with_tls.iter().find(is_it).copied();
        let chosen = one.map_or(with_tls, |one| vec![one]);
        let mut rows = Vec::new();
        for listener in chosen {
            let configured = self.rows_of(&settings, listener);
            let offered = settings.tls.offered_for(listener.address, named);
            let offered = offered.unwrap_or_default();
            if offered.is_empty() {
                // one that is awaited
                let is_for = |row: &&ListenerCertificate| row.names.contains(&host);
                rows.extend(configured.iter().filter(is_for).cloned());
            }
            rows.extend(offered.iter().filter_map(|at| configured.get(*at)).cloned());
        }
        rows
    }

    /// The certificates of one, in the order of the configuration.
    fn rows_of(&self, settings: &Settings, listener: &Listener) -> Vec<ListenerCertificate> {
        let reports = self.issuer().as_ref().map(Issuer::report);
        let reports = reports.unwrap_or_default();
        let served = settings.tls.served(listener.address);
        let certificates = listener.tls.iter().flat_map(|tls| &tls.certificates);
        let rows = certificates.enumerate().filter_map(|(place, certificate)| {
            let served = served.get(&place);
            let mut row = ListenerCertificate {
                listener: listener.name_or_address(),
                names: served.map(|it| it.names.clone()).unwrap_or_default(),
                source: "file".to_owned(),
                from: String::new(),
                end_unix_s: served.map(|it| it.end_unix_s),
                order_unix_s: None,
                failures: None,
                last_order: None,
            };
            match certificate.source()? {
                CertificateSource::Files { chain, .. } => row.from = chain.display().to_string(),
                CertificateSource::Acme(names) => {
                    row.source = "authority".to_owned();
                    row.from = settings.config.acme.directory.to_string();
                    let names = names.iter().map(|name| name.to_ascii_lowercase());
                    row.names = names.collect();
                    let is_its = |report: &&CertificateReport| *report.name == *row.names[0];
                    if let Some(report) = reports.iter().find(is_its) {
                        row.order_unix_s = Some(report.order_at.0);
                        row.failures = Some(report.failures);
                        row.last_order = report.last.as_ref().map(|last| CertificateOrder {
                            at_unix_s: last.at.0,
                            end: last.end.word().to_owned(),
                            reason: last.reason.clone(),
                        });
                    }
                }
            }
            Some(row)
        });
        rows.collect()
    }

    /// The certificates of listeners, and how those are that are ordered.
    pub(crate) fn certificates(&self) -> Vec<CertificateRow> {
        let mut rows: BTreeMap<String, CertificateRow> = BTreeMap::new();
        let mut row = |name: String, expires: Option<u64>, failures: Option<u32>| {
            let row = rows.entry(name.clone()).or_insert(CertificateRow {
                name,
                expires_unix_s: None,
                failures: None,
            });
            row.expires_unix_s = match (row.expires_unix_s, expires) {
                (Some(one), Some(other)) => Some(one.min(other)),
                (one, other) => one.or(other),
            };
            row.failures = row.failures.max(failures);
        };
        let expiries = self.shared.settings.load().tls.expiries();
        for CertificateExpiry { name, unix_s } in expiries {
            row(name, Some(unix_s), None);
        }
        let reports = self.issuer().as_ref().map(Issuer::report);
        for CertificateReport { name, failures, .. } in reports.unwrap_or_default() {
            row(name.into(), None, Some(failures));
        }
        rows.into_values().collect()
    }
}
