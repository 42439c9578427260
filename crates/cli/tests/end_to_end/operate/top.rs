//! `weir top` in terminals of two sizes, and without one.

use crate::support::{Config, Nginx, Tmux, Weir};
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Output};
use weir_measure::live::{
    HistoryTable, LinkRow, LinkRows, Live, LiveKind, LiveSample, LiveSeries, Meaning, Miss,
    RecentMisses, TopRow, TopTable, VERSION,
};

const WEIR: &str = env!("CARGO_BIN_EXE_weir");

/// A proxy that was asked three times for one URL, of an origin that lets it be stored.
fn busy_proxy() -> (Nginx, Weir, String) {
    let nginx = Nginx::start(
        "location / { add_header Cache-Control max-age=3600; return 200 $request_id; }",
    );
    let proxy = Weir::serve(&Config::forward());
    let url = nginx.url("/some/page");
    for _ in 0..3 {
        proxy.get(&url).expect(200);
    }
    (nginx, proxy, url)
}

fn top_in(columns: u16, rows: u16, admin: SocketAddr) -> Tmux {
    Tmux::run(columns, rows, WEIR, &["top", "--admin", &admin.to_string()])
}

fn once(arguments: &[&str]) -> Output {
    Command::new(WEIR)
        .arg("top")
        .args(arguments)
        .env("XDG_RUNTIME_DIR", "/nowhere")
        .output()
        .expect("the binary was built with this test")
}

#[test]
fn screen_of_80_by_24_shows_what_a_proxy_does_and_follows_keys() {
    let (_nginx, proxy, url) = busy_proxy();
    let tmux = top_in(80, 24, proxy.admin);
    let admin = proxy.admin.to_string();
    tmux.until("the table", |screen| {
        let in_all = screen.lines().find(|line| line.starts_with("in all"));
        in_all.is_some_and(|line| line.contains(" 3 ") && line.contains("66.7 %"))
            && [&*admin, &*url, "urls by to-clients", "uri-miss", "q quit"]
                .iter()
                .all(|part| screen.contains(part))
    });
    tmux.keys(&["Tab"]);
    tmux.until_all(&["hosts by to-clients"]);
    tmux.keys(&["s"]);
    tmux.until_all(&["hosts by from-next-hops"]);
    tmux.keys(&["BTab"]);
    let screen = tmux.until_all(&["urls by from-next-hops", &url]);
    assert_eq!(screen.lines().count(), 24, "{screen}");
    tmux.keys(&["/", "other"]);
    tmux.until("filtered", |screen| {
        let table = screen
            .split("last misses and refusals")
            .next()
            .unwrap_or_default();
        screen.contains("filter: other_") && !table.contains(&url)
    });
    tmux.keys(&["Escape"]);
    tmux.until_all(&["q quit", &url]);
    tmux.keys(&["m"]);
    tmux.until("only misses", |screen| {
        !screen.contains("urls by") && screen.contains("uri-miss")
    });
    tmux.keys(&["?"]);
    tmux.until_all(&["this help", "by what they are sorted"]);
    tmux.keys(&["?", "p"]);
    tmux.until_all(&["PAUSED", "urls by"]);
    tmux.keys(&["q"]);
    tmux.expect_end(0);
    assert_eq!(tmux.text("errors"), "");
}

#[test]
fn screen_of_20_by_5_shows_ratios_and_the_heaviest() {
    let (_nginx, proxy, _url) = busy_proxy();
    let tmux = top_in(20, 5, proxy.admin);
    let screen = tmux.until("a row", |screen| {
        let lines: Vec<&str> = screen.lines().collect();
        lines.len() == 5 && lines[0].contains("/s hit ") && lines[2].contains(" 127.0.0....")
    });
    let lines: Vec<&str> = screen.lines().collect();
    assert_eq!(lines[1], "urls by to-clients:");
    assert_eq!(lines[4].trim_end(), "q quit  ? help  tab");
    assert!(lines.iter().all(|line| line.len() <= 20), "{screen}");
    tmux.keys(&["C-c"]);
    tmux.expect_end(0);
}

#[test]
fn terminal_is_restored_by_sigint_while_the_proxy_is_not_reached() {
    let (_nginx, mut proxy, _url) = busy_proxy();
    let tmux = top_in(80, 24, proxy.admin);
    tmux.until_all(&["urls by to-clients"]);
    proxy.kill();
    let screen = tmux.until_all(&["not read for ", "nothing listens there"]);
    assert!(
        screen.contains("urls by to-clients"),
        "numbers stay: {screen}"
    );
    let pid = tmux.text("pid");
    let status = Command::new("kill").args(["-INT", pid.trim()]).status();
    assert!(status.expect("kill is everywhere").success());
    tmux.expect_end(0);
}

#[test]
fn failure_at_the_start_leaves_the_terminal_alone() {
    let held = xtask::closed_port::ClosedPort::hold().expect("a free port");
    let tmux = top_in(80, 24, held.address());
    tmux.expect_end(3);
    assert!(tmux.text("errors").contains("nothing listens there\n"));
    let raw = tmux.text("raw");
    assert!(!raw.contains('\u{1b}'), "{raw:?}");
}

/// What a terminal must not get: an escape sequence, text from right to left, wide characters.
const HOSTILE: &str = "http://a/\u{1b}]0;owned\u{7}\u{202e}\u{6f22}\u{9b}2J";

/// A link with such a name.
fn hostile_links() -> LinkRows {
    let link = LinkRow {
        name: HOSTILE.into(),
        received_bytes: 1,
        sent_bytes: 1,
        refused: 0,
        waited_ms: 0,
        rate_bytes_s: None,
        is_in_window: false,
        is_free: false,
        is_after_clock_step: false,
        quota: None,
    };
    LinkRows {
        version: VERSION,
        links: vec![link],
    }
}

