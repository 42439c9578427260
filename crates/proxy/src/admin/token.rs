//! The bearer token (RFC 6750) that requests must carry to change the state of the proxy, and the
//! file that holds it.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::hint::black_box;
use std::io::{self, Read as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;

/// Fewest bytes of a token: 16 characters of base64 are 96 random bits, which cannot be tried out
/// over a network.
const TOKEN_BYTES_MIN: usize = 16;
/// Most bytes of a token: it has to fit into a request head with the rest.
const TOKEN_BYTES_MAX: usize = 1024;
/// The same with a line end, and one byte that is too many.
pub(crate) const TOKEN_LINE_BYTES_MAX: usize = TOKEN_BYTES_MAX + 3;

/// A token, which is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(Box<str>);

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(..)")
    }
}

/// Why a file gives no token.
#[derive(Debug)]
pub enum TokenError {
    /// It cannot be read.
    Io(io::Error),
    /// It is no ordinary file.
    NoFile,
    /// Others than its owner may read or write it: these are its permission bits.
    Open(u32),
    /// It holds fewer bytes than a token has.
    Short(usize),
    /// It holds more.
    Long,
    /// It has characters that are not those of a token (RFC 6750 §2.1).
    Text,
}

impl fmt::Display for TokenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => error.fmt(f),
            Self::NoFile => f.write_str("it is not an ordinary file"),
            Self::Open(mode) => write!(
                f,
                "its mode is {mode:04o}, so others than its owner can read or change it; run `chmod 600` on it, and replace the \
                 secrets in it if they may have been read"
            ),
            Self::Short(bytes) => write!(
                f,
                "it holds {bytes} bytes, and a token has at least {TOKEN_BYTES_MIN}; `head -c 32 /dev/urandom | base64` makes one"
            ),
            Self::Long => write!(f, "it holds more than {TOKEN_BYTES_MAX} bytes"),
            Self::Text => f.write_str(
                "a token is one line of letters, digits and `-._~+/`, perhaps with `=` at its end; \
                 `head -c 32 /dev/urandom | base64` makes one",
            ),
        }
    }
}

impl std::error::Error for TokenError {}

impl TokenError {
    /// What to do, where its text does not say. `setting` names the file.
    pub(crate) fn hint(&self, setting: &str) -> Option<String> {
        let what = match setting.ends_with("secret_file") {
            true => "secret",
            false => "token",
        };
        match self {
            Self::Io(error) if error.kind() == io::ErrorKind::NotFound => Some(format!(
                "make the {what} file: `(umask 077; head -c 32 /dev/urandom | base64 > FILE)`"
            )),
            Self::Io(error) if error.kind() == io::ErrorKind::PermissionDenied => Some(format!(
                "run this as the user that is to run the proxy, who must own the {what} file"
            )),
            Self::Io(_) | Self::NoFile => Some(format!("name an ordinary file with `{setting}`")),
            Self::Open(_) | Self::Short(_) | Self::Long | Self::Text => None,
        }
    }

    /// The same of a file of logins; `what` is in it, `users` or `tokens`.
    pub(crate) fn hint_of_logins(&self, what: &str) -> Option<String> {
        match self {
            Self::Io(error) if error.kind() == io::ErrorKind::NotFound => Some(format!(
                "make it, or name another file with `login.{what}_file`; docs/operate.md, Logins, says how"
            )),
            Self::Io(error) if error.kind() == io::ErrorKind::PermissionDenied => Some(
                "run this as the user that runs the proxy, and have it own the file: `chown weir FILE`"
                    .to_owned(),
            ),
            Self::Io(_) | Self::NoFile => {
                Some(format!("name an ordinary file with `login.{what}_file`"))
            }
            Self::Open(_) | Self::Short(_) | Self::Long | Self::Text => None,
        }
    }
}

impl Token {
    /// Reads the token in `path`: one line, in a file that its owner alone can read.
    ///
    /// # Errors
    ///
    /// Each [`TokenError`].
    pub fn read(path: &Path) -> Result<Self, TokenError> {
        let text = read_private(path, TOKEN_LINE_BYTES_MAX)?;
        let line = text.strip_suffix(b"\n").unwrap_or(&text);
        Self::of_line(line).map_err(|(_, error)| error)
    }

    /// The token in a line without its line feed.
    ///
    /// # Errors
    ///
    /// What is wrong with it, and at which byte of the line, from 0 on.
    pub(crate) fn of_line(line: &[u8]) -> Result<Self, (usize, TokenError)> {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.len() > TOKEN_BYTES_MAX {
            return Err((TOKEN_BYTES_MAX, TokenError::Long));
        }
        if line.len() < TOKEN_BYTES_MIN {
            return Err((line.len(), TokenError::Short(line.len())));
        }
        let end = line.iter().rposition(|byte| *byte != b'=').unwrap_or(0);
        let fits = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._~+/".contains(byte);
        match line[..=end].iter().position(|byte| !fits(byte)) {
            Some(at) => Err((at, TokenError::Text)),
            None => Ok(Self(line.iter().map(|byte| char::from(*byte)).collect())),
        }
    }

    /// The token as clients send it.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether `presented` is this token. The time depends on `presented` alone, so that it
    /// discloses nothing of the token.
    #[must_use]
    pub fn is(&self, presented: &[u8]) -> bool {
        let own = self.0.as_bytes();
        let mut differs = u8::from(own.len() != presented.len());
        for (at, byte) in presented.iter().enumerate() {
            differs |= byte ^ own[at % own.len()];
            differs = black_box(differs);
        }
        differs == 0
    }
}

