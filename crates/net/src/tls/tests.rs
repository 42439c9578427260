use super::client::{Authorities, certificate_refusal, verifier};
use super::record_layer::RecordLayer;
use super::server::{
    Ages, Certificate, CertificateError, HandshakeFailure, HandshakeRules, Handshakes, PemFile,
    TicketKeys, TlsServer, VersionMin,
};
use super::{TlsStream, is_aes_128, provider};
use crate::client::ClientSocket;
use certificates::{Issued, KeyKind};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::UnbufferedServerConnection;
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use std::future::poll_fn;
use std::io::{IoSlice, Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, TcpStream as ClientStream};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tempfile::TempDir;
use tokio::net::{TcpListener, TcpStream};
use weir_measure::{Counters, Label as _, Metric, TlsHandshakeEnd};
use weir_policy::connections::HandshakeLimits;

#[path = "../../tests/support/certificates.rs"]
mod certificates;

const RULES: HandshakeRules = HandshakeRules {
    time: Duration::from_secs(20),
    places: HandshakeLimits {
        total_max: 2,
        per_client_max: 2,
    },
};

/// Whom the clients of these tests are.
const CLIENT: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

fn now_s() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.expect("a time after 1970").as_secs()
}

fn read(issued: &Issued, now_s: u64) -> Result<Certificate, CertificateError> {
    let read = |path| std::fs::read(path).expect("a file");
    Certificate::from_pem(&read(&issued.chain), &read(&issued.key), now_s, Ages::Valid)
}

/// A server for `a.test`, and who is to be trusted for it.
fn server(folder: &TempDir) -> (TlsServer, RootCertStore) {
    let issued = Issued::new(folder.path(), "a", &["a.test"], KeyKind::Ecdsa);
    let certificate = read(&issued, now_s()).expect("a good certificate");
    let tickets = TicketKeys::new(Duration::from_hours(1)).expect("random bytes");
    let server = TlsServer::new(
        vec![certificate],
        tickets,
        VersionMin::Tls12,
        &[b"http/1.1"],
    );
    let mut roots = RootCertStore::empty();
    let der = CertificateDer::from_pem_file(&issued.chain).expect("a certificate");
    roots.add(der).expect("an authority");
    (server, roots)
}

/// A server for `a.test`, and a client that trusts it.
fn sides(folder: &TempDir) -> (TlsServer, Arc<ClientConfig>) {
    let (server, roots) = server(folder);
    let client = ClientConfig::builder_with_provider(provider());
    let client = client
        .with_safe_default_protocol_versions()
        .expect("versions");
    let client = client.with_root_certificates(roots).with_no_client_auth();
    (server, Arc::new(client))
}

/// A client of ours on a thread that runs `act`, and our end of its connection.
async fn connection<T: Send + 'static>(
    act: impl FnOnce(ClientStream) -> T + Send + 'static,
) -> (TcpStream, thread::JoinHandle<T>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("bound");
    let client = thread::spawn(move || act(ClientStream::connect(address).expect("it accepts")));
    let (ours, _) = listener.accept().await.expect("a client");
    (ours, client)
}

fn spoken(
    config: &Arc<ClientConfig>,
    socket: ClientStream,
) -> StreamOwned<ClientConnection, ClientStream> {
    let name = ServerName::try_from("a.test").expect("a name");
    let connection = ClientConnection::new(Arc::clone(config), name).expect("a connection");
    StreamOwned::new(connection, socket)
}

/// Bytes whose every one depends on its place.
fn content(length: usize) -> Vec<u8> {
    let byte = |at: usize| at.wrapping_mul(0x9e37_79b9) >> 13;
    (0..length)
        .map(|at| u8::try_from(byte(at) & 0xff).unwrap_or(0))
        .collect()
}

