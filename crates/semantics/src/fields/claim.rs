//! Fields that say for whom a request is forwarded: `Forwarded` (RFC 7239), `X-Forwarded-*` and
//! `X-Real-IP`. What a sender writes there is its claim: only some senders are believed, and none
//! in a trailer section, which is read when all has been decided (RFC 9110 §6.5.1).

/// Whether a field with this name says, to some recipient, for whom a request is forwarded: any
/// `X-Forwarded-*`, also `X_Forwarded_For` and `X.Forwarded.For`, since servers that hand fields to
/// a program by names of variables have one character for all that are neither letters nor digits.
#[must_use]
#[inline]
pub fn is_forwarding_claim(name: &str) -> bool {
    match name.as_bytes().first() {
        Some(b'f' | b'F') => reads_as(name, "Forwarded") || begins_as(name, "Forwarded-"),
        Some(b'x' | b'X') => is_extension_claim(name),
        _ => false,
    }
}

fn is_extension_claim(name: &str) -> bool {
    begins_as(name, "X-Forwarded-") || reads_as(name, "X-Forwarded") || reads_as(name, "X-Real-IP")
}

fn begins_as(name: &str, prefix: &str) -> bool {
    let begin = name.get(..prefix.len());
    begin.is_some_and(|begin| reads_as(begin, prefix))
}

/// Whether some recipient reads `name` as `claim`, in which hyphens alone are neither letters nor
/// digits.
fn reads_as(name: &str, claim: &str) -> bool {
    let read = |byte: u8| match byte {
        byte if byte.is_ascii_alphanumeric() => byte.to_ascii_lowercase(),
        _ => b'-',
    };
    name.len() == claim.len() && name.bytes().map(read).eq(claim.bytes().map(read))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_x_forwarded_field_in_any_spelling_is_a_claim() {
        for name in [
            "Forwarded",
            "forwarded",
            "X-Forwarded",
            "X-Forwarded-For",
            "x_forwarded_for",
            "X-Forwarded_Port",
            "X-Forwarded-",
            "X-Forwarded-Uri",
            "X-Real-IP",
            "x-real_ip",
            "X.Forwarded.For",
            "X!Real~IP",
            "Forwarded-For",
            "FORWARDED.HOST",
        ] {
            assert!(is_forwarding_claim(name), "{name}");
        }
        for name in [
            "X-Forward",
            "X-ForwardedFor",
            "Forwardedness",
            "X-Real-IPs",
            "Via",
            "X",
            "",
            "X-Forwardeé",
        ] {
            assert!(!is_forwarding_claim(name), "{name}");
        }
    }
}
