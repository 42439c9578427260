//! Looking on disk for what is not in memory.

use crate::content::StoredContent;
use crate::expected_response::ExpectedResponse;
use crate::memory::MemoryStore;
use crate::record::{Line, Record, ResponseRecord, RulesRecord, variant_key};
use crate::resource::VaryRule;
use crate::shard::StoredVariant;
use crate::stored::StoredResponse;
use std::sync::Arc;
use weir_disk::{Disk, LoadedRecord, ReadError, RecordId};
use weir_policy::{Digest, Missing, Now};

/// A look-up on disk: what is purged from now on is not found by it.
#[derive(Debug)]
pub struct DiskLookup {
    expected: ExpectedResponse,
    disk: Arc<Disk>,
    /// A response that varies on nothing is another variant.
    finds_variants: bool,
}

/// What came of it.
#[derive(Debug)]
pub enum DiskLookupResult {
    /// The response. It is in memory too from now on, if that is worth the room. A response that
    /// validates or completes it is expected since the look-up began.
    Found(Arc<StoredResponse>, ExpectedResponse),
    /// There is none for this request.
    Missing(Missing, Option<DiskVariants>),
    /// There is one, and it cannot be used: to the request it is a miss.
    Unusable(Unusable),
}

/// What the disk knows of a target's variants: for the response that will be stored.
#[derive(Debug)]
pub struct DiskVariants {
    expected: ExpectedResponse,
    rules: RulesRecord,
}

/// Why what was found on disk is of no use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unusable {
    /// It could not be read.
    Read(ReadError),
    /// It is not a record that this program writes, or that of another key.
    Corrupt,
    /// Purged, or replaced by a more recent one, while it was read.
    Outdated,
}

impl DiskVariants {
    /// `expected` with what is known here.
    #[must_use]
    pub fn add_to(&self, expected: ExpectedResponse) -> ExpectedResponse {
        expected.knowing(&self.expected, &self.rules)
    }
}

impl DiskLookup {
    /// Of the target that `expected` is for; `None` if nothing of it can be on disk.
    #[must_use]
    pub fn of(expected: ExpectedResponse) -> Option<Self> {
        let disk = Arc::clone(expected.store.disk()?);
        let expected = expected.on_any_stored();
        Some(Self {
            expected,
            disk,
            finds_variants: false,
        })
    }

    /// The same as [`MemoryStore::find_variant`](crate::MemoryStore::find_variant) finds.
    #[must_use]
    pub fn of_variants(self) -> Self {
        Self {
            finds_variants: true,
            ..self
        }
    }

    /// Looks for the response to a request; `selecting` digests its nominated fields under a rule.
    pub async fn run(self, now: Now, selecting: &dyn Fn(&VaryRule) -> Digest) -> DiskLookupResult {
        let primary = self.expected.primary;
        self.expected.store.settle();
        let record = match self.load(primary, now).await {
            Ok(None) => return DiskLookupResult::Missing(Missing::Target, None),
            Ok(Some(found)) => found,
            Err(why) => return DiskLookupResult::Unusable(why),
        };
        match record {
            (Record::Response(_), _) if self.finds_variants => {
                DiskLookupResult::Missing(Missing::Variant, None)
            }
            (Record::Response(record), loaded) => self.found(record, &loaded, None),
            (Record::Rules(rules), loaded) => {
                self.choose(now, rules, loaded.record, selecting).await
            }
        }
    }

    /// Looks for the variant by each of the rules.
    async fn choose(
        self,
        now: Now,
        rules: RulesRecord,
        rules_id: RecordId,
        selecting: &dyn Fn(&VaryRule) -> Digest,
    ) -> DiskLookupResult {
        let secret = self.disk.secret();
        for rule in &rules.rules {
            let selecting = selecting(rule);
            let key = variant_key(&secret, self.expected.primary, rules.line, selecting);
            match self.load(key, now).await {
                Ok(Some((Record::Response(record), loaded))) => {
                    let vary = (rule.clone(), selecting, rules.line);
                    return self.found(record, &loaded, Some((vary, rules_id)));
                }
                Ok(Some((Record::Rules(_), _))) => {
                    return DiskLookupResult::Unusable(Unusable::Corrupt);
                }
                Ok(None) => {}
                Err(why) => return DiskLookupResult::Unusable(why),
            }
        }
        let variants = DiskVariants {
            expected: self.expected,
            rules,
        };
        DiskLookupResult::Missing(Missing::Variant, Some(variants))
    }

    /// The record under `key`, if there is one. A corrupt one is forgotten.
    async fn load(
        &self,
        key: Digest,
        now: Now,
    ) -> Result<Option<(Record, LoadedRecord)>, Unusable> {
        let read = read(&self.expected.store, &self.disk, key, now).await;
        read.map_err(|(why, record)| {
            if let Some(record) = record {
                self.disk.forget(key, record);
            }
            why
        })
    }

