//! The members of `Forwarded`, RFC 7239 §4.

use alloc::borrow::Cow;
use alloc::format;
use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr};
use weir_semantics::is_token;

/// A member of the list, if `text` is one: pairs with semicolons between them.
pub(super) fn element(text: &[u8]) -> Option<&[u8]> {
    let mut rest = text;
    loop {
        let (_, _, behind) = pair(rest)?;
        match behind {
            [] => return Some(text),
            [b';', behind @ ..] => rest = behind,
            _ => return None,
        }
    }
}

/// The parameters of a member, each with its value; that of a quoted string without the quotes.
pub(super) fn params(element: &[u8]) -> impl Iterator<Item = (&str, Cow<'_, [u8]>)> {
    let mut rest = element;
    core::iter::from_fn(move || {
        let (name, value, behind) = pair(rest)?;
        rest = behind.get(1..).unwrap_or_default();
        Some((name, value))
    })
}

/// The name and the value of a parameter, and what is behind it.
type Pair<'a> = (&'a str, Cow<'a, [u8]>, &'a [u8]);

/// The parameter at the front of `text`.
fn pair(text: &[u8]) -> Option<Pair<'_>> {
    let at = text.iter().position(|byte| *byte == b'=')?;
    let (name, value) = (&text[..at], &text[at + 1..]);
    let name = str::from_utf8(name).ok().filter(|_| is_token(name))?;
    if let [b'"', inner @ ..] = value {
        let (unquoted, behind) = quoted(inner)?;
        return Some((name, Cow::Owned(unquoted), behind));
    }
    let end = value.iter().position(|byte| *byte == b';');
    let (value, behind) = value.split_at(end.unwrap_or(value.len()));
    is_token(value).then_some((name, Cow::Borrowed(value), behind))
}

/// A quoted string from behind its opening quote, and what is behind it (RFC 9110 §5.6.4).
fn quoted(text: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let mut unquoted = Vec::new();
    let mut rest = text;
    loop {
        match rest {
            [b'"', behind @ ..] => return Some((unquoted, behind)),
            [b'\\', byte, behind @ ..] | [byte, behind @ ..] if matches!(byte, b'\t' | b' '..=b'~' | 0x80..) =>
            {
                unquoted.push(*byte);
                rest = behind;
            }
            _ => return None,
        }
    }
}

/// Appends a node (RFC 7239 §6); in `Forwarded` quoted where it is no token, and an address of IPv6
/// in brackets.
pub(super) fn write_node(address: IpAddr, port: Option<u16>, quotes: bool, out: &mut Vec<u8>) {
    let text = match (address, port) {
        // nearly all of them, with each forwarded request
        (IpAddr::V4(address), None) => return write_ipv4(address, out),
        (IpAddr::V4(address), Some(port)) => format!("{address}:{port}"),
        (IpAddr::V6(address), None) if quotes => format!("[{address}]"),
        (IpAddr::V6(address), None) => format!("{address}"),
        (IpAddr::V6(address), Some(port)) => format!("[{address}]:{port}"),
    };
    if quotes {
        write_value(text.as_bytes(), out);
    } else {
        out.extend_from_slice(text.as_bytes());
    }
}

/// Appends an address in the usual spelling, which is a token.
fn write_ipv4(address: Ipv4Addr, out: &mut Vec<u8>) {
    let mut text = [0; "255.255.255.255".len()];
    let mut end = 0;
    let mut push = |byte| {
        text[end] = byte;
        end += 1;
    };
    for (place, octet) in address.octets().into_iter().enumerate() {
        if place > 0 {
            push(b'.');
        }
        if octet >= 100 {
            push(b'0' + octet / 100);
        }
        if octet >= 10 {
            push(b'0' + octet / 10 % 10);
        }
        push(b'0' + octet % 10);
    }
    out.extend_from_slice(&text[..end]);
}

/// Appends the value of a parameter: a token, else a quoted string. It has neither quotes nor
/// backslashes.
pub(super) fn write_value(value: &[u8], out: &mut Vec<u8>) {
    let quote: &[u8] = if is_token(value) { b"" } else { b"\"" };
    out.extend_from_slice(quote);
    out.extend_from_slice(value);
    out.extend_from_slice(quote);
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::String;

    #[test]
    fn ipv4_address_is_written_as_the_standard_library_writes_it() {
        let spellings = [0, 9, 10, 99, 100, 101, 255];
        for (first, last) in spellings
            .iter()
            .flat_map(|one| spellings.map(|two| (*one, two)))
        {
            let address = Ipv4Addr::new(first, 0, last, 7);
            let mut out = Vec::new();
            write_node(address.into(), None, true, &mut out);
            assert_eq!(String::from_utf8(out).expect("text"), format!("{address}"));
        }
    }

    #[test]
    fn member_is_pairs_of_tokens_and_quoted_strings() {
        let read = |text: &'static str| {
            let params = params(element(text.as_bytes())?);
            let params = params.map(|(name, value)| {
                let value = String::from_utf8(value.into_owned()).expect("text");
                format!("{name}={value}")
            });
            Some(params.collect::<Vec<_>>().join("|"))
        };
        let check = |text, expected: Option<&str>| {
            assert_eq!(read(text).as_deref(), expected, "{text}");
        };
        // the examples of RFC 7239 §4
        check("for=\"_gazonk\"", Some("for=_gazonk"));
        check(
            "For=\"[2001:db8:cafe::17]:4711\"",
            Some("For=[2001:db8:cafe::17]:4711"),
        );
        check(
            "for=192.0.2.60;proto=http;by=203.0.113.43",
            Some("for=192.0.2.60|proto=http|by=203.0.113.43"),
        );
        check("for=\"a\\\"b;c\";host=d", Some("for=a\"b;c|host=d"));
        for bad in [
            "",
            "for",
            "for=",
            "=a",
            "for=\"a",
            "for=\"a\"b",
            "for=a;",
            "for=a b",
            "for=[::1]",
            "for=\"a\\",
            "fo r=a",
            "for=a;;host=b",
            "\"for=a\"",
        ] {
            check(bad, None);
        }
    }
}
