//! Single transfers against the ideal model, worked out by hand.

use super::world::*;
use crate::network::link::LinkRate;
use crate::network::tcp::Tcp;
use crate::settings::{Network, Path, Settings};
use weir_trace::Row;

const MS: u64 = 1000;

/// Total latency of one request, microseconds.
fn total_us(settings: &Settings, bytes: u64) -> u64 {
    run(settings, &[row(0, 1, bytes)]).latency.total.max_us
}

#[test]
fn small_direct_response_takes_two_round_trips_and_its_transmission_time() {
    let settings = settings().without_proxy();
    // 350 ms to set up, 350 ms until the packet stands before the modem but for 125 behind it, 540
    // bytes at 21 kbit/s
    let packet_us = (250 + 250 + 40) * 8 * 1000 / 21;
    assert_eq!(total_us(&settings, 250), 700 * MS + packet_us);
}

#[test]
fn proxy_miss_takes_the_sum_of_its_link_and_server_delays() {
    let settings = settings();
    // set up 250, request 125, then at the server 100 + 100, one packet at 45 Mbit/s, then the
    // modem, then 125
    let on_the_internet_us = (540 * 8) as f64 / 45.0;
    let on_the_modem_us = (540 * 8 * 1000) as f64 / 21.0;
    let expected =
        250.0 * 1000.0 + 125_000.0 + 200_000.0 + on_the_internet_us + on_the_modem_us + 125_000.0;
    let found = total_us(&settings, 250) as f64;
    assert!((found - expected).abs() < 3.0, "{found} {expected}");
}

#[test]
fn traced_set_up_time_delays_a_new_connection_without_changing_its_rtt() {
    // as if the first SYN had been lost: 3 s until there is a connection, and 100 ms to the
    // response as ever
    let slow = |at_ms, target| Row {
        setup_us: Some(3_100_000),
        request_us: Some(3_100_000),
        response_us: Some(3_200_000),
        ..row(at_ms, target, 250)
    };
    for settings in [settings(), settings().without_proxy()] {
        let usual = run(&settings, &[row(0, 1, 250)]).latency;
        let lost = run(&settings, &[slow(0, 1)]).latency;
        assert_eq!(lost.total.max_us, usual.total.max_us + 3000 * MS);
    }
    // the connection to the server is kept: its set-up is spared
    let both = run(&settings(), &[slow(0, 1), slow(20_000, 2)]).latency;
    let packet_us = 540 * 8 * 1000 / 21;
    assert!(both.total.p10_us < 500 * MS + packet_us, "{both:?}");
}

#[test]
fn hit_takes_only_the_delay_of_the_client_link() {
    let rows = [row(0, 1, 250), row(600_000, 1, 250)];
    let outcome = run(&settings(), &rows);
    assert_eq!(verdicts(&outcome), [("hit", 1), ("uri-miss", 1)]);
    let packet_us = 540 * 8 * 1000 / 21;
    // after ten minutes the connection is gone: set up anew
    let fastest = outcome.latency.total.p10_us as f64;
    let expected = (500 * MS + packet_us) as f64;
    assert!(
        (fastest / expected - 1.0).abs() < 0.02,
        "{fastest} {expected}"
    );
}

#[test]
fn transfer_through_a_proxy_takes_about_the_time_of_the_slower_link() {
    // the modem is the bottleneck: all packets, and the gap after the first
    let bytes = 100_000;
    let packets = (bytes + 250_u64).div_ceil(1460);
    let wire_us = (bytes + 250 + packets * 40) as f64 * 8000.0 / 21.0;
    let found = run(&settings(), &[row(0, 1, bytes)]).latency;
    let transfer = found.transfer.max_us as f64 + 1500.0 * 8000.0 / 21.0;
    assert!(transfer >= wire_us, "{transfer} {wire_us}");
    assert!(transfer <= wire_us + 300_000.0, "{transfer} {wire_us}");
}

#[test]
fn slow_start_adds_round_trips_on_a_fast_link() {
    // Linux over 100 ms without a bottleneck: 10, 20, 40 segments a round trip
    let network = Network {
        client_link: LinkRate::of(0),
        client_rtt_us: 0,
        internet: LinkRate::of(0),
        direct: Path::DirectClient,
        tcp: Tcp::LINUX,
        ..Network::MODEM
    };
    let settings = Settings {
        network,
        ..settings()
    }
    .without_proxy();
    let segment = 1448;
    for (segments, rounds) in [(1, 2), (10, 2), (11, 3), (30, 3), (31, 4), (70, 4), (71, 5)] {
        let found = total_us(&settings, segments * segment - 250);
        assert_eq!(found, rounds * 100 * MS, "{segments} segments");
    }
}

#[test]
fn reused_connection_keeps_its_congestion_window() {
    let network = Network {
        client_link: LinkRate::of(0),
        client_rtt_us: 0,
        internet: LinkRate::of(0),
        tcp: Tcp::LINUX,
        ..Network::MODEM
    };
    let settings = Settings {
        network,
        ..settings()
    }
    .without_proxy();
    let bytes = 30 * 1448 - 250;
    let rows = [row(0, 1, bytes), row(1000, 2, bytes)];
    let outcome = run(&settings, &rows);
    // new: set-up, request, one round more; then 40 segments are under way at once
    assert_eq!(outcome.latency.total.max_us, 300 * MS);
    let both = outcome.latency.total.mean_us * 2.0;
    assert!((both - 400_000.0).abs() < 1.0, "{both}");
}

#[test]
fn two_responses_on_one_modem_share_its_bandwidth() {
    let bytes = 14_350;
    let alone = total_us(&settings().without_proxy(), bytes);
    let rows = [row(0, 1, bytes), row(0, 2001, bytes)];
    let both = run(&settings().without_proxy(), &rows).latency.total;
    let packets_us = (10 * 1500 * 8 * 1000 / 21) as f64;
    let last = both.max_us as f64;
    // the link is never idle once both have begun
    assert!(
        last > alone as f64 + packets_us - 600_000.0,
        "{last} {alone}"
    );
    assert!(last < alone as f64 + packets_us + 1000.0, "{last} {alone}");
}
