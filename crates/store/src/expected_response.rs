//! A response that was requested and may come.

use crate::in_flight::content::{InFlightContent, charged_for};
use crate::in_flight::disk_writer::DiskWriter;
use crate::in_flight::reservation::Reservation;
use crate::memory::MemoryStore;
use crate::record::{Line, RulesRecord, encode, variant_key};
use crate::resource::{RULES_MAX, VaryRule};
use crate::shard::{IN_FLIGHT_BYTES, InFlightId};
use crate::stored::StoredResponse;
use std::sync::{Arc, Weak};
use weir_disk::{BodyBlock, Disk, NewRecord, Refused, Ticket};
use weir_policy::catalog::Refusal;
use weir_policy::{Digest, Now};

/// A response that was requested and may come: purges and invalidations from now on cover it too.
///
/// To be taken before the request is sent; for a request that validates or completes a stored
/// response, when that is chosen. Nothing is stored without it: a response that was requested
/// before a purge may not undo it, nor may a stored one that was chosen before.
#[derive(Debug)]
pub struct ExpectedResponse {
    pub(crate) store: Arc<MemoryStore>,
    pub(crate) primary: Digest,
    /// What it is known by, or why there is no room even to know it.
    pub(crate) id: Result<InFlightId, Refusal>,
    /// The stored response that it validates or completes, if that is known.
    stored: Option<Weak<StoredResponse>>,
    pub(crate) done: bool,
    /// Another node keeps it: what is stored of it here is a copy.
    is_copy: bool,
    on_disk: Option<OnDisk>,
    /// What it varies on, once that is known.
    vary: Option<(VaryRule, Digest)>,
    /// Its URL, for tools that read the store on disk.
    target: Option<Box<str>>,
}

/// What the disk tier has to know of it.
#[derive(Debug)]
struct OnDisk {
    disk: Arc<Disk>,
    ticket: Ticket,
    /// What the disk knew of its target's variants.
    known: Option<RulesRecord>,
}

impl ExpectedResponse {
    pub(crate) fn new(store: Arc<MemoryStore>, primary: Digest) -> Self {
        let id = store.shard(primary).expect(primary);
        Self::known_by(store, primary, id, None)
    }

    /// Of what will validate or complete `stored`.
    pub(crate) fn resting_on(
        store: Arc<MemoryStore>,
        primary: Digest,
        stored: &Arc<StoredResponse>,
    ) -> Self {
        let id = store.shard(primary).expect_for(primary, stored);
        Self::known_by(store, primary, id, Some(Arc::downgrade(stored)))
    }

    fn known_by(
        store: Arc<MemoryStore>,
        primary: Digest,
        id: Result<InFlightId, Refusal>,
        stored: Option<Weak<StoredResponse>>,
    ) -> Self {
        let on_disk = store.disk().map(|disk| OnDisk {
            disk: Arc::clone(disk),
            ticket: disk.ticket(),
            known: None,
        });
        Self {
            store,
            primary,
            id,
            stored,
            done: false,
            is_copy: false,
            on_disk,
            vary: None,
            target: None,
        }
    }

    /// With what the disk knows of its target's variants, found by `earlier`. If the target was
    /// forgotten since then, that is not said any more.
    #[must_use]
    pub fn knowing(mut self, earlier: &Self, rules: &RulesRecord) -> Self {
        if let Some(on_disk) = &mut self.on_disk
            && earlier.primary == self.primary
            && earlier.id.is_ok()
            && !earlier.is_outdated()
        {
            on_disk.known = Some(rules.clone());
        }
        self
    }

    /// With what it turned out to vary on, and the digest of these fields in its request.
    #[must_use]
    pub fn varying(mut self, vary: Option<&(VaryRule, Digest)>) -> Self {
        self.vary = vary.cloned();
        self
    }

    /// It comes from another node, which keeps it. A copy has a small share of memory, and goes to
    /// disk only if it is too large for memory.
    #[must_use]
    pub fn copied(mut self, is_copy: bool) -> Self {
        self.is_copy = is_copy;
        self
    }

    /// With its URL, to write it into the record: nothing is found by it.
    #[must_use]
    pub fn named(mut self, target: impl FnOnce() -> String) -> Self {
        if self.on_disk.is_some() {
            self.target = Some(target().into_boxed_str());
        }
        self
    }

    /// The same for what rests on a stored response that is not known yet: any one of its target.
    pub(crate) fn on_any_stored(self) -> Self {
        self.rest_on_stored(true);
        self
    }

    /// It is of use by itself, without the stored one.
    pub fn stand_alone(&self) {
        self.rest_on_stored(false);
    }

