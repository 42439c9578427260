//! The changes that filters make to heads.
//!
//! A change is carried out by the methods of the head, which refuse what the proxy writes itself:
//! such a change is left out and noted, because filters remove Content-Length as a habit. What
//! could end a line, or has no room, fails the message.

use crate::guest::message_fields::{Change, MessageFields, UNREAD_BYTES_MAX, UNREAD_LINES_MAX};
use crate::pairs_of_head::{Refused, put_request, put_response_fields};
use crate::setup::Counts;
use memchr::memchr_iter;
use std::collections::BTreeSet;
use weir_extend::{FieldError, Fields, HeadFields, RequestHead, ResponseHead};
use weir_wasm::Pairs;

/// A head that a filter is called for.
pub(crate) trait FilterHead {
    /// Puts it into `fields`, as a filter sees it.
    ///
    /// # Errors
    ///
    /// It has no room for changes.
    fn put(&self, fields: &mut MessageFields) -> Result<(), Refused>;

    /// Changes it to what a filter has made of it.
    ///
    /// # Errors
    ///
    /// That cannot be carried out.
    fn apply(&mut self, change: Change<'_>, counts: &Counts) -> Result<(), Refused>;
}

impl FilterHead for RequestHead<'_> {
    fn put(&self, fields: &mut MessageFields) -> Result<(), Refused> {
        put_request(self, fields.begin())
    }

    fn apply(&mut self, change: Change<'_>, counts: &Counts) -> Result<(), Refused> {
        match change {
            Change::None => Ok(()),
            Change::Added(added) => {
                // `:authority` is Host, and there was none beside it
                if let Some(host) = added.get(b"host") {
                    let host = str::from_utf8(host).map_err(|_| Refused)?;
                    self.set_authority(host).map_err(|_| Refused)?;
                }
                add_fields(&mut self.fields, added, counts)
            }
            Change::Made(before, after) => apply_to_request(self, before, after, counts),
        }
    }
}

/// The head of a response, and whether its status may be changed.
pub(crate) struct FilterResponse<'r, 'h> {
    pub(crate) head: &'r mut ResponseHead<'h>,
    pub(crate) may_change_status: bool,
}

impl FilterHead for FilterResponse<'_, '_> {
    fn put(&self, fields: &mut MessageFields) -> Result<(), Refused> {
        let status = self.head.status();
        if let Some(section) = self.head.fields.section()
            && section.len() <= UNREAD_BYTES_MAX
        {
            let lines = memchr_iter(b'\n', section).count();
            if lines <= UNREAD_LINES_MAX {
                fields.keep(status, section, lines);
                return Ok(());
            }
        }
        put_response_fields(status, &self.head.fields, fields.begin())
    }

    fn apply(&mut self, change: Change<'_>, counts: &Counts) -> Result<(), Refused> {
        match change {
            Change::None => Ok(()),
            Change::Added(added) => add_fields(&mut self.head.fields, added, counts),
            Change::Made(before, after) => {
                let may = self.may_change_status;
                apply_to_response(self.head, before, after, may, counts)
            }
        }
    }
}

/// The head of a request that a filter was given before: it has gone, and is not changed.
pub(crate) struct FormerHead(pub(crate) Pairs);

impl FilterHead for FormerHead {
    fn put(&self, fields: &mut MessageFields) -> Result<(), Refused> {
        self.0.clone_into(fields.begin());
        Ok(())
    }

    fn apply(&mut self, _: Change<'_>, _: &Counts) -> Result<(), Refused> {
        Ok(())
    }
}

/// Adds the fields that a filter has added: those that stand for the target, the method or the
/// status are not the first of their name, or none of a head.
fn add_fields(fields: &mut HeadFields<'_>, added: &Pairs, counts: &Counts) -> Result<(), Refused> {
    for (name, value) in added.iter().filter(|field| !is_target(field.0)) {
        let name = str::from_utf8(name).map_err(|_| Refused)?;
        match fields.add(name, value.trim_ascii()) {
            Ok(()) => {}
            Err(FieldError::Reserved) => counts.note_reserved(name),
            Err(_) => return Err(Refused),
        }
    }
    Ok(())
}

