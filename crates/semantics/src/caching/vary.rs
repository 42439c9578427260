//! `Vary` and the nominated fields of a request, RFC 9111 §4.1 and RFC 9110 §12.5.5.

use crate::fields::field::{FieldLine, is_token, lines_named, list_elements};
use crate::fields::hop_by_hop::{ConnectionOptions, is_hop_by_hop};
use crate::fields::known::{Known, identify};

/// What the `Vary` lines of a response amount to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum VaryKind {
    /// No field is nominated: absent or empty.
    #[default]
    None,
    /// `*` somewhere, or a member that is no field name: never matches another request.
    Star,
    /// Fields are nominated; see [`nominated`].
    Fields,
}

impl VaryKind {
    /// Adds what one more `Vary` line says. A member that is no token is read as `*`: whatever was
    /// meant, we cannot compare it.
    pub fn add_line(&mut self, value: &[u8]) {
        for element in list_elements(value) {
            if element == b"*" || !is_token(element) {
                *self = Self::Star;
            } else if *self == Self::None {
                *self = Self::Fields;
            }
        }
    }
}

/// The names of the nominated fields as written, repetitions included, from the values of all
/// `Vary` lines. Only meaningful for [`VaryKind::Fields`].
pub fn nominated<'a>(lines: impl Iterator<Item = &'a [u8]>) -> impl Iterator<Item = &'a str> {
    lines
        .flat_map(list_elements)
        .filter(|element| is_token(element))
        .filter_map(|element| str::from_utf8(element).ok())
}