async fn accepted(server: &TlsServer, socket: TcpStream) -> TlsStream {
    let (handshakes, counters) = (Handshakes::default(), Counters::default());
    let accepted = handshakes
        .accept((socket, CLIENT), server, RULES, &counters)
        .await;
    accepted.expect("a handshake").0
}

#[tokio::test]
async fn aes_128_is_chosen_whatever_the_client_prefers() {
    let folder = tempfile::tempdir().expect("a folder");
    let (server, roots) = server(&folder);
    let defaults = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    for version in [&rustls::version::TLS12, &rustls::version::TLS13] {
        let first = defaults.cipher_suites.iter();
        let mut first = first.filter(|suite| suite.version() == version);
        assert!(!is_aes_128(first.next().expect("a suite").suite()));
        let builder = ClientConfig::builder_with_provider(Arc::clone(&defaults));
        let builder = builder.with_protocol_versions(&[version]);
        let config = builder
            .expect("a version")
            .with_root_certificates(roots.clone())
            .with_no_client_auth();
        let config = Arc::new(config);
        let (ours, client) = connection(move |socket| {
            let mut stream = spoken(&config, socket);
            stream.flush().expect("a handshake");
            let suite = stream.conn.negotiated_cipher_suite();
            suite.expect("one was chosen").suite()
        })
        .await;
        let _stream = accepted(&server, ours).await;
        let chosen = client.join().expect("no panic");
        assert!(is_aes_128(chosen), "{chosen:?}");
    }
}

#[tokio::test]
async fn content_passes_whole_both_ways_through_short_buffers() {
    const LENGTH: usize = 3_000_000;
    let folder = tempfile::tempdir().expect("a folder");
    let (server, config) = sides(&folder);
    let (ours, client) = connection(move |socket| {
        let mut stream = spoken(&config, socket);
        let mut received = vec![0; LENGTH];
        stream.read_exact(&mut received).expect("all of it");
        assert!(received == content(LENGTH));
        stream.write_all(&received).expect("the server reads");
        stream.conn.send_close_notify();
        stream.flush().expect("the server reads");
        // the end is announced
        let mut rest = Vec::new();
        stream.read_to_end(&mut rest).expect("no truncation");
        assert_eq!(rest, b"end");
    })
    .await;
    socket2::SockRef::from(&ours)
        .set_send_buffer_size(4096)
        .expect("set");
    let stream = accepted(&server, ours).await;
    let sent = content(LENGTH);
    let mut at = 0;
    while at < LENGTH {
        // offered anew at each poll, in pieces that grow
        let mut polls = 0;
        let written = poll_fn(|cx| {
            polls += 1;
            let first = (at + 7 * polls).min(LENGTH);
            let second = (first + 40_000 + polls).min(LENGTH);
            let pieces = [
                IoSlice::new(&sent[at..first]),
                IoSlice::new(&sent[first..second]),
            ];
            stream.poll_write_vectored(cx, &pieces)
        });
        at += written.await.expect("the client reads");
        assert!(!stream.has_unsent() || at < LENGTH);
    }
    let (mut received, mut room) = (Vec::new(), [0; 777]);
    loop {
        let length = poll_fn(|cx| stream.poll_read(cx, &mut room))
            .await
            .expect("content");
        if length == 0 {
            break;
        }
        received.extend_from_slice(&room[..length]);
    }
    assert!(received == sent);
    poll_fn(|cx| stream.poll_write(cx, b"end"))
        .await
        .expect("the client reads");
    poll_fn(|cx| stream.poll_shutdown(cx))
        .await
        .expect("the client reads");
    tokio::task::spawn_blocking(|| client.join())
        .await
        .expect("joined")
        .expect("no panic");
}

