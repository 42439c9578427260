//! The socket options and queries that no safe crate offers, by the C library.
#![expect(
    unsafe_code,
    reason = "neither socket2 nor rustix has TCP_INFO, TCP_WINDOW_CLAMP, SO_BUF_LOCK, SO_MEMINFO or SIOCOUTQ"
)]

use std::io;
use std::mem::size_of;
use std::os::fd::{AsRawFd, BorrowedFd};

/// An option of a socket: its level and name, see socket(7) and tcp(7).
#[derive(Clone, Copy, Debug)]
pub(super) struct SocketOption(libc::c_int, libc::c_int);

impl SocketOption {
    /// Everything the kernel knows of a TCP connection.
    pub(super) const TCP_INFO: Self = Self(libc::IPPROTO_TCP, libc::TCP_INFO);
    /// The largest window that is offered, bytes of content.
    pub(super) const TCP_WINDOW_CLAMP: Self = Self(libc::IPPROTO_TCP, libc::TCP_WINDOW_CLAMP);
    /// Which buffers are not tuned by the kernel: a set of `BUF_LOCK` bits. Linux 5.14.
    pub(super) const SO_BUF_LOCK: Self = Self(libc::SOL_SOCKET, 72);
    /// Bytes that the socket's buffers hold, the bookkeeping included: an array of numbers. Linux
    /// 4.12.
    pub(super) const SO_MEMINFO: Self = Self(libc::SOL_SOCKET, 55);
}

/// Reads an option into `room`; how many bytes the kernel knew of.
///
/// # Errors
/// The kernel does not know the option, or the socket is none.
pub(super) fn read_option(
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
pub(super) fn number(socket: BorrowedFd<'_>, option: SocketOption) -> io::Result<u32> {
    let mut bytes = [0; size_of::<u32>()];
    read_option(socket, option, &mut bytes)?;
    Ok(u32::from_ne_bytes(bytes))
}

/// Sets an option that is one number.
///
/// # Errors
/// The kernel does not know the option or refuses the value, or the socket is none.
pub(super) fn set_number(
    socket: BorrowedFd<'_>,
    option: SocketOption,
    value: u32,
) -> io::Result<()> {
    let length =
        libc::socklen_t::try_from(size_of::<u32>()).expect("four bytes are a short option");
    // SAFETY: the pointer is to `value`, which is `length` bytes long, initialised, and lives until
    // the call is over; the kernel only reads it.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            option.0,
            option.1,
            (&raw const value).cast(),
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
pub(super) fn bytes_out(socket: BorrowedFd<'_>) -> io::Result<u32> {
    let mut count: libc::c_int = 0;
    // SAFETY: for a socket this request (SIOCOUTQ, the same number as TIOCOUTQ) writes one int
    // through the pointer, which is to an int that lives and is borrowed mutably until the call is
    // over.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), libc::TIOCOUTQ, &raw mut count) };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(u32::try_from(count).unwrap_or(0))
}
