//! The answer to a client that may not use the proxy.
//!
//! The content is one sentence that names the client as the proxy sees it, and what its operator
//! can do. Package managers print the reason phrase and not the content, so that names the setting.

use crate::request::answer::{Answer, AnswerReason};
use ipnet::IpNet;
use std::net::IpAddr;
use weir_policy::destination::ClientDenial;

/// Prefix of a private IPv4 network that is proposed: what home and office routers give out.
const NETWORK_BITS_V4: u8 = 24;
/// The same of IPv6: one link (RFC 4291 §2.5.4).
const NETWORK_BITS_V6: u8 = 64;

/// 403 to `client`, which may not use the proxy, and why.
#[cold]
pub(crate) fn denied_client(client: IpAddr, why: ClientDenial) -> Answer {
    let client = client.to_canonical();
    let (text, phrase) = match why {
        ClientDenial::NotAllowed => (
            format!(
                "This proxy does not serve {client}: its operator can allow it with `weir serve \
                 --allow-client {}` or access.clients.",
                proposed_network(client)
            ),
            "Client not allowed, see access.clients",
        ),
        ClientDenial::Rule => (
            format!(
                "This proxy does not serve {client}: its operator denies it (access.deny_clients)."
            ),
            "Client denied, see access.deny_clients",
        ),
    };
    Answer::closing(403, AnswerReason::denied(text)).with_phrase(phrase)
}

/// What to allow for a client: its private network; elsewhere itself alone, as its neighbours are
/// strangers.
fn proposed_network(client: IpAddr) -> String {
    let bits = match client {
        IpAddr::V4(v4) if v4.is_private() || v4.is_link_local() => NETWORK_BITS_V4,
        IpAddr::V6(v6) if v6.is_unique_local() || v6.is_unicast_link_local() => NETWORK_BITS_V6,
        _ => return client.to_string(),
    };
    IpNet::new_assert(client, bits).trunc().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(client: &str, why: ClientDenial, expected: &str) {
        let answer = denied_client(client.parse().unwrap(), why);
        let content = answer.content();
        assert_eq!(content, format!("{expected}\n"));
        assert!(content.len() < 200, "{content}");
    }

    #[test]
    fn denied_client_is_told_in_one_sentence_what_to_allow() {
        let allow = |client: &str, network: &str| {
            let expected = format!(
                "This proxy does not serve {client}: its operator can allow it with `weir serve \
                 --allow-client {network}` or access.clients."
            );
            check(client, ClientDenial::NotAllowed, &expected);
        };
        allow("192.168.1.7", "192.168.1.0/24");
        allow("10.9.8.7", "10.9.8.0/24");
        allow("203.0.113.7", "203.0.113.7");
        allow("fd00:1:2:3:4:5:6:7", "fd00:1:2:3::/64");
        let global = "2001:db8:1111:2222:3333:4444:5555:6666";
        allow(global, global);
        check(
            "10.1.0.7",
            ClientDenial::Rule,
            "This proxy does not serve 10.1.0.7: its operator denies it (access.deny_clients).",
        );
    }

    #[test]
    fn mapped_client_is_named_by_its_ipv4_address() {
        let answer = denied_client(
            "::ffff:192.168.1.7".parse().unwrap(),
            ClientDenial::NotAllowed,
        );
        assert!(answer.content().contains("serve 192.168.1.7:"));
    }
}
