//! The admin over real connections.

mod cluster;
mod dashboard;
mod hosts;
mod modules;
mod purge;
mod top;
mod version;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, mpsc};

use weir_measure::live::{ListenerCertificate, TopRow, VERSION};
use weir_measure::{Counters, Label as _, Metric};

use super::*;
use crate::cluster::report::{CandidateKind, CandidateReport};
use crate::modules::report::ModuleState;
use std::time::Instant;

/// A proxy that records the calls.
#[derive(Default)]
struct Fake {
    draining: AtomicBool,
    purged: Mutex<Vec<String>>,
    disabled: Mutex<Vec<String>>,
    /// Reload waits for this, if it is there.
    gate: Mutex<Option<mpsc::Receiver<()>>>,
    refused_reload: Option<ReloadFailure>,
    /// Purges may have had more than they count.
    disk_is_loading: bool,
    cluster: Option<ClusterReport>,
    /// What other nodes answer to a purge.
    members: Vec<MemberPurge>,
    /// What the log of purges has of it.
    log: Option<Result<i64, String>>,
    /// What keeps nodes from being told of it.
    purge_problem: Option<String>,
    token: Option<Arc<Token>>,
    /// Heavy hitters are counted.
    counts: bool,
}

impl Control for Fake {
    fn metrics(&self) -> Snapshot {
        let counters = Counters::new();
        counters.inc(Metric::Panics);
        Snapshot::sum([&counters])
    }

    fn config_text(&self) -> String {
        "[cache]\nbudget = \"64MiB\"\n".into()
    }

    fn purge(&self, what: &PurgeCall, reach: PurgeReach) -> Result<PurgeReport, PurgeFailure> {
        let (url, purged) = match what {
            PurgeCall::Url(url) => (url.as_str(), 3),
            PurgeCall::All => ("all", 7),
        };
        if url.contains("bad") {
            return Err(PurgeFailure::Url("no such host".into()));
        }
        if url.contains("full") {
            let path = "/store".into();
            return Err(PurgeFailure::Disk(weir_disk::PurgeError { path }));
        }
        let mut all = self.purged.lock().expect("no panic");
        let is_here = reach == PurgeReach::ThisNode;
        all.push(format!("{url}{}", if is_here { " here" } else { "" }));
        let members = self.members.iter().filter(|_| !is_here);
        Ok(PurgeReport {
            node: (!is_here && !self.members.is_empty()).then(|| "a".to_owned()),
            purged,
            may_be_more_on_disk: self.disk_is_loading,
            members: members.cloned().collect(),
            away: Vec::new(),
            log: self.log.clone(),
            problem: self.purge_problem.clone(),
        })
    }

    fn stored(
        &self,
        _: Option<ListenerMode>,
        _: StoredCall,
    ) -> Result<oneshot::Receiver<Result<StoredReply, StoredError>>, String> {
        Err("there is no store".into())
    }

    fn disk(&self) -> Option<Arc<Disk>> {
        None
    }

    fn explain(
        &self,
        _: Option<ListenerMode>,
        _: ExplainCall,
    ) -> Result<oneshot::Receiver<Result<Explanation, StoredError>>, String> {
        Err("there is no store".into())
    }

    fn reload(&self) -> Result<String, ReloadFailure> {
        let gate = self.gate.lock().expect("no panic").take();
        if let Some(gate) = gate {
            let _opened = gate.recv();
        }
        match &self.refused_reload {
            Some(failure) => Err(failure.clone()),
            None => Ok("reloaded".into()),
        }
    }

    fn modules(&self) -> Vec<ModuleReport> {
        let disabled = self.disabled.lock().expect("no panic");
        vec![ModuleReport {
            name: "ads".into(),
            kind: "headers".into(),
            host: None,
            path: "/a".into(),
            run: crate::config::ExecutionModel::Worker,
            state: if disabled.contains(&"ads".to_owned()) {
                ModuleState::Disabled
            } else {
                ModuleState::Enabled
            },
            on_failure: crate::config::FailurePolicy::Refuse,
            may_store: false,
            hooks: vec!["request-sent", "done"],
            failures: 3,
            notes: vec!["the list has 2 rules".into()],
            metrics: [("removed".into(), 7)].into(),
        }]
    }

    fn parents(&self) -> Vec<ParentReport> {
        vec![ParentReport {
            url: "http://10.0.0.1:3128".to_owned(),
            kind: "sibling",
            requests: [("answered", 3), ("missed", 5), ("failed", 0)],
        }]
    }

