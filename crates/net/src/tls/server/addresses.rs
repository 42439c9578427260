//! The addresses that a certificate is for: `iPAddress` in its subject alternative names (RFC 5280
//! §4.2.1.6).
//!
//! The library that verifies certificates lists names of hosts alone. It says whether a certificate
//! is for an address, so what is found here has to be right only where that agrees: bytes elsewhere
//! in a certificate that look like the extension do no harm.

use rustls::pki_types::ServerName;
use std::net::IpAddr;
use webpki::EndEntityCert;

/// `subjectAltName`, 2.5.29.17, with its tag and length.
const SUBJECT_ALT_NAME: &[u8] = &[0x06, 0x03, 0x55, 0x1d, 0x11];

/// Tags of DER: an extension may say that it is critical, and has its value in a string of octets,
/// which is a list of names.
const BOOLEAN: u8 = 0x01;
const OCTET_STRING: u8 = 0x04;
const SEQUENCE: u8 = 0x30;
const IP_ADDRESS: u8 = 0x87;

/// The addresses of a certificate, of which `der` is the text.
pub(super) fn addresses(parsed: &EndEntityCert<'_>, der: &[u8]) -> Vec<IpAddr> {
    let mut found = listed(der).unwrap_or_default();
    found.retain(|address| {
        let name = ServerName::IpAddress((*address).into());
        parsed.verify_is_valid_for_subject_name(&name).is_ok()
    });
    found
}

fn listed(der: &[u8]) -> Option<Vec<IpAddr>> {
    let mut windows = der.windows(SUBJECT_ALT_NAME.len());
    let at = windows.position(|it| it == SUBJECT_ALT_NAME)?;
    let mut rest = &der[at + SUBJECT_ALT_NAME.len()..];
    let (mut tag, mut value) = element(&mut rest)?;
    if tag == BOOLEAN {
        (tag, value) = element(&mut rest)?;
    }
    let mut names = value;
    let (list, mut names) = (tag == OCTET_STRING).then(|| element(&mut names))??;
    if list != SEQUENCE {
        return None;
    }
    let mut all = Vec::new();
    while let Some((tag, value)) = element(&mut names) {
        match (tag, value.len()) {
            (IP_ADDRESS, 4) => all.extend(<[u8; 4]>::try_from(value).map(IpAddr::from)),
            (IP_ADDRESS, 16) => all.extend(<[u8; 16]>::try_from(value).map(IpAddr::from)),
            _ => {}
        }
    }
    Some(all)
}

/// Takes an element from the front: its tag and its value. Lists of names have less than 64 KiB.
fn element<'a>(rest: &mut &'a [u8]) -> Option<(u8, &'a [u8])> {
    let (&tag, after) = rest.split_first()?;
    let (&first, after) = after.split_first()?;
    let (length, after) = match first {
        _ if first < 0x80 => (usize::from(first), after),
        0x81 => (usize::from(*after.first()?), &after[1..]),
        0x82 => {
            let (length, after) = after.split_first_chunk::<2>()?;
            (usize::from(u16::from_be_bytes(*length)), after)
        }
        _ => return None,
    };
    let (value, after) = after.split_at_checked(length)?;
    *rest = after;
    Some((tag, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn extension(names: &[u8], is_critical: bool) -> Vec<u8> {
        let length = |bytes: &[u8]| u8::try_from(bytes.len()).expect("short");
        let list = [&[SEQUENCE, length(names)][..], names].concat();
        let critical: &[u8] = if is_critical {
            &[BOOLEAN, 1, 0xff]
        } else {
            &[]
        };
        let string = [&[OCTET_STRING, length(&list)][..], &list].concat();
        [
            &b"before"[..],
            SUBJECT_ALT_NAME,
            critical,
            &string,
            b"behind",
        ]
        .concat()
    }

    #[test]
    fn addresses_are_found_among_other_names() {
        let v6 = [0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
        let names = [
            &[0x82, 1, b'a', IP_ADDRESS, 4, 192, 0, 2, 1, IP_ADDRESS, 16][..],
            &v6,
            &[IP_ADDRESS, 2, 9, 9],
        ];
        let expected: Vec<IpAddr> = ["192.0.2.1", "2001:db8::1"]
            .map(|it| it.parse().expect("an address"))
            .to_vec();
        for is_critical in [false, true] {
            let der = extension(&names.concat(), is_critical);
            assert_eq!(listed(&der), Some(expected.clone()));
        }
        assert_eq!(listed(b"nothing"), None);
    }

    #[test]
    fn text_that_is_cut_or_changed_does_not_panic() {
        let whole = extension(&[IP_ADDRESS, 4, 192, 0, 2, 1], true);
        for end in 0..whole.len() {
            let _any = listed(&whole[..end]);
            for byte in [0, 0x80, 0x81, 0x82, 0xff] {
                let mut changed = whole.clone();
                changed[end] = byte;
                let _any = listed(&changed);
            }
        }
    }
}