#[tokio::test]
async fn end_that_came_with_the_last_content_is_read_though_the_connection_stays_open() {
    let folder = tempfile::tempdir().expect("a folder");
    let (server, config) = sides(&folder);
    let (ours, client) = connection(move |socket| {
        let mut stream = spoken(&config, socket);
        stream.flush().expect("a handshake");
        let written = stream.conn.writer().write(b"last").expect("room");
        assert_eq!(written, 4);
        stream.conn.send_close_notify();
        // both records together
        stream.flush().expect("the server reads");
        stream
    })
    .await;
    let stream = accepted(&server, ours).await;
    let client = client.join().expect("no panic");
    let mut received = [0; 64];
    loop {
        match stream.try_read(&mut received) {
            Ok(read) => break assert_eq!(&received[..read], b"last"),
            Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock),
        }
        stream.tcp().readable().await.expect("a connection");
    }
    assert!(!stream.has_content());
    assert!(stream.is_readable());
    assert_eq!(stream.try_read(&mut received).expect("the end"), 0);
    drop(client);
}

#[tokio::test]
async fn connection_that_waits_owns_no_buffer() {
    let folder = tempfile::tempdir().expect("a folder");
    let (server, config) = sides(&folder);
    let (ours, client) = connection(move |socket| {
        let mut stream = spoken(&config, socket);
        stream.write_all(b"request").expect("the server reads");
        let mut answer = [0; 6];
        stream.read_exact(&mut answer).expect("an answer");
        stream
    })
    .await;
    let stream = accepted(&server, ours).await;
    let mut room = [0; 64];
    let length = poll_fn(|cx| stream.poll_read(cx, &mut room))
        .await
        .expect("content");
    assert_eq!(&room[..length], b"request");
    poll_fn(|cx| stream.poll_write(cx, b"answer"))
        .await
        .expect("the client reads");
    assert_eq!(stream.buffered_bytes(), 0);
    let size = size_of::<TlsStream>();
    assert!(size <= 2048, "{size} bytes");
    drop(tokio::task::spawn_blocking(|| client.join()).await);
}

/// A layer of the server, and a client in memory.
fn layers(folder: &TempDir) -> (RecordLayer<UnbufferedServerConnection>, ClientConnection) {
    let (server, config) = sides(folder);
    let (server_config, _) = server.for_connection();
    let side = UnbufferedServerConnection::new(server_config).expect("a connection");
    let name = ServerName::try_from("a.test").expect("a name");
    let client = ClientConnection::new(config, name).expect("a connection");
    (RecordLayer::new(side), client)
}

/// Gives `sent` to the layer as a connection does, behind what is partial; the content in it.
fn receive(
    layer: &mut RecordLayer<UnbufferedServerConnection>,
    sent: &[u8],
) -> Result<Vec<u8>, rustls::Error> {
    let mut received = [layer.partial(), sent].concat();
    let mut content = vec![0; 100_000];
    let length = layer.receive(&mut received, &mut content)?;
    content.truncate(length);
    Ok(content)
}

/// What the client has to send.
fn from_client(client: &mut ClientConnection) -> Vec<u8> {
    let mut sent = Vec::new();
    while client.wants_write() {
        client.write_tls(&mut sent).expect("a vector takes all");
    }
    sent
}

/// Gives the client what the layer has to send.
fn to_client(layer: &mut RecordLayer<UnbufferedServerConnection>, client: &mut ClientConnection) {
    let records = layer.records();
    let mut waiting = records.waiting();
    while !waiting.is_empty() {
        client.read_tls(&mut waiting).expect("a slice");
        client.process_new_packets().expect("records of a server");
    }
    let length = records.waiting().len();
    records.advance(length);
}

