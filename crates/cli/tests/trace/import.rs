//! `weir trace import` as it is used: files in, a trace out, and what is said about it.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;
use weir_trace::{Anonymisation, Columns, Reader, Row};

/// A real Squid's lines; one is damaged.
const SQUID: &str = "\
1795242067.160     11 127.0.0.1 TCP_MISS/200 2900 GET http://a.example/s/351 - HIER_DIRECT/127.0.0.1 text/plain
1795242067.260     11 127.0.0.1 TCP_MISS/200 - GET http://a.example/s/1?x - HIER_DIRECT/127.0.0.1 text/plain
1795242068.162      3 127.0.0.2 TCP_MEM_HIT/200 2900 GET http://a.example/s/351 - HIER_NONE/- text/plain
what is this
1795242068.163      0 127.0.0.2 NONE/400 3829 NONE error:invalid-request - HIER_NONE/- text/html
";

const COMMON: &str =
    "127.0.0.1 - - [01/Jul/1995:00:00:01 -0400] \"GET /s/351 HTTP/1.0\" 200 6245\n";

fn weir(folder: &TempDir, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_weir"))
        .args(["trace", "import"])
        .args(arguments)
        .current_dir(folder.path())
        .stdin(Stdio::null())
        .output()
        .expect("the binary was built with this test")
}

fn folder() -> TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    std::fs::write(folder.path().join("squid.log"), SQUID).expect("written");
    std::fs::write(folder.path().join("common.log"), COMMON).expect("written");
    folder
}

fn rows(path: &Path) -> Vec<Row> {
    let reader = Reader::open(path).expect("it is a trace");
    let rows = reader.rows(Columns::ALL);
    rows.map(|row| row.expect("it is whole")).collect()
}

fn said(output: &Output) -> String {
    let text = [&output.stdout[..], &output.stderr].concat();
    String::from_utf8(text).expect("it is text")
}

#[test]
fn damaged_line_stops_the_import_unless_skipping_is_requested() {
    let folder = folder();
    for (more, says, hints) in [
        (
            &[][..],
            "line 2: size `-` is not a number",
            "--missing-size skip",
        ),
        (
            &["--missing-size", "8KiB"],
            "line 4: there are fewer than the seven fields",
            "--on-damage skip",
        ),
    ] {
        let arguments = [&["squid.log", "-o", "t.parquet"][..], more].concat();
        let output = weir(&folder, &arguments);
        assert_eq!(output.status.code(), Some(3));
        let said = said(&output);
        assert!(
            said.starts_with("error: cannot read `squid.log`\n"),
            "{said}"
        );
        assert!(said.contains(&format!("  caused by: {says}")), "{said}");
        assert!(said.contains("hint: ") && said.contains(hints), "{said}");
        let files = std::fs::read_dir(folder.path()).expect("it is there");
        assert_eq!(files.count(), 2, "something is left behind");
    }
}

#[test]
fn weir_json_access_log_is_refused_with_a_hint() {
    let folder = folder();
    let line = r#"{"time":"2026-11-22T10:00:00.000Z","client":"127.0.0.1:4000","method":"GET","target":"http://a.example/","version":"1.1"}"#;
    std::fs::write(
        folder.path().join("access.log"),
        format!("{line}\n{line}\n"),
    )
    .expect("written");
    let output = weir(&folder, &["access.log", "-o", "t.parquet"]);
    assert_eq!(output.status.code(), Some(2));
    let said = said(&output);
    assert!(said.contains("it is Weir's access log in JSON"), "{said}");
    assert!(
        said.contains("--record FILE") && said.contains("[log] format = \"squid\""),
        "{said}"
    );
    assert!(!folder.path().join("t.parquet").exists());
}

