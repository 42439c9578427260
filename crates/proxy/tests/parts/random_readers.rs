//! Many readers at random places of one response that is being filled (R40): each at its own speed,
//! every byte right, and the origin asked for each byte about once.

use super::range_origin::PacedOrigin;
use crate::support::{RawClient, Representation, Running};
use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};
use weir_measure::Metric;
use weir_policy::fetch::AbortKind;

const LENGTH: u64 = 8_000_000;
const READERS: u64 = 60;
const SEEDS: [u64; 3] = [1, 20_261_121, 0x5eed];

/// Numbers that look random.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: u64) -> u64 {
        // xorshift64* (Marsaglia 2003, Vigna 2014)
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11) % limit
    }
}

/// How a client reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Manner {
    /// To the end.
    Steady,
    /// It stops in the middle until all others have ended.
    Stopping,
    /// It leaves in the middle.
    Leaving,
}

/// What a client wants.
#[derive(Clone, Copy, Debug)]
struct Wish {
    from: u64,
    to: u64,
    manner: Manner,
}

impl Wish {
    fn roll(dice: &mut Dice) -> Self {
        let from = dice.below(LENGTH);
        let (from, to) = match dice.below(8) {
            0 => (0, LENGTH),
            1 => (from, LENGTH),
            _ => (from, LENGTH.min(from + 1 + dice.below(LENGTH / 8))),
        };
        let manner = match dice.below(8) {
            0 => Manner::Stopping,
            1 => Manner::Leaving,
            _ => Manner::Steady,
        };
        Self { from, to, manner }
    }

    fn request(self, what: &Representation) -> String {
        match self {
            Self { from: 0, to, .. } if to == LENGTH => what.get(""),
            Self { from, to, .. } if to == LENGTH => what.get_range(&format!("-{}", LENGTH - from)),
            Self { from, to, .. } => what.get_range(&format!("{from}-{}", to - 1)),
        }
    }

    /// Reads it and compares every byte.
    fn read(self, mut client: RawClient, what: &Representation, others: &Others) {
        let head = client.read_head();
        let length = self.to - self.from;
        assert_eq!(
            head.length().map(|length| length as u64),
            Some(length),
            "{self:?}"
        );
        let half = length / 2;
        check(&mut client, what, self.from, self.from + half);
        match self.manner {
            Manner::Steady => {}
            Manner::Stopping => {
                others.stop();
            }
            Manner::Leaving => {
                client.into_peer().reset();
                return;
            }
        }
        check(&mut client, what, self.from + half, self.to);
        client.expect_nothing_more();
    }
}

fn check(client: &mut RawClient, what: &Representation, from: u64, to: u64) {
    let mut at = from;
    while at < to {
        let end = to.min(at + 100_000);
        let count = usize::try_from(end - at).expect("small");
        what.check(at, &client.read_exactly(count));
        at = end;
    }
}

/// Those who stop wait here for those who do not.
struct Others {
    barrier: Barrier,
    stopped: AtomicU64,
}

impl Others {
    fn stop(&self) {
        self.stopped.fetch_add(1, Ordering::SeqCst);
        self.barrier.wait();
    }
}

fn run(seed: u64, read_ahead: &str, workers: u16) {
    let mut dice = Dice(seed);
    let what = Representation::new("/", LENGTH);
    let origin = PacedOrigin::new(&what);
    let proxy = Running::gateway_with(origin.address(), |config| {
        config.workers = workers;
        config.fetch.abort = AbortKind::Stop;
        config.fetch.read_ahead = read_ahead.parse().expect("a read-ahead");
    });
    let wishes: Vec<_> = (0..READERS).map(|_| Wish::roll(&mut dice)).collect();
    let stopping = wishes.iter().filter(|wish| wish.manner == Manner::Stopping);
    let others = Others {
        barrier: Barrier::new(stopping.count() + 1),
        stopped: AtomicU64::new(0),
    };
    std::thread::scope(|scope| {
        let mut reading = Vec::new();
        for (wish, number) in wishes.iter().zip(1..) {
            let mut client = proxy.client();
            client.send(wish.request(&what));
            // as they come, the origin sends on
            origin.let_to(LENGTH / READERS * number);
            let (what, others) = (&what, &others);
            let thread = scope.spawn(move || wish.read(client, what, others));
            if wish.manner != Manner::Stopping {
                reading.push(thread);
            }
        }
        origin.let_to(LENGTH);
        let ended: Vec<_> = reading.into_iter().map(|thread| thread.join()).collect();
        // those who stopped wait, also where another one has failed
        others.barrier.wait();
        ended.into_iter().for_each(|ended| ended.expect("no panic"));
    });
    let whole = proxy.client().ask(what.get(""));
    what.check_whole(&whole);
    proxy.wait_for(Metric::FetchesUnderWay, 0);
    proxy.wait_for(Metric::RequestsInFlight, 0);
    let again = proxy.client().ask(what.get(""));
    assert_eq!(again.verdict(), "hit");
    what.check_whole(&again);
    let asked = origin.asked();
    let fetched = proxy.count(Metric::BodyBytesFromNextHops);
    let requests = asked.len() as u64;
    assert!(
        requests <= READERS,
        "seed {seed}: {requests} requests: {asked:?}"
    );
    // what comes in one read with a head may be there by then
    let in_heads = requests * 64 * 1024;
    assert!(
        fetched <= LENGTH + in_heads,
        "seed {seed}: {fetched} bytes fetched by {asked:?}"
    );
}

#[test]
fn concurrent_readers_get_exact_content_and_share_its_fetches() {
    for seed in SEEDS {
        run(seed, "64KiB", 2);
    }
}

#[test]
fn concurrent_readers_get_exact_content_without_a_read_ahead_limit() {
    run(SEEDS[0], "unbounded", 2);
}
