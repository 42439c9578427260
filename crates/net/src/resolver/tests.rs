//! The resolver against a scripted name server on loopback, with real DNS messages.

use std::net::{Ipv4Addr, Ipv6Addr, UdpSocket};
use std::sync::mpsc as channel;
use std::thread::{self, JoinHandle};

use hickory_resolver::proto::op::{Message, ResponseCode};
use hickory_resolver::proto::rr::{RData, Record, RecordType};

use super::*;

const V4: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));
const V6: IpAddr = IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1));

/// What the name server does with one question.
enum Reply {
    Addresses(Vec<IpAddr>, u32),
    Code(ResponseCode),
    Silence,
}

/// A name server whose behaviour is a function of the name and the record type; it stops when
/// dropped.
struct NameServer {
    address: SocketAddr,
    asked: Arc<Mutex<Vec<(String, RecordType)>>>,
    thread: Option<JoinHandle<()>>,
}

impl NameServer {
    fn start(script: impl FnMut(&str, RecordType) -> Reply + Send + 'static) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("loopback");
        let address = socket.local_addr().expect("bound");
        let asked = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&asked);
        let thread = Some(thread::spawn(move || answer_all(&socket, &log, script)));
        Self {
            address,
            asked,
            thread,
        }
    }

    fn asked(&self, name: &str, family: RecordType) -> usize {
        let asked = self.asked.lock().expect("no panic");
        asked
            .iter()
            .filter(|question| **question == (name.to_owned(), family))
            .count()
    }
}

impl Drop for NameServer {
    fn drop(&mut self) {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("loopback");
        socket.send_to(b"", self.address).expect("loopback");
        let ended = self.thread.take().map(JoinHandle::join);
        assert!(
            matches!(ended, Some(Ok(()))),
            "the scripted name server panicked"
        );
    }
}

fn answer_all(
    socket: &UdpSocket,
    asked: &Mutex<Vec<(String, RecordType)>>,
    mut script: impl FnMut(&str, RecordType) -> Reply,
) {
    let mut buffer = [0; 4096];
    loop {
        let (length, from) = socket.recv_from(&mut buffer).expect("loopback");
        if length == 0 {
            return;
        }
        let question =
            Message::from_vec(&buffer[..length]).expect("the library asks in the wire format");
        let query = question.queries[0].clone();
        let name = query.name().to_ascii().trim_end_matches('.').to_owned();
        asked
            .lock()
            .expect("no panic")
            .push((name.clone(), query.query_type()));
        let mut reply = Message::response(question.metadata.id, question.metadata.op_code);
        reply.metadata.recursion_available = true;
        match script(&name, query.query_type()) {
            Reply::Silence => continue,
            Reply::Code(code) => reply.metadata.response_code = code,
            Reply::Addresses(addresses, ttl) => {
                let of_family = addresses
                    .into_iter()
                    .map(RData::from)
                    .filter(|data| data.record_type() == query.query_type());
                reply.insert_answers(
                    of_family
                        .map(|data| Record::from_rdata(query.name().clone(), ttl, data))
                        .collect(),
                );
            }
        }
        reply.add_query(query);
        socket
            .send_to(&reply.to_vec().expect("encodes"), from)
            .expect("loopback");
    }
}

/// A clock that advances only by calls.
#[derive(Clone)]
struct Hand(Arc<Mutex<Instant>>);

impl Hand {
    fn advance(&self, by: Duration) {
        *self.0.lock().expect("no panic") += by;
    }
}

struct Setup {
    resolver: Resolver,
    counters: Arc<Counters>,
    hand: Hand,
}

impl Setup {
    fn new(server: &NameServer, lookups_max: usize) -> Self {
        Self::with_limit(server, lookups_max, Duration::from_secs(20))
    }

    fn with_limit(server: &NameServer, lookups_max: usize, time_limit: Duration) -> Self {
        let config = ResolverConfig {
            servers: vec![server.address],
            time_limit,
            lookups_max,
            ..ResolverConfig::default()
        };
        let counters = Arc::new(Counters::new());
        let hand = Hand(Arc::new(Mutex::new(Instant::now())));
        let clock = {
            let hand = hand.clone();
            Arc::new(move || *hand.0.lock().expect("no panic"))
        };
        let resolver =
            Resolver::start_with_clock(config, Arc::clone(&counters), clock).expect("starts");
        Self {
            resolver,
            counters,
            hand,
        }
    }

