//! The access log in its formats, read as their readers would.

use crate::support::{
    Config, Curl, Issued, KeyKind, Nginx, RawClient, Signal, Terminal, Weir, content,
};
use serde_json::Value;

const LOCATIONS: &str = "
    location /id { add_header Cache-Control max-age=3600; return 200 $request_id; }
";

const LARGE: &str = "
    location /large { add_header Cache-Control max-age=3600; }
";

/// Makes a miss, a hit, a refusal and a missing page, with odd characters in two of them; the
/// lines.
fn lines(format: &str) -> Vec<String> {
    lines_and_words(format).0
}

/// The same, with what each response said in Cache-Status.
fn lines_and_words(format: &str) -> (Vec<String>, Vec<String>) {
    let nginx = Nginx::start(LOCATIONS);
    let config = Config::forward()
        .set("log.access", "\"access.log\"")
        .set("log.format", &format!("{format:?}"));
    let mut weir = Weir::serve(&config);
    let curl = || Curl::through(weir.address());
    let miss = curl().fetch(&nginx.url("/id")).reply().expect(200);
    let odd = "agent \"quoted\" \\ back \u{e9}";
    let hit = curl()
        .args(["-A", odd])
        .fetch(&nginx.url("/id"))
        .reply()
        .expect(200);
    let refused = curl().fetch("http://10.0.0.1/").reply().expect(403);
    let missing = curl()
        .args(["-I"])
        .fetch(&nginx.url("/missing?q=%22"))
        .reply()
        .expect(404);
    assert_eq!(weir.stop().code(), Some(0));
    let text = std::fs::read_to_string(weir.file("access.log")).expect("a log");
    assert!(text.ends_with('\n'), "{text}");
    let lines: Vec<String> = text.lines().map(str::to_owned).collect();
    assert_eq!(lines.len(), 4, "{text}");
    let replies = [miss, hit, refused, missing];
    let words = replies.iter().map(|reply| reply.cache_status());
    (lines, words.collect())
}

#[test]
fn log_line_has_the_cache_status_of_its_response() {
    let (lines, words) = lines_and_words("json");
    for (line, word) in lines.iter().zip(words) {
        let line: Value = serde_json::from_str(line).expect("JSON");
        assert_eq!(line["cache_status"], word, "{line}");
        assert!(!word.is_empty(), "{line}");
    }
}

#[test]
fn json_line_is_valid_json_with_verdict_status_sizes_and_timings() {
    let lines: Vec<Value> = lines("json")
        .iter()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
        .collect();
    let verdicts: Vec<&str> = lines
        .iter()
        .filter_map(|line| line["verdict"].as_str())
        .collect();
    assert_eq!(verdicts, ["uri-miss", "hit", "refused", "uri-miss"]);
    let statuses: Vec<u64> = lines
        .iter()
        .filter_map(|line| line["status"].as_u64())
        .collect();
    assert_eq!(statuses, [200, 200, 403, 404]);
    let (miss, hit, refused, head) = (&lines[0], &lines[1], &lines[2], &lines[3]);
    assert_eq!(miss["stored"], true);
    assert_eq!(miss["next_hop_status"], 200);
    assert_eq!(miss["next_hop_reused"], false);
    assert_eq!(miss["next_hop_version"], "HTTP/1.1");
    assert!(
        miss["next_hop"]
            .as_str()
            .is_some_and(|hop| hop.starts_with("127.0.0.1:"))
    );
    assert!(
        miss["from_next_hop_bytes"]
            .as_u64()
            .is_some_and(|bytes| bytes > 32)
    );
    for line in [miss, hit] {
        assert_eq!(line["body_bytes"], 32);
        assert_eq!(line["method"], "GET");
        assert!(
            line["response_bytes"]
                .as_u64()
                .is_some_and(|bytes| bytes > 32)
        );
        assert!(
            line["request_bytes"]
                .as_u64()
                .is_some_and(|bytes| bytes > 32)
        );
        assert!(
            line["total_us"].is_u64() && line["head_us"].is_u64(),
            "{line}"
        );
    }
    assert!(hit["next_hop"].is_null());
    let status = hit["cache_status"].as_str().unwrap_or_default();
    assert!(status.starts_with("weir;hit;ttl="), "{hit}");
    assert_eq!(hit["user_agent"], "agent \"quoted\" \\ back \u{e9}");
    assert_eq!(refused["error"], "destination_ip_prohibited");
    assert!(
        refused["body_bytes"]
            .as_u64()
            .is_some_and(|bytes| bytes > 32)
    );
    assert_eq!(head["method"], "HEAD");
    assert_eq!(head["body_bytes"], 0);
    assert!(
        head["target"]
            .as_str()
            .is_some_and(|target| target.ends_with("/missing?q=%22"))
    );
}

