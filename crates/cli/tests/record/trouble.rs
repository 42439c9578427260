//! A disk that is full.

use super::mount::Mount;
use super::{Client, LOCATIONS, record, rows, traces};
use crate::support::{Nginx, Weir};
use std::fs::File;
use std::io::Write as _;
use std::path::Path;

/// Asks until a number is at least so large; how often that was.
fn ask_until(weir: &Weir, client: &mut Client, metric: &str, least: u64) -> u64 {
    let mut asked = 0;
    while weir.metrics().count(metric) < least {
        client.get("/hour/file", "").expect(200);
        asked += 1;
    }
    asked
}

/// Takes all room that is left.
fn fill(path: &Path) {
    let mut filler = File::create(path).expect("a file");
    for size in [1 << 12, 1] {
        let piece = vec![0; size];
        while filler.write_all(&piece).is_ok() {}
    }
}

#[test]
fn full_disk_stops_recording_only_and_every_lost_row_is_counted() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let _small = Mount::memory(folder.path(), "256k");
    let nginx = Nginx::start(LOCATIONS);
    nginx.file("file", b"content");
    let mut weir = record(folder.path(), &["--record-rotate", "1s"]);
    let filler = folder.path().join("filler");
    fill(&filler);
    let mut client = Client::new(&weir, nginx.address);
    let lost = "weir_unrecorded_total{reason=\"lost\"}";
    let refused = "weir_unrecorded_total{reason=\"write-failed\"}";
    let mut asked = ask_until(&weir, &mut client, lost, 1);
    let line = weir.wait_for("recording stops");
    assert!(line.contains("No space left on device"), "{line}");
    assert!(line.contains("again every 1 s"), "{line}");
    asked += ask_until(&weir, &mut client, refused, 1);
    // there is room again: it continues by itself
    std::fs::remove_file(&filler).expect("it is there");
    asked += ask_until(&weir, &mut client, "weir_record_files_total", 1);
    weir.wait_for("recording works again");
    let metrics = weir.until("all are accounted for", |metrics| {
        // a row that is still queued would be written when the proxy stops
        let counted = metrics.count("weir_recorded_total") + metrics.count(refused);
        metrics.count("weir_record_queued") == 0 && counted == asked
    });
    let lost = metrics.count(lost);
    assert_eq!(weir.stop().code(), Some(0));
    let written: u64 = traces(folder.path())
        .iter()
        .map(|path| rows(path).len() as u64)
        .sum();
    assert_eq!(written + lost, metrics.count("weir_recorded_total"));
    let said = weir.said();
    assert_eq!(said.matches("recording stops").count(), 1, "{said}");
}
