//! For whom a request is forwarded: `X-Forwarded-For`, `X-Forwarded-Proto`, `X-Forwarded-Host` and
//! `Forwarded` (RFC 7239).
//!
//! A *claim* is a field by which the sender of a request says for whom it is forwarded. Claims of
//! clients that are no trusted proxies are removed before anything is decided by the request, those
//! of trusted proxies are extended. What is then sent of these fields is made here, for the next
//! hop and for `Vary` alike: a response is stored under what its next hop got.
//!
//! Origins make links and redirections of the protocol and host that they are told, and few of them
//! say so by `Vary`. Without trusted proxies both follow from the target, which is in the cache
//! key. What a trusted proxy says beside the address of its client selects a variant
//! ([`ForwardedRules::variant`]).

mod element;
mod translation;

use self::element::{element, params, write_node, write_value};
use alloc::vec::Vec;
use core::net::{IpAddr, SocketAddr};
use ipnet::IpNet;
pub use weir_semantics::is_forwarding_claim as is_claim;
use weir_semantics::{Authority, FieldLine, Scheme, lines_named, list_elements};

/// Most members of `X-Forwarded-For` and of `Forwarded` that are sent, that of this proxy among
/// them. Of more the nearest are kept: whom a proxy has seen itself it knows best.
pub const CHAIN_LENGTH_MAX: usize = 32;

/// Most bytes of such a field that come from others. Of more the nearest members are kept.
pub const CHAIN_BYTES_MAX: usize = 2048;

crate::choice! {
    /// A field that says for whom a request is forwarded.
    pub enum ForwardedField {
        /// The addresses of the clients, the nearest last.
        XForwardedFor = "X-Forwarded-For",
        /// The protocol that the first client spoke.
        XForwardedProto = "X-Forwarded-Proto",
        /// The host that it asked for.
        XForwardedHost = "X-Forwarded-Host",
        /// All of these (RFC 7239).
        Forwarded = "Forwarded",
    }
}

crate::choice! {
    /// How a client is named to the next hop.
    #[derive(Default)]
    pub enum ClientName {
        /// By its address.
        #[default]
        Address = "address",
        /// By its address; in `Forwarded` with its port, too.
        AddressAndPort = "address-and-port",
        /// In `Forwarded` by an obfuscated identifier (RFC 7239 §6.3), which is the same as long as
        /// the store lasts; in `X-Forwarded-For` as `unknown`.
        Obfuscated = "obfuscated",
        /// As `unknown` (RFC 7239 §6.2).
        Unknown = "unknown",
    }
}

/// What is sent of whom a request is forwarded for, on listeners of one mode.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ForwardedRules {
    /// The clients whose claims are believed.
    pub trusted: Vec<IpNet>,
    /// The fields that are sent.
    pub sent: Vec<ForwardedField>,
    /// How a client is named.
    pub client: ClientName,
}

/// The hop of a request from its client to this proxy.
#[derive(Clone, Copy, Debug)]
pub struct ClientHop<'a> {
    /// The client; `None` of a request without one.
    pub client: Option<SocketAddr>,
    /// Its obfuscated identifier, of letters and digits.
    pub identifier: &'a str,
    /// Host and port that it asked for, as in `Host`.
    pub authority: &'a [u8],
    /// The scheme of its target: the protocol that it speaks.
    pub scheme: Scheme,
}

impl ClientHop<'_> {
    const fn proto(&self) -> &'static [u8] {
        self.scheme.as_str().as_bytes()
    }
}

