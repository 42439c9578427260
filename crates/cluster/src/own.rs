//! Which of the members this node is.

use crate::member::Member;
use std::net::{IpAddr, SocketAddr};
use weir_net::is_local;
use weir_net::next_hops::HopKey;
use weir_net::resolver::{ResolveError, Resolver};
use weir_policy::route::{NodeState, Weight};

/// What this node knows of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnNode {
    /// Its name, if the configuration has one.
    pub name: Option<String>,
    /// Its peer listeners, as bound.
    pub listeners: Vec<SocketAddr>,
    /// Where others reach its peer listener, if that is not where it is bound.
    pub hop: Option<HopKey>,
    /// The weight that it announces.
    pub weight: Weight,
}

impl OwnNode {
    /// The member that it announces; `None` without a name or an address.
    pub(crate) fn member(&self, state: NodeState) -> Option<Member> {
        let bound = self
            .listeners
            .first()
            .map(|address| HopKey::new(&address.ip().to_string(), address.port()));
        Some(Member {
            name: self.name.clone()?,
            hop: self.hop.clone().or(bound)?,
            weight: self.weight,
            state,
        })
    }
}

impl OwnNode {
    /// What a member would have that is this node, as far as it has none: a phrase for a line.
    #[must_use]
    pub fn lacking(&self) -> String {
        if let Some(name) = &self.name {
            return format!("no member has the name `{name}`");
        }
        let listeners = self.listeners.iter();
        let listeners = listeners.map(|listener| match listener.ip().is_unspecified() {
            true => format!("an address of this machine with port {}", listener.port()),
            false => listener.to_string(),
        });
        let listeners: Vec<String> = listeners.collect();
        format!("no member has {}", listeners.join(" or "))
    }

    /// The number of the member that this node is: by name, or else the one whose address and port
    /// are those of a peer listener. A listener on all addresses has each one of this machine.
    ///
    /// # Errors
    ///
    /// It is none, and it could not be found out where one of them is.
    pub(crate) async fn find(
        &self,
        members: &[Member],
        resolver: &Resolver,
    ) -> Result<Option<usize>, String> {
        if let Some(name) = &self.name {
            return Ok(members.iter().position(|member| member.name == *name));
        }
        let mut unknown = None;
        for (index, member) in members.iter().enumerate() {
            let mut listeners = self.listeners.iter();
            if !listeners.any(|listener| listener.port() == member.hop.port) {
                continue;
            }
            match resolver.resolve(&member.hop.host).await {
                Ok(addresses) => {
                    let mut addresses = addresses.iter();
                    if addresses.any(|ip| self.listens_at(*ip, member.hop.port)) {
                        return Ok(Some(index));
                    }
                }
                Err(ResolveError::NotFound) => {}
                Err(error) => unknown = Some(format!("`{}`: {error}", member.hop.host)),
            }
        }
        unknown.map_or(Ok(None), Err)
    }

    fn listens_at(&self, ip: IpAddr, port: u16) -> bool {
        self.listeners.iter().any(|listener| {
            let is_here = listener.ip() == ip || (listener.ip().is_unspecified() && is_local(ip));
            listener.port() == port && is_here
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use weir_measure::Counters;
    use weir_net::resolver::ResolverConfig;

    #[test]
    fn node_is_the_member_of_its_name_or_at_the_address_of_its_listener() {
        let members = [("a", "192.0.2.1"), ("b", "127.0.0.1"), ("c", "localhost")];
        let members = members.map(|(name, host)| Member {
            name: name.into(),
            hop: HopKey::new(host, if name == "c" { 4002 } else { 4001 }),
            weight: Weight::ONE,
            state: NodeState::In,
        });
        let config = ResolverConfig::default();
        let resolver = Resolver::start(config, Arc::new(Counters::new())).unwrap();
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_all().build().unwrap();
        let check = |name: Option<&str>, listener: &str, expected: Option<usize>| {
            let own = OwnNode {
                name: name.map(str::to_owned),
                listeners: vec![listener.parse().unwrap()],
                hop: None,
                weight: Weight::ONE,
            };
            let found = runtime.block_on(own.find(&members, &resolver));
            assert_eq!(found, Ok(expected), "{name:?} at {listener}");
        };
        check(Some("a"), "127.0.0.1:4001", Some(0));
        check(Some("d"), "127.0.0.1:4001", None);
        check(None, "127.0.0.1:4001", Some(1));
        check(None, "0.0.0.0:4001", Some(1));
        check(None, "127.0.0.2:4001", None);
        check(None, "127.0.0.1:4002", Some(2));
        check(None, "127.0.0.1:4003", None);
    }

    #[test]
    fn node_that_is_no_member_says_what_was_looked_for() {
        let check = |name: Option<&str>, listeners: &[&str], expected: &str| {
            let own = OwnNode {
                name: name.map(str::to_owned),
                listeners: listeners.iter().map(|it| it.parse().unwrap()).collect(),
                hop: None,
                weight: Weight::ONE,
            };
            assert_eq!(own.lacking(), expected);
        };
        let at = "127.0.0.22:4000";
        check(Some("d"), &[at], "no member has the name `d`");
        check(None, &[at], "no member has 127.0.0.22:4000");
        let all = "no member has an address of this machine with port 4000 or [::1]:4001";
        check(None, &["0.0.0.0:4000", "[::1]:4001"], all);
    }
}
