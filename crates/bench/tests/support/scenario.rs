//! Scenarios of the tests' own, and an origin that serves one.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use weir_bench::origin::{self, OriginCounts, OriginHandle, OriginListen, OriginPlan};
use weir_semantics::Timestamp;
use weir_workload::{Scenario, Site, Target};

use super::exchange::Wire;

/// Of every run here.
pub(crate) const SEED: u64 = 7;

/// Few targets on one server that never change, answered at once. Its paths are `/hit<number>.bin`.
const HITS: &str = r#"
format = 1
name = "hits"
about = "a test"
sources = []

[workload]
kind = "hits"
targets = 1000
size = "constant(10000B)"
connections = 1
duration = "1s"

[origin]
latency = "constant(0s)"
http = "1.1"
keep_alive = true
idle_timeout = "60s"
conditional = true
addresses = "one"

[clients]
http = "1.1"
keep_alive = true
connections_max = 4
queue_max = 4
response_timeout = "20s"
addresses = "one"
"#;

/// Several servers, as in 1998. Its paths are `/dummy<number>.html`.
const WPB: &str = r#"kind = "wpb"
clients = 4
requests_per_client = 10
servers = 3
inherent_hit_ratio = "50%"
sizes = "uniform(0B, 40KB)"
expires_after = "3d"
"#;

/// Every kind of field, and targets that change every second or so.
const WEB: &str = r#"kind = "web"
agents = 1
rate_per_s = 1.0
servers = 2
targets = 10000
zipf_exponent = 0.8
one_hit_share = "0%"
warm_up = "1s"
measured = "1s"
if_modified_share = "0%"
reload_share = "0%"
head_share = "0%"
cookie_share = "0%"
set_cookie_share = "30%"
cookie_size = "uniform(1B, 200B)"
lifetime = "uniform(0s, 100s)"
life_cycle = { length = "uniform(1s, 4s)", variance = "50%" }
validators = { last_modified = "25%", etag = "25%", both = "25%" }

[[workload.contents]]
name = "page"
share = "60%"
media_type = "text/html"
extension = ".html"
size = "uniform(0B, 3KB)"

[[workload.contents]]
name = "image"
share = "40%"
media_type = "image/webp"
extension = ".webp"
size = "uniform(0B, 90KB)"

[[workload.cache_control]]
share = "30%"
directives = "public, s-maxage=60"
max_age = true

[[workload.cache_control]]
share = "20%"
max_age = true
expires = true

[[workload.cache_control]]
share = "20%"
directives = "no-store"

[[workload.cache_control]]
share = "30%"

[[workload.vary]]
share = "20%"
value = "Accept-Encoding"
"#;

/// The small scenario, with these keys set.
pub(crate) fn hits(assignments: &[&str]) -> Scenario {
    read(HITS, assignments)
}

/// Three servers of pages, with these keys set.
pub(crate) fn wpb(assignments: &[&str]) -> Scenario {
    read(&with_workload(WPB), assignments)
}

/// Two servers of whatever there is today, with these keys set.
pub(crate) fn web(assignments: &[&str]) -> Scenario {
    read(&with_workload(WEB), assignments)
}

/// The small scenario with one fault, given as the rest of its TOML table.
pub(crate) fn faulty(fault: &str, assignments: &[&str]) -> Scenario {
    let text = HITS.replace(
        "[clients]",
        &format!("[[origin.faults]]\n{fault}\n\n[clients]"),
    );
    read(&text, assignments)
}

fn with_workload(workload: &str) -> String {
    let start = HITS.find("kind = ").expect("a workload");
    let end = HITS.find("[origin]").expect("an origin");
    format!("{}{workload}\n{}", &HITS[..start], &HITS[end..])
}

fn read(text: &str, assignments: &[&str]) -> Scenario {
    let mut scenario = Scenario::parse("test.toml", text).expect("a scenario");
    for assignment in assignments {
        scenario.set(assignment).expect("a key");
    }
    scenario
}

/// An origin, and the site it serves.
#[derive(Debug)]
pub(crate) struct TestOrigin {
    pub(crate) site: Site,
    pub(crate) origin: OriginHandle,
}

impl TestOrigin {
    /// On ports of 127.0.0.1 that are free.
    pub(crate) fn new(scenario: Scenario) -> Self {
        Self::on(scenario, ports(), 1)
    }

    /// With room for so many connections.
    pub(crate) fn with_connections(scenario: Scenario, connections_max: u32) -> Self {
        Self::start(scenario, ports(), 1, connections_max)
    }

    pub(crate) fn on(scenario: Scenario, listen: OriginListen, threads: u32) -> Self {
        let connections_max = origin::connections_for(&scenario);
        Self::start(scenario, listen, threads, connections_max)
    }

    fn start(scenario: Scenario, listen: OriginListen, threads: u32, connections_max: u32) -> Self {
        let site = Site::new(&scenario, SEED);
        let plan = OriginPlan {
            scenario: Arc::new(scenario),
            seed: SEED,
            listen,
            threads,
            shares: 2,
            connections_max,
        };
        let origin = origin::start(&plan).expect("an origin");
        Self { site, origin }
    }

    /// The address of server 0.
    pub(crate) fn address(&self) -> SocketAddr {
        self.origin.servers()[0]
    }

    /// A connection to server 0.
    pub(crate) fn wire(&self) -> Wire {
        Wire::to(self.address())
    }

    pub(crate) fn counts(&self) -> OriginCounts {
        self.origin.counts()
    }

    /// The path of a target.
    pub(crate) fn path(&self, target: Target) -> String {
        let mut path = Vec::new();
        self.site.write_path(target, &mut path);
        String::from_utf8(path).expect("a path")
    }

    /// The URL of a target.
    pub(crate) fn url(&self, target: Target) -> String {
        let server = usize::try_from(target.server).expect("a server");
        format!(
            "http://{}{}",
            self.origin.servers()[server],
            self.path(target)
        )
    }

    /// The content of a target that never changes.
    pub(crate) fn content(&self, target: Target) -> Vec<u8> {
        let length = usize::try_from(self.site.length(target)).expect("a short one");
        let mut content = vec![0; length];
        self.site.content(target, 0).fill(0, &mut content);
        content
    }

    /// The entity tag of a target that never changes.
    pub(crate) fn tag(&self, target: Target) -> String {
        let mut tag = Vec::new();
        self.site.write_entity_tag(target, 0, &mut tag);
        String::from_utf8(tag).expect("a tag")
    }
}

pub(crate) fn ports() -> OriginListen {
    OriginListen::Ports {
        address: Ipv4Addr::LOCALHOST.into(),
        first: None,
    }
}

/// A target of server 0.
pub(crate) fn target(number: u64) -> Target {
    Target { server: 0, number }
}

/// An HTTP-date.
pub(crate) fn date(at: Timestamp) -> String {
    let mut text = [0; 29];
    weir_semantics::write_http_date(at, &mut text);
    String::from_utf8_lossy(&text).into_owned()
}

/// The wall clock.
pub(crate) fn now() -> Timestamp {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    Timestamp(i64::try_from(since.expect("after 1970").as_secs()).expect("for long"))
}
