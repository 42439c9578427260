//! The private key of a certificate: what keeps one from being used, in words.

use super::certificate::{CertificateError, reason};
use crate::tls::provider;
use aws_lc_rs::rsa;
use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::{self, PemObject as _};
use rustls::sign::SigningKey;
use std::sync::Arc;

const FORM: &str = "use a file in PEM with the private key, without a password, such as `openssl \
                    pkey` writes it";
const KINDS: &str =
    "use a key for RSA of 2048 bits or more, ECDSA on P-256, P-384 or P-521, or Ed25519";

/// What tells that a key is encrypted with a password (RFC 7468 §11), in the older form in a line
/// of its section (RFC 1421 §4.6.1.1).
const ENCRYPTED: [&[u8]; 2] = [
    b"-----BEGIN ENCRYPTED PRIVATE KEY-----",
    b"Proc-Type: 4,ENCRYPTED",
];

/// The private key in a text in PEM.
pub(super) fn read(text: &[u8]) -> Result<PrivateKeyDer<'static>, CertificateError> {
    PrivateKeyDer::from_pem_slice(text).map_err(|error| {
        let has = |mark: &&[u8]| text.windows(mark.len()).any(|it| it == *mark);
        if ENCRYPTED.iter().any(has) {
            return CertificateError::key(
                "its private key is encrypted with a password",
                "write it without one, to a file that only the user of this program can read: \
                 `openssl pkey -in FILE -out NEWFILE`, and name that file",
            );
        }
        CertificateError::key(not_found(&error), FORM)
    })
}

fn not_found(error: &pem::Error) -> String {
    match error {
        pem::Error::NoItemsFound => "it has no private key that can be read".to_owned(),
        other => reason(other),
    }
}

/// What signs with a private key.
pub(super) fn signing_key(
    key: &PrivateKeyDer<'static>,
) -> Result<Arc<dyn SigningKey>, CertificateError> {
    let loaded = provider().key_provider.load_private_key(key.clone_key());
    loaded.map_err(|error| {
        let reason = match is_short_rsa(key) {
            true => "its private key for RSA is too short: it has fewer than 2048 bits".to_owned(),
            false => format!("its private key cannot be used: {error}"),
        };
        CertificateError::key(reason, KINDS)
    })
}

/// Whether it is a key for RSA of fewer bits than are permitted, of which the provider says no more
/// than that it cannot be read.
fn is_short_rsa(key: &PrivateKeyDer<'_>) -> bool {
    let read = match key {
        PrivateKeyDer::Pkcs1(key) => rsa::KeyPair::from_der(key.secret_pkcs1_der()),
        PrivateKeyDer::Pkcs8(key) => rsa::KeyPair::from_pkcs8(key.secret_pkcs8_der()),
        _ => return false,
    };
    read.is_err_and(|error| error.to_string() == "TooSmall")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// For RSA, of 1024 bits.
    const SHORT: &str = "-----BEGIN PRIVATE KEY-----\n\
        MIICdwIBADANBgkqhkiG9w0BAQEFAASCAmEwggJdAgEAAoGBAL3w9fAadf2uO4je\n\
        ygXv2OPuzWHLI8OmRFwj8i8eR0scw4WVFJyaaL3rlamFuxRzxPuUMhYFGqxe7LlR\n\
        GQkc6oTMUJ4WmVac1slwQi+haP2lwqtjCRgEW9N4vy3U0mry0HaAWCaPsoDldEv1\n\
        tv+1cX4MUjLwRHLyTTgXrwLsK1PVAgMBAAECgYEAq7YdsC1Lw8Vyft7iBhH5or2t\n\
        IJ6Tu3khTacVd3FJBGeBfs7ybkzNKfzDNRj3spqiVsl3qh59KZ07JqFhH7LrcwZ1\n\
        zumPjS2I5gsCYR2oxRlSoVm7gLbRmZnVtxAeflWbbgW0RbIO2a0hRtbRjLpQrEAl\n\
        +4jqdcXv5+haU4k6G1UCQQD67ZsQbMXf+qVBrZV/PAjgaB3Y0aUbSr3O9Z9ePcZO\n\
        Bk4niYX1ponzGXpaUqSfi6pUm2+qEi6g/Tl6Fbt9AfRbAkEAwcfJUkEe+hP5Mra4\n\
        JXFUvNEaM2JxtBh1ZSPSBoHYZQXfu9PqFfRkF7I1gFdvGJ9dH3HR6fDjhgh4tKdu\n\
        Mc+PjwJAO3kHcJwnRg/VDT0EGtTy0aU7tcDyngZX+G506FRB5QpPicVpj7B6L7kR\n\
        K8k8pWfn5ge1Lp0CmjuKXOo7tsQ40wJAJvY9k01Gpi+H5lt4sQaVbBV6+CPuCrD0\n\
        Qa6vFuHamY1Ry9ky8tEdouoQ+coaq0+3kI/5DdmCVbu0UVZswJUkHwJBALOZCFil\n\
        QUG53E3GhGy+lKdlPHl9Y3/1EzQzV+SKDsTtHo3rmuVVWuq5mzO6Ygxg8tI/UBnO\n\
        ccHAF0mZzu2SxhI=\n\
        -----END PRIVATE KEY-----\n";

    #[test]
    fn key_that_is_encrypted_or_too_short_is_refused_in_words() {
        let encrypted = "-----BEGIN ENCRYPTED PRIVATE KEY-----\nMIHs\n\
                         -----END ENCRYPTED PRIVATE KEY-----\n";
        let older = "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\
                     DEK-Info: AES-128-CBC,00\n\nMIHs\n-----END RSA PRIVATE KEY-----\n";
        for text in [encrypted, older] {
            let refused = read(text.as_bytes()).expect_err("there is no password");
            assert!(refused.reason.contains("with a password"), "{refused}");
            assert!(refused.hint.contains("openssl pkey"), "{}", refused.hint);
        }
        let short = read(SHORT.as_bytes()).expect("a key");
        let refused = signing_key(&short).expect_err("1024 bits");
        assert!(refused.reason.contains("too short"), "{refused}");
        assert!(refused.hint.contains("2048 bits"), "{}", refused.hint);
    }
}
