//! Large content that is requested again is sent from a file in memory without a copy. What a
//! socket has of it stays as it is, and in the budget, whatever becomes of the response.

use super::setup::PartSetup;
use crate::support::{RawClient, Representation};
use weir_measure::Metric;
use weir_policy::eviction::EvictionKind;
use weir_proxy::config::ByteSize;

const MEMORY: ByteSize = ByteSize::from_mib(16);

/// Some of it is in the queue of the proxy's socket, and some is not yet.
const LARGE: u64 = 1 << 20;

/// All of it fits the queue of the proxy's socket, for which the response is over.
const SHORT: u64 = 300_000;

fn setup() -> PartSetup {
    PartSetup::with(|config| {
        config.cache.memory = MEMORY;
        config.cache.largest_response = ByteSize::from_mib(1);
        config.cache.eviction = EvictionKind::Lru;
    })
}

/// Has `what` fetched and stored.
fn store(setup: &PartSetup, what: &Representation) {
    let mut client = setup.proxy.client();
    client.send(what.get(""));
    let mut hop = setup.origin.accept();
    hop.read_head();
    let response = hop.send_while(&what.whole(), || client.read_response());
    what.check_whole(&response);
    setup.proxy.wait_for(Metric::FetchesUnderWay, 0);
}

/// Has `what` fetched and stored, and requested again, so that it moves to the file.
fn store_in_file(setup: &PartSetup, what: &Representation) {
    store(setup, what);
    let response = setup.proxy.client().ask(what.get(""));
    assert!(response.is_hit(), "{}: {}", what.path, response.verdict());
    what.check_whole(&response);
}

/// Asks for `what`, which is stored, and reads the head of the response alone.
fn ask_slowly(setup: &PartSetup, what: &Representation) -> RawClient {
    let mut client = RawClient::connect_small(setup.proxy.address());
    client.send(what.get(""));
    assert_eq!(client.read_head().status(), 200);
    client
}

/// Reads the content, and checks every byte.
fn read_rest(client: &mut RawClient, what: &Representation) {
    let mut at = 0;
    while at < what.length {
        let bytes = (what.length - at).min(7001);
        let came = client.read_exactly(usize::try_from(bytes).expect("small"));
        what.check(at, &came);
        at += bytes;
    }
}

fn named(name: &str, count: usize, length: u64) -> Vec<Representation> {
    let path = |number| format!("/{name}/{number}");
    let all = (0..count).map(|number| Representation::new(&path(number), length));
    all.collect()
}

#[test]
fn bytes_that_sockets_have_are_unchanged_when_all_memory_was_used_again() {
    let setup = setup();
    let mut slow = Vec::new();
    let (large, short) = (named("large", 3, LARGE), named("short", 3, SHORT));
    for what in large.into_iter().chain(short) {
        store_in_file(&setup, &what);
        slow.push((ask_slowly(&setup, &what), what));
    }
    assert!(setup.proxy.count(Metric::StoreFileBytes) >= 3 * (LARGE + SHORT));
    setup.proxy.purge_all();
    // three times what fits
    for what in named("other", 48, LARGE) {
        store_in_file(&setup, &what);
        let used = setup.proxy.count(Metric::StoreUsedBytes);
        assert!(used <= MEMORY.bytes(), "{used}");
    }
    assert!(setup.proxy.count(Metric::Evicted) > 0);
    for (client, what) in &mut slow {
        read_rest(client, what);
    }
    setup.rest();
}

#[test]
fn content_in_the_queue_of_a_socket_is_in_the_budget_until_its_client_has_it() {
    let setup = setup();
    let slow = named("short", 4, SHORT).into_iter().map(|what| {
        store_in_file(&setup, &what);
        (ask_slowly(&setup, &what), what)
    });
    let mut slow: Vec<_> = slow.collect();
    // the responses are over but for what the queues have
    setup.proxy.wait_for(Metric::RequestsInFlight, 0);
    setup.proxy.purge_all();
    assert_eq!(setup.proxy.count(Metric::StoreEntries), 0);
    let lingering = setup.proxy.count(Metric::StoreLingeringBytes);
    assert!(lingering >= 4 * SHORT, "{lingering}");
    for (client, what) in &mut slow {
        read_rest(client, what);
    }
    setup.proxy.wait_for(Metric::StoreLingeringBytes, 0);
    assert_eq!(setup.proxy.count(Metric::StoreFileBytes), 0);
    setup.rest();
}

#[test]
fn content_in_the_queue_of_a_socket_is_given_back_when_its_client_leaves() {
    let setup = setup();
    let what = Representation::new("/short", SHORT);
    store_in_file(&setup, &what);
    let client = ask_slowly(&setup, &what);
    setup.proxy.wait_for(Metric::RequestsInFlight, 0);
    setup.proxy.purge_all();
    assert!(setup.proxy.count(Metric::StoreLingeringBytes) >= SHORT);
    client.into_peer().reset();
    setup.proxy.wait_for(Metric::StoreLingeringBytes, 0);
    assert_eq!(setup.proxy.count(Metric::StoreFileBytes), 0);
}

#[test]
fn ranges_and_parts_of_content_in_the_file_are_its_bytes() {
    let setup = setup();
    let what = Representation::new("/large", LARGE);
    store_in_file(&setup, &what);
    for (from, to) in [(0, 1), (4095, 4097), (500_001, LARGE), (LARGE - 1, LARGE)] {
        let range = format!("{from}-{}", to - 1);
        let response = setup.proxy.client().ask(what.get_range(&range));
        what.check_part(&response, from, to);
    }
    let mut client = setup.proxy.client();
    client.send(what.ask("HEAD", ""));
    assert_eq!(client.read_head().length(), usize::try_from(LARGE).ok());
    let response = client.ask(what.get(""));
    what.check_whole(&response);
}
