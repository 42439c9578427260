//! Clients that may use the proxy, as the start message names them.

use std::net::IpAddr;
use weir_proxy::config::{Access, Cidr, Listener, ListenerKind};

/// Networks that the start message names; of more it says how many there are.
const NETWORKS_SHOWN_MAX: usize = 6;

/// A network as an example, where the address of the listener says none.
const EXAMPLE_NETWORK: &str = "192.168.1.0/24";

/// The clients that may use the listeners; `None` if there are listeners for nodes alone.
pub(super) fn description(access: &Access, listeners: &[Listener]) -> Option<String> {
    let has = |mode| listeners.iter().any(|listener| listener.mode == mode);
    let gateway = "all that reach the gateway";
    match (has(ListenerKind::Forward), has(ListenerKind::Gateway)) {
        (false, false) => None,
        (false, true) => Some(gateway.to_owned()),
        (true, false) => Some(of_forward(access)),
        (true, true) => Some(format!("{}; {gateway}", of_forward(access))),
    }
}

/// What to do where the addresses of forward listeners and the clients do not fit each other.
pub(super) fn advice(access: &Access, listeners: &[Listener]) -> Option<String> {
    let forward = listeners.iter();
    let forward = forward.filter(|listener| listener.mode == ListenerKind::Forward);
    let (near, far): (Vec<&Listener>, Vec<&Listener>) =
        forward.partition(|listener| listener.address.ip().is_loopback());
    let named = |listeners: &[&Listener]| {
        let addresses = listeners.iter().map(|it| it.address.to_string());
        addresses.collect::<Vec<_>>().join(", ")
    };
    let other = access.clients.iter().find(|it| !is_this_machine(it));
    match (near.first(), far.first(), other) {
        (_, Some(first), None) => Some(format!(
            "{} can be reached from the network, but only this machine may use it; `--allow-client {}` serves that \
             network, too (access.clients)",
            named(&far),
            network_of(first.address.ip())
        )),
        (Some(first), None, Some(other)) => Some(format!(
            "{} may use the proxy, but {} can be reached from this machine alone; `--listen 0.0.0.0:{}` listens to the \
             network",
            shown(other),
            named(&near),
            first.address.port()
        )),
        _ => None,
    }
}

fn of_forward(access: &Access) -> String {
    let mut text = list(&access.clients);
    if !access.deny_clients.is_empty() {
        text.push_str(&format!(", without {}", list(&access.deny_clients)));
    }
    if access.clients.iter().all(is_this_machine) {
        text.push_str(" (this machine alone)");
    }
    text
}

fn list(networks: &[Cidr]) -> String {
    let named = networks.iter().take(NETWORKS_SHOWN_MAX).map(shown);
    let named = named.collect::<Vec<_>>().join(", ");
    match networks.len().saturating_sub(NETWORKS_SHOWN_MAX) {
        0 => named,
        more => format!("{named} and {more} more"),
    }
}

/// A network of one address without its prefix.
fn shown(network: &Cidr) -> String {
    let net = network.net();
    match net.prefix_len() == net.max_prefix_len() {
        true => net.addr().to_string(),
        false => net.to_string(),
    }
}

/// Whether all addresses of the network are loopback.
fn is_this_machine(network: &Cidr) -> bool {
    let net = network.net();
    net.network().is_loopback() && net.broadcast().is_loopback()
}

/// The network that a listener at `address` is probably in.
fn network_of(address: IpAddr) -> String {
    match address {
        IpAddr::V4(v4) if v4.is_private() => {
            let [a, b, c, _] = v4.octets();
            format!("{a}.{b}.{c}.0/24")
        }
        _ => EXAMPLE_NETWORK.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_proxy::config::Config;

    fn config(toml_text: &str) -> Config {
        toml::from_str(toml_text).unwrap()
    }

    #[test]
    fn description_names_clients_without_those_that_are_denied() {
        let check = |clients: &str, expected: &str| {
            let config = config(&format!("[access]\n{clients}"));
            let found = description(&config.access, &config.listeners);
            assert_eq!(found.as_deref(), Some(expected));
        };
        check("", "127.0.0.0/8, ::1 (this machine alone)");
        check("clients = [\"10.0.0.0/8\"]", "10.0.0.0/8");
        check(
            "clients = [\"10.0.0.0/8\", \"fd00::7\"]\ndeny_clients = [\"10.0.0.1\"]",
            "10.0.0.0/8, fd00::7, without 10.0.0.1",
        );
        let many: Vec<String> = (1..=9).map(|it| format!("10.{it}.0.0/16")).collect();
        let six = many[..6].join(", ");
        check(&format!("clients = {many:?}"), &format!("{six} and 3 more"));
        // the network has addresses beyond loopback
        check("clients = [\"126.0.0.0/7\"]", "126.0.0.0/7");
    }

    #[test]
    fn advice_is_given_where_listeners_and_clients_do_not_fit() {
        let check = |listen: &str, clients: &str, expected: Option<&str>| {
            let text =
                format!("access.clients = {clients}\n[[listener]]\naddress = \"{listen}\"\n");
            let config = config(&text);
            let found = advice(&config.access, &config.listeners);
            assert_eq!(found.as_deref(), expected, "{listen} {clients}");
        };
        let (machine, lan) = (r#"["127.0.0.1", "::1"]"#, r#"["127.0.0.1", "10.0.0.0/8"]"#);
        check("127.0.0.1:3128", machine, None);
        check("0.0.0.0:3128", lan, None);
        check(
            "10.2.3.4:3128",
            machine,
            Some(
                "10.2.3.4:3128 can be reached from the network, but only this machine may use it; `--allow-client \
                 10.2.3.0/24` serves that network, too (access.clients)",
            ),
        );
        check(
            "127.0.0.1:3128",
            lan,
            Some(
                "10.0.0.0/8 may use the proxy, but 127.0.0.1:3128 can be reached from this machine alone; `--listen \
                 0.0.0.0:3128` listens to the network",
            ),
        );
    }
}