    fn rest_on_stored(&self, rests: bool) {
        if let Ok(id) = self.id {
            self.store.shard(self.primary).rest_on_stored(id, rests);
        }
    }

    /// The request is about to be sent, maybe long after what it rests on was chosen. `false` if
    /// that was dropped since: then it may not be validated.
    ///
    /// On disk, the response that was requested last replaces the others. The new place in that
    /// order undoes no purge: one that the look after it does not see yet comes to the disk later,
    /// as memory forgets first.
    #[must_use]
    pub fn renew(&mut self) -> bool {
        if let Some(on_disk) = &mut self.on_disk {
            on_disk.ticket = on_disk.disk.ticket();
        }
        !self.is_outdated()
    }

    /// Whether its target, or the stored response that it rests on, was purged or invalidated since
    /// it was requested. Purges of one for which there was no room are not recorded: it is outdated
    /// once the stored response that it rests on has left memory.
    #[must_use]
    pub fn is_outdated(&self) -> bool {
        let shard = || self.store.shard(self.primary);
        match (self.id, &self.stored) {
            (Ok(id), _) => shard().is_outdated(id),
            (Err(_), Some(stored)) => {
                let is_stored = |stored| shard().holds(self.primary, &stored);
                !stored.upgrade().is_some_and(is_stored)
            }
            (Err(_), None) => false,
        }
    }

    /// Takes room for a response of `head_bytes` and, if known, `content_bytes` that are expected
    /// to arrive: of a part, those that are missing. The head's are all that is held beside content
    /// while it arrives: with [`VaryRule::charged_bytes`] and an entity tag of more than 64 bytes.
    ///
    /// What is too large for memory, or for one write, goes to disk as it arrives, if there is one
    /// that takes it.
    ///
    /// # Errors
    ///
    /// [`Refusal::TooLarge`] for more than the largest response, or than may arrive at all;
    /// [`Refusal::NoRoomInFlight`] if others that arrive leave too little;
    /// [`Refusal::TooLargeForSmallQueue`] if the eviction algorithm does not take it in.
    pub fn begin(
        self,
        head_bytes: usize,
        content_bytes: Option<u64>,
    ) -> Result<Reservation, Refusal> {
        if self.on_disk.is_some() {
            // what is written is read from there, and can leave
            self.store.settle();
        }
        let id = self.id?;
        let expected = content_bytes.unwrap_or(0);
        let head_charge = StoredResponse::charged_head(head_bytes, 64) + IN_FLIGHT_BYTES;
        let is_for_disk = self.is_for_disk(expected);
        let mut disk_writer = is_for_disk
            .then(|| self.begin_disk_write(content_bytes, 0))
            .flatten();
        if disk_writer.is_none() {
            let reserved = charged_for(expected);
            let room = self.store.check_size(expected);
            let charge = (head_charge + reserved) as u64;
            let room = room.and_then(|()| {
                let mut shard = self.store.shard(self.primary);
                shard.extend_newcomer(id, charge)
            });
            let Err(refusal) = room else {
                return Ok(Reservation::new(self, id, head_charge, reserved));
            };
            if !is_for_disk {
                disk_writer = self.begin_disk_write(content_bytes, 0);
            }
            if disk_writer.is_none() {
                return Err(refusal);
            }
        }
        // its head; what waits to be written is the disk's
        self.extend(id, head_charge)?;
        let reservation = Reservation::new(self, id, head_charge, 0);
        Ok(reservation.disk_writer(disk_writer))
    }

    fn extend(&self, id: InFlightId, charge: usize) -> Result<(), Refusal> {
        self.store.shard(self.primary).extend(id, charge as u64)
    }

    /// Whether content of so many bytes is written while it arrives: it is too large for one write.
    pub(crate) fn is_for_disk(&self, content_bytes: u64) -> bool {
        if self.is_copy {
            return false;
        }
        let disk = self.on_disk.as_ref().map(|on_disk| &on_disk.disk);
        disk.is_some_and(|disk| content_bytes > disk.append_bytes_max())
    }

    /// Begins to write it to disk, of which `came` bytes are there; `None` if there is none that
    /// takes it.
    pub(crate) fn begin_disk_write(&self, expected: Option<u64>, came: u64) -> Option<DiskWriter> {
        let on_disk = self.on_disk.as_ref()?;
        let key = self.key(self.vary.as_ref());
        if !self.store.admits(&on_disk.disk, key, expected, came) {
            return None;
        }
        DiskWriter::begin(&on_disk.disk, key, on_disk.ticket, expected).ok()
    }