    fn count(&self, outcome: DnsOutcome) -> u64 {
        self.counters.get(Metric::Dns(outcome))
    }
}

fn both(_: &str, _: RecordType) -> Reply {
    Reply::Addresses(vec![V4, V6], 60)
}

#[tokio::test]
async fn both_families_are_resolved_once_and_cached() {
    let server = NameServer::start(both);
    let setup = Setup::new(&server, 9);
    for _ in 0..3 {
        let addresses = setup
            .resolver
            .resolve("Both.example")
            .await
            .expect("answered");
        assert_eq!(*addresses, [V4, V6]);
    }
    assert_eq!(server.asked("both.example", RecordType::A), 1);
    assert_eq!(
        (
            setup.count(DnsOutcome::Answered),
            setup.count(DnsOutcome::CacheHit)
        ),
        (1, 2)
    );
    assert_eq!(setup.counters.get(Metric::DnsInFlight), 0);
}

#[tokio::test]
async fn literal_and_localhost_are_resolved_without_the_name_server() {
    let server = NameServer::start(both);
    let setup = Setup::new(&server, 9);
    assert_eq!(
        *setup.resolver.resolve("192.0.2.7").await.expect("literal"),
        [IpAddr::from([192, 0, 2, 7])]
    );
    assert_eq!(
        *setup.resolver.resolve("[::1]").await.expect("literal"),
        [IpAddr::from(Ipv6Addr::LOCALHOST)]
    );
    assert!(
        setup
            .resolver
            .resolve("LocalHost")
            .await
            .expect("local")
            .iter()
            .all(IpAddr::is_loopback)
    );
    assert_eq!(
        setup.resolver.resolve("no such name").await,
        Err(ResolveError::BadName)
    );
    assert!(server.asked.lock().expect("no panic").is_empty());
}

#[tokio::test]
async fn nxdomain_is_cached_for_the_negative_ttl() {
    let server = NameServer::start(|_, _| Reply::Code(ResponseCode::NXDomain));
    let setup = Setup::new(&server, 9);
    for _ in 0..2 {
        assert_eq!(
            setup.resolver.resolve("gone.example").await,
            Err(ResolveError::NotFound)
        );
    }
    assert_eq!(server.asked("gone.example", RecordType::A), 1);
    setup.hand.advance(Duration::from_secs(10));
    assert_eq!(
        setup.resolver.resolve("gone.example").await,
        Err(ResolveError::NotFound)
    );
    assert_eq!(server.asked("gone.example", RecordType::A), 2);
}

#[tokio::test]
async fn unanswered_name_times_out_without_blocking_another() {
    let server = NameServer::start(|name, _| {
        if name == "dead.example" {
            Reply::Silence
        } else {
            Reply::Addresses(vec![V4], 60)
        }
    });
    let setup = Setup::with_limit(&server, 9, Duration::from_millis(600));
    let mut dead = std::pin::pin!(setup.resolver.resolve("dead.example"));
    let live = tokio::select! {
        biased;
        _ = &mut dead => panic!("answered before a name whose server is alive"),
        live = setup.resolver.resolve("live.example") => live,
    };
    assert_eq!(*live.expect("answered"), [V4]);
    assert_eq!(dead.await, Err(ResolveError::Timeout), "no hard limit");
    assert_eq!(
        setup.resolver.resolve("dead.example").await,
        Err(ResolveError::Timeout)
    );
    assert_eq!(setup.count(DnsOutcome::Timeout), 2);
    assert_eq!(setup.counters.get(Metric::DnsInFlight), 0);
}

#[tokio::test]
async fn answer_of_one_family_suffices_when_the_other_is_silent() {
    let server = NameServer::start(|_, family| {
        if family == RecordType::AAAA {
            Reply::Silence
        } else {
            Reply::Addresses(vec![V4], 60)
        }
    });
    let setup = Setup::new(&server, 9);
    assert_eq!(
        *setup
            .resolver
            .resolve("half.example")
            .await
            .expect("answered"),
        [V4]
    );
}

#[tokio::test]
async fn name_is_looked_up_again_after_its_ttl() {
    let server = NameServer::start(both);
    let setup = Setup::new(&server, 9);
    for (advance_s, asked) in [(0, 1), (59, 1), (1, 2), (59, 2)] {
        setup.hand.advance(Duration::from_secs(advance_s));
        assert!(setup.resolver.resolve("a.example").await.is_ok());
        assert_eq!(server.asked("a.example", RecordType::A), asked);
    }
}

