//! Ports for programs that cannot say which one the system gave them, so that it must be named to
//! them before they bind it.
//!
//! A port that the system chooses for a socket that is closed again is no such port: until the
//! program binds it, the system may give it to another socket, or to a connection as its source.
//! Here a port lies outside of the range from which the system chooses, and belongs to the process
//! that took it until that process ends: for each one it holds a socket of a name that only one
//! process can have.

pub mod closed_port;

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::io;
use std::net::{Ipv4Addr, TcpListener, UdpSocket};
use std::ops::Range;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::sync::Mutex;

/// The range from which the system chooses, where it does not say: Linux's own default.
const SYSTEM_RANGE: Range<u32> = 32_768..61_000;

/// The first port that is taken: most servers of a machine are below it.
const FIRST: u32 = 10_000;

/// Fewer than that are no choice.
const COUNT_MIN: u32 = 1000;

/// What shows that a port is taken, for the life of this process.
static TAKEN: Mutex<Vec<UnixDatagram>> = Mutex::new(Vec::new());

/// Takes a port that is free on all addresses, for TCP and UDP, and that no other caller of this
/// function gets while this process runs.
///
/// # Errors
/// All are in use.
pub fn take() -> io::Result<u16> {
    let system = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range");
    let system = system.ok().and_then(|text| parse(&text));
    let range = outside(&system.unwrap_or(SYSTEM_RANGE));
    let count = range.end - range.start;
    // processes that run side by side begin at different places
    let start = RandomState::new().hash_one(std::process::id()) % u64::from(count);
    let start = u32::try_from(start).unwrap_or_default();
    let ports = (0..count).map(|at| range.start + (start + at) % count);
    for port in ports.filter_map(|port| u16::try_from(port).ok()) {
        if let Some(claim) = claim(port) {
            let mut taken = TAKEN.lock().unwrap_or_else(|broken| broken.into_inner());
            taken.push(claim);
            return Ok(port);
        }
    }
    Err(io::ErrorKind::AddrInUse.into())
}

/// The socket that shows that the port is taken, if it was not and nothing is bound to it.
fn claim(port: u16) -> Option<UnixDatagram> {
    let name = SocketAddr::from_abstract_name(format!("weir-port-{port}")).ok()?;
    let claim = UnixDatagram::bind_addr(&name).ok()?;
    let everywhere = (Ipv4Addr::UNSPECIFIED, port);
    let is_free = TcpListener::bind(everywhere).is_ok() && UdpSocket::bind(everywhere).is_ok();
    is_free.then_some(claim)
}

/// The system's range from its two numbers, of which the second belongs to it.
fn parse(text: &str) -> Option<Range<u32>> {
    let mut numbers = text.split_whitespace().map(str::parse::<u32>);
    let (first, last) = (numbers.next()?.ok()?, numbers.next()?.ok()?);
    (first <= last).then_some(first..last + 1)
}

/// Ports from which the system does not choose: below its range, or else above. If it chooses from
/// nearly all, they are of its range.
fn outside(system: &Range<u32>) -> Range<u32> {
    let all = FIRST..u32::from(u16::MAX) + 1;
    let below = all.start..system.start.min(all.end);
    let above = system.end.max(all.start)..all.end;
    let has_enough = |range: &Range<u32>| range.end.saturating_sub(range.start) >= COUNT_MIN;
    [below, above].into_iter().find(has_enough).unwrap_or(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn port_is_given_once_and_is_not_one_that_the_system_chooses() {
        let ports: Vec<u16> = (0..200).map(|_| take().expect("a port")).collect();
        assert_eq!(ports.iter().collect::<BTreeSet<_>>().len(), ports.len());
        let text = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range");
        let system = parse(&text.expect("Linux says it")).expect("two numbers");
        let range = outside(&system);
        if range.end <= system.start || system.end <= range.start {
            let chosen = ports.iter().filter(|&&port| system.contains(&port.into()));
            assert_eq!(chosen.count(), 0);
        }
    }

    #[test]
    fn port_that_is_bound_or_taken_is_passed_over() {
        let port = take().expect("a port");
        assert!(claim(port).is_none(), "taken");
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let bound = listener.local_addr().expect("an address").port();
        assert!(claim(bound).is_none(), "bound");
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let bound = socket.local_addr().expect("an address").port();
        assert!(claim(bound).is_none(), "bound for UDP");
    }

    #[test]
    fn ports_are_below_the_range_of_the_system_or_else_above() {
        let check = |text: &str, expected: Range<u32>| {
            let system = parse(text).expect("two numbers");
            assert_eq!(outside(&system), expected, "{text}");
        };
        check("32768\t60999\n", 10_000..32_768);
        check("11000 60999", 10_000..11_000);
        check("10999 60999", 61_000..65_536);
        check("1024 60999", 61_000..65_536);
        check("1024 65535", 10_000..65_536);
        assert_eq!(parse("5 4"), None);
        assert_eq!(parse("32768"), None);
    }
}
