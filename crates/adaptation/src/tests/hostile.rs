//! Servers that answer what no server should, or nothing.

use super::pair::client;
use super::play::{Played, Script, host, on_a_worker, play, played};
use crate::server::ListenAddress;
use std::cell::RefCell;
use std::future::poll_fn;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;
use std::thread;
use std::time::Duration;
use tokio::time::timeout;
use weir_extend::{
    Call, FetchError, Fields, Host, ListenerMode, LogLevel, Module, OwnRequest, OwnResponse,
    Pending, Piece, RequestHead, ResponseHead,
};

/// What a server does once it has the head of a message.
#[derive(Clone)]
struct Answer {
    bytes: Vec<u8>,
    /// The connection stays open behind it.
    stays_open: bool,
    /// Messages that each connection is served before.
    served: usize,
    /// What they are answered with: they are used as they were, by default.
    served_with: Vec<u8>,
}

/// A server that answers OPTIONS with `options`, and messages as it is told.
struct HostileServer {
    address: ListenAddress,
    connections: Arc<AtomicU64>,
}

/// Messages may be left alone.
const OPTIONS_204: &str = "Allow: 204\r\nPreview: 0\r\n";

impl HostileServer {
    fn start(options: &str, answer: &Answer) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        Self::at(listener, options, answer)
    }

    fn at(listener: TcpListener, options: &str, answer: &Answer) -> Self {
        let address = listener.local_addr().expect("an address");
        let connections = Arc::new(AtomicU64::new(0));
        let (counted, answer) = (Arc::clone(&connections), answer.clone());
        let options =
            format!("ICAP/1.0 200 OK\r\nMethods: REQMOD, RESPMOD\r\nISTag: \"t\"\r\n{options}\r\n");
        thread::spawn(move || {
            for socket in listener.incoming().flatten() {
                counted.fetch_add(1, Ordering::Relaxed);
                let (options, answer) = (options.clone(), answer.clone());
                thread::spawn(move || serve(socket, options.as_bytes(), &answer));
            }
        });
        Self {
            address: ListenAddress::Tcp(address),
            connections,
        }
    }

    fn client(&self) -> Arc<dyn Module> {
        client(&self.address, &[])
    }
}

/// Serves one connection until it ends.
fn serve(mut socket: TcpStream, options: &[u8], answer: &Answer) -> Option<()> {
    let mut served = 0;
    loop {
        let head = read_head(&mut socket)?;
        if head.starts_with(b"OPTIONS") {
            socket.write_all(options).ok()?;
        } else if served < answer.served {
            served += 1;
            // the heads of a message without content
            read_head(&mut socket)?;
            if head.starts_with(b"RESPMOD") {
                read_head(&mut socket)?;
            }
            socket.write_all(&answer.served_with).ok()?;
        } else {
            // one that closes the connection early is no failure of the test
            let _ = socket.write_all(&answer.bytes);
            if !answer.stays_open {
                let _ = socket.shutdown(Shutdown::Write);
            }
            std::io::copy(&mut socket, &mut std::io::sink()).ok()?;
            return None;
        }
    }
}

/// Reads up to an empty line.
fn read_head(socket: &mut TcpStream) -> Option<Vec<u8>> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        socket.read_exact(&mut byte).ok()?;
        head.push(byte[0]);
    }
    Some(head)
}

fn answer(bytes: impl Into<Vec<u8>>) -> Answer {
    Answer {
        bytes: bytes.into(),
        stays_open: false,
        served: 0,
        served_with: b"ICAP/1.0 204 No\r\nISTag: \"t\"\r\n\r\n".to_vec(),
    }
}

/// A whole answer with a response in it, and a trailer section.
fn adapted() -> Vec<u8> {
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n";
    let length = head.len();
    format!(
        "ICAP/1.0 200 OK\r\nISTag: \"t\"\r\nEncapsulated: res-hdr=0, res-body={length}\r\n\r\n\
         {head}5\r\nHELLO\r\n6\r\n WORLD\r\n0\r\nX-Trailer: 1\r\n\r\n"
    )
    .into_bytes()
}

#[test]
fn answer_that_is_cut_at_any_byte_never_passes_for_whole() {
    let whole = adapted();
    for cut in 0..=whole.len() {
        let server = HostileServer::start("", &answer(&whole[..cut]));
        let found = play(&server.client(), &Script::response(b"text"));
        if cut == whole.len() {
            assert_eq!(found.content(), b"HELLO WORLD");
        } else {
            assert!(matches!(found, Played::Failed(_)), "{cut}: {found:?}");
        }
    }
}

