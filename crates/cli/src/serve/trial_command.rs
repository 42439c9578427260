//! One command of `curl` to try the proxy by: it prints the head of a response, in which
//! Cache-Status shows what happened; the second time it may be a hit.

use super::BoundAddresses;
use crate::operate::reachable;
use std::net::{Ipv6Addr, SocketAddr};
use weir_proxy::config::{Config, HostPattern, Listener, ListenerKind, Login, Route, TokenFile};

/// The line with the command for the first listener of clients, and under TLS one that says what
/// to add to it; none where there is no such listener.
pub(super) fn lines(config: &Config, started: &BoundAddresses) -> String {
    let mut listeners = started.listeners.iter().zip(&config.listeners);
    let of_clients = listeners.find(|(bound, _)| bound.mode != ListenerKind::Peer);
    let Some((bound, configured)) = of_clients else {
        return String::new();
    };
    let address = reachable(bound.address);
    let is_gateway = bound.mode == ListenerKind::Gateway;
    let (command, with) = match (is_gateway, bound.tls.is_some()) {
        (false, false) => (forward(config, address), ""),
        (true, false) => (gateway(config, address), ""),
        (false, true) => {
            let name = first_name(configured, started);
            (forward_by_tls(config, address, name), FORWARD_NOTE)
        }
        (true, true) => {
            let name = first_name(configured, started);
            (gateway_by_tls(config, address, name), GATEWAY_NOTE)
        }
    };
    format!("  try      {command}\n{with}")
}

/// Below the command to a gateway with TLS.
const GATEWAY_NOTE: &str = "           with `--cacert FILE` too, or `-k`, unless a public authority issued the certificate\n";

/// Below the command to a forward proxy with TLS.
const FORWARD_NOTE: &str = "           with `--proxy-cacert FILE` too, or `--proxy-insecure`, unless a public authority issued \
     the certificate\n";

/// The first name of the first certificate of a listener, as a URL has it.
fn first_name(configured: &Listener, started: &BoundAddresses) -> Option<String> {
    let listener = configured.name_or_address();
    let mut rows = started.certificates.iter();
    let first = rows.find(|row| row.listener == listener)?;
    let name = first.names.first()?;
    Some(match name.parse::<Ipv6Addr>() {
        Ok(address) => format!("[{address}]"),
        Err(_) => below(name),
    })
}

/// A host that a pattern or the name of a certificate is for.
fn below(name: &str) -> String {
    name.replace('*', "www")
}

fn forward(config: &Config, address: SocketAddr) -> String {
    let login = login_flag(&config.login);
    format!("curl -sD- -o /dev/null -x http://{address} {login}http://example.com/")
}

fn forward_by_tls(config: &Config, address: SocketAddr, name: Option<String>) -> String {
    let (login, port) = (login_flag(&config.login), address.port());
    let proxy = match name {
        // an address needs no look-up
        Some(name) if name != address.ip().to_string() => {
            let ip = match address {
                SocketAddr::V4(address) => address.ip().to_string(),
                SocketAddr::V6(address) => format!("[{}]", address.ip()),
            };
            format!("--resolve {name}:{port}:{ip} -x https://{name}:{port}")
        }
        _ => format!("-x https://{address}"),
    };
    format!("curl -sSD- -o /dev/null {proxy} {login}http://example.com/")
}

fn gateway(config: &Config, address: SocketAddr) -> String {
    let route = config.routes.first();
    let host = route.and_then(|route| route.host.as_ref());
    let host = host.map(|host| format!("-H 'Host: {}' ", below(&host.to_string())));
    let path = route.map_or_else(|| "/".to_owned(), |route| route.path.to_string());
    format!(
        "curl -sD- -o /dev/null {}http://{address}{path}",
        host.unwrap_or_default()
    )
}

fn gateway_by_tls(config: &Config, address: SocketAddr, name: Option<String>) -> String {
    let host_of = |route: &Route| route.host.as_ref().map(|host| below(&host.to_string()));
    let routed = || config.routes.first().and_then(host_of);
    let host = name.or_else(routed);
    let host = host.unwrap_or_else(|| "example.com".to_owned());
    let mut routes = config.routes.iter();
    let route = routes.find(|route| is_for(route.host.as_ref(), &host));
    let path = route.map_or_else(|| "/".to_owned(), |route| route.path.to_string());
    format!("curl -sSD- -o /dev/null --connect-to ::{address} https://{host}{path}")
}