    /// Under which key it is on disk.
    fn key(&self, vary: Option<&(VaryRule, Digest)>) -> Digest {
        match vary {
            None => self.primary,
            Some((_, selecting)) => {
                let secret = self.store.secret();
                variant_key(secret, self.primary, self.line(), *selecting)
            }
        }
    }

    /// The line of its target's variants.
    fn line(&self) -> Line {
        let known = self
            .on_disk
            .as_ref()
            .and_then(|on_disk| on_disk.known.as_ref());
        let known = known.map(|rules| rules.line);
        match self.id {
            Ok(id) => self.store.shard(self.primary).line(id, known),
            Err(_) => known.unwrap_or_else(Line::begin),
        }
    }

    /// Makes `response` findable, here and on disk.
    pub(crate) fn commit(
        &mut self,
        now: Now,
        id: InFlightId,
        vary: Option<(VaryRule, Digest)>,
        response: &Arc<StoredResponse>,
        disk_writer: Option<DiskWriter>,
    ) -> Result<(), Refusal> {
        // while it is known as one that is arriving
        let key = self.on_disk.is_some().then(|| self.key(vary.as_ref()));
        let line = vary.as_ref().filter(|_| key.is_some()).map(|_| self.line());
        self.done = true;
        let here = {
            let mut shard = self.store.shard(self.primary);
            shard.commit(id, vary.clone(), Arc::clone(response), self.is_copy)
        };
        // dropped since it was requested, or older than the stored one
        if here == Err(Refusal::NotResident) {
            return Err(Refusal::NotResident);
        }
        let Some(key) = key else {
            return here.map(|_| ());
        };
        let written = self.write(now, key, vary.as_ref(), response, disk_writer);
        if let (Some((rule, _)), Some(line)) = (&vary, line) {
            let changed = here.unwrap_or(true);
            match written {
                Ok(()) => self.write_rules(line, rule, changed),
                Err(Refused::Outdated) => {}
                Err(_) => self.forget_rules(line, changed),
            }
        }
        self.forget_older(vary.map(|(_, selecting)| selecting), response);
        here.map(|_| ())
            .or_else(|refusal| written.map_err(|_| refusal))
    }

    /// Forgets in memory what look-ups found on disk before `response` was handed to the disk.
    fn forget_older(&self, selecting: Option<Digest>, response: &Arc<StoredResponse>) {
        let mut shard = self.store.shard(self.primary);
        shard.forget_older(self.primary, selecting, response);
    }

    /// The next hop has said that `old` is still the right one: `new` takes its place, here and on
    /// disk. `false` if it is not stored: `old` was dropped since it was chosen, or replaced by
    /// another one, or evicted from memory without a disk.
    ///
    /// A copy for which the origin was asked is none any more.
    pub fn freshen(
        self,
        now: Now,
        old: &Arc<StoredResponse>,
        new: &Arc<StoredResponse>,
        vary: Option<&(VaryRule, Digest)>,
    ) -> bool {
        let (replaced, is_copy) = {
            let mut shard = self.store.shard(self.primary);
            let is_copy = self.is_copy && shard.is_copy(self.primary, old);
            let replaced = shard.replace(self.primary, old, Arc::clone(new));
            if replaced && !self.is_copy {
                shard.make_own(self.primary, new);
            }
            (replaced, is_copy)
        };
        let Ok(id) = self.id else {
            return replaced;
        };
        if is_copy {
            return replaced;
        }
        let selecting = vary.map(|(_, selecting)| *selecting);
        let was_evicted = || self.store.shard(self.primary).was_evicted(id, selecting);
        if self.on_disk.is_none() || !replaced && !was_evicted() {
            return replaced;
        }
        let key = self.key(vary);
        let written = if new.facts.is_stricter_than(&old.facts) {
            self.write(now, key, vary, new, None)
        } else {
            // the stored record is of the same representation: if the disk refuses the new one, it
            // is validated once more
            self.write_record(now, key, vary, new, None)
        };
        if let (Ok(()), Some((rule, _))) = (written, vary) {
            self.write_rules(self.line(), rule, false);
        }
        self.forget_older(selecting, new);
        replaced || written.is_ok()
    }

    /// Writes a response of memory to disk once more, as if it had been requested at `ticket`.
    pub(crate) fn write_again(
        mut self,
        now: Now,
        ticket: Ticket,
        vary: Option<&(VaryRule, Digest)>,
        response: &Arc<StoredResponse>,
    ) {
        let Some(on_disk) = &mut self.on_disk else {
            return;
        };
        on_disk.ticket = ticket;
        if self.is_outdated() {
            return;
        }
        let written = self.write(now, self.key(vary), vary, response, None);
        if let (Ok(()), Some((rule, _))) = (written, vary) {
            self.write_rules(self.line(), rule, true);
        }
    }

