//! The members of a cluster, and which lists of them are good.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use weir_net::next_hops::HopKey;
use weir_policy::route::{NODES_MAX, NodeState, Weight};
use weir_semantics::{Authority, NODE_NAME_BYTES_MAX, is_node_name};

/// The most members of a cluster: the most nodes that a policy looks at.
pub const MEMBERS_MAX: usize = NODES_MAX;

/// The weight of a member for which none is set: shares can be halved and doubled.
pub const WEIGHT_DEFAULT: u16 = 100;

/// One node of a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Its name: which targets it has follows from that.
    pub name: String,
    /// Its peer listener.
    pub hop: HopKey,
    /// Its share of the targets, relative to the weights of the others.
    pub weight: Weight,
    /// Where it is in its life as a member.
    pub state: NodeState,
}

/// Which part of a member is bad.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemberPart {
    /// Its name.
    Name,
    /// Where its peer listener is.
    Url,
    /// The number of members.
    Count,
}

/// Why a list of members is refused.
///
/// `Display` is the problem, without the place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadMember {
    /// The number of the member in the list, from 0.
    pub index: usize,
    /// The bad part of it.
    pub part: MemberPart,
    /// The problem, with the value in back quotes.
    pub problem: String,
}

impl fmt::Display for BadMember {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.problem)
    }
}

impl std::error::Error for BadMember {}

/// Refuses a list with a member twice, a name that is none, or more than [`MEMBERS_MAX`] members.
///
/// # Errors
///
/// The first bad member.
pub fn check(members: &[Member]) -> Result<(), BadMember> {
    let bad = |index, part, problem| {
        Err(BadMember {
            index,
            part,
            problem,
        })
    };
    if members.len() > MEMBERS_MAX {
        let problem = format!("{} members are more than {MEMBERS_MAX}", members.len());
        return bad(MEMBERS_MAX, MemberPart::Count, problem);
    }
    let (mut names, mut places) = (BTreeSet::new(), BTreeMap::new());
    for (index, member) in members.iter().enumerate() {
        let name = &member.name;
        if !is_node_name(name) {
            let problem = format!(
                "`{name}` is not a name for a node: use a letter, then letters, digits, `-`, `_` and `.`, at most {NODE_NAME_BYTES_MAX} characters"
            );
            return bad(index, MemberPart::Name, problem);
        }
        if !names.insert(name) {
            let problem = format!("`{name}` is the name of an earlier member already");
            return bad(index, MemberPart::Name, problem);
        }
        let hop = &member.hop;
        if let Some(earlier) = places.insert((&hop.host, hop.port), name) {
            let problem = format!("http://{hop} is the url of member `{earlier}` already");
            return bad(index, MemberPart::Url, problem);
        }
    }
    Ok(())
}

/// Why a text is not the URL of a peer listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidUrl(String);

impl fmt::Display for InvalidUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for InvalidUrl {}

/// The next hop of a URL such as `http://10.0.0.1:3129`; without a port it is 80.
///
/// # Errors
///
/// Another scheme, a path, a user name, or no host.
pub fn parse_url(text: &str) -> Result<HopKey, InvalidUrl> {
    let invalid = |why: &str| InvalidUrl(format!("`{text}` {why}"));
    let Some(rest) = text.strip_prefix("http://") else {
        return Err(invalid("is not a URL of scheme http"));
    };
    let authority = rest.strip_suffix('/').unwrap_or(rest);
    if authority.contains(['/', '?', '#', '@']) {
        return Err(invalid(
            "has more than host and port, such as http://10.0.0.1:3129",
        ));
    }
    let parsed = Authority::parse(authority);
    let authority = parsed.map_err(|error| invalid(&format!("is no URL: {error}")))?;
    match authority.port {
        Some(0) => Err(invalid("has port 0")),
        port => {
            let host = authority.host.as_str();
            Ok(HopKey::new(host, port.unwrap_or(80)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(name: &str, port: u16) -> Member {
        Member {
            name: name.into(),
            hop: HopKey::new("10.0.0.1", port),
            weight: Weight::ONE,
            state: NodeState::In,
        }
    }

    #[test]
    fn list_with_a_name_or_an_address_twice_or_a_bad_name_is_refused_with_its_number() {
        let check_list = |members: &[Member], expected: Option<(usize, MemberPart, &str)>| {
            let found = check(members).err();
            let found = found.map(|bad| (bad.index, bad.part, bad.problem));
            match (found, expected) {
                (None, None) => {}
                (Some((index, part, problem)), Some((at, of, text))) => {
                    assert_eq!((index, part), (at, of));
                    assert!(problem.contains(text), "{problem}");
                }
                (found, expected) => panic!("{found:?}, not {expected:?}"),
            }
        };
        check_list(&[], None);
        check_list(&[member("a", 1), member("b", 2)], None);
        let twice = [member("a", 1), member("b", 2), member("a", 3)];
        check_list(
            &twice,
            Some((2, MemberPart::Name, "`a` is the name of an earlier member")),
        );
        let twice = [member("a", 1), member("b", 1)];
        check_list(&twice, Some((1, MemberPart::Url, "of member `a`")));
        check_list(&[member("a b", 1)], Some((0, MemberPart::Name, "`a b`")));
        let many = |count: u16| -> Vec<Member> {
            let member = |number| member(&format!("n{number}"), number + 1);
            (0..count).map(member).collect()
        };
        check_list(&many(1024), None);
        check_list(&many(1025), Some((1024, MemberPart::Count, "1025 members")));
    }

    #[test]
    fn url_of_a_member_has_scheme_host_and_port_alone() {
        let check_url = |text: &str, expected: Option<(&str, u16)>| {
            let found = parse_url(text).ok();
            let expected = expected.map(|(host, port)| HopKey::new(host, port));
            assert_eq!(found, expected, "{text}");
        };
        check_url("http://10.0.0.1:3129", Some(("10.0.0.1", 3129)));
        check_url("http://A.example/", Some(("a.example", 80)));
        check_url("http://[::1]:1", Some(("::1", 1)));
        for bad in [
            "",
            "a:1",
            "https://a:1",
            "http://",
            "http://a:0",
            "http://a:65536",
            "http://u@a:1",
            "http://a:1/x",
            "http://a?b",
        ] {
            check_url(bad, None);
        }
    }
}