#[test]
fn records_may_come_byte_by_byte_between_writes() {
    let folder = tempfile::tempdir().expect("a folder");
    let (mut layer, mut client) = layers(&folder);
    let mut content = Vec::new();
    let mut written = 0;
    for round in 0..8 {
        if round >= 4 {
            client.writer().write_all(b"content").expect("room");
            client.refresh_traffic_keys().expect("TLS 1.3");
        }
        for byte in from_client(&mut client) {
            content.extend(receive(&mut layer, &[byte]).expect("a client as it should be"));
            if !layer.is_handshaking() {
                let mut records = [0; 200];
                let length = layer.encrypt(b"x", &mut records).expect("keys");
                layer.records().push(&records[..length]);
                written += 1;
            }
        }
        to_client(&mut layer, &mut client);
    }
    assert!(
        content == b"content".repeat(4) && written > 100,
        "{written}"
    );
    let mut got = Vec::new();
    let _ = client.reader().read_to_end(&mut got);
    assert_eq!(got, vec![b'x'; written]);
}

#[test]
fn no_bytes_of_a_client_make_the_layer_fail_otherwise_than_with_an_error() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state >> 33).unwrap_or(0) % below.max(1)
    };
    let (server, config) = sides(&folder);
    for round in 0..600 {
        let (server_config, _) = server.for_connection();
        let side = UnbufferedServerConnection::new(server_config).expect("a connection");
        let mut layer = RecordLayer::new(side);
        let name = ServerName::try_from("a.test").expect("a name");
        let mut client = ClientConnection::new(Arc::clone(&config), name).expect("a connection");
        for flight in 0..3 {
            let mut sent = from_client(&mut client);
            // the first flight, or one behind it, is damaged
            if flight == round % 3 && !sent.is_empty() {
                for _ in 0..=random(3) {
                    let at = random(sent.len());
                    match random(3) {
                        0 => sent[at] ^= u8::try_from(1 + random(255)).unwrap_or(1),
                        1 => drop(sent.drain(at..(at + random(40)).min(sent.len()))),
                        _ => sent
                            .splice(at..at, (0..random(40)).map(|_| 22))
                            .for_each(drop),
                    }
                    if sent.is_empty() {
                        break;
                    }
                }
            }
            let mut rest = &sent[..];
            let mut is_good = true;
            while !rest.is_empty() && is_good {
                let (some, others) = rest.split_at((1 + random(300)).min(rest.len()));
                is_good = receive(&mut layer, some).is_ok();
                rest = others;
                let mut records = [0; 200];
                // refused or not
                let _ = layer.encrypt(b"x", &mut records);
            }
            if !is_good || flight == round % 3 {
                let _ = layer.close();
                break;
            }
            to_client(&mut layer, &mut client);
            let _ = client.writer().write_all(b"content");
        }
    }
}

#[test]
fn connection_in_clear_is_no_larger_for_tls() {
    assert_eq!(size_of::<ClientSocket>(), size_of::<TcpStream>());
}

#[tokio::test]
async fn handshakes_that_are_held_open_make_room_for_one_that_goes_on() {
    let folder = tempfile::tempdir().expect("a folder");
    let (server, config) = sides(&folder);
    let (handshakes, counters) = (Handshakes::default(), Counters::default());
    let (first, first_client) = connection(|socket| socket).await;
    let (second, second_client) = connection(|socket| socket).await;
    let (third, third_client) = connection(move |socket| {
        let mut stream = spoken(&config, socket);
        stream.write_all(b"x").expect("the server reads");
    })
    .await;
    let accept = |socket| handshakes.accept((socket, CLIENT), &server, RULES, &counters);
    let (mut first, mut second) = (Box::pin(accept(first)), Box::pin(accept(second)));
    // both wait for their clients
    poll_fn(|cx| {
        assert!(first.as_mut().poll(cx).is_pending() && second.as_mut().poll(cx).is_pending());
        std::task::Poll::Ready(())
    })
    .await;
    accept(third).await.expect("a handshake");
    let displaced = first.await;
    assert!(matches!(displaced, Err(HandshakeFailure::Closed)));
    poll_fn(|cx| {
        assert!(second.as_mut().poll(cx).is_pending());
        std::task::Poll::Ready(())
    })
    .await;
    let ended = |end| counters.get(Metric::TlsHandshakes(end));
    assert_eq!(ended(TlsHandshakeEnd::Displaced), 1);
    assert_eq!(ended(TlsHandshakeEnd::Full), 1);
    drop(second);
    for client in [first_client, second_client] {
        drop(client.join());
    }
    third_client.join().expect("no panic");
}

