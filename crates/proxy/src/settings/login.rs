//! What proves to a parent or sibling who this proxy is: a name and a password (RFC 7617).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use std::fmt;

/// Most bytes of a name and password: they have to fit into a request head with the rest.
const LOGIN_BYTES_MAX: usize = 1024;

/// The field line with a name and a password, which is never shown.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Login(Box<[u8]>);

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Login(..)")
    }
}

impl Login {
    /// The login in the text of a file.
    ///
    /// # Errors
    ///
    /// What is wrong with the text, without any of it.
    pub(crate) fn of_text(text: &[u8]) -> Result<Self, &'static str> {
        let line = text.strip_suffix(b"\n").unwrap_or(text);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.len() > LOGIN_BYTES_MAX {
            return Err("it holds more than 1024 bytes");
        }
        if line.iter().any(u8::is_ascii_control) {
            return Err("a login is one line without control characters, `NAME:PASSWORD`");
        }
        match line.iter().position(|byte| *byte == b':') {
            None | Some(0) => Err("a login is a name, a colon and a password, `NAME:PASSWORD`"),
            Some(_) => {
                let credentials = BASE64.encode(line);
                let field = format!("Proxy-Authorization: Basic {credentials}\r\n");
                Ok(Self(field.into_bytes().into()))
            }
        }
    }

    /// The field line, with CRLF.
    pub(crate) fn line(&self) -> &[u8] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn login_is_one_line_with_a_name_a_colon_and_a_password() {
        let line = |text: &[u8]| Login::of_text(text).map(|login| login.line().to_vec());
        // the example of RFC 7617 §2
        let expected = b"Proxy-Authorization: Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==\r\n";
        for text in [
            "Aladdin:open sesame",
            "Aladdin:open sesame\n",
            "Aladdin:open sesame\r\n",
        ] {
            assert_eq!(line(text.as_bytes()), Ok(expected.to_vec()));
        }
        assert!(line(b"name:").is_ok());
        assert!(line(b"a:b:c").is_ok());
        for text in ["", "\n", "name", ":password", "a:b\nc:d", "a:b\n\n", "a:\t"] {
            assert!(line(text.as_bytes()).is_err(), "{text:?}");
        }
        assert!(line(format!("a:{}", "b".repeat(1022)).as_bytes()).is_ok());
        assert!(line(format!("a:{}", "b".repeat(1023)).as_bytes()).is_err());
    }

    #[test]
    fn login_is_not_shown() {
        let login = Login::of_text(b"name:password").unwrap();
        assert_eq!(format!("{login:?}"), "Login(..)");
    }
}
