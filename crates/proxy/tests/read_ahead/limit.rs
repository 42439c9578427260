//! How far ahead of its client a response may be that is not stored.
//!
//! What the next hop's peer acknowledged beyond what the client has read is the read-ahead of 64
//! KiB and what the client's own kernel holds for it.

use super::endpoints::{CLIENT_KERNEL_BYTES, Flow};
use crate::support::{PATIENCE, Running, ScriptedOrigin, scripted};
use std::time::Instant;
use weir_extend::PIECE_BYTES_MAX;
use weir_measure::Metric;
use weir_proxy::config::ReadAhead;

/// Of the default read-ahead.
const READ_AHEAD_BYTES: usize = 64 * 1024;

const MOST: usize = READ_AHEAD_BYTES + CLIENT_KERNEL_BYTES;

const LENGTH: usize = 60_000_000;

fn begin<'a>(proxy: &'a Running, origin: &ScriptedOrigin) -> Flow<'a> {
    let framing = format!("Content-Length: {LENGTH}\r\n");
    Flow::begin(proxy, origin, None, LENGTH, &framing)
}

fn gateway(origin: &ScriptedOrigin, read_ahead: &str) -> Running {
    Running::gateway_with(origin.address(), |config| {
        config.fetch.read_ahead = read_ahead.parse().expect("a read-ahead");
    })
}

#[test]
fn read_ahead_stays_within_its_limit_for_a_client_that_reads_nothing() {
    let origin = ScriptedOrigin::new();
    let proxy = Running::gateway(&origin);
    let mut flow = begin(&proxy, &origin);
    let read_ahead = flow.read_ahead();
    assert!(read_ahead <= MOST, "{read_ahead}");
    // and not so little that a fast client would wait for each byte
    assert!(read_ahead >= READ_AHEAD_BYTES / 2, "{read_ahead}");
}

#[test]
fn read_ahead_stays_within_its_limit_for_a_slow_client() {
    let origin = ScriptedOrigin::new();
    let proxy = Running::gateway(&origin);
    let mut flow = begin(&proxy, &origin);
    for _ in 0..20 {
        // 50 KB/s, by the proxy's clock
        proxy.clock.advance_ms(100);
        flow.read_exactly(5000);
        let read_ahead = flow.read_ahead();
        assert!(read_ahead <= MOST, "{read_ahead}");
    }
}

#[test]
fn read_ahead_shrinks_to_its_limit_when_a_fast_client_becomes_slow() {
    let origin = ScriptedOrigin::new();
    let proxy = Running::gateway(&origin);
    let mut flow = begin(&proxy, &origin);
    let mut fast = 0;
    // round trips are the kernel's: how fast it gets in so many reads depends on the machine
    while fast <= 2 * MOST && flow.left() > LENGTH / 2 {
        for _ in 0..10 {
            proxy.clock.advance_ms(2);
            flow.read_exactly(256 * 1024);
        }
        fast = flow.read_ahead();
    }
    assert!(fast > 2 * MOST, "{fast}: it never was");
    // what came until it stopped is read first
    let mut slowly = 0;
    while slowly < 2 * fast {
        proxy.clock.advance_ms(100);
        flow.read_exactly(40_000);
        slowly += 40_000;
    }
    let read_ahead = flow.read_ahead();
    assert!(read_ahead <= MOST + READ_AHEAD_BYTES / 2, "{read_ahead}");
}

#[test]
fn read_ahead_stays_within_the_configured_limit() {
    for (read_ahead, most) in [("16KiB", 16 * 1024), ("256KiB", 256 * 1024)] {
        let origin = ScriptedOrigin::new();
        let proxy = gateway(&origin, read_ahead);
        let mut flow = begin(&proxy, &origin);
        let found = flow.read_ahead();
        assert!(found <= most + CLIENT_KERNEL_BYTES, "{read_ahead}: {found}");
    }
}