    fn next_hops(&self) -> Vec<NextHopRow> {
        dashboard::next_hops()
    }

    fn certificates(&self) -> Vec<CertificateRow> {
        Vec::new()
    }

    fn listener_certificates(&self) -> Vec<ListenerCertificate> {
        dashboard::certificates()
    }

    fn certificates_for(&self, _listener: Option<&str>, _host: &str) -> Vec<ListenerCertificate> {
        dashboard::certificates()
    }

    fn rules(&self) -> Vec<RuleReport> {
        dashboard::rules()
    }

    fn links(&self) -> Vec<LinkRow> {
        dashboard::links()
    }

    fn cluster(&self) -> Option<ClusterReport> {
        self.cluster.clone()
    }

    fn route(&self, mode: Option<ListenerMode>, url: &str) -> Result<RouteReport, String> {
        if url.contains("nowhere") {
            return Err("no route is for this host".into());
        }
        let hop = CandidateReport {
            kind: CandidateKind::NextHop,
            name: None,
            url: "http://127.0.0.1:8000".into(),
            state: "in",
            weight: 1,
            load: 2,
            balancing: Some(0),
            locality: None,
            replacement: Some(0),
            chosen: Some("in-turn"),
            passed_over: None,
        };
        Ok(RouteReport {
            url: url.to_owned(),
            mode: mode.map_or("any", |mode| match mode {
                ListenerMode::Forward => "forward",
                ListenerMode::Gateway => "gateway",
            }),
            node: None,
            is_copied: true,
            candidates: vec![hop],
            direct: url.contains("parent").then_some("never"),
        })
    }

    fn top(&self, of: TopOf, by: TopBy, rows_max: usize) -> Option<TopTable> {
        self.counts.then(|| TopTable {
            version: VERSION,
            of: of.word().into(),
            by: by.word().into(),
            unit: "bytes".into(),
            total: 100,
            resolution: 0,
            unlisted_max: 0,
            halving_s: 600,
            rows: vec![
                TopRow {
                    name: "http://example.org/<script>".into(),
                    count: 60,
                    error: 0,
                    certain: true,
                };
                rows_max.min(3)
            ],
        })
    }

    fn misses(&self) -> Option<RecentMisses> {
        self.counts.then(|| RecentMisses {
            version: VERSION,
            misses: Vec::new(),
            why_meanings: Vec::new(),
            reason_meanings: Vec::new(),
        })
    }

    fn set_module_enabled(&self, name: &str, enabled: bool) -> bool {
        let mut disabled = self.disabled.lock().expect("no panic");
        disabled.retain(|it| it != name);
        if !enabled {
            disabled.push(name.to_owned());
        }
        name == "ads"
    }

    fn forward_address(&self) -> Option<(std::net::SocketAddr, bool)> {
        Some(("0.0.0.0:3128".parse().expect("an address"), false))
    }

    fn is_draining(&self) -> bool {
        self.draining.load(Relaxed)
    }

    fn set_draining(&self, drains: bool) -> bool {
        self.draining.store(drains, Relaxed);
        self.cluster.is_some()
    }

    fn token(&self) -> Option<Arc<Token>> {
        self.token.clone()
    }
}

fn start(fake: Fake) -> (AdminHandle, Arc<Fake>) {
    start_at("127.0.0.1:0", fake)
}

fn start_at(address: &str, fake: Fake) -> (AdminHandle, Arc<Fake>) {
    let fake = Arc::new(fake);
    let address = address.parse().expect("an address");
    let socket = AdminSocket::bind(&address).expect("free").expect("on");
    let control: Arc<dyn Control> = Arc::<Fake>::clone(&fake);
    (serve(socket, control, None).expect("starts"), fake)
}

fn start_within(limits: Limits, fake: Fake) -> (AdminHandle, Arc<Fake>) {
    let fake = Arc::new(fake);
    let address = "127.0.0.1:0".parse().expect("an address");
    let socket = AdminSocket::bind(&address).expect("free").expect("on");
    let control: Arc<dyn Control> = Arc::<Fake>::clone(&fake);
    (
        serve_within(limits, socket, control, None).expect("starts"),
        fake,
    )
}

/// Connections that send so much of a request and no more, one after the other.
fn half_sent(admin: &AdminHandle, count: usize, bytes: &str) -> Vec<TcpStream> {
    let open = |_| {
        let mut stream = TcpStream::connect(tcp(admin)).expect("listens");
        stream.write_all(bytes.as_bytes()).expect("takes it");
        stream
    };
    (0..count).map(open).collect()
}

