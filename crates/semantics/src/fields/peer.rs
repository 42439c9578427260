//! `Weir-Peer`: what nodes of a cluster tell each other with a request and its response. No RFC has
//! it. It is for one connection, as hop-by-hop fields are, so that it never leaves the cluster.
//!
//! Its value is a Dictionary (RFC 9651 §3.2). Members that are not known are ignored, so that nodes
//! of two versions understand each other.

use alloc::vec::Vec;

use crate::fields::field::is_token;
use crate::fields::purge_message::{PurgeSequence, UNKNOWN_SESSION};
use crate::fields::structured::{BareItem, read_dictionary, write_decimal};

/// The name of the field.
pub const PEER_FIELD: &str = "Weir-Peer";

/// The most bytes of a name that is chosen for a node.
pub const NODE_NAME_BYTES_MAX: usize = 64;

/// The most bytes of a name that is host and port: of a name in the DNS, a colon and five digits.
const HOST_AND_PORT_BYTES_MAX: usize = 259;

/// Whether `name` may name a node: a letter, then letters, digits, `-`, `_` and `.`, at most
/// [`NODE_NAME_BYTES_MAX`] bytes; or host and port, as nodes are named that the DNS lists.
#[must_use]
pub fn is_node_name(name: &str) -> bool {
    let is_word = name.len() <= NODE_NAME_BYTES_MAX
        && name.starts_with(|first: char| first.is_ascii_alphabetic())
        && name.bytes().all(is_of_word);
    is_word || is_host_and_port(name)
}

const fn is_of_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.')
}

fn is_host_and_port(name: &str) -> bool {
    let Some((host, port)) = name.rsplit_once(':') else {
        return false;
    };
    let is_port = !port.is_empty()
        && port.bytes().all(|byte| byte.is_ascii_digit())
        && port.parse::<u16>().is_ok();
    let address = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'));
    let is_host = match address {
        Some(address) => address.parse::<core::net::Ipv6Addr>().is_ok(),
        None => !host.is_empty() && host.bytes().all(is_of_word),
    };
    name.len() <= HOST_AND_PORT_BYTES_MAX && is_port && is_host
}

/// The field on a request of one node to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerRequest<'a> {
    /// The node that asks.
    pub node: &'a str,
    /// What the listener is that the client's request came to, as it is configured: responses for
    /// one kind of listener are not found by another.
    pub mode: &'a str,
    /// What shows that the node knows the secret of the cluster, in base64; empty without a secret.
    pub proof: &'a str,
    /// A number that the node used for no other request, in base64: the response is to be proved
    /// for it. Empty without a secret.
    pub nonce: &'a str,
    /// The node that is asked, as the node that asks has it among the members: one that is in no
    /// list of its own knows by that whom it answers for.
    pub to: Option<&'a str>,
    /// The state of the node that asks, a word: with a message that tells it.
    pub state: Option<&'a str>,
    /// Where in the sequence of messages of the node that asks this one is: with purges.
    pub sequence: Option<PurgeSequence<'a>>,
}

impl<'a> PeerRequest<'a> {
    /// Reads a value; `None` if it is no such field or lacks a member.
    #[must_use]
    pub fn read(value: &'a [u8]) -> Option<Self> {
        let (mut node, mut mode) = (None, None);
        let (mut proof, mut nonce) = (Some(""), Some(""));
        let (mut to, mut state) = (None, None);
        let (mut session, mut number) = (Some(""), None);
        read_dictionary(value, &mut |key, item| match key {
            b"node" => node = node_name(item),
            b"mode" => mode = token(item),
            b"to" => to = node_name(item),
            b"state" => state = token(item),
            b"session" => session = base64(item),
            b"number" => number = whole_number(item),
            b"proof" => proof = base64(item),
            b"nonce" => nonce = base64(item),
            _ => {}
        })
        .ok()?;
        let session = Some(session?).filter(|session| !session.is_empty());
        let sequence = number.map(|number| PurgeSequence {
            session: session.unwrap_or(UNKNOWN_SESSION),
            number,
        });
        Some(Self {
            node: node?,
            mode: mode?,
            proof: proof?,
            nonce: nonce?,
            to,
            state,
            sequence,
        })
    }