    /// A response was found; a variant by the rules of the given record.
    fn found(
        self,
        record: ResponseRecord,
        loaded: &LoadedRecord,
        vary: Option<((VaryRule, Digest, Line), RecordId)>,
    ) -> DiskLookupResult {
        let primary = self.expected.primary;
        let mut read = vec![(loaded.key, loaded.record)];
        let vary = vary.map(|(vary, rules_id)| {
            read.push((primary, rules_id));
            vary
        });
        let wanted = vary.as_ref().map(|(rule, selecting, _)| (rule, *selecting));
        let written = record.vary.as_ref();
        let written = written.map(|(rule, selecting)| (rule, *selecting));
        let body = if wanted == written {
            body_of(&record, loaded)
        } else {
            None
        };
        let Some(body) = body else {
            self.disk.forget(loaded.key, loaded.record);
            return DiskLookupResult::Unusable(Unusable::Corrupt);
        };
        if !body.is_whole() && !record.facts.can_be_part() {
            // some of it is not on disk any more
            self.disk.forget(loaded.key, loaded.record);
            return DiskLookupResult::Missing(Missing::Target, None);
        }
        let response = Arc::new(record.with_body(body));
        match self.expected.insert_from_disk(vary, response, &read) {
            Some(response) => DiskLookupResult::Found(response, self.expected),
            None => DiskLookupResult::Unusable(Unusable::Outdated),
        }
    }
}

/// The record under `key`, if there is one.
///
/// # Errors
///
/// Why it is of no use, and which record is corrupt.
async fn read(
    store: &MemoryStore,
    disk: &Disk,
    key: Digest,
    now: Now,
) -> Result<Option<(Record, LoadedRecord)>, (Unusable, Option<RecordId>)> {
    let Some(candidate) = disk.find(key) else {
        return Ok(None);
    };
    let loaded = match disk.load(candidate).await {
        // another key's, or evicted
        Err(ReadError::Gone) => return Ok(None),
        loaded => loaded.map_err(|error| (Unusable::Read(error), None))?,
    };
    match Record::decode(&loaded.meta, now) {
        Ok(Record::Response(mut record)) if loaded.key == key => {
            if store.must_validate(loaded.ticket, record.received) {
                record.facts = record.facts.to_be_validated();
            }
            Ok(Some((Record::Response(record), loaded)))
        }
        Ok(record) if loaded.key == key => Ok(Some((record, loaded))),
        _ => Err((Unusable::Corrupt, Some(loaded.record))),
    }
}

impl MemoryStore {
    /// What a [`DiskLookup`] would find for a request, or one of variants if it is `of_variants`,
    /// with what it varies on. It changes nothing: what is found is not in memory by that, and what
    /// is corrupt is not forgotten.
    ///
    /// # Errors
    ///
    /// Why what is there is of no use.
    pub async fn peek_on_disk(
        &self,
        now: Now,
        primary: Digest,
        of_variants: bool,
        selecting: &dyn Fn(&VaryRule) -> Digest,
    ) -> Result<Result<StoredVariant, Missing>, Unusable> {
        let Some(disk) = &self.disk else {
            return Ok(Err(Missing::Target));
        };
        let read = async |key| read(self, disk, key, now).await.map_err(|(why, _)| why);
        let found = |record: ResponseRecord, loaded: &LoadedRecord| {
            let body = body_of(&record, loaded).ok_or(Unusable::Corrupt)?;
            if !body.is_whole() && !record.facts.can_be_part() {
                return Ok(Err(Missing::Target));
            }
            let vary = record.vary.clone();
            Ok(Ok((vary, Arc::new(record.with_body(body)))))
        };
        let rules = match read(primary).await? {
            None => return Ok(Err(Missing::Target)),
            Some((Record::Response(_), _)) if of_variants => return Ok(Err(Missing::Variant)),
            Some((Record::Response(record), loaded)) => return found(record, &loaded),
            Some((Record::Rules(rules), _)) => rules,
        };
        for rule in &rules.rules {
            let secret = disk.secret();
            let key = variant_key(&secret, primary, rules.line, selecting(rule));
            if let Some((Record::Response(record), loaded)) = read(key).await? {
                return found(record, &loaded);
            }
        }
        Ok(Err(Missing::Variant))
    }
}

/// The content, as far as it is there; `None` if it is not that of `record`.
fn body_of(record: &ResponseRecord, loaded: &LoadedRecord) -> Option<StoredContent> {
    match &loaded.inline {
        Some(bytes) if record.complete_length == Some(bytes.len() as u64) => {
            Some(StoredContent::whole(bytes))
        }
        _ => StoredContent::on_disk(loaded.extents.clone(), record.complete_length),
    }
}

impl ExpectedResponse {
    /// Puts in what was found on disk in the records `read`; see
    /// [`Shard::insert_from_disk`](crate::shard::Shard::insert_from_disk).
    fn insert_from_disk(
        &self,
        vary: Option<(VaryRule, Digest, Line)>,
        response: Arc<StoredResponse>,
        read: &[(Digest, RecordId)],
    ) -> Option<Arc<StoredResponse>> {
        let id = self.id.ok()?;
        let disk = self.store.disk()?;
        let mut shard = self.store.shard(self.primary);
        // with the shard locked: what is stored afterwards replaces this one
        let is_newest = read
            .iter()
            .all(|(key, record)| disk.is_newest(*key, *record));
        shard.insert_from_disk(id, vary, response, is_newest)
    }
}