#[test]
fn import_without_a_request_is_refused_and_leaves_no_trace() {
    let folder = folder();
    let bad = SQUID.lines().nth(3).expect("a line");
    std::fs::write(folder.path().join("bad.log"), bad).expect("written");
    let output = weir(
        &folder,
        &[
            "bad.log",
            "-o",
            "t.parquet",
            "--format",
            "squid",
            "--on-damage",
            "skip",
        ],
    );
    assert_eq!(output.status.code(), Some(2));
    let said = said(&output);
    assert!(said.contains("no request was read; dropped: 1: "), "{said}");
    assert!(!folder.path().join("t.parquet").exists());
}

#[test]
fn trace_is_written_through_a_symbolic_link_and_into_a_fifo() {
    let folder = folder();
    let at = |name: &str| folder.path().join(name);
    std::os::unix::fs::symlink("real.parquet", at("link")).expect("linked");
    for order in ["arrival", "source"] {
        let output = weir(&folder, &["common.log", "-o", "link", "--order", order]);
        assert_eq!(output.status.code(), Some(0), "{}", said(&output));
        let kind = std::fs::symlink_metadata(at("link")).expect("it is there");
        assert!(kind.file_type().is_symlink());
        assert_eq!(rows(&at("real.parquet")).len(), 1);
        std::fs::remove_file(at("real.parquet")).expect("removed");
    }
    let made = Command::new("mkfifo").arg(at("fifo")).status();
    assert!(made.expect("mkfifo").success());
    let (from, to) = (at("fifo"), at("read.parquet"));
    let reader = std::thread::spawn(move || {
        let bytes = std::fs::read(from).expect("read");
        std::fs::write(to, bytes).expect("written");
    });
    let output = weir(&folder, &["common.log", "-o", "fifo"]);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    reader.join().expect("read");
    assert_eq!(rows(&at("read.parquet")).len(), 1);
}

#[test]
fn import_of_two_logs_keeps_every_valid_row_and_no_name() {
    let folder = folder();
    let output = weir(
        &folder,
        &[
            "squid.log",
            "common.log",
            "-o",
            "t.parquet",
            "--on-damage",
            "skip",
            "--missing-size",
            "8KiB",
        ],
    );
    let said = said(&output);
    assert!(output.status.success(), "{said}");
    for line in [
        "  from       squid.log (squid), 3 rows\n",
        "  damaged    1; the first: line 4: there are fewer than the seven fields from time to URL\n",
        "  from       common.log (common), 1 rows\n",
        "  rows       4\n",
        "  dropped    2: damaged-fields 1, not-http 1\n",
        "  clients    2\n",
        "  received   20237 bytes\n",
        "  methods    GET 4\n",
        "  statuses   200 4\n",
    ] {
        assert!(said.contains(line), "{line}in\n{said}");
    }
    let path = folder.path().join("t.parquet");
    let reader = Reader::open(&path).expect("it is a trace");
    let meta = reader.meta();
    assert_eq!(meta.source, "weir trace import, squid, common");
    assert_eq!(meta.anonymisation, Some(Anonymisation::Keyed));
    assert_eq!(meta.dropped["not-http"], 1);
    let rows = rows(&path);
    // the second log is the older one
    assert_eq!(rows[1].target, rows[3].target);
    assert_ne!(rows[1].client, rows[3].client);
    assert_eq!(rows[1].client, rows[0].client, "one address, two logs");
    assert_eq!(rows[2].received_bytes, Some(8192));
    assert_eq!(rows[3].verdict.as_deref(), Some("TCP_MEM_HIT"));
    assert!(rows.iter().all(|row| row.target_text.is_none()));
    let bytes = std::fs::read(&path).expect("it is there");
    for name in ["a.example", "127.0.0", "s/351"] {
        let is_in = bytes
            .windows(name.len())
            .any(|window| window == name.as_bytes());
        assert!(!is_in, "{name} is in the file");
    }
}

