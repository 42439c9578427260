//! The admin interface: health, metrics, purge, reload.

use crate::config::invalid::Invalid;
use crate::config::setting::table;
use crate::config::values::address::AdminAddress;
use crate::config::values::token_file::TokenFile;
use std::net::SocketAddr;

table! {
    /// The `[admin]` table.
    pub struct Admin in "admin" {
        /// Where `/healthz`, `/metrics`, `/config`, purge and reload are served; `"off"` for
        /// nowhere. An address apart from the listeners, and loopback, since by default it asks for
        /// no token. A Unix socket (`"unix:/run/weir/admin.sock"`) is for the user that runs the
        /// proxy alone. No request through this proxy ever reaches it.
        address: AdminAddress = AdminAddress::At(SocketAddr::from(([127, 0, 0, 1], 3129)));
        /// File with the token that purge, reload and whatever else changes the state ask for
        /// (`Authorization: Bearer`), one line of at least 16 characters; only its owner may read
        /// it (mode 0600). Read again on reload. `"off"` is allowed while only this machine reaches
        /// the address: every user and program on it can purge then.
        token_file: TokenFile = TokenFile::Off;
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