fn is_for(pattern: Option<&HostPattern>, host: &str) -> bool {
    match pattern {
        None => true,
        Some(HostPattern::Exact(exact)) => exact.as_str() == host,
        Some(HostPattern::Suffix(parent)) => {
            let before = host.strip_suffix(parent.as_str());
            before.is_some_and(|before| before.ends_with('.'))
        }
    }
}

/// The flag by which `curl` logs in to a proxy that asks for it; empty if it does not.
const fn login_flag(login: &Login) -> &'static str {
    match (&login.users_file, &login.tokens_file) {
        (TokenFile::At(_), _) => "-U USER ",
        (TokenFile::Off, TokenFile::At(_)) => "--proxy-header 'Proxy-Authorization: Bearer TOKEN' ",
        (TokenFile::Off, TokenFile::Off) => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_measure::live::ListenerCertificate;
    use weir_proxy::DiskTier;

    /// The lines of a proxy whose first listener has a certificate for these names.
    fn lines_with(toml_text: &str, names: &[&str]) -> String {
        let config: Config = toml::from_str(toml_text).unwrap();
        let listener = config.listeners[0].name_or_address();
        let certificate = ListenerCertificate {
            listener,
            names: names.iter().map(ToString::to_string).collect(),
            source: "file".to_owned(),
            from: "/a.pem".to_owned(),
            end_unix_s: None,
            order_unix_s: None,
            failures: None,
            last_order: None,
        };
        let started = BoundAddresses {
            listeners: config.listeners.clone(),
            admin: config.admin.address.clone(),
            disk: DiskTier {
                directories: Vec::new(),
                problem: None,
            },
            recorded: None,
            links: Vec::new(),
            certificates: vec![certificate],
        };
        lines(&config, &started)
    }

    #[test]
    fn trial_command_logs_in_where_the_proxy_asks_for_it() {
        for (files, login) in [
            ("users_file = '/u'\ntokens_file = '/t'", "-U USER "),
            (
                "tokens_file = '/t'",
                "--proxy-header 'Proxy-Authorization: Bearer TOKEN' ",
            ),
            ("", ""),
        ] {
            let expected = format!(
                "  try      curl -sD- -o /dev/null -x http://127.0.0.1:3128 {login}http://example.com/\n"
            );
            assert_eq!(lines_with(&format!("[login]\n{files}"), &[]), expected);
        }
    }

    #[test]
    fn trial_command_by_tls_is_for_the_first_name_of_the_certificate() {
        let listener = |mode: &str| {
            format!(
                "[[listener]]\naddress = '0.0.0.0:8443'\nmode = '{mode}'\n\
                 tls.certificates = [{{ chain = '/a.pem', key = '/a.key' }}]\n"
            )
        };
        let gateway = listener("gateway");
        let routes = "[[route]]\nhost = 'a.example'\npath = '/a'\nnext_hops = ['http://10.0.0.1']\n\
                      [[route]]\nhost = '*.b.example'\npath = '/b'\nnext_hops = ['http://10.0.0.1']\n";
        let gateway = format!("{gateway}{routes}");
        for (names, expected) in [
            (&["*.b.example", "a.example"][..], "https://www.b.example/b"),
            (&["c.example"], "https://c.example/"),
            (&["::1"], "https://[::1]/"),
            (&[], "https://a.example/a"),
        ] {
            let expected = format!(
                "  try      curl -sSD- -o /dev/null --connect-to ::127.0.0.1:8443 {expected}\n{GATEWAY_NOTE}"
            );
            assert_eq!(lines_with(&gateway, names), expected);
        }
        for (names, expected) in [
            (
                &["p.example"][..],
                "--resolve p.example:8443:127.0.0.1 -x https://p.example:8443",
            ),
            (&["127.0.0.1"], "-x https://127.0.0.1:8443"),
            (&[], "-x https://127.0.0.1:8443"),
        ] {
            let expected = format!(
                "  try      curl -sSD- -o /dev/null {expected} http://example.com/\n{FORWARD_NOTE}"
            );
            assert_eq!(lines_with(&listener("forward"), names), expected);
        }
    }
}
