//! The stack of least recently used keys, as a sum over places.
//!
//! R. L. Mattson, J. Gecsei, D. R. Slutz, I. L. Traiger, "Evaluation techniques for storage
//! hierarchies", IBM Systems Journal 9(2), 1970: the bytes of the other keys that were asked for
//! since a key was asked for last decide at which sizes it is a hit. F. Olken (LBL-12370, 1981)
//! keeps them in a tree; here it is P. Fenwick's (Software: Practice and Experience 24(3), 1994),
//! over places that are given out in the order of requests. When they are used up the keys are
//! moved together, so memory follows the keys and not the requests: 40 bytes a key.

/// Keys in the order of their last request, each with its bytes.
#[derive(Debug)]
pub(super) struct Stack {
    /// Fenwick's sums over places, from index 1 on; they wrap.
    sums: Vec<u64>,
    total_bytes: u64,
    /// By number of key.
    place_of: Vec<u32>,
    bytes_of: Vec<u64>,
    /// By place; [`NO_KEY`] where the key has moved.
    number_at: Vec<u32>,
    live: usize,
}

const NO_KEY: u32 = u32::MAX;

/// Places that there are at least.
const PLACES_MIN: usize = 1 << 10;

impl Default for Stack {
    fn default() -> Self {
        Self {
            sums: vec![0; PLACES_MIN + 1],
            total_bytes: 0,
            place_of: Vec::new(),
            bytes_of: Vec::new(),
            number_at: Vec::new(),
            live: 0,
        }
    }
}

impl Stack {
    /// Where a key is: a higher place is a later request. Changes with [`Self::touch`].
    pub(super) fn place(&self, number: u32) -> Option<u32> {
        let place = *self.place_of.get(number as usize)?;
        (place != NO_KEY).then_some(place)
    }

    /// What lies above a place, bytes.
    pub(super) fn bytes_above(&self, place: u32) -> u64 {
        let mut sum = 0_u64;
        let mut at = place as usize + 1;
        while at > 0 {
            sum = sum.wrapping_add(self.sums[at]);
            at &= at - 1;
        }
        self.total_bytes.wrapping_sub(sum)
    }

    /// The key was requested: it is on top from now on, with so many bytes.
    pub(super) fn touch(&mut self, number: u32, bytes: u64) {
        self.remove(number);
        if self.number_at.len() + 1 == self.sums.len() {
            self.move_together();
        }
        let index = number as usize;
        if index >= self.place_of.len() {
            self.place_of.resize(index + 1, NO_KEY);
            self.bytes_of.resize(index + 1, 0);
        }
        self.place_of[index] = as_place(self.number_at.len());
        self.bytes_of[index] = bytes;
        self.number_at.push(number);
        self.add(self.number_at.len(), bytes);
        self.total_bytes += bytes;
        self.live += 1;
    }

    /// Removes the key, if it is there.
    pub(super) fn remove(&mut self, number: u32) {
        let Some(place) = self.place(number) else {
            return;
        };
        let bytes = self.bytes_of[number as usize];
        self.add(place as usize + 1, bytes.wrapping_neg());
        self.total_bytes -= bytes;
        self.place_of[number as usize] = NO_KEY;
        self.number_at[place as usize] = NO_KEY;
        self.live -= 1;
    }

    fn add(&mut self, mut at: usize, bytes: u64) {
        while at < self.sums.len() {
            self.sums[at] = self.sums[at].wrapping_add(bytes);
            at += at & at.wrapping_neg();
        }
    }

    /// As many places again as there are keys: the work is done once in so many requests.
    fn move_together(&mut self) {
        self.number_at.retain(|number| *number != NO_KEY);
        let places = (self.live * 2).max(PLACES_MIN);
        self.sums.clear();
        self.sums.resize(places + 1, 0);
        for (place, number) in self.number_at.iter().enumerate() {
            self.place_of[*number as usize] = as_place(place);
            self.sums[place + 1] = self.bytes_of[*number as usize];
        }
        for at in 1..self.sums.len() {
            let above = at + (at & at.wrapping_neg());
            if above < self.sums.len() {
                self.sums[above] = self.sums[above].wrapping_add(self.sums[at]);
            }
        }
    }
}

/// Twice as many places as keys: beyond 2^31 keys there are none, and the table of keys alone would
/// be 100 GB.
fn as_place(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(NO_KEY - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_workload::Chance;

    #[test]
    fn stack_distances_match_a_reference_list() {
        for seed in 0..10 {
            let mut chance = Chance::new(seed, 0);
            let mut stack = Stack::default();
            // the one requested last at the end
            let mut list: Vec<(u32, u64)> = Vec::new();
            for step in 0..6000 {
                let number = u32::try_from(chance.below(80)).unwrap();
                let found = list.iter().position(|(other, _)| *other == number);
                let above = stack.place(number).map(|place| stack.bytes_above(place));
                let expected =
                    found.map(|at| list[at + 1..].iter().map(|(_, bytes)| bytes).sum::<u64>());
                assert_eq!(above, expected, "seed {seed}, step {step}");
                found.map(|at| list.remove(at));
                if chance.is(0.1) {
                    stack.remove(number);
                } else {
                    let bytes = chance.below(1000);
                    stack.touch(number, bytes);
                    list.push((number, bytes));
                }
            }
            assert!(
                stack.sums.len() <= PLACES_MIN + 1,
                "memory grows with requests"
            );
        }
    }
}
