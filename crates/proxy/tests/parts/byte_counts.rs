//! Every byte that a next hop sent is content or overhead, and every byte of content went to a
//! client or was wasted: over a mixture of all ways a response can take, after each of them.

use super::scenarios::{self, Known, Scenario};
use crate::support::{OriginConnection, RawClient, Response, Running, ScriptedOrigin, span};
use serde_json::Value;
use std::cell::Cell;
use std::path::PathBuf;
use weir_measure::{Joined, Label as _, Metric, Snapshot, Verdict};
use weir_policy::eviction::EvictionKind;
use weir_proxy::config::{ByteSize, LogFormat, LogTarget};

/// A proxy, its origin, and what that has sent.
pub(super) struct CountSetup {
    pub(super) origin: ScriptedOrigin,
    pub(super) proxy: Running,
    sent: Cell<u64>,
}

impl CountSetup {
    fn new(log: Option<PathBuf>) -> Self {
        let origin = ScriptedOrigin::new();
        let proxy = Running::gateway_with(origin.address(), |config| {
            config.fetch.half_closed = span("1ms");
            config.fetch.background_rate = ByteSize::from_gib(1);
            config.fetch.abort_little = ByteSize::from_kib(64);
            config.cache.memory = ByteSize::from_mib(16);
            config.cache.largest_response = ByteSize::from_mib(2);
            // S3-FIFO would take in no newcomer of that size
            config.cache.eviction = EvictionKind::Lru;
            if let Some(log) = log {
                config.log.access = LogTarget::File(log);
                config.log.format = LogFormat::Json;
            }
        });
        Self {
            origin,
            proxy,
            sent: Cell::new(0),
        }
    }

    /// The origin sends these bytes.
    pub(super) fn count_sent(&self, bytes: &[u8]) {
        self.sent.set(self.sent.get() + bytes.len() as u64);
    }

    /// Sends as the origin.
    pub(super) fn send(&self, hop: &mut OriginConnection, bytes: impl AsRef<[u8]>) {
        self.count_sent(bytes.as_ref());
        hop.send(bytes);
    }

    /// The same, while `read` makes room.
    pub(super) fn send_while<T>(
        &self,
        hop: &mut OriginConnection,
        bytes: &[u8],
        read: impl FnOnce() -> T,
    ) -> T {
        self.count_sent(bytes);
        hop.send_while(bytes, read)
    }

    /// A new client asks; the origin's connection, with the head read.
    pub(super) fn ask(&self, request: &str) -> (RawClient, OriginConnection) {
        let mut client = self.proxy.client();
        client.send(request);
        let mut hop = self.origin.accept();
        hop.read_head();
        (client, hop)
    }

    /// Asks, answers, reads.
    pub(super) fn fetch(&self, request: &str, answer: &[u8]) -> Response {
        let (mut client, mut hop) = self.ask(request);
        self.send_while(&mut hop, answer, || client.read_response())
    }

    /// Until nothing moves any more.
    pub(super) fn rest(&self) {
        self.proxy.wait_for(Metric::RequestsInFlight, 0);
        self.proxy.wait_for(Metric::FetchesUnderWay, 0);
        self.proxy.wait_for(Metric::NextHopsOpen, 0);
        // what ended has been let go when the next request is answered
        self.proxy
            .client()
            .ask("TRACE / HTTP/1.1\r\nHost: a\r\n\r\n");
    }

    fn run(&self, scenario: &Scenario) {
        let counted = [
            Metric::BytesFromNextHops,
            Metric::BytesWasted,
            Metric::BytesRecovered,
        ];
        let before = counted.map(|metric| self.proxy.count(metric));
        self.sent.set(0);
        (scenario.run)(self);
        self.rest();
        let mut after = counted.map(|metric| self.proxy.count(metric));
        for (after, before) in after.iter_mut().zip(before) {
            *after -= before;
        }
        let name = scenario.name;
        match scenario.known {
            Known::All { wasted, recovered } => {
                let expected = [self.sent.get(), wasted, recovered];
                assert_eq!(after, expected, "{name}: {counted:?}");
            }
            Known::Chance => assert!(after[0] <= self.sent.get(), "{name}: {after:?}"),
        }
        self.check_balance(name);
    }

