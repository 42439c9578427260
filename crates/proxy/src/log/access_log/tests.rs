//! Lines as other programs read them, and what happens when they are not read.

use std::fs::File;
use std::io::Read;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::thread;

use rustix::pipe::pipe;

use super::*;
use crate::config::Mechanism;
use crate::log::forward_log::ForwardLog;
use crate::log::request_log::{LogReaders, RequestLog};
use std::time::Instant;
use weir_policy::connections::hand_off::Stay;
use weir_policy::route::Why;
use weir_policy::{Handling, Hit, Phase, RefuseReason, Storing, Verdict};
use weir_semantics::{DecidedBy, Fwd};

const LONG: Duration = Duration::from_mins(1);

fn address(text: &str) -> SocketAddr {
    text.parse().expect("an address")
}

/// A finished request, to be logged.
struct Sample {
    verdict: Verdict,
    log: RequestLog,
    request: RequestLine<'static>,
}

impl Sample {
    fn entry(&self) -> Entry<'_> {
        Entry {
            time_unix_ms: 784_111_777_042,
            client: LoggedClient::At(address("192.0.2.1:4321")),
            client_reused: true,
            listener: "lan",
            mechanism: None,
            request: self.request,
            verdict: &self.verdict,
            cache_status: b"weir; fwd=uri-miss; stored",
            log: &self.log,
            content_type: b"text/html; charset=utf-8",
            total_us: 12_345,
        }
    }
}

fn verdict(handling: Handling, fwd_status: Option<u16>) -> Verdict {
    Verdict {
        handling,
        fwd_status,
        decided_by: DecidedBy::CacheControl,
        storing: Some(Storing::Stored),
        ttl: None,
        marks: weir_policy::verdict::Marks::NONE,
        may_be_purged: false,
    }
}

fn empty_log() -> RequestLog {
    RequestLog::new(Instant::now(), 0, LogReaders::default())
}

/// A request that was forwarded.
fn forwarded() -> Sample {
    Sample {
        verdict: verdict(Handling::Forward(Fwd::UriMiss), Some(200)),
        log: RequestLog {
            request_bytes: 100,
            response_bytes: 1300,
            body_bytes: 1024,
            store_bytes: 1000,
            recovered_bytes: 900,
            forward: Some(Box::new(ForwardLog {
                read_ahead_max_bytes: 16_384,
                from_next_hop_bytes: 1150,
                fetched_bytes: 50,
                to_next_hop_bytes: 120,
                next_hop: Some(address("[2001:db8::1]:80")),
                ..ForwardLog::NONE
            })),
            node_choice: Some(Why::Replica),
            next_hop_choice: Some(Why::InTurn),
            status: 200,
            ..empty_log().with_times(&[
                (Phase::RequestHead, 5),
                (Phase::Choose, 7),
                (Phase::Forward, 307),
                (Phase::ResponseHead, 4307),
            ])
        },
        request: RequestLine {
            method: "GET",
            target: "http://a.example/x?q=\"1\"",
            version: "HTTP/1.1",
            user_agent: b"curl/8 \"x\"\r\nfake",
            ..RequestLine::default()
        },
    }
}

fn line(format: Format, entry: &Entry<'_>) -> String {
    let mut line = Vec::new();
    format.write(entry, &mut Stamp::new(), &mut line);
    String::from_utf8(line).expect("ASCII")
}