#[tokio::test]
async fn what_is_no_handshake_ends_with_its_cause() {
    let folder = tempfile::tempdir().expect("a folder");
    let (server, _) = sides(&folder);
    let server = &server;
    let end = async |sent: Vec<u8>, is_held: bool| {
        let (handshakes, counters) = (Handshakes::default(), Counters::default());
        let (ours, client) = connection(move |mut socket| {
            // it may have been refused
            let _ = socket.write_all(&sent);
            is_held.then_some(socket)
        })
        .await;
        let rules = HandshakeRules {
            time: Duration::from_millis(200),
            ..RULES
        };
        let accepted = handshakes
            .accept((ours, CLIENT), server, rules, &counters)
            .await;
        assert!(accepted.is_err());
        drop(client.join());
        let mut ends = TlsHandshakeEnd::ALL.iter().copied();
        ends.find(|end| counters.get(Metric::TlsHandshakes(*end)) == 1)
    };
    assert_eq!(
        end(b"GET / HTTP/1.1\r\n".to_vec(), true).await,
        Some(TlsHandshakeEnd::Http)
    );
    assert_eq!(
        end(Vec::new(), false).await,
        Some(TlsHandshakeEnd::Disconnected)
    );
    assert_eq!(
        end(vec![22, 3, 1], true).await,
        Some(TlsHandshakeEnd::Timeout)
    );
    assert_eq!(end(vec![1; 100], true).await, Some(TlsHandshakeEnd::Failed));
    // a message of a type that there is not
    let unknown = vec![22, 3, 1, 0, 4, 9, 9, 9, 9];
    assert_eq!(end(unknown, true).await, Some(TlsHandshakeEnd::Failed));
    // a hello in fragments that does not end
    let fragment = [&[22, 3, 1, 0x10, 0, 1, 0, 0xff, 0xff][..], &[0; 4092]].concat();
    let more = [&[22, 3, 1, 0x10, 0][..], &[0; 4096]].concat();
    let hello = [fragment, more.repeat(10)].concat();
    assert_eq!(end(hello, true).await, Some(TlsHandshakeEnd::TooLarge));
}

