//! `--disk`: how much, or none.

use std::str::FromStr;
use weir_proxy::config::{BadValue, ByteSize};

/// The size of the store on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DiskSize {
    /// There is none.
    Off,
    /// So much.
    Bytes(ByteSize),
}

impl FromStr for DiskSize {
    type Err = BadValue;

    fn from_str(text: &str) -> Result<Self, BadValue> {
        match text {
            "off" => Ok(Self::Off),
            _ => text.parse().map(Self::Bytes),
        }
    }
}
