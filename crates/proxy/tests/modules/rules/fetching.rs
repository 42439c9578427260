//! `abort`: whether fetches continue. `read_ahead` is tried where read-ahead is measured.

use crate::ruled;
use crate::support::Setup;
use weir_measure::{Aborted, Metric};
use weir_proxy::config::{ByteSize, Config};

const RULES: &str = r#"[
    {"path": ["/finished"], "abort": "finish"},
    {"path": ["/stopped"], "abort": "stop"}
]"#;

/// Longer than what sockets and the read-ahead hold.
const LENGTH: usize = 1 << 20;

fn head() -> String {
    format!(
        "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nETag: \"a\"\r\n\
         Content-Length: {LENGTH}\r\nConnection: close\r\n\r\n"
    )
}

#[test]
fn fetch_without_readers_continues_or_stops_as_a_rule_says() {
    let change = |config: &mut Config| {
        ruled(RULES)(config);
        config.fetch.background_rate = ByteSize::from_gib(1);
    };
    Setup::each_with(change, |setup| {
        for (path, is_finished) in [("/finished", true), ("/stopped", false)] {
            let (mut client, mut hop) = setup.lead(&setup.get(path));
            hop.send(head());
            hop.send(vec![b'a'; 1000]);
            assert_eq!(client.read_head().status(), 200);
            client.read_exactly(1000);
            let stored = setup.proxy.count(Metric::Stored);
            drop(client);
            if is_finished {
                hop.send(vec![b'a'; LENGTH - 1000]);
                setup.proxy.wait_for(Metric::Stored, stored + 1);
            } else {
                hop.expect_end();
                setup
                    .proxy
                    .wait_for(Metric::FetchesAbandoned(Aborted::StopAlways), 1);
            }
        }
    });
}
