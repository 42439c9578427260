//! Files with a virus through a scanner, c-icap with its service `virus_scan` and clamd: `make
//! test-virus`.
//!
//! The virus is the test file of EICAR, which every scanner knows and which does nothing. clamd has
//! one signature, that of `docs/icap.md`. Plain `cargo test` leaves this program out (`test =
//! false` in the manifest): a scanner is a large thing to install.

#[path = "../support/mod.rs"]
mod support;

use support::{Config, Curl, Nginx, Reply, VirusScanner, Weir};

const MANUAL: &str = include_str!("../../../../docs/icap.md");

const LOCATIONS: &str = "
    add_header Cache-Control max-age=3600;
    location /packed/ { alias www/; gzip on; gzip_types text/plain; }
    location /upload/ { dav_methods PUT; create_full_put_path on; }
";

/// Lengths around the preview, and beyond what is held for a late 204.
const LENGTHS: [usize; 7] = [1, 1023, 1024, 1025, 70_000, 300_000, 1_000_000];

/// EICAR's file, put together only when this runs: scanners are not to find it in this one.
fn eicar() -> Vec<u8> {
    let parts = [
        r"X5O!P%@AP[4\PZX54(P^)7CC)7}$EICAR",
        "-STANDARD-ANTIVIRUS",
        "-TEST-FILE!$H+H*",
    ];
    let file = parts.concat().into_bytes();
    assert_eq!(file.len(), 68);
    file
}

/// It, far behind what fits into a preview.
fn eicar_late() -> Vec<u8> {
    [text(200_000), eicar(), text(50_000)].concat()
}

/// A file without a virus, in which any loss or repetition shows.
fn text(bytes: usize) -> Vec<u8> {
    (0..bytes)
        .map(|at| b"abcdefghijklmnopqrstuvw"[(at * 7 + at / 23) % 23])
        .collect()
}

struct Setup {
    nginx: Nginx,
    scanner: VirusScanner,
    proxy: Weir,
}

fn start() -> Setup {
    let scanner = VirusScanner::start();
    let options = format!(
        "options.service = \"{}\"\nwait = \"30s\"",
        scanner.service()
    );
    let setup = Setup {
        nginx: Nginx::start(LOCATIONS),
        proxy: Weir::serve(&Config::forward().module("scan", "icap", &options)),
        scanner,
    };
    // what comes before the state of the service is known is not found by it later
    setup.get("/connection").expect(200);
    setup
}

impl Setup {
    fn get(&self, path: &str) -> Reply {
        let curl = Curl::through(self.proxy.address()).field("Accept-Encoding: gzip");
        curl.fetch(&self.nginx.url(path)).reply()
    }

    /// Sends a file with `arguments` of curl.
    fn send<const N: usize>(&self, path: &str, arguments: [&str; N]) -> Reply {
        let curl = Curl::through(self.proxy.address()).args(arguments);
        curl.fetch(&self.nginx.url(path)).reply()
    }
}

/// Fails unless it is the page of the scanner.
#[track_caller]
fn expect_refused(reply: Reply) {
    let reply = reply.expect(403);
    assert_eq!(reply.field("content-type"), "text/html");
    let page = reply.text();
    assert!(
        page.contains("VIRUS FOUND") && page.contains("Eicar-Test"),
        "{page}"
    );
    assert!(!reply.body.windows(68).any(|part| part == eicar()));
}

#[test]
fn manual_shows_the_scanner_as_it_is_tested() {
    for part in [VirusScanner::SIGNATURE, VirusScanner::LINES] {
        assert!(MANUAL.contains(part.trim()), "{part}");
    }
}

#[test]
fn response_with_a_virus_is_refused_each_time_and_not_stored() {
    let setup = start();
    setup.nginx.file("eicar.txt", &eicar());
    setup.nginx.file("late.txt", &eicar_late());
    for path in [
        "/eicar.txt",
        "/late.txt",
        "/packed/eicar.txt",
        "/packed/late.txt",
    ] {
        for _ in 0..2 {
            expect_refused(setup.get(path));
        }
    }
    let metrics = setup.proxy.metrics();
    assert_eq!(
        (metrics.count("weir_stored_total"), metrics.requests("hit")),
        (0, 0)
    );
}

#[test]
fn upload_with_a_virus_is_refused_and_does_not_reach_the_next_hop() {
    let setup = start();
    for (name, content) in [("eicar", eicar()), ("late", eicar_late())] {
        let file = setup.nginx.file(&format!("local/{name}"), &content);
        let file = file.display().to_string();
        let path = format!("/upload/{name}");
        expect_refused(setup.send(&path, ["-T", &file]));
        expect_refused(setup.send(&path, ["-F", &format!("file=@{file}")]));
        let chunked = "Transfer-Encoding: chunked";
        expect_refused(setup.send(&path, ["-H", chunked, "-T", &file]));
        assert!(!setup.nginx.path(&path[1..]).exists());
    }
}

#[test]
fn clean_files_pass_byte_for_byte_in_both_directions() {
    let setup = start();
    for bytes in LENGTHS {
        let (name, content) = (format!("{bytes}.txt"), text(bytes));
        let file = setup.nginx.file(&name, &content).display().to_string();
        for is_hit in [false, true] {
            let reply = setup.get(&format!("/{name}")).expect(200);
            assert!(reply.body == content, "{bytes}");
            assert_eq!(reply.is_hit(), is_hit, "{}", reply.head);
        }
        let path = format!("/upload/{name}");
        setup.send(&path, ["-T", &file]).expect(201);
        assert!(std::fs::read(setup.nginx.path(&path[1..])).expect("it arrived") == content);
    }
    let metrics = setup.proxy.metrics();
    assert_eq!(metrics.requests("hit"), LENGTHS.len() as u64);
}

/// The scanner is asked for no more than a preview of files that it need not see, and what it has
/// scanned does not come back.
#[test]
fn preview_and_204_keep_content_from_being_sent_both_ways() {
    let setup = start();
    let (picture, page) = (
        [b"\x89PNG\r\n\x1a\n".to_vec(), text(200_000)].concat(),
        text(200_000),
    );
    setup.nginx.file("picture.png", &picture);
    setup.nginx.file("page.txt", &page);
    assert!(setup.get("/picture.png").expect(200).body == picture);
    assert!(setup.get("/page.txt").expect(200).body == page);
    let asked = setup.scanner.log_until("RESPMOD", 3);
    let [_, picture, page] = &asked[..] else {
        panic!("{asked:?}");
    };
    assert_eq!((picture.status, picture.sent), (204, 0));
    assert!(picture.received <= 1024, "{picture:?}");
    assert_eq!((page.status, page.sent), (204, 0));
    assert!(page.received >= 200_000, "{page:?}");
}
