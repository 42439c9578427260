//! Out of file descriptors: who is connected goes on, who comes waits, and nothing spins. Out of
//! room on a file system: the operator is told.

use crate::support::{Config, Curl, Metrics, Nginx, PATIENCE, RawClient, Weir, ask, content};
use std::io::Write as _;
use std::time::{Duration, Instant};

const LOCATIONS: &str = "
    location /id { add_header Cache-Control max-age=3600; return 200 $request_id; }
";

/// Processor time of a process so far, in ticks of 10 ms (`proc_pid_stat(5)`: fields 14 and 15).
fn processor_ticks(id: u32) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{id}/stat")).expect("it runs");
    // the name may hold anything but is in parentheses
    let (_, rest) = text.rsplit_once(')').expect("a name");
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let number = |at: usize| fields[at - 3].parse::<u64>().expect("a number");
    number(14) + number(15)
}

fn connect_all(weir: &Weir, count: usize) -> Vec<RawClient> {
    let connect = |_| RawClient::connect(weir.address());
    (0..count).map(connect).collect()
}

/// Asks on a connection that is open already: there is no descriptor for another.
fn wait_until_exhausted(admin: &mut RawClient) {
    let until = Instant::now() + PATIENCE;
    loop {
        let metrics = Metrics::parse(&ask(admin, "GET", "/metrics").text());
        if metrics.count("weir_accept_pauses_total") > 0 {
            return;
        }
        assert!(Instant::now() < until, "never out of descriptors");
    }
}

#[test]
fn proxy_out_of_descriptors_serves_open_connections_without_spinning() {
    let nginx = Nginx::start(LOCATIONS);
    let other = Nginx::start("");
    // more clients than descriptors may come in
    let config = Config::forward()
        .set("workers", "1")
        .set("limits.clients_max", "1000");
    let weir = Weir::serve_with_open_files(&config, 64);
    let mut admin = RawClient::connect(weir.admin);
    ask(&mut admin, "GET", "/healthz").expect(200);
    let mut first = connect_all(&weir, 4);
    for client in &mut first {
        client.get(&nginx.url("/id")).expect(200);
        client.get(&nginx.url("/connection")).expect(200);
    }
    let mut more = connect_all(&weir, 100);
    for client in &mut more {
        client.send(format!(
            "GET {} HTTP/1.1\r\nHost: x\r\n\r\n",
            nginx.url("/id")
        ));
    }
    let until = std::time::Instant::now() + crate::support::PATIENCE;
    let exhausted = |metrics: &Metrics| metrics.count("weir_accept_pauses_total") > 0;
    while !exhausted(&Metrics::parse(&ask(&mut admin, "GET", "/metrics").text())) {
        assert!(
            std::time::Instant::now() < until,
            "never out of descriptors"
        );
    }

    // hits, and what goes by a connection that is open already
    for client in &mut first {
        client.get(&nginx.url("/id")).expect(200);
        client.get(&nginx.url("/connection")).expect(200);
    }
    // a new connection to a next hop takes the place of an idle one
    for client in &mut first {
        client.get(&other.url("/connection")).expect(200);
        client.get(&nginx.url("/connection")).expect(200);
    }
    // no connection is closed for a while: the last one to come is not served, and waiting costs
    // next to nothing
    let before = processor_ticks(weir.id());
    let mut last = more.pop().expect("a hundred");
    assert!(
        last.is_silent_for(Duration::from_secs(2)),
        "there were descriptors"
    );
    let spent = processor_ticks(weir.id()) - before;
    assert!(spent <= 20, "{spent} ticks in 2 s");

    // those who leave make room for those who wait, down to the last
    for mut client in more {
        client.reply().expect(200);
    }
    last.reply().expect(200);
    assert_eq!(weir.metrics().count("weir_panics_total"), 0);
}

#[test]
fn clients_leave_enough_descriptors_for_next_hop_connections() {
    let nginx = Nginx::start(LOCATIONS);
    // by default half of them is kept for next hops
    let weir = Weir::serve_with_open_files(&Config::forward(), 100);
    let mut clients = connect_all(&weir, 80);
    let url = nginx.url("/connection");
    for client in &mut clients {
        client.send(format!(
            "GET {url} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
        ));
    }
    for mut client in clients {
        client.reply().expect(200);
    }
    let metrics = weir.metrics();
    assert_eq!(metrics.count("weir_accept_pauses_total"), 0);
    assert_eq!(metrics.count("weir_responses_total{class=\"5xx\"}"), 0);
}

