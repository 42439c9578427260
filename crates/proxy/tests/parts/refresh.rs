//! What a validation in the background may fetch: no client waits for it, so it brings what the
//! store takes, within the budget of background bytes, and one that came to nothing is not repeated
//! at every hit.

use crate::support::{OriginConnection, PATIENCE, Representation, Running, ScriptedOrigin, span};
use std::time::Instant;
use weir_measure::{Metric, NotStored};
use weir_proxy::config::{ByteSize, Config};

/// A proxy that has a small stale response, which may be served while it is validated.
struct Stale {
    origin: ScriptedOrigin,
    proxy: Running,
    what: Representation,
}

impl Stale {
    fn new(change: impl FnOnce(&mut Config)) -> Self {
        let origin = ScriptedOrigin::new();
        let proxy = Running::gateway_with(origin.address(), change);
        let fields =
            "Cache-Control: max-age=1, stale-while-revalidate=600\r\nConnection: close\r\n";
        let stale = Self {
            origin,
            proxy,
            what: Representation::new("/", 300).with_fields(fields),
        };
        let mut client = stale.proxy.client();
        client.send(stale.what.get(""));
        drop(stale.origin.answer(stale.what.whole()));
        stale.what.check_whole(&client.read_response());
        stale.proxy.clock.advance_ms(2000);
        stale
    }

    /// What the origin has now.
    fn next(&self, length: u64) -> Representation {
        self.what.next(length)
    }

    /// A client is served the stale response.
    fn hit(&self) {
        let response = self.proxy.client().ask(self.what.get(""));
        assert_eq!(response.verdict(), "hit;detail=stale-while-revalidate");
        self.what.check_whole(&response);
    }

    /// The same, and the origin is asked in the background.
    fn refresh(&self) -> OriginConnection {
        self.hit();
        let mut hop = self.origin.accept();
        assert!(hop.read_head().has("if-none-match"));
        hop
    }

    /// The same, and the origin is asked nothing.
    fn rest(&self) {
        self.hit();
        self.proxy.turn();
        self.origin.expect_untouched();
    }
}

/// More than the kernel's buffers take before a reader reads.
const LARGE: u64 = 64 << 20;

#[test]
fn unstorable_background_refresh_ends_after_the_header_section() {
    let private = "Cache-Control: private, max-age=60\r\n";
    let too_large = "Cache-Control: max-age=60\r\n";
    for (fields, why) in [
        (private, NotStored::Private),
        (too_large, NotStored::TooLarge),
    ] {
        let stale = Stale::new(|config| {
            config.cache.largest_response = ByteSize::from_mib(1);
            config.fetch.background_rate = ByteSize::from_gib(1);
        });
        let next = stale.next(LARGE).with_fields(fields);
        let mut hop = stale.refresh();
        hop.send(next.head());
        hop.send(next.bytes(0, 1000));
        hop.expect_end();
        stale.proxy.wait_for(Metric::ResponsesNotStored(why), 1);
        let came = stale.proxy.count(Metric::BytesFromNextHops);
        assert!(came < 2000, "{why:?}: {came}");
        assert_eq!(stale.proxy.count(Metric::ClientAborts), 0);
        assert_eq!(stale.proxy.count(Metric::NextHopErrors), 0);
    }
}

#[test]
fn background_refresh_beyond_the_largest_storable_size_is_aborted() {
    let stale = Stale::new(|config| {
        config.cache.largest_response = ByteSize::from_mib(1);
        config.fetch.background_rate = ByteSize::from_gib(1);
    });
    let next = stale.next(LARGE);
    let mut hop = stale.refresh();
    hop.send(next.chunked_head());
    let mut at = 0;
    while at < LARGE && hop.try_send(next.chunk(at, at + 65_536)) {
        at += 65_536;
    }
    assert!(at < LARGE, "it takes everything");
    let too_large = Metric::ResponsesNotStored(NotStored::TooLarge);
    stale.proxy.wait_for(too_large, 1);
    let came = stale.proxy.count(Metric::BodyBytesFromNextHops);
    assert!((1 << 20..2 << 20).contains(&came), "{came}");
    stale.rest();
}

