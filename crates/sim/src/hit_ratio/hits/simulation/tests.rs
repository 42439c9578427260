use super::*;
use crate::hit_ratio::hits::source::Accesses;
use crate::hit_ratio::hits::{AccessIterator, Trace, TraceError, ZipfTrace, simulate, survey};
use crate::hit_ratio::keys::{Access, KeyRule, Keys};
use std::collections::{HashMap, VecDeque};
use std::num::NonZero;
use weir_workload::Chance;

/// A trace with sizes from 1 to 900 bytes, some of which change; `keys` different keys.
fn random_trace(seed: u64, requests: usize, keys: u64) -> Vec<Access> {
    let mut chance = Chance::new(seed, 7);
    (0..requests)
        .map(|_| {
            let key = chance.below(keys).min(chance.below(keys));
            let changed = u64::from(chance.is(0.02));
            Access {
                key,
                size_bytes: 1 + mix(key) % 900 + changed,
            }
        })
        .collect()
}

/// The cache as a list, the next to leave first; everything by linear search.
struct ReferenceModel {
    capacity_bytes: u64,
    list: VecDeque<(u32, u64)>,
    moves_on_hit: bool,
    hits: u64,
    hit_bytes: u64,
    evictions: u64,
}

impl ReferenceModel {
    fn ask(&mut self, asked: NumberedRequest) {
        let found = self
            .list
            .iter()
            .position(|(number, _)| *number == asked.number);
        if let Some(place) = found {
            self.hits += 1;
            self.hit_bytes += asked.size_bytes;
            if self.moves_on_hit {
                let entry = self.list.remove(place).unwrap();
                self.list.push_back(entry);
            }
            return;
        }
        if asked.size_bytes > self.capacity_bytes {
            return;
        }
        while self.list.iter().map(|(_, size)| size).sum::<u64>() + asked.size_bytes
            > self.capacity_bytes
        {
            self.list.pop_front();
            self.evictions += 1;
        }
        self.list.push_back((asked.number, asked.size_bytes));
    }
}

fn setting(capacity_bytes: u64, eviction: EvictionKind) -> Setting {
    Setting {
        capacity_bytes,
        eviction,
        admission: Rule::Always,
    }
}

fn numbered(accesses: &[Access], rule: KeyRule) -> Vec<NumberedRequest> {
    let mut keys = Keys::new(rule);
    let mut all = Vec::new();
    keys.number_all(accesses, &mut all).unwrap();
    all
}

#[test]
fn lru_and_fifo_match_a_reference_list() {
    for seed in 0..30 {
        let rule = KeyRule::ALL[usize::try_from(seed % 2).unwrap()];
        let asked = numbered(&random_trace(seed, 3000, 200), rule);
        for capacity_bytes in [0, 1, 500, 899, 5000, 40_000, 1_000_000] {
            for (kind, moves_on_hit) in [(EvictionKind::Lru, true), (EvictionKind::Fifo, false)] {
                let mut reference = ReferenceModel {
                    capacity_bytes,
                    list: VecDeque::new(),
                    moves_on_hit,
                    hits: 0,
                    hit_bytes: 0,
                    evictions: 0,
                };
                let mut cache = Simulation::new(setting(capacity_bytes, kind));
                for asked in &asked {
                    reference.ask(*asked);
                    cache.ask(*asked);
                }
                cache.catalog().debug_check();
                let totals = cache.totals();
                let place = format!("{kind}, seed {seed}, {capacity_bytes} bytes");
                assert_eq!(totals.hits, reference.hits, "{place}");
                assert_eq!(totals.hit_bytes, reference.hit_bytes, "{place}");
                assert_eq!(totals.evictions, reference.evictions, "{place}");
                assert_eq!(totals.residents, reference.list.len() as u64, "{place}");
            }
        }
    }
}

#[test]
fn admissions_minus_evictions_equal_residents_within_the_capacity() {
    let asked = numbered(&random_trace(3, 20_000, 900), KeyRule::FirstSize);
    for eviction in EvictionKind::ALL {
        for admission in [
            Rule::Always,
            Rule::SecondRequest,
            Rule::Small { largest: 300 },
        ] {
            let mut cache = Simulation::new(Setting {
                capacity_bytes: 50_000,
                eviction,
                admission,
            });
            let mut resident: HashMap<u32, bool> = HashMap::new();
            for asked in &asked {
                let is_hit = cache.ask(*asked);
                // a key that was never let in cannot be a hit
                assert!(!is_hit || resident.contains_key(&asked.number));
                resident.insert(asked.number, is_hit);
                assert!(cache.catalog().used_bytes() <= 50_000);
            }
            let totals = cache.totals();
            let let_in = totals.requests - totals.hits - totals.refused - totals.too_large;
            assert_eq!(
                let_in - totals.evictions,
                totals.residents,
                "{eviction} {admission:?}"
            );
            assert!(totals.hits > 0 && totals.hit_bytes < totals.bytes);
            cache.catalog().debug_check();
        }
    }
}

#[test]
fn response_is_cached_only_as_its_admission_rule_and_capacity_allow() {
    let ask = |admission, sizes: &[(u32, u64)]| {
        let mut cache = Simulation::new(Setting {
            admission,
            ..setting(1000, EvictionKind::Lru)
        });
        let asked = sizes.iter().map(|(number, size_bytes)| NumberedRequest {
            number: *number,
            size_bytes: *size_bytes,
        });
        asked.map(|asked| cache.ask(asked)).collect::<Vec<bool>>()
    };
    let same = [(0, 10), (0, 10), (0, 10)];
    assert_eq!(ask(Rule::Always, &same), [false, true, true]);
    assert_eq!(ask(Rule::SecondRequest, &same), [false, false, true]);
    assert_eq!(ask(Rule::Small { largest: 9 }, &same), [false; 3]);
    assert_eq!(ask(Rule::Small { largest: 10 }, &same), [false, true, true]);
    // larger than the cache, and exactly as large
    assert_eq!(ask(Rule::Always, &[(0, 1001), (0, 1001)]), [false, false]);
    assert_eq!(ask(Rule::Always, &[(0, 1000), (0, 1000)]), [false, true]);
}

