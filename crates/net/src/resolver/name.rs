//! Which hosts are looked up: syntax that is checked before a query is sent.

use std::net::{IpAddr, Ipv6Addr};

use super::ResolveError;

/// Bytes in a name, without the final dot (RFC 1035 §2.3.4, in text form).
const NAME_BYTES_MAX: usize = 253;
/// Bytes in a label (RFC 1035 §2.3.4).
const LABEL_BYTES_MAX: usize = 63;

/// The address, if `host` is an IP literal; IPv6 with or without brackets.
pub(super) fn literal(host: &str) -> Option<IpAddr> {
    match host
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'))
    {
        Some(inner) => inner.parse::<Ipv6Addr>().ok().map(IpAddr::V6),
        None => host.parse().ok(),
    }
}

/// `host` in lower case.
///
/// Underscores are permitted: such names exist. A last label that is a number is refused: `0x7f.1`
/// and `2130706433` are spellings of addresses to some, and no name server should decide which.
///
/// # Errors
///
/// [`ResolveError::BadName`].
pub(super) fn canonical(host: &str) -> Result<String, ResolveError> {
    let labels = host.strip_suffix('.').unwrap_or(host);
    let fits = (1..=NAME_BYTES_MAX).contains(&labels.len());
    if fits && labels.split('.').all(is_label) && !ends_in_number(labels) {
        Ok(host.to_ascii_lowercase())
    } else {
        Err(ResolveError::BadName)
    }
}

fn is_label(label: &str) -> bool {
    (1..=LABEL_BYTES_MAX).contains(&label.len())
        && label
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
}

fn ends_in_number(labels: &str) -> bool {
    let last = labels.rsplit('.').next().unwrap_or(labels);
    let hex = last.strip_prefix("0x").or_else(|| last.strip_prefix("0X"));
    hex.map_or_else(
        || last.bytes().all(|byte| byte.is_ascii_digit()),
        |digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_complete_ip_literal_is_parsed_as_an_address() {
        assert_eq!(literal("192.0.2.1"), "192.0.2.1".parse().ok());
        assert_eq!(literal("2001:db8::1"), "2001:db8::1".parse().ok());
        assert_eq!(literal("[2001:db8::1]"), "2001:db8::1".parse().ok());
        for other in ["[192.0.2.1]", "192.0.2", "[::1", "example", "192.0.2.1."] {
            assert_eq!(literal(other), None, "{other}");
        }
    }

    fn check(host: &str, expected: Option<&str>) {
        assert_eq!(canonical(host).ok().as_deref(), expected, "{host}");
    }

    #[test]
    fn host_name_is_normalized_and_a_malformed_one_refused() {
        check("Example.COM", Some("example.com"));
        check("example.com.", Some("example.com."));
        check("_dmarc.x-1.example", Some("_dmarc.x-1.example"));
        check("4chan", Some("4chan"));
        for bad in [
            "",
            ".",
            "..",
            "a..b",
            ".a",
            "a b",
            "a\0",
            "caf\u{e9}",
            "a/b",
            "a:1",
            "1.2.3",
            "0x7f.1",
            "127.0.0.0x1",
            "0x",
            "1.2.3.4.",
        ] {
            check(bad, None);
        }
        let label = "a".repeat(63);
        check(&label, Some(&label));
        check(&format!("{label}a"), None);
        let longest = format!("{label}.{label}.{label}.{}", "a".repeat(61));
        check(&longest, Some(&longest));
        check(&format!("{longest}."), Some(&format!("{longest}.")));
        check(&format!("{longest}a"), None);
    }
}