    fn check_balance(&self, name: &str) {
        let count = |metric| self.proxy.count(metric);
        let content = count(Metric::BodyBytesFromNextHops);
        assert_eq!(
            count(Metric::BytesFromNextHops),
            content + count(Metric::OverheadFromNextHops),
            "{name}: content and overhead"
        );
        let sources = [
            Metric::BodyBytesFromNextHops,
            Metric::BytesFromStore,
            Metric::BodyBytesOfOurs,
        ];
        let uses = [Metric::BodyBytesToClients, Metric::BytesWasted];
        let sum = |metrics: &[Metric]| -> u64 { metrics.iter().copied().map(count).sum() };
        let told = |metrics: &[Metric]| -> Vec<(Metric, u64)> {
            let each = metrics.iter();
            each.map(|metric| (*metric, count(*metric))).collect()
        };
        assert_eq!(
            sum(&sources),
            sum(&uses),
            "{name}: {:?} and {:?}",
            told(&sources),
            told(&uses)
        );
    }
}

#[test]
fn byte_counters_balance_after_every_kind_of_response() {
    let setup = CountSetup::new(None);
    for scenario in scenarios::SCENARIOS {
        setup.run(scenario);
    }
}

/// The lines of a log.
struct Lines(Vec<Value>);

impl Lines {
    fn sum(&self, field: &str) -> u64 {
        self.0.iter().filter_map(|line| line[field].as_u64()).sum()
    }

    fn max(&self, field: &str) -> u64 {
        let values = self.0.iter().filter_map(|line| line[field].as_u64());
        values.max().unwrap_or_default()
    }

    fn count(&self, field: &str, word: &str) -> u64 {
        self.0.iter().filter(|line| line[field] == word).count() as u64
    }
}

#[test]
fn log_totals_equal_the_counters() {
    let (snapshot, lines) = logged(|_| true);
    for (field, metric) in [
        ("body_bytes", Metric::BodyBytesToClients),
        ("store_bytes", Metric::BytesFromStore),
        ("recovered_bytes", Metric::BytesRecovered),
    ] {
        assert_eq!(lines.sum(field), snapshot.get(metric), "{field}");
        assert!(lines.sum(field) > 0, "{field} is not tried");
    }
    // fetches that are shared or go on in the background waste bytes that are no request's
    let wasted = lines.sum("wasted_bytes");
    assert!(0 < wasted && wasted < snapshot.get(Metric::BytesWasted));
    assert!(0 < lines.max("read_ahead_max_bytes"));
    assert!(lines.max("read_ahead_max_bytes") <= snapshot.get(Metric::ReadAheadMaxBytes));
    for how in Joined::ALL {
        let joined = lines.count("joined", how.word());
        assert_eq!(joined, snapshot.get(Metric::Joined(*how)), "{how:?}");
        assert!(joined > 0, "{how:?} is not tried");
    }
    for verdict in Verdict::ALL {
        let logged = lines.count("verdict", verdict.word());
        let counted = snapshot.get(Metric::Requests(*verdict));
        assert_eq!(logged, counted, "{verdict:?}");
    }
}

#[test]
fn log_lines_of_unshared_responses_hold_all_their_bytes() {
    let (snapshot, lines) = logged(|scenario| scenario.is_alone);
    for (field, metric) in [
        ("wasted_bytes", Metric::BytesWasted),
        ("from_next_hop_bytes", Metric::BytesFromNextHops),
        ("response_bytes", Metric::BytesToClients),
    ] {
        assert_eq!(lines.sum(field), snapshot.get(metric), "{field}");
    }
    assert!(lines.sum("wasted_bytes") > 0);
}

/// What was counted and logged of the scenarios that are `wanted`.
fn logged(wanted: impl Fn(&Scenario) -> bool) -> (Snapshot, Lines) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("access.log");
    let setup = CountSetup::new(Some(path.clone()));
    for scenario in scenarios::SCENARIOS {
        if wanted(scenario) {
            setup.run(scenario);
        }
    }
    let CountSetup { proxy, .. } = setup;
    let snapshot = proxy.snapshot();
    // the last lines are written when it has ended
    drop(proxy);
    let text = std::fs::read_to_string(path).expect("a log");
    let lines = text.lines().map(serde_json::from_str);
    let lines = lines.collect::<Result<_, _>>().expect("JSON");
    (snapshot, Lines(lines))
}
