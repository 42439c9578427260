//! A client that leaves in the middle: the fetch stops or goes on as the policy says, and what is
//! there is kept if it can be completed (R37).

use crate::support::{Representation, Running, ScriptedOrigin, span};
use std::collections::BTreeMap;
use weir_measure::{Aborted, Label as _, Metric};
use weir_policy::fetch::AbortKind;
use weir_proxy::config::{ByteSize, Fetch};

const LENGTH: u64 = 1_500_000;

/// How a client leaves.
#[derive(Clone, Copy, Debug)]
enum Disconnect {
    Reset,
    Close,
}

/// A proxy and its origin, for one policy.
struct AbortSetup {
    origin: ScriptedOrigin,
    proxy: Running,
    /// Fetches without a reader that were judged so far, by the fate that is expected.
    judged: BTreeMap<&'static str, u64>,
}

impl AbortSetup {
    fn new(policy: impl FnOnce(&mut Fetch)) -> Self {
        let origin = ScriptedOrigin::new();
        let proxy = Running::gateway_with(origin.address(), |config| {
            // a client that is gone looks as if it had closed one side only
            config.fetch.half_closed = span("1ms");
            config.fetch.background_rate = ByteSize::from_gib(1);
            policy(&mut config.fetch);
        });
        Self {
            origin,
            proxy,
            judged: BTreeMap::new(),
        }
    }

    /// A client asks for `what`, gets `sent` bytes, which is all that the origin sends, and leaves.
    fn abandon(&mut self, what: &Representation, sent: u64, leave: Disconnect, fate: Aborted) {
        let mut client = self.proxy.client();
        client.send(what.get(""));
        let mut hop = self.origin.accept();
        hop.read_head();
        let message = what.whole();
        let head = what.head().len();
        let count = usize::try_from(sent).expect("small");
        let received = hop.send_while(&message[..head + count], || {
            client.read_head();
            client.read_exactly(count)
        });
        what.check(0, &received);
        match leave {
            Disconnect::Reset => client.into_peer().reset(),
            Disconnect::Close => drop(client),
        }
        let judged = self.judged.entry(fate.word()).or_default();
        *judged += 1;
        self.proxy.wait_for(Metric::FetchesAbandoned(fate), *judged);
        let goes_on = fate.word().starts_with("go-on");
        if goes_on {
            hop.send(&message[head + count..]);
            self.proxy.wait_for(Metric::FetchesUnderWay, 0);
            self.is_whole(what);
        } else {
            // HTTP/1.1 has no other way to stop it
            hop.expect_end();
            self.proxy.wait_for(Metric::FetchesUnderWay, 0);
            self.is_kept(what, sent);
        }
    }

    /// Content fetched without a reader is a hit for the next request.
    fn is_whole(&self, what: &Representation) {
        let response = self.proxy.client().ask(what.get(""));
        assert_eq!(response.verdict(), "hit");
        what.check_whole(&response);
        self.origin.expect_untouched();
    }

    /// The next one costs only the rest.
    fn is_kept(&self, what: &Representation, kept: u64) {
        let is_part = kept > 0 && what.is_strong();
        if is_part {
            let inside = self
                .proxy
                .client()
                .ask(what.get_range(&format!("0-{}", kept - 1)));
            assert_eq!(inside.verdict(), "hit");
            what.check_part(&inside, 0, kept);
        }
        let mut client = self.proxy.client();
        client.send(what.get(""));
        let mut hop = self.origin.accept();
        let asked = hop.read_head();
        let from = if is_part { kept } else { 0 };
        let message = if is_part {
            let range = format!("bytes={from}-{}", what.length - 1);
            assert_eq!(asked.field("range"), Some(range.as_str()));
            assert_eq!(asked.field("if-range"), what.tag.as_deref());
            what.part(from, what.length)
        } else {
            assert!(!asked.has("range") && !asked.has("if-range"), "{asked:?}");
            what.whole()
        };
        let response = hop.send_while(&message, || client.read_response());
        let verdict = if is_part {
            "fwd=partial;fwd-status=206;stored"
        } else {
            "fwd=uri-miss;fwd-status=200;stored"
        };
        assert_eq!(response.verdict(), verdict);
        what.check_whole(&response);
        self.proxy.wait_for(Metric::FetchesUnderWay, 0);
        self.is_whole(what);
    }
}

/// Leaves at each of `cases`, a percentage and what is to become of the fetch there.
fn check(policy: impl Fn(&mut Fetch), tag: Option<&str>, cases: &[(u64, Aborted)]) {
    let mut setup = AbortSetup::new(policy);
    for (percent, fate) in cases {
        for leave in [Disconnect::Reset, Disconnect::Close] {
            let path = format!("/{percent}/{leave:?}");
            let what = Representation::new(&path, LENGTH).tagged(tag);
            setup.abandon(&what, LENGTH / 100 * percent, leave, *fate);
        }
    }
}

const PERCENTAGES: [u64; 6] = [0, 1, 50, 94, 96, 99];

const STRONG: Option<&str> = Some("\"tag\"");

fn kib(kib: u64) -> ByteSize {
    ByteSize::from_kib(kib)
}

