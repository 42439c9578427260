//! The rules by the hosts that they name: one look for a host, and one for each of its labels if
//! there are patterns with `*.`.
//!
//! Clients choose what is looked for and not what is in the table, so no client makes a look longer
//! than the operator's hosts do.

use super::bits::Bits;
use crate::route::HostPattern;
use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

/// Hosts with their rules.
#[derive(Debug, Default)]
pub(super) struct HostTable {
    exact: NameTable,
    suffix: NameTable,
}

impl HostTable {
    /// Adds what `rule` is for.
    pub(super) fn insert(&mut self, pattern: &HostPattern, rule: usize) {
        let (table, name) = match pattern {
            HostPattern::Exact(host) => (&mut self.exact, host),
            HostPattern::Suffix(suffix) => (&mut self.suffix, suffix),
        };
        table.insert(name, rule);
    }

    /// The rules that name `host`, which is canonical.
    pub(super) fn find(&self, host: &[u8]) -> Bits {
        let mut found = self.exact.find(host);
        if !self.suffix.is_empty() {
            let mut rest = host;
            while let Some(dot) = rest.iter().position(|byte| *byte == b'.') {
                rest = &rest[dot + 1..];
                found |= self.suffix.find(rest);
            }
        }
        found
    }
}

/// Names with their rules: a table of slots with open addressing, at most half full.
#[derive(Debug, Default)]
pub(super) struct NameTable {
    entries: Vec<(Box<[u8]>, Bits)>,
    /// One more than the entry; 0 for none. Their number is a power of two.
    slots: Vec<u16>,
}

impl NameTable {
    pub(super) fn insert(&mut self, name: &str, rule: usize) {
        let entry = self.entries.iter_mut().find(|it| *it.0 == *name.as_bytes());
        match entry {
            Some(entry) => entry.1.insert(rule),
            None => {
                let rules = [rule].into_iter().collect();
                self.entries.push((name.as_bytes().into(), rules));
                self.fill();
            }
        }
    }

    fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    fn fill(&mut self) {
        let slots = (2 * self.entries.len()).next_power_of_two();
        if slots > self.slots.len() {
            self.slots = vec![0; slots];
            (0..self.entries.len()).for_each(|entry| self.place(entry));
        } else {
            self.place(self.entries.len() - 1);
        }
    }

    fn place(&mut self, entry: usize) {
        let mask = self.slots.len() - 1;
        let mut slot = hash(&self.entries[entry].0) & mask;
        while self.slots[slot] != 0 {
            slot = (slot + 1) & mask;
        }
        // at most as many as there are rules times the values of a matcher
        self.slots[slot] = u16::try_from(entry + 1).unwrap_or(u16::MAX);
    }

    pub(super) fn find(&self, name: &[u8]) -> Bits {
        let Some(mask) = self.slots.len().checked_sub(1) else {
            return Bits::NONE;
        };
        let mut slot = hash(name) & mask;
        while let Some(entry) = usize::from(self.slots[slot]).checked_sub(1) {
            let (known, rules) = &self.entries[entry];
            if **known == *name {
                return *rules;
            }
            slot = (slot + 1) & mask;
        }
        Bits::NONE
    }
}

/// Mixes eight bytes a step.
fn hash(name: &[u8]) -> usize {
    /// 2^64 over the golden ratio: a multiplier that spreads close numbers (Knuth, volume 3, 6.4).
    const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut hash = name.len() as u64;
    let (words, rest) = name.as_chunks::<8>();
    for word in words {
        hash = (hash ^ u64::from_le_bytes(*word)).wrapping_mul(SPREAD);
        hash ^= hash >> 32;
    }
    for byte in rest {
        hash = (hash << 8) ^ (hash >> 56) ^ u64::from(*byte);
    }
    hash = hash.wrapping_mul(SPREAD);
    (hash >> 32) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_is_found_by_its_name_and_by_what_it_is_below() {
        let mut table = HostTable::default();
        let patterns = [
            "a.example",
            "*.a.example",
            "*.example",
            "b.example",
            "a.example",
        ];
        for (rule, pattern) in patterns.iter().enumerate() {
            table.insert(&pattern.parse().expect(pattern), rule);
        }
        let check = |host: &str, expected: &[usize]| {
            let found: Vec<usize> = table.find(host.as_bytes()).iter().collect();
            assert_eq!(found, expected, "{host}");
        };
        check("a.example", &[0, 2, 4]);
        check("x.a.example", &[1, 2]);
        check("b.example", &[2, 3]);
        check("example", &[]);
        check("", &[]);
        check("c", &[]);
    }

    #[test]
    fn each_of_many_names_is_found_with_its_own_rules() {
        let mut table = NameTable::default();
        let name = |number: usize| format!("host-{number}.example.org");
        for number in 0..4_000 {
            table.insert(&name(number), number % 256);
        }
        assert!(table.slots.len() >= 8_000);
        for number in 0..4_000 {
            assert!(
                table
                    .find(name(number).as_bytes())
                    .iter()
                    .eq([number % 256])
            );
        }
        assert!(table.find(b"host-4000.example.org").is_empty());
    }
}
