//! ICAP services behind a live proxy: what they change, and what becomes of requests while they are
//! away.

#[path = "../../../../adaptation/src/tests/c_icap_process.rs"]
mod c_icap_process;

use self::c_icap_process::{CIcap, free_address};
use crate::support::{self, RawClient, Setup, localhost, scripted};
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use weir_adaptation::server::{IcapServer, LineLog, ListenAddress, NamedModule, ServerSettings};
use weir_measure::{Metric, ModuleFault};
use weir_proxy::config::{Config, FailurePolicy, Module, ModuleOption};
use weir_proxy::{TableModule, load_modules};

/// A server of these modules, at a port or a free one.
fn serve(address: Option<SocketAddr>, modules: &[Module]) -> IcapServer {
    let address = address.unwrap_or_else(|| SocketAddr::from(([127, 0, 0, 1], 0)));
    let config = Config {
        modules: modules.to_vec(),
        ..Config::default()
    };
    let loaded = load_modules(&config, &support::module_kinds()).expect("they are loaded");
    let modules = loaded
        .into_iter()
        .map(|TableModule { table, module }| NamedModule {
            name: table.name,
            kind: table.kind,
            options: format!("{:?}", table.options),
            hold_bytes: table.hold.as_usize(),
            module,
        });
    let settings = ServerSettings {
        modules: modules.collect(),
        connections_max: 100,
        workers: 1,
        log: Arc::new(|_| {}),
        access_log: LineLog::off(),
    };
    IcapServer::start(&ListenAddress::Tcp(address), settings).expect("it starts")
}

fn address(server: &IcapServer) -> SocketAddr {
    match server.address() {
        ListenAddress::Tcp(address) => *address,
        ListenAddress::Unix(path) => panic!("{}", path.display()),
    }
}

/// A module behind the service `name`.
fn icap(address: SocketAddr, name: &str, on_failure: FailurePolicy) -> Module {
    let service = ModuleOption::Text(format!("icap://{address}/{name}"));
    Module {
        name: "scan".to_owned(),
        kind: "icap".to_owned(),
        on_failure,
        options: [("service".to_owned(), service)].into(),
        ..scripted("scan", &[])
    }
}

fn with(module: Module) -> impl Fn(&mut Config) {
    move |config| config.modules = vec![module.clone()]
}

fn long() -> String {
    "The quick brown fox jumps over the lazy dog.\n".repeat(10_000)
}

fn response(content: &str) -> String {
    let length = content.len();
    format!(
        "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nETag: \"v1\"\r\n\
         Content-Length: {length}\r\n\r\n{content}"
    )
}

#[test]
fn content_of_requests_and_responses_passes_a_service() {
    let upper = [scripted(
        "upper",
        &[
            ("request-received", "content upper"),
            ("response-received", "content upper"),
        ],
    )];
    let server = serve(None, &upper);
    let module = icap(address(&server), "upper", FailurePolicy::Refuse);
    for content in ["short".to_owned(), long()] {
        Setup::each_with(with(module.clone()), |setup| {
            let length = content.len();
            let fields = format!("Content-Length: {length}\r\n");
            let request = setup.head("POST", "/", "1.1", &fields) + &content;
            let mut client = setup.proxy.client();
            let sending = std::thread::spawn(move || {
                client.try_send(request);
                client
            });
            let mut hop = setup.origin.accept();
            let head = hop.read_head();
            assert_eq!(head.field("transfer-encoding"), Some("chunked"));
            let (received, _) = hop.read_chunks();
            assert!(received == content.to_uppercase().as_bytes());
            let sent = hop.sending(response(&content));
            let mut client: RawClient = sending.join().expect("it sends");
            let changed = client.read_response();
            assert_eq!(changed.status(), 200);
            assert!(changed.text() == content.to_uppercase());
            drop(sent);
        });
    }
}

/// A service answers some time after it was sent an event, when Weir has nothing more to send it.
#[test]
fn each_event_of_a_stream_is_sent_on_before_the_next_one_comes() {
    let upper = [scripted("upper", &[("response-received", "content upper")])];
    let server = serve(None, &upper);
    let mut module = icap(address(&server), "upper", FailurePolicy::Refuse);
    let no_preview = ("preview".to_owned(), ModuleOption::Flag(false));
    module.options.extend([no_preview]);
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\
        Transfer-Encoding: chunked\r\n\r\n";
    for control in ["no-store", "max-age=60"] {
        Setup::each_with(with(module.clone()), |setup| {
            let (mut client, mut hop) = setup.lead(&setup.get("/"));
            hop.send(head.replace(
                "\r\nTransfer",
                &format!("\r\nCache-Control: {control}\r\nTransfer"),
            ));
            hop.send("9\r\ndata: a\n\n\r\n");
            assert_eq!(client.read_head().status(), 200);
            assert_eq!(client.read_chunks_of(9), b"DATA: A\n\n");
            for _ in 0..20 {
                hop.send("9\r\ndata: b\n\n\r\n");
                assert_eq!(client.read_chunks_of(9), b"DATA: B\n\n");
            }
            hop.send("0\r\n\r\n");
            client.expect("0\r\n\r\n");
        });
    }
}