#[test]
fn json_line_holds_logged_values_and_omits_empty_ones() {
    let text = line(Format::Json, &forwarded().entry());
    assert!(text.ends_with("}\n") && text.matches('\n').count() == 1);
    let read: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let expected = serde_json::json!({
        "time": "1994-11-06T08:49:37.042Z", "client": "192.0.2.1:4321", "listener": "lan", "method": "GET",
        "target": "http://a.example/x?q=\"1\"", "version": "HTTP/1.1", "client_reused": true, "request_bytes": 100,
        "status": 200, "verdict": "uri-miss", "cache_status": "weir; fwd=uri-miss; stored",
        "stored": true, "response_bytes": 1300, "body_bytes": 1024, "store_bytes": 1000,
        "recovered_bytes": 900, "read_ahead_max_bytes": 16384, "next_hop": "[2001:db8::1]:80",
        "next_hop_version": "HTTP/1.1", "next_hop_reused": false, "node_choice": "replica", "next_hop_choice": "in-turn", "from_next_hop_bytes": 1200, "to_next_hop_bytes": 120, "next_hop_status": 200,
        "head_us": 5, "choose_us": 2, "connect_us": 300, "first_byte_us": 4000, "total_us": 12345,
        "content_type": "text/html; charset=utf-8", "user_agent": "curl/8 \"x\"\r\nfake",
    });
    assert_eq!(read, expected);
}

#[test]
fn target_without_a_host_is_written_with_its_scheme_and_host() {
    let mut sample = forwarded();
    sample.request.target = "/x";
    sample.request.scheme = "https";
    sample.request.host = b"a.example\"";
    let text = line(Format::Json, &sample.entry());
    let fields = r#""target":"/x","scheme":"https","host":"a.example\"","version""#;
    assert!(text.contains(fields), "{text}");
}

#[test]
fn line_says_by_which_version_the_next_hop_was_asked() {
    let mut sample = forwarded();
    sample.log.is_next_hop_http2 = true;
    let text = line(Format::Json, &sample.entry());
    let field = r#""next_hop_version":"HTTP/2.0","#;
    assert!(text.contains(field), "{text}");
}

#[test]
fn line_says_by_which_mechanism_and_why_a_connection_was_not_handed_over() {
    let mut sample = forwarded();
    sample.log.stays(Stay::TooMany);
    let entry = Entry {
        mechanism: Some(Mechanism::Forwarding),
        ..sample.entry()
    };
    let text = line(Format::Json, &entry);
    let fields = r#""mechanism":"forwarding","hand_off_refusal":"too-many","#;
    assert!(text.contains(fields), "{text}");
}

#[test]
fn request_without_facts_is_a_valid_line_in_every_format() {
    let (verdict, log) = (verdict(Handling::Forward(Fwd::UriMiss), None), empty_log());
    let entry = Entry {
        time_unix_ms: 0,
        client: LoggedClient::At(address("0.0.0.0:0")),
        client_reused: false,
        listener: "",
        mechanism: None,
        request: RequestLine::default(),
        verdict: &verdict,
        cache_status: b"",
        log: &log,
        content_type: b"",
        total_us: 0,
    };
    let text = line(Format::Json, &entry);
    let read: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    for absent in [
        "next_hop",
        "next_hop_version",
        "next_hop_reused",
        "node_choice",
        "next_hop_choice",
        "mechanism",
        "hand_off_refusal",
        "error",
        "connect_us",
        "method",
        "joined",
    ] {
        assert!(read.get(absent).is_none(), "{absent}");
    }
    assert_eq!(
        line(Format::Squid, &entry),
        "0.000      0 0.0.0.0 TCP_MISS/000 0 - - - HIER_NONE/- -\n"
    );
    let combined = "0.0.0.0 - - [01/Jan/1970:00:00:00 +0000] \"  \" 000 - \"-\" \"-\"\n";
    assert_eq!(line(Format::Combined, &entry), combined);
    assert_eq!(
        line(Format::readable(None), &entry),
        "00:00:00Z 0.0.0.0         uri-miss    - 0B       0us -\n"
    );
}

