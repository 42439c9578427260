//! From a key to a small number: the one table that every simulation of hits needs.
//!
//! Keys are numbered from 0 as they come. What else is known of a key (where it is in a cache, when
//! it was asked for last) lies in plain arrays by that number, one for each simulation: so one
//! look-up serves any number of caches, and keys that are asked for often, which come early, lie
//! close together.
//!
//! The table is open, with linear probing, and holds keys as they are: no hashing of text, nothing
//! behind a pointer. It is larger than a processor's cache for any trace worth the name, so every
//! look-up waits for memory. [`Keys::number_all`] therefore reads the cells of sixteen keys before
//! it looks at the first: the processor fetches them at the same time.

use crate::hashing::mix;
use std::fmt;
use std::hint::black_box;

/// One request, as far as hits are concerned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Access {
    /// The target, as any number.
    pub key: u64,
    /// The response's size, bytes.
    pub size_bytes: u64,
}

weir_policy::choice! {
    /// What a response is that comes with another size than before.
    #[derive(Default, PartialOrd, Ord)]
    pub enum KeyRule {
        /// The same one: a key has the size with which it came first.
        #[default]
        FirstSize = "first-size",
        /// Another one: the size is a part of the key, and the former stays until it is evicted.
        SizeInKey = "size-in-key",
    }
}

/// A request whose key has got its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NumberedRequest {
    /// The key's, from 0 in the order in which keys came.
    pub number: u32,
    /// What it counts for, by the [`KeyRule`], bytes.
    pub size_bytes: u64,
}

/// There are more different keys than can be numbered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooManyKeys;

impl fmt::Display for TooManyKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "more than {KEYS_MAX} different keys")
    }
}

impl std::error::Error for TooManyKeys {}

/// Different keys at most: their numbers have four bytes, and one number means that there is none.
pub const KEYS_MAX: u32 = u32::MAX - 1;

/// The numbers of keys; 40 to 80 bytes a key.
#[derive(Clone, Debug)]
pub struct Keys {
    rule: KeyRule,
    /// A power of two of them.
    cells: Vec<Cell>,
    count: u32,
    footprint_bytes: u64,
}

#[derive(Clone, Copy, Debug)]
struct Cell {
    key: u64,
    size_bytes: u64,
    /// [`FREE`] where no key is.
    number: u32,
}

const FREE: u32 = u32::MAX;

const VACANT: Cell = Cell {
    key: 0,
    size_bytes: 0,
    number: FREE,
};

/// Cells of an empty table.
const CELLS_MIN: usize = 1 << 10;

/// Keys whose cells are read together: memory can be asked for about ten things at once.
const AHEAD: usize = 16;

impl Keys {
    /// No keys yet.
    #[must_use]
    pub fn new(rule: KeyRule) -> Self {
        Self {
            rule,
            cells: vec![VACANT; CELLS_MIN],
            count: 0,
            footprint_bytes: 0,
        }
    }

    /// Different keys so far.
    #[must_use]
    pub const fn count(&self) -> u32 {
        self.count
    }

    /// Their sizes together, bytes: what a cache needs that never evicts.
    #[must_use]
    pub const fn footprint_bytes(&self) -> u64 {
        self.footprint_bytes
    }

    /// Appends the numbers of all of `accesses` to `numbered`.
    ///
    /// # Errors
    /// There are too many different keys; `numbered` then ends before the first that has no number.
    pub fn number_all(
        &mut self,
        accesses: &[Access],
        numbered: &mut Vec<NumberedRequest>,
    ) -> Result<(), TooManyKeys> {
        for chunk in accesses.chunks(AHEAD) {
            self.reserve(chunk.len());
            let read = |sum: u32, access: &Access| sum ^ self.cells[self.home(*access)].number;
            black_box(chunk.iter().fold(0, read));
            for access in chunk {
                numbered.push(self.number_reserved(*access)?);
            }
        }
        Ok(())
    }

    /// The number of one.
    ///
    /// # Errors
    /// There are too many different keys.
    pub fn number(&mut self, access: Access) -> Result<NumberedRequest, TooManyKeys> {
        self.reserve(1);
        self.number_reserved(access)
    }