#[test]
fn service_that_answers_a_request_keeps_it_from_the_next_hop() {
    let refusing = [scripted(
        "refuse",
        &[("request-received", "respond 451 for-legal-reasons")],
    )];
    let server = serve(None, &refusing);
    let module = icap(address(&server), "refuse", FailurePolicy::Refuse);
    Setup::each_with(with(module), |setup| {
        let refused = setup.proxy.client().ask(setup.get("/"));
        assert_eq!(refused.status(), 451);
        assert_eq!(refused.text(), "for-legal-reasons");
    });
}

/// What one user gets is not what another one sent or got, on connections that both use.
#[test]
fn two_users_get_their_own_content_from_a_service() {
    let upper = [scripted("upper", &[("response-received", "content upper")])];
    let server = serve(None, &upper);
    let module = icap(address(&server), "upper", FailurePolicy::Refuse);
    Setup::each_with(with(module), |setup| {
        for turn in 0..20 {
            for user in ["alice", "bob"] {
                let fields = format!("Cookie: user={user}\r\nCache-Control: no-store\r\n");
                let mut client = setup.proxy.client();
                client.send(setup.head("GET", "/private", "1.1", &fields));
                let content = format!("{user}'s page number {turn}");
                let private = response(&content).replace("max-age=60", "private");
                let (_hop, head) = setup.origin.answer(&private);
                assert_eq!(head.all("cookie"), [format!("user={user}")]);
                assert_eq!(client.read_response().text(), content.to_uppercase());
            }
        }
    });
}

#[test]
fn c_icap_that_is_killed_opens_the_breaker_and_serves_again_when_it_is_back() {
    let folder = tempfile::tempdir().expect("a folder");
    let service = free_address();
    let mut server = CIcap::start(folder.path(), service);
    let module = icap(service, "echo", FailurePolicy::Refuse);
    let setup = Setup::forward_with(|config| {
        config.access.allow_destinations = vec![localhost()];
        config.modules = vec![module];
    });
    let fetch = |path: &str| {
        let mut client = setup.proxy.client();
        client.send(setup.get(path));
        let (hop, _) = setup.origin.answer("");
        let sent = hop.sending(response(&long()));
        let found = client.read_response();
        drop(sent);
        found
    };
    assert!(fetch("/before").text() == long());
    server.end(rustix::process::Signal::KILL);
    for _ in 0..8 {
        let refused = setup.proxy.client().ask(setup.get("/meanwhile"));
        assert_eq!(refused.status(), 502);
    }
    let failed = |fault| setup.proxy.count(Metric::ModuleFailures(fault));
    assert_eq!(failed(ModuleFault::Unavailable), 5);
    assert_eq!(failed(ModuleFault::BreakerOpen), 3);
    let _server = CIcap::start(folder.path(), service);
    setup.proxy.clock.advance_ms(31_000);
    assert!(fetch("/after").text() == long());
    assert!(fetch("/again").text() == long());
    assert_eq!(failed(ModuleFault::Unavailable), 5);
    assert_eq!(failed(ModuleFault::BreakerOpen), 3);
}

#[test]
fn request_goes_on_without_a_service_that_is_away_if_it_may() {
    // nothing listens there
    let module = icap(free_address(), "echo", FailurePolicy::Pass);
    Setup::each_with(with(module), |setup| {
        let mut client = setup.proxy.client();
        client.send(setup.get("/"));
        let (_hop, _) = setup.origin.answer(response("as it was"));
        assert_eq!(client.read_response().text(), "as it was");
        let failed = Metric::ModuleFailures(ModuleFault::Unavailable);
        assert_eq!(setup.proxy.count(failed), 1);
    });
}

/// A service that takes a response and answers with its head; then it closes, or says nothing more.
fn without_content(closes: bool) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    std::thread::spawn(move || {
        for mut socket in listener.incoming().flatten() {
            std::thread::spawn(move || {
                let head = "HTTP/1.1 200 OK\r\nX-Adapted: yes\r\n\r\n";
                let answers = [
                    "ICAP/1.0 200 OK\r\nMethods: RESPMOD\r\nISTag: \"t\"\r\n\r\n".to_owned(),
                    format!(
                        "ICAP/1.0 200 OK\r\nISTag: \"t\"\r\n\
                         Encapsulated: res-hdr=0, res-body={}\r\n\r\n{head}",
                        head.len()
                    ),
                ];
                let mut received = Vec::new();
                let mut byte = [0];
                while socket.read_exact(&mut byte).is_ok() {
                    received.push(byte[0]);
                    let is_options = received.starts_with(b"OPTIONS");
                    let end: &[u8] = if is_options {
                        b"\r\n\r\n"
                    } else {
                        b"\r\n0\r\n\r\n"
                    };
                    if !received.ends_with(end) {
                        continue;
                    }
                    received.clear();
                    let answer = &answers[usize::from(!is_options)];
                    let written = socket.write_all(answer.as_bytes());
                    if written.is_err() || (closes && !is_options) {
                        return;
                    }
                }
            });
        }
    });
    address
}