/// The text in a file that its owner alone can read, up to `bytes_max`.
///
/// # Errors
///
/// [`TokenError::Io`], [`TokenError::NoFile`] or [`TokenError::Open`].
pub(crate) fn read_private(path: &Path, bytes_max: usize) -> Result<Vec<u8>, TokenError> {
    // a FIFO would make us wait for a writer
    let nonblocking = i32::try_from(rustix::fs::OFlags::NONBLOCK.bits()).unwrap_or_default();
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(nonblocking)
        .open(path)
        .map_err(TokenError::Io)?;
    // of what was opened: the path may lead elsewhere by now
    let metadata = file.metadata().map_err(TokenError::Io)?;
    if !metadata.is_file() {
        return Err(TokenError::NoFile);
    }
    let mode = metadata.permissions().mode() & 0o777;
    if mode & 0o077 != 0 {
        return Err(TokenError::Open(mode));
    }
    read_text(file, bytes_max)
}

fn read_text(file: File, bytes_max: usize) -> Result<Vec<u8>, TokenError> {
    let mut text = Vec::new();
    file.take(bytes_max as u64)
        .read_to_end(&mut text)
        .map_err(TokenError::Io)?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    const GOOD: &str = "abcdefghijklmnop";

    #[test]
    fn hint_for_a_missing_file_says_which_file_is_to_be_made() {
        let missing = TokenError::Io(io::ErrorKind::NotFound.into());
        for (setting, part) in [
            ("admin.token_file", "make the token file: "),
            ("cluster.secret_file", "make the secret file: "),
        ] {
            let hint = missing.hint(setting).expect("a hint");
            assert!(hint.starts_with(part), "{hint}");
        }
    }

    #[test]
    fn hint_for_a_file_of_logins_fits_what_is_wrong_with_it() {
        let io = |kind: io::ErrorKind| TokenError::Io(kind.into());
        for (error, part) in [
            (io(io::ErrorKind::NotFound), Some("`login.users_file`")),
            (
                io(io::ErrorKind::PermissionDenied),
                Some("`chown weir FILE`"),
            ),
            (TokenError::NoFile, Some("an ordinary file")),
            (TokenError::Open(0o644), None),
        ] {
            let hint = error.hint_of_logins("users");
            let fits = match (&hint, part) {
                (Some(hint), Some(part)) => hint.contains(part),
                (hint, part) => hint.is_none() && part.is_none(),
            };
            assert!(fits, "{error}: {hint:?}");
        }
        let open = TokenError::Open(0o644).to_string();
        assert!(
            open.contains("chmod 600") && !open.contains("token"),
            "{open}"
        );
    }

    fn read(text: &str, mode: u32) -> Result<Token, String> {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("token");
        fs::write(&path, text).expect("a file");
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("its owner");
        Token::read(&path).map_err(|error| error.to_string())
    }

    #[test]
    fn token_is_the_single_line_of_a_private_file() {
        for (text, mode) in [
            (GOOD.to_owned(), 0o600),
            (format!("{GOOD}\n"), 0o400),
            (format!("{GOOD}\r\n"), 0o600),
            (format!("{GOOD}-._~+/=="), 0o600),
            ("x".repeat(TOKEN_BYTES_MAX), 0o600),
        ] {
            let token = read(&text, mode).expect("a token");
            assert_eq!(token.as_str(), text.trim_end());
        }
    }

    #[test]
    fn token_file_accessible_to_others_is_refused() {
        for mode in [0o640, 0o604, 0o644, 0o620, 0o602, 0o610, 0o777] {
            let refused = read(GOOD, mode).expect_err("open to others");
            assert!(
                refused.contains(&format!("its mode is {mode:04o}")),
                "{refused}"
            );
            assert!(refused.contains("chmod 600"), "{refused}");
        }
    }

    #[test]
    fn malformed_token_or_unreadable_file_is_refused() {
        for (text, part) in [
            ("", "holds 0 bytes"),
            ("abcdefghijklmno\n", "holds 15 bytes"),
            ("two words are no token", "one line of"),
            ("abcdefgh\nijklmnopqrst", "one line of"),
            ("abcdefgh=ijklmnopqrst", "one line of"),
            ("\u{e4}bcdefghijklmnop", "one line of"),
            ("================", "one line of"),
            (&"x".repeat(TOKEN_BYTES_MAX + 1), "more than 1024"),
            (&"x".repeat(1 << 20), "more than 1024"),
        ] {
            let refused = read(text, 0o600).expect_err("no token");
            assert!(refused.contains(part), "{refused}");
        }
        let folder = tempfile::tempdir().expect("a folder");
        assert!(matches!(
            Token::read(folder.path()),
            Err(TokenError::NoFile)
        ));
        let missing = Token::read(&folder.path().join("missing"));
        assert!(matches!(missing, Err(TokenError::Io(_))));
    }

    #[test]
    fn only_the_exact_token_matches() {
        let token = Token(GOOD.into());
        assert!(token.is(GOOD.as_bytes()));
        let twice = GOOD.repeat(2);
        for other in [
            "",
            "a",
            "abcdefghijklmno",
            "abcdefghijklmnoq",
            "Abcdefghijklmnop",
            &twice,
        ] {
            assert!(!token.is(other.as_bytes()), "{other}");
        }
        assert_eq!(format!("{token:?}"), "Token(..)");
    }
}