/// `{}` is where the ICAP head has its further fields.
fn check_refused(options: &str, answers: &[(&str, String)]) {
    for (what, bytes) in answers {
        for script in [Script::response(b"text"), Script::post(b"text")] {
            let server = HostileServer::start(options, &answer(bytes.as_bytes()));
            let found = play(&server.client(), &script);
            assert!(matches!(found, Played::Failed(_)), "{what}: {found:?}");
        }
    }
}

fn with_list(list: &str, rest: &str) -> String {
    format!("ICAP/1.0 200 OK\r\nISTag: \"t\"\r\nEncapsulated: {list}\r\n\r\n{rest}")
}

#[test]
fn answer_with_a_wrong_list_of_parts_is_refused() {
    let head = "HTTP/1.1 200 OK\r\n\r\n";
    let body = "2\r\nhi\r\n0\r\n\r\n";
    let lists = [
        "",
        "null-body=0",
        "res-body=0",
        "res-hdr=0",
        "res-hdr=0, res-body=5",
        "res-hdr=0, res-body=18",
        "res-hdr=0, res-body=20",
        "res-hdr=1, res-body=19",
        "res-hdr=0, res-body=99999999",
        "res-hdr=0, res-hdr=19, res-body=38",
        "res-body=0, res-hdr=19",
        "res-hdr=0, res-body=-1",
        "res-hdr=0, opt-body=19",
    ];
    let answers = lists.map(|list| (list, with_list(list, &format!("{head}{body}"))));
    check_refused("", &answers);
}

#[test]
fn answer_that_no_request_has_is_refused() {
    let istag = "ISTag: \"t\"\r\n";
    let answers = [
        ("nothing", String::new()),
        ("not ICAP", "HTTP/1.1 200 OK\r\n\r\n".to_owned()),
        (
            "204 without leave",
            format!("ICAP/1.0 204 No\r\n{istag}\r\n"),
        ),
        (
            "100 without preview",
            "ICAP/1.0 100 Continue\r\n\r\n".to_owned(),
        ),
        (
            "206",
            format!("ICAP/1.0 206 Partial\r\n{istag}Encapsulated: null-body=0\r\n\r\n"),
        ),
        ("302", format!("ICAP/1.0 302 Found\r\n{istag}\r\n")),
        ("404", format!("ICAP/1.0 404 Not Found\r\n{istag}\r\n")),
        ("503", format!("ICAP/1.0 503 Overloaded\r\n{istag}\r\n")),
        (
            "two lists",
            with_list("res-hdr=0, null-body=19\r\nEncapsulated: null-body=0", ""),
        ),
        (
            "framed twice",
            with_list("null-body=0\r\nContent-Length: 5", "hello"),
        ),
    ];
    check_refused("", &answers);
}

#[test]
fn message_that_cannot_be_used_is_refused() {
    let response = |head: &str| {
        let list = format!("res-hdr=0, null-body={}", head.len());
        with_list(&list, head)
    };
    let request = |head: &str| {
        let list = format!("req-hdr=0, null-body={}", head.len());
        with_list(&list, head)
    };
    let of_response = [
        response("HTTP/1.1 304 Not Modified\r\n\r\n"),
        response("HTTP/1.1 206 Partial Content\r\n\r\n"),
        response("HTTP/1.1 100 Continue\r\n\r\n"),
        response("HTTP/1.1 200 OK\r\nX: a\0b\r\n\r\n"),
        response("HTTP/1.1 200 OK\nX: a\n\n"),
        request("GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n"),
    ];
    for bytes in of_response {
        let server = HostileServer::start("", &answer(bytes.as_bytes()));
        let found = play(&server.client(), &Script::response(b"text"));
        assert!(matches!(found, Played::Failed(_)), "{bytes}: {found:?}");
    }
    let of_request = [
        request("POST http://a.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n"),
        request("GET https://a.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n"),
        request("GET http://u@a.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n"),
        request("GET http:///x HTTP/1.1\r\nHost: a.example\r\n\r\n"),
        response("HTTP/1.1 206 Partial Content\r\n\r\n"),
    ];
    for bytes in of_request {
        let server = HostileServer::start("", &answer(bytes.as_bytes()));
        let found = play(&server.client(), &Script::get("/"));
        assert!(matches!(found, Played::Failed(_)), "{bytes}: {found:?}");
    }
}

