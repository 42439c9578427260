//! The operator's own interface: health, metrics, purge, reload.

use super::address::AdminAddress;
use super::knob::table;
use std::net::SocketAddr;

table! {
    /// The `[admin]` table.
    pub struct Admin in "admin" {
        /// Where `/healthz`, `/metrics`, `/config`, purge and reload are served; `"off"` for nowhere.
        /// An address apart from the listeners, and loopback, since it asks for no password.
        address: AdminAddress = AdminAddress::At(SocketAddr::from(([127, 0, 0, 1], 3129)));
    }
}
