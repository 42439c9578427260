//! What concerns one connection only, RFC 9110 §7.6.1, and what is stored and freshened of the
//! rest, RFC 9111 §3.

use crate::fields::field::{FieldLine, lines_named, list_elements};
use crate::fields::known::{Known, identify};
use crate::fields::names::FieldNames;
use alloc::boxed::Box;
use alloc::vec::Vec;

/// Is this field for one connection, so that it is neither forwarded nor stored (RFC 9110 §7.6.1)?
/// The intermediary writes its own where one is needed. `Trailer` is not among them since RFC 9110.
/// `Weir-Peer` is: no client's reaches another node of a cluster, and none leaves it.
#[must_use]
pub const fn is_hop_by_hop(known: Known) -> bool {
    matches!(
        known,
        Known::Connection
            | Known::Http2Settings
            | Known::KeepAlive
            | Known::ProxyConnection
            | Known::Te
            | Known::TransferEncoding
            | Known::Upgrade
            | Known::WeirPeer
    )
}

/// Is this response field stored (RFC 9111 §3.1)? Not what is for one connection or for one proxy.
#[must_use]
pub const fn is_stored(known: Known) -> bool {
    !is_hop_by_hop(known)
        && !matches!(
            known,
            Known::ProxyAuthenticate | Known::ProxyAuthenticationInfo | Known::ProxyAuthorization
        )
}

/// Does this response field change what one client keeps for itself? In a response that updates a
/// stored one it concerns the client whose request brought the update, and no other.
#[must_use]
pub const fn is_for_one_client(known: Known) -> bool {
    matches!(
        known,
        Known::SetCookie | Known::SetCookie2 | Known::ClearSiteData
    )
}

/// Does a 304 replace this field of the stored response (RFC 9111 §3.2)? Not what is not stored,
/// not `Content-Length`, and neither `Content-Encoding` nor `Content-Range`: they describe the
/// content as it is stored, which a 304 does not change. Nor what is [for one
/// client](is_for_one_client).
#[must_use]
pub const fn is_freshened(known: Known) -> bool {
    is_stored(known)
        && !is_for_one_client(known)
        && !matches!(
            known,
            Known::ContentLength | Known::ContentEncoding | Known::ContentRange
        )
}

/// Options that a message may name in `Connection`. Each field of the message is compared with each
/// of them; clients and origins send two or three.
pub const CONNECTION_OPTIONS_MAX: usize = 64;

/// Bytes that the `Connection` lines of a message may have together. They are gone through for each
/// field of the message, however few options are in them.
pub const CONNECTION_BYTES_MAX: usize = 64 * CONNECTION_OPTIONS_MAX;

const NAME: &str = "connection";

/// What the `Connection` lines of a message say.
#[derive(Clone, Copy, Debug)]
pub struct ConnectionOptions<'a> {
    /// `close`: the connection ends after this message.
    pub close: bool,
    /// `keep-alive`: an HTTP/1.0 peer would keep the connection.
    pub keep_alive: bool,
    /// `upgrade`: there is an `Upgrade` field for this hop.
    pub upgrade: bool,
    fields: &'a [FieldLine<'a>],
    /// Is there an option other than those three?
    others: bool,
    /// How many options there are, repetitions included.
    pub count: usize,
    /// How long the lines are.
    bytes: usize,
}

impl<'a> ConnectionOptions<'a> {
    /// Reads the `Connection` lines.
    #[must_use]
    pub fn gather(fields: &'a [FieldLine<'a>]) -> Self {
        let mut options = Self {
            close: false,
            keep_alive: false,
            upgrade: false,
            fields,
            others: false,
            count: 0,
            bytes: 0,
        };
        // lengths first: most messages have no such line
        let is_connection = |line: &&FieldLine<'_>| {
            line.name.len() == NAME.len() && line.name.eq_ignore_ascii_case(NAME)
        };
        for line in fields.iter().filter(is_connection) {
            options.bytes += line.value.len();
            for option in list_elements(line.value) {
                options.count += 1;
                if option.eq_ignore_ascii_case(b"keep-alive") {
                    options.keep_alive = true;
                } else if option.eq_ignore_ascii_case(b"close") {
                    options.close = true;
                } else if option.eq_ignore_ascii_case(b"upgrade") {
                    options.upgrade = true;
                } else {
                    options.others = true;
                }
            }
        }
        options
    }

    /// Are there more than [`CONNECTION_OPTIONS_MAX`], or more than [`CONNECTION_BYTES_MAX`] of
    /// lines? Such a message is refused.
    #[must_use]
    pub const fn are_too_many(&self) -> bool {
        self.count > CONNECTION_OPTIONS_MAX || self.bytes > CONNECTION_BYTES_MAX
    }

    /// Do the options name this field, so that it goes no further (RFC 9110 §7.6.1)?
    ///
    /// Never true of a field that we know to be for all recipients (every [`Known`] one that is not
    /// hop-by-hop): naming such a field is forbidden to the sender, and obeying it would let a
    /// client strip `Authorization`, `Host` or `X-Forwarded-For` from what the next hop sees, or a
    /// response's `Cache-Control` from the store.
    #[must_use]
    pub fn names(&self, field: &str) -> bool {
        if !(self.others || self.keep_alive || self.upgrade) {
            return false;
        }
        are_named(lines_named(self.fields, NAME), field)
    }

    /// The fields that the options name, for the trailer section: they go no further from there
    /// either. Nothing is allocated for `close`, `keep-alive` and `upgrade` alone.
    #[must_use]
    pub fn named_fields(&self) -> NamedFields {
        if !self.others {
            return NamedFields::NONE;
        }
        let lines: Vec<&[u8]> = lines_named(self.fields, NAME).collect();
        NamedFields {
            options: Some(lines.join(&b","[..]).into()),
            others: FieldNames::NONE,
        }
    }
}