#[test]
fn head_and_trailers_without_an_end_are_refused() {
    let line = "X-Filler: 0123456789012345678901234567890123456789\r\n".repeat(40_000);
    let head = "HTTP/1.1 200 OK\r\n\r\n";
    let list = format!("res-hdr=0, res-body={}", head.len());
    let answers = [
        ("ICAP head", format!("ICAP/1.0 200 OK\r\n{line}")),
        ("line", format!("ICAP/1.0 200 {}", "x".repeat(1_000_000))),
        (
            "trailers",
            with_list(&list, &format!("{head}2\r\nhi\r\n0\r\n{line}")),
        ),
        (
            "chunk extension",
            with_list(&list, &format!("{head}2;{}", "x".repeat(1_000_000))),
        ),
        (
            "HTTP head",
            with_list("res-hdr=0, res-body=2000000", &format!("{head}{line}")),
        ),
    ];
    for (what, bytes) in answers {
        let mut open = answer(bytes.as_bytes());
        open.stays_open = true;
        let server = HostileServer::start("", &open);
        let found = play(&server.client(), &Script::response(b"text"));
        assert!(matches!(found, Played::Failed(_)), "{what}: {found:?}");
    }
}

/// A response that a request is answered with is collected in memory.
#[test]
fn answer_to_a_request_is_collected_up_to_a_limit() {
    let respond = |bytes: usize| {
        let head = "HTTP/1.1 403 Forbidden\r\n\r\n";
        let list = format!("res-hdr=0, res-body={}", head.len());
        let content = "x".repeat(bytes);
        with_list(&list, &format!("{head}{bytes:x}\r\n{content}\r\n0\r\n\r\n"))
    };
    let limit = 1024 * 1024;
    let server = HostileServer::start("", &answer(respond(limit)));
    let found = play(&server.client(), &Script::get("/"));
    assert_eq!(found.content().len(), limit);
    let server = HostileServer::start("", &answer(respond(limit + 1)));
    let found = play(&server.client(), &Script::get("/"));
    assert_eq!(found, Played::Failed(false));
}

/// One that sends back another content, or less or more of it, has changed it.
#[test]
fn content_that_must_not_be_changed_fails_at_the_first_byte_that_differs() {
    let head = "HTTP/1.1 200 OK\r\n\r\n";
    let list = format!("res-hdr=0, res-body={}", head.len());
    let script = Script::response(b"text").with("Cache-Control", "no-transform");
    for (content, is_begun) in [
        ("4\r\ntext\r\n0\r\n\r\n", None),
        ("1\r\nt\r\n3\r\next\r\n0\r\n\r\n", None),
        ("4\r\nTEXT\r\n0\r\n\r\n", Some(false)),
        ("0\r\n\r\n", Some(false)),
        ("3\r\ntex\r\n0\r\n\r\n", Some(false)),
        ("5\r\ntext!\r\n0\r\n\r\n", Some(false)),
    ] {
        let bytes = with_list(&list, &format!("{head}{content}"));
        let server = HostileServer::start("", &answer(bytes));
        let found = play(&server.client(), &script);
        match is_begun {
            None => assert_eq!(found.content(), b"text"),
            Some(is_begun) => assert_eq!(found, Played::Failed(is_begun), "{content}"),
        }
    }
    let bytes = with_list(&list, &format!("{head}2\r\nte\r\n"));
    let server = HostileServer::start("", &answer(bytes));
    let found = play(&server.client(), &script);
    assert!(matches!(found, Played::Failed(_)), "{found:?}");
    // a service that only says that it is the same
    let list = format!("res-hdr=0, null-body={}", head.len());
    let server = HostileServer::start("", &answer(with_list(&list, head)));
    assert_eq!(play(&server.client(), &script), Played::Failed(false));
}

/// They say of the proxy what is not so.
#[test]
fn answer_to_a_request_is_without_the_fields_that_no_module_writes() {
    let head = "HTTP/1.1 403 Forbidden\r\nProxy-Status: weir; error=dns_error\r\nVia: 1.1 x\r\n\
                Cache-Status: weir; hit\r\nX-Own: 1\r\n\r\n";
    let list = format!("res-hdr=0, null-body={}", head.len());
    let server = HostileServer::start("", &answer(with_list(&list, head)));
    let found = play(&server.client(), &Script::get("/"));
    assert_eq!(found.start(), "responded 403");
    assert_eq!(found.field("x-own"), Some("1"));
    for name in ["proxy-status", "via", "cache-status"] {
        assert_eq!(found.field(name), None, "{name}");
    }
}