#[test]
fn certificate_that_cannot_be_used_is_refused_with_file_and_reason() {
    let folder = tempfile::tempdir().expect("a folder");
    let issue = |name, kind| Issued::new(folder.path(), name, &["a.test", "*.b.test"], kind);
    let (one, other) = (issue("one", KeyKind::Ecdsa), issue("other", KeyKind::Rsa));
    let good = read(&one, now_s()).expect("a good certificate");
    assert_eq!(good.names().collect::<Vec<_>>(), ["a.test", "*.b.test"]);
    assert!(good.addresses().is_empty());
    let addresses = ["192.0.2.7", "2001:db8::1"];
    let hosts = [&["a.test"], &addresses[..]].concat();
    let of_addresses = Issued::new(folder.path(), "addresses", &hosts, KeyKind::Ecdsa);
    let of_addresses = read(&of_addresses, now_s()).expect("a good certificate");
    assert_eq!(of_addresses.names().collect::<Vec<_>>(), ["a.test"]);
    let found = of_addresses.addresses().iter().map(ToString::to_string);
    assert_eq!(found.collect::<Vec<_>>(), addresses);
    for (host, expected) in [
        ("a.test", true),
        ("a.test.", true),
        ("x.b.test", true),
        ("b.test", false),
        ("x.y.b.test", false),
        ("x.a.test", false),
        ("test", false),
    ] {
        assert_eq!(good.covers(host), expected, "{host}");
    }
    let check = |chain: &[u8], key: &[u8], now_s, expected: (PemFile, &str)| {
        let refused = Certificate::from_pem(chain, key, now_s, Ages::Valid).expect_err(expected.1);
        assert_eq!(refused.file, expected.0, "{refused}");
        assert!(refused.reason.contains(expected.1), "{refused}");
    };
    let text = |path| std::fs::read(path).expect("a file");
    let (chain, key) = (text(&one.chain), text(&one.key));
    let now = now_s();
    check(
        &chain,
        &text(&other.key),
        now,
        (PemFile::Key, "key of another certificate"),
    );
    check(b"", &key, now, (PemFile::Chain, "no certificate"));
    check(&chain, b"", now, (PemFile::Key, "no private key"));
    check(&chain, &chain, now, (PemFile::Key, "no private key"));
    check(
        &chain[..chain.len() / 2],
        &key,
        now,
        (PemFile::Chain, "no end"),
    );
    let (year, day) = (365 * 24 * 3600, 24 * 3600);
    check(
        &chain,
        &key,
        now + year,
        (PemFile::Chain, "has expired 335 days ago"),
    );
    check(
        &chain,
        &key,
        now - 2 * day,
        (PemFile::Chain, "not valid yet"),
    );
    let expired = Issued::expired(folder.path(), "a.test");
    let refused = read(&expired, now).expect_err("it was for 2020");
    assert!(refused.reason.contains("has expired"), "{refused}");
    let never_valid = Issued::ending_before_it_begins(folder.path(), "a.test");
    let (chain, key) = (text(&never_valid.chain), text(&never_valid.key));
    for ages in [Ages::Valid, Ages::Any] {
        let refused = Certificate::from_pem(&chain, &key, now, ages).expect_err("never valid");
        assert!(
            refused.reason.contains("it ends before it begins"),
            "{refused}"
        );
    }
}

#[test]
fn self_made_certificate_of_an_authority_is_trusted_by_name_and_key_for_its_host_and_time() {
    // before they are issued; a second may pass meanwhile
    let begin_s = now_s();
    let folder = tempfile::tempdir().expect("a folder");
    let elsewhere = tempfile::tempdir().expect("a folder");
    let make = |folder: &TempDir, name| Issued::of_authority(folder.path(), name, &["a.test"]);
    let (own, other) = (make(&folder, "own"), make(&folder, "other"));
    let same_name = make(&elsewhere, "own");
    let der = |it: &Issued| CertificateDer::from_pem_file(&it.chain).expect("a certificate");
    let text = std::fs::read(&own.chain).expect("a file");
    let trusted = Authorities::from_pem(&text).expect("an authority");
    let verifier = verifier(Some(&trusted));
    let check = |issued: &Issued, host: &str, hours: i64, expected: Result<(), &str>| {
        let now_s = begin_s.saturating_add_signed(hours * 3600);
        let now = UnixTime::since_unix_epoch(Duration::from_secs(now_s));
        let name = ServerName::try_from(host).expect("a name");
        let verified = verifier.verify_server_cert(&der(issued), &[], &name, &[], now);
        let said = verified.map(|_| ()).map_err(|error| match error {
            rustls::Error::InvalidCertificate(why) => certificate_refusal(&why),
            other => panic!("{other}"),
        });
        let said = said.as_ref().map_err(String::as_str);
        assert_eq!(said.copied(), expected, "{host} {hours}");
    };
    check(&own, "a.test", 1, Ok(()));
    let wrong_name = "it is not for the name `b.test`, but for `a.test`";
    check(&own, "b.test", 1, Err(wrong_name));
    check(
        &own,
        "a.test",
        32 * 24 + 1,
        Err("it has expired 2 days ago"),
    );
    check(
        &own,
        "a.test",
        -2 * 24,
        Err("it is not valid yet: it is in 2 days"),
    );
    check(&other, "a.test", 1, Err("its authority is not trusted"));
    check(&same_name, "a.test", 1, Err("its authority is not trusted"));
}
