//! The admin interface: health, metrics, purge, reload.

use crate::config::setting::invalid::Invalid;
use crate::config::setting::table;
use crate::config::values::address::AdminAddress;
use crate::config::values::text::{BadValue, Form, choice, text_value};
use crate::config::values::token_file::TokenFile;
use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;

table! {
    /// The `[admin]` table.
    pub struct Admin in "admin" {
        /// Address of the admin interface: `/healthz`, `/metrics`, `/config`, purge and reload;
        /// `"off"` for none. It differs from the listeners' addresses, and is loopback, since by
        /// default no token is required. A Unix socket (`"unix:/run/weir/admin.sock"`) is for the
        /// user that runs the proxy alone. No request through this proxy ever reaches it.
        address: AdminAddress = AdminAddress::At(SocketAddr::from(([127, 0, 0, 1], 3129)));
        /// File with the token that purge, reload and any other change of the state require
        /// (`Authorization: Bearer`), one line of at least 16 characters; only its owner may read
        /// it (mode 0600). Read again on reload. `"off"` is permitted while only this machine
        /// reaches the address: then every user and program on it can purge.
        token_file: TokenFile = TokenFile::Off;
        /// Where the numbers of the last hour and week are kept over a restart, 5 MiB. `auto`: in
        /// the directory that a service manager gives (`STATE_DIRECTORY`), else in the first
        /// directory of the store on disk, else in memory alone. `"off"`: in memory alone.
        history_file: HistoryPlace = HistoryPlace::Auto;
        /// Whether it is counted which URLs, hosts, clients and next hops take most requests and
        /// bytes (`/top`), and the last misses are remembered (`/misses`). At most 5 MiB a worker.
        top: bool = true;
        /// How `/top` and `/misses` show clients: `hashed` as a name that is the same for all
        /// requests of a client until the proxy restarts, and from which its address cannot be
        /// computed; `addresses` as they are. Hashed by default: what a person reads is private.
        top_clients: TopClients = TopClients::Hashed;
        /// Whether `/top` and `/misses` show queries of URLs: `cut` counts all URLs that differ in
        /// their query alone as one, and shows none of them; `whole` counts each. Cut by default,
        /// since queries carry names, words that were searched for, and keys.
        top_queries: TopQueries = TopQueries::Cut;
    }
}

/// Where the history outlives the process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HistoryPlace {
    /// Where there is a directory for it: `"auto"`.
    Auto,
    /// Nowhere: `"off"`.
    Off,
    /// In this file.
    File(PathBuf),
}

impl fmt::Display for HistoryPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::Off => f.write_str("off"),
            Self::File(path) => path.display().fmt(f),
        }
    }
}

impl std::str::FromStr for HistoryPlace {
    type Err = BadValue;

    fn from_str(text: &str) -> Result<Self, BadValue> {
        match text {
            "auto" => Ok(Self::Auto),
            "off" => Ok(Self::Off),
            "" => Err(BadValue::new(
                "`` is not a place for a file; \"auto\", \"off\" or a path is expected",
            )),
            _ => Ok(Self::File(PathBuf::from(text))),
        }
    }
}

impl Form for HistoryPlace {
    const FORM: &'static str = "\"auto\", \"off\", or a path";
}

text_value!(HistoryPlace);

choice! {
    /// How clients are shown.
    pub enum TopClients {
        /// By a name that does not tell the address.
        Hashed = "hashed",
        /// By their addresses.
        Addresses = "addresses",
    }
}

choice! {
    /// Whether queries of URLs are shown.
    pub enum TopQueries {
        /// They are not.
        Cut = "cut",
        /// They are.
        Whole = "whole",
    }
}

/// Refuses an address that other machines reach where nothing asks for a token.
pub(super) fn check(admin: &Admin) -> Result<(), Invalid> {
    if admin.address.is_public() && admin.token_file == TokenFile::Off {
        return Err(Invalid::new(
            "admin.address",
            format!(
                "other machines can reach {}, and whoever does could purge and reload",
                admin.address
            ),
            "name a token in admin.token_file, or use a loopback address or a Unix socket",
        ));
    }
    Ok(())
}