fn tcp(admin: &AdminHandle) -> SocketAddr {
    admin.address().socket().expect("TCP")
}

/// A file with a token, in a folder that goes with it.
fn token() -> (tempfile::TempDir, Arc<Token>) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("token");
    std::fs::write(&path, "0123456789abcdef\n").expect("a file");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).expect("ours");
    let token = Token::read(&path).expect("a token");
    (folder, Arc::new(token))
}

/// Sends `request` (a head without `Host`, then `\n\n`, then a body) and reads to the end; status
/// and the rest.
fn ask(admin: &AdminHandle, request: &str) -> (u16, String) {
    let (head, body) = request.split_once("\n\n").unwrap_or((request, ""));
    let head = head.replace('\n', "\r\n");
    let (address, length) = (tcp(admin), body.len());
    let rest =
        format!("Host: {address}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}");
    exchange(admin, &format!("{head}\r\n{rest}"))
}

fn exchange(admin: &AdminHandle, bytes: &str) -> (u16, String) {
    speak(TcpStream::connect(tcp(admin)).expect("listens"), bytes)
}

fn speak(mut stream: impl Read + Write, bytes: &str) -> (u16, String) {
    stream.write_all(bytes.as_bytes()).expect("takes it");
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("answers");
    let status = text
        .split(' ')
        .nth(1)
        .and_then(|status| status.parse().ok())
        .expect("a status line");
    (status, text)
}

#[test]
fn healthz_answers_503_while_draining() {
    let (admin, fake) = start(Fake::default());
    let (status, text) = ask(&admin, "GET /healthz HTTP/1.1");
    assert!(status == 200 && text.ends_with("\r\n\r\nok\n"), "{text}");
    fake.draining.store(true, Relaxed);
    let (status, text) = ask(&admin, "GET /healthz HTTP/1.1");
    assert!(
        status == 503 && text.ends_with("\r\n\r\ndraining\n"),
        "{text}"
    );
    // a reload works, and changes little
    let (_, text) = ask(&admin, "POST /reload HTTP/1.1");
    assert!(text.ends_with("reloaded\nnote: it drains\n"), "{text}");
}

#[test]
fn each_endpoint_answers_with_its_status_and_media_type() {
    let (admin, _fake) = start(Fake::default());
    let check = |request: &str, expected: u16, parts: &[&str]| {
        let (status, text) = ask(&admin, request);
        assert_eq!(status, expected, "{request}");
        for part in parts {
            assert!(text.contains(part), "no `{part}` in {text}");
        }
    };
    check(
        "GET / HTTP/1.1",
        200,
        &["POST /purge?url=URL", "text/plain"],
    );
    check(
        "GET /nothere HTTP/1.1",
        404,
        &["GET  /metrics", "POST /reload"],
    );
    check(
        "GET /purge?url=http://a/ HTTP/1.1",
        405,
        &["POST /purge?url=URL", "allow: POST"],
    );
    check(
        "GET /config HTTP/1.1",
        200,
        &["application/toml", "[cache]\nbudget = \"64MiB\"\n"],
    );
    for (request, media_type, part) in [
        (
            "GET /connections HTTP/1.1",
            "text/plain",
            "most open at once",
        ),
        (
            "GET /connections?format=json HTTP/1.1",
            "application/json",
            "\"open_max\": 0",
        ),
        (
            "GET /connections HTTP/1.1\nAccept: application/json, */*;q=0.1",
            "application/json",
            "\"open_max\": 0",
        ),
        (
            "GET /connections?format=table HTTP/1.1\nAccept: */*",
            "text/plain",
            "most open at once",
        ),
    ] {
        check(request, 200, &[media_type, part]);
    }
    check(
        "GET /metrics HTTP/1.1\nAccept: application/openmetrics-text",
        200,
        &[
            "application/openmetrics-text",
            "\nweir_panics_total 1\n",
            "\nweir_parent_requests_total{parent=\"http://10.0.0.1:3128\",kind=\"sibling\",outcome=\"missed\"} 5\n",
            "\nweir_module_metric{module=\"ads\",metric=\"removed\"} 7\n",
            "\n# EOF\n",
        ],
    );
}