/// Feeds `sink` with what a request says in the nominated field `name`, so that two requests feed
/// the same bytes exactly when the field matches (RFC 9111 §4.1).
///
/// Fed is `-` for an absent field, else `=`, the members separated by commas, and in both cases a
/// line feed, which no field value contains: what is fed for several fields in the same order stays
/// unambiguous. Members are those of [`list_elements`], so whitespace around commas, empty members
/// and the division into lines make no difference. Fields that are no lists are fed as they are,
/// and so are those that we do not know: what makes no difference in them their own syntax says
/// (§4.1). Several lines of one are joined by commas. `Accept-Encoding` and `Accept-Language` in
/// lower case, as neither a coding nor a language tag has a case (RFC 9110 §8.4.1, RFC 5646
/// §2.1.1). Members keep their order: servers are known to prefer the first of several alike.
///
/// A field that is removed on the way to the next hop (RFC 9110 §7.6.1) counts as absent: the
/// response was not chosen by it. Otherwise a client that names a field in `Connection` would store
/// the response to a request without that field for all requests with it.
pub fn feed_selecting(fields: &[FieldLine<'_>], name: &str, sink: &mut dyn FnMut(&[u8])) {
    let known = identify(name);
    if known.is_some_and(is_for_next_recipient) || ConnectionOptions::gather(fields).names(name) {
        sink(b"-\n");
        return;
    }
    let whole = known.is_none_or(is_singleton);
    let caseless = matches!(known, Some(Known::AcceptEncoding | Known::AcceptLanguage));
    let mut present = false;
    let mut separator: &[u8] = b"";
    for value in lines_named(fields, name) {
        if !present {
            sink(b"=");
            present = true;
        }
        let mut feed = |member: &[u8]| {
            sink(separator);
            if caseless {
                feed_lower(member, sink);
            } else {
                sink(member);
            }
            separator = b",";
        };
        if whole {
            feed(value);
        } else {
            list_elements(value).for_each(feed);
        }
    }
    sink(if present { b"\n" } else { b"-\n" });
}

/// Feeds `member` in lower case, a piece at a time so that nothing is allocated.
fn feed_lower(member: &[u8], sink: &mut dyn FnMut(&[u8])) {
    for piece in member.chunks(PIECE_LENGTH) {
        let mut lower = [0; PIECE_LENGTH];
        let lower = &mut lower[..piece.len()];
        lower.copy_from_slice(piece);
        lower.make_ascii_lowercase();
        sink(lower);
    }
}

/// Bytes that are fed at a time; any number gives the same.
const PIECE_LENGTH: usize = 64;

/// Is this request field for the recipient alone, so that it is not sent on?
const fn is_for_next_recipient(known: Known) -> bool {
    is_hop_by_hop(known) || matches!(known, Known::ProxyAuthorization)
}

/// Is a comma in this request field part of its value rather than a separator?
const fn is_singleton(known: Known) -> bool {
    matches!(
        known,
        Known::Authorization
            | Known::Cookie
            | Known::From
            | Known::Host
            | Known::IfModifiedSince
            | Known::IfRange
            | Known::IfUnmodifiedSince
            | Known::Origin
            | Known::Referer
            | Known::UserAgent
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_kind(lines: &[&str], expected: VaryKind) {
        let mut kind = VaryKind::default();
        lines.iter().for_each(|line| kind.add_line(line.as_bytes()));
        assert_eq!(kind, expected, "{lines:?}");
    }

    fn fed(values: &[&str], name: &str) -> String {
        let fields: Vec<_> = values
            .iter()
            .map(|value| FieldLine::new(name, value.as_bytes()))
            .collect();
        let mut out = Vec::new();
        feed_selecting(&fields, &name.to_ascii_uppercase(), &mut |bytes| {
            out.extend_from_slice(bytes)
        });
        String::from_utf8(out).unwrap()
    }

    fn check(name: &str, values: &[&str], expected: &str) {
        assert_eq!(fed(values, name), expected, "{name}: {values:?}");
    }

    #[test]
    fn star_anywhere_makes_vary_a_star() {
        for lines in [
            &["*"][..],
            &["*, *"],
            &["*", "*"],
            &[", *"],
            &["", "*"],
            &["*, Foo"],
            &["Foo, *"],
            &["*", "Foo"],
        ] {
            check_kind(lines, VaryKind::Star);
        }
        check_kind(&["Foo"], VaryKind::Fields);
        check_kind(&["", ",Foo , Bar"], VaryKind::Fields);
        check_kind(&["", ",,"], VaryKind::None);
        check_kind(&[], VaryKind::None);
    }

    #[test]
    fn invalid_field_name_makes_vary_a_star() {
        for value in ["Foo Bar", "Foo;q=1", "\"Foo\"", "Foo, b(r", "é"] {
            check_kind(&[value], VaryKind::Star);
        }
    }

    #[test]
    fn nominated_field_names_are_listed_as_written() {
        let names = |lines: &[&'static str]| -> Vec<&str> {
            nominated(lines.iter().map(|line| line.as_bytes())).collect()
        };
        assert_eq!(names(&["Foo , bar", "", "BAZ"]), ["Foo", "bar", "BAZ"]);
        assert!(names(&[]).is_empty());
    }

    #[test]
    fn hop_by_hop_selecting_field_counts_as_absent() {
        let fed = |fields: &[(&'static str, &'static str)], name: &str| {
            let fields: Vec<_> = fields
                .iter()
                .map(|(name, value)| FieldLine::new(name, value.as_bytes()))
                .collect();
            let mut out = Vec::new();
            feed_selecting(&fields, name, &mut |bytes| out.extend_from_slice(bytes));
            String::from_utf8(out).unwrap()
        };
        let x = ("X-User", "1");
        assert_eq!(fed(&[x], "x-user"), "=1\n");
        assert_eq!(fed(&[x, ("Connection", "close, X-USER")], "x-user"), "-\n");
        assert_eq!(fed(&[x, ("Connection", "close")], "x-user"), "=1\n");
        assert_eq!(fed(&[x, ("Connection", "X-Other")], "x-user"), "=1\n");
        // what Connection cannot remove (see `ConnectionOptions::names`)
        let cookie = [("Cookie", "a=1"), ("Connection", "cookie")];
        assert_eq!(fed(&cookie, "cookie"), "=a=1\n");
        for name in [
            "TE",
            "Keep-Alive",
            "Proxy-Authorization",
            "Connection",
            "Upgrade",
        ] {
            assert_eq!(fed(&[(name, "1")], name), "-\n", "{name}");
        }
    }

    #[test]
    fn whitespace_and_line_splits_make_no_difference_in_a_list() {
        for values in [
            &["1,2"][..],
            &[" 1, 2 "],
            &["1", "2"],
            &["1 ,,2,"],
            &["", "1", "2"],
        ] {
            check("accept", values, "=1,2\n");
        }
        check("accept", &["2,1"], "=2,1\n");
        check("accept", &["12"], "=12\n");
        check("accept", &["\"1, 2\""], "=\"1, 2\"\n");
    }

    #[test]
    fn unknown_selecting_field_is_compared_as_written() {
        for value in ["1,2", "1, 2", "1,2,", ",1,2", "1,,2", "\"1, 2\""] {
            check("foo", &[value], &format!("={value}\n"));
        }
        check("foo", &["1", "2"], "=1,2\n");
        check("foo", &["", "1"], "=,1\n");
    }

    #[test]
    fn absent_and_empty_selecting_fields_differ() {
        check("foo", &[], "-\n");
        check("foo", &[""], "=\n");
        check("foo", &["-"], "=-\n");
    }

    #[test]
    fn only_case_insensitive_selecting_fields_are_lowercased() {
        check("foo", &["A"], "=A\n");
        check("accept-language", &["eN, De;Q=0.5"], "=en,de;q=0.5\n");
        check(
            "accept-encoding",
            &[&"GZIP".repeat(40)],
            &format!("={}\n", "gzip".repeat(40)),
        );
    }

    #[test]
    fn comma_in_a_single_value_is_no_separator() {
        check("user-agent", &["a, b,,c"], "=a, b,,c\n");
        check("cookie", &["a=1, b", "c"], "=a=1, b,c\n");
    }
}
