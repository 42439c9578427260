//! Replaces names by numbers before anything is written to disk.
//!
//! `SipHash` 2-4 under a secret key, each kind of name with a number of its own in front: equal
//! names give equal numbers, and without the key it is not possible to try names until one fits.
//! The policy's keys use the faster 1-3, whose digests never leave the process; these are
//! published.

use super::error::{TraceError, Wrong};
use super::file::meta::{Anonymisation, Meta};
use super::row::Row;
use siphasher::sip::SipHasher24;
use std::fs::{File, OpenOptions};
use std::hash::Hasher as _;
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// Bytes of a key.
pub const KEY_BYTES: usize = 16;

/// Hashes names; one for a whole trace, or for several to compare.
#[derive(Clone)]
pub struct Anonymiser {
    key: [u8; KEY_BYTES],
    anonymisation: Anonymisation,
}

/// What kind of name it is: an address that is also a host name is not the same thing twice.
#[derive(Clone, Copy)]
enum Name {
    KeyId = 0,
    Client = 1,
    Server = 2,
    Target = 3,
    EntityTag = 4,
    Variant = 5,
    Vary = 6,
}

impl Anonymiser {
    /// Under this key.
    #[must_use]
    pub const fn keyed(key: [u8; KEY_BYTES]) -> Self {
        Self {
            key,
            anonymisation: Anonymisation::Keyed,
        }
    }

    /// Under a key that is forgotten when the program ends: the same names cannot be hashed again,
    /// not even by us.
    ///
    /// # Errors
    /// The system gives no random bytes.
    pub fn random() -> Result<Self, TraceError> {
        random_key()
            .map(Self::keyed)
            .map_err(|error| Wrong::outside(error).at("cannot make a key from `/dev/urandom`"))
    }

