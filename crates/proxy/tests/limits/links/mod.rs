//! Links to next hops: what is moved over them is counted, waits for their rate, and ends with
//! their quota.

mod clock;
mod counting;
mod paused;
mod rate;
mod refreshed;
mod spent;
mod state_file;

use crate::support::{Response, Setup};
use std::path::Path;
use weir_measure::Metric;
use weir_measure::live::LinkRow;
use weir_proxy::config::Config;

/// A quota for tests, bytes.
const QUOTA: usize = 1 << 20;

fn linked(text: &str) -> impl Fn(&mut Config) + use<> {
    let links = serde_json::from_str(text).expect("links");
    let links: Vec<weir_proxy::config::Link> = links;
    move |config| config.links.clone_from(&links)
}

/// A link with a quota of 1 MiB a day, kept in `folder`.
fn quota(folder: &Path, more: &str) -> String {
    let file = folder.join("link");
    format!(
        r#"[{{"name": "a", "quota": "1MiB", "period": "day", "overhead_percent": 0,
              "state_file": "{}"{more}}}]"#,
        file.display()
    )
}

fn page(fields: &str, length: usize) -> String {
    let content = "a".repeat(length);
    format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n{fields}\r\n{content}")
}

fn row(setup: &Setup) -> LinkRow {
    setup.proxy.control().links().remove(0)
}

fn spent(setup: &Setup) -> u64 {
    row(setup).quota.expect("a quota").spent_bytes
}

/// Fetches content until the quota is spent.
fn spend(setup: &Setup) {
    let mut client = setup.proxy.client();
    client.send(setup.get("/large"));
    let mut hop = setup.origin.accept();
    hop.read_head();
    let sending = std::thread::spawn(move || {
        // the proxy closes the connection before all of it is sent
        let _cut = hop.try_send(page("Cache-Control: no-store\r\n", 3 * QUOTA));
    });
    client.read_to_end();
    sending.join().expect("no panic");
    let spent = spent(setup);
    let quota = QUOTA as u64;
    // that is no error of the next hop
    assert_eq!(setup.proxy.count(Metric::NextHopErrors), 0);
    // the next hop may have sent what a window holds
    assert!((quota - 1460..=quota + 65_536).contains(&spent), "{spent}");
}

fn ask(setup: &Setup, path: &str) -> Response {
    setup.proxy.client().ask(setup.get(path))
}
