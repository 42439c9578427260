//! The socket options and queries that no safe crate offers, by the C library.
#![expect(
    unsafe_code,
    reason = "neither socket2 nor rustix has TCP_INFO, TCP_WINDOW_CLAMP, SO_BUF_LOCK, SO_MEMINFO or SIOCOUTQ"
)]

use std::io;
use std::mem::size_of;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};

/// An option of a socket: its level and name, see socket(7) and tcp(7).
#[derive(Clone, Copy, Debug)]
pub(crate) struct SocketOption(libc::c_int, libc::c_int);

impl SocketOption {
    /// Everything the kernel knows of a TCP connection.
    pub(crate) const TCP_INFO: Self = Self(libc::IPPROTO_TCP, libc::TCP_INFO);
    /// The largest window that is offered, bytes of content.
    pub(crate) const TCP_WINDOW_CLAMP: Self = Self(libc::IPPROTO_TCP, libc::TCP_WINDOW_CLAMP);
    /// Which buffers are not tuned by the kernel: a set of `BUF_LOCK` bits. Linux 5.14.
    pub(crate) const SO_BUF_LOCK: Self = Self(libc::SOL_SOCKET, 72);
    /// Bytes of a packet that a connected socket may send.
    pub(crate) const IP_MTU: Self = Self(libc::IPPROTO_IP, libc::IP_MTU);
    /// Bytes of content that a segment may have.
    pub(crate) const TCP_MAXSEG: Self = Self(libc::IPPROTO_TCP, libc::TCP_MAXSEG);
    /// Whether the connection is under repair: 1, or 0. It takes `CAP_NET_ADMIN`, as all options
    /// of repair do. Linux 3.5.
    pub(crate) const TCP_REPAIR: Self = Self(libc::IPPROTO_TCP, libc::TCP_REPAIR);
    /// Which queue is repaired: 0 none, 1 what is received, 2 what is sent.
    pub(crate) const TCP_REPAIR_QUEUE: Self = Self(libc::IPPROTO_TCP, libc::TCP_REPAIR_QUEUE);
    /// The number of the byte behind the end of that queue.
    pub(crate) const TCP_QUEUE_SEQ: Self = Self(libc::IPPROTO_TCP, libc::TCP_QUEUE_SEQ);
    /// What the two ends have agreed on: pairs of numbers, as they are in segments with SYN.
    pub(crate) const TCP_REPAIR_OPTIONS: Self = Self(libc::IPPROTO_TCP, libc::TCP_REPAIR_OPTIONS);
    /// The clock of the timestamps of a connection.
    pub(crate) const TCP_TIMESTAMP: Self = Self(libc::IPPROTO_TCP, libc::TCP_TIMESTAMP);
    /// The windows of both sides: five numbers. Linux 4.8.
    pub(crate) const TCP_REPAIR_WINDOW: Self = Self(libc::IPPROTO_TCP, TCP_REPAIR_WINDOW);
    /// Bytes for sending, above the limit of the system, too: the kernel takes twice the number.
    pub(crate) const SO_SNDBUFFORCE: Self = Self(libc::SOL_SOCKET, libc::SO_SNDBUFFORCE);
    /// The same for receiving.
    pub(crate) const SO_RCVBUFFORCE: Self = Self(libc::SOL_SOCKET, libc::SO_RCVBUFFORCE);
    /// Bytes that the socket's buffers hold, the bookkeeping included: an array of numbers. Linux
    /// 4.12.
    pub(crate) const SO_MEMINFO: Self = Self(libc::SOL_SOCKET, 55);
}

/// linux/tcp.h; the C library has it for some architectures alone.
const TCP_REPAIR_WINDOW: libc::c_int = 29;

/// `SIOCOUTQNSD` of linux/sockios.h, one number on every architecture.
const SIOCOUTQNSD: libc::Ioctl = 0x894b;

/// Reads an option into `room`; how many bytes the kernel knew of.
///
/// # Errors
/// The kernel does not know the option, or the socket is none.
pub(crate) fn read_option(
    socket: BorrowedFd<'_>,
    option: SocketOption,
    room: &mut [u8],
) -> io::Result<usize> {
    let mut length = libc::socklen_t::try_from(room.len()).unwrap_or(libc::socklen_t::MAX);
    // SAFETY: `room` is valid for writes of `length` bytes, and both pointers are to places that
    // live and are borrowed mutably until the call is over. The kernel writes `length` bytes at
    // most, and to `length` how many it wrote.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            option.0,
            option.1,
            room.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok((length as usize).min(room.len()))
}

/// Reads an option that is one number.
///
/// # Errors
/// As [`read_option`].
pub(crate) fn number(socket: BorrowedFd<'_>, option: SocketOption) -> io::Result<u32> {
    let mut bytes = [0; size_of::<u32>()];
    read_option(socket, option, &mut bytes)?;
    Ok(u32::from_ne_bytes(bytes))
}

/// Sets an option that is one number.
///
/// # Errors
/// The kernel does not know the option or refuses the value, or the socket is none.
pub(crate) fn set_number(
    socket: BorrowedFd<'_>,
    option: SocketOption,
    value: u32,
) -> io::Result<()> {
    set_option(socket, option, &value.to_ne_bytes())
}

/// Sets an option to these bytes.
///
/// # Errors
/// As [`set_number`].
pub(crate) fn set_option(
    socket: BorrowedFd<'_>,
    option: SocketOption,
    value: &[u8],
) -> io::Result<()> {
    let length = libc::socklen_t::try_from(value.len()).map_err(io::Error::other)?;
    // SAFETY: the pointer is to `value`, which is `length` bytes long, initialised, and lives until
    // the call is over; the kernel only reads it.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            option.0,
            option.1,
            value.as_ptr().cast(),
            length,
        )
    };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Bytes written to a socket and not yet acknowledged, sent or not (SIOCOUTQ).
///
/// # Errors
/// The socket is none, or it listens.
pub(crate) fn bytes_out(socket: BorrowedFd<'_>) -> io::Result<u32> {
    bytes_out_of(socket.as_raw_fd())
}

/// The same of the socket with this number.
///
/// # Errors
/// As [`bytes_out`].
pub(super) fn bytes_out_of(socket: RawFd) -> io::Result<u32> {
    bytes_by(socket, libc::TIOCOUTQ)
}

/// Bytes written to a socket and not yet sent (SIOCOUTQNSD).
///
/// # Errors
/// As [`bytes_out`].
pub(crate) fn bytes_unsent(socket: BorrowedFd<'_>) -> io::Result<u32> {
    bytes_by(socket.as_raw_fd(), SIOCOUTQNSD)
}

/// One of the two requests above.
fn bytes_by(socket: RawFd, request: libc::Ioctl) -> io::Result<u32> {
    let mut count: libc::c_int = 0;
    // SAFETY: for a socket these requests (SIOCOUTQ, the same number as TIOCOUTQ, and SIOCOUTQNSD)
    // write one int through the pointer, which is to an int that lives and is borrowed mutably
    // until the call is over. Of what is no socket, or not open, they fail or do the same.
    let result = unsafe { libc::ioctl(socket, request, &raw mut count) };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(u32::try_from(count).unwrap_or(0))
}
