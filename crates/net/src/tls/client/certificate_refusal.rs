//! Why a certificate is refused, in words.

use crate::tls::time_length::length;
use crate::tls::variant_words::variant_words;
use rustls::{CertificateError, OtherError};

/// What is said of a certificate from an unknown authority: the setting that has the known ones
/// depends on who connects.
pub(crate) const UNTRUSTED: &str = "its authority is not trusted";

/// Names of a certificate that are said where it is for other hosts, and bytes of each: who has the
/// next hop chooses them.
const NAMES_MAX: usize = 3;
const NAME_BYTES_MAX: usize = 80;

/// Why a certificate is refused, in words.
pub(in crate::tls) fn certificate_refusal(error: &CertificateError) -> String {
    match error {
        CertificateError::UnknownIssuer => UNTRUSTED.to_owned(),
        CertificateError::ExpiredContext { time, not_after } => {
            let passed_s = time.as_secs().saturating_sub(not_after.as_secs());
            format!("it has expired {} ago", length(passed_s))
        }
        CertificateError::NotValidYetContext { time, not_before } => {
            let left_s = not_before.as_secs().saturating_sub(time.as_secs());
            format!("it is not valid yet: it is in {}", length(left_s))
        }
        CertificateError::NotValidForNameContext {
            expected,
            presented,
        } => format!(
            "it is not for the name `{}`{}",
            expected.to_str(),
            names(presented)
        ),
        CertificateError::BadEncoding => "it cannot be read".to_owned(),
        CertificateError::Expired => "it ends before it begins".to_owned(),
        CertificateError::BadSignature => "its signature is wrong".to_owned(),
        CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. } => {
            "it is not for servers (extended key usage)".to_owned()
        }
        CertificateError::Other(OtherError(other)) => match other.downcast_ref::<webpki::Error>() {
            Some(webpki::Error::UnsupportedCertVersion) => {
                "it is not of X.509 version 3".to_owned()
            }
            Some(webpki::Error::CaUsedAsEndEntity) => {
                "it is the certificate of an authority (CA:TRUE), not of a server".to_owned()
            }
            Some(other) => variant_words(other),
            None => "of an unknown reason".to_owned(),
        },
        other => variant_words(other),
    }
}

/// The names that a certificate is for, as the library has them: `DnsName("a.test")`.
fn names(presented: &[String]) -> String {
    let plain = presented.iter().take(NAMES_MAX).map(|name| {
        let name = name.split('"').nth(1).unwrap_or(name);
        let name: String = name.escape_debug().take(NAME_BYTES_MAX).collect();
        format!("`{name}`")
    });
    let plain: Vec<String> = plain.collect();
    match (plain.len(), presented.len()) {
        (0, _) => ", but for none".to_owned(),
        (some, all) if some < all => {
            format!(", but for {} and {} more", plain.join(", "), all - some)
        }
        _ => format!(", but for {}", plain.join(", ")),
    }
}
