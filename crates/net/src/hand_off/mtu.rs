//! How large packets may be.

use crate::flow::socket::{SocketOption, number};
use std::io;
use std::net::{IpAddr, Ipv4Addr, UdpSocket};
use std::os::fd::AsFd as _;

/// Bytes of a packet to this IPv4 address, at most, as this machine knows: the MTU of its device,
/// or less if a router has said so.
///
/// # Errors
/// There is no way to the address.
pub fn mtu_toward(ip: IpAddr) -> io::Result<u32> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    // nothing is sent: the port is any
    socket.connect((ip, 9))?;
    number(socket.as_fd(), SocketOption::IP_MTU)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mtu_toward_the_loopback_is_that_of_its_device() {
        let device = std::fs::read_to_string("/sys/class/net/lo/mtu").expect("a device");
        let device: u32 = device.trim().parse().expect("a number");
        // the most that a packet of IPv4 can have, which a device may exceed
        let expected = device.min(u32::from(u16::MAX));
        let mtu = mtu_toward(Ipv4Addr::LOCALHOST.into()).expect("an MTU");
        assert_eq!(mtu, expected);
    }
}