    /// Hands a response to the disk. If the disk refuses it, the older one under its key is
    /// forgotten there: it would be found again once this one has left memory.
    fn write(
        &self,
        now: Now,
        key: Digest,
        vary: Option<&(VaryRule, Digest)>,
        response: &Arc<StoredResponse>,
        disk_writer: Option<DiskWriter>,
    ) -> Result<(), Refused> {
        let written = self.write_record(now, key, vary, response, disk_writer);
        match (written, &self.on_disk) {
            // the stored one was requested later
            (Ok(()) | Err(Refused::Outdated), _) | (_, None) => {}
            (Err(_), Some(OnDisk { disk, ticket, .. })) => disk.forget_older(key, *ticket),
        }
        written
    }

    /// Writes a response: in one piece, or the end of what went there as it arrived.
    fn write_record(
        &self,
        now: Now,
        key: Digest,
        vary: Option<&(VaryRule, Digest)>,
        response: &Arc<StoredResponse>,
        disk_writer: Option<DiskWriter>,
    ) -> Result<(), Refused> {
        let Some(OnDisk { disk, ticket, .. }) = &self.on_disk else {
            return Err(Refused::Closed);
        };
        self.store.settle();
        let body = &response.body;
        let meta = encode(response, vary, self.target.as_deref(), now);
        let present = body.present_bytes();
        // one that went there as it came was admitted then
        let is_admitted = match &disk_writer {
            Some(_) => self.store.is_for_disk(present),
            None => !self.is_copy && self.store.admits(disk, key, Some(present), present),
        };
        if !is_admitted {
            return Err(Refused::TooLarge);
        }
        if disk_writer.is_none() && body.is_in_memory() && present <= disk.append_bytes_max() {
            let block = |(from, bytes)| BodyBlock { from, bytes };
            return disk.append(NewRecord {
                key,
                ticket: *ticket,
                meta,
                body: body.to_blocks().into_iter().map(block).collect(),
            });
        }
        let disk_writer = match disk_writer {
            Some(disk_writer) => disk_writer,
            None => {
                let mut in_flight = InFlightContent::new(body.complete_length(), Some(body));
                let mut disk_writer = DiskWriter::begin(disk, key, *ticket, Some(present))?;
                disk_writer.end(&mut in_flight)?;
                disk_writer
            }
        };
        let pending = disk_writer.commit(meta)?;
        if body.bytes_in_memory() > 0 {
            let write_behind = &self.store.write_behind;
            write_behind.push(self.primary, response, pending);
        }
        Ok(())
    }

    /// Writes by which rules the variants of the target are found, if that is not what the disk
    /// has.
    fn write_rules(&self, line: Line, rule: &VaryRule, changed: bool) {
        let Some(on_disk) = &self.on_disk else {
            return;
        };
        let known = on_disk.known.as_ref().filter(|known| known.line == line);
        let mut rules = self.store.shard(self.primary).rules(self.primary);
        let beside = known.map_or(&[][..], |known| &known.rules);
        for rule in std::iter::once(rule).chain(beside) {
            if !rules.contains(rule) {
                rules.push(rule.clone());
            }
        }
        rules.truncate(RULES_MAX);
        let is_known = known.is_some_and(|known| known.rules == rules);
        if (is_known || !changed) && on_disk.disk.is_held(self.primary) {
            return;
        }
        let appended = on_disk.disk.append(NewRecord {
            key: self.primary,
            ticket: on_disk.ticket,
            meta: RulesRecord { line, rules }.encode(),
            body: Vec::new(),
        });
        if appended.is_err_and(|why| why != Refused::Outdated) {
            // the variants are not found, and fetched again
            on_disk.disk.forget_older(self.primary, on_disk.ticket);
        }
    }

    /// The disk refused a variant on `line`: it must not find an older one by other rules or on
    /// another line.
    fn forget_rules(&self, line: Line, changed: bool) {
        let Some(on_disk) = &self.on_disk else {
            return;
        };
        let OnDisk {
            disk,
            known,
            ticket,
        } = on_disk;
        if changed && known.as_ref().is_none_or(|known| known.line != line) {
            disk.forget_older(self.primary, *ticket);
        }
    }
}

impl Drop for ExpectedResponse {
    fn drop(&mut self) {
        if let (Ok(id), false) = (self.id, self.done) {
            self.store.shard(self.primary).abandon(id);
        }
    }
}
