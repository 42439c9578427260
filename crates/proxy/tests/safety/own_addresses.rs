//! The proxy's own listeners and its admin interface are no client's destination, whatever the
//! rules open (R70, R71).

use crate::support::{NameServer, PATIENCE, Running, ScriptedOrigin, localhost, span};
use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;
use std::time::Instant;
use weir_disk::files::SystemFiles;
use weir_proxy::config::{
    AdminAddress, Config, DnsServer, Listener, Mode, PathPrefix, Route, TokenFile,
};

/// Everything on this machine is open in IPv4, to requests and tunnels, and every name leads there.
fn open_all(config: &mut Config, names: &NameServer) {
    config.dns.servers = vec![DnsServer(names.address())];
    config.dns.ttl_min = span("0s");
    config.access.allow_destinations = ["127.0.0.0/8", "0.0.0.0/8", "::/128"]
        .map(|net| net.parse().expect("a network"))
        .to_vec();
    config.access.connect_ports = (1..=u16::MAX).collect();
}

/// Asks `proxy` for `host`'s `port` in each way; all are refused, and for the reason that it is
/// ours.
#[track_caller]
fn expect_ours(proxy: &Running, host: &str, port: u16) {
    for request in [
        format!("GET http://{host}:{port}/config HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n"),
        format!(
            "POST http://{host}:{port}/purge-all HTTP/1.1\r\nHost: {host}:{port}\r\nContent-Length: 0\r\n\r\n"
        ),
        format!("CONNECT {host}:{port} HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n"),
    ] {
        let response = proxy.client().ask(&*request);
        assert_eq!(response.status(), 403, "{request}");
        let status = response.head.field("proxy-status").expect("a reason");
        assert!(
            status.contains("error=destination_ip_prohibited"),
            "{request}: {status}"
        );
        let text = response.text();
        assert!(text.contains("own-address"), "{request}: {text}");
    }
}

const SPELLINGS: [&str; 9] = [
    "127.0.0.1",
    "0.0.0.0",
    "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]",
    "[::ffff:0.0.0.0]",
    "localhost",
    "LocalHost.",
    "x.localhost",
    "www.example.com",
];

#[test]
fn admin_interface_is_refused_as_destination_in_every_spelling() {
    let names = NameServer::new(Ipv4Addr::LOCALHOST);
    let proxy = Running::forward_with(|config| {
        open_all(config, &names);
        config.admin.address = AdminAddress::At(([127, 0, 0, 1], 0).into());
    });
    let admin = proxy.admin_address();
    for host in SPELLINGS {
        expect_ours(&proxy, host, admin.port());
    }
    // these are no hosts at all
    for host in ["127.1", "2130706433", "0x7f.1", "0177.0.0.1"] {
        let port = admin.port();
        let request = format!("GET http://{host}:{port}/ HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n");
        assert_eq!(proxy.client().ask(&*request).status(), 400, "{host}");
    }
    assert!(names.asked() > 0);
    // and the operator still reaches it
    assert!(proxy.admin("/healthz").contains("ok"));
}

#[test]
fn own_listener_is_refused_as_destination_in_every_spelling() {
    let names = NameServer::new(Ipv4Addr::LOCALHOST);
    let proxy = Running::forward_with(|config| open_all(config, &names));
    let port = proxy.address().port();
    for host in SPELLINGS {
        expect_ours(&proxy, host, port);
    }
}

#[test]
fn admin_interface_on_all_addresses_is_refused_at_each_of_them() {
    let folder = tempfile::tempdir().expect("a folder");
    let token = folder.path().join("token");
    std::fs::write(&token, "0123456789abcdef").expect("a file");
    std::fs::set_permissions(&token, std::fs::Permissions::from_mode(0o600)).expect("ours");
    let names = NameServer::new(Ipv4Addr::LOCALHOST);
    let proxy = Running::forward_with(|config| {
        open_all(config, &names);
        if let Some(ip) = interface() {
            let net = format!("{ip}/32").parse().expect("a network");
            config.access.allow_destinations.push(net);
        }
        config.admin.address = AdminAddress::At(([0, 0, 0, 0], 0).into());
        config.admin.token_file = TokenFile::At(token);
    });
    let port = proxy.admin_address().port();
    for host in SPELLINGS.into_iter().chain(["127.9.9.9"]) {
        expect_ours(&proxy, host, port);
    }
    if let Some(ip) = interface() {
        expect_ours(&proxy, &ip.to_string(), port);
    }
}