    /// There is a free cell.
    fn number_reserved(&mut self, access: Access) -> Result<NumberedRequest, TooManyKeys> {
        let key = self.key_of(access);
        let mask = self.cells.len() - 1;
        let mut at = place(key) & mask;
        loop {
            let cell = &mut self.cells[at];
            if cell.number == FREE {
                if self.count == KEYS_MAX {
                    return Err(TooManyKeys);
                }
                *cell = Cell {
                    key,
                    size_bytes: access.size_bytes,
                    number: self.count,
                };
                self.count += 1;
                self.footprint_bytes = self.footprint_bytes.saturating_add(access.size_bytes);
                return Ok(cell.numbered());
            }
            if cell.key == key {
                return Ok(cell.numbered());
            }
            at = (at + 1) & mask;
        }
    }

    /// Two keys with sizes become one with a chance of 2^-64 a pair: at 10^8 keys 3 in 10 000.
    fn key_of(&self, access: Access) -> u64 {
        match self.rule {
            KeyRule::FirstSize => access.key,
            KeyRule::SizeInKey => mix(access.key ^ mix(access.size_bytes)),
        }
    }

    fn home(&self, access: Access) -> usize {
        place(self.key_of(access)) & (self.cells.len() - 1)
    }

    /// Makes room for `more`, so that at most five eighths of the cells are taken.
    fn reserve(&mut self, more: usize) {
        if (self.count as usize + more) * 8 <= self.cells.len() * 5 {
            return;
        }
        let larger = vec![VACANT; self.cells.len() * 2];
        let former = std::mem::replace(&mut self.cells, larger);
        let mask = self.cells.len() - 1;
        for cell in former.into_iter().filter(|cell| cell.number != FREE) {
            let mut at = place(cell.key) & mask;
            while self.cells[at].number != FREE {
                at = (at + 1) & mask;
            }
            self.cells[at] = cell;
        }
    }
}

impl Cell {
    const fn numbered(self) -> NumberedRequest {
        NumberedRequest {
            number: self.number,
            size_bytes: self.size_bytes,
        }
    }
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "only as many low bits are used as there are cells in memory"
)]
fn place(key: u64) -> usize {
    mix(key) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;
    use weir_workload::Chance;

    const fn access(key: u64, size_bytes: u64) -> Access {
        Access { key, size_bytes }
    }

    fn check(accesses: &[Access], rule: KeyRule) {
        let mut reference: HashMap<(u64, u64), (u32, u64)> = HashMap::new();
        let expected: Vec<NumberedRequest> = accesses
            .iter()
            .map(|access| {
                let size = match rule {
                    KeyRule::FirstSize => 0,
                    KeyRule::SizeInKey => access.size_bytes,
                };
                let next = u32::try_from(reference.len()).unwrap();
                let entry = reference.entry((access.key, size));
                let (number, size_bytes) = *entry.or_insert((next, access.size_bytes));
                NumberedRequest { number, size_bytes }
            })
            .collect();
        let mut keys = Keys::new(rule);
        let mut found = Vec::new();
        keys.number_all(accesses, &mut found).unwrap();
        assert_eq!(found, expected, "{rule}");
        assert_eq!(keys.count() as usize, reference.len());
        let footprint: u64 = reference.values().map(|(_, size)| size).sum();
        assert_eq!(keys.footprint_bytes(), footprint);
        let mut single = Keys::new(rule);
        for (access, expected) in accesses.iter().zip(expected) {
            assert_eq!(single.number(*access), Ok(expected));
        }
    }

    #[test]
    fn random_keys_are_numbered_as_by_a_reference_map() {
        for seed in 0..20 {
            let mut chance = Chance::new(seed, 0);
            let accesses: Vec<Access> = (0..5000)
                .map(|_| {
                    // keys that differ in their high bits only, or in their low ones
                    let key = chance.below(3000) << (seed % 3 * 24);
                    access(key, chance.below(4))
                })
                .collect();
            for rule in KeyRule::ALL {
                check(&accesses, rule);
            }
        }
    }

    #[test]
    fn key_zero_is_numbered_like_any_other() {
        for rule in KeyRule::ALL {
            check(
                &[access(0, 0), access(0, 0), access(0, 1), access(1, 0)],
                rule,
            );
        }
    }
}