#[test]
fn service_that_fails_behind_its_head_is_left_out_where_it_may_be() {
    for closes in [true, false] {
        for policy in [FailurePolicy::Pass, FailurePolicy::Refuse] {
            let mut module = icap(without_content(closes), "half", policy);
            module.wait = "1s".parse().expect("a span");
            let setup = Setup::forward_with(|config| {
                config.access.allow_destinations = vec![localhost()];
                config.modules = vec![module];
            });
            for length in ["Content-Length: 100000\r\n", "Connection: close\r\n"] {
                let content = "as it was ".repeat(10_000);
                let mut client = setup.proxy.client();
                client.send(setup.get("/"));
                let (hop, _) = setup.origin.answer("");
                let head = format!("HTTP/1.1 200 OK\r\nCache-Control: no-store\r\n{length}\r\n");
                hop.sending(head + &content).join().expect("it sends");
                let found = client.read_response();
                match policy {
                    FailurePolicy::Pass => {
                        assert!(
                            found.text() == content,
                            "{closes}, {length}: {:?}",
                            found.head
                        );
                        assert_eq!(found.head.field("x-adapted"), None);
                    }
                    FailurePolicy::Refuse => assert_eq!(found.status(), 502),
                }
            }
        }
    }
}

/// As many failures of a service as these would open its breaker.
const MANY: usize = 6;

/// The failures of modules that are not those of a message.
fn breaking(setup: &Setup) -> u64 {
    let faults = [ModuleFault::Unavailable, ModuleFault::Deadline];
    let count = |fault| setup.proxy.count(Metric::ModuleFailures(fault));
    faults.map(count).iter().sum()
}

#[test]
fn content_that_a_service_cannot_decode_takes_it_from_no_other_message() {
    let plain = [scripted("plain", &[("response-received", "content plain")])];
    let server = serve(None, &plain);
    let module = icap(address(&server), "plain", FailurePolicy::Refuse);
    let setup = Setup::forward_with(|config| {
        config.access.allow_destinations = vec![localhost()];
        config.modules = vec![module];
    });
    let damaged = response("no gzip").replace("ETag", "Content-Encoding: gzip\r\nETag");
    for turn in 0..MANY {
        let mut client = setup.proxy.client();
        let fields = "Connection: close\r\n";
        client.send(setup.head("GET", &format!("/damaged{turn}"), "1.1", fields));
        let (_hop, _) = setup.origin.answer(&damaged);
        let (bytes, _) = client.into_peer().read_to_end();
        let is_refused = bytes.starts_with(b"HTTP/1.1 502 ");
        assert!(
            is_refused || !bytes.ends_with(b"0\r\n\r\n"),
            "it looks whole"
        );
    }
    let gave_up = Metric::ModuleFailures(ModuleFault::GaveUp);
    assert_eq!(setup.proxy.count(gave_up), MANY as u64);
    assert_eq!(breaking(&setup), 0);
    let mut client = setup.proxy.client();
    client.send(setup.get("/"));
    let (_hop, _) = setup.origin.answer(response("as it should be"));
    assert_eq!(client.read_response().text(), "AS IT SHOULD BE");
}

#[test]
fn clients_that_receive_slowly_do_not_open_the_breaker_of_a_service() {
    let upper = [scripted("upper", &[("response-received", "content upper")])];
    let server = serve(None, &upper);
    for policy in [FailurePolicy::Refuse, FailurePolicy::Pass] {
        let mut module = icap(address(&server), "upper", policy);
        module.wait = "2s".parse().expect("a span");
        let places = ("connections_max".to_owned(), ModuleOption::Number(1));
        module.options.extend([places]);
        let setup = Setup::forward_with(|config| {
            config.access.allow_destinations = vec![localhost()];
            config.modules = vec![module];
        });
        let mut stalled = setup.proxy.client();
        stalled.send(setup.get("/stalled"));
        let mut hop = setup.origin.accept();
        hop.read_head();
        let content = response(&"x".repeat(64 * 1024 * 1024)).replace("max-age=60", "no-store");
        std::thread::spawn(move || hop.try_send(content));
        assert_eq!(stalled.read_head().status(), 200);
        let others = (0..MANY).map(|turn| {
            let mut client = setup.proxy.client();
            client.send(setup.get(&format!("/{turn}")));
            let (hop, _) = setup.origin.answer(response("as it was"));
            (client, hop)
        });
        for (mut client, _hop) in others.collect::<Vec<_>>() {
            let found = client.read_response();
            match policy {
                FailurePolicy::Refuse => assert_eq!(found.status(), 502),
                FailurePolicy::Pass => assert_eq!(found.text(), "as it was"),
            }
        }
        let gave_up = Metric::ModuleFailures(ModuleFault::GaveUp);
        assert_eq!(setup.proxy.count(gave_up), MANY as u64);
        assert_eq!(breaking(&setup), 0);
        drop(stalled);
        let mut client = setup.proxy.client();
        client.send(setup.get("/"));
        let (_hop, _) = setup.origin.answer(response("as it should be"));
        assert_eq!(client.read_response().text(), "AS IT SHOULD BE");
    }
}