#[tokio::test]
async fn stale_answer_is_used_for_a_while_when_the_name_server_fails() {
    let mut healthy = 2;
    let server = NameServer::start(move |_, _| {
        if healthy > 0 {
            healthy -= 1;
            return Reply::Addresses(vec![V4], 60);
        }
        Reply::Code(ResponseCode::ServFail)
    });
    let setup = Setup::new(&server, 9);
    assert_eq!(
        *setup.resolver.resolve("a.example").await.expect("fresh"),
        [V4]
    );
    setup.hand.advance(Duration::from_mins(1));
    assert_eq!(
        *setup.resolver.resolve("a.example").await.expect("stale"),
        [V4]
    );
    assert_eq!(setup.count(DnsOutcome::Stale), 1);
    setup.hand.advance(Duration::from_hours(1));
    assert_eq!(
        setup.resolver.resolve("a.example").await,
        Err(ResolveError::ServerFailure),
        "stale for ever"
    );
}

#[tokio::test]
async fn concurrent_lookups_of_a_name_are_collapsed() {
    let (open, gate) = channel::channel::<()>();
    let server = NameServer::start(move |_, _| {
        // an open gate is a closed channel
        let _opened = gate.recv();
        Reply::Addresses(vec![V4], 60)
    });
    let setup = Setup::new(&server, 9);
    let ask = || setup.resolver.resolve("many.example");
    let (a, b, c, ()) = tokio::join!(biased; ask(), ask(), ask(), async move { drop(open) });
    assert!(
        [a, b, c]
            .iter()
            .all(|answer| answer.as_deref() == Ok(&[V4]))
    );
    assert_eq!(server.asked("many.example", RecordType::A), 1);
    assert_eq!(
        (
            setup.count(DnsOutcome::Answered),
            setup.count(DnsOutcome::Collapsed)
        ),
        (1, 2)
    );
}

#[tokio::test]
async fn lookup_beyond_the_maximum_is_refused_as_overloaded() {
    let (open, gate) = channel::channel::<()>();
    let server = NameServer::start(move |_, _| {
        let _opened = gate.recv();
        Reply::Addresses(vec![V4], 60)
    });
    let setup = Setup::new(&server, 1);
    let later = async {
        let refused = setup.resolver.resolve("second.example").await;
        drop(open);
        refused
    };
    let (first, second) = tokio::join!(biased; setup.resolver.resolve("first.example"), later);
    assert_eq!(second, Err(ResolveError::Overloaded));
    assert!(first.is_ok());
    assert!(
        setup.resolver.resolve("second.example").await.is_ok(),
        "the place was not given back"
    );
}

#[tokio::test]
async fn lookup_continues_when_its_first_requester_is_cancelled() {
    let (open, gate) = channel::channel::<()>();
    let server = NameServer::start(move |_, _| {
        let _opened = gate.recv();
        Reply::Addresses(vec![V4], 60)
    });
    let setup = Setup::new(&server, 9);
    tokio::select! {
        biased;
        _ = setup.resolver.resolve("a.example") => panic!("the gate is shut"),
        () = async {} => {}
    }
    drop(open);
    assert!(setup.resolver.resolve("a.example").await.is_ok());
    assert_eq!(server.asked("a.example", RecordType::A), 1);
}

#[tokio::test]
async fn resolver_without_resolv_conf_starts_and_resolves_local_names() {
    let servers = Err("no such file".to_owned());
    let counters = Arc::new(Counters::new());
    let resolver = Resolver::launch(
        ResolverConfig::default(),
        servers,
        counters,
        Arc::new(Instant::now),
    );
    let resolver = resolver.expect("starts without name servers");
    assert_eq!(resolver.problem(), Some("no such file"));
    assert!(resolver.resolve("127.0.0.1").await.is_ok());
    assert!(resolver.resolve("localhost").await.is_ok());
    assert_eq!(
        resolver.resolve("a.example").await,
        Err(ResolveError::ServerFailure)
    );
}

#[test]
fn resolver_is_clone_send_and_sync() {
    fn check<T: Clone + Send + Sync + 'static>() {}
    check::<Resolver>();
}
