//! What one ICAP message may cost.

use weir_wire::HeadLimits;

/// The most bytes of content that are taken or handed out at once: 64 KiB.
pub const PIECE_BYTES_MAX: usize = 64 * 1024;

/// The default of [`Limits::preview_bytes_max`]: 64 KiB. Squid and c-icap use 1 to 4 KiB.
pub const PREVIEW_BYTES_MAX: u32 = 64 * 1024;

/// The most bytes of a service's URI: 2 KiB.
pub const SERVICE_URI_BYTES_MAX: usize = 2 * 1024;

/// The limits of one side of a connection.
///
/// A peer can have one ICAP head, two encapsulated heads and one trailer section held, each up to
/// its limit, and twice that while they are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The ICAP head: its bytes, the empty line included, and its field lines. Default 16 KiB and
    /// 128 lines.
    pub icap_head: HeadLimits,
    /// Each encapsulated head, and the trailer section after the content. Default 64 KiB and 128
    /// lines.
    pub http_head: HeadLimits,
    /// The most bytes of a preview. Default [`PREVIEW_BYTES_MAX`].
    pub preview_bytes_max: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            icap_head: HeadLimits {
                bytes_max: 16 * 1024,
                ..HeadLimits::default()
            },
            http_head: HeadLimits::default(),
            preview_bytes_max: PREVIEW_BYTES_MAX,
        }
    }
}