    /// Appends the value. `node` and `to` must be names of nodes, `mode` and `state` tokens,
    /// `proof` base64, and so a session that is known.
    pub fn write(&self, out: &mut Vec<u8>) {
        debug_assert!(is_node_name(self.node) && is_token(self.mode.as_bytes()));
        write_node(b"node=", self.node, out);
        out.extend_from_slice(b", mode=");
        out.extend_from_slice(self.mode.as_bytes());
        if let Some(to) = self.to {
            write_node(b", to=", to, out);
        }
        if let Some(state) = self.state {
            debug_assert!(is_token(state.as_bytes()));
            out.extend_from_slice(b", state=");
            out.extend_from_slice(state.as_bytes());
        }
        if let Some(PurgeSequence { session, number }) = self.sequence {
            if session != UNKNOWN_SESSION {
                write_base64(b", session=:", session, out);
            }
            out.extend_from_slice(b", number=");
            write_decimal(number, out);
        }
        write_base64(b", proof=:", self.proof, out);
        write_base64(b", nonce=:", self.nonce, out);
    }
}

/// The field on the response to it: how the node that answers is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerReport<'a> {
    /// The node that answers.
    pub node: &'a str,
    /// Its state among the members, a word.
    pub state: &'a str,
    /// Requests that it has accepted and not answered.
    pub outstanding: u32,
    /// Its miss pressure: reads queued at its disk, and fetches that wait for an origin.
    pub miss_pressure: u32,
    /// A hash of what decides which node keeps a target, as this node decides it; none of a node
    /// that is in no list of members.
    pub placement: Option<u32>,
    /// What shows that the node knows the secret and the nonce of the request, in base64; empty
    /// without a secret.
    pub proof: &'a str,
    /// The response is the node's own, such as for lack of a connection to the origin: no origin
    /// has said what it says.
    pub is_own: bool,
    /// The node does not know yet that the one that asks is a member: their lists differ.
    pub is_unlisted: bool,
    /// What the process of the node calls itself, in base64: in answers to messages about a state.
    pub process: Option<&'a str>,
}

impl<'a> PeerReport<'a> {
    /// Reads a value; `None` if it is no such field or lacks a member.
    #[must_use]
    pub fn read(value: &'a [u8]) -> Option<Self> {
        let (mut node, mut state) = (None, None);
        let (mut outstanding, mut miss_pressure) = (None, None);
        let mut placement = None;
        let (mut proof, mut is_own, mut is_unlisted) = (Some(""), Some(false), Some(false));
        let mut process = None;
        read_dictionary(value, &mut |key, item| match key {
            b"node" => node = node_name(item),
            b"state" => state = token(item),
            b"outstanding" => outstanding = number(item),
            b"miss-pressure" => miss_pressure = number(item),
            b"placement" => placement = number(item),
            b"proof" => proof = base64(item),
            b"own" => is_own = boolean(item),
            b"unlisted" => is_unlisted = boolean(item),
            b"process" => process = base64(item),
            _ => {}
        })
        .ok()?;
        Some(Self {
            node: node?,
            state: state?,
            outstanding: outstanding?,
            miss_pressure: miss_pressure?,
            placement,
            proof: proof?,
            is_own: is_own?,
            is_unlisted: is_unlisted?,
            process,
        })
    }

    /// Appends the value. `node` and `state` must be tokens, `proof` and `process` base64.
    pub fn write(&self, out: &mut Vec<u8>) {
        debug_assert!(is_node_name(self.node) && is_token(self.state.as_bytes()));
        write_node(b"node=", self.node, out);
        out.extend_from_slice(b", state=");
        out.extend_from_slice(self.state.as_bytes());
        let numbers = [
            ("outstanding", Some(self.outstanding)),
            ("miss-pressure", Some(self.miss_pressure)),
            ("placement", self.placement),
        ];
        for (name, number) in numbers {
            let Some(number) = number else { continue };
            out.extend_from_slice(b", ");
            out.extend_from_slice(name.as_bytes());
            out.push(b'=');
            write_decimal(u64::from(number), out);
        }
        write_base64(b", proof=:", self.proof, out);
        if self.is_own {
            out.extend_from_slice(b", own");
        }
        if self.is_unlisted {
            out.extend_from_slice(b", unlisted");
        }
        write_base64(b", process=:", self.process.unwrap_or_default(), out);
    }
}

fn base64(item: BareItem<'_>) -> Option<&str> {
    match item {
        BareItem::Bytes(base64) => str::from_utf8(base64).ok(),
        _ => None,
    }
}

