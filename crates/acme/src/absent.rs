//! What a build without the client has in the place of the thread that orders certificates.

use crate::report::{CertificateReport, Means};
use crate::settings::AcmeSettings;
use std::io;

/// A thread that orders certificates, which this build has not.
#[derive(Debug)]
pub struct Issuer(());

impl Issuer {
    /// Orders nothing.
    ///
    /// # Errors
    ///
    /// Always: this build cannot.
    pub fn start(_: AcmeSettings, _: Means) -> io::Result<Self> {
        Err(io::Error::from(io::ErrorKind::Unsupported))
    }

    /// Does nothing.
    pub fn put(&self, _: AcmeSettings) {}

    /// Nothing.
    #[must_use]
    pub fn report(&self) -> Vec<CertificateReport> {
        Vec::new()
    }
}