/// An operator learns of it at the start, and not from the first clients.
#[test]
fn service_that_cannot_be_reached_is_complained_of_once_with_its_address_and_what_to_do() {
    let address = super::c_icap_process::free_address();
    let client = client(&ListenAddress::Tcp(address), &[]);
    let host = Rc::new(NotingHost::default());
    on_a_worker(async {
        let host: Rc<dyn Host> = Rc::clone(&host) as _;
        for _ in 0..3 {
            client.tick(&host).expect("OPTIONS are due").await;
        }
    });
    let mut lines = host.lines.take();
    let warning = lines.pop().expect("a line");
    assert!(lines.is_empty(), "{lines:?}");
    for part in [
        &*format!("icap://{address}/test"),
        "cannot connect",
        "connection refused",
        "correct `options.service`",
    ] {
        assert!(warning.contains(part), "{part}: {warning}");
    }
    assert_eq!(client.warnings(), [warning]);
    let server = HostileServer::at(
        TcpListener::bind(address).expect("the port"),
        "",
        &answer(""),
    );
    on_a_worker(async {
        let host: Rc<dyn Host> = Rc::clone(&host) as _;
        client.tick(&host).expect("OPTIONS are due").await;
    });
    let expected = format!("icap://{address}/test answers again");
    assert_eq!(host.lines.take(), [expected]);
    assert!(client.warnings().is_empty());
    assert_eq!(server.address, ListenAddress::Tcp(address));
}

/// Notes what is written.
#[derive(Default)]
struct NotingHost {
    lines: RefCell<Vec<String>>,
}

impl Host for NotingHost {
    fn worker(&self) -> usize {
        0
    }

    fn wall_ms(&self) -> u64 {
        0
    }

    fn log(&self, _: LogLevel, line: &str) {
        self.lines.borrow_mut().push(line.to_owned());
    }

    fn fetch(&self, _: OwnRequest) -> Pending<Result<OwnResponse, FetchError>> {
        Box::pin(std::future::ready(Err(FetchError::Unreachable)))
    }
}

/// The proxy gives it up after `wait`: what is dropped leaves no connection.
#[test]
fn message_at_a_silent_server_waits_until_it_is_given_up() {
    let mut silent = answer("");
    silent.stays_open = true;
    let server = HostileServer::start("", &silent);
    let client = server.client();
    on_a_worker(async {
        for script in [Script::response(b"text"), Script::post(b"text")] {
            let moment = Duration::from_millis(50);
            assert!(timeout(moment, played(&client, &script)).await.is_err());
        }
    });
    // the OPTIONS connection served the first message
    assert_eq!(server.connections.load(Ordering::Relaxed), 2);
}

#[test]
fn request_on_a_kept_connection_that_closes_without_a_byte_is_repeated_once() {
    let mut once = answer("");
    once.served = 1;
    let server = HostileServer::start(OPTIONS_204, &once);
    let client = server.client();
    for message in 1..=4 {
        let found = play(&client, &Script::get("/"));
        assert_eq!(found.start(), "a.example/", "{message}");
        // each connection serves one message, and is closed within the next
        assert_eq!(server.connections.load(Ordering::Relaxed), message);
    }
}

#[test]
fn connection_is_used_again_after_an_answer_that_changes_a_head() {
    let request = "GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\nX-New: 1\r\n\r\n";
    let response = "HTTP/1.1 304 Not Modified\r\nX-New: 1\r\n\r\n";
    let of_request = format!("req-hdr=0, null-body={}", request.len());
    let of_response = format!("res-hdr=0, null-body={}", response.len());
    let mut without_content = Script::response(b"");
    without_content.response = Some((304, Vec::new()));
    for (script, list, head) in [
        (Script::get("/"), of_request, request),
        (without_content, of_response, response),
    ] {
        let mut changing = answer("");
        changing.served = 100;
        changing.served_with = with_list(&list, head).into_bytes();
        let server = HostileServer::start("", &changing);
        let client = server.client();
        on_a_worker(async {
            for _ in 0..100 {
                let found = played(&client, &script).await;
                assert_eq!(found.field("x-new"), Some("1"));
            }
        });
        assert_eq!(server.connections.load(Ordering::Relaxed), 1, "{list}");
    }
}

