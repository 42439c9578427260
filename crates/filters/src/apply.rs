//! Heads as filters see them, and the changes that filters make to them.
//!
//! Filters expect the pseudo-header fields of HTTP/2 and names in lower case. A change is carried
//! out by the methods of the head, which refuse what the proxy writes itself: such a change is left
//! out and noted, because filters remove Content-Length as a habit. What could end a line, or has
//! no room, fails the message.

use crate::setup::Counts;
use std::collections::BTreeSet;
use weir_extend::{FieldError, Fields, HeadFields, RequestHead, ResponseHead};
use weir_wasm::{PAIRS_BYTES_MAX, PAIRS_MAX, Pairs, PairsError};

/// Fields and bytes that a filter has room for beside a head that was received: without room a
/// filter fails, and the size of a head is the client's choice.
const ROOM: (usize, usize) = (64, 8 * 1024);

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
    pairs.add(b":authority", head.authority().as_bytes())?;
    pairs.add(b":path", head.path_and_query().as_bytes())?;
    pairs.add(b":method", head.method().as_bytes())?;
    pairs.add(b":scheme", b"http")?;
    put_fields(&head.fields, pairs)
}

/// Puts the head of a response into `pairs`, which are empty, as a filter sees it.
pub(crate) fn put_response(head: &ResponseHead<'_>, pairs: &mut Pairs) -> Result<(), Refused> {
    pairs.add(b":status", &digits(head.status()))?;
    put_fields(&head.fields, pairs)
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

/// Changes the head of a request to what a filter has made of `before`.
pub(crate) fn apply_to_request(
    head: &mut RequestHead<'_>,
    before: &Pairs,
    after: &Pairs,
    counts: &Counts,
) -> Result<(), Refused> {
    if before == after {
        return Ok(());
    }
    let changed = |name: &[u8]| {
        after
            .get(name)
            .filter(|value| before.get(name) != Some(value))
    };
    let text = |value| str::from_utf8(value).map_err(|_| Refused);
    if let Some(path) = changed(b":path") {
        head.set_path_and_query(text(path)?).map_err(|_| Refused)?;
    }
    if let Some(authority) = changed(b":authority").or(changed(b"host")) {
        head.set_authority(text(authority)?).map_err(|_| Refused)?;
    }
    if changed(b":method").is_some() {
        counts.note_reserved(":method");
    }
    apply_to_fields(&mut head.fields, before, after, counts)
}

/// Changes the head of a response to what a filter has made of `before`.
pub(crate) fn apply_to_response(
    head: &mut ResponseHead<'_>,
    before: &Pairs,
    after: &Pairs,
    may_change_status: bool,
    counts: &Counts,
) -> Result<(), Refused> {
    if before == after {
        return Ok(());
    }
    let status = after
        .get(b":status")
        .filter(|status| before.get(b":status") != Some(status));
    if let Some(status) = status {
        let status = str::from_utf8(status)
            .ok()
            .and_then(|text| text.parse().ok());
        let status: u16 = status.ok_or(Refused)?;
        if may_change_status {
            head.set_status(status).map_err(|_| Refused)?;
        } else {
            counts.note_reserved(":status");
        }
    }
    apply_to_fields(&mut head.fields, before, after, counts)
}

fn apply_to_fields(
    fields: &mut Fields,
    before: &Pairs,
    after: &Pairs,
    counts: &Counts,
) -> Result<(), Refused> {
    let names = before.iter().chain(after.iter());
    let names = names.map(|(name, _)| name.to_ascii_lowercase());
    let names: BTreeSet<Vec<u8>> = names.filter(|name| !is_target(name)).collect();
    for name in names {
        let [old, new] = [before, after].map(|pairs| values(pairs, &name));
        if old == new {
            continue;
        }
        let name = str::from_utf8(&name).map_err(|_| Refused)?;
        match set(fields, name, &new) {
            Ok(()) => {}
            Err(FieldError::Reserved) => counts.note_reserved(name),
            Err(_) => return Err(Refused),
        }
    }
    Ok(())
}

/// Names that stand for the target, the method or the status.
fn is_target(name: &[u8]) -> bool {
    name.starts_with(b":") || name == b"host"
}

fn values<'p>(pairs: &'p Pairs, name: &[u8]) -> Vec<&'p [u8]> {
    let found = pairs
        .iter()
        .filter(|pair| pair.0.eq_ignore_ascii_case(name));
    found.map(|pair| pair.1.trim_ascii()).collect()
}

