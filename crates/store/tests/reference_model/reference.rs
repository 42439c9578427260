//! The reference model: for each target a list of rules and a list of responses, everything by
//! linear search.

use std::collections::BTreeMap;
use weir_policy::Missing;
use weir_store::{RULES_MAX, VARIANTS_MAX};

/// Number of a rule, in `comparison::RULES`.
pub(crate) type RuleNumber = usize;

/// What a request says in the fields that rules name.
pub(crate) type Fields = [u64; 3];

/// Under which rule a response was stored, and what its request said in the rule's fields.
pub(crate) type Selecting = (RuleNumber, Vec<u64>);

#[derive(Clone, Debug, Default)]
struct Target {
    /// Newest first.
    rules: Vec<RuleNumber>,
    /// Oldest first; without a selecting, alone.
    kept: Vec<(Option<Selecting>, u64)>,
}

/// What should be found, by target.
#[derive(Debug)]
pub(crate) struct Reference {
    targets: BTreeMap<u64, Target>,
    /// Whether the limits for one target are counted; they cannot be where others leave unseen.
    limited: bool,
}

impl Reference {
    pub(crate) fn new(limited: bool) -> Self {
        Self {
            targets: BTreeMap::new(),
            limited,
        }
    }

    pub(crate) fn find(
        &self,
        key: u64,
        select: impl Fn(RuleNumber) -> Vec<u64>,
    ) -> Result<u64, Missing> {
        let target = self.targets.get(&key).ok_or(Missing::Target)?;
        if let [(None, id)] = target.kept[..] {
            return Ok(id);
        }
        for rule in &target.rules {
            let wanted = Some((*rule, select(*rule)));
            if let Some((_, id)) = target.kept.iter().rev().find(|kept| kept.0 == wanted) {
                return Ok(*id);
            }
        }
        Err(Missing::Variant)
    }

    /// Whether `id` is what `key` has for some selecting, be it found or not.
    pub(crate) fn has(&self, key: u64, id: u64) -> bool {
        let target = self.targets.get(&key);
        target.is_some_and(|target| target.kept.iter().any(|kept| kept.1 == id))
    }

    pub(crate) fn commit(&mut self, key: u64, selecting: Option<Selecting>, id: u64) {
        let target = self.targets.entry(key).or_default();
        let Some((rule, values)) = selecting else {
            target.rules.clear();
            target.kept = vec![(None, id)];
            return;
        };
        target.rules.retain(|known| *known != rule);
        target.rules.insert(0, rule);
        if self.limited {
            target.rules.truncate(RULES_MAX);
        }
        let rules = &target.rules;
        let selecting = Some((rule, values));
        target.kept.retain(|kept| match &kept.0 {
            None => false,
            known => *known != selecting && rules.contains(&known.as_ref().expect("not none").0),
        });
        if self.limited && target.kept.len() == VARIANTS_MAX {
            target.kept.remove(0);
        }
        target.kept.push((selecting, id));
        self.tidy(key);
    }

    pub(crate) fn drop_one(&mut self, key: u64, id: u64) -> bool {
        let had = self.has(key, id);
        if let Some(target) = self.targets.get_mut(&key) {
            target.kept.retain(|kept| kept.1 != id);
        }
        self.tidy(key);
        had
    }

    pub(crate) fn remove(&mut self, key: u64) -> usize {
        let target = self.targets.remove(&key);
        target.map_or(0, |target| target.kept.len())
    }

    pub(crate) fn clear(&mut self) {
        self.targets.clear();
    }

    /// A rule under which nothing is stored is none; nor is a target.
    fn tidy(&mut self, key: u64) {
        let Some(target) = self.targets.get_mut(&key) else {
            return;
        };
        let kept = &target.kept;
        target.rules.retain(|rule| {
            kept.iter()
                .any(|kept| kept.0.as_ref().is_some_and(|known| known.0 == *rule))
        });
        if target.kept.is_empty() {
            self.targets.remove(&key);
        }
    }
}