/// The committed trace: it follows from these numbers, on every machine.
fn committed() -> ZipfTrace {
    ZipfTrace {
        requests: 50_000,
        keys: 5_000,
        exponent: 0.8,
        size: "exp(10000)".parse().unwrap(),
        seed: 1999,
    }
}

#[test]
fn committed_trace_gives_the_recorded_hit_counts() {
    let trace = committed();
    let summary = survey(&trace, KeyRule::FirstSize).unwrap();
    assert_eq!(
        (summary.keys, summary.footprint_bytes, summary.bytes),
        (4866, 48_857_913, 603_044_575)
    );
    let capacity_bytes = summary.footprint_bytes / 10;
    let mut caches =
        EvictionKind::ALL.map(|eviction| Simulation::new(setting(capacity_bytes, eviction)));
    let again = simulate(
        &trace,
        KeyRule::FirstSize,
        &mut caches,
        NonZero::<usize>::MIN,
    )
    .unwrap();
    assert_eq!(again, summary);
    let found = caches.map(|cache| (cache.totals().hits, cache.totals().hit_bytes));
    // libCacheSim has the same for SIEVE, LRU and FIFO, and 25 096 hits for S3-FIFO
    let expected = [
        (25_092, 356_272_042),
        (25_022, 356_598_801),
        (20_629, 309_567_749),
        (18_574, 281_809_151),
        (25_774, 286_823_641),
    ];
    assert_eq!(found, expected);
}

#[test]
fn counts_do_not_depend_on_the_number_of_threads_or_on_batching() {
    let trace = committed();
    let settings: Vec<Setting> = EvictionKind::ALL
        .into_iter()
        .flat_map(|kind| [300_000, 5_000_000].map(|bytes| setting(bytes, kind)))
        .collect();
    let totals = |threads: usize| {
        let mut caches: Vec<Simulation> = settings.iter().copied().map(Simulation::new).collect();
        let threads = NonZero::new(threads).unwrap();
        simulate(&trace, KeyRule::SizeInKey, &mut caches, threads).unwrap();
        caches.iter().map(Simulation::totals).collect::<Vec<_>>()
    };
    let accesses: Vec<Access> = trace.accesses().collect();
    let asked = numbered(&accesses, KeyRule::SizeInKey);
    let alone = settings.iter().map(|setting| {
        let mut cache = Simulation::new(*setting);
        for asked in &asked {
            cache.ask(*asked);
        }
        cache.totals()
    });
    assert_eq!(totals(1), alone.collect::<Vec<_>>());
    assert_eq!(totals(3), totals(1));
    assert_eq!(totals(64), totals(1));
}

#[test]
fn trace_read_error_fails_the_simulation() {
    struct UnreadableTrace;
    struct Half(AccessIterator<std::vec::IntoIter<Access>>);
    impl Trace for UnreadableTrace {
        fn name(&self) -> String {
            "broken".to_owned()
        }
        fn open(&self) -> Result<Box<dyn Accesses + '_>, TraceError> {
            Ok(Box::new(Half(AccessIterator(
                vec![Access::default()].into_iter(),
            ))))
        }
    }
    impl Accesses for Half {
        fn read(&mut self, batch: &mut Vec<Access>) -> Result<(), TraceError> {
            self.0.read(batch)?;
            if batch.is_empty() {
                return Err(TraceError {
                    fault: weir_trace::Fault::Outside,
                    what: "cannot read trace `broken`".to_owned(),
                    cause: "cut off".to_owned(),
                    hint: None,
                });
            }
            Ok(())
        }
    }
    for threads in [1, 2] {
        let mut caches = EvictionKind::ALL.map(|kind| Simulation::new(setting(10, kind)));
        let threads = NonZero::new(threads).unwrap();
        let simulated = simulate(&UnreadableTrace, KeyRule::FirstSize, &mut caches, threads);
        assert_eq!(simulated.unwrap_err().cause, "cut off");
    }
}

#[test]
fn s3_fifo_does_not_admit_a_response_larger_than_its_small_queue() {
    // ten popular ones of 50 bytes, and large ones of 101 that come once each
    let mut asked = Vec::new();
    for round in 0..40_u32 {
        asked.extend((0..10).map(|number| NumberedRequest {
            number,
            size_bytes: 50,
        }));
        asked.push(NumberedRequest {
            number: 100 + round,
            size_bytes: 101,
        });
    }
    let mut cache = Simulation::new(setting(1000, EvictionKind::S3Fifo));
    cache.ask_all(&asked);
    let totals = cache.totals();
    assert_eq!((totals.hits, totals.evictions), (390, 0));
    assert_eq!(totals.too_large_for_small_queue, 40);
    assert_eq!((totals.too_large, totals.refused), (0, 0));
    // of the size of the small queue, they come in
    for asked in &mut asked {
        asked.size_bytes = asked.size_bytes.min(100);
    }
    let mut cache = Simulation::new(setting(1000, EvictionKind::S3Fifo));
    cache.ask_all(&asked);
    assert_eq!(cache.totals().too_large_for_small_queue, 0);
    assert!(cache.totals().evictions > 0);
}