/// Whether a name has characters that some recipients read as hyphens.
fn is_other_spelling(name: &str) -> bool {
    !name
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

impl ForwardedRules {
    /// Whether the claims of `client` are believed. An IPv4 client that a dual-stack socket shows
    /// as `::ffff:a.b.c.d` is one of IPv4.
    #[must_use]
    pub fn trusts(&self, client: IpAddr) -> bool {
        let client = client.to_canonical();
        self.trusted.iter().any(|net| net.contains(&client))
    }

    /// Whether a line that a client sent goes no further: a claim of one that is not trusted, and
    /// in any case one whose name some recipients alone take for a claim, as a trusted proxy that
    /// replaces claims may not have seen it.
    #[must_use]
    #[inline]
    pub fn refuses(&self, client: IpAddr, name: &str) -> bool {
        is_claim(name) && (is_other_spelling(name) || !self.trusts(client))
    }

    /// Whether the field with this name is made here.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<ForwardedField> {
        let mut sent = self.sent.iter().copied();
        sent.find(|field| name.eq_ignore_ascii_case(field.as_str()))
    }

    /// The value of a field that is sent, made of the `claims` among the lines of a head; `None` if
    /// there is nothing to say.
    #[must_use]
    pub fn value(
        &self,
        field: ForwardedField,
        claims: &[FieldLine<'_>],
        hop: &ClientHop<'_>,
    ) -> Option<Vec<u8>> {
        match field {
            ForwardedField::XForwardedFor => self.x_forwarded_for(claims, hop),
            ForwardedField::Forwarded => Some(self.forwarded(claims, hop)),
            ForwardedField::XForwardedProto | ForwardedField::XForwardedHost => {
                let (is_valid, own): (fn(&[u8]) -> bool, _) = match field {
                    ForwardedField::XForwardedProto => (is_scheme, hop.proto()),
                    _ => (is_authority, hop.authority),
                };
                let claimed = if translation::is_forwarded_alone(claims) {
                    translation::nearest(claims, field)
                } else {
                    last_valid(claims, field, is_valid).map(<[u8]>::to_vec)
                };
                Some(claimed.unwrap_or_else(|| own.to_vec()))
            }
        }
    }

    /// Appends the lines that are sent of a request without any claim: those that [`Self::value`]
    /// makes of none, without memory of their own.
    pub fn write_own(&self, hop: &ClientHop<'_>, out: &mut Vec<u8>) {
        let is_said = |field: &&ForwardedField| {
            **field != ForwardedField::XForwardedFor || hop.client.is_some()
        };
        for field in self.sent.iter().filter(is_said) {
            out.extend_from_slice(field.as_str().as_bytes());
            out.extend_from_slice(b": ");
            match (field, hop.client) {
                (ForwardedField::XForwardedFor, Some(client)) => self.write_address(client, out),
                (ForwardedField::XForwardedFor, None) => {}
                (ForwardedField::XForwardedProto, _) => out.extend_from_slice(hop.proto()),
                (ForwardedField::XForwardedHost, _) => out.extend_from_slice(hop.authority),
                (ForwardedField::Forwarded, _) => self.write_member(hop, out),
            }
            out.extend_from_slice(b"\r\n");
        }
    }

    fn x_forwarded_for(&self, claims: &[FieldLine<'_>], hop: &ClientHop<'_>) -> Option<Vec<u8>> {
        let mut out = if translation::is_forwarded_alone(claims) {
            translation::addresses(claims)
        } else {
            chain(claims, ForwardedField::XForwardedFor, |member| {
                member.iter().all(u8::is_ascii_graphic)
            })
        };
        if let Some(client) = hop.client {
            separate(&mut out);
            self.write_address(client, &mut out);
        }
        (!out.is_empty()).then_some(out)
    }

    /// The member of `X-Forwarded-For` for a client.
    fn write_address(&self, client: SocketAddr, out: &mut Vec<u8>) {
        match self.client {
            ClientName::Address | ClientName::AddressAndPort => {
                write_node(client.ip().to_canonical(), None, false, out);
            }
            ClientName::Obfuscated | ClientName::Unknown => out.extend_from_slice(b"unknown"),
        }
    }

    fn forwarded(&self, claims: &[FieldLine<'_>], hop: &ClientHop<'_>) -> Vec<u8> {
        let mut out = if lines_named(claims, ForwardedField::Forwarded.as_str())
            .next()
            .is_some()
        {
            chain(claims, ForwardedField::Forwarded, |member| {
                element(member).is_some()
            })
        } else {
            translation::member(self, claims, hop)
        };
        separate(&mut out);
        self.write_member(hop, &mut out);
        out
    }

    /// The member of `Forwarded` for a hop.
    fn write_member(&self, hop: &ClientHop<'_>, out: &mut Vec<u8>) {
        out.extend_from_slice(b"for=");
        match (hop.client, self.client) {
            (Some(client), ClientName::Address) => {
                write_node(client.ip().to_canonical(), None, true, out);
            }
            (Some(client), ClientName::AddressAndPort) => {
                let port = Some(client.port());
                write_node(client.ip().to_canonical(), port, true, out);
            }
            (Some(_), ClientName::Obfuscated) => {
                out.push(b'_');
                out.extend_from_slice(hop.identifier.as_bytes());
            }
            (None, _) | (_, ClientName::Unknown) => out.extend_from_slice(b"unknown"),
        }
        out.extend_from_slice(b";host=");
        write_value(hop.authority, out);
        out.extend_from_slice(b";proto=");
        out.extend_from_slice(hop.proto());
    }

    /// What of whom a request is forwarded for selects a variant of what is stored, from the lines
    /// that the next hop gets: all but the address of the client. `None` if that is what any
    /// client's request would say which came here by itself.
    ///
    /// It is made of what is sent, and of nothing else that was received: of claims that are not
    /// sent, as malformed ones and those before them, no origin has made its response. `authority`
    /// and `scheme` are those of its target.
    #[must_use]
    pub fn variant(
        &self,
        sent: &[FieldLine<'_>],
        authority: &[u8],
        scheme: Scheme,
    ) -> Option<Vec<u8>> {
        let mut out = Vec::new();
        let proto = scheme.as_str().as_bytes();
        let is_own = |host: &[u8]| host.eq_ignore_ascii_case(authority);
        let is_alone = |name: &str| lines_named(sent, name).count() == 1;
        let mut members = Members::default();
        for line in sent.iter().filter(|line| is_claim(line.name)) {
            let (name, value) = (line.name, line.value);
            if names_client(name) {
                continue;
            }
            match self.field(name) {
                Some(ForwardedField::XForwardedProto)
                    if value.eq_ignore_ascii_case(proto) && is_alone(name) => {}
                Some(ForwardedField::XForwardedHost) if is_own(value) && is_alone(name) => {}
                Some(ForwardedField::Forwarded) => members.note(value, (is_own, proto)),
                // `None`: it is sent on as it came
                Some(_) | None => note("field", name, value, &mut out),
            }
        }
        if members.are_unusual {
            out.extend_from_slice(&members.said);
        }
        (!out.is_empty()).then_some(out)
    }
}

/// Notes a line; `kind` has no space, a name no colon and a value no end of a line, so that no two
/// notes of different lines are the same.
fn note(kind: &str, name: &str, value: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(kind.as_bytes());
    out.push(b' ');
    out.extend(name.bytes().map(|byte| byte.to_ascii_lowercase()));
    out.push(b':');
    out.extend_from_slice(value);
    out.push(b'\n');
}

/// What the members of `Forwarded` say beside addresses, each in its place: an origin may count
/// them from either end.
#[derive(Default)]
struct Members {
    said: Vec<u8>,
    /// Whether one says what a client's own request would not.
    are_unusual: bool,
}

impl Members {
    fn note(&mut self, value: &[u8], (is_own, own_proto): (impl Fn(&[u8]) -> bool, &[u8])) {
        for text in list_elements(value) {
            self.said.extend_from_slice(b"member\n");
            let Some(member) = element(text) else {
                note("text", "", text, &mut self.said);
                self.are_unusual = true;
                continue;
            };
            for (key, value) in params(member) {
                let is = |name| key.eq_ignore_ascii_case(name);
                if is("for") || is("by") {
                    continue;
                }
                self.are_unusual |= !match &*value {
                    host if is("host") => is_own(host),
                    proto => is("proto") && proto.eq_ignore_ascii_case(own_proto),
                };
                note("parameter", key, &value, &mut self.said);
            }
        }
    }
}

fn is_named(name: &str, field: ForwardedField) -> bool {
    name.eq_ignore_ascii_case(field.as_str())
}

/// Whether a claim says who the client is, and nothing else.
fn names_client(name: &str) -> bool {
    is_named(name, ForwardedField::XForwardedFor) || name.eq_ignore_ascii_case("X-Real-IP")
}

/// The last member of the lines of a field, which the nearest proxy has written (RFC 9110 §5.3), if
/// it is one.
fn last_valid<'a>(
    claims: &[FieldLine<'a>],
    field: ForwardedField,
    is_valid: impl Fn(&[u8]) -> bool,
) -> Option<&'a [u8]> {
    let lines = lines_named(claims, field.as_str());
    let last = lines.flat_map(list_elements).last();
    last.filter(|value| is_valid(value))
}

/// The members of a field that are sent on: the nearest that are valid, as many as may be sent with
/// one more. Members before one that is not valid are left out: it may have been cut from them.
fn chain(
    claims: &[FieldLine<'_>],
    field: ForwardedField,
    is_valid: impl Fn(&[u8]) -> bool,
) -> Vec<u8> {
    let lines = lines_named(claims, field.as_str());
    let members: Vec<&[u8]> = lines.flat_map(list_elements).collect();
    let mut bytes = 0;
    let kept = members.iter().rev().take(CHAIN_LENGTH_MAX - 1);
    let kept = kept.take_while(|member| {
        bytes += member.len() + 2;
        bytes <= CHAIN_BYTES_MAX && is_valid(member)
    });
    let from = members.len() - kept.count();
    members[from..].join(&b", "[..])
}

fn separate(out: &mut Vec<u8>) {
    if !out.is_empty() {
        out.extend_from_slice(b", ");
    }
}

/// Whether this is a scheme (RFC 3986 §3.1).
fn is_scheme(value: &[u8]) -> bool {
    value.first().is_some_and(u8::is_ascii_alphabetic)
        && value
            .iter()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.'))
}

fn is_authority(value: &[u8]) -> bool {
    str::from_utf8(value).is_ok_and(|text| Authority::parse(text).is_ok())
}

#[cfg(test)]
mod tests;
