//! The store and the reference model, given the same operations.

use crate::reference::{Fields, Reference, RuleNumber, Selecting};
use crate::support::{Random, check_response, digest, mix};
use crate::transfer::{Arrived, Transfer};
use std::collections::BTreeMap;
use std::sync::Arc;
use weir_policy::eviction::EvictionKind;
use weir_policy::fetch::ByteSpans;
use weir_policy::{Digest, Secret};
use weir_store::{LookupResult, MemoryStore, StoredResponse, VaryRule};

/// The fields each rule names; more rules than are looked at for one target.
pub(crate) const RULES: [&[usize]; 7] = [&[0], &[1], &[2], &[0, 1], &[0, 2], &[1, 2], &[0, 1, 2]];

const KEYS: u64 = 12;

pub(crate) struct Comparison {
    pub(crate) store: Arc<MemoryStore>,
    reference: Reference,
    /// Whether there is room for everything, so that both must find the same.
    exact: bool,
    budget: u64,
    transfers: Vec<Transfer>,
    /// What is present of each that was committed.
    present: BTreeMap<u64, ByteSpans>,
    /// Found at some time; perhaps no longer stored.
    seen: Vec<(u64, u64, Arc<StoredResponse>)>,
    last_id: u64,
    /// How often content moved to the file.
    pub(crate) moved: u64,
}

impl Comparison {
    pub(crate) fn new(budget: u64, kind: EvictionKind, exact: bool) -> Self {
        let mut store = MemoryStore::new(budget, kind, 1, budget, Secret([7; 16]));
        store.open_file().expect("a file in memory");
        Self {
            store: Arc::new(store),
            reference: Reference::new(exact),
            exact,
            budget,
            transfers: Vec::new(),
            present: BTreeMap::new(),
            seen: Vec::new(),
            last_id: 0,
            moved: 0,
        }
    }

    pub(crate) fn step(&mut self, random: &mut Random) {
        let key = random.below(KEYS);
        match random.below(100) {
            0..25 => self.begin(random, key),
            25..50 => self.arrive(random),
            50..52 => self.abandon(random),
            52..87 => self.find(key, std::array::from_fn(|_| random.below(4))),
            87..92 => self.replace(random),
            92..96 => self.drop_one(random),
            96..99 => {
                let (removed, expected) =
                    (self.store.remove(digest(key)), self.reference.remove(key));
                self.outdate(|of| of == key);
                assert!(removed == expected || (!self.exact && removed < expected));
            }
            _ if random.one_in(8) => {
                self.store.clear();
                self.reference.clear();
                self.outdate(|_| true);
            }
            _ => {}
        }
        self.check();
    }

    pub(crate) fn set_budget(&mut self, budget: u64) {
        self.budget = budget;
        self.store.set_budget(budget);
        self.check();
    }

    /// When all have gone nothing is left.
    pub(crate) fn end(mut self) {
        for key in 0..KEYS {
            self.find(key, [0, 1, 2]);
        }
        self.transfers.clear();
        self.seen.clear();
        self.store.clear();
        self.check();
        assert_eq!(self.store.memory_use().entries, 0);
        self.store.set_budget(0);
        let memory = self.store.memory_use();
        assert_eq!(
            (memory.used_bytes, memory.file_bytes),
            (0, 0),
            "bytes are lost"
        );
    }

    fn check(&self) {
        self.store.debug_check();
        let memory = self.store.memory_use();
        assert!(memory.used_bytes <= self.budget || memory.entries == 0);
    }

    /// What was arriving when its target was forgotten is not stored any more.
    fn outdate(&mut self, forgotten: impl Fn(u64) -> bool) {
        for transfer in &mut self.transfers {
            transfer.outdated |= forgotten(transfer.key);
        }
    }

    fn begin(&mut self, random: &mut Random, key: u64) {
        if self.transfers.len() > 8 {
            return;
        }
        self.last_id += 1;
        let former = self.part_of(random, key);
        let begun = match &former {
            Some(former) => Transfer::resumed(&self.store, random, (key, self.last_id), former),
            None => Transfer::new(&self.store, random, (key, self.last_id)),
        };
        match begun {
            Ok(transfer) => self.transfers.push(transfer),
            Err(refusal) => assert!(!self.exact, "{refusal}"),
        }
    }

    /// A part that was found for `key`, stored still or not: its content can be inherited.
    fn part_of(&self, random: &mut Random, key: u64) -> Option<Arc<StoredResponse>> {
        let parts = self
            .seen
            .iter()
            .filter(|seen| seen.0 == key && seen.2.is_part());
        let parts: Vec<_> = parts.map(|seen| &seen.2).collect();
        (!parts.is_empty()).then(|| Arc::clone(parts[random.length(parts.len())]))
    }

