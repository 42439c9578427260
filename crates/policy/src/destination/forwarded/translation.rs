//! One family of fields in the words of the other, for an origin that is to be told one story: what
//! a trusted proxy says in `X-Forwarded-*` alone is said in `Forwarded`, too, and the reverse (RFC
//! 7239 §7.4).
//!
//! Where a proxy sends both, each is taken as it is. Of members of `Forwarded` the nearest says
//! protocol and host, which the trusted proxy has written: those before it may be of its client.

use super::element::{element, params, write_node, write_value};
use super::{
    ClientHop, ForwardedField, ForwardedRules, chain, is_authority, is_scheme, last_valid, separate,
};
use alloc::borrow::Cow;
use alloc::vec::Vec;
use core::net::{IpAddr, Ipv6Addr, SocketAddr};
use weir_semantics::{FieldLine, lines_named, list_elements};

/// The fields of the family that RFC 7239 replaces.
const LEGACY: [ForwardedField; 3] = [
    ForwardedField::XForwardedFor,
    ForwardedField::XForwardedProto,
    ForwardedField::XForwardedHost,
];

fn has(claims: &[FieldLine<'_>], field: ForwardedField) -> bool {
    lines_named(claims, field.as_str()).next().is_some()
}

/// Whether `claims` have `Forwarded` and none of the other fields.
pub(super) fn is_forwarded_alone(claims: &[FieldLine<'_>]) -> bool {
    has(claims, ForwardedField::Forwarded) && !LEGACY.iter().any(|field| has(claims, *field))
}

/// The member of `Forwarded` that says what `X-Forwarded-*` among `claims` say, which have no
/// `Forwarded`: of the nearest address that is no trusted proxy's. It is one, as each more would
/// make another variant, and clients write what stands before it. Nothing if they say no more than
/// this proxy says itself.
pub(super) fn member(
    rules: &ForwardedRules,
    claims: &[FieldLine<'_>],
    hop: &ClientHop<'_>,
) -> Vec<u8> {
    let proto = last_valid(claims, ForwardedField::XForwardedProto, is_scheme);
    let proto = proto.filter(|proto| !proto.eq_ignore_ascii_case(hop.proto()));
    let host = last_valid(claims, ForwardedField::XForwardedHost, is_authority);
    let host = host.filter(|host| !host.eq_ignore_ascii_case(hop.authority));
    let nodes = chain(claims, ForwardedField::XForwardedFor, |node| {
        node.iter().all(u8::is_ascii_graphic)
    });
    if nodes.is_empty() && proto.is_none() && host.is_none() {
        return Vec::new();
    }
    let nodes: Vec<Option<IpAddr>> = list_elements(&nodes).map(address).collect();
    let is_client = |node: &&Option<IpAddr>| node.is_none_or(|address| !rules.trusts(address));
    let client = nodes.iter().rev().find(is_client).or(nodes.first());
    let mut out = b"for=".to_vec();
    match client.copied().flatten() {
        Some(address) => write_node(address.to_canonical(), None, true, &mut out),
        None => out.extend_from_slice(b"unknown"),
    }
    for (name, value) in [(&b";host="[..], host), (b";proto=", proto)] {
        if let Some(value) = value {
            out.extend_from_slice(name);
            write_value(value, &mut out);
        }
    }
    out
}

impl ForwardedRules {
    /// Which client a request of `client` with these `fields` counts for, where each has a share of
    /// something: of one that is trusted it is the nearest address that is no trusted proxy's, if
    /// it names one.
    #[must_use]
    pub fn counted_client(&self, client: IpAddr, fields: &[FieldLine<'_>]) -> IpAddr {
        if !self.trusts(client) {
            return client;
        }
        let nodes = match is_forwarded_alone(fields) {
            true => addresses(fields),
            false => chain(fields, ForwardedField::XForwardedFor, |node| {
                node.iter().all(u8::is_ascii_graphic)
            }),
        };
        let nodes: Vec<Option<IpAddr>> = list_elements(&nodes).map(address).collect();
        let is_other = |node: &&Option<IpAddr>| node.is_none_or(|address| !self.trusts(address));
        let nearest = nodes.iter().rev().find(is_other).copied().flatten();
        nearest.unwrap_or(client)
    }
}

/// The members of `X-Forwarded-For` that say what `Forwarded` among `claims` says.
pub(super) fn addresses(claims: &[FieldLine<'_>]) -> Vec<u8> {
    let members = forwarded(claims);
    let mut out = Vec::new();
    for node in list_elements(&members).filter_map(|member| parameter(member, "for")) {
        separate(&mut out);
        match address(&node) {
            Some(address) => write_node(address.to_canonical(), None, false, &mut out),
            None => out.extend_from_slice(b"unknown"),
        }
    }
    out
}

/// What the nearest member of `Forwarded` among `claims` says of the protocol or the host.
pub(super) fn nearest(claims: &[FieldLine<'_>], field: ForwardedField) -> Option<Vec<u8>> {
    let (name, is_valid): (_, fn(&[u8]) -> bool) = match field {
        ForwardedField::XForwardedProto => ("proto", is_scheme),
        ForwardedField::XForwardedHost => ("host", is_authority),
        ForwardedField::XForwardedFor | ForwardedField::Forwarded => return None,
    };
    let members = forwarded(claims);
    let value = parameter(list_elements(&members).last()?, name)?.into_owned();
    is_valid(&value).then_some(value)
}

fn forwarded(claims: &[FieldLine<'_>]) -> Vec<u8> {
    chain(claims, ForwardedField::Forwarded, |member| {
        element(member).is_some()
    })
}

/// The parameter of a member with this name.
fn parameter<'m>(member: &'m [u8], name: &str) -> Option<Cow<'m, [u8]>> {
    let mut all = params(element(member)?);
    let found = all.find(|(key, _)| key.eq_ignore_ascii_case(name));
    found.map(|(_, value)| value)
}

/// The address of a node, with or without a port; `None` of one without an address.
fn address(node: &[u8]) -> Option<IpAddr> {
    let text = str::from_utf8(node).ok()?;
    let bracketed = text.strip_prefix('[').and_then(|it| it.strip_suffix(']'));
    if let Some(inner) = bracketed {
        return inner.parse::<Ipv6Addr>().ok().map(IpAddr::V6);
    }
    let alone = text.parse().ok();
    alone.or_else(|| text.parse().ok().map(|whole: SocketAddr| whole.ip()))
}