#[test]
fn line_of_a_gateway_has_the_scheme_and_the_host_that_its_target_lacks() {
    let folder = tempfile::tempdir().expect("a folder");
    let issued = Issued::new(folder.path(), "a", &["a.test"], KeyKind::Ecdsa);
    let nginx = Nginx::start(LOCATIONS);
    let config = Config::gateway(&[&nginx.origin()]).tls(&[&issued]);
    let mut weir = Weir::serve(&config.set("log.access", "\"access.log\""));
    let curl = || {
        let to = format!("::{}", weir.address());
        Curl::direct().args(["-k", "--connect-to", &to])
    };
    for version in ["--http1.1", "--http2"] {
        let curl = curl().args([version]);
        curl.fetch("https://a.test/id").reply().expect(200);
    }
    // no password is written, not even of a host that no URL has
    let odd = curl().args(["--http1.1"]).field("Host: user:secret@a.test");
    odd.fetch("https://a.test/id").reply().expect(400);
    assert_eq!(weir.stop().code(), Some(0));
    let text = std::fs::read_to_string(weir.file("access.log")).expect("a log");
    assert!(!text.contains("secret"), "{text}");
    let lines: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    for line in &lines[..2] {
        assert_eq!(line["target"], "/id", "{line}");
        assert_eq!(line["scheme"], "https", "{line}");
        assert_eq!(line["host"], "a.test", "{line}");
    }
    assert!(lines[2]["host"].is_null(), "{}", lines[2]);
}

/// A response that does not come with its head is brought by a fetch; those who join it have
/// nothing from the next hop.
#[test]
fn large_response_line_counts_the_bytes_received_from_the_next_hop() {
    const BYTES: u64 = 3_000_000;
    let nginx = Nginx::start(LARGE);
    let length = usize::try_from(BYTES).expect("it is small");
    nginx.file("large", &content(1, length));
    let config = Config::forward().set("log.access", "\"access.log\"");
    let mut weir = Weir::serve(&config);
    for _ in 0..2 {
        let reply = weir.get(&nginx.url("/large")).expect(200);
        assert_eq!(reply.body, content(1, length));
    }
    // who leaves in the middle is told of what was brought for it until then
    let mut leaving = RawClient::connect(weir.address());
    leaving.send(format!(
        "GET {} HTTP/1.1\r\nHost: {}\r\n\r\n",
        nginx.url("/large?leaving"),
        nginx.address
    ));
    assert_eq!(leaving.head().status(), 200);
    leaving.take(1_000_000);
    drop(leaving);
    weir.until("counted", |metrics| metrics.all_requests() == 3);
    assert_eq!(weir.stop().code(), Some(0));
    let text = std::fs::read_to_string(weir.file("access.log")).expect("a log");
    let from_next_hop: Vec<u64> = text
        .lines()
        .map(|line| {
            let line: Value = serde_json::from_str(line).expect("JSON");
            line["from_next_hop_bytes"].as_u64().unwrap_or_default()
        })
        .collect();
    let [miss, hit, left] = from_next_hop[..] else {
        panic!("{text}");
    };
    assert!((BYTES..BYTES + 1000).contains(&miss), "{text}");
    assert_eq!(hit, 0, "{text}");
    assert!((1_000_000..BYTES).contains(&left), "{text}");
}