#[test]
fn rows_are_in_arrival_order_unless_source_order_is_requested() {
    let folder = folder();
    // as Squid writes them: when they end; the first is the last to arrive
    let log = "\
1795242067.160      1 127.0.0.1 TCP_MISS/200 2900 GET http://a.example/1 - HIER_DIRECT/127.0.0.1 -
1795242067.200    100 127.0.0.1 TCP_MISS/200 2900 GET http://a.example/2 - HIER_DIRECT/127.0.0.1 -
1795242067.300    250 127.0.0.1 TCP_MISS/200 2900 GET http://a.example/3 - HIER_DIRECT/127.0.0.1 -
";
    std::fs::write(folder.path().join("ends.log"), log).expect("written");
    let elapsed = |order: &[&str]| -> (Vec<u64>, String) {
        let arguments = [&["ends.log", "common.log", "-o", "t.parquet"][..], order].concat();
        let output = weir(&folder, &arguments);
        let said = said(&output);
        assert!(output.status.success(), "{said}");
        let rows = rows(&folder.path().join("t.parquet"));
        let elapsed = rows.iter().map(|row| row.last_byte_us.unwrap_or(0) / 1000);
        (elapsed.collect(), said)
    };
    let (rows, said) = elapsed(&[]);
    assert_eq!(rows, [0, 250, 100, 1]);
    let moved = "  moved      3 rows, into the order of arrival\n";
    assert!(said.contains(moved), "{said}");
    let (rows, said) = elapsed(&["--order", "source"]);
    assert_eq!(rows, [1, 100, 250, 0]);
    assert!(!said.contains("moved"), "{said}");
}

#[test]
fn capture_summary_counts_packets_connections_requests_and_responses() {
    let folder = folder();
    // a real one, of both sides of a Squid
    let capture = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../sim/tests/squid/data/devcap.pcap.gz"
    );
    let output = weir(&folder, &[capture, "-o", "a.parquet"]);
    let text = said(&output);
    assert!(output.status.success(), "{text}");
    for line in [
        "devcap.pcap.gz (pcap, gzip), 292 rows\n",
        "\n  met        packets 2507, connections 27, ",
        "requests 292, responses 292",
    ] {
        assert!(text.contains(line), "{line}in\n{text}");
    }
    let output = weir(&folder, &[capture, "-o", "b.parquet", "--json"]);
    let summary: serde_json::Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    let met = &summary["inputs"][0]["met"];
    assert_eq!(
        (&met["packets"], &met["connections"]),
        (&2507.into(), &27.into())
    );
    assert_eq!(
        (&met["requests"], &met["responses"]),
        (&292.into(), &292.into())
    );
}

#[test]
fn key_file_gives_the_same_hashes_and_names_option_keeps_target_uris() {
    let folder = folder();
    let import = |out: &str, more: &[&str]| {
        let arguments = [&["common.log", "-o", out][..], more].concat();
        let output = weir(&folder, &arguments);
        assert!(output.status.success(), "{}", said(&output));
        rows(&folder.path().join(out)).remove(0)
    };
    let kept = ["--key-file", "key"];
    assert_eq!(import("a", &kept), import("b", &kept));
    assert_ne!(import("c", &[]).client, import("d", &[]).client);
    let readable = import("e", &["--names", "--site", "http://a.example"]);
    let expected = Some("http://a.example/s/351");
    assert_eq!(readable.target_text.as_deref(), expected);
}

#[test]
fn input_named_dash_is_read_from_standard_input() {
    let folder = folder();
    let mut child = Command::new(env!("CARGO_BIN_EXE_weir"))
        .args(["trace", "import", "-", "-o", "t.parquet", "--json"])
        .current_dir(folder.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the binary was built with this test");
    let mut input = child.stdin.take().expect("it is piped");
    input.write_all(COMMON.as_bytes()).expect("it reads");
    drop(input);
    let output = child.wait_with_output().expect("it ends");
    let summary: serde_json::Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    assert_eq!(summary["rows"], 1);
    assert_eq!(summary["inputs"][0]["format"], "common");
    assert_eq!(summary["arrivals"]["first_us"], 804_571_201_000_000_i64);
    assert_eq!(summary["dropped"], serde_json::json!({}));
}