    /// Under the key in this file: 32 hex digits. Where there is no such file, it is made, with a
    /// random key and for the owner only.
    ///
    /// # Errors
    /// The file holds no key, cannot be read, or cannot be made.
    pub fn from_key_file(path: &Path) -> Result<Self, TraceError> {
        let what = || format!("cannot use key file `{}`", path.display());
        let key = match create_key(path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                read_key(path).map_err(|wrong| wrong.at(what()))?
            }
            created => created.map_err(|error| Wrong::outside(error).at(what()))?,
        };
        Ok(Self::keyed(key))
    }

    /// Nothing is hidden: targets are kept as text, and the hashes, which are still needed, are the
    /// same in every such trace.
    #[must_use]
    pub const fn none() -> Self {
        Self {
            key: [0; KEY_BYTES],
            anonymisation: Anonymisation::None,
        }
    }

    /// What it does to names.
    #[must_use]
    pub const fn anonymisation(&self) -> Anonymisation {
        self.anonymisation
    }

    /// Which key it is, without telling it; `None` if nothing is hidden.
    #[must_use]
    pub fn key_id(&self) -> Option<String> {
        match self.anonymisation {
            Anonymisation::Keyed => Some(format!("{:016x}", self.hash(Name::KeyId, &[]))),
            Anonymisation::None => None,
        }
    }

    /// What a trace says of itself if this one hashes its names. `source` is the tool and the
    /// format.
    #[must_use]
    pub fn meta(&self, source: &str) -> Meta {
        Meta {
            source: source.to_owned(),
            anonymisation: Some(self.anonymisation),
            key_id: self.key_id(),
            ..Meta::default()
        }
    }

    /// [`Row::client`]: of an address without a port, in whatever form the source has it.
    #[must_use]
    pub fn client(&self, address: &str) -> u64 {
        self.hash(Name::Client, &[address.as_bytes()])
    }

    /// [`Row::server`]: of scheme, host and port. Case does not matter, and the port of the scheme
    /// may be left out.
    #[must_use]
    pub fn server(&self, scheme: &str, authority: &str) -> u64 {
        let (scheme, authority) = (scheme.to_ascii_lowercase(), authority.to_ascii_lowercase());
        let port = match scheme.as_str() {
            "http" => ":80",
            "https" => ":443",
            _ => "",
        };
        let authority = authority.strip_suffix(port).unwrap_or(&authority);
        self.hash(Name::Server, &[scheme.as_bytes(), authority.as_bytes()])
    }

    /// [`Row::target`]: of the target URI as it stands, without its fragment.
    #[must_use]
    pub fn target(&self, uri: &str) -> u64 {
        self.hash(Name::Target, &[without_fragment(uri).as_bytes()])
    }

    /// [`Row::etag`]: of the opaque tag, without `W/` and quotes.
    #[must_use]
    pub fn etag(&self, opaque_tag: &[u8]) -> u64 {
        self.hash(Name::EntityTag, &[opaque_tag])
    }

    /// [`Row::variant`]: of the nominated fields and what the request says in each, in the order of
    /// their names. `weir_semantics::feed_selecting` says which values are equal.
    #[must_use]
    pub fn variant<'a>(&self, fields: impl IntoIterator<Item = (&'a str, &'a [u8])>) -> u64 {
        let parts: Vec<&[u8]> = fields
            .into_iter()
            .flat_map(|(name, value)| [name.as_bytes(), value])
            .collect();
        self.hash(Name::Variant, &parts)
    }

    /// [`Row::vary`]: of the names in Vary, in any order and case. Names of fields are no secret:
    /// the hash is the same under every key. Without names it is [`Row::VARY_NONE`], with a `*`
    /// among them [`Row::VARY_ALL`].
    #[must_use]
    pub fn vary<'a>(names: impl IntoIterator<Item = &'a str>) -> u64 {
        let mut names: Vec<String> = names.into_iter().map(str::to_ascii_lowercase).collect();
        names.sort_unstable();
        names.dedup();
        if names.is_empty() {
            return Row::VARY_NONE;
        }
        if names.iter().any(|name| name == "*") {
            return Row::VARY_ALL;
        }
        let parts: Vec<&[u8]> = names.iter().map(String::as_bytes).collect();
        // the two values that mean something else are left out
        Self::none().hash(Name::Vary, &parts).clamp(1, u64::MAX - 1)
    }

    fn hash(&self, name: Name, parts: &[&[u8]]) -> u64 {
        let mut hasher = SipHasher24::new_with_key(&self.key);
        hasher.write_u8(name as u8);
        for part in parts {
            hasher.write(part);
            hasher.write_u64(part.len() as u64);
        }
        hasher.finish()
    }
}

/// Without the key.
impl std::fmt::Debug for Anonymiser {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Anonymiser")
            .field("key_id", &self.key_id())
            .finish_non_exhaustive()
    }
}

fn without_fragment(uri: &str) -> &str {
    uri.split('#').next().unwrap_or(uri)
}

fn random_key() -> io::Result<[u8; KEY_BYTES]> {
    let mut key = [0; KEY_BYTES];
    File::open("/dev/urandom")?.read_exact(&mut key)?;
    Ok(key)
}

/// A new file with a new key.
fn create_key(path: &Path) -> io::Result<[u8; KEY_BYTES]> {
    let mut options = OpenOptions::new();
    let mut file = options
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    let key = random_key()?;
    let digits = key
        .iter()
        .fold(String::new(), |text, byte| text + &format!("{byte:02x}"));
    writeln!(file, "{digits}")?;
    file.sync_all()?;
    Ok(key)
}

fn read_key(path: &Path) -> Result<[u8; KEY_BYTES], Wrong> {
    // one byte more than a key with its line feed: a wrong file need not be read to its end
    let limit = 2 * KEY_BYTES as u64 + 2;
    let mut text = Vec::new();
    let file = File::open(path).map_err(Wrong::outside)?;
    file.take(limit)
        .read_to_end(&mut text)
        .map_err(Wrong::outside)?;
    let key = str::from_utf8(text.trim_ascii_end())
        .ok()
        .and_then(parse_key);
    key.ok_or_else(|| {
        Wrong::usage(
            format!("it does not hold {} hex digits", 2 * KEY_BYTES),
            "name a file that does not exist: a key is made there",
        )
    })
}

