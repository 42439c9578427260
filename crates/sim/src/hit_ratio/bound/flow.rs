//! PFOO-L: not fewer hits than the optimum has, whatever the sizes.
//!
//! A hit needs its response kept from the request before until this one: so many bytes for so many
//! requests. A cache has its size times the length of the trace to give. The bound gives that to
//! the hits that need the least, and does not ask whether they fit at each moment. For bytes the
//! hits that need the least for each byte come first, which are those after the shortest time. What
//! is larger than the cache is never a hit.
//!
//! Needs are counted in classes that are a thousandth wide, each taken for the least of its class:
//! that makes the bound looser by less than a thousandth, and lets a trace stream through. Memory
//! grows with keys, 8 bytes each.

use crate::hit_ratio::hits::Listener;
use crate::hit_ratio::keys::NumberedRequest;
use std::collections::BTreeMap;

/// The bound at every size of a list.
#[derive(Clone, Debug)]
pub struct FlowBound {
    /// Rising.
    capacities: Vec<u64>,
    /// By number of key: the place of its last request, from 1; 0 is none.
    asked_at: Vec<u64>,
    requests: u64,
    /// By the smallest size that a response fits into; those that fit into none are not counted.
    classes: Vec<Class>,
}

/// Hits that would need the same, nearly.
#[derive(Clone, Debug, Default)]
struct Class {
    /// By bytes times requests: hits.
    by_room: BTreeMap<u32, u64>,
    /// By requests: bytes of hits.
    by_time: BTreeMap<u32, u64>,
}

impl FlowBound {
    /// `capacities` rise, bytes.
    #[must_use]
    pub fn new(capacities: Vec<u64>) -> Self {
        let classes = vec![Class::default(); capacities.len()];
        Self {
            capacities,
            asked_at: Vec::new(),
            requests: 0,
            classes,
        }
    }

    /// A request.
    pub fn ask(&mut self, asked: NumberedRequest) {
        self.requests += 1;
        let index = asked.number as usize;
        if index >= self.asked_at.len() {
            self.asked_at.resize(index + 1, 0);
        }
        let before = std::mem::replace(&mut self.asked_at[index], self.requests);
        let fits = self
            .capacities
            .partition_point(|capacity| *capacity < asked.size_bytes);
        let Some(class) = self.classes.get_mut(fits).filter(|_| before > 0) else {
            return;
        };
        let time = u128::from(self.requests - before);
        let room = time * u128::from(asked.size_bytes);
        *class.by_room.entry(step(room)).or_default() += 1;
        *class.by_time.entry(step(time)).or_default() += asked.size_bytes;
    }

    /// No cache of these sizes has more hits, nor more bytes of hits.
    #[must_use]
    pub fn hits(&self) -> Vec<(u64, u64)> {
        let (mut by_room, mut by_time) = (BTreeMap::new(), BTreeMap::new());
        let sizes = self.capacities.iter().zip(&self.classes);
        sizes
            .map(|(capacity, class)| {
                merge(&mut by_room, &class.by_room);
                merge(&mut by_time, &class.by_time);
                // between two requests, not around them
                let given = u128::from(*capacity) * u128::from(self.requests.saturating_sub(1));
                (take(&by_room, given), take(&by_time, given))
            })
            .collect()
    }
}

impl Listener for FlowBound {
    fn hear(&mut self, asked: &[NumberedRequest]) {
        for asked in asked {
            self.ask(*asked);
        }
    }
}

fn merge(into: &mut BTreeMap<u32, u64>, from: &BTreeMap<u32, u64>) {
    for (step, count) in from {
        *into.entry(*step).or_default() += count;
    }
}

/// As many as can be had for what is given, the cheapest first.
fn take(prices: &BTreeMap<u32, u64>, mut given: u128) -> u64 {
    let mut taken = 0;
    for (step, count) in prices {
        let price = least_of(*step);
        let affordable = given.checked_div(price).unwrap_or(u128::MAX);
        if affordable < u128::from(*count) {
            return taken + u64::try_from(affordable).unwrap_or(u64::MAX);
        }
        given -= price * u128::from(*count);
        taken += count;
    }
    taken
}

/// Ten bits after the first: steps of less than a thousandth.
const BITS: u32 = 10;

/// The step that a number belongs to; exact up to 2^11.
fn step(number: u128) -> u32 {
    let length = 128 - number.leading_zeros();
    let shift = length.saturating_sub(BITS + 1);
    let mantissa = u32::try_from(number >> shift).unwrap_or(u32::MAX);
    // where nothing is shifted away the number is its own step
    (shift << BITS) + mantissa
}

/// The least number of a step.
fn least_of(step: u32) -> u128 {
    let shift = (step >> BITS).saturating_sub(1);
    let mantissa = step - (shift << BITS);
    u128::from(mantissa) << shift
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantization_rounds_down_within_its_precision_and_keeps_order() {
        let numbers = (0..6000).chain((0..100).map(|bits| (1_u128 << bits) + 12_345));
        let mut before = 0;
        for number in numbers
            .clone()
            .collect::<std::collections::BTreeSet<u128>>()
        {
            let least = least_of(step(number));
            assert!(least <= number, "{number}: {least}");
            assert!(number - least <= number >> BITS, "{number}: {least}");
            assert!(step(number) >= before, "{number}");
            before = step(number);
        }
        assert!((0..2048).all(|number| least_of(step(number)) == number));
    }
}
