//! The kernel's measurements of a TCP connection.

use super::socket::{SocketOption, bytes_out, read_option};
use std::os::fd::AsFd;

/// A part of `struct tcp_info` (linux/tcp.h). Fields that an older kernel does not report are zero,
/// or `None` where zero would mislead.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpInfo {
    /// The connection is over: its client has reset it, or was given up.
    pub is_closed: bool,
    /// The smoothed round trip, microseconds.
    pub rtt_us: u32,
    /// The least round trip seen lately, microseconds.
    pub min_rtt_us: u32,
    /// Segments sent and not acknowledged.
    pub unacked: u32,
    /// The largest segment we have offered to take, bytes.
    pub segment_max: u32,
    /// Bytes the peer has acknowledged since the connection was opened.
    pub bytes_acked: u64,
    /// Bytes received and acknowledged since the connection was opened.
    pub bytes_received: u64,
    /// Bytes written and not yet sent.
    pub notsent_bytes: u32,
    /// The rate at which the peer acknowledged lately, bytes a second.
    pub delivery_rate_bytes_s: u64,
    /// The receive window that was last announced to the peer, bytes. Linux 6.2.
    pub receive_window: Option<u32>,
}

/// The state of a connection that is over (net/tcp_states.h).
const TCP_CLOSE: u8 = 7;

/// Room for the structure of any kernel so far: Linux 6.18 has 248 bytes, and what is beyond is not
/// used.
const ROOM_BYTES: usize = 256;

/// The kernel's measurements of a TCP socket; `None` if it is no TCP socket, or the kernel is older
/// than 2013.
pub fn tcp_info(socket: &impl AsFd) -> Option<TcpInfo> {
    let mut room = [0; ROOM_BYTES];
    let length = read_option(socket.as_fd(), SocketOption::TCP_INFO, &mut room).ok()?;
    parse(&room[..length])
}

/// Bytes written to a socket that its peer has not acknowledged, sent or not; `None` if it is no
/// connection.
pub fn unacknowledged_bytes(socket: &impl AsFd) -> Option<u32> {
    bytes_out(socket.as_fd()).ok()
}

/// The fields by their places, which never change: the structure only grows.
fn parse(bytes: &[u8]) -> Option<TcpInfo> {
    let four = |at: usize| Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?));
    let eight = |at: usize| Some(u64::from_ne_bytes(*bytes.get(at..)?.first_chunk()?));
    Some(TcpInfo {
        is_closed: bytes.first().is_some_and(|state| *state == TCP_CLOSE),
        unacked: four(24)?,
        rtt_us: four(68)?,
        segment_max: four(84)?,
        bytes_acked: eight(120).unwrap_or(0),
        bytes_received: eight(128).unwrap_or(0),
        notsent_bytes: four(144).unwrap_or(0),
        min_rtt_us: four(148).unwrap_or(0),
        delivery_rate_bytes_s: eight(160).unwrap_or(0),
        receive_window: four(232),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn shorter_tcp_info_of_older_kernels_is_read_within_its_length() {
        let mut bytes = [0_u8; 248];
        bytes[68] = 7;
        bytes[120] = 9;
        bytes[232] = 5;
        let whole = parse(&bytes).unwrap();
        assert_eq!(
            (whole.rtt_us, whole.bytes_acked, whole.receive_window),
            (7, 9, Some(5))
        );
        let older = parse(&bytes[..232]).unwrap();
        assert_eq!((older.bytes_acked, older.receive_window), (9, None));
        let oldest = parse(&bytes[..104]).unwrap();
        assert_eq!((oldest.rtt_us, oldest.bytes_acked), (7, 0));
        assert_eq!(parse(&bytes[..80]), None);
    }

    #[test]
    fn acknowledged_and_outstanding_bytes_match_the_traffic() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        let before = tcp_info(&server).unwrap().bytes_acked;
        server.write_all(b"12345").unwrap();
        client.read_exact(&mut [0; 5]).unwrap();
        // one byte back acknowledges the five for certain
        client.write_all(b"x").unwrap();
        server.read_exact(&mut [0; 1]).unwrap();
        let info = tcp_info(&server).unwrap();
        assert_eq!(info.bytes_acked - before, 5);
        assert_eq!((info.notsent_bytes, info.unacked), (0, 0));
        assert_eq!(unacknowledged_bytes(&server), Some(0));
        assert!(info.segment_max > 500);
        let no_connection = std::fs::File::open("/dev/null").unwrap();
        assert_eq!(tcp_info(&no_connection), None);
        assert_eq!(unacknowledged_bytes(&listener), None);
    }
}
