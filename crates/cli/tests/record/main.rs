//! `weir serve --record`: what was done beside what was written down, to the byte; files one after
//! the other; and disks that refuse.

#[path = "../survival/mount.rs"]
#[expect(dead_code, reason = "of its file systems one is needed here")]
mod mount;
#[path = "../support/mod.rs"]
mod support;

mod choices;
mod columns;
mod compared;
mod hidden;
mod readers;
mod rotation;
mod trouble;

use std::path::{Path, PathBuf};
use support::{Config, RawClient, Reply, Weir};
use weir_trace::{Columns, Reader, Row};

/// What nginx serves.
const LOCATIONS: &str = "
    location /hour/ { add_header Cache-Control max-age=3600; alias www/; }
    location /validated/ { add_header Cache-Control \"max-age=0, must-revalidate\"; alias www/; }
    location /private/ { add_header Cache-Control private; add_header Set-Cookie a=b; alias www/; }
";

/// Starts a forward proxy that records into `folder`.
fn record(folder: &Path, more: &[&str]) -> Weir {
    record_with(&Config::forward(), folder, more)
}

/// Starts a proxy that records into `folder`.
fn record_with(config: &Config, folder: &Path, more: &[&str]) -> Weir {
    let file = folder.join("t.parquet");
    let arguments = [&["--record", text(&file)], more].concat();
    Weir::serve_with(config, &arguments)
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a temporary folder has a plain name")
}

/// The names in a folder.
fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).expect("a folder");
    let name = |entry: std::io::Result<std::fs::DirEntry>| entry.expect("an entry").file_name();
    let names = entries.map(|entry| name(entry).to_string_lossy().into_owned());
    names.collect()
}

/// The traces of a folder, in the order in which they were begun.
fn traces(folder: &Path) -> Vec<PathBuf> {
    let number = |name: &String| {
        let digits = name.strip_suffix(".parquet")?.rsplit('-').next()?;
        digits.parse::<u64>().ok()
    };
    let mut found: Vec<(u64, String)> = names(folder)
        .into_iter()
        .filter_map(|name| Some((number(&name)?, name)))
        .collect();
    found.sort();
    found.iter().map(|(_, name)| folder.join(name)).collect()
}

/// All rows of a trace.
fn rows(path: &Path) -> Vec<Row> {
    let reader = Reader::open(path).expect("it is a trace");
    let rows = reader.rows(Columns::ALL);
    rows.map(|row| row.expect("a row")).collect()
}

/// The rows of the only trace in a folder.
#[track_caller]
fn only(folder: &Path) -> Vec<Row> {
    let [path] = &traces(folder)[..] else {
        panic!("{:?}", names(folder));
    };
    rows(path)
}

/// Waits until so many requests are recorded.
fn wait_for(weir: &Weir, count: u64) {
    weir.until("recorded", |metrics| {
        metrics.count("weir_recorded_total") >= count
    });
}

/// A client that says how long its requests were.
struct Client {
    client: RawClient,
    host: String,
}

impl Client {
    fn new(weir: &Weir, host: impl ToString) -> Self {
        Self {
            client: RawClient::connect(weir.address()),
            host: host.to_string(),
        }
    }

    /// Sends a request; how many bytes its head had.
    fn send(&mut self, method: &str, path: &str, fields: &str) -> u32 {
        let host = &self.host;
        let request =
            format!("{method} http://{host}{path} HTTP/1.1\r\nHost: {host}\r\n{fields}\r\n");
        self.client.send(&request);
        u32::try_from(request.len()).expect("it is short")
    }

    /// Sends a GET and takes the answer.
    fn get(&mut self, path: &str, fields: &str) -> Reply {
        self.send("GET", path, fields);
        self.client.reply()
    }
}

/// How many bytes the head of a reply had: each line with its end, and the empty one.
fn head_bytes(reply: &Reply) -> u32 {
    let bytes: usize = reply.head.lines().map(|line| line.len() + 2).sum();
    u32::try_from(bytes + 2).expect("it is short")
}
