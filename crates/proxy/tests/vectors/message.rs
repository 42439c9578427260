//! Reading one HTTP/1.1 message the plain way, so that the proxy's own parser is not its own judge.

use std::io::Read;

/// A message taken apart.
#[derive(Debug, Default)]
pub(crate) struct Message {
    /// Request line or status line.
    pub(crate) first_line: String,
    pub(crate) fields: Vec<(String, String)>,
    /// What follows the head.
    pub(crate) rest: Vec<u8>,
}

impl Message {
    /// Takes bytes apart; `None` if the head is not whole.
    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        let end = bytes.windows(4).position(|window| window == b"\r\n\r\n")?;
        let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
        let mut lines = head.split("\r\n");
        let first_line = lines.next()?.to_owned();
        let fields = lines.map(|line| {
            let (name, value) = line.split_once(':').expect("a field line has a colon");
            (name.to_owned(), value.trim().to_owned())
        });
        Some(Self {
            first_line,
            fields: fields.collect(),
            rest: bytes[end + 4..].to_vec(),
        })
    }

    /// The value of the last line with this name.
    pub(crate) fn value(&self, name: &str) -> Option<&str> {
        let mut lines = self.fields.iter().rev();
        lines
            .find(|line| line.0.eq_ignore_ascii_case(name))
            .map(|line| line.1.as_str())
    }

    /// What Content-Length says.
    pub(crate) fn content_length(&self) -> Option<usize> {
        self.value("content-length")
            .map(|length| length.parse().expect("a length is a number"))
    }

    /// The content, decoded, and whether it is whole.
    pub(crate) fn content(&self) -> (Vec<u8>, bool) {
        if self.value("transfer-encoding").is_some() {
            return decode_chunks(&self.rest);
        }
        let is_whole = self
            .content_length()
            .is_none_or(|length| length == self.rest.len());
        (self.rest.clone(), is_whole)
    }
}

/// Reads until there is a whole head and as much content as it announces by length; `None` if the
/// peer closes before.
pub(crate) fn read_request(stream: &mut impl Read) -> Option<Message> {
    let mut bytes = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        if let Some(message) = Message::parse(&bytes)
            && message.rest.len() >= message.content_length().unwrap_or(0)
        {
            return Some(message);
        }
        match stream.read(&mut buffer) {
            Ok(0) | Err(_) => return None,
            Ok(count) => bytes.extend_from_slice(&buffer[..count]),
        }
    }
}

fn decode_chunks(mut rest: &[u8]) -> (Vec<u8>, bool) {
    let mut content = Vec::new();
    loop {
        let Some(end) = rest.windows(2).position(|window| window == b"\r\n") else {
            return (content, false);
        };
        let size = std::str::from_utf8(&rest[..end]).expect("a chunk size is text");
        let size = usize::from_str_radix(size, 16).expect("a chunk size is a hexadecimal number");
        let data = &rest[end + 2..];
        if size == 0 {
            return (content, data.starts_with(b"\r\n"));
        }
        let Some((data, after)) = data.split_at_checked(size) else {
            return (content, false);
        };
        content.extend_from_slice(data);
        rest = after.strip_prefix(b"\r\n").unwrap_or(&[]);
    }
}