/// A Byte Sequence behind `begin`, if there is one.
fn write_base64(begin: &[u8], base64: &str, out: &mut Vec<u8>) {
    if !base64.is_empty() {
        out.extend_from_slice(begin);
        out.extend_from_slice(base64.as_bytes());
        out.push(b':');
    }
}

/// A word: a token without the `:` and `/` that tokens of structured fields may have.
fn token(item: BareItem<'_>) -> Option<&str> {
    match item {
        BareItem::Token(token) if is_token(token) => str::from_utf8(token).ok(),
        _ => None,
    }
}

/// A Token; a String if it is host and port.
fn node_name(item: BareItem<'_>) -> Option<&str> {
    match item {
        BareItem::Text(text) => {
            let text = str::from_utf8(text).ok();
            text.filter(|name| is_host_and_port(name))
        }
        item => token(item).filter(|name| is_node_name(name)),
    }
}

/// The name of a node behind `begin`.
fn write_node(begin: &[u8], name: &str, out: &mut Vec<u8>) {
    let quote: &[u8] = if name.contains(':') { b"\"" } else { b"" };
    out.extend_from_slice(begin);
    out.extend_from_slice(quote);
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(quote);
}

fn boolean(item: BareItem<'_>) -> Option<bool> {
    match item {
        BareItem::Boolean(boolean) => Some(boolean),
        _ => None,
    }
}

fn number(item: BareItem<'_>) -> Option<u32> {
    match item {
        BareItem::Integer(number) => u32::try_from(number).ok(),
        _ => None,
    }
}