fn set(fields: &mut Fields, name: &str, values: &[&[u8]]) -> Result<(), FieldError> {
    match values {
        [] => fields.remove(name).map(drop),
        [value] => fields.set(name, value),
        values => {
            fields.remove(name)?;
            values.iter().try_for_each(|value| fields.add(name, value))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request_pairs(head: &RequestHead<'_>) -> Result<Pairs, Refused> {
        let mut pairs = Pairs::new();
        put_request(head, &mut pairs).map(|()| pairs)
    }

    fn response_pairs(head: &ResponseHead<'_>) -> Result<Pairs, Refused> {
        let mut pairs = Pairs::new();
        put_response(head, &mut pairs).map(|()| pairs)
    }

    fn request() -> RequestHead<'static> {
        let lines: [(&str, &[u8]); 4] = [
            ("Host", b"a.example"),
            ("X-A", b"1"),
            ("x-a", b"2"),
            ("Content-Length", b"3"),
        ];
        RequestHead::new("GET", "a.example", "/x?y", Fields::received(lines))
    }

    fn change(change: impl FnOnce(&mut Pairs)) -> (RequestHead<'static>, Result<(), Refused>) {
        let mut head = request();
        let before = request_pairs(&head).expect("it fits");
        let mut after = before.clone();
        change(&mut after);
        let applied = apply_to_request(&mut head, &before, &after, &Counts::default());
        (head, applied)
    }

    #[test]
    fn request_has_pseudo_fields_and_lower_case_names_and_no_host() {
        let pairs = request_pairs(&request()).expect("it fits");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let lines: Vec<_> = pairs
            .iter()
            .map(|(name, value)| format!("{}={}", text(name), text(value)))
            .collect();
        assert_eq!(
            lines.join(" "),
            ":authority=a.example :path=/x?y :method=GET :scheme=http x-a=1 x-a=2 content-length=3"
        );
    }

    #[test]
    fn unchanged_map_leaves_the_head_untouched() {
        let (head, applied) = change(|_| {});
        assert_eq!(applied, Ok(()));
        assert!(!head.is_changed());
    }

    #[test]
    fn changed_map_changes_target_and_fields_and_nothing_else() {
        let (head, applied) = change(|pairs| {
            pairs.replace(b":path", b"/z").expect("room");
            pairs.replace(b":authority", b"b.example").expect("room");
            pairs.replace(b"X-A", b" 3 ").expect("room");
            pairs.add(b"x-new", b"n").expect("room");
            pairs.remove(b"content-length");
        });
        assert_eq!(applied, Ok(()));
        assert_eq!(
            (head.authority(), head.path_and_query()),
            ("b.example", "/z")
        );
        let lines: Vec<_> = head.fields.iter().collect();
        let expected: [(&str, &[u8]); 4] = [
            ("Host", b"a.example"),
            ("X-A", b"3"),
            ("Content-Length", b"3"),
            ("x-new", b"n"),
        ];
        assert_eq!(lines, expected);
    }

    #[test]
    fn what_could_end_a_line_fails_the_message() {
        for (name, value) in [
            (&b"x-a"[..], &b"1\r\nX: 2"[..]),
            (b"x a", b"1"),
            (b"x\xff", b"1"),
            (b":path", b"x"),
            (b":path", b"/ x"),
            (b":authority", b"a/b"),
        ] {
            let (_, applied) = change(|pairs| pairs.replace(name, value).expect("room"));
            assert_eq!(applied, Err(Refused), "{name:?}");
        }
    }

    #[test]
    fn reserved_fields_are_left_as_they_are_and_noted() {
        let mut head = request();
        let before = request_pairs(&head).expect("it fits");
        let mut after = before.clone();
        after.replace(b"content-length", b"9").expect("room");
        after
            .replace(b"transfer-encoding", b"chunked")
            .expect("room");
        after.replace(b":method", b"PUT").expect("room");
        let counts = Counts::default();
        assert_eq!(
            apply_to_request(&mut head, &before, &after, &counts),
            Ok(())
        );
        assert!(!head.is_changed());
        assert!(counts.notes()[0].starts_with("3 changes"));
    }

    #[test]
    fn head_without_room_for_a_filter_is_refused_before_it_is_called() {
        let long = "v".repeat(PAIRS_BYTES_MAX - ROOM.1);
        let fields = Fields::received([("x", long.as_bytes())]);
        let head = RequestHead::new("GET", "a", "/", fields);
        assert_eq!(request_pairs(&head), Err(Refused));
        let many: Vec<String> = (0..PAIRS_MAX - ROOM.0).map(|at| format!("x{at}")).collect();
        let fields = Fields::received(many.iter().map(|name| (name.as_str(), &b"1"[..])));
        let head = RequestHead::new("GET", "a", "/", fields);
        assert_eq!(request_pairs(&head), Err(Refused));
    }

    #[test]
    fn status_changes_only_where_it_may() {
        for (may, expected) in [(true, 403), (false, 200)] {
            let mut head = ResponseHead::new(200, Fields::default());
            let before = response_pairs(&head).expect("it fits");
            let mut after = before.clone();
            after.replace(b":status", b"403").expect("room");
            let counts = Counts::default();
            let applied = apply_to_response(&mut head, &before, &after, may, &counts);
            assert_eq!((applied, head.status()), (Ok(()), expected));
        }
    }
}
