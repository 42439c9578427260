//! Slow clients that each read another large response: what they hold is in the budget of memory,
//! and they get all of it.

use super::setup::PartSetup;
use crate::support::{OriginConnection, RawClient, Representation};
use weir_measure::Metric;
use weir_policy::eviction::EvictionKind;
use weir_proxy::config::ByteSize;

const MEMORY: ByteSize = ByteSize::from_mib(64);

/// Eight of them are all of the memory.
const LENGTH: u64 = 8 << 20;

const CLIENTS: usize = 12;

/// One who has read a head, and no more.
struct Slow {
    what: Representation,
    client: RawClient,
    /// Who sends it to this client alone, if it is not stored.
    hop: Option<OriginConnection>,
}

fn setup() -> PartSetup {
    PartSetup::with(|config| {
        config.cache.memory = MEMORY;
        config.cache.largest_response = ByteSize::from_mib(8);
        config.cache.eviction = EvictionKind::Lru;
    })
}

/// Bytes of the budget that are in use.
fn used_bytes(setup: &PartSetup) -> u64 {
    let used = setup.proxy.count(Metric::StoreUsedBytes);
    assert!(used <= MEMORY.bytes(), "{used}");
    used
}

impl Slow {
    /// Has `what` fetched by a fast client, which stores it if there is room, then asks for it.
    fn begin(setup: &PartSetup, number: usize) -> Self {
        let what = Representation::new(&format!("/{number}"), LENGTH);
        let mut fast = setup.proxy.client();
        fast.send(what.get(""));
        let mut hop = setup.origin.accept();
        hop.read_head();
        let response = hop.send_while(&what.whole(), || fast.read_response());
        what.check_whole(&response);
        setup.proxy.wait_for(Metric::FetchesUnderWay, 0);
        let is_refused = response.verdict().ends_with("detail=all-in-use");
        let mut client = RawClient::connect_small(setup.proxy.address());
        client.send(what.get(""));
        let hop = is_refused.then(|| setup.origin.answer(what.head()).0);
        assert_eq!(client.read_head().status(), 200);
        used_bytes(setup);
        Self { what, client, hop }
    }

    /// Reads the rest.
    fn end(mut self) {
        let length = usize::try_from(LENGTH).expect("a few mebibytes");
        let client = &mut self.client;
        let came = match &mut self.hop {
            Some(hop) => {
                hop.send_while(&self.what.bytes(0, LENGTH), || client.read_exactly(length))
            }
            None => client.read_exactly(length),
        };
        self.what.check(0, &came);
    }
}

#[test]
fn responses_read_by_slow_clients_stay_within_the_memory_budget() {
    let setup = setup();
    let slow: Vec<Slow> = (0..CLIENTS)
        .map(|number| Slow::begin(&setup, number))
        .collect();
    // as many as fit were stored, and none was evicted from under its reader
    let relayed = slow.iter().filter(|slow| slow.hop.is_some()).count();
    assert!((CLIENTS - 7..CLIENTS - 4).contains(&relayed), "{relayed}");
    assert_eq!(setup.proxy.count(Metric::Evicted), 0);
    assert!(used_bytes(&setup) >= 5 * LENGTH);
    slow.into_iter().for_each(Slow::end);
    setup.rest();
    // and now there is room
    Slow::begin(&setup, CLIENTS).end();
    setup.rest();
    assert!(setup.proxy.count(Metric::Evicted) > 0);
    assert_eq!(setup.proxy.count(Metric::StoreLingeringBytes), 0);
}

#[test]
fn purged_responses_still_being_read_stay_within_the_memory_budget() {
    let setup = setup();
    let slow: Vec<Slow> = (0..4).map(|number| Slow::begin(&setup, number)).collect();
    let before = used_bytes(&setup);
    setup.proxy.purge_all();
    assert_eq!(setup.proxy.count(Metric::StoreEntries), 0);
    let lingering = setup.proxy.count(Metric::StoreLingeringBytes);
    assert!(
        lingering >= 4 * LENGTH && lingering <= used_bytes(&setup),
        "{lingering}"
    );
    assert!(used_bytes(&setup) <= before);
    let others: Vec<Slow> = (4..CLIENTS)
        .map(|number| Slow::begin(&setup, number))
        .collect();
    assert!(others.iter().any(|slow| slow.hop.is_some()));
    slow.into_iter().chain(others).for_each(Slow::end);
    setup.rest();
    assert_eq!(setup.proxy.count(Metric::StoreLingeringBytes), 0);
}
