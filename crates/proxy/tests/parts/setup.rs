//! A proxy that keeps parts, and the origin they are of.

use crate::support::{Representation, Response, Running, ScriptedOrigin, span};
use weir_measure::Metric;
use weir_policy::fetch::AbortKind;
use weir_proxy::config::Config;

/// A proxy before an origin.
pub(super) struct PartSetup {
    pub(super) origin: ScriptedOrigin,
    pub(super) proxy: Running,
}

impl PartSetup {
    pub(super) fn new() -> Self {
        Self::with(|_| {})
    }

    /// One with changes to its configuration.
    pub(super) fn with(change: impl FnOnce(&mut Config)) -> Self {
        let origin = ScriptedOrigin::new();
        let proxy = Running::gateway_with(origin.address(), |config| {
            config.fetch.abort = AbortKind::Stop;
            config.fetch.half_closed = span("1ms");
            change(config);
        });
        Self { origin, proxy }
    }

    /// Keeps the bytes from `from` up to `to`, by a client that asks for them.
    pub(super) fn keep(&self, what: &Representation, from: u64, to: u64) {
        let range = what.get_range(&format!("{from}-{}", to - 1));
        let response = self.complete(what, &range, &[(from, to)]);
        what.check_part(&response, from, to);
    }

    /// Keeps the first bytes of a response in chunks, by a client that leaves.
    pub(super) fn keep_chunks(&self, what: &Representation, to: u64) {
        let mut client = self.proxy.client();
        client.send(what.get(""));
        let (mut hop, _) = self.origin.answer(what.chunked_head());
        assert!(client.read_head().is_chunked());
        hop.send_while(&what.chunk(0, to), || {
            let mut received = 0;
            while received < to {
                let size = String::from_utf8(client.read_until("\r\n")).expect("a size");
                let size = usize::from_str_radix(size.trim_end(), 16).expect("a size");
                what.check(received, &client.read_exactly(size));
                client.expect("\r\n");
                received += size as u64;
            }
        });
        client.into_peer().reset();
        hop.expect_end();
        self.rest();
    }

    /// Sends `request`, and expects that exactly `gaps` are asked for, in this order.
    pub(super) fn complete(
        &self,
        what: &Representation,
        request: &str,
        gaps: &[(u64, u64)],
    ) -> Response {
        let mut client = self.proxy.client();
        client.send(request);
        let response = std::thread::scope(|scope| {
            let reading = scope.spawn(|| client.read_response());
            for (from, to) in gaps {
                let mut hop = self.origin.accept();
                let asked = hop.read_head();
                let range = format!("bytes={from}-{}", to - 1);
                assert_eq!(asked.field("range"), Some(range.as_str()));
                assert!(asked.all("if-range").len() < 2);
                hop.send(what.part(*from, *to));
            }
            reading.join().expect("no panic")
        });
        self.rest();
        response
    }

    /// Until what was fetched is stored.
    pub(super) fn rest(&self) {
        self.proxy.wait_for(Metric::RequestsInFlight, 0);
        self.proxy.wait_for(Metric::FetchesUnderWay, 0);
    }

    /// A range that is there.
    pub(super) fn hit_part(&self, what: &Representation, range: &str, from: u64, to: u64) {
        let response = self.proxy.client().ask(what.get_range(range));
        assert_eq!(response.verdict(), "hit", "{range}");
        what.check_part(&response, from, to);
        self.origin.expect_untouched();
    }

    /// All of it is there.
    pub(super) fn hit_whole(&self, what: &Representation) {
        let response = self.proxy.client().ask(what.get(""));
        assert_eq!(response.verdict(), "hit");
        what.check_whole(&response);
        self.origin.expect_untouched();
    }
}
