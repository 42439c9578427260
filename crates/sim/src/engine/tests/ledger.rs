//! Bytes are lost nowhere on the way: every link and every response is counted after every event.

use super::invariants::{all_settings, wild};
use crate::engine::Simulator;
use crate::settings::{Path, Settings};
use crate::world::Nanos;
use weir_trace::Row;

/// What was put on the way is on it, or has come.
fn check(it: &Simulator) {
    let header = u64::from(it.settings.network.tcp.header_bytes);
    let (traffic, up, down) = (
        &it.tally.traffic,
        &it.tally.from_servers,
        &it.tally.to_clients,
    );
    let exchanges = it.exchanges.all().filter(|exchange| !exchange.is_released);
    let accounted = traffic.to_clients_bytes + traffic.to_clients_head_bytes;
    // what is over is accounted for
    let sending = exchanges.filter(|exchange| exchange.stage == super::super::Stage::Sending);
    let sent: u64 = sending.map(|exchange| exchange.sender.sent).sum();
    assert_eq!(
        down.wire_bytes,
        accounted + sent + header * down.packets,
        "toward clients"
    );

    let fetches = || it.fetches.all().filter(|fetch| !fetch.is_released);
    let mut on_the_link = 0;
    for fetch in fetches() {
        let queued: u64 = fetch.to_queue.iter().map(|(_, bytes)| bytes).sum();
        let under_way = fetch.sent - fetch.came - queued;
        assert_eq!(under_way > 0, fetch.on_link > 0, "{fetch:?}");
        assert!(fetch.came <= fetch.total && fetch.taken <= fetch.came.max(fetch.head_bytes));
        on_the_link += under_way;
    }
    let packets = it.on_internet.iter().map(|bytes| u64::from(*bytes));
    assert_eq!(on_the_link, packets.sum::<u64>(), "packets on the link");
    let came = traffic.from_servers_bytes + traffic.from_servers_head_bytes;
    assert_eq!(
        up.wire_bytes,
        came + on_the_link + header * up.packets,
        "from servers"
    );

    let waiting: u64 = fetches()
        .filter(|fetch| !fetch.is_stopped && !fetch.is_done)
        .map(super::super::Fetch::waiting)
        .sum();
    let held: u64 = it
        .in_flight
        .all()
        .filter(|response| !response.is_gone)
        .map(|response| {
            let single_reader = response.single_reader.as_deref();
            let single_reader =
                single_reader.map_or(0, super::super::single_reader::SingleReader::held);
            let fill = response.fill.as_ref();
            single_reader + fill.map_or(0, |fill| fill.undelivered() + fill.fetched_twice())
        })
        .sum();
    assert_eq!(
        traffic.from_servers_bytes,
        traffic.relayed_bytes + traffic.wasted_bytes + waiting + held,
        "what came is given on, lost, or here"
    );
}

/// A run that is looked at after every event.
fn run_checked(settings: &Settings, rows: &[Row]) {
    let mut simulator = Simulator::new(settings.clone()).unwrap();
    let mut events = 0;
    let mut pass = |simulator: &mut Simulator, until: Nanos| {
        while let Some(event) = simulator.world.next(until) {
            simulator.happen(event);
            check(simulator);
            events += 1;
        }
    };
    for row in rows {
        if simulator.is_begun {
            let until = simulator.world.of_trace(row.arrival_us);
            pass(&mut simulator, until);
        }
        simulator.push(row);
        check(&simulator);
    }
    pass(&mut simulator, Nanos::MAX);
    assert!(events > rows.len());
    assert_eq!(simulator.links.users(), 0, "a link is kept for nobody");
}

#[test]
fn every_byte_is_accounted_for_after_every_event() {
    for seed in 100..106 {
        let rows = wild(seed, 120);
        for settings in all_settings() {
            run_checked(&settings, &rows);
        }
    }
}

#[test]
fn every_byte_is_accounted_for_without_the_plain_request_shortcut() {
    let rows = wild(110, 120);
    for settings in all_settings() {
        if settings.path == Path::Proxy {
            let mut simulator = Simulator::new(settings).unwrap();
            simulator.plain_is_allowed = false;
            for row in &rows {
                simulator.push(row);
                check(&simulator);
            }
            simulator.settle_all();
            check(&simulator);
        }
    }
}
