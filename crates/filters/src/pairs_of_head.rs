//! Heads as filters see them: with the pseudo-header fields of HTTP/2, and names in lower case.

use weir_extend::{HeadFields, RequestHead};
use weir_wasm::{PAIRS_BYTES_MAX, PAIRS_MAX, Pairs, PairsError};

/// Fields and bytes that a filter has room for beside a head that was received: without room a
/// filter fails, and the size of a head is the client's choice.
pub(crate) const ROOM: (usize, usize) = (64, 8 * 1024);

/// The head has no room for changes, or a change cannot be carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Refused;

impl From<PairsError> for Refused {
    fn from(_: PairsError) -> Self {
        Self
    }
}

/// Puts the head of a request into `pairs`, which are empty, as a filter sees it.
pub(crate) fn put_request(head: &RequestHead<'_>, pairs: &mut Pairs) -> Result<(), Refused> {
    match head.host_and_port() {
        (host, None) => pairs.add(b":authority", host)?,
        (host, Some(port)) => {
            let digits = port_digits(port);
            let zeros = digits[..4].iter().take_while(|digit| **digit == b'0');
            let zeros = zeros.count();
            // what is before the port is `:`
            let mut text = [b':'; 6];
            text[1..].copy_from_slice(&digits);
            text[zeros] = b':';
            pairs.add_joined(b":authority", [host, &text[zeros..]])?;
        }
    }
    pairs.add(b":path", head.path_and_query().as_bytes())?;
    pairs.add(b":method", head.method().as_bytes())?;
    pairs.add(b":scheme", b"http")?;
    put_fields(&head.fields, pairs)
}

/// The head of a response as a filter sees it.
pub(crate) fn put_response_fields(
    status: u16,
    fields: &HeadFields<'_>,
    pairs: &mut Pairs,
) -> Result<(), Refused> {
    pairs.add(b":status", &digits(status))?;
    put_fields(fields, pairs)
}

/// A port, with leading zeros.
fn port_digits(port: u16) -> [u8; 5] {
    [10_000, 1000, 100, 10, 1].map(|unit| b'0' + (port / unit % 10) as u8)
}

/// A status code, which has three digits.
fn digits(status: u16) -> [u8; 3] {
    // the remainder is one digit
    [status / 100, status / 10, status].map(|it| b'0' + (it % 10) as u8)
}

fn put_fields(fields: &HeadFields<'_>, pairs: &mut Pairs) -> Result<(), Refused> {
    for (name, value) in fields {
        // `:authority` is Host
        if !name.eq_ignore_ascii_case("host") {
            pairs.add_in_lower_case(name.as_bytes(), value)?;
        }
    }
    let has_room =
        pairs.len() + ROOM.0 <= PAIRS_MAX && pairs.encoded_len() + ROOM.1 <= PAIRS_BYTES_MAX;
    if has_room { Ok(()) } else { Err(Refused) }
}