/// Beside it the proxy has what the module holds, and a piece on each side of the module.
#[test]
fn read_ahead_through_a_module_grows_by_what_it_holds() {
    for hook in ["response-received", "response-sent"] {
        for (how, held) in [("content upper", 0), ("content blocks", 200_000)] {
            let origin = ScriptedOrigin::new();
            let proxy = Running::gateway_with(origin.address(), |config| {
                config.modules = vec![scripted("a", &[(hook, how)])];
            });
            let read_ahead = begin(&proxy, &origin).read_ahead();
            let most = MOST + held + 2 * PIECE_BYTES_MAX;
            assert!(read_ahead <= most, "{hook} {how}: {read_ahead} of {most}");
        }
    }
}

/// What the proxy has read of a request and not sent on: a read, a piece on each side of the
/// module, and what that holds.
#[test]
fn content_of_a_request_that_the_next_hop_does_not_take_is_held_as_far_as_a_module_may() {
    let modules = [
        (None, 0),
        (Some("content upper"), 0),
        (Some("content blocks"), 200_000),
    ];
    for (how, held) in modules {
        let origin = ScriptedOrigin::with_small_buffers();
        let proxy = Running::gateway_with(origin.address(), |config| {
            let module = |how| scripted("a", &[("request-received", how)]);
            config.modules = how.map(module).into_iter().collect();
        });
        let mut client = proxy.client();
        client.send(format!(
            "POST / HTTP/1.1\r\nHost: origin.example\r\nContent-Length: {LENGTH}\r\n\r\n"
        ));
        let sending = std::thread::spawn(move || client.try_send(vec![b'x'; LENGTH]));
        let mut hop = origin.accept();
        hop.read_head();
        let (mut read, mut sent) = (0, 0);
        let mut unchanged = 0;
        while unchanged < 20 {
            proxy.turn();
            let now = proxy.snapshot();
            let before = std::mem::replace(&mut read, now.get(Metric::BytesFromClients));
            sent = now.get(Metric::BytesToNextHops);
            // a turn reads a request of its own
            let is_idle = read - before < 1000 && sent > 0;
            unchanged = if is_idle { unchanged + 1 } else { 0 };
        }
        let most = held + 4 * PIECE_BYTES_MAX as u64;
        let found = read - sent;
        assert!(found <= most, "{how:?}: {found} of {most}");
        drop(hop);
        sending.join().expect("it was refused");
    }
}

#[test]
fn read_ahead_limit_of_the_route_overrides_the_general_one() {
    let origin = ScriptedOrigin::new();
    let proxy = Running::gateway_with(origin.address(), |config| {
        config.routes[0].read_ahead = Some(ReadAhead::UNBOUNDED);
    });
    let mut flow = begin(&proxy, &origin);
    let read_ahead = flow.read_ahead();
    assert!(read_ahead > 4 * MOST, "{read_ahead}");
}

