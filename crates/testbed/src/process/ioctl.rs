//! Two system calls without a safe function.

use rustix::ioctl::{Getter, Opcode, Updater, ioctl};
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, RawFd};

/// `SIOCOUTQ`, from `linux/sockios.h`: the number on every architecture where it is that of
/// `TIOCOUTQ`.
const BYTES_NOT_ACKNOWLEDGED: Opcode = 0x5411;

/// `TUNSETIFF`, from `linux/if_tun.h`.
const SET_INTERFACE: Opcode = 0x4004_54ca;

/// `IFF_TUN | IFF_NO_PI`: bare IP packets.
const TUN_BARE: u16 = 0x1001;

/// Bytes written to a socket that its peer's kernel has not acknowledged, tcp(7). The socket must
/// be open; for another descriptor it returns nothing.
#[expect(unsafe_code, reason = "an ioctl; its meaning is in the number")]
pub(crate) fn bytes_not_acknowledged(socket: RawFd) -> Option<u64> {
    // SAFETY: the origin names only sockets that it has open, for the time of this call; SIOCOUTQ
    // of a socket writes one int
    let count = unsafe {
        let socket = BorrowedFd::borrow_raw(socket);
        ioctl(socket, Getter::<BYTES_NOT_ACKNOWLEDGED, i32>::new())
    };
    count.ok().and_then(|count| u64::try_from(count).ok())
}

/// `struct ifreq` as `TUNSETIFF` reads it.
#[repr(C)]
#[derive(Debug)]
struct InterfaceRequest {
    name: [u8; 16],
    flags: u16,
    rest: [u8; 22],
}

/// Makes a TUN interface of an open `/dev/net/tun`: what is routed to it can be read, what is
/// written arrives from it.
///
/// # Errors
/// The name is longer than 15 bytes, or the caller may not do this.
#[expect(unsafe_code, reason = "an ioctl; its meaning is in the number")]
pub(crate) fn become_interface(device: &File, name: &str) -> rustix::io::Result<()> {
    let mut request = InterfaceRequest {
        name: [0; 16],
        flags: TUN_BARE,
        rest: [0; 22],
    };
    if name.len() >= request.name.len() {
        return Err(rustix::io::Errno::NAMETOOLONG);
    }
    request.name[..name.len()].copy_from_slice(name.as_bytes());
    // SAFETY: TUNSETIFF reads and writes one struct ifreq of 40 bytes, which this is; every value
    // is a valid one
    unsafe {
        ioctl(
            device.as_fd(),
            Updater::<SET_INTERFACE, _>::new(&mut request),
        )
    }
}