/// Changes the head of a request to what a filter has made of `before`.
fn apply_to_request(
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
fn apply_to_response(
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
    // what is the same at both ends has the names of few changes between
    let is_same = |pair: &(_, _)| pair.0 == pair.1;
    let first = before.iter().zip(after.iter()).take_while(is_same).count();
    let both = before.len().min(after.len()) - first;
    let last = before.iter().rev().zip(after.iter().rev());
    let last = last.take(both).take_while(is_same).count();
    let [old, new] = [before, after].map(|pairs| {
        let changed = pairs.len() - first - last;
        pairs.iter().skip(first).take(changed)
    });
    let names = old.chain(new);
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
    use crate::pairs_of_head::ROOM;
    use weir_wasm::{PAIRS_BYTES_MAX, PAIRS_MAX};

    fn request_pairs(head: &RequestHead<'_>) -> Result<Pairs, Refused> {
        let mut pairs = Pairs::new();
        put_request(head, &mut pairs).map(|()| pairs)
    }

    fn response_pairs(head: &ResponseHead<'_>) -> Result<Pairs, Refused> {
        let mut pairs = Pairs::new();
        put_response_fields(head.status(), &head.fields, &mut pairs).map(|()| pairs)
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

    /// The head after a filter has added these fields, and has done nothing else.
    fn add(added: &[(&str, &[u8])]) -> (RequestHead<'static>, Result<(), Refused>, Counts) {
        let (mut head, counts) = (request(), Counts::default());
        let mut fields = MessageFields::default();
        head.put(&mut fields).expect("it fits");
        for (name, value) in added {
            fields.add(name.as_bytes(), value).expect("room");
        }
        let applied = head.apply(fields.changes(), &counts);
        (head, applied, counts)
    }

    #[test]
    fn fields_that_are_added_stand_behind_the_others_and_those_are_not_copied() {
        let (head, applied, _) = add(&[("X-A", b" 3 "), ("x-new", b"n"), (":path", b"/z")]);
        assert_eq!(applied, Ok(()));
        assert_eq!(head.path_and_query(), "/x?y");
        let values: Vec<_> = head.fields.all("x-a").collect();
        assert_eq!(values, [&b"1"[..], b"2", b"3"]);
        assert_eq!(head.fields.iter().last(), Some(("x-new", &b"n"[..])));
        assert!(add(&[]).0.fields.only_added().is_none());
    }

    #[test]
    fn host_that_is_added_is_the_authority() {
        let (head, applied, _) = add(&[("Host", b"b.example")]);
        assert_eq!((applied, head.authority()), (Ok(()), "b.example"));
        assert_eq!(add(&[("host", b"a/b")]).1, Err(Refused));
    }

    #[test]
    fn what_is_added_and_reserved_is_left_out_and_what_could_end_a_line_fails_the_message() {
        let (head, applied, counts) = add(&[("Content-Length", b"9"), ("via", b"x")]);
        assert_eq!((applied, head.is_changed()), (Ok(()), false));
        assert!(counts.notes()[0].starts_with("2 changes"));
        for (name, value) in [("x-a", &b"1\r\nX: 2"[..]), ("x a", b"1"), ("x-a", b"\0")] {
            assert_eq!(add(&[(name, value)]).1, Err(Refused), "{name:?}");
        }
    }

    #[test]
    fn port_beside_the_host_is_part_of_the_authority() {
        for (port, expected) in [(1, "a:1"), (8080, "a:8080"), (65535, "a:65535"), (0, "a:0")] {
            let head = RequestHead::new("GET", "a", "/", Fields::default()).with_port(port);
            let pairs = request_pairs(&head).expect("it fits");
            assert_eq!(pairs.get(b":authority"), Some(expected.as_bytes()));
        }
    }

    #[test]
    fn large_response_is_read_before_the_filter_is_called_and_refused_without_room() {
        let section = |lines: usize, bytes: usize| {
            let line = format!("x: {}\r\n", "v".repeat(bytes));
            line.repeat(lines).into_bytes()
        };
        let put = |section: &[u8]| {
            let mut head = ResponseHead::new(200, HeadFields::of_section(section));
            let head = FilterResponse {
                head: &mut head,
                may_change_status: false,
            };
            let mut fields = MessageFields::default();
            head.put(&mut fields)
                .map(|()| (fields.len(), fields.given().is_some()))
        };
        assert_eq!(put(&section(128, 9)), Ok((129, false)));
        assert_eq!(put(&section(129, 9)), Ok((130, true)));
        assert_eq!(put(&section(2, 10_000)), Ok((3, true)));
        assert_eq!(put(&section(PAIRS_MAX, 9)), Err(Refused));
        assert_eq!(put(&section(1, PAIRS_BYTES_MAX)), Err(Refused));
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