#[test]
fn read_ahead_limit_of_a_rule_overrides_that_of_the_route() {
    let origin = ScriptedOrigin::new();
    for (rule, is_far) in [("unbounded", true), ("64KiB", false)] {
        let proxy = Running::gateway_with(origin.address(), |config| {
            config.routes[0].read_ahead = Some("256KiB".parse().expect("a read-ahead"));
            let rules = format!(r#"[{{"read_ahead": "{rule}"}}]"#);
            config.rules = serde_json::from_str(&rules).expect("rules");
        });
        let mut flow = begin(&proxy, &origin);
        let read_ahead = flow.read_ahead();
        assert_eq!(read_ahead > 4 * MOST, is_far, "{rule}: {read_ahead}");
        assert!(is_far || read_ahead <= MOST, "{rule}: {read_ahead}");
    }
}

/// Or it would cost as much memory as it asks for.
#[test]
fn read_ahead_stays_within_its_limit_for_a_client_that_a_rule_limits() {
    let origin = ScriptedOrigin::new();
    let proxy = Running::gateway_with(origin.address(), |config| {
        let rules = r#"[{"rate": "40KiB/s"}]"#;
        config.rules = serde_json::from_str(rules).expect("rules");
    });
    let mut flow = begin(&proxy, &origin);
    for _ in 0..5 {
        // what is not used of a longer time is lost
        proxy.clock.advance_ms(200);
        flow.read_exactly(6_000);
        let read_ahead = flow.read_ahead();
        assert!(read_ahead <= MOST, "{read_ahead}");
    }
}

#[test]
fn fast_client_gets_all_content_at_any_read_ahead_limit() {
    let few = 5_000_000;
    for (read_ahead, length) in [
        ("64KiB", LENGTH),
        ("16KiB", few),
        ("1MiB", few),
        ("unbounded", few),
    ] {
        let origin = ScriptedOrigin::new();
        let proxy = gateway(&origin, read_ahead);
        let framing = format!("Content-Length: {length}\r\n");
        let mut flow = Flow::begin(&proxy, &origin, None, length, &framing);
        while !flow.has_ended() {
            proxy.clock.advance_ms(1);
            flow.read_exactly(flow.left().min(512 * 1024));
        }
    }
}

#[test]
fn read_ahead_is_limited_on_a_connection_reused_after_a_large_response() {
    const LARGE: usize = 16 << 20;
    let origin = ScriptedOrigin::new();
    let proxy = Running::gateway(&origin);
    let framing = format!("Content-Length: {LARGE}\r\n");
    let mut flow = Flow::begin(&proxy, &origin, None, LARGE, &framing);
    while !flow.has_ended() {
        // 256 MB/s: the window grows by half a megabyte
        proxy.clock.advance_ms(5);
        flow.read_exactly(flow.left().min(1 << 20));
    }
    // the proxy is done with it once it answers another client
    let refused = proxy.client().ask("TRACE / HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(refused.status(), 405);
    let hop = flow.into_hop();
    let framing = format!("Content-Length: {LENGTH}\r\n");
    let mut flow = Flow::begin(&proxy, &origin, Some(hop), LENGTH, &framing);
    // what it was offered last time it may send, which is a read-ahead at most
    let read_ahead = flow.read_ahead();
    assert!(read_ahead <= MOST + READ_AHEAD_BYTES / 2, "{read_ahead}");
}

/// How long a chunked response is shows when it has ended: its window cannot close before.
#[test]
fn read_ahead_is_limited_on_a_connection_reused_after_chunked_content() {
    for storing in ["no-store", "max-age=60"] {
        let origin = ScriptedOrigin::new();
        let proxy = Running::gateway(&origin);
        let head = format!(
            "HTTP/1.1 200 OK\r\nCache-Control: {storing}\r\nTransfer-Encoding: chunked\r\n\r\n{LENGTH:x}\r\n"
        );
        // a client of HTTP/1.0 gets content without chunks
        let mut flow = Flow::begin_with("HTTP/1.0", &proxy, &origin, None, LENGTH, &head);
        let mut fast = 0;
        while fast <= 2 * MOST && flow.left() > LENGTH / 4 {
            for _ in 0..10 {
                proxy.clock.advance_ms(2);
                flow.read_exactly(256 * 1024);
            }
            fast = flow.read_ahead();
        }
        assert!(fast > 2 * MOST, "{storing}: {fast}, it never grew");
        while !flow.has_ended() {
            proxy.clock.advance_ms(2);
            flow.read_exactly(flow.left().min(256 * 1024));
        }
        let mut hop = flow.into_hop();
        hop.send("\r\n0\r\n\r\n");
        let until = Instant::now() + PATIENCE;
        while proxy.count(Metric::ConnectionCacheIdle) == 0 && proxy.count(Metric::NextHopsOpen) > 0
        {
            assert!(Instant::now() < until, "{storing}: it does not end");
            std::thread::yield_now();
        }
        let head = format!(
            "HTTP/1.1 200 OK\r\nCache-Control: no-store\r\nContent-Length: {LENGTH}\r\n\r\n"
        );
        let request = "HTTP/1.1\r\nCache-Control: no-cache";
        let mut flow = Flow::begin_with(request, &proxy, &origin, Some(hop), LENGTH, &head);
        let read_ahead = flow.read_ahead();
        assert!(
            read_ahead <= MOST + READ_AHEAD_BYTES / 2,
            "{storing}: {read_ahead}"
        );
    }
}
