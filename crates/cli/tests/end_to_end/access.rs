//! Who may use the proxy, and what it may reach: by default nothing on this machine.

mod balancer;
mod told_next_hops;

use crate::support::{Config, Curl, Nginx, RawClient, Reply, Weir};
use std::net::TcpListener;
use std::process::{Command, Output};

/// Listens on loopback, and is never to be connected to.
struct Canary(TcpListener);

impl Canary {
    fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        listener.set_nonblocking(true).expect("it can be set");
        Self(listener)
    }

    fn port(&self) -> u16 {
        self.0.local_addr().expect("it is bound").port()
    }

    #[track_caller]
    fn is_untouched(&self, by: &str) {
        assert!(self.0.accept().is_err(), "`{by}` reached this machine");
    }
}

fn ask(weir: &Weir, request_line: &str) -> Reply {
    let mut client = RawClient::connect(weir.address());
    client.send(format!("{request_line} HTTP/1.1\r\nHost: x\r\n\r\n"));
    client.reply()
}

/// Names by which a page, or a host of the network, may call this machine.
const SPELLINGS: [&str; 30] = [
    "127.0.0.1",
    "127.0.0.2",
    "127.1",
    "127.0.1",
    "2130706433",
    "0x7f.1",
    "0x7f000001",
    "0x7F.0x0.0x0.0x1",
    "0177.0.0.1",
    "017700000001",
    "127.0.0.1.",
    "127.0.0.01",
    "[::1]",
    "[0:0:0:0:0:0:0:1]",
    "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]",
    "[::127.0.0.1]",
    "[64:ff9b::7f00:1]",
    "[2002:7f00:1::]",
    "0.0.0.0",
    "0",
    "[::]",
    "localhost",
    "LOCALHOST",
    "localhost.",
    "any.localhost",
    "127.0.0.1%00.example.com",
    "%31%32%37.0.0.1",
    "user@127.0.0.1",
    "\u{ff11}27.0.0.1",
];

#[test]
fn loopback_is_refused_in_every_spelling() {
    let canary = Canary::new();
    let port = canary.port();
    let config = Config::guarded().set("access.connect_ports", &format!("[{port}]"));
    let weir = Weir::serve(&config);
    for host in SPELLINGS {
        for request in [
            format!("GET http://{host}:{port}/"),
            format!("CONNECT {host}:{port}"),
        ] {
            let reply = ask(&weir, &request);
            // the answer comes after the decision: a connection would be waiting by now
            canary.is_untouched(&request);
            assert!(
                matches!(reply.status(), 400 | 403),
                "{request}: {}",
                reply.head
            );
            let status = reply.field("proxy-status");
            assert!(
                status.starts_with("weir;error="),
                "{request}: {}",
                reply.head
            );
        }
    }
    let plain = ask(&weir, &format!("GET http://127.0.0.1:{port}/")).expect(403);
    let status = plain.field("proxy-status");
    assert!(
        status.contains("error=destination_ip_prohibited"),
        "{status}"
    );
    assert!(
        plain.text().contains("--allow-destination"),
        "{}",
        plain.text()
    );
    let name = ask(&weir, &format!("GET http://localhost:{port}/")).expect(403);
    assert!(
        name.field("proxy-status")
            .contains("destination_ip_prohibited"),
        "{}",
        name.head
    );
}

#[test]
fn link_local_private_and_multicast_addresses_are_refused_unconnected() {
    let weir = Weir::serve(&Config::guarded());
    for host in [
        "169.254.169.254",
        "[::ffff:169.254.169.254]",
        "[fd00:ec2::254]",
        "10.0.0.1",
        "192.168.1.1",
        "172.16.0.1",
        "100.64.0.1",
        "[fe80::1]",
        "[fc00::1]",
        "224.0.0.1",
        "255.255.255.255",
    ] {
        let reply = ask(&weir, &format!("GET http://{host}/latest/meta-data/")).expect(403);
        let status = reply.field("proxy-status");
        assert!(
            status.contains("destination_ip_prohibited"),
            "{host}: {status}"
        );
    }
    let opened = weir.metrics();
    assert_eq!(opened.count("weir_next_hop_connections_open"), 0);
}

#[test]
fn allow_destination_opens_exactly_that_address() {
    let nginx = Nginx::start("");
    let canary = Canary::new();
    let flags = ["--allow-destination", "127.0.0.1"];
    let weir = Weir::serve_with(&Config::guarded(), &flags);
    Curl::through(weir.address())
        .fetch(&nginx.url("/connection"))
        .reply()
        .expect(200);
    let other = format!("http://127.0.0.2:{}/", canary.port());
    assert_eq!(weir.get(&other).status(), 403);
    // the name has two addresses, of which one is allowed
    let by_name = format!("http://localhost:{}/connection", nginx.address.port());
    weir.get(&by_name).expect(200);
}

#[test]
fn configured_next_hop_on_loopback_needs_no_allow_destination() {
    let nginx = Nginx::start("");
    let weir = Weir::serve(&Config::gateway(&[&nginx.origin()]));
    let reply = Curl::direct().fetch(&weir.url("/connection")).reply();
    reply.expect(200);
}

