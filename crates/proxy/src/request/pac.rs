//! The file by which browsers and systems find the proxy (proxy auto-configuration, PAC).
//!
//! No RFC has it; browsers agree on `FindProxyForURL` of Netscape's. The script calls none of the
//! functions that browsers define beside it: what they take for a plain host name differs, and some
//! ask the DNS.

use std::net::IpAddr;
use weir_semantics::{Authority, HostName, Scheme};

/// Its media type.
pub(crate) const PAC_TYPE: &str = "application/x-ns-proxy-autoconfig";
/// Its path on forward listeners and on the admin address.
pub(crate) const PAC_PATH: &str = "/proxy.pac";

/// The script that has a client use the proxy at `host` and `port`, by TLS if it `is_tls`, for all
/// hosts but its own ones: `localhost`, loopback addresses and names without a dot.
pub(crate) fn script(host: &HostName, port: u16, is_tls: bool) -> Option<String> {
    // what clients speak to it
    let spoken = if is_tls { "HTTPS" } else { "PROXY" };
    let host = host.as_str();
    // no other byte comes out of the parser; a quote here would be a script of the client
    let is_plain = |byte: u8| {
        byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_' | b':' | b'[' | b']')
    };
    if !host.bytes().all(is_plain) {
        return None;
    }
    Some(format!(
        "\
function FindProxyForURL(url, host) {{
  host = host.toLowerCase().replace(/^\\[|\\]$/g, \"\").replace(/\\.$/, \"\");
  if (host.indexOf(\".\") < 0 && host.indexOf(\":\") < 0) return \"DIRECT\";
  if (/(^|\\.)localhost$/.test(host)) return \"DIRECT\";
  if (/^127(\\.[0-9]+){{3}}$/.test(host)) return \"DIRECT\";
  if (/^(0*:)*:?0*1$/.test(host) || /^::ffff:127\\./.test(host)) return \"DIRECT\";
  return \"{spoken} {host}:{port}\";
}}
"
    ))
}

/// Host and port by which a client has reached the proxy: as its `Host` says, else `own`, the
/// address of the listener. `None` if neither can be reached.
pub(crate) fn authority_of(
    host: Option<&[u8]>,
    own: &Authority,
    is_tls: bool,
) -> Option<(HostName, u16)> {
    let usual = if is_tls { Scheme::Https } else { Scheme::Http };
    let usual = usual.default_port();
    let sent = host.and_then(|host| str::from_utf8(host).ok());
    let sent = sent.filter(|host| !host.is_empty());
    match sent.map(Authority::parse) {
        Some(Ok(authority)) => Some((authority.host, authority.port.unwrap_or(usual))),
        Some(Err(_)) => None,
        None if own.host.ip().is_some_and(|ip: IpAddr| ip.is_unspecified()) => None,
        None => Some((own.host, own.port.unwrap_or(usual))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proxy_is_the_one_that_the_client_has_reached() {
        let own = Authority::parse("192.0.2.1:3128").expect("an address");
        let any = Authority::parse("0.0.0.0:3128").expect("an address");
        let check = |host: Option<&str>, own: &Authority, expected: Option<&str>| {
            let found = authority_of(host.map(str::as_bytes), own, false);
            let found = found.and_then(|(host, port)| script(&host, port, false));
            let found = found.map(|script| {
                let proxy = script.split("\"PROXY ").nth(1).expect("a proxy");
                proxy.split('"').next().expect("a proxy").to_owned()
            });
            assert_eq!(found.as_deref(), expected, "{host:?}");
        };
        check(Some("Proxy.example:3128"), &any, Some("proxy.example:3128"));
        check(Some("proxy.example"), &any, Some("proxy.example:80"));
        check(Some("[2001:db8::1]:3128"), &any, Some("[2001:db8::1]:3128"));
        check(None, &own, Some("192.0.2.1:3128"));
        let tls = authority_of(Some(b"proxy.example"), &own, true);
        let tls = tls.and_then(|(host, port)| script(&host, port, true));
        assert!(tls.is_some_and(|script| script.contains("\"HTTPS proxy.example:443\"")));
        check(Some(""), &own, Some("192.0.2.1:3128"));
        check(None, &any, None);
        for hostile in [
            "a\"; alert(1); \"",
            "a\\",
            "a\n",
            "a:80\"",
            "a b",
            "a'",
            "a:0",
            "u@a",
            "a;b",
            "\u{2028}",
            "<script>",
        ] {
            check(Some(hostile), &own, None);
        }
    }
}
