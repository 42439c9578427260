//! Bytes that are known by their place.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// How long a test waits for what must happen.
pub(crate) const WAIT_MAX: Duration = Duration::from_secs(30);

/// The byte at `place`: no shift by fewer than 64 KiB looks the same.
pub(crate) fn byte(place: usize) -> u8 {
    u8::try_from((place * 31 + place / 251 + place / 65_537) % 256).expect("a byte")
}

pub(crate) fn bytes(places: std::ops::Range<usize>) -> Vec<u8> {
    places.map(byte).collect()
}

/// Reads `count` bytes, which must be those from `place` on.
pub(crate) fn expect(mut stream: &TcpStream, place: usize, count: usize) {
    stream.set_nonblocking(false).expect("a socket");
    stream.set_read_timeout(Some(WAIT_MAX)).expect("a socket");
    let mut received = vec![0; count];
    stream.read_exact(&mut received).expect("all the bytes");
    compare(&received, place);
}

/// They must be those from `place` on.
pub(crate) fn compare(received: &[u8], place: usize) {
    let wrong = received
        .iter()
        .zip(place..)
        .find(|(got, at)| **got != byte(*at));
    assert_eq!(wrong.map(|(_, at)| at), None, "the first wrong byte");
}

/// Writes the bytes at these places, without waiting for the peer to take them.
pub(crate) fn write(mut stream: &TcpStream, places: std::ops::Range<usize>) {
    stream.set_nonblocking(true).expect("a socket");
    let bytes = bytes(places);
    let mut rest = &bytes[..];
    wait_until("the bytes are written", || {
        match stream.write(rest) {
            Ok(count) => rest = &rest[count..],
            Err(error) => assert_eq!(error.kind(), io::ErrorKind::WouldBlock),
        }
        rest.is_empty()
    });
}

/// Waits for a state that must come.
pub(crate) fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < WAIT_MAX, "waited for: {what}");
        std::thread::yield_now();
    }
}
