//! For whom a request is forwarded, as the next hop is told (`weir_policy::forwarded`).

use crate::log::client::{ClientFacts, ForPeers};
use crate::settings::Settings;
use std::net::{IpAddr, SocketAddr};
use weir_policy::destination::ClientNetwork;
use weir_policy::forwarded::{ClientHop, ClientName, ForwardedRules, is_claim};
use weir_policy::{Digest, KeyHasher, Secret};
use weir_semantics::{FieldLine, Target};
use weir_wire::write;

/// What the next hop is told of whom a request is forwarded for.
#[derive(Clone, Copy)]
pub(crate) struct WhoAsked<'a> {
    rules: &'a ForwardedRules,
    client: Client,
    target: Target<'a>,
    secret: &'a Secret,
}

/// The client that a request with these `fields` counts for where each has a share of something:
/// the one that a trusted proxy names, or the one that sent it. `None` if it is of another node,
/// the operator or a module.
pub(crate) fn counted_client(
    settings: &Settings,
    client: ClientFacts<'_>,
    fields: &[FieldLine<'_>],
) -> Option<ClientNetwork> {
    match Client::of(client) {
        Client::At(address) => {
            let rules = settings.forwarded(client.listener.mode);
            let counted = rules.counted_client(address.ip(), fields);
            Some(ClientNetwork::of(counted))
        }
        Client::Node | Client::None => None,
    }
}

/// The client of a request.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Client {
    At(SocketAddr),
    /// Another node of the cluster, which has said for whom it asks.
    Node,
    /// None: it is a request of the operator, or of a module.
    None,
}

impl Client {
    fn of(client: ClientFacts<'_>) -> Self {
        let listener = client.listener;
        match (listener.peers, &listener.name) {
            (ForPeers::No, Some(_)) => Self::At(client.peer),
            (ForPeers::No, None) => Self::None,
            (ForPeers::Listener | ForPeers::Member, _) => Self::Node,
        }
    }
}

impl<'a> WhoAsked<'a> {
    pub(crate) fn of(
        settings: &'a Settings,
        client: ClientFacts<'_>,
        target: Target<'a>,
        secret: &'a Secret,
    ) -> Self {
        Self {
            rules: settings.forwarded(client.listener.mode),
            client: Client::of(client),
            target,
            secret,
        }
    }

    /// Whether what is told selects a variant of what is stored, whatever `Vary` nominates: only of
    /// proxies that are believed there is more to tell than of other clients.
    pub(crate) fn variant(&self, fields: &[FieldLine<'_>]) -> Option<Digest> {
        if self.rules.trusted.is_empty() || !has_claims(fields) {
            return None;
        }
        let made = self.lines(fields);
        let made = made.iter().map(|(name, value)| FieldLine::new(name, value));
        let others = fields.iter().filter(|line| !self.replaces(line.name));
        let sent: Vec<FieldLine<'_>> = others.copied().chain(made).collect();
        let variant = self
            .rules
            .variant(&sent, &self.authority(), self.target.scheme)?;
        let mut hasher = KeyHasher::new(self.secret);
        hasher.part(&variant);
        Some(hasher.finish())
    }

    /// The fields that are sent, in the place of those with their names, made of the claims among
    /// `fields`.
    fn lines(&self, claims: &[FieldLine<'_>]) -> Vec<(&'static str, Vec<u8>)> {
        if self.client == Client::Node {
            return Vec::new();
        }
        self.with_hop(|hop| {
            let sent = self.rules.sent.iter();
            sent.filter_map(|field| Some((field.as_str(), self.rules.value(*field, claims, hop)?)))
                .collect()
        })
    }

    /// Appends these fields.
    pub(crate) fn write_lines(&self, fields: &[FieldLine<'_>], out: &mut Vec<u8>) {
        if self.client == Client::Node {
            return;
        }
        // nearly every request
        if !has_claims(fields) {
            return self.with_hop(|hop| self.rules.write_own(hop, out));
        }
        for (name, value) in self.lines(fields) {
            write::field(out, name, &value);
        }
    }

    /// Whether the field with this name is among them.
    pub(crate) fn replaces(&self, name: &str) -> bool {
        self.client != Client::Node && self.rules.field(name).is_some()
    }

    /// What is sent of the field with this name; `None` if that is what `fields` have.
    pub(crate) fn sent(&self, name: &str, fields: &[FieldLine<'_>]) -> Option<Option<Vec<u8>>> {
        if self.client == Client::Node {
            return None;
        }
        let field = self.rules.field(name)?;
        Some(self.with_hop(|hop| self.rules.value(field, fields, hop)))
    }

    fn with_hop<T>(&self, use_it: impl FnOnce(&ClientHop<'_>) -> T) -> T {
        let client = match self.client {
            Client::At(client) => Some(client),
            Client::Node | Client::None => None,
        };
        let named = client.filter(|_| self.rules.client == ClientName::Obfuscated);
        let identifier = named.map(|client| self.identifier(client.ip()));
        use_it(&ClientHop {
            client,
            identifier: identifier.as_deref().unwrap_or_default(),
            authority: &self.authority(),
            scheme: self.target.scheme,
        })
    }

    /// 16 hexadecimal digits that stand for an address.
    fn identifier(&self, client: IpAddr) -> String {
        let mut hasher = KeyHasher::new(self.secret);
        hasher.part(b"forwarded client");
        hasher.part(client.to_canonical().to_string().as_bytes());
        format!("{:016x}", hasher.finish().0)
    }

    fn authority(&self) -> Vec<u8> {
        let mut authority = Vec::with_capacity(64);
        self.target.write_authority(&mut authority);
        authority
    }
}

pub(super) fn has_claims(fields: &[FieldLine<'_>]) -> bool {
    fields.iter().any(|line| is_claim(line.name))
}

/// The lines of a head without those that a client may not send; `None` if it has none of these.
/// Part of the way of every hit.
#[inline]
pub(crate) fn without_claims<'a>(
    settings: &Settings,
    client: &ClientFacts<'_>,
    fields: &[FieldLine<'a>],
) -> Option<Vec<FieldLine<'a>>> {
    let rules = settings.forwarded(client.listener.mode);
    let address = client.peer.ip();
    let is_refused = |line: &FieldLine<'_>| rules.refuses(address, line.name);
    if client.listener.peers != ForPeers::No || !fields.iter().any(is_refused) {
        return None;
    }
    let others = fields.iter().filter(|line| !is_refused(line));
    Some(others.copied().collect())
}