#[test]
fn stop_policy_aborts_every_fetch_without_a_reader() {
    let cases = PERCENTAGES.map(|percent| (percent, Aborted::StopAlways));
    for tag in [STRONG, None] {
        check(|fetch| fetch.abort = AbortKind::Stop, tag, &cases);
    }
}

#[test]
fn finish_policy_completes_every_fetch_without_a_reader() {
    let cases = PERCENTAGES.map(|percent| (percent, Aborted::GoOnAlways));
    for tag in [STRONG, None] {
        check(|fetch| fetch.abort = AbortKind::Finish, tag, &cases);
    }
}

#[test]
fn squid_policy_applies_minimum_then_maximum_then_percentage() {
    // still to come, of 1 500 000 bytes: 1 500 000, 1 485 000, 750 000, 90 000, 60 000, 15 000
    let policy = |fetch: &mut Fetch| {
        fetch.abort = AbortKind::Squid;
        fetch.squid_min = kib(32);
        fetch.squid_max = kib(1000);
        fetch.squid_pct = 95;
    };
    let cases = [
        (0, Aborted::StopMuchLeft),
        (1, Aborted::StopMuchLeft),
        (50, Aborted::StopLittleReceived),
        (94, Aborted::StopLittleReceived),
        (96, Aborted::GoOnMostReceived),
        (99, Aborted::GoOnLittleLeft),
    ];
    for tag in [STRONG, None] {
        check(policy, tag, &cases);
    }
}

#[test]
fn squid_policy_defaults_abort_a_fetch_with_30_kb_remaining() {
    let policy = |fetch: &mut Fetch| fetch.abort = AbortKind::Squid;
    check(policy, STRONG, &[(98, Aborted::StopMuchLeft)]);
}

fn by_value(fetch: &mut Fetch) {
    fetch.abort = AbortKind::Value;
    fetch.abort_little = kib(32);
}

#[test]
fn value_policy_aborts_a_resumable_fetch_unless_little_remains() {
    let cases = [
        (0, Aborted::StopNotWorthIt),
        (1, Aborted::StopNotWorthIt),
        (50, Aborted::StopNotWorthIt),
        (94, Aborted::StopNotWorthIt),
        (96, Aborted::StopNotWorthIt),
        (99, Aborted::GoOnLittleLeft),
    ];
    check(by_value, STRONG, &cases);
}

#[test]
fn value_policy_completes_a_non_resumable_fetch_near_its_end() {
    let cases = [
        (0, Aborted::StopNotWorthIt),
        (1, Aborted::StopNotWorthIt),
        (50, Aborted::StopNotWorthIt),
        (94, Aborted::GoOnWorthIt),
        (96, Aborted::GoOnWorthIt),
        (99, Aborted::GoOnLittleLeft),
    ];
    for tag in [None, Some("W/\"weak\"")] {
        check(by_value, tag, &cases);
    }
}

#[test]
fn fetch_without_a_reader_is_aborted_beyond_the_background_budget() {
    let policy = |fetch: &mut Fetch| {
        by_value(fetch);
        fetch.background_rate = ByteSize::from_bytes(14_999);
    };
    check(policy, STRONG, &[(99, Aborted::StopNoBudget)]);
    let policy = |fetch: &mut Fetch| {
        by_value(fetch);
        fetch.background_rate = ByteSize::from_bytes(30_000);
    };
    check(policy, STRONG, &[(99, Aborted::GoOnLittleLeft)]);
}

#[test]
fn zero_background_budget_aborts_every_fetch_without_a_reader() {
    for abort in [AbortKind::Finish, AbortKind::Value, AbortKind::Squid] {
        let policy = |fetch: &mut Fetch| {
            fetch.abort = abort;
            fetch.squid_min = ByteSize::from_gib(1);
            fetch.background_rate = ByteSize::from_bytes(0);
        };
        check(policy, STRONG, &[(99, Aborted::StopNoBudget)]);
    }
}

/// A stream of events has no end: what no client reads is not received for ever.
#[test]
fn finish_has_an_end_for_a_response_without_a_length() {
    let setup = AbortSetup::new(|fetch| {
        fetch.abort = AbortKind::Finish;
        fetch.finish_unknown_length = span("10min");
    });
    let mut client = setup.proxy.client();
    client.send("GET /events HTTP/1.1\r\nHost: a.example\r\n\r\n");
    let mut hop = setup.origin.accept();
    hop.read_head();
    hop.send("HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n");
    client.read_head();
    client.read_chunks_of(1);
    drop(client);
    let fate = |fate| Metric::FetchesAbandoned(fate);
    setup.proxy.wait_for(fate(Aborted::GoOnAlways), 1);
    let before = setup.proxy.count(Metric::BodyBytesFromNextHops);
    setup.proxy.clock.advance_ms(599_000);
    hop.send("1\r\nb\r\n");
    setup
        .proxy
        .wait_for(Metric::BodyBytesFromNextHops, before + 1);
    assert_eq!(setup.proxy.count(Metric::FetchesUnderWay), 1);
    setup.proxy.clock.advance_ms(1000);
    hop.send("1\r\nc\r\n");
    setup.proxy.wait_for(fate(Aborted::StopLengthUnknown), 1);
    setup.proxy.wait_for(Metric::FetchesUnderWay, 0);
}