/// Whether one of the lines of `Connection` names this field, which may be for one connection.
fn are_named<'l>(mut lines: impl Iterator<Item = &'l [u8]>, field: &str) -> bool {
    if identify(field).is_some_and(|known| !is_hop_by_hop(known)) {
        return false;
    }
    let is_named = |option: &[u8]| option.eq_ignore_ascii_case(field.as_bytes());
    lines.any(|line| list_elements(line).any(is_named))
}

/// The fields that `Connection` names in the head of a message, by [`ConnectionOptions::names`],
/// and others that are not to come behind that head. The former are at most as long as the head.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NamedFields {
    options: Option<Box<[u8]>>,
    others: FieldNames,
}

impl NamedFields {
    /// None is named.
    pub const NONE: Self = Self {
        options: None,
        others: FieldNames::NONE,
    };

    /// The same and `others`, whatever the head names.
    #[must_use]
    pub fn and(self, others: FieldNames) -> Self {
        Self { others, ..self }
    }

    /// Whether this field is named.
    #[must_use]
    pub fn has(&self, field: &str) -> bool {
        are_named(self.options.as_deref().into_iter(), field) || self.others.has(field)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(values: &[&str], field: &str, expected: bool) {
        let fields: Vec<_> = values
            .iter()
            .map(|value| FieldLine::new("CONNECTION", value.as_bytes()))
            .collect();
        assert_eq!(
            ConnectionOptions::gather(&fields).names(field),
            expected,
            "{values:?} {field:?}"
        );
    }

    #[test]
    fn field_named_in_connection_is_hop_by_hop() {
        check(&["close, Foo"], "foo", true);
        check(&["close", "foo,bar"], "BAR", true);
        check(&["close"], "foo", false);
        check(&[], "foo", false);
        check(&["foobar"], "foo", false);
        check(&["keep-alive"], "Keep-Alive", true);
        check(&["Upgrade, HTTP2-Settings"], "HTTP2-Settings", true);
        check(&["TE"], "te", true);
    }

    #[test]
    fn end_to_end_field_named_in_connection_is_not_removed() {
        for field in [
            "Host",
            "Authorization",
            "Cache-Control",
            "Age",
            "Cookie",
            "X-Forwarded-For",
            "Content-Length",
            "Via",
        ] {
            check(&[field, "foo"], field, false);
        }
    }

    #[test]
    fn fields_named_for_the_trailer_section_are_those_that_are_named_in_the_head() {
        let named = |values: &[&'static str]| {
            let lines = values.iter();
            let lines = lines.map(|value| FieldLine::new("connection", value.as_bytes()));
            let fields: Vec<_> = lines.collect();
            ConnectionOptions::gather(&fields).named_fields()
        };
        for plain in [&[][..], &["close"], &["keep-alive, Upgrade"], &["", ","]] {
            assert_eq!(named(plain), NamedFields::NONE, "{plain:?}");
        }
        let fields = named(&["close, X-One", "x-TWO ,Etag"]);
        assert!(fields.has("x-one") && fields.has("X-Two") && fields.has("Close"));
        for other in ["X-Three", "X-On", "ETag", ""] {
            assert!(!fields.has(other), "{other}");
        }
    }

    #[test]
    fn options_are_too_many_by_their_number_and_by_the_bytes_of_the_lines() {
        let are_too_many = |values: &[&str]| {
            let lines = values.iter();
            let lines = lines.map(|value| FieldLine::new("connection", value.as_bytes()));
            let fields: Vec<_> = lines.collect();
            ConnectionOptions::gather(&fields).are_too_many()
        };
        let names = |count: usize| alloc::vec!["x"; count].join(",");
        assert!(!are_too_many(&[]));
        assert!(!are_too_many(&[&names(CONNECTION_OPTIONS_MAX)]));
        assert!(are_too_many(&[&names(CONNECTION_OPTIONS_MAX), "x"]));
        let bytes = |count: usize, of: &str| of.repeat(count);
        for of in ["x", ","] {
            assert!(!are_too_many(&[&bytes(CONNECTION_BYTES_MAX, of)]), "{of}");
            assert!(
                are_too_many(&[&bytes(CONNECTION_BYTES_MAX, of), of]),
                "{of}"
            );
        }
    }

    #[test]
    fn connection_options_are_case_insensitive() {
        let options = |value: &'static str| {
            let fields = [FieldLine::new("connection", value.as_bytes())];
            let options = ConnectionOptions::gather(&fields);
            (options.close, options.keep_alive, options.upgrade)
        };
        assert_eq!(options(""), (false, false, false));
        assert_eq!(options("Close"), (true, false, false));
        assert_eq!(options("foo, Keep-Alive"), (false, true, false));
        assert_eq!(options("UPGRADE,close"), (true, false, true));
        assert_eq!(options("closed"), (false, false, false));
    }

    #[test]
    fn every_known_field_is_stored_unless_hop_by_hop() {
        let omitted: Vec<_> = Known::ALL
            .iter()
            .copied()
            .filter(|&known| !is_stored(known))
            .collect();
        assert_eq!(
            omitted,
            [
                Known::Connection,
                Known::Http2Settings,
                Known::KeepAlive,
                Known::ProxyAuthenticate,
                Known::ProxyAuthenticationInfo,
                Known::ProxyAuthorization,
                Known::ProxyConnection,
                Known::Te,
                Known::TransferEncoding,
                Known::Upgrade,
                Known::WeirPeer,
            ]
        );
        assert!(is_freshened(Known::ContentType) && !is_freshened(Known::ContentLength));
        assert!(is_stored(Known::SetCookie) && !is_freshened(Known::SetCookie));
    }
}