#[test]
fn readable_line_names_the_request_in_columns_that_fit_the_terminal() {
    let of = |sample: &Sample, columns| line(Format::readable(columns), &sample.entry());
    let mut sample = forwarded();
    assert_eq!(
        of(&sample, None),
        "08:49:37Z 192.0.2.1       uri-miss  200 1.2KiB  12ms a.example/x?q=\"1\"\n"
    );
    sample.request.target =
        "http://deb.debian.org/debian/pool/main/libz/libzip/libzip4_1.7.3-1_amd64.deb";
    sample.request.method = "POST";
    sample.verdict = verdict(Handling::Collapsed(Fwd::UriMiss), None);
    let mut entry = sample.entry();
    entry.client = LoggedClient::At(address("[2001:db8:1111:2222:3333:4444:5555:6666]:1"));
    assert_eq!(
        line(Format::readable(Some(40)), &entry),
        "08:49:37Z 2001:db..5:6666 collapsed 200 1.2KiB  12ms POST deb.debian.._amd64.deb\n"
    );
    for (scheme, host, target, expected) in [
        ("http", "b.example:8080", "/x", "b.example:8080/x"),
        ("https", "b.example", "/x", "https://b.example/x"),
        ("http", "b.example", "*", "*"),
        ("", "", "/x", "/x"),
    ] {
        let mut sample = forwarded();
        sample.request.target = target;
        (sample.request.scheme, sample.request.host) = (scheme, host.as_bytes());
        let found = of(&sample, None);
        assert!(found.ends_with(&format!("  12ms {expected}\n")), "{found}");
    }
    let wide = of(&sample, Some(120));
    let target = "POST deb.debian.org/debian/pool/mai..";
    assert!(wide.contains(target) && wide.len() == 121, "{wide}");
}

#[test]
fn no_byte_of_a_request_reaches_a_terminal_as_anything_but_text() {
    for byte in 0..=u8::MAX {
        // as Latin-1, so that C1 controls come as characters of two bytes, too
        let character = char::from(byte);
        let target: String = format!("http://h/{character}a").repeat(40);
        let method: String = format!("M{character}").repeat(20);
        let sample = forwarded();
        let entry = Entry {
            request: RequestLine {
                target: &target,
                method: &method,
                ..sample.request
            },
            ..sample.entry()
        };
        let text = line(Format::readable(None), &entry);
        let text = text.strip_suffix('\n').expect("a line");
        assert!(
            text.bytes().all(|it| (0x20..0x7f).contains(&it)),
            "{text:?}"
        );
        assert!(text.len() <= 80, "{text:?}");
        assert!(
            text.starts_with("08:49:37Z 192.0.2.1       uri-miss  200 "),
            "{text:?}"
        );
    }
}

#[test]
fn private_line_has_neither_addresses_of_clients_nor_queries() {
    let sample = forwarded();
    let entry = Entry {
        request: RequestLine {
            target: "http://a.example/b?secret=1",
            referer: b"http://a.example/c?secret=2",
            ..sample.request
        },
        ..sample.entry()
    };
    let privacy = Privacy {
        client_keys: Some(std::hash::RandomState::new()),
        cuts_queries: true,
    };
    for format in [
        Format::Json,
        Format::Squid,
        Format::Combined,
        Format::readable(None),
    ] {
        let plain = line(format, &entry);
        assert!(
            plain.contains("192.0.2.1") && plain.contains("secret=1"),
            "{plain}"
        );
        let private = line(format, &privacy.shown(&entry));
        assert!(!private.contains("192.0.2.1"), "{private}");
        assert!(!private.contains("secret"), "{private}");
        assert!(private.contains("a.example/b"), "{private}");
        assert_eq!(private, line(format, &privacy.shown(&entry)));
    }
}

#[test]
fn fields_have_one_name_each() {
    let mut names: Vec<&str> = fields::FIELDS.iter().map(|field| field.name).collect();
    names.extend(["time", "client"]);
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count);
    assert!(
        fields::FIELDS
            .iter()
            .all(|field| field.about.ends_with('.'))
    );
}

