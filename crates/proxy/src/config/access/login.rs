//! Logins of clients of forward listeners.

use crate::config::listener::{Listener, ListenerKind};
use crate::config::setting::invalid::Invalid;
use crate::config::setting::table;
use crate::config::values::token_file::TokenFile;

table! {
    /// The `[login]` table. Where one of the files is set, forward listeners ask for a login.
    pub struct Login in "login" {
        /// The file of users and hashed passwords (Basic, RFC 7617): a file of `htpasswd`, with
        /// hashes by bcrypt (`htpasswd -B`) or SHA-crypt, mode 0600, up to 1 MiB. It is read again
        /// on reload.
        users_file: TokenFile = TokenFile::Off;
        /// The file of hashed tokens (Bearer, RFC 6750): `NAME:sha256:HEX` a line, mode 0600, up to
        /// 1 MiB. It is read again on reload.
        tokens_file: TokenFile = TokenFile::Off;
        /// What clients are told that they log in to; browsers show it.
        realm: String = "Weir".to_owned();
    }
}

impl Login {
    /// Whether forward listeners ask for a login.
    pub(crate) fn is_asked(&self) -> bool {
        self.users_file != TokenFile::Off || self.tokens_file != TokenFile::Off
    }
}

/// Most bytes of the realm: browsers show less.
const REALM_BYTES_MAX: usize = 64;

/// Refuses a realm that no field can have, and logins that no listener asks for.
pub(in crate::config) fn check(login: &Login, listeners: &[Listener]) -> Result<(), Invalid> {
    let realm = &login.realm;
    let is_shown = |byte: u8| matches!(byte, b' '..=b'~') && !matches!(byte, b'"' | b'\\');
    if realm.is_empty() || realm.len() > REALM_BYTES_MAX || !realm.bytes().all(is_shown) {
        return Err(Invalid::new(
            "login.realm",
            format!("`{}` cannot be shown to clients", realm.escape_debug()),
            format!(
                "use 1 to {REALM_BYTES_MAX} letters, digits and signs of ASCII without `\"` and `\\`"
            ),
        ));
    }
    let is_forward = |listener: &Listener| listener.mode == ListenerKind::Forward;
    if login.is_asked() && !listeners.iter().any(is_forward) {
        let key = match login.users_file {
            TokenFile::Off => "login.tokens_file",
            TokenFile::At(_) => "login.users_file",
        };
        return Err(Invalid::new(
            key,
            "no listener asks for a login: there is no forward listener",
            "remove the line, or set mode = \"forward\" on a listener",
        ));
    }
    Ok(())
}