fn hostile_misses() -> RecentMisses {
    let miss = Miss {
        at_unix_ms: 0,
        method: HOSTILE.into(),
        url: HOSTILE.into(),
        client: HOSTILE.into(),
        why: HOSTILE.into(),
        status: 200,
        not_stored: Some(HOSTILE.into()),
        refused: None,
    };
    RecentMisses {
        version: VERSION,
        misses: vec![miss],
        why_meanings: Vec::new(),
        reason_meanings: vec![Meaning {
            word: HOSTILE.into(),
            about: HOSTILE.into(),
        }],
    }
}

/// Answers as the admin interface of a proxy that strangers have sent [`HOSTILE`] names to. It ends
/// with the test.
fn of_hostile_names() -> SocketAddr {
    let series = LiveSeries {
        name: "requests.hit".into(),
        kind: LiveKind::Count,
    };
    let live = Live {
        version: VERSION,
        weir: "\u{1b}[31m0.1.0".into(),
        started_unix_ms: 0,
        series: vec![series.clone()],
        sample: LiveSample {
            at_s: 100,
            values: vec![Some(1)],
            totals: vec![Some(1)],
        },
    };
    let minute = HistoryTable {
        version: VERSION,
        step_s: 1,
        from_s: 40,
        series: vec![series],
        columns: vec![vec![Some(1)]],
    };
    let row = TopRow {
        name: HOSTILE.into(),
        count: 7,
        error: 0,
        certain: true,
    };
    let table = TopTable {
        version: VERSION,
        of: "urls\u{1b}[2J".into(),
        by: "to-clients".into(),
        unit: "bytes".into(),
        total: 7,
        resolution: 0,
        unlisted_max: 0,
        halving_s: 600,
        rows: vec![row],
    };
    let answers = [
        ("/links", serde_json::to_string(&hostile_links())),
        ("/live", serde_json::to_string(&live)),
        ("/history", serde_json::to_string(&minute)),
        ("/top", serde_json::to_string(&table)),
        ("/misses", serde_json::to_string(&hostile_misses())),
    ]
    .map(|(path, json)| (path, json.expect("JSON")));
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("it is bound");
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let mut head = [0; 2048];
            let length = stream.read(&mut head).unwrap_or_default();
            let head = String::from_utf8_lossy(&head[..length]).into_owned();
            let path = head.split([' ', '?']).nth(1).unwrap_or_default();
            let body = answers.iter().find(|(known, _)| *known == path);
            let body = body.map_or("", |(_, json)| json.as_str());
            let answer = format!("HTTP/1.1 200 OK\r\nWeir-Admin: 1\r\n\r\n{body}");
            let _closed = stream.write_all(answer.as_bytes());
        }
    });
    address
}

#[test]
fn hostile_names_do_not_reach_the_terminal_as_they_are() {
    let admin = of_hostile_names();
    let tmux = top_in(80, 24, admin);
    tmux.until_all(&[r"http://a/\u{1b}]0;owned\u{7}\u{202e}\u{6f22}\u{9b}2J"]);
    tmux.keys(&["m"]);
    tmux.until_all(&["last misses and refusals", r"\u{1b}"]);
    tmux.keys(&["q"]);
    tmux.expect_end(0);
    let raw = tmux.file("raw");
    assert!(
        raw.is_ascii(),
        "no wide characters, none from right to left"
    );
    // nothing names the window, and the screen is cleared by its program alone
    assert!(!raw.windows(2).any(|two| two == b"\x1b]"));
    assert!(!raw.contains(&7));

    let admin = admin.to_string();
    for form in ["--once", "--json"] {
        let output = once(&[form, "--admin", &admin]);
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        let is_plain = |byte: &u8| matches!(byte, b' '..=b'~' | b'\n');
        assert!(output.stdout.iter().all(is_plain), "{output:?}");
    }
}

#[test]
fn without_a_terminal_it_is_printed_once_as_text_or_json() {
    let (_nginx, proxy, url) = busy_proxy();
    let admin = proxy.admin.to_string();
    let printed = || {
        let output = once(&["--admin", &admin]);
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        String::from_utf8(output.stdout).expect("text")
    };
    // a hit is listed a second after it
    let until = std::time::Instant::now() + crate::support::PATIENCE;
    let mut text = printed();
    while !(text.contains("66.7 %") && text.contains(&format!("  {url}\n"))) {
        assert!(std::time::Instant::now() < until, "{text}");
        text = printed();
    }
    assert!(text.contains("last misses and refusals\n"), "{text}");
    let output = once(&[
        "--json", "--of", "hosts", "--by", "requests", "--admin", &admin,
    ]);
    let found: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(found["top"]["of"], "hosts");
    assert_eq!(found["top"]["by"], "requests");
    assert_eq!(found["misses"]["misses"][0]["why"], "uri-miss");
    assert_eq!(found["live"]["version"], 1);
}

#[test]
fn names_need_the_token_where_other_machines_reach_the_address() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("token");
    std::fs::write(&file, "0123456789abcdef\n").expect("a file");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).expect("ours");
    let file = file.to_str().expect("text");
    let config = Config::forward()
        .set("admin.address", "\"0.0.0.0:0\"")
        .set("admin.token_file", &format!("{file:?}"));
    let proxy = Weir::serve(&config);
    let admin = format!("127.0.0.1:{}", proxy.admin.port());
    let output = once(&["--once", "--admin", &admin]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("asks for a token"), "{said}");
    let output = once(&["--once", "--admin", &admin, "--token-file", file]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
}