#[test]
fn squid_line_has_the_columns_and_result_codes_of_squid() {
    let check = |sample: &Sample, expected: &str| {
        assert_eq!(line(Format::Squid, &sample.entry()).trim_end(), expected)
    };
    check(
        &forwarded(),
        "784111777.042     12 192.0.2.1 TCP_MISS/200 1300 GET http://a.example/x?q=\"1\" - HIER_DIRECT/2001:db8::1 text/html",
    );
    let mut hit = forwarded();
    hit.verdict = verdict(Handling::Hit(Hit::Fresh), None);
    hit.log.forward = None;
    hit.request.target = "/a b\n";
    check(
        &hit,
        "784111777.042     12 192.0.2.1 TCP_MEM_HIT/200 1300 GET /a%20b%0a - HIER_NONE/- text/html",
    );
    // of a gateway, whose targets name no host
    hit.request.host = b"a.example:8080";
    for (scheme, url) in [
        ("http", "http://a.example:8080/a%20b%0a"),
        ("https", "https://a.example:8080/a%20b%0a"),
    ] {
        hit.request.scheme = scheme;
        let expected = format!(
            "784111777.042     12 192.0.2.1 TCP_MEM_HIT/200 1300 GET {url} - HIER_NONE/- text/html"
        );
        check(&hit, &expected);
    }
    let codes = [
        (
            Handling::Forward(Fwd::Stale),
            Some(304),
            "TCP_REFRESH_UNMODIFIED",
        ),
        (
            Handling::Forward(Fwd::Stale),
            Some(200),
            "TCP_REFRESH_MODIFIED",
        ),
        (
            Handling::Forward(Fwd::Request),
            Some(200),
            "TCP_CLIENT_REFRESH_MISS",
        ),
        (Handling::Collapsed(Fwd::UriMiss), None, "TCP_CF_MISS"),
        (Handling::Refused(RefuseReason::Denied), None, "TCP_DENIED"),
        (Handling::Tunnel, None, "TCP_TUNNEL"),
        (Handling::Forward(Fwd::Bypass), Some(200), "TCP_MISS"),
    ];
    for (handling, next_hop_status, code) in codes {
        let mut sample = forwarded();
        sample.verdict = verdict(handling, next_hop_status);
        let text = line(Format::Squid, &sample.entry());
        assert!(text.contains(&format!(" {code}/200 ")), "{text}");
    }
}

#[test]
fn combined_line_escapes_quotes_and_line_breaks_in_fields() {
    let mut sample = forwarded();
    sample.request.referer = b"\" 200 1 \"";
    let expected = concat!(
        r#"192.0.2.1 - - [06/Nov/1994:08:49:37 +0000] "GET http://a.example/x?q=\"1\" HTTP/1.1" 200 1024 "#,
        r#""\" 200 1 \"" "curl/8 \"x\"\x0d\x0afake""#,
        "\n"
    );
    assert_eq!(line(Format::Combined, &sample.entry()), expected);
}

#[test]
fn line_stays_below_64_kib_for_oversized_request_fields() {
    let target = "\u{1}".repeat(70_000);
    let agent = vec![0xff; 70_000];
    let sample = forwarded();
    let entry = Entry {
        request: RequestLine {
            target: &target,
            user_agent: &agent,
            referer: &agent,
            ..sample.request
        },
        ..sample.entry()
    };
    for format in [Format::Json, Format::Squid, Format::Combined] {
        assert!(line(format, &entry).len() < 64 << 10, "{format:?}");
    }
}

#[test]
fn lines_logged_by_concurrent_threads_are_whole_and_complete() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("access.log");
    let log = AccessLog::open(
        Destination::Path(path.clone()),
        Format::Json,
        100_000,
        deaf(),
    )
    .expect("opens");
    thread::scope(|scope| {
        for worker in 0..4 {
            let log = &log;
            scope.spawn(move || {
                for number in 0..1000 {
                    let mut sample = forwarded();
                    sample.log.body_bytes = worker * 1000 + number;
                    log.log(&sample.entry());
                }
            });
        }
    });
    drop(log);
    let text = std::fs::read_to_string(&path).expect("written");
    let mut numbers: Vec<u64> = text
        .lines()
        .map(|line| {
            serde_json::from_str::<serde_json::Value>(line).expect("a whole line")["body_bytes"]
                .as_u64()
        })
        .collect::<Option<_>>()
        .expect("numbers");
    numbers.sort_unstable();
    assert!(numbers.into_iter().eq(0..4000));
}

