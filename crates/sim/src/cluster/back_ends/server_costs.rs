//! What a server's CPU does for connections and responses.

use super::micros::Micros;
use crate::world::Nanos;
use serde::Serialize;

/// Bytes of a unit that sending is counted in (ASPLOS'98 §3.1).
pub(super) const UNIT_BYTES: u64 = 512;

/// Units of a response that have begun.
pub(super) const fn units(bytes: u64) -> u64 {
    bytes.div_ceil(UNIT_BYTES)
}

/// CPU time of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ServerCosts {
    /// To set up a connection that was handed over.
    pub set_up_us: Micros,
    /// To tear it down.
    pub tear_down_us: Micros,
    /// A request, beside the sending.
    pub request_us: Micros,
    /// Each 512 bytes begun that are sent.
    pub send_512_us: Micros,
}

impl ServerCosts {
    /// Apache 1.3.3 (USENIX'99 §6).
    pub const APACHE: Self = Self::of(278, 527, 24);
    /// Flash (USENIX'99 §6).
    pub const FLASH: Self = Self::of(129, 159, 24);

    const fn of(set_up: u64, request: u64, send_512: u64) -> Self {
        Self {
            set_up_us: Micros::whole(set_up),
            tear_down_us: Micros::whole(set_up),
            request_us: Micros::whole(request),
            send_512_us: Micros::whole(send_512),
        }
    }

    /// What sending a response of so many bytes takes.
    pub(super) const fn send(&self, bytes: u64) -> Nanos {
        units(bytes) * self.send_512_us.nanos()
    }
}

weir_policy::choice! {
    /// The servers whose costs are published.
    #[derive(Default, PartialOrd, Ord)]
    pub enum Server {
        /// [`ServerCosts::APACHE`].
        #[default]
        Apache = "apache",
        /// [`ServerCosts::FLASH`].
        Flash = "flash",
    }
}

impl Server {
    /// Its costs.
    #[must_use]
    pub const fn costs(self) -> ServerCosts {
        match self {
            Self::Apache => ServerCosts::APACHE,
            Self::Flash => ServerCosts::FLASH,
        }
    }
}