#[test]
fn squid_line_has_the_columns_and_result_codes_of_squid() {
    let lines = lines("squid");
    let mut codes = Vec::new();
    for line in &lines {
        let columns: Vec<&str> = line.split_whitespace().collect();
        assert_eq!(columns.len(), 10, "{line}");
        let (seconds, millis) = columns[0].split_once('.').expect("seconds.millis");
        assert!(
            seconds.parse::<u64>().is_ok() && millis.len() == 3,
            "{line}"
        );
        assert!(columns[1].parse::<u64>().is_ok(), "{line}");
        assert_eq!(columns[2], "127.0.0.1");
        assert!(
            columns[4].parse::<u64>().is_ok_and(|bytes| bytes > 0),
            "{line}"
        );
        assert!(columns[6].starts_with("http://"), "{line}");
        assert_eq!(columns[7], "-");
        codes.push(columns[3]);
    }
    let expected = [
        "TCP_MISS/200",
        "TCP_MEM_HIT/200",
        "TCP_DENIED/403",
        "TCP_MISS/404",
    ];
    assert_eq!(codes, expected);
    assert!(lines[0].contains(" HIER_DIRECT/127.0.0.1 "), "{}", lines[0]);
    assert!(lines[1].contains(" HIER_NONE/- "), "{}", lines[1]);
}

#[test]
fn combined_line_is_parseable_despite_quotes_in_client_fields() {
    for line in lines("combined") {
        let (front, rest) = line.split_once(" [").expect("a date");
        assert_eq!(front, "127.0.0.1 - -");
        let (date, rest) = rest.split_once("] \"").expect("a request");
        assert_eq!(date.len(), "10/Oct/2000:13:55:36 -0700".len(), "{line}");
        let (request, rest) = rest.split_once("\" ").expect("status and bytes");
        assert_eq!(request.split(' ').count(), 3, "{line}");
        assert!(request.ends_with(" HTTP/1.1"), "{line}");
        let (status, rest) = rest.split_once(' ').expect("bytes");
        assert!(status.len() == 3 && status.parse::<u16>().is_ok(), "{line}");
        let (bytes, rest) = rest.split_once(' ').expect("referer and agent");
        assert!(bytes == "-" || bytes.parse::<u64>().is_ok(), "{line}");
        assert!(
            rest.starts_with("\"-\" \"") && rest.ends_with('"'),
            "{line}"
        );
    }
}

#[test]
fn access_log_flag_with_a_dash_writes_json_to_stdout() {
    let nginx = Nginx::start(LOCATIONS);
    let config = Config::forward();
    let mut weir = Weir::serve_with(&config, &["--access-log", "-"]);
    weir.get(&nginx.url("/id")).expect(200);
    weir.stop();
    let text = weir.stdout();
    let line: Value = serde_json::from_str(text.trim_end()).expect("one line of JSON");
    assert_eq!(line["verdict"], "uri-miss");
}

#[test]
fn access_log_is_reopened_after_rename_and_hangup_signal() {
    let nginx = Nginx::start(LOCATIONS);
    let config = Config::forward().set("log.access", "\"access.log\"");
    let mut weir = Weir::serve(&config);
    weir.get(&nginx.url("/id")).expect(200);
    weir.until("counted", |metrics| metrics.all_requests() == 1);
    std::fs::rename(weir.file("access.log"), weir.file("access.log.1")).expect("it is there");
    weir.signal(Signal::HangUp);
    weir.wait_for("config reloaded");
    weir.get(&nginx.url("/id")).expect(200);
    weir.stop();
    let count = |name: &str| {
        let text = std::fs::read_to_string(weir.file(name)).expect("a log");
        text.lines().count()
    };
    // a line may have waited for others when the file was moved
    let (old, new) = (count("access.log.1"), count("access.log"));
    assert!(new >= 1 && old + new == 2, "{old} and {new} lines");
}