    /// The next bytes of one that arrives, or its end.
    fn arrive(&mut self, random: &mut Random) {
        if self.transfers.is_empty() {
            return;
        }
        let at = random.length(self.transfers.len());
        match self.transfers[at].push(random) {
            Ok(Arrived::More) => {}
            Ok(Arrived::All) => {
                let transfer = self.transfers.swap_remove(at);
                self.commit(transfer);
            }
            Err(refusal) => {
                assert!(!self.exact, "{refusal}");
                self.transfers.swap_remove(at);
            }
        }
    }

    fn commit(&mut self, transfer: Transfer) {
        let (key, id, fields_of) = (transfer.key, transfer.id, transfer.vary);
        let outdated = transfer.outdated;
        let vary = fields_of.map(|(rule, fields)| {
            let names: Vec<Box<str>> = RULES[rule]
                .iter()
                .map(|field| field.to_string().into())
                .collect();
            let values = values(rule, fields);
            (VaryRule(names.into()), selecting_digest(rule, &values))
        });
        let (committed, present) = transfer.commit(vary);
        assert!(
            !(outdated && committed.is_ok()),
            "a forgotten one came back"
        );
        assert!(
            committed.is_ok() || outdated || !self.exact,
            "{committed:?}"
        );
        if committed.is_ok() {
            let selecting: Option<Selecting> =
                fields_of.map(|(rule, fields)| (rule, values(rule, fields)));
            self.reference.commit(key, selecting, id);
            self.present.insert(id, present);
        }
    }

    fn abandon(&mut self, random: &mut Random) {
        if !self.transfers.is_empty() {
            let at = random.length(self.transfers.len());
            self.transfers.swap_remove(at);
        }
    }

    fn find(&mut self, key: u64, fields: Fields) {
        let select = |rule: &VaryRule| {
            let named: Vec<usize> = rule
                .0
                .iter()
                .map(|name| name.parse().expect("a number"))
                .collect();
            let rule = RULES
                .iter()
                .position(|fields| **fields == named[..])
                .expect("a known rule");
            selecting_digest(rule, &values(rule, fields))
        };
        let found = match self.store.find(digest(key), &select) {
            LookupResult::Found(found) => {
                let id = check_response(&found);
                let present = found.body.present();
                assert_eq!(Some(&present), self.present.get(&id), "present of {id}");
                let found = self.move_to_file(key, id, found);
                self.seen.push((key, id, found));
                Ok(id)
            }
            LookupResult::Missing(missing) => Err(missing),
        };
        if self.exact {
            let expected = self.reference.find(key, |rule| values(rule, fields));
            assert_eq!(found, expected, "key {key}, fields {fields:?}");
        } else if let Ok(id) = found {
            assert!(
                self.reference.has(key, id),
                "{id} is outdated or was never whole"
            );
        }
    }

    /// Has every other response that can be moved to a file in memory moved there.
    fn move_to_file(
        &mut self,
        key: u64,
        id: u64,
        found: Arc<StoredResponse>,
    ) -> Arc<StoredResponse> {
        let moved = match id % 2 {
            0 => self.store.move_to_file(digest(key), &found),
            _ => None,
        };
        let Some(moved) = moved else {
            return found;
        };
        assert!(moved.body.is_in_file());
        assert_eq!(check_response(&moved), id);
        // what was seen before is no longer the one stored
        self.seen.retain(|seen| seen.1 != id);
        self.moved += 1;
        moved
    }

    fn seen(&mut self, random: &mut Random) -> Option<(u64, u64, Arc<StoredResponse>)> {
        (!self.seen.is_empty()).then(|| {
            let at = random.length(self.seen.len());
            self.seen.swap_remove(at)
        })
    }

    fn replace(&mut self, random: &mut Random) {
        let Some((key, old_id, old)) = self.seen(random) else {
            return;
        };
        // the same content under a longer head: as a 304 does it
        let head: Vec<u8> = [b"0", &*old.head].concat();
        let fresh = StoredResponse {
            head: head.into_boxed_slice(),
            facts: old.facts,
            entity_tag: None,
            last_modified: None,
            date: old.date,
            body: old.body.clone(),
        };
        let replaced = self.store.replace(digest(key), &old, Arc::new(fresh));
        let expected = self.reference.has(key, old_id);
        assert!(
            replaced == expected || (!self.exact && !replaced),
            "{old_id} of {key}"
        );
        // the number stays, but the response seen is no longer the one stored
        self.seen.retain(|seen| seen.1 != old_id);
    }

    fn drop_one(&mut self, random: &mut Random) {
        let Some((key, id, response)) = self.seen(random) else {
            return;
        };
        let dropped = self.store.drop_one(digest(key), &response);
        let expected = self.reference.drop_one(key, id);
        assert!(dropped == expected || (!self.exact && !dropped));
        self.seen.retain(|seen| seen.1 != id);
    }
}

fn values(rule: RuleNumber, fields: Fields) -> Vec<u64> {
    RULES[rule].iter().map(|field| fields[*field]).collect()
}

fn selecting_digest(rule: RuleNumber, values: &[u64]) -> Digest {
    let number = values.iter().fold(rule as u64, |number, value| {
        mix(number.rotate_left(9) ^ value)
    });
    digest(number)
}
