//! SIGKILL, and what is there when it is started again (R11).

use super::{HOST, Parts, request, setting, truth, wait_for_entries, wait_until_loaded};
use crate::support::{RawClient, Weir};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

#[test]
fn stored_responses_are_hits_after_a_kill() {
    let parts = Parts::new();
    let small = (0..200).map(|number| format!("/small/{number}?size={}", 100 + number * 37));
    let large = (0..3).map(|number| format!("/large/{number}?size={}", 5_000_001 + number));
    let targets: Vec<String> = small.chain(large).collect();
    let weir = parts.serve();
    for target in &targets {
        parts.get(&weir, target);
    }
    wait_for_entries(&weir, targets.len() as u64);
    drop(weir);
    let weir = parts.serve();
    wait_until_loaded(&weir);
    for target in &targets {
        let (_, reply) = parts.get(&weir, target);
        assert!(reply.is_hit(), "{target}: {}", reply.head);
        assert_eq!(parts.origin.asked(target), 1, "{target}");
    }
}

/// What clients are at when it is killed.
struct Load {
    /// A target's version is at least this: it was invalidated, and that was acknowledged.
    least: Mutex<Vec<u64>>,
    stopping: AtomicBool,
    answered: AtomicU64,
}

const TARGETS: usize = 40;

fn target(number: usize) -> String {
    let large = setting("WEIR_TORTURE_LARGE", 3_000_000);
    let size = if number.is_multiple_of(8) {
        large
    } else {
        1024
    };
    format!("/{number}?size={size}")
}

/// Reads at random until it is told to stop, or the proxy is gone; every whole response is checked.
fn read_at_random(load: &Load, weir: std::net::SocketAddr, mut dice: Dice) {
    while !load.stopping.load(Ordering::SeqCst) {
        let number = dice.below(TARGETS);
        let name = target(number);
        let least = load.least.lock().expect("no panic")[number];
        let Ok(mut client) = RawClient::try_connect(weir) else {
            return;
        };
        let asked = client.try_send(request("GET", &name));
        // cut by the kill: told, by a length that is not reached or a reset
        let Ok(reply) = asked.and_then(|()| client.try_reply()) else {
            return;
        };
        let version = truth::check(&name, &reply);
        assert!(version >= least, "{name}: {version}, purged up to {least}");
        load.answered.fetch_add(1, Ordering::SeqCst);
    }
}

/// xorshift64* (Marsaglia 2003, Vigna 2014).
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let number = self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33;
        usize::try_from(number).unwrap_or(0) % limit
    }
}

/// How often a purge is asked for, each waiting five seconds for the device.
const PURGES_MAX: usize = 12;

/// Changes a target at the origin, purges it, and notes that the old version must not be seen
/// again.
fn purge(parts: &Parts, weir: &Weir, load: &Load, number: usize) {
    let name = target(number);
    let version = parts.origin.change(&name);
    let path = format!("/purge?url=http://{HOST}{name}");
    let mut admin = RawClient::connect(weir.admin);
    // an answer that says that the device took too long promises nothing, and to ask again
    let purged = (0..PURGES_MAX)
        .map(|_| crate::support::ask(&mut admin, "POST", &path))
        .find(|reply| reply.status() != 500 || !reply.text().contains("purge again"));
    purged.expect("a device that takes a purge").expect(200);
    load.least.lock().expect("no panic")[number] = version;
}

#[test]
fn kill_at_any_instant_leaves_no_corrupt_or_purged_content() {
    let rounds = setting("WEIR_TORTURE_ROUNDS", 5);
    let seed = setting("WEIR_TORTURE_SEED", 20_261_121);
    // little room: segments leave, and what was asked for is carried forward, while it is killed
    let parts = Parts::with_size("64MiB");
    let load = Load {
        least: Mutex::new(vec![0; TARGETS]),
        stopping: AtomicBool::new(false),
        answered: AtomicU64::new(0),
    };
    for round in 0..rounds {
        let mut dice = Dice(seed ^ (round + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let weir = parts.serve();
        let until = load.answered.load(Ordering::SeqCst) + 1 + dice.below(200) as u64;
        let address = weir.address();
        load.stopping.store(false, Ordering::SeqCst);
        std::thread::scope(|scope| {
            let readers: Vec<_> = (0..4)
                .map(|reader| {
                    let dice = Dice(dice.0 ^ (reader + 1) << 40);
                    let load = &load;
                    scope.spawn(move || read_at_random(load, address, dice))
                })
                .collect();
            while load.answered.load(Ordering::SeqCst) < until {
                assert!(
                    !readers
                        .iter()
                        .all(std::thread::ScopedJoinHandle::is_finished),
                    "seed {seed}, round {round}: all readers have gone"
                );
                if dice.below(4) == 0 {
                    purge(&parts, &weir, &load, dice.below(TARGETS));
                }
            }
            // SIGKILL, while they read
            drop(weir);
            load.stopping.store(true, Ordering::SeqCst);
        });
    }
    let weir = parts.serve();
    wait_until_loaded(&weir);
    for number in 0..TARGETS {
        let (version, _) = parts.get(&weir, &target(number));
        let least = load.least.lock().expect("no panic")[number];
        assert!(
            version >= least,
            "seed {seed}: {number}, {version} < {least}"
        );
    }
}
