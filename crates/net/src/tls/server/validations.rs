//! Certificates by which an authority validates names (RFC 8737), while it does.

use super::certificate::CertificateError;
use super::private_key;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

/// The protocol of a connection that an authority opens to validate a name (RFC 8737 §4).
pub const ACME_TLS: &[u8] = b"acme-tls/1";

/// The certificates by name. An authority is given the one for the name, and the connection ends
/// behind the handshake.
#[derive(Debug, Default)]
pub struct Validations(RwLock<HashMap<Box<str>, Arc<CertifiedKey>>>);

impl Validations {
    /// The authority is given this certificate for `name`, in lower case, from now on.
    ///
    /// # Errors
    ///
    /// The key cannot be used.
    pub fn put(
        &self,
        name: &str,
        certificate: CertificateDer<'static>,
        key: PrivateKeyDer<'static>,
    ) -> Result<(), CertificateError> {
        let key = private_key::signing_key(&key)?;
        let key = CertifiedKey::new(vec![certificate], key);
        let mut all = self.0.write().unwrap_or_else(PoisonError::into_inner);
        all.insert(name.into(), Arc::new(key));
        Ok(())
    }

    /// There is none for `name` any more.
    pub fn remove(&self, name: &str) {
        let mut all = self.0.write().unwrap_or_else(PoisonError::into_inner);
        all.remove(name);
    }

    pub(super) fn is_empty(&self) -> bool {
        let all = self.0.read().unwrap_or_else(PoisonError::into_inner);
        all.is_empty()
    }

    pub(super) fn of(&self, name: &str) -> Option<Arc<CertifiedKey>> {
        let all = self.0.read().unwrap_or_else(PoisonError::into_inner);
        all.get(name).map(Arc::clone)
    }
}
