//! The file by which clients find a forward proxy, run by a real engine for JavaScript.

use crate::support::Setup;
use std::net::Ipv4Addr;
use std::process::Command;
use weir_proxy::config::AdminAddress;

/// What the script says for each of these hosts.
fn run(script: &str, hosts: &[&str]) -> Vec<String> {
    let hosts = serde_json::to_string(hosts).expect("JSON");
    let program = format!(
        "{script}\nfor (const host of {hosts}) console.log(FindProxyForURL('http://' + host + '/', host));"
    );
    let out = Command::new("node")
        .args(["--use_strict", "-e", &program])
        .output()
        .expect("node, of Debian's package nodejs");
    assert!(
        out.status.success(),
        "{}",
        String::from_utf8_lossy(&out.stderr)
    );
    let text = String::from_utf8(out.stdout).expect("text");
    text.lines().map(str::to_owned).collect()
}

const DIRECT: [&str; 12] = [
    "localhost",
    "LOCALHOST.",
    "a.localhost",
    "printer",
    "127.0.0.1",
    "127.255.0.1",
    "::1",
    "[::1]",
    "0:0:0:0:0:0:0:1",
    "[::ffff:127.0.0.1]",
    "intranet.",
    "",
];
const BY_PROXY: [&str; 10] = [
    "example.com",
    "a.b.example.",
    "localhost.example.com",
    "notlocalhost.example",
    "127.0.0.1.example.com",
    "128.0.0.1",
    "10.0.0.1",
    "2001:db8::1",
    "[2001:db8::1]",
    "[2001:db8::11]",
];

#[test]
fn script_sends_all_but_local_names_to_the_proxy_that_the_client_has_reached() {
    let setup = Setup::forward();
    let mut client = setup.proxy.client();
    let ask = |host: &str| format!("GET /proxy.pac HTTP/1.1\r\nHost: {host}\r\n\r\n");
    let response = client.ask(ask("Proxy.example:3128"));
    assert_eq!(response.status(), 200);
    let media_type = response.head.field("content-type");
    assert_eq!(media_type, Some("application/x-ns-proxy-autoconfig"));
    assert_eq!(response.head.field("cache-control"), Some("no-store"));
    let found = run(&response.text(), &DIRECT);
    assert!(found.iter().all(|found| found == "DIRECT"), "{found:?}");
    let found = run(&response.text(), &BY_PROXY);
    let proxy = "PROXY proxy.example:3128";
    assert!(found.iter().all(|found| found == proxy), "{found:?}");
    let response = client.ask(ask("[2001:db8::5]:8080"));
    assert_eq!(
        run(&response.text(), &["a.b"]),
        ["PROXY [2001:db8::5]:8080"]
    );
    client.send("HEAD /proxy.pac?x HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    let head = client.read_head();
    assert_eq!(head.status(), 200);
    client.expect_end();
}

#[test]
fn hostile_host_is_no_part_of_the_script() {
    let setup = Setup::forward();
    for host in [
        "a\"; alert(1); \"",
        "a\\",
        "a\u{2028}b",
        "a b",
        "a\r\nHost: b",
        "a;b",
        "*",
        "a:99999",
    ] {
        let mut client = setup.proxy.client();
        let response = client.ask(format!("GET /proxy.pac HTTP/1.1\r\nHost: {host}\r\n\r\n"));
        assert_eq!(response.status(), 400, "{host}");
        assert!(!response.text().contains("FindProxyForURL"), "{host}");
    }
}

#[test]
fn file_is_for_clients_of_forward_listeners_alone() {
    let setup = Setup::forward_with(|config| {
        config.access.clients = vec!["127.0.0.1".parse().expect("an address")];
    });
    let ask = "GET /proxy.pac HTTP/1.1\r\nHost: a\r\n\r\n";
    let denied = setup.proxy.client_at(Ipv4Addr::new(127, 0, 0, 2)).ask(ask);
    assert_eq!(denied.status(), 403);
    assert_eq!(setup.proxy.client().ask(ask).status(), 200);
    // another path is none of a forward proxy
    let other = ask.replace("proxy.pac", "proxy.pac/");
    assert_eq!(setup.proxy.client().ask(other).status(), 400);
    let gateway = Setup::gateway();
    let mut client = gateway.proxy.client();
    client.send(ask);
    let (_hop, head) = gateway
        .origin
        .answer("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    assert!(head.start_line().starts_with("GET /proxy.pac "), "{head:?}");
    client.read_response();
}

#[test]
fn admin_interface_has_the_file_too() {
    let setup = Setup::forward_with(|config| {
        config.admin.address = AdminAddress::At("127.0.0.1:0".parse().expect("an address"));
    });
    let script = setup.proxy.admin("/proxy.pac");
    let proxy = format!("PROXY {}", setup.proxy.address());
    assert_eq!(
        run(&script, &["example.com", "localhost"]),
        [&*proxy, "DIRECT"]
    );
}
