//! Squid as the parent, the sibling and the child of a forward proxy, before a real origin: every
//! byte arrives, and a parent that is killed costs no request.

use crate::support::{ClientsEnd, Config, Curl, Nginx, PATIENCE, RawClient, Squid, Weir, content};
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Instant;

/// Files at the origin.
const FILES: u32 = 20;

/// From nothing to some ten KiB, each of another length.
fn file(number: u32) -> Vec<u8> {
    content(number, (number * 2311) as usize)
}

/// An origin with files that may be stored, and the same ones that may not.
fn origin() -> Nginx {
    let nginx = Nginx::start(
        "access_log requests.log;
         location /f/ { add_header Cache-Control max-age=3600; }
         location /n/ { alias www/f/; add_header Cache-Control no-store; }
         location /put/ { dav_methods PUT; }",
    );
    for number in 0..FILES {
        nginx.file(&format!("f/{number}"), &file(number));
    }
    nginx
}

/// How often the origin was asked for `path`; polled until that is as expected, as nginx writes its
/// log behind the response.
#[track_caller]
fn check_asked(nginx: &Nginx, path: &str, expected: usize) {
    let until = Instant::now() + PATIENCE;
    loop {
        let log = std::fs::read_to_string(nginx.path("../requests.log")).unwrap_or_default();
        let line = format!("\"GET {path} HTTP/1.1\"");
        let asked = log.lines().filter(|found| found.contains(&line)).count();
        if asked == expected {
            return;
        }
        assert!(
            asked < expected && Instant::now() < until,
            "{path}: {asked} times, expected {expected}"
        );
        std::thread::yield_now();
    }
}

fn counted(proxy: SocketAddr, kind: &str, outcome: &str) -> String {
    format!(
        "weir_parent_requests_total{{parent=\"http://{proxy}\",kind=\"{kind}\",outcome=\"{outcome}\"}}"
    )
}

/// A tunnel through `proxy`, by which a file is fetched and another one put.
fn check_tunnels(proxy: SocketAddr, nginx: &Nginx) {
    let large = content(5, 3 << 20);
    let file = nginx.file("large", &large);
    let tunnel = || Curl::through(proxy).args(["--proxytunnel"]);
    let fetched = tunnel().fetch(&nginx.url("/large"));
    assert!(fetched.heads[0].contains(" 200 "), "{:?}", fetched.heads);
    assert!(fetched.reply().expect(200).body == large);
    std::fs::create_dir(nginx.path("put")).expect("a folder");
    let curl = tunnel().args(["-T", &file.to_string_lossy()]);
    curl.fetch(&nginx.url("/put/large")).reply().expect(201);
    assert!(std::fs::read(nginx.path("put/large")).expect("stored") == large);
}

#[test]
fn squid_as_parent_passes_every_byte_of_requests_and_tunnels() {
    let nginx = origin();
    let squid = Squid::start("cache deny all\n");
    let port = nginx.address.port();
    let config = Config::forward()
        .parent(squid.address(), "direct = \"never\"")
        .set("access.connect_ports", &format!("[{port}]"));
    let weir = Weir::serve(&config);
    let mut client = RawClient::connect(weir.address());
    for _ in 0..2 {
        for number in 0..FILES {
            let reply = client.get(&nginx.url(&format!("/f/{number}"))).expect(200);
            assert!(reply.body == file(number), "{number}: {}", squid.errors());
            assert!(reply.head.contains("squid.example"), "{}", reply.head);
        }
    }
    check_asked(&nginx, "/f/7", 1);
    let answered = counted(squid.address(), "parent", "answered");
    let metrics = weir.metrics();
    assert_eq!(metrics.count(&answered), u64::from(FILES));
    check_tunnels(weir.address(), &nginx);
    let metrics = weir.until("counted", |metrics| {
        metrics.count(&answered) == u64::from(FILES) + 2
    });
    assert_eq!(metrics.count("weir_tunnels_opened_total"), 2);
}

#[test]
fn squid_that_is_killed_under_load_costs_no_request_that_had_no_response() {
    let nginx = origin();
    let [first, second] = [
        Squid::start("cache deny all\n"),
        Squid::start("cache deny all\n"),
    ];
    let config = Config::forward()
        .parent(first.address(), "")
        .parent(second.address(), "");
    let weir = Weir::serve(&config);
    let (stopping, whole, cut) = (AtomicBool::new(false), AtomicU32::new(0), AtomicU32::new(0));
    let wait_for_more = || {
        let (until, wanted) = (
            Instant::now() + PATIENCE,
            whole.load(Ordering::Relaxed) + 100,
        );
        while whole.load(Ordering::Relaxed) < wanted {
            assert!(Instant::now() < until, "no more responses");
            std::thread::yield_now();
        }
    };
    std::thread::scope(|scope| {
        let _end = ClientsEnd::new(&stopping);
        for seed in 0..3 {
            let (address, nginx, stopping) = (weir.address(), &nginx, &stopping);
            let (whole, cut) = (&whole, &cut);
            scope.spawn(move || {
                let mut number = seed;
                while !stopping.load(Ordering::Relaxed) {
                    number = (number + 1) % FILES;
                    let mut client = RawClient::connect(address);
                    match client.try_get(&nginx.url(&format!("/n/{number}"))) {
                        Ok(reply) => {
                            assert_eq!(reply.status(), 200, "{}", reply.head);
                            assert!(reply.body == file(number), "{number}");
                            whole.fetch_add(1, Ordering::Relaxed);
                        }
                        // its response had begun
                        Err(_) => drop(cut.fetch_add(1, Ordering::Relaxed)),
                    }
                }
            });
        }
        wait_for_more();
        first.kill();
        wait_for_more();
        second.kill();
        wait_for_more();
    });
    // each client had one request under way each time
    assert!(cut.load(Ordering::Relaxed) <= 6, "{cut:?}");
}

