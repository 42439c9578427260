//! How an authority calls a certificate (RFC 9773 §4.1).

use instant_acme::CertificateIdentifier;
use weir_net::tls::server::Certificate;

/// The tag of a sequence in DER.
const SEQUENCE: u8 = 0x30;

/// The tag of `keyIdentifier` in an authority key identifier (RFC 5280 §4.2.1.1).
const KEY_IDENTIFIER: u8 = 0x80;

/// The tag of extensions in a certificate (RFC 5280 §4.1).
const EXTENSIONS: u8 = 0xa3;

/// The object identifier of the extension, in DER.
const AUTHORITY_KEY_IDENTIFIER: [u8; 5] = [0x06, 0x03, 0x55, 0x1d, 0x23];

/// What an authority calls a certificate; `None` if it does not say of which key it is.
pub(crate) fn of(certificate: &Certificate) -> Option<CertificateIdentifier<'static>> {
    let key = authority_key(certificate.der())?;
    let identifier = CertificateIdentifier::new(key.into(), certificate.serial().into());
    Some(identifier.into_owned())
}

/// The identifier of the key that has signed a certificate in DER.
fn authority_key(der: &[u8]) -> Option<&[u8]> {
    let (certificate, _) = element(der, SEQUENCE)?;
    let (mut signed, _) = element(certificate, SEQUENCE)?;
    let extensions = loop {
        let (tag, content, rest) = any_element(signed)?;
        if tag == EXTENSIONS {
            break element(content, SEQUENCE)?.0;
        }
        signed = rest;
    };
    let mut left = extensions;
    loop {
        let (extension, rest) = element(left, SEQUENCE)?;
        if let Some(value) = extension.strip_prefix(&AUTHORITY_KEY_IDENTIFIER) {
            // it is never critical (RFC 5280 §4.2.1.1)
            let (value, _) = element(value, 0x04)?;
            let (value, _) = element(value, SEQUENCE)?;
            return element(value, KEY_IDENTIFIER).map(|(key, _)| key);
        }
        left = rest;
    }
}

/// The content of an element with this tag, and what is behind it.
fn element(der: &[u8], wanted: u8) -> Option<(&[u8], &[u8])> {
    let (tag, content, rest) = any_element(der)?;
    (tag == wanted).then_some((content, rest))
}

/// The tag of an element, its content, and what is behind it.
fn any_element(der: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&[tag, first], rest) = der.split_first_chunk::<2>()?;
    let (length, rest) = match first {
        0..=0x7f => (usize::from(first), rest),
        // a certificate has less than 64 KiB
        0x81 | 0x82 => {
            let (bytes, rest) = rest.split_at_checked(usize::from(first - 0x80))?;
            let length = bytes
                .iter()
                .fold(0, |length, byte| length << 8 | usize::from(*byte));
            (length, rest)
        }
        _ => return None,
    };
    let (content, rest) = rest.split_at_checked(length)?;
    Some((tag, content, rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyIdMethod, KeyPair};

    #[test]
    fn key_of_the_authority_is_read_from_a_certificate() {
        let authority = |identifier: &[u8]| {
            let mut params = CertificateParams::default();
            params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
            params.key_identifier_method = KeyIdMethod::PreSpecified(identifier.to_vec());
            Issuer::new(params, KeyPair::generate().expect("a key"))
        };
        let issued = |identifier: &[u8], is_named: bool| {
            let mut params = CertificateParams::new(["a.test".to_owned()]).expect("a name");
            params.use_authority_key_identifier_extension = is_named;
            let key = KeyPair::generate().expect("a key");
            let signed = params.signed_by(&key, &authority(identifier));
            signed.expect("a certificate").der().to_vec()
        };
        let der = issued(&[0xc0, 0xff, 0xee], true);
        assert_eq!(authority_key(&der), Some(&[0xc0, 0xff, 0xee][..]));
        assert_eq!(authority_key(&issued(&[1], false)), None);
        // no prefix of it is read beyond its end
        for length in 0..der.len() {
            let _ = authority_key(&der[..length]);
        }
        for at in 0..der.len() {
            let mut broken = der.clone();
            broken[at] ^= 0x83;
            let _ = authority_key(&broken);
        }
    }
}