#[test]
fn client_outside_access_clients_is_refused_with_403() {
    let nginx = Nginx::start("");
    let config = Config::forward().set("access.clients", "[\"127.0.0.2\"]");
    let weir = Weir::serve(&config);
    let reply = weir.get(&nginx.url("/connection")).expect(403);
    assert!(
        reply.field("proxy-status").contains("http_request_denied"),
        "{}",
        reply.head
    );
    assert!(
        reply
            .head
            .starts_with("HTTP/1.1 403 Client not allowed, see access.clients\n"),
        "{}",
        reply.head
    );
    assert_eq!(
        reply.text(),
        "This proxy does not serve 127.0.0.1: its operator can allow it with `weir serve --allow-client 127.0.0.1` or \
         access.clients.\n"
    );
    let curl = Curl::through(weir.address()).args(["--interface", "127.0.0.2"]);
    curl.fetch(&nginx.url("/connection")).reply().expect(200);
}

#[test]
fn destination_disallowed_by_reload_is_refused_despite_an_idle_connection() {
    let nginx =
        Nginx::start("location /id { add_header Cache-Control max-age=3600; return 200 a; }");
    let open = Config::forward();
    let mut weir = Weir::serve(&open);
    let mut client = RawClient::connect(weir.address());
    client.get(&nginx.url("/connection")).expect(200);
    weir.rewrite(&open.clone().set("access.allow_destinations", "[]").text());
    weir.signal(crate::support::Signal::HangUp);
    weir.wait_for("config reloaded");
    // the connection of the client goes on, the idle one to nginx is not used
    let reply = client.get(&nginx.url("/connection"));
    assert_eq!(reply.status(), 403, "{}", reply.head);
}

#[test]
fn allow_client_adds_to_the_clients_of_the_file() {
    let nginx = Nginx::start("");
    let config = Config::forward().set("access.clients", "[\"127.0.0.2\"]");
    let weir = Weir::serve_with(&config, &["--allow-client", "127.0.0.3"]);
    let url = nginx.url("/connection");
    assert_eq!(weir.get(&url).status(), 403);
    for client in ["127.0.0.2", "127.0.0.3"] {
        let curl = Curl::through(weir.address()).args(["--interface", client]);
        curl.fetch(&url).reply().expect(200);
    }
}

/// What a program says, that is to fail.
#[track_caller]
fn complaint(command: &mut Command, package: &str) -> String {
    let Output {
        status,
        stdout,
        stderr,
    } = command
        .output()
        .unwrap_or_else(|error| panic!("{error}; it is in Debian's package `{package}`"));
    assert!(!status.success());
    let said = [stdout, stderr].concat();
    String::from_utf8_lossy(&said).into_owned()
}

/// What apt, pip and curl print of the refusal of a client, of a URL and of a tunnel.
#[test]
fn refusal_of_a_client_fits_the_output_of_apt_pip_and_curl() {
    let config = Config::guarded().set("access.clients", "[\"127.0.0.2\"]");
    let weir = Weir::serve(&config);
    let proxy = format!("http://{}", weir.address());
    let file = weir.file("fetched");
    let sentence = "Client not allowed, see access.clients";

    let apt = |option: &str, url: &str| {
        let mut apt = Command::new("/usr/lib/apt/apt-helper");
        apt.args(["-o", "Acquire::Retries=0", "-o", option]);
        apt.args(["download-file", url]).arg(&file);
        complaint(&mut apt, "apt")
    };
    let said = apt(
        &format!("Acquire::http::Proxy={proxy}"),
        "http://a.example/a.deb",
    );
    assert!(said.contains(sentence), "{said}");
    let said = apt(
        &format!("Acquire::https::Proxy={proxy}"),
        "https://a.example/a.deb",
    );
    assert!(said.contains(sentence), "{said}");

    for url in [
        "http://a.example/a-1-py3-none-any.whl",
        "https://a.example/a-1-py3-none-any.whl",
    ] {
        let mut pip = Command::new("pip3");
        pip.args([
            "--isolated",
            "--disable-pip-version-check",
            "download",
            "--no-deps",
        ]);
        pip.args(["--no-cache-dir", "--retries", "0", "--proxy", &proxy, url]);
        let said = complaint(pip.current_dir(weir.folder()), "python3-pip");
        assert!(said.contains(sentence), "{said}");
    }

    let curl = Curl::through(weir.address()).args(["-f"]);
    let said = curl.fetch("http://a.example/").stderr;
    assert!(said.contains("403"), "{said}");
}

#[test]
fn start_message_names_clients_and_what_to_do_on_the_network() {
    let config = Config::guarded()
        .without_listeners()
        .listener("0.0.0.0:0", "forward");
    let mut weir = Weir::serve(&config);
    let note = weir.wait_for("note: ");
    assert!(note.contains("may use it; `--allow-client "), "{note}");
    assert!(
        weir.said()
            .contains("  clients  127.0.0.0/8, ::1 (this machine alone)")
    );
    let flags = ["--allow-client", "192.0.2.0/24"];
    let mut weir = Weir::serve_with(&config, &flags);
    assert!(
        weir.said()
            .contains("  clients  127.0.0.0/8, ::1, 192.0.2.0/24\n")
    );
    assert_eq!(weir.stop().code(), Some(0));
    assert!(!weir.said().contains("--allow-client"), "{}", weir.said());
}
