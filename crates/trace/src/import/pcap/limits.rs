//! What one capture may cost, whatever is in it. Time here is the capture's own, never that of this
//! machine.

/// The most connections that are followed at once, closed ones whose late packets are still
/// expected included. If there are more, those that were silent longest are given up.
pub const CONNECTIONS_MAX: usize = 65_536;

/// The most bytes of one direction that are held: behind a hole, or before it is known which
/// request they answer. Beyond that the hole is taken for lost. A receive window is seldom larger.
pub const HELD_BYTES_MAX: usize = 1024 * 1024;

/// The most bytes that are held of all connections together, heads of requests that wait for their
/// responses included. A connection that would hold more is given up.
pub const TOTAL_HELD_BYTES_MAX: usize = 256 * 1024 * 1024;

/// What a held piece costs beside its bytes: its place in a map, its times. So pieces of one byte
/// are bounded too.
pub const PIECE_BYTES: usize = 96;

/// How many packets of its connection a hole whose other side was acknowledged is waited for: it
/// may come late, as networks and capture cards reorder packets. Reordering over more than some
/// tens of packets is not seen.
pub const PATIENCE_PACKETS: u32 = 64;

/// A segment further ahead than this is of another connection that had the same addresses and
/// ports, bytes. Larger than all but the greatest receive windows, and far less than the space of
/// sequence numbers.
pub const AHEAD_BYTES_MAX: u32 = 1 << 28;

/// A reset further from where its sender is than this is of another connection, bytes: the windows
/// that are in use are smaller.
pub const RESET_BYTES_MAX: u64 = 1 << 24;

/// The most requests of one connection that wait for their responses.
pub const PENDING_MAX: usize = 4096;

/// The most bytes of their heads, which are kept until it is known what the response varies on.
pub const PENDING_BYTES_MAX: usize = 1024 * 1024;

/// How long a connection without packets is waited for, seconds. Idle limits of servers are
/// shorter.
pub const IDLE_S: i64 = 3600;

/// The same, when both sides have said that they are done and something is missing: TCP gives up
/// retransmission long before.
pub const CLOSING_S: i64 = 60;

/// How long late packets of a connection that is over are recognised as its own, seconds: the 2 MSL
/// of RFC 9293.
pub const LINGER_S: i64 = 240;

/// How often connections are looked at for that, seconds.
pub const SWEEP_S: i64 = 10;

/// The most rows that wait for one that began before them and is not over. Then the first is
/// written, and later rows that began before it are counted as out of order.
pub const ROWS_HELD_MAX: usize = 65_536;