#[test]
fn request_waiting_for_a_descriptor_is_served_once_one_is_free() {
    let nginx = Nginx::start(LOCATIONS);
    let config = Config::forward()
        .set("workers", "1")
        .set("limits.clients_max", "1000")
        .set("limits.next_hop_wait", "\"20s\"")
        .set("limits.idle_per_next_hop_max", "0");
    let weir = Weir::serve_with_open_files(&config, 64);
    let mut admin = RawClient::connect(weir.admin);
    ask(&mut admin, "GET", "/healthz").expect(200);
    let mut client = RawClient::connect(weir.address());
    client.get(&nginx.url("/id")).expect(200);
    let more = connect_all(&weir, 100);
    wait_until_exhausted(&mut admin);
    let url = nginx.url("/connection");
    client.send(format!("GET {url} HTTP/1.1\r\nHost: x\r\n\r\n"));
    let before = processor_ticks(weir.id());
    assert!(
        client.is_silent_for(Duration::from_secs(1)),
        "there was one"
    );
    let spent = processor_ticks(weir.id()) - before;
    assert!(spent <= 10, "{spent} ticks in 1 s");
    drop(more);
    client.reply().expect(200);
}

#[test]
fn descriptor_shortage_gives_503_and_does_not_mark_next_hops_as_failed() {
    let hops = [Nginx::start(LOCATIONS), Nginx::start(LOCATIONS)];
    let config = Config::gateway(&[&hops[0].origin(), &hops[1].origin()])
        .set("workers", "1")
        .set("limits.clients_max", "1000")
        .set("limits.next_hop_wait", "\"100ms\"")
        .set("limits.idle_per_next_hop_max", "0");
    let weir = Weir::serve_with_open_files(&config, 64);
    let get = |client: &mut RawClient| {
        client.send("GET /connection HTTP/1.1\r\nHost: a.test\r\n\r\n");
        client.reply()
    };
    let mut admin = RawClient::connect(weir.admin);
    ask(&mut admin, "GET", "/healthz").expect(200);
    let mut client = RawClient::connect(weir.address());
    get(&mut client).expect(200);
    let more = connect_all(&weir, 100);
    wait_until_exhausted(&mut admin);
    let reply = get(&mut client).expect(503);
    let status = reply.field("proxy-status");
    assert!(status.contains("connection_limit_reached"), "{status}");
    drop(more);
    weir.until("room", |metrics| {
        metrics.count("weir_client_connections_open") == 1
    });
    // neither rests
    for _ in 0..10 {
        get(&mut client).expect(200);
    }
    for hop in &hops {
        let seen = RawClient::connect(hop.address).get(&hop.url("/connection"));
        let connections = seen
            .text()
            .split(' ')
            .next()
            .and_then(|n| n.parse::<u32>().ok());
        assert!(connections.is_some_and(|count| count >= 6), "{seen:?}");
    }
}

#[test]
fn full_file_system_of_a_store_is_in_the_log_with_what_to_do_and_clients_are_served() {
    if !xtask::namespace::is_permitted() {
        return;
    }
    let nginx = Nginx::start("location / { add_header Cache-Control max-age=3600; root www; }");
    let expected = content(1, 1 << 20);
    nginx.file("large", &expected);
    let folder = tempfile::tempdir().expect("a folder");
    let store = folder.path().join("store");
    let directories = format!("[{{ path = {store:?}, size = \"64MiB\" }}]");
    let config = Config::forward()
        .set("disk.enabled", "true")
        .set("disk.directories", &directories);
    let mut weir = Weir::serve_on_small_file_system(&config, folder.path());
    // something else takes all that there is
    let other = weir.mounted(&folder.path().join("other"));
    let mut other = std::fs::File::create(other).expect("a file");
    let block = vec![0; 1 << 16];
    while other.write_all(&block).is_ok() {}
    for number in 0..40 {
        let url = nginx.url(&format!("/large?{number}"));
        let reply = Curl::through(weir.address()).fetch(&url).reply();
        assert!(reply.expect(200).body == expected, "request {number}");
    }
    let line = weir.wait_for("the file system of the store");
    assert!(line.contains("/store` is full"), "{line}");
    assert!(line.contains("make room on it"), "{line}");
}