#[test]
fn squid_as_sibling_is_asked_for_what_it_has_stored_alone() {
    let nginx = origin();
    let squid = Squid::start("");
    let weir = Weir::serve(
        &Config::forward().parent(squid.address(), "kind = \"sibling\"\ntimeout = \"1min\""),
    );
    let url = |number: u32| nginx.url(&format!("/f/{number}"));
    for number in 0..FILES / 2 {
        let reply = RawClient::connect(squid.address())
            .get(&url(number))
            .expect(200);
        assert!(reply.body == file(number), "{}", squid.errors());
    }
    for number in 0..FILES {
        let reply = weir.get(&url(number)).expect(200);
        assert!(reply.body == file(number), "{number}");
        let is_of_squid = reply.head.contains("squid.example");
        assert_eq!(is_of_squid, number < FILES / 2, "{number}: {}", reply.head);
        let again = weir.get(&url(number)).expect(200);
        assert!(again.body == file(number), "{}", again.head);
    }
    for number in 0..FILES {
        check_asked(&nginx, &format!("/f/{number}"), 1);
    }
    let metrics = weir.metrics();
    for (outcome, expected) in [
        ("answered", FILES / 2),
        ("missed", FILES / 2),
        ("failed", 0),
    ] {
        let name = counted(squid.address(), "sibling", outcome);
        assert_eq!(metrics.count(&name), u64::from(expected), "{outcome}");
    }
}

#[test]
fn squid_as_child_sends_requests_and_tunnels_to_a_parent() {
    let nginx = origin();
    let port = nginx.address.port();
    let config = Config::forward().set("access.connect_ports", &format!("[{port}]"));
    let weir = Weir::serve(&config);
    let squid = Squid::start(&format!(
        "cache deny all
         cache_peer 127.0.0.1 parent {} 0 no-query default
         never_direct allow all\n",
        weir.address().port()
    ));
    let mut client = RawClient::connect(squid.address());
    for _ in 0..2 {
        for number in 0..FILES {
            let reply = client.get(&nginx.url(&format!("/f/{number}"))).expect(200);
            assert!(reply.body == file(number), "{number}: {}", squid.errors());
        }
    }
    for number in 0..FILES {
        check_asked(&nginx, &format!("/f/{number}"), 1);
    }
    check_tunnels(squid.address(), &nginx);
    let metrics = weir.until("counted", |metrics| metrics.requests("tunnel") == 2);
    assert_eq!(metrics.requests("hit"), u64::from(FILES));
}

/// Answers queries by ICP (RFC 2186) that each response is stored, until it is dropped.
struct IcpResponder(UdpSocket);

impl IcpResponder {
    fn start() -> Self {
        let socket = UdpSocket::bind("127.0.0.2:0").expect("a port");
        let own = socket.try_clone().expect("a socket");
        std::thread::spawn(move || {
            let mut query = [0; 16 << 10];
            // an empty datagram ends it
            while let Ok((bytes @ 24.., asked_by)) = own.recv_from(&mut query) {
                // ICP_HIT, the same number, no options; of the query's content all but an address
                let mut hit = vec![2, 2, 0, 0];
                hit.extend_from_slice(&query[4..8]);
                hit.extend_from_slice(&[0; 12]);
                hit.extend_from_slice(&query[24..bytes]);
                let length = u16::try_from(hit.len()).expect("short").to_be_bytes();
                hit[2..4].copy_from_slice(&length);
                let _lost_if_not = own.send_to(&hit, asked_by);
            }
        });
        Self(socket)
    }

    fn port(&self) -> u16 {
        self.0.local_addr().expect("an address").port()
    }
}

impl Drop for IcpResponder {
    fn drop(&mut self) {
        let own = self.0.local_addr().expect("an address");
        let _ended_already = self.0.send_to(&[], own);
    }
}

#[test]
fn squid_as_child_has_what_a_sibling_stores_and_fetches_the_rest_itself() {
    let nginx = origin();
    // Squid takes an answer of its own address for one of its own, and a near origin for better
    // than a sibling
    let config = Config::forward().without_listeners();
    let weir = Weir::serve(&config.listener("127.0.0.2:0", "forward"));
    let icp = IcpResponder::start();
    let own = xtask::ports::take().expect("a port");
    let squid = Squid::start(&format!(
        "udp_incoming_address 127.0.0.1
         icp_access allow all
         icp_query_timeout 20000
         minimum_direct_rtt 0
         minimum_direct_hops 0
         icp_port {}
         cache_peer 127.0.0.2 sibling {} {} no-digest no-netdb-exchange\n",
        own,
        weir.address().port(),
        icp.port()
    ));
    let url = |number: u32| nginx.url(&format!("/f/{number}"));
    for number in 0..FILES / 2 {
        weir.get(&url(number)).expect(200);
    }
    let mut client = RawClient::connect(squid.address());
    for number in 0..FILES {
        let reply = client.get(&url(number)).expect(200);
        assert!(reply.body == file(number), "{number}: {}", squid.errors());
    }
    // what is not stored is refused with 504, and never fetched for it
    for number in 0..FILES {
        check_asked(&nginx, &format!("/f/{number}"), 1);
    }
    let half = u64::from(FILES / 2);
    let metrics = weir.until("counted", |metrics| metrics.requests("local") == half);
    assert_eq!(
        (metrics.requests("hit"), metrics.requests("uri-miss")),
        (half, half)
    );
}
