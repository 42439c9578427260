//! Names: a dead name server, and one that says what an attacker would have it say.

use crate::support::{Config, Nginx, PATIENCE, RawClient, Weir};
use std::net::UdpSocket;
use std::time::Instant;

fn name_server() -> UdpSocket {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a free port");
    socket.set_read_timeout(Some(PATIENCE)).expect("a limit");
    socket
}

fn config(server: &UdpSocket) -> Config {
    let address = server.local_addr().expect("it is bound");
    Config::forward()
        .set("workers", "1")
        .set("dns.servers", &format!("[\"{address}\"]"))
}

#[test]
fn unresponsive_name_server_delays_only_requests_that_need_it() {
    let nginx =
        Nginx::start("location /id { add_header Cache-Control max-age=3600; return 200 id; }");
    let server = name_server();
    let weir = Weir::serve(&config(&server).set("limits.dns", "\"1500ms\""));
    let started = Instant::now();
    let mut dead: Vec<RawClient> = (0..20)
        .map(|number| {
            let mut client = RawClient::connect(weir.address());
            client.send(format!(
                "GET http://dead-{number}.test/ HTTP/1.1\r\nHost: x\r\n\r\n"
            ));
            client
        })
        .collect();
    // the query is sent, and there is no answer
    let mut question = [0; 512];
    server.recv_from(&mut question).expect("a question");
    let mut client = RawClient::connect(weir.address());
    for path in ["/connection", "/id", "/id", "/connection"] {
        client.get(&nginx.url(path)).expect(200);
    }
    let others_took = started.elapsed();
    for client in &mut dead {
        let reply = client.reply().expect(504);
        assert!(
            reply.field("proxy-status").contains("dns_timeout"),
            "{}",
            reply.head
        );
        // the client's connection is as good as before
        client.get(&nginx.url("/id")).expect(200);
    }
    let dead_took = started.elapsed();
    assert!(others_took < dead_took, "{others_took:?} and {dead_took:?}");
    // in turn they would take 30 s
    assert!(dead_took.as_secs() < 10, "{dead_took:?}");
    weir.until("over", |metrics| {
        metrics.count("weir_dns_lookups_in_flight") == 0
    });
}

#[test]
fn proxy_continues_to_serve_when_dns_lookups_exceed_their_limit() {
    let nginx = Nginx::start("");
    let server = name_server();
    let weir = Weir::serve(&config(&server).set("limits.dns", "\"500ms\""));
    let mut dead: Vec<RawClient> = (0..300)
        .map(|number| {
            let mut client = RawClient::connect(weir.address());
            client.send(format!(
                "GET http://dead-{number}.test/ HTTP/1.1\r\nHost: x\r\n\r\n"
            ));
            client
        })
        .collect();
    for client in &mut dead {
        let status = client.reply().status();
        assert!(matches!(status, 503 | 504), "{status}");
    }
    weir.get(&nginx.url("/connection")).expect(200);
}

#[test]
fn name_resolving_to_loopback_is_refused_unless_allowed() {
    let nginx = Nginx::start("");
    let server = name_server();
    let loopback = [127, 0, 0, 1];
    let port = nginx.address.port();
    let guarded = config(&server).set("access.allow_destinations", "[]");
    let (guarded, open) = (Weir::serve(&guarded), Weir::serve(&config(&server)));
    std::thread::spawn(move || answer_always(&server, loopback));
    let url = format!("http://rebound.test:{port}/connection");
    let reply = guarded.get(&url).expect(403);
    assert!(
        reply
            .field("proxy-status")
            .contains("destination_ip_prohibited"),
        "{}",
        reply.head
    );
    open.get(&url).expect(200);
}

/// A name server that knows one address, for every name.
fn answer_always(server: &UdpSocket, address: [u8; 4]) {
    let mut buffer = [0; 512];
    while let Ok((length, asker)) = server.recv_from(&mut buffer) {
        let Some(answer) = answer(&buffer[..length], address) else {
            continue;
        };
        if server.send_to(&answer, asker).is_err() {
            return;
        }
    }
}

/// RFC 1035 §4.1: the question again, and one record if an A record was asked for.
fn answer(question: &[u8], address: [u8; 4]) -> Option<Vec<u8>> {
    let name = question.get(12..)?.iter().position(|byte| *byte == 0)?;
    let asked = question.get(12..12 + name + 5)?;
    let is_a = asked.get(name + 1..name + 3)? == [0, 1];
    let mut answer = question.get(..2)?.to_vec();
    answer.extend([0x81, 0x80, 0, 1, 0, u8::from(is_a), 0, 0, 0, 0]);
    answer.extend(asked);
    if is_a {
        // the name at offset 12, type A, class IN, 60 s, four bytes
        answer.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4]);
        answer.extend(address);
    }
    Some(answer)
}