/// A listener where the proxy had one: each worker closes its own socket when it comes to it, after
/// the reload.
fn bind_once_closed(proxy: &Running, address: SocketAddr) -> TcpListener {
    let until = Instant::now() + PATIENCE;
    loop {
        match TcpListener::bind(address) {
            Err(error) if error.kind() == ErrorKind::AddrInUse && Instant::now() < until => {
                proxy.turn();
            }
            bound => return bound.expect("the proxy has closed it"),
        }
    }
}

#[test]
fn listener_opened_by_a_reload_is_refused_as_destination_until_closed() {
    let names = NameServer::new(Ipv4Addr::LOCALHOST);
    let proxy = Running::forward_with(|config| open_all(config, &names));
    proxy.reload(|config| {
        config.listeners.push(Listener {
            address: SocketAddr::from((Ipv4Addr::new(127, 0, 0, 2), 0)),
            mode: Mode::Forward.into(),
            name: None,
            tls: None,
            http2: None,
            proxy_protocol: Vec::new(),
        });
    });
    let added = proxy.listener(1);
    expect_ours(&proxy, "127.0.0.2", added.port());
    expect_ours(&proxy, "127.0.0.1", proxy.address().port());
    // once it is closed the port may be another's
    proxy.reload(|config| config.listeners.truncate(1));
    let other = bind_once_closed(&proxy, added);
    let mut client = proxy.client();
    client.send(format!(
        "GET http://{added}/ HTTP/1.1\r\nHost: {added}\r\n\r\n"
    ));
    let _connected = other.accept().expect("it is open to clients");
}

#[test]
fn next_hop_name_resolving_to_own_listener_is_refused_with_403() {
    let origin = ScriptedOrigin::new();
    let names = NameServer::new(Ipv4Addr::LOCALHOST);
    let proxy = Running::gateway_with(origin.address(), |config| open_all(config, &names));
    let port = proxy.address().port();
    proxy.reload(|config| {
        let hop = format!("http://www.example.com:{port}");
        config.routes[0].next_hops = vec![hop.parse().expect("a next hop")];
    });
    let response = proxy
        .client()
        .ask("GET / HTTP/1.1\r\nHost: www.example.com\r\n\r\n");
    assert_eq!(response.status(), 403);
    assert!(response.text().contains("own-address"));
    origin.expect_untouched();
}

#[test]
fn next_hop_at_a_listening_address_of_this_machine_is_refused_at_start() {
    // where there is no address but the loopback, another of that network is one of this machine
    // too
    let ip = interface().unwrap_or(IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2)));
    let port = xtask::ports::take().expect("a port");
    let start = |listens: Ipv4Addr| {
        let files: Arc<dyn weir_disk::files::Files> = Arc::new(SystemFiles);
        Running::gateway_on(SocketAddr::new(ip, port), &files, 0, |config| {
            config.listeners[0].address = SocketAddr::from((listens, port));
        })
    };
    let refused = start(Ipv4Addr::UNSPECIFIED)
        .err()
        .expect("refused")
        .to_string();
    assert!(
        refused.contains(&format!("cannot use the next hop http://{ip}:{port}"))
            && refused.contains("this proxy itself listens at"),
        "{refused}"
    );
    // another address of this machine is another server's
    assert!(start(Ipv4Addr::LOCALHOST).is_ok());
}

#[test]
fn reload_naming_the_proxy_as_its_own_next_hop_is_refused_entirely() {
    let origin = ScriptedOrigin::new();
    let proxy = Running::gateway(&origin);
    let port = proxy.address().port();
    let refused = proxy.try_reload(|config| {
        config.access.allow_destinations = vec![localhost()];
        config.routes.push(Route {
            path: "/back".parse::<PathPrefix>().expect("a path"),
            next_hops: vec![format!("http://127.0.0.1:{port}").parse().expect("a URL")],
            ..Route::default()
        });
    });
    let refused = refused.expect_err("it leads back");
    assert!(
        refused.contains("this proxy itself listens at"),
        "{refused}"
    );
    let mut client = proxy.client();
    client.send("GET /back HTTP/1.1\r\nHost: a\r\n\r\n");
    origin.answer("HTTP/1.1 204 No Content\r\n\r\n");
    assert_eq!(client.read_response().status(), 204);
}

/// An address of this machine that is not the loopback's, if it has one. Nothing is sent.
fn interface() -> Option<IpAddr> {
    let socket = UdpSocket::bind("0.0.0.0:0").ok()?;
    socket.connect("192.0.2.1:9").ok()?;
    let ip = socket.local_addr().ok()?.ip();
    (!ip.is_loopback() && !ip.is_unspecified()).then_some(ip)
}
