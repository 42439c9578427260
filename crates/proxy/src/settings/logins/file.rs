//! The files of users and tokens.
//!
//! Users are in a file of Apache's `htpasswd`: `NAME:HASH` a line, by bcrypt (`htpasswd -B`) or by
//! the SHA-crypt of `mkpasswd`. Its older hashes are refused: MD5 (`$apr1$`), SHA-1 and DES are
//! found by trying in minutes. Tokens: `NAME:sha256:HEX` a line, with the SHA-256 of the token: a
//! token is random, so that no slower hash is needed.

use sha_crypt::{PasswordVerifier as _, ShaCrypt};
use sha2::{Digest as _, Sha256};
use std::collections::HashMap;
use std::fmt;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;

/// Most bytes of such a file.
pub(crate) const FILE_BYTES_MAX: usize = 1 << 20;
/// Most bytes of a name: it is in each line of the log.
const NAME_BYTES_MAX: usize = 64;
/// The highest cost of bcrypt: four seconds for a login.
const BCRYPT_COST_MAX: u32 = 16;
/// The most rounds of SHA-crypt, which take as long.
const SHA_ROUNDS_MAX: u32 = 5_000_000;
/// The name of a token's hash.
const TOKEN_HASH: &str = "sha256";

/// What is wrong with a line of a file, from 1 on.
#[derive(Debug)]
pub(crate) struct LineError {
    line: usize,
    why: String,
}

impl LineError {
    fn new(line: usize, why: impl Into<String>) -> Self {
        let why = why.into();
        Self { line, why }
    }
}

impl fmt::Display for LineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.why)
    }
}

impl std::error::Error for LineError {}

/// How a password is verified.
#[derive(Debug)]
enum PasswordHash {
    Bcrypt(Box<str>),
    Sha(Box<str>),
}

/// Users and the hashes of their passwords.
#[derive(Debug, Default)]
pub(crate) struct Users {
    hashes: Vec<(Arc<str>, PasswordHash)>,
    places: HashMap<Box<[u8]>, usize>,
    secret: RandomState,
}

/// Holders of tokens, by the SHA-256 of these.
#[derive(Debug, Default)]
pub(crate) struct Tokens(HashMap<[u8; 32], Arc<str>>);

/// The lines with a name, their numbers and the name; without comments and empty ones.
fn entries(text: &[u8]) -> impl Iterator<Item = Result<(usize, &str, &str), LineError>> {
    let lines = (1..).zip(text.split(|byte| *byte == b'\n'));
    let lines = lines.map(|(number, line)| (number, line.trim_ascii_end()));
    let lines = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with(b"#"));
    lines.map(|(number, line)| {
        let wrong = |why: &str| LineError::new(number, why);
        let line = str::from_utf8(line).map_err(|_| wrong("it is not UTF-8"))?;
        let (name, rest) = line
            .split_once(':')
            .ok_or_else(|| wrong("a name, a colon and a hash are expected"))?;
        if name.is_empty() || name.len() > NAME_BYTES_MAX {
            return Err(wrong(&format!(
                "the name has {} bytes; 1 to {NAME_BYTES_MAX} are possible",
                name.len()
            )));
        }
        if name.contains(char::is_control) {
            return Err(wrong("the name has a control character"));
        }
        Ok((number, name, rest))
    })
}

impl Users {
    /// The users in the text of a file.
    pub(crate) fn of_text(text: &[u8]) -> Result<Self, LineError> {
        let mut users = Self::default();
        for entry in entries(text) {
            let (line, name, hash) = entry?;
            let hash = PasswordHash::parse(hash).map_err(|why| LineError::new(line, why))?;
            let place = users.hashes.len();
            if users.places.insert(name.as_bytes().into(), place).is_some() {
                let why = format!("`{name}` is in the file twice");
                return Err(LineError::new(line, why));
            }
            users.hashes.push((name.into(), hash));
        }
        match users.is_empty() {
            true => Err(LineError::new(
                1,
                "there is no user; `htpasswd -B` adds one",
            )),
            false => Ok(users),
        }
    }

    /// Whether there is none.
    pub(super) fn is_empty(&self) -> bool {
        self.hashes.is_empty()
    }

    /// The name of a user.
    pub(super) fn name(&self, user: &[u8]) -> Option<Arc<str>> {
        let place = *self.places.get(user)?;
        Some(Arc::clone(&self.hashes[place].0))
    }

