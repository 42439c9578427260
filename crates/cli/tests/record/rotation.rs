//! Files one after the other, and the end.

use super::{Client, LOCATIONS, names, record, rows, traces, wait_for};
use crate::support::{Nginx, content};
use std::fmt::Write as _;
use std::path::Path;
use weir_trace::{Reader, Row};

/// Letters that nothing makes shorter.
fn noise(seed: u32, bytes: usize) -> String {
    let bytes = content(seed, bytes / 2);
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("a string takes everything");
        text
    })
}

/// The rows of all files, each of which can be read by itself and has some.
fn all(folder: &Path) -> Vec<Row> {
    let files = traces(folder);
    let mut all = Vec::new();
    for file in &files {
        let rows = rows(file);
        assert!(!rows.is_empty(), "{} has no rows", file.display());
        all.extend(rows);
    }
    assert_eq!(names(folder).len(), files.len(), "{:?}", names(folder));
    all
}

fn check_whole(rows: &[Row], count: u32) {
    let sequences: Vec<u32> = rows
        .iter()
        .filter_map(|row| row.connection_sequence)
        .collect();
    let expected: Vec<u32> = (1..=count).collect();
    assert!(sequences == expected, "{sequences:?}");
}

#[test]
fn rotation_by_size_loses_no_row() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut weir = record(
        folder.path(),
        &["--record-names", "--record-rotate", "1MiB"],
    );
    // it may not be reached: the answer is the proxy's own
    let mut client = Client::new(&weir, "10.0.0.1");
    let count = 1600;
    for number in 1..=count {
        let path = format!("/{}", noise(number, 8000));
        client.get(&path, "").expect(403);
    }
    wait_for(&weir, count.into());
    let metrics = weir.until("finished", |metrics| {
        metrics.count("weir_record_files_total") >= 2
    });
    assert!(metrics.count("weir_record_written_bytes_total") >= 2 << 20);
    assert_eq!(weir.stop().code(), Some(0));
    assert!(traces(folder.path()).len() > 2);
    check_whole(&all(folder.path()), count);
}

#[test]
fn rotation_by_age_loses_no_row() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let nginx = Nginx::start(LOCATIONS);
    nginx.file("file", b"content");
    let mut weir = record(folder.path(), &["--record-rotate", "1s"]);
    let mut client = Client::new(&weir, nginx.address);
    let mut count = 0;
    let files = |weir: &crate::support::Weir| weir.metrics().count("weir_record_files_total");
    while files(&weir) < 2 {
        client.get("/hour/file", "").expect(200);
        count += 1;
    }
    client.get("/hour/file", "").expect(200);
    assert_eq!(weir.stop().code(), Some(0));
    assert!(traces(folder.path()).len() > 2);
    check_whole(&all(folder.path()), count + 1);
}

#[test]
fn recorder_without_requests_leaves_no_file() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut weir = record(folder.path(), &[]);
    weir.ask("GET", "/healthz").expect(200);
    assert_eq!(weir.stop().code(), Some(0));
    assert_eq!(names(folder.path()), Vec::<String>::new());
}

#[test]
fn unfinished_file_of_a_killed_process_keeps_its_part_suffix() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let nginx = Nginx::start(LOCATIONS);
    nginx.file("file", b"content");
    let ask = |weir: &crate::support::Weir| {
        Client::new(weir, nginx.address)
            .get("/hour/file", "")
            .expect(200);
        wait_for(weir, 1);
    };
    let weir = record(folder.path(), &[]);
    ask(&weir);
    // killed outright
    drop(weir);
    let left = names(folder.path());
    assert!(
        left.len() == 1 && left[0].ends_with("-1.parquet.part"),
        "{left:?}"
    );
    let mut weir = record(folder.path(), &[]);
    ask(&weir);
    assert_eq!(weir.stop().code(), Some(0));
    let [path] = &traces(folder.path())[..] else {
        panic!("{:?}", names(folder.path()));
    };
    assert_eq!(rows(path).len(), 1);
}

#[test]
fn non_http_input_is_counted_as_dropped_in_metrics_and_file() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut weir = record(folder.path(), &[]);
    let mut noise = Client::new(&weir, "");
    noise.client.send("no HTTP at all\r\n\r\n");
    noise.client.reply().expect(400);
    let metrics = weir.metrics();
    let dropped = metrics.count("weir_unrecorded_total{reason=\"not-http\"}");
    assert_eq!(dropped, 1);
    Client::new(&weir, "10.0.0.1").get("/", "").expect(403);
    assert_eq!(weir.stop().code(), Some(0));
    let [path] = &traces(folder.path())[..] else {
        panic!("{:?}", names(folder.path()));
    };
    let reader = Reader::open(path).expect("a trace");
    let dropped: Vec<_> = reader.meta().dropped.iter().collect();
    assert_eq!(dropped, [(&"not-http".to_owned(), &1)]);
    assert_eq!(reader.row_count(), 1);
}
