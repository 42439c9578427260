//! What a lying proxy does to a response.

use super::exchange::Reply;

/// A fault of a proxy. `None` is a correct proxy without a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// No fault: the response of the origin.
    None,
    /// The byte at this offset is another one; a shorter response is left as it is.
    WrongByte {
        /// From the beginning of the content.
        offset: usize,
    },
    /// So many bytes are missing at the end, and `Content-Length` says so.
    ShortFramed {
        /// Bytes; less are missing if there are less.
        missing: usize,
    },
    /// So many bytes are missing at the end, and the connection is closed instead.
    ShortClosed {
        /// Bytes; less are missing if there are less.
        missing: usize,
    },
    /// So many bytes are added at the end, and `Content-Length` says so.
    Long {
        /// Bytes, all of them `x`.
        added: usize,
    },
    /// `Content-Length` says so many bytes less (or more) than are sent; then the connection is
    /// closed.
    WrongLength {
        /// Bytes.
        by: i64,
    },
    /// The first response to a target is stored, and sent for ever: honest as long as the target
    /// does not change.
    Stale,
    /// The response to another target, the one before.
    Swapped,
    /// This status in place of the origin's; the content is dropped with 204 and 304.
    Status(u16),
    /// `Cache-Status` claims a hit.
    FalseHit,
    /// The head is no HTTP.
    Unreadable,
}

/// What is sent to the client, and whether the connection ends behind it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FaultyReply {
    pub(crate) bytes: Vec<u8>,
    pub(crate) ends: bool,
    /// Does it differ from a correct proxy's response?
    pub(crate) is_faulty: bool,
}

impl Fault {
    /// The response as it is sent; `is_head`: to a HEAD request.
    pub(crate) fn tell(self, mut reply: Reply, is_head: bool) -> FaultyReply {
        let length = if is_head {
            reply
                .field("content-length")
                .and_then(|text| text.parse().ok())
        } else {
            Some(reply.content.len())
        };
        let mut declared = length.unwrap_or_default();
        let (mut ends, mut is_faulty) = (false, self != Self::None && self != Self::Stale);
        match self {
            Self::None | Self::Stale | Self::Swapped => {}
            Self::WrongByte { offset } => match reply.content.get_mut(offset) {
                Some(byte) => *byte ^= 0x20,
                None => is_faulty = false,
            },
            Self::ShortFramed { missing } => {
                declared = declared.saturating_sub(missing);
                reply.content.truncate(declared);
            }
            Self::ShortClosed { missing } => {
                reply.content.truncate(declared.saturating_sub(missing));
                ends = true;
            }
            Self::Long { added } => {
                declared += added;
                reply.content.resize(declared, b'x');
            }
            Self::WrongLength { by } => {
                declared = declared.saturating_add_signed(isize::try_from(by).expect("a length"));
                ends = true;
            }
            Self::Status(status) => {
                reply.status = status;
                if status == 304 || status == 204 {
                    reply.content.clear();
                }
            }
            Self::FalseHit => {
                let claim = "faulty_proxy;hit;ttl=60".to_owned();
                reply.fields.push(("Cache-Status".to_owned(), claim));
            }
            Self::Unreadable => {
                return FaultyReply {
                    bytes: b"HTTP/1.1 two hundred\r\nA B: c\r\n\r\n".to_vec(),
                    ends: true,
                    is_faulty,
                };
            }
        }
        FaultyReply {
            bytes: written(&reply, declared),
            ends,
            is_faulty,
        }
    }
}

fn written(reply: &Reply, declared: usize) -> Vec<u8> {
    let mut head = format!("HTTP/1.1 {} FaultyReply\r\n", reply.status);
    for (name, value) in &reply.fields {
        if !["content-length", "connection", "keep-alive"]
            .iter()
            .any(|own| name.eq_ignore_ascii_case(own))
        {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
    }
    if reply.status != 304 && reply.status != 204 {
        head.push_str(&format!("Content-Length: {declared}\r\n"));
    }
    head.push_str("Via: 1.1 faulty_proxy\r\n\r\n");
    let mut bytes = head.into_bytes();
    bytes.extend_from_slice(&reply.content);
    bytes
}