#[test]
fn reopen_after_rotation_writes_the_new_file_and_loses_no_line() {
    let folder = tempfile::tempdir().expect("a folder");
    let (path, moved) = (
        folder.path().join("access.log"),
        folder.path().join("access.log.1"),
    );
    let log = AccessLog::open(Destination::Path(path.clone()), Format::Squid, 100, deaf())
        .expect("opens");
    log.log(&forwarded().entry());
    assert!(log.flush(LONG));
    std::fs::rename(&path, &moved).expect("moved");
    log.log(&forwarded().entry());
    assert!(log.flush(LONG));
    log.reopen().expect("opens");
    log.log(&forwarded().entry());
    assert!(log.flush(LONG));
    let lines = |path| {
        std::fs::read_to_string(path)
            .expect("there")
            .lines()
            .count()
    };
    assert_eq!((lines(&moved), lines(&path), log.dropped()), (2, 1, 0));
    std::fs::remove_dir_all(folder.path()).expect("removed");
    assert!(log.reopen().is_err(), "a rotation that failed is not told");
}

/// Drops all messages.
fn deaf() -> Say {
    Arc::new(|_| {})
}

/// Requests that are reported are read at the other end.
fn listening() -> (Say, std::sync::mpsc::Receiver<String>) {
    let (sender, said) = std::sync::mpsc::channel();
    let say = move |line: &str| sender.send(line.to_owned()).expect("the test listens");
    (Arc::new(say), said)
}

/// A log whose lines go into a pipe.
fn piped(queue_lines: usize) -> (AccessLog, File) {
    let (read, write) = pipe().expect("a pipe");
    let lines = LineLog::to_file(File::from(write), queue_lines, |_| {}).expect("a thread");
    let log = AccessLog {
        privacy: Privacy::default(),
        format: Format::Json,
        lines,
    };
    (log, File::from(read))
}

#[test]
fn blocked_output_drops_and_counts_lines_without_blocking_a_worker() {
    let (log, mut read) = piped(1000);
    // far more than a pipe and the queue can hold
    for _ in 0..5000 {
        log.log(&forwarded().entry());
    }
    assert!(log.dropped() > 0 && log.dropped() < 5000);
    assert!(!log.flush(Duration::ZERO));
    let dropped = log.dropped();
    let reader = thread::spawn(move || {
        let mut text = String::new();
        read.read_to_string(&mut text).expect("ASCII");
        text.lines().count() as u64
    });
    drop(log);
    assert_eq!(
        reader.join().expect("no panic"),
        5000 - dropped,
        "a line is neither written nor counted"
    );
}

#[test]
fn lines_lost_to_a_failing_output_are_counted_as_dropped() {
    let (log, read) = piped(1000);
    drop(read);
    for _ in 0..10 {
        log.log(&forwarded().entry());
    }
    assert!(log.flush(LONG));
    assert_eq!(log.dropped(), 10);
}

#[test]
fn logging_resumes_after_write_errors_reported_once() {
    // every write to this device fails with "no space left"
    let full = PathBuf::from("/dev/full");
    let (say, said) = listening();
    let log = AccessLog::open(Destination::Path(full), Format::Json, 100, say).expect("opens");
    for lost in 1..=3 {
        log.log(&forwarded().entry());
        assert!(log.flush(LONG));
        assert_eq!(log.dropped(), lost);
    }
    let told: Vec<String> = said.try_iter().collect();
    assert_eq!(told.len(), 1, "once for three failures: {told:?}");
    assert!(told[0].contains("No space left on device"), "{told:?}");
    let (read, write) = pipe().expect("a pipe");
    log.lines.replace_file(File::from(write));
    log.log(&forwarded().entry());
    drop(log);
    let mut text = String::new();
    File::from(read).read_to_string(&mut text).expect("ASCII");
    assert_eq!(text.lines().count(), 1);
}

#[test]
fn disabled_log_flushes_at_once_and_drops_nothing() {
    let log = AccessLog::open(Destination::Off, Format::Json, 1, deaf()).expect("opens");
    log.log(&forwarded().entry());
    assert!(log.flush(Duration::ZERO));
    assert_eq!(log.dropped(), 0);
    assert!(log.reopen().is_ok());
}
