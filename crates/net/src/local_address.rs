//! Whether an address is one of this machine.
//!
//! The kernel's routing decides, by netlink (rtnetlink(7), `RTM_GETROUTE`): a list of the
//! interfaces' addresses could be outdated when it is used, and would miss those that a `local`
//! route adds. A request takes about ten microseconds, and is made only for a destination whose
//! port is one on which this proxy listens on all addresses.

use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socket_with,
};
use std::net::{IpAddr, UdpSocket};

/// Whether packets to `ip` stay on this machine.
pub fn is_local(ip: IpAddr) -> bool {
    if ip.is_loopback() || ip.is_unspecified() {
        return true;
    }
    // without netlink (a sandbox): an address that a socket can be bound to counts as ours. Where
    // the system permits to bind to any address, this refuses too much, which is the safe side
    ask_kernel(ip).unwrap_or_else(|_| UdpSocket::bind((ip, 0)).is_ok())
}

// linux/netlink.h, linux/rtnetlink.h
const RTM_NEWROUTE: u16 = 24;
const RTM_GETROUTE: u16 = 26;
const NLMSG_ERROR: u16 = 2;
const NLM_F_REQUEST: u16 = 1;
const RTA_DST: u16 = 1;
const RTN_LOCAL: u8 = 2;
/// Bytes of `struct nlmsghdr`.
const HEADER_BYTES: usize = 16;
/// Where `rtm_type` is in `struct rtmsg`.
const TYPE_AT: usize = 7;
/// Bytes of an answer that are read: one route has about a hundred.
const ANSWER_BYTES: usize = 4096;

fn ask_kernel(ip: IpAddr) -> rustix::io::Result<bool> {
    let socket = socket_with(
        AddressFamily::NETLINK,
        SocketType::RAW,
        SocketFlags::CLOEXEC | SocketFlags::NONBLOCK,
        None,
    )?;
    send(&socket, &question(ip), SendFlags::empty())?;
    let mut answer = [0; ANSWER_BYTES];
    // the kernel has answered when `send` returns
    let (length, _) = recv(&socket, &mut answer[..], RecvFlags::empty())?;
    says_local(&answer[..length]).ok_or(rustix::io::Errno::BADMSG)
}

/// A request for the route to `ip`.
fn question(ip: IpAddr) -> Vec<u8> {
    let (family, octets) = match ip {
        IpAddr::V4(ip) => (AddressFamily::INET, ip.octets().to_vec()),
        IpAddr::V6(ip) => (AddressFamily::INET6, ip.octets().to_vec()),
    };
    let family = u8::try_from(family.as_raw()).unwrap_or_default();
    let bytes = u16::try_from(octets.len()).unwrap_or_default();
    let mut message = vec![0; 4];
    message.extend_from_slice(&RTM_GETROUTE.to_ne_bytes());
    message.extend_from_slice(&NLM_F_REQUEST.to_ne_bytes());
    // sequence number and port: there is one question on this socket
    message.extend_from_slice(&[0; 8]);
    let prefix_bits = u8::try_from(8 * bytes).unwrap_or_default();
    message.extend_from_slice(&[family, prefix_bits, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    message.extend_from_slice(&(4 + bytes).to_ne_bytes());
    message.extend_from_slice(&RTA_DST.to_ne_bytes());
    message.extend_from_slice(&octets);
    let length = u32::try_from(message.len()).unwrap_or_default();
    message[..4].copy_from_slice(&length.to_ne_bytes());
    message
}

/// Whether the answer says that the address is local; `None` if it cannot be read. An address
/// without a route is not.
fn says_local(answer: &[u8]) -> Option<bool> {
    let kind = u16::from_ne_bytes(answer.get(4..6)?.try_into().ok()?);
    match kind {
        RTM_NEWROUTE => Some(*answer.get(HEADER_BYTES + TYPE_AT)? == RTN_LOCAL),
        NLMSG_ERROR => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernel_tells_addresses_of_this_machine_from_others() {
        let check = |text: &str, expected: bool| {
            let ip: IpAddr = text.parse().expect("an address");
            assert_eq!(is_local(ip), expected, "{text}");
            // without the shortcuts
            assert_eq!(ask_kernel(ip), Ok(expected), "{text} by netlink");
        };
        check("127.0.0.1", true);
        check("127.1.2.3", true);
        check("192.0.2.1", false);
        check("2001:db8::1", false);
        // every address of an interface: those that the hosts file or the container gives this
        // machine
        let out = UdpSocket::bind("0.0.0.0:0").expect("a socket");
        if out.connect("192.0.2.1:9").is_ok() {
            let ours = out.local_addr().expect("an address").ip();
            check(&ours.to_string(), true);
        }
    }

    #[test]
    fn truncated_netlink_answer_is_ignored() {
        assert_eq!(says_local(&[]), None);
        assert_eq!(says_local(&[0; 5]), None);
        let mut answer = vec![0; HEADER_BYTES + TYPE_AT];
        answer[4..6].copy_from_slice(&RTM_NEWROUTE.to_ne_bytes());
        assert_eq!(says_local(&answer), None);
        answer.push(RTN_LOCAL);
        assert_eq!(says_local(&answer), Some(true));
    }
}