#[test]
fn refused_reload_is_answered_by_its_cause_and_with_its_reason() {
    let (admin, _fake) = start(Fake::default());
    let (status, text) = ask(&admin, "POST /reload HTTP/1.1");
    assert!(
        status == 200 && text.ends_with("\r\n\r\nreloaded\n"),
        "{text}"
    );
    let reason = "line 3, column 7: unknown key `bugdet`\n";
    for (failure, expected) in [
        (ReloadFailure::Config(reason.to_owned()), 422),
        (ReloadFailure::Outside(reason.to_owned()), 500),
        (ReloadFailure::NoFile(reason.to_owned()), 409),
    ] {
        let (admin, _fake) = start(Fake {
            refused_reload: Some(failure),
            ..Fake::default()
        });
        let (status, text) = ask(&admin, "POST /reload HTTP/1.1");
        assert!(
            status == expected && text.ends_with(&format!("\r\n\r\n{reason}")),
            "{text}"
        );
    }
}

#[test]
fn healthz_answers_while_a_reload_is_under_way() {
    let (open, gate) = mpsc::channel();
    let (admin, fake) = start(Fake {
        gate: Mutex::new(Some(gate)),
        ..Fake::default()
    });
    std::thread::scope(|scope| {
        let reload = scope.spawn(|| ask(&admin, "POST /reload HTTP/1.1"));
        // the gate is taken when the reload is under way
        while fake.gate.lock().map_or(true, |gate| gate.is_some()) {
            std::thread::yield_now();
        }
        assert_eq!(ask(&admin, "GET /healthz HTTP/1.1").0, 200);
        drop(open);
        assert_eq!(reload.join().expect("no panic").0, 200);
    });
}

#[test]
fn admin_stops_while_silent_connections_are_open() {
    let (admin, _fake) = start(Fake::default());
    let address = tcp(&admin);
    let silent: Vec<_> = (0..3)
        .map(|_| TcpStream::connect(address).expect("listens"))
        .collect();
    assert_eq!(ask(&admin, "GET /healthz HTTP/1.1").0, 200);
    drop(admin);
    assert!(TcpStream::connect(address).is_err(), "still listening");
    for mut stream in silent {
        let end = stream.read(&mut [0]);
        assert!(matches!(end, Ok(0) | Err(_)));
    }
}

#[test]
fn state_changing_request_requires_the_token_and_get_does_not() {
    let (_folder, token) = token();
    let (admin, fake) = start(Fake {
        token: Some(token),
        ..Fake::default()
    });
    let purge = "POST /purge?url=http://a/ HTTP/1.1";
    let check = |request: &str, field: &str, expected: u16, challenge: &str| {
        let request = match field {
            "" => request.to_owned(),
            field => format!("{request}\n{field}"),
        };
        let (status, text) = ask(&admin, &request);
        assert_eq!(status, expected, "{request}");
        let asked = text
            .lines()
            .find_map(|line| line.strip_prefix("www-authenticate: "));
        assert_eq!(asked.unwrap_or_default(), challenge, "{request}");
    };
    let missing = r#"Bearer realm="weir admin""#;
    let wrong = r#"Bearer realm="weir admin", error="invalid_token""#;
    for request in [purge, "POST /purge-all HTTP/1.1", "POST /reload HTTP/1.1"] {
        check(request, "", 401, missing);
        check(
            request,
            "Authorization: Bearer 0123456789abcdeg",
            401,
            wrong,
        );
    }
    for field in [
        "Authorization: Bearer",
        "Authorization: Bearer ",
        "Authorization: Bearer 0123456789abcde",
        "Authorization: Bearer 0123456789abcdef0",
        "Authorization: Bearer 0123456789abcdef 0123456789abcdef",
        "Authorization: Basic 0123456789abcdef",
        "Authorization: 0123456789abcdef",
        "Authorization: Bearer 0123456789abcdef\nAuthorization: Bearer 0123456789abcdef",
    ] {
        check(purge, field, 401, wrong);
    }
    // the path of a later endpoint: the token is checked before the path
    check("DELETE /metrics HTTP/1.1", "", 401, missing);
    check("POST /nothere HTTP/1.1", "", 401, missing);
    for request in ["/healthz", "/metrics", "/connections", "/config", "/"] {
        check(&format!("GET {request} HTTP/1.1"), "", 200, "");
    }
    assert!(fake.purged.lock().expect("no panic").is_empty());
    check(purge, "Authorization: Bearer 0123456789abcdef", 200, "");
    check(
        "POST /purge-all HTTP/1.1",
        "Authorization: bearer  0123456789abcdef",
        200,
        "",
    );
    check(
        "POST /reload HTTP/1.1",
        "Authorization: BEARER 0123456789abcdef",
        200,
        "",
    );
    assert_eq!(*fake.purged.lock().expect("no panic"), ["http://a/", "all"]);
}