fn whole_number(item: BareItem<'_>) -> Option<u64> {
    match item {
        BareItem::Integer(number) => u64::try_from(number).ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn field_of_a_request_is_a_dictionary_with_node_mode_and_proof() {
        let check = |value: &str, expected| {
            assert_eq!(PeerRequest::read(value.as_bytes()), expected, "{value}");
        };
        let request = PeerRequest {
            node: "a",
            mode: "gateway",
            proof: "YQ==",
            nonce: "",
            to: None,
            state: None,
            sequence: None,
        };
        check("node=a, mode=gateway, proof=:YQ==:", Some(request));
        let numbered = PeerRequest {
            nonce: "Yg==",
            ..request
        };
        check(
            "node=a, mode=gateway, nonce=:Yg==:, proof=:YQ==:",
            Some(numbered),
        );
        check("node=a, mode=gateway, nonce=1", None);
        check("mode=gateway,proof=:YQ==:,node=a;x,later=1", Some(request));
        let open = PeerRequest {
            proof: "",
            ..request
        };
        check("node=a, mode=gateway", Some(open));
        let listed = PeerRequest {
            node: "[::1]:4001",
            ..open
        };
        check("node=\"[::1]:4001\", mode=gateway", Some(listed));
        check("node=\"a:4001\\\"\", mode=gateway", None);
        check("node=b, node=a, mode=gateway", Some(open));
        let addressed = PeerRequest {
            to: Some("b.example:4001"),
            ..open
        };
        check(
            "node=a, mode=gateway, to=\"b.example:4001\"",
            Some(addressed),
        );
        check("node=a, mode=gateway, to=1", Some(open));
        let telling = PeerRequest {
            mode: "state",
            state: Some("draining"),
            ..open
        };
        check("node=a, mode=state, state=draining", Some(telling));
        check("node=a, mode=gateway, state=\"in\"", Some(open));
        let purging = |session, number| PeerRequest {
            mode: "purges",
            sequence: Some(PurgeSequence { session, number }),
            ..open
        };
        check(
            "node=a, mode=purges, session=:YQ==:, number=7",
            Some(purging("YQ==", 7)),
        );
        check("node=a, mode=purges, number=7", Some(purging("-", 7)));
        check(
            "node=a, mode=purges, number=999999999999999",
            Some(purging("-", 999_999_999_999_999)),
        );
        check("node=a, mode=purges, session=YQ==, number=7", None);
        for unnumbered in ["number=-1", "number=1.5", "session=:YQ==:"] {
            let value = format!("node=a, mode=gateway, {unnumbered}");
            check(&value, Some(open));
        }
        check("node=a", None);
        check("mode=gateway", None);
        check("node=\"a\", mode=gateway", None);
        check("node=a, mode=gateway, proof=YQ==", None);
        check("node=a, mode=gateway, proof=x", None);
        check("node=a:1, mode=gateway", None);
        check("node=a, mode=gate:way", None);
        check("node=a mode=gateway", None);
        check("", None);
    }

    #[test]
    fn field_of_a_response_lacks_no_member() {
        let value = "node=b, state=in, outstanding=12, miss-pressure=3";
        let report = PeerReport {
            node: "b",
            state: "in",
            outstanding: 12,
            miss_pressure: 3,
            placement: None,
            proof: "",
            is_own: false,
            is_unlisted: false,
            process: None,
        };
        assert_eq!(PeerReport::read(value.as_bytes()), Some(report));
        let own = PeerReport {
            is_own: true,
            ..report
        };
        let unlisted = PeerReport {
            is_unlisted: true,
            ..own
        };
        let named = PeerReport {
            process: Some("YQ=="),
            ..report
        };
        let placed = PeerReport {
            placement: Some(u32::MAX),
            ..report
        };
        for (end, expected) in [
            (", own", Some(own)),
            (", own, unlisted", Some(unlisted)),
            (", unlisted=1", None),
            (", own=?0", Some(report)),
            (", placement=4294967295", Some(placed)),
            (", placement=4294967296", Some(report)),
            (", own=1", None),
            (", process=:YQ==:", Some(named)),
            (", process=a", Some(report)),
            // of another version of Weir
            (", weight=100", Some(report)),
        ] {
            let value = format!("{value}{end}");
            assert_eq!(PeerReport::read(value.as_bytes()), expected, "{end}");
        }
        for member in value.split(", ") {
            let others: Vec<&str> = value.split(", ").filter(|other| *other != member).collect();
            assert_eq!(PeerReport::read(others.join(", ").as_bytes()), None);
        }
        for bad in [
            "outstanding=-1",
            "outstanding=4294967296",
            "outstanding=1.5",
        ] {
            let value = value.replace("outstanding=12", bad);
            assert_eq!(PeerReport::read(value.as_bytes()), None, "{bad}");
        }
    }

    #[test]
    fn node_name_is_a_letter_and_at_most_63_others_or_host_and_port() {
        assert!(is_node_name("a"));
        assert!(is_node_name("cache-1.example_2"));
        assert!(is_node_name(&"a".repeat(64)));
        let host = "a.".repeat(126) + "b";
        assert!(is_node_name(&format!("{host}:65535")));
        assert!(!is_node_name(&format!("a{host}:65535")));
        for name in [
            "10.0.0.1:80",
            "[2001:db8::1]:3129",
            "weir-0.weir.example:3129",
        ] {
            assert!(is_node_name(name), "{name}");
        }
        for name in [
            "a:", ":1", "a:65536", "a:+1", "::1:80", "[a]:1", "a b:1", "a\":1",
        ] {
            assert!(!is_node_name(name), "{name}");
        }
        for name in ["", "1a", "-a", "a b", "a:", "a/1", "ä", &"a".repeat(65)] {
            assert!(!is_node_name(name), "{name}");
        }
    }

    proptest! {
        #[test]
        fn written_fields_are_read_as_they_were(
            node in "[a-zA-Z][a-zA-Z0-9._-]{0,63}|[a-z0-9.]{1,20}:[0-9]{1,4}", mode in "[a-z]{1,9}", proof in "([A-Za-z0-9+/]{4}){0,9}", nonce in "([A-Za-z0-9+/]{4}){0,9}",
            state in "[a-z]{1,9}", outstanding: u32, miss_pressure: u32, placement: Option<u32>, is_own: bool, is_unlisted: bool, is_addressed: bool, tells: bool,
            process in prop::option::of("([A-Za-z0-9+/]{4}){1,9}"),
            session in "-|([A-Za-z0-9+/]{4}){1,9}", number in prop::option::of(0..1_000_000_000_000_000_u64),
        ) {
            let sequence = number.map(|number| PurgeSequence { session: &session, number });
            let to = is_addressed.then_some(&*node);
            let request = PeerRequest { node: &node, mode: &mode, proof: &proof, nonce: &nonce, to, state: tells.then_some(&*state), sequence };
            let mut out = Vec::new();
            request.write(&mut out);
            prop_assert_eq!(PeerRequest::read(&out), Some(request));
            let report = PeerReport { node: &node, state: &state, outstanding, miss_pressure, placement, proof: &proof, is_own, is_unlisted, process: process.as_deref() };
            out.clear();
            report.write(&mut out);
            prop_assert_eq!(PeerReport::read(&out), Some(report));
        }

        #[test]
        fn no_value_makes_the_reader_fail(value in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = (PeerRequest::read(&value), PeerReport::read(&value));
        }
    }
}
