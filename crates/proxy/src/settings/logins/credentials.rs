//! The value of `Proxy-Authorization` (RFC 9110 §11.4).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;

/// Most bytes of the value: a head has room for more, and each is hashed.
const VALUE_BYTES_MAX: usize = 4096;

/// What a client shows.
pub(super) enum Credentials<'a> {
    /// A user and a password (RFC 7617 §2).
    Basic {
        user: Box<[u8]>,
        password: Box<[u8]>,
    },
    /// A token (RFC 6750 §2.1).
    Bearer(&'a [u8]),
}

impl<'a> Credentials<'a> {
    /// `None` if it is of another scheme, or none.
    pub(super) fn of(value: &'a [u8]) -> Option<Self> {
        if value.len() > VALUE_BYTES_MAX {
            return None;
        }
        let at = value.iter().position(|byte| *byte == b' ')?;
        let (scheme, rest) = (&value[..at], value[at..].trim_ascii());
        if scheme.eq_ignore_ascii_case(b"bearer") {
            return (!rest.is_empty()).then_some(Self::Bearer(rest));
        }
        if !scheme.eq_ignore_ascii_case(b"basic") {
            return None;
        }
        let text = BASE64.decode(rest).ok()?;
        let colon = text.iter().position(|byte| *byte == b':')?;
        let (user, password) = (&text[..colon], &text[colon + 1..]);
        // a bcrypt of C ends at the first NUL
        let is_text = !user.is_empty() && !text.contains(&0);
        is_text.then(|| Self::Basic {
            user: user.into(),
            password: password.into(),
        })
    }
}