#[test]
fn background_refresh_keeps_to_the_background_rate_budget() {
    let rate = 16 * 1024;
    let stale = Stale::new(|config| {
        config.fetch.background_rate = ByteSize::from_bytes(rate);
        // the budget makes it wait for longer, which is not the next hop's silence
        config.limits.next_hop_silence = span("800ms");
    });
    let next = stale
        .next(3 * rate)
        .with_fields("Cache-Control: max-age=3600\r\n");
    let mut hop = stale.refresh();
    hop.send(next.head());
    stale.proxy.turn();
    // the kernel has all of it
    hop.send(next.bytes(0, next.length));
    for _ in 0..2 {
        stale.hit();
        stale.hit();
        assert_eq!(stale.proxy.count(Metric::Stored), 1);
        stale.proxy.clock.advance_ms(1000);
    }
    let until = Instant::now() + PATIENCE;
    while stale.proxy.count(Metric::Stored) < 2 {
        assert!(Instant::now() < until, "it is never stored");
        stale.proxy.turn();
        assert_eq!(stale.proxy.count(Metric::NextHopErrors), 0);
        stale.proxy.clock.advance_ms(1);
    }
    let response = stale.proxy.client().ask(next.get(""));
    next.check_whole(&response);
    stale.origin.expect_untouched();
}

#[test]
fn zero_budget_refresh_stores_only_content_read_with_its_header_section() {
    let without = |config: &mut Config| {
        config.fetch.background_rate = ByteSize::from_bytes(0);
    };
    let stale = Stale::new(without);
    let next = stale.next(1000);
    stale.refresh().send(next.whole());
    stale.proxy.wait_for(Metric::Stored, 2);
    next.check_whole(&stale.proxy.client().ask(next.get("")));

    let stale = Stale::new(without);
    let not_modified = stale.what.head_with("304 Not Modified", "");
    stale.refresh().send(not_modified);
    stale.proxy.wait_for(Metric::Freshened, 1);
    let response = stale.proxy.client().ask(stale.what.get(""));
    assert_eq!(response.verdict(), "hit");

    let stale = Stale::new(without);
    let next = stale.next(1000);
    let mut hop = stale.refresh();
    let whole = next.whole();
    hop.send(&whole[..whole.len() - 1]);
    hop.expect_end();
    let incomplete = Metric::ResponsesNotStored(NotStored::Incomplete);
    stale.proxy.wait_for(incomplete, 1);
    stale.rest();
}

#[test]
fn failed_background_refresh_is_retried_only_after_ten_seconds() {
    let stale = Stale::new(|_| {});
    let unavailable =
        "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 4\r\nConnection: close\r\n\r\ndown";
    let next = stale.next(300);
    let whole = next.whole();
    // within the content
    let broken = &whole[..whole.len() - 1];
    for answer in [b"", unavailable.as_bytes(), broken, b"HTTP/9\r\n"] {
        let mut hop = stale.refresh();
        hop.send(answer);
        hop.finish();
        hop.expect_end();
        stale.rest();
        stale.proxy.clock.advance_ms(9_999);
        stale.rest();
        stale.proxy.clock.advance_ms(1);
    }
    drop(stale.refresh().sending(next.whole()).join());
    stale.proxy.wait_for(Metric::Stored, 2);
    next.check_whole(&stale.proxy.client().ask(next.get("")));
}

#[test]
fn connection_of_a_complete_but_unstored_refresh_is_reused() {
    let stale = Stale::new(|_| {});
    let private = stale
        .next(100)
        .with_fields("Cache-Control: private, max-age=60\r\n");
    let mut hop = stale.refresh();
    hop.send(private.whole());
    stale
        .proxy
        .wait_for(Metric::ResponsesNotStored(NotStored::Private), 1);
    let mut client = stale.proxy.client();
    client.send(private.get(""));
    hop.answer(private.whole());
    private.check_whole(&client.read_response());
    stale.origin.expect_untouched();
}