#[test]
fn content_type_of_every_response_is_logged() {
    let nginx = Nginx::start(
        "location /css { default_type \"text/css; charset=utf-8\"; add_header Cache-Control max-age=3600; return 200 a; }",
    );
    for format in ["json", "squid"] {
        let config = Config::forward()
            .set("log.access", "\"access.log\"")
            .set("log.format", &format!("{format:?}"));
        let mut weir = Weir::serve(&config);
        for _ in 0..2 {
            weir.get(&nginx.url("/css")).expect(200);
        }
        weir.get("http://10.0.0.1/").expect(403);
        weir.stop();
        let text = std::fs::read_to_string(weir.file("access.log")).expect("a log");
        let types = text.lines().map(|line| match format {
            "json" => {
                let line: Value = serde_json::from_str(line).expect("JSON");
                line["content_type"].as_str().unwrap_or_default().to_owned()
            }
            _ => line.rsplit(' ').next().unwrap_or_default().to_owned(),
        });
        let mut types: Vec<String> = types.collect();
        // lines of two workers come in any order
        types.sort();
        let expected = match format {
            "json" => [
                "text/css; charset=utf-8",
                "text/css; charset=utf-8",
                "text/plain; charset=utf-8",
            ],
            _ => ["text/css", "text/css", "text/plain"],
        };
        assert_eq!(types, expected, "{text}");
    }
}

#[test]
fn unwritable_access_log_is_reported_once_and_lost_lines_are_counted() {
    let nginx = Nginx::start(LOCATIONS);
    let mut weir = Weir::serve_with(&Config::forward(), &["--access-log", "/dev/full"]);
    let lost = |count: u64| {
        weir.get(&nginx.url("/id")).expect(200);
        weir.until("lost", |metrics| {
            metrics.count("weir_access_log_dropped_total") == count
        });
    };
    for count in 1..=3 {
        lost(count);
    }
    weir.stop();
    let said = weir.said();
    let note = "note: the access log cannot be written (No space left on device (os error 28))";
    assert_eq!(said.matches(note).count(), 1, "{said}");
}

#[test]
fn log_on_a_terminal_is_one_short_line_of_text_a_request() {
    let nginx = Nginx::start(LOCATIONS);
    let mut terminal = Terminal::of_columns(80);
    let config = Config::forward().set("log.access", "\"-\"");
    let weir = Weir::serve_at(&config, &terminal);
    let mut client = RawClient::connect(weir.address());
    client.get(&nginx.url("/id")).expect(200);
    assert!(client.get(&nginx.url("/id")).is_hit());
    let long = format!("/{}/x_1.0_all.deb", "directory/".repeat(50));
    client.get(&nginx.url(&long)).expect(404);
    let host = nginx.address;
    // sets the title of the window, moves the cursor, and the same by C1 controls in UTF-8
    for hostile in ["\x1b]0;title\x07", "\x1b[2J", "\u{9b}2J", "\r\x08\x7f"] {
        let mut client = RawClient::connect(weir.address());
        client.send(format!(
            "G{hostile} http://{host}/{hostile} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: {hostile}\r\n\r\n"
        ));
        client.reply().expect(400);
    }
    let lines = terminal.lines(7);
    for line in &lines {
        let text = String::from_utf8_lossy(line);
        assert!(line.len() <= 80, "{text:?}");
        assert!(line.iter().all(|it| (0x20..0x7f).contains(it)), "{text:?}");
    }
    let texts: Vec<String> = lines
        .iter()
        .map(|it| String::from_utf8_lossy(it).into_owned())
        .collect();
    // in whichever order: each connection has a worker of its own
    let with = |columns: &str| texts.iter().filter(|it| it[10..40] == *columns).collect();
    let stored: Vec<&String> = with("127.0.0.1       uri-miss  200 ");
    let hits: Vec<&String> = with("127.0.0.1       hit       200 ");
    let missing: Vec<&String> = with("127.0.0.1       uri-miss  404 ");
    let invalid: Vec<&String> = with("127.0.0.1       invalid   400 ");
    let counts = [stored.len(), hits.len(), missing.len(), invalid.len()];
    assert_eq!(counts, [1, 1, 1, 4], "{texts:#?}");
    assert!(stored[0].ends_with(&format!(" {host}/id")), "{texts:#?}");
    assert!(
        missing[0].ends_with("_1.0_all.deb") && missing[0].len() == 80,
        "{texts:#?}"
    );
}

#[test]
fn log_that_is_not_read_at_a_terminal_is_json_by_default() {
    let mut weir = Weir::serve(&Config::guarded().set("log.access", "\"-\""));
    weir.get("http://10.0.0.1/").expect(403);
    assert_eq!(weir.stop().code(), Some(0));
    let line: Value = serde_json::from_str(weir.stdout().trim_end()).expect("JSON");
    assert_eq!(line["status"], 403);
}