    /// Whether the password is that of the user. It takes as long for a user that there is not: the
    /// hash of another one is verified, the same for each name.
    pub(super) fn verify(&self, user: &[u8], password: &[u8]) -> bool {
        let known = self.places.get(user).copied();
        let other = || {
            let hash = self.secret.hash_one(user);
            usize::try_from(hash % self.hashes.len().max(1) as u64).unwrap_or(0)
        };
        let Some((_, hash)) = self.hashes.get(known.unwrap_or_else(other)) else {
            return false;
        };
        hash.verify(password) & known.is_some()
    }
}

impl PasswordHash {
    fn parse(text: &str) -> Result<Self, String> {
        let kind = text
            .strip_prefix('$')
            .and_then(|rest| rest.split('$').next());
        match kind {
            Some("2a" | "2b" | "2x" | "2y") => {
                let parts: bcrypt::HashParts = text
                    .parse()
                    .map_err(|_| "the hash by bcrypt is not whole".to_owned())?;
                if parts.get_cost() > BCRYPT_COST_MAX {
                    let cost = parts.get_cost();
                    return Err(format!(
                        "the cost of bcrypt is {cost}, more than the maximum, {BCRYPT_COST_MAX}"
                    ));
                }
                Ok(Self::Bcrypt(text.into()))
            }
            Some("5" | "6") => {
                let rounds = text.split('$').find_map(|part| part.strip_prefix("rounds="));
                let rounds = rounds.map(str::parse::<u32>);
                if !matches!(rounds, None | Some(Ok(..=SHA_ROUNDS_MAX))) {
                    return Err(format!(
                        "SHA-crypt has more than the maximum of {SHA_ROUNDS_MAX} rounds"
                    ));
                }
                let hash = text.rsplit('$').next().unwrap_or_default();
                let length = if kind == Some("5") { 43 } else { 86 };
                if hash.len() != length {
                    return Err("the hash by SHA-crypt is not whole".into());
                }
                Ok(Self::Sha(text.into()))
            }
            _ => Err(
                "the password is not hashed by bcrypt or SHA-crypt; `htpasswd -B FILE NAME` writes \
                 such a line"
                    .into(),
            ),
        }
    }

    fn verify(&self, password: &[u8]) -> bool {
        match self {
            Self::Bcrypt(hash) => bcrypt::verify(password, hash).unwrap_or(false),
            Self::Sha(hash) => {
                let hash: &str = hash;
                ShaCrypt::default().verify_password(password, hash).is_ok()
            }
        }
    }
}

impl Tokens {
    /// The tokens in the text of a file.
    pub(crate) fn of_text(text: &[u8]) -> Result<Self, LineError> {
        let mut tokens = Self::default();
        for entry in entries(text) {
            let (line, name, rest) = entry?;
            let wrong = |why: &str| LineError::new(line, why);
            let hash = rest.split_once(':').filter(|(kind, _)| *kind == TOKEN_HASH);
            let (_, hash) = hash.ok_or_else(|| {
                wrong("`NAME:sha256:` and the SHA-256 of the token are expected, which `printf %s TOKEN | sha256sum` prints")
            })?;
            let hash =
                from_hex(hash).ok_or_else(|| wrong("a SHA-256 has 64 hexadecimal digits"))?;
            if tokens.0.insert(hash, name.into()).is_some() {
                return Err(wrong("the token is in the file twice"));
            }
        }
        match tokens.is_empty() {
            true => Err(LineError::new(1, "there is no token")),
            false => Ok(tokens),
        }
    }

    /// Whether there is none.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The holder of a token. A look-up by its hash tells nothing of the token by the time that it
    /// takes.
    pub(super) fn holder(&self, token: &[u8]) -> Option<Arc<str>> {
        let digest: [u8; 32] = Sha256::digest(token).into();
        self.0.get(&digest).cloned()
    }
}

fn from_hex(text: &str) -> Option<[u8; 32]> {
    let mut bytes = [0; 32];
    if text.len() != 64 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    for (byte, at) in bytes.iter_mut().zip((0..).step_by(2)) {
        *byte = u8::from_str_radix(&text[at..at + 2], 16).ok()?;
    }
    Some(bytes)
}