#[test]
fn unix_socket_serves_the_endpoints_and_is_removed_at_shutdown() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("admin.sock");
    let (admin, fake) = start_at(&format!("unix:{}", path.display()), Fake::default());
    let speak_there = |request: &str, host: &str| {
        let request = format!("{request} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        speak(UnixStream::connect(&path).expect("listens"), &request)
    };
    let (status, text) = speak_there("GET /healthz", "localhost");
    assert!(status == 200 && text.ends_with("\r\n\r\nok\n"), "{text}");
    assert_eq!(speak_there("POST /purge-all", "localhost").0, 200);
    assert_eq!(*fake.purged.lock().expect("no panic"), ["all"]);
    assert_eq!(speak_there("POST /purge-all", "evil.example").0, 403);
    drop(admin);
    assert!(!path.exists(), "the socket's file stays behind");
}

const HALF_HEAD: &str = "GET /metrics HTTP/1.1\r\nHost: ";

/// A time that does not pass in a test.
const LONG: Duration = Duration::from_secs(3600);

#[test]
fn oldest_connection_awaiting_a_head_is_closed_for_a_new_one() {
    let limits = Limits {
        head: LONG,
        silence: LONG,
        ..Limits::DEFAULT
    };
    let (admin, _fake) = start_within(limits, Fake::default());
    let mut half = half_sent(&admin, limits.connections_max, HALF_HEAD);
    assert_eq!(ask(&admin, "GET /healthz HTTP/1.1").0, 200);
    // the first gave way, and it alone
    let mut last = half.pop().expect("many");
    let end = half[0].read(&mut [0]);
    assert!(matches!(end, Ok(0) | Err(_)), "{end:?}");
    let rest = "127.0.0.1\r\nConnection: close\r\n\r\n";
    for mut stream in half.drain(1..) {
        assert_eq!(speak(&mut stream, rest).0, 200);
    }
    assert_eq!(speak(&mut last, rest).0, 200);
}

#[test]
fn new_connection_is_served_when_all_places_await_request_content() {
    let limits = Limits {
        head: LONG,
        silence: LONG,
        ..Limits::DEFAULT
    };
    let (admin, fake) = start_within(limits, Fake::default());
    let half_body = "POST /purge HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 9\r\n\r\n";
    let _half = half_sent(&admin, limits.connections_max + 8, half_body);
    assert_eq!(ask(&admin, "GET /healthz HTTP/1.1").0, 200);
    assert!(fake.purged.lock().expect("no panic").is_empty());
}

#[test]
fn connection_with_a_half_sent_head_is_closed_at_its_time_limit() {
    let limits = Limits {
        head: Duration::from_millis(50),
        silence: LONG,
        ..Limits::DEFAULT
    };
    let (admin, _fake) = start_within(limits, Fake::default());
    let began = Instant::now();
    for mut stream in half_sent(&admin, 3, HALF_HEAD) {
        let end = stream.read(&mut [0]);
        assert!(matches!(end, Ok(0) | Err(_)), "{end:?}");
    }
    assert!(began.elapsed() >= limits.head);
}

#[test]
fn persistent_connection_and_running_reload_survive_half_sent_heads() {
    let limits = Limits {
        head: LONG,
        silence: LONG,
        ..Limits::DEFAULT
    };
    let (open, gate) = mpsc::channel();
    let fake = Fake {
        gate: Mutex::new(Some(gate)),
        ..Fake::default()
    };
    let (admin, fake) = start_within(limits, fake);
    let host = tcp(&admin);
    // a scraper that keeps its connection
    let mut scraper = TcpStream::connect(host).expect("listens");
    let scrape = format!("GET /healthz HTTP/1.1\r\nHost: {host}\r\n\r\n");
    scraper.write_all(scrape.as_bytes()).expect("takes it");
    let mut answer = Vec::new();
    while !answer.ends_with(b"ok\n") {
        let mut byte = [0];
        scraper.read_exact(&mut byte).expect("answers");
        answer.push(byte[0]);
    }
    std::thread::scope(|scope| {
        let reload = scope.spawn(|| ask(&admin, "POST /reload HTTP/1.1"));
        while fake.gate.lock().map_or(true, |gate| gate.is_some()) {
            std::thread::yield_now();
        }
        let _half = half_sent(&admin, 2 * limits.connections_max, HALF_HEAD);
        assert_eq!(ask(&admin, "GET /healthz HTTP/1.1").0, 200);
        drop(open);
        assert_eq!(reload.join().expect("no panic").0, 200);
        let last = format!("GET /healthz HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        assert_eq!(speak(&mut scraper, &last).0, 200);
    });
}