fn parse_key(digits: &str) -> Option<[u8; KEY_BYTES]> {
    let is_hex = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    if digits.len() != 2 * KEY_BYTES || !is_hex {
        return None;
    }
    let number = u128::from_str_radix(digits, 16).ok()?;
    Some(number.to_be_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::Hide as _;
    use std::os::unix::fs::PermissionsExt as _;

    const KEYED: Anonymiser = Anonymiser::keyed([7; KEY_BYTES]);

    #[test]
    fn hash_of_a_name_differs_by_kind_and_key() {
        let name = "example.org";
        let hashes = [
            KEYED.client(name),
            KEYED.target(name),
            KEYED.etag(name.as_bytes()),
            KEYED.server("http", name),
            KEYED.server("https", name),
            KEYED.variant([(name, &b""[..])]),
            KEYED.variant([("", name.as_bytes())]),
            Anonymiser::keyed([8; KEY_BYTES]).client(name),
            Anonymiser::none().client(name),
        ];
        for (index, hash) in hashes.iter().enumerate() {
            assert!(!hashes[..index].contains(hash), "{index}");
        }
        assert_eq!(KEYED.client(name), hashes[0]);
    }

    #[test]
    fn equivalent_targets_and_servers_have_one_hash() {
        let target = "http://a.example/b?c";
        assert_eq!(KEYED.target(target), KEYED.target("http://a.example/b?c#d"));
        assert_ne!(KEYED.target(target), KEYED.target("http://a.example/b"));
        let server = KEYED.server("http", "a.example");
        assert_eq!(KEYED.server("HTTP", "A.example:80"), server);
        assert_ne!(KEYED.server("http", "a.example:443"), server);
        assert_eq!(
            KEYED.server("https", "a.example:443"),
            KEYED.server("https", "a.example")
        );
    }

    #[test]
    fn keyed_anonymiser_keeps_no_names_and_hides_its_key() {
        assert!(!KEYED.keeps_names());
        assert!(Anonymiser::none().keeps_names());
        assert_eq!(Anonymiser::none().key_id(), None);
        assert!(!format!("{KEYED:?}").contains("7, 7"));
    }

    #[test]
    fn vary_hash_ignores_order_case_and_repetition() {
        let one = Anonymiser::vary(["Accept-Encoding", "User-Agent"]);
        assert_eq!(
            one,
            Anonymiser::vary(["user-agent", "accept-encoding", "User-Agent"])
        );
        assert_ne!(one, Anonymiser::vary(["Accept-Encoding"]));
        assert_eq!(Anonymiser::vary([]), Row::VARY_NONE);
        assert_eq!(Anonymiser::vary(["Origin", "*"]), Row::VARY_ALL);
    }

    #[test]
    fn key_file_is_private_to_its_owner_and_gives_the_same_key_again() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("key");
        let made = Anonymiser::from_key_file(&path).expect("it is made");
        let mode = std::fs::metadata(&path)
            .expect("it is there")
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600);
        let read = Anonymiser::from_key_file(&path).expect("it is read");
        assert_eq!(made.key, read.key);
        assert_eq!(made.key_id(), read.key_id());
        let random = Anonymiser::random().expect("random bytes");
        assert_ne!(random.key, made.key);
        assert_ne!(random.key_id(), made.key_id());
    }

    #[test]
    fn key_file_must_hold_32_hex_digits() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("key");
        let digits = "00112233445566778899aabbccddeeff";
        for text in [
            "",
            "0011",
            &digits[1..],
            &format!("{digits}0"),
            &format!("+{}", &digits[1..]),
        ] {
            std::fs::write(&path, text).expect("written");
            let error = Anonymiser::from_key_file(&path).expect_err("it is refused");
            assert!(error.to_string().contains("32 hex digits"), "{error}");
        }
        std::fs::write(&path, format!("{digits}\n")).expect("written");
        let key = Anonymiser::from_key_file(&path).expect("a key").key;
        assert_eq!(key[..3], [0x00, 0x11, 0x22]);
        assert!(Anonymiser::from_key_file(folder.path()).is_err());
    }
}
