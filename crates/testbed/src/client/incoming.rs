//! A response as it arrives at a client: head, then content of which every byte is checked.

use super::content::Content;
use crate::client::get::field;

const HEAD_MAX: usize = 64 * 1024;

/// What has arrived of one response.
#[derive(Debug)]
pub(crate) struct Incoming {
    content: Content,
    size_bytes: u64,
    /// Until it is whole.
    head: Vec<u8>,
    has_head: bool,
    read_bytes: u64,
}

impl Incoming {
    /// The response to a request for the whole of `target`, which is so long.
    pub(crate) fn new(target: &str, size_bytes: u64) -> Self {
        Self {
            content: Content::of(target),
            size_bytes,
            head: Vec::new(),
            has_head: false,
            read_bytes: 0,
        }
    }

    /// Content that arrived.
    pub(crate) fn read_bytes(&self) -> u64 {
        self.read_bytes
    }

    pub(crate) fn is_whole(&self) -> bool {
        self.has_head && self.read_bytes == self.size_bytes
    }

    /// Takes what was read from the connection.
    ///
    /// # Errors
    /// Says what is wrong with the response; it cannot be gone on with.
    pub(crate) fn take(&mut self, bytes: &[u8]) -> Result<(), String> {
        if self.has_head {
            return self.take_content(bytes);
        }
        self.head.extend_from_slice(bytes);
        let end = self.head.windows(4).position(|four| four == b"\r\n\r\n");
        let Some(end) = end else {
            return if self.head.len() > HEAD_MAX {
                Err("a head without an end".to_owned())
            } else {
                Ok(())
            };
        };
        let rest = self.head.split_off(end + 4);
        let head = std::mem::take(&mut self.head);
        self.check_head(&String::from_utf8_lossy(&head))?;
        self.has_head = true;
        self.take_content(&rest)
    }

    fn check_head(&self, head: &str) -> Result<(), String> {
        let status = head.split([' ', '\r']).nth(1).unwrap_or_default();
        if status != "200" {
            return Err(format!("status {status}"));
        }
        let length = field(head, "content-length");
        if length.and_then(|length| length.parse().ok()) != Some(self.size_bytes) {
            return Err(match length {
                Some(length) => format!("a Content-Length of {length}"),
                None => "no Content-Length".to_owned(),
            });
        }
        Ok(())
    }

    fn take_content(&mut self, bytes: &[u8]) -> Result<(), String> {
        if bytes.len() as u64 > self.size_bytes - self.read_bytes {
            return Err("more content than there is".to_owned());
        }
        if !self.content.is_at(self.read_bytes, bytes) {
            return Err(format!(
                "wrong bytes within {} of {}",
                bytes.len(),
                self.read_bytes
            ));
        }
        self.read_bytes += bytes.len() as u64;
        Ok(())
    }
}

/// A request for the whole of `target`.
pub(crate) fn request(target: &str) -> String {
    format!("GET {target} HTTP/1.1\r\nHost: origin.example\r\n\r\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    const TARGET: &str = "/a?size=10000";

    fn response(status_line: &str, length: &str, content_of: &str) -> Vec<u8> {
        let mut bytes =
            format!("HTTP/1.1 {status_line}\r\nContent-Length: {length}\r\n\r\n").into_bytes();
        let head_bytes = bytes.len();
        bytes.resize(head_bytes + 10_000, 0);
        Content::of(content_of).fill(0, &mut bytes[head_bytes..]);
        bytes
    }

    /// The same whole and in pieces of seven bytes.
    fn check(response: &[u8], expected: Result<u64, &str>) {
        for piece in [response.len(), 7] {
            let mut incoming = Incoming::new(TARGET, 10_000);
            let taken = response
                .chunks(piece)
                .try_for_each(|part| incoming.take(part));
            match (taken, expected) {
                (Ok(()), Ok(bytes)) => assert_eq!(incoming.read_bytes(), bytes),
                (Err(said), Err(part)) => assert!(said.contains(part), "{said}"),
                (taken, expected) => panic!("{taken:?} instead of {expected:?}"),
            }
            assert_eq!(incoming.is_whole(), expected == Ok(10_000));
        }
    }

    #[test]
    fn matching_response_is_whole_only_at_its_last_byte() {
        let right = response("200 OK", "10000", TARGET);
        check(&right, Ok(10_000));
        check(&right[..right.len() - 1], Ok(9999));
        check(&right[..10], Ok(0));
    }

    #[test]
    fn response_with_wrong_status_length_or_content_is_refused() {
        check(
            &response("503 Service Unavailable", "10000", TARGET),
            Err("status 503"),
        );
        check(&response("200 OK", "9999", TARGET), Err("Content-Length"));
        check(
            &response("200 OK", "10000", "/b?size=10000"),
            Err("wrong bytes"),
        );
        let mut longer = response("200 OK", "10000", TARGET);
        longer.push(0);
        check(&longer, Err("more content"));
        let mut changed = response("200 OK", "10000", TARGET);
        changed[5000] ^= 1;
        check(&changed, Err("wrong bytes"));
    }
}
