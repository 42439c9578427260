//! A head that arrives in pieces.

use crate::head::HeadLimits;

/// Says when a head that arrives in pieces is worth reading again.
///
/// [`parse_request`](crate::parse_request) reads from the beginning each time. A peer that sends a
/// 64 KiB head one byte at a time would so have two thousand million bytes read. With this, a head
/// is read again only when its end seems to be there, when it has doubled since the last reading
/// (so that a fault is noticed before the end), or when it is as long as it may be: the readings
/// together cost at most about four times the bytes of the head.
#[derive(Clone, Copy, Debug, Default)]
pub struct Arrival {
    /// How long the text was when it was last found worth reading.
    read_bytes: usize,
    /// How much of the text was searched for the end of a head.
    searched_bytes: usize,
}

impl Arrival {
    /// For a head of which nothing has arrived.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            read_bytes: 0,
            searched_bytes: 0,
        }
    }

    /// Is it worth reading the head again? `buf` is all that has arrived: what it was at the last
    /// call, and more.
    ///
    /// Always true when `buf` holds a whole head that was not there at the last call.
    pub fn is_worth_reading(&mut self, buf: &[u8], limits: &HeadLimits) -> bool {
        // an end that straddles two pieces begins at most two bytes before the new one: LF CR | LF
        let from = self.searched_bytes.min(buf.len()).saturating_sub(2);
        self.searched_bytes = buf.len();
        let doubled = buf.len() / 2 >= self.read_bytes;
        if doubled || buf.len() >= limits.bytes_max || has_end(&buf[from..]) {
            self.read_bytes = buf.len();
            return true;
        }
        false
    }
}

/// Does an empty line stand after a line? A bare line feed counts: it makes the head faulty, which
/// is worth knowing.
fn has_end(bytes: &[u8]) -> bool {
    memchr::memchr_iter(b'\n', bytes)
        .any(|at| matches!(bytes[at + 1..], [b'\n', ..] | [b'\r', b'\n', ..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Feeds `text` in pieces of `piece` bytes; returns how many bytes were read in all, and the
    /// lengths at which.
    fn check(text: &[u8], piece: usize, limits: &HeadLimits) -> (usize, Vec<usize>) {
        let mut arrival = Arrival::new();
        let mut lengths = Vec::new();
        let mut length = 0;
        while length < text.len() {
            length = (length + piece).min(text.len());
            if arrival.is_worth_reading(&text[..length], limits) {
                lengths.push(length);
            }
        }
        (lengths.iter().sum(), lengths)
    }

    #[test]
    fn end_of_head_is_found_wherever_the_input_is_split() {
        let text = b"GET / HTTP/1.1\r\nHost: example\r\nAccept: */*\r\n\r\n";
        for piece in 1..=text.len() {
            let (_, lengths) = check(text, piece, &HeadLimits::default());
            assert_eq!(lengths.last(), Some(&text.len()), "pieces of {piece}");
        }
    }

    #[test]
    fn head_received_byte_by_byte_is_read_at_linear_cost() {
        let mut text = b"GET / HTTP/1.1\r\n".to_vec();
        while text.len() < 65_000 {
            text.extend_from_slice(b"A: b\r\n");
        }
        text.extend_from_slice(b"\r\n");
        let (cost, lengths) = check(&text, 1, &HeadLimits::default());
        assert!(
            cost <= 4 * text.len(),
            "{cost} bytes read for a head of {}",
            text.len()
        );
        assert_eq!(lengths.last(), Some(&text.len()));
    }

    #[test]
    fn head_is_read_once_it_reaches_the_size_limit() {
        let limits = HeadLimits {
            bytes_max: 100,
            ..HeadLimits::default()
        };
        let (_, lengths) = check(&[b'a'; 100], 1, &limits);
        assert_eq!(lengths.last(), Some(&100));
        assert!(!lengths.contains(&99));
    }

    #[test]
    fn head_received_in_one_piece_is_read_once() {
        assert_eq!(
            check(b"GET / HTTP/1.1\r\n\r\n", 100, &HeadLimits::default()).1,
            [18]
        );
    }
}
