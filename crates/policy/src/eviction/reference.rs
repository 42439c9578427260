//! For tests: runs an algorithm beside its naive reference, and a small trace with known counts.

use super::Eviction;
use crate::catalog::Slot;
use crate::digest::Digest;
use std::collections::HashMap;

/// The same algorithm written without any care for speed.
pub(crate) trait Naive {
    fn insert(&mut self, slot: Slot, key: Digest, size_bytes: u64);
    fn touch(&mut self, slot: Slot);
    fn resize(&mut self, slot: Slot, size_bytes: u64);
    fn remove(&mut self, slot: Slot);
    fn evict(&mut self, spared: Option<Slot>) -> Option<Slot>;
}

/// `SplitMix64`: the same numbers for the same seed, everywhere.
#[derive(Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number in `0..end`.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    /// An index into an array of `len`.
    pub(crate) fn index(&mut self, len: usize) -> usize {
        usize::try_from(self.below(len as u64)).unwrap()
    }
}

/// Slots of [`compare_random`].
pub(crate) const SLOTS: u32 = 40;

/// Random operations on both; they must evict the same, always.
pub(crate) fn compare_random<E: Eviction, N: Naive>(subject: fn() -> E, reference: fn() -> N) {
    for seed in 0..60 {
        let mut random = Random::new(seed);
        let (mut subject, mut reference) = (subject(), reference());
        subject.reserve(SLOTS as usize);
        let mut resident: Vec<Slot> = Vec::new();
        for step in 0..800 {
            let pick =
                |random: &mut Random, resident: &[Slot]| resident[random.index(resident.len())];
            let choice = random.below(20);
            let vacant = (0..SLOTS).map(Slot).find(|slot| !resident.contains(slot));
            match (choice, vacant) {
                (0..8, Some(slot)) => {
                    let (key, size) = (Digest(0, random.below(90)), random.below(2000));
                    subject.insert(slot, key, size);
                    reference.insert(slot, key, size);
                    resident.push(slot);
                }
                (8..14, _) if !resident.is_empty() => {
                    let slot = pick(&mut random, &resident);
                    subject.touch(slot);
                    reference.touch(slot);
                }
                (14, _) if !resident.is_empty() => {
                    let (slot, size) = (pick(&mut random, &resident), random.below(2000));
                    subject.resize(slot, size);
                    reference.resize(slot, size);
                }
                (15, _) if !resident.is_empty() => {
                    let slot = pick(&mut random, &resident);
                    subject.remove(slot);
                    reference.remove(slot);
                    resident.retain(|other| *other != slot);
                }
                _ => {
                    let spares = choice == 19 && !resident.is_empty();
                    let spared = spares.then(|| pick(&mut random, &resident));
                    let victim = subject.evict(spared);
                    assert_eq!(victim, reference.evict(spared), "seed {seed} step {step}");
                    assert!(
                        victim.is_none() || victim != spared,
                        "seed {seed} step {step}"
                    );
                    resident.retain(|other| Some(*other) != victim);
                }
            }
            assert_eq!(
                subject.residents(),
                resident.len(),
                "seed {seed} step {step}"
            );
            subject.debug_check();
        }
    }
}

/// What a replayed trace came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) hits: u32,
    pub(crate) hit_bytes: u64,
}

/// Requests in the committed trace.
const REQUESTS: u32 = 20_000;
/// Different targets in it, the popularity of rank r falling as 1/r.
pub(crate) const TARGETS: u32 = 1_000;
/// Bytes the replay may hold: about an eighth of all targets.
const CAPACITY_BYTES: u64 = 1_000_000;

/// The committed trace: target and size, Zipf-like with exponent 1, in whole numbers only.
fn trace() -> impl Iterator<Item = (u64, u64)> {
    let mut random = Random::new(1999);
    let mut sum = 0;
    let cumulated: Vec<u64> = (1..=u64::from(TARGETS))
        .map(|rank| {
            sum += 1_000_000 / rank;
            sum
        })
        .collect();
    (0..REQUESTS).map(move |_| {
        let drawn = random.below(sum);
        let target = cumulated.partition_point(|end| *end <= drawn) as u64;
        let size = 500 + Random::new(target).below(15_000);
        (target, size)
    })
}

/// Replays the committed trace against both; both must come to `expected`.
pub(crate) fn check_trace<E: Eviction, N: Naive>(
    subject: fn() -> E,
    reference: fn() -> N,
    expected: Counts,
) {
    let (mut subject, mut reference) = (subject(), reference());
    subject.reserve(TARGETS as usize);
    let mut resident: HashMap<u64, u64> = HashMap::new();
    let mut used = 0;
    let mut counts = Counts {
        hits: 0,
        hit_bytes: 0,
    };
    for (target, size) in trace() {
        // A target has its own slot here: slots are only names.
        let slot = Slot(u32::try_from(target).unwrap());
        if resident.contains_key(&target) {
            subject.touch(slot);
            reference.touch(slot);
            counts.hits += 1;
            counts.hit_bytes += size;
            continue;
        }
        while used + size > CAPACITY_BYTES {
            let victim = subject.evict(None).unwrap();
            assert_eq!(reference.evict(None), Some(victim));
            used -= resident.remove(&u64::from(victim.0)).unwrap();
        }
        subject.insert(slot, Digest(0, target), size);
        reference.insert(slot, Digest(0, target), size);
        resident.insert(target, size);
        used += size;
    }
    subject.debug_check();
    assert_eq!(counts, expected);
}