/// A second write would cost a system call here, and another turn of the server.
#[test]
fn content_that_is_there_is_sent_with_its_head() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = ListenAddress::Tcp(listener.local_addr().expect("an address"));
    let server = thread::spawn(move || {
        let (mut socket, _) = listener.accept().expect("a client");
        read_head(&mut socket).expect("OPTIONS");
        let options = "ICAP/1.0 200 OK\r\nMethods: RESPMOD\r\nISTag: \"t\"\r\n";
        let written = write!(socket, "{options}{OPTIONS_204}\r\n");
        written.expect("it is open");
        socket
    });
    let client = client(&address, &[]);
    on_a_worker(async {
        let call = Call {
            client: Ipv4Addr::LOCALHOST.into(),
            mode: ListenerMode::Forward,
            now_ms: 0,
        };
        let fields = Fields::received([("Content-Length", &b"4"[..])]);
        let mut head = ResponseHead::new(200, fields);
        let mut exchange = client.begin(&host());
        let mut request = RequestHead::new("GET", "a.example", "/", Fields::default());
        exchange.request_sent(&mut request, &call);
        let answer = exchange.response_received(&mut head, &call);
        assert_eq!(answer, weir_extend::Answer::Defer);
        poll_fn(|cx| exchange.poll_deferred(cx)).await;
        let mut socket = server.join().expect("it has answered OPTIONS");
        socket.set_nonblocking(true).expect("a socket");
        let answer = exchange.response_received(&mut head, &call);
        assert_eq!(answer, weir_extend::Answer::Defer);
        let (_, mut transform) = head.take_transform().expect("content is to pass");
        let polled = poll_fn(|cx| Poll::Ready(exchange.poll_deferred(cx))).await;
        assert!(polled.is_pending());
        let nothing = socket.read(&mut [0; 1]).expect_err("nothing was sent");
        assert_eq!(nothing.kind(), std::io::ErrorKind::WouldBlock);
        let mut out = Vec::new();
        transform.transform(&mut Piece::new(b"text", true, &mut out, 100));
        let mut received = [0; 4096];
        let count = socket.read(&mut received).expect("it was sent");
        let received = String::from_utf8_lossy(&received[..count]);
        assert!(received.starts_with("RESPMOD "), "{received}");
        assert!(
            received.ends_with("\r\n4\r\ntext\r\n0\r\n\r\n"),
            "{received}"
        );
    });
}

/// A service may decide by the head alone, while the content does not come.
#[test]
fn head_is_sent_although_no_content_comes() {
    let block = "HTTP/1.1 403 Forbidden\r\n\r\n";
    let list = format!("res-hdr=0, null-body={}", block.len());
    let server = HostileServer::start("", &answer(with_list(&list, block)));
    let client = server.client();
    on_a_worker(async {
        let call = Call {
            client: Ipv4Addr::LOCALHOST.into(),
            mode: ListenerMode::Forward,
            now_ms: 0,
        };
        let mut head = ResponseHead::new(200, Fields::default());
        let mut exchange = client.begin(&host());
        let mut request = RequestHead::new("GET", "a.example", "/", Fields::default());
        exchange.request_sent(&mut request, &call);
        while exchange.response_received(&mut head, &call) == weir_extend::Answer::Defer {
            poll_fn(|cx| exchange.poll_deferred(cx)).await;
        }
        assert_eq!(head.status(), 403);
    });
}

#[test]
fn request_on_a_new_connection_is_not_repeated_nor_one_whose_answer_has_begun() {
    let server = HostileServer::start(OPTIONS_204, &answer(""));
    let client = server.client();
    // the connection of OPTIONS was kept, and its successor is new
    assert_eq!(play(&client, &Script::get("/")), Played::Failed(false));
    assert_eq!(server.connections.load(Ordering::Relaxed), 2);
    let mut begun = answer("I");
    begun.served = 1;
    let server = HostileServer::start(OPTIONS_204, &begun);
    let client = server.client();
    assert_eq!(play(&client, &Script::get("/")).start(), "a.example/");
    assert_eq!(play(&client, &Script::get("/")), Played::Failed(false));
    assert_eq!(server.connections.load(Ordering::Relaxed), 1);
}

#[test]
fn answer_to_options_that_is_not_valid_fails_the_message() {
    for options in [
        "Preview: x\r\n",
        "ISTag: \"u\"\r\n",
        "Max-Connections: 0\r\n",
        "Encapsulated: res-hdr=0, null-body=5\r\n",
    ] {
        let server = HostileServer::start(options, &answer(adapted()));
        let found = play(&server.client(), &Script::response(b"text"));
        assert_eq!(found, Played::Failed(false), "{options}");
    }
}

/// A server that answers faster than its content is taken is held back.
#[test]
fn answer_without_an_end_is_given_up_with_its_message() {
    let head = "HTTP/1.1 200 OK\r\n\r\n";
    let list = format!("res-hdr=0, res-body={}", head.len());
    let chunk = format!("8000\r\n{}\r\n", "x".repeat(0x8000));
    let bytes = with_list(&list, &format!("{head}{}", chunk.repeat(100)));
    let server = HostileServer::start("", &answer(bytes));
    let found = play(&server.client(), &Script::response(b"text"));
    assert_eq!(found, Played::Failed(true));
}
