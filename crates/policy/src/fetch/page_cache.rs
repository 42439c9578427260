//! Whether what is stored on disk is read through the page cache or past it.
//!
//! Through the page cache, a response that is requested again costs one copy; one that is not there
//! costs allocating pages and, where memory is full, freeing others, twice what the read itself
//! does: 20 µs of a core for 12 KB against 8 past it, measured with Linux 6.18. The two are even
//! where a little more than half of what is read is there.
//!
//! What the page cache could hold cannot be known: other processes use it too, and control groups
//! limit it. It can be measured: once as many bytes as the store has went through it, what is not
//! found in it did not stay. Until so much has been through, reads go through it, so that memory
//! that is free is used. From then on the last [`WINDOW_LOOKS`] looks decide. While reads go past
//! it, one in [`LOOK_EVERY`] still goes through: these look, and what they bring in is found again
//! if there is room for it by now. While window after window finds next to nothing they become
//! rarer, down to one in [`LOOK_EVERY_MAX`].

/// Looks into the page cache after which it is judged again: enough that chance moves their share
/// by a few percent.
pub const WINDOW_LOOKS: u32 = 256;

/// One read in so many goes through the page cache while the others go past it: a look that finds
/// nothing costs three to five times what reading past does, so they add 5 % to the cost of all.
pub const LOOK_EVERY: u32 = 64;

/// The rarest that looks become: what they add is no longer noticed, and that memory became free
/// is, after 131 072 reads for a window.
pub const LOOK_EVERY_MAX: u32 = 512;

/// Looks become rarer, by half, while fewer than this share of them succeed, percent.
pub const RARER_BELOW_PERCENT: u32 = 10;

/// Reads go past the page cache when fewer than this share of looks succeed, percent.
pub const PAST_BELOW_PERCENT: u32 = 40;

/// Reads go through it again when more than this share do, percent. Apart from the other, so that
/// what lies between changes nothing.
pub const THROUGH_ABOVE_PERCENT: u32 = 60;

/// The path that a read takes to the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadPath {
    /// From the page cache, and what is not there into it.
    Through,
    /// From the device, past the page cache.
    Past,
}

/// What the page cache has had to do with the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Volumes {
    /// Bytes that were written through the page cache or read into it, since the store was opened.
    pub passed_bytes: u64,
    /// Bytes stored.
    pub stored_bytes: u64,
}

/// Decides for one store, by what its reads found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageCache {
    read_path: ReadPath,
    /// In this window.
    looks: u32,
    found: u32,
    /// Reads since the last that went through.
    past: u32,
    /// One read in so many looks while the others go past.
    every: u32,
}

impl PageCache {
    /// Nothing is known: reads take `read_path` until there were enough looks.
    #[must_use]
    pub const fn new(read_path: ReadPath) -> Self {
        Self {
            read_path,
            looks: 0,
            found: 0,
            past: 0,
            every: LOOK_EVERY,
        }
    }

    /// The path of most reads.
    #[must_use]
    pub const fn read_path(&self) -> ReadPath {
        self.read_path
    }

    /// The path of the next read. A read through the page cache first looks whether the bytes are
    /// there, and reports the result to [`Self::looked`].
    pub const fn next(&mut self) -> ReadPath {
        if matches!(self.read_path, ReadPath::Past) {
            self.past += 1;
            if self.past < self.every {
                return ReadPath::Past;
            }
            self.past = 0;
        }
        ReadPath::Through
    }

    /// What a look found; `volumes` is called once a window.
    pub fn looked(&mut self, was_there: bool, volumes: impl FnOnce() -> Volumes) {
        self.looks += 1;
        self.found += u32::from(was_there);
        if self.looks < WINDOW_LOOKS {
            return;
        }
        let percent = self.found * 100 / self.looks;
        (self.looks, self.found) = (0, 0);
        match self.read_path {
            ReadPath::Through if percent < PAST_BELOW_PERCENT => {
                let volumes = volumes();
                if volumes.passed_bytes >= volumes.stored_bytes {
                    self.read_path = ReadPath::Past;
                    self.every = LOOK_EVERY;
                }
            }
            ReadPath::Past if percent > THROUGH_ABOVE_PERCENT => self.read_path = ReadPath::Through,
            ReadPath::Past if percent < RARER_BELOW_PERCENT => {
                self.every = (self.every * 2).min(LOOK_EVERY_MAX);
            }
            ReadPath::Past => self.every = LOOK_EVERY,
            ReadPath::Through => {}
        }
    }
}

impl Default for PageCache {
    fn default() -> Self {
        Self::new(ReadPath::Through)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FULL: Volumes = Volumes {
        passed_bytes: 10,
        stored_bytes: 10,
    };

    /// A window of looks of which `found` succeed.
    fn look(cache: &mut PageCache, found: u32, volumes: Volumes) {
        for nth in 0..WINDOW_LOOKS {
            cache.looked(nth < found, || volumes);
        }
    }

    /// The least number of looks that is `percent` of a window.
    fn share(percent: u32) -> u32 {
        (WINDOW_LOOKS * percent).div_ceil(100)
    }

    #[test]
    fn page_cache_is_used_until_as_many_bytes_passed_as_are_stored() {
        let mut cache = PageCache::default();
        let fresh = Volumes {
            passed_bytes: 9,
            stored_bytes: 10,
        };
        look(&mut cache, 0, fresh);
        assert_eq!(cache.read_path(), ReadPath::Through);
        look(&mut cache, 0, FULL);
        assert_eq!(cache.read_path(), ReadPath::Past);
    }

    #[test]
    fn page_cache_use_changes_exactly_at_its_threshold_percentages() {
        let check = |read_path, found, expected| {
            let mut cache = PageCache::new(read_path);
            look(&mut cache, found, FULL);
            assert_eq!(cache.read_path(), expected, "{read_path:?} {found}");
        };
        check(
            ReadPath::Through,
            share(PAST_BELOW_PERCENT),
            ReadPath::Through,
        );
        check(
            ReadPath::Through,
            share(PAST_BELOW_PERCENT) - 1,
            ReadPath::Past,
        );
        check(
            ReadPath::Past,
            share(THROUGH_ABOVE_PERCENT + 1) - 1,
            ReadPath::Past,
        );
        check(
            ReadPath::Past,
            share(THROUGH_ABOVE_PERCENT + 1),
            ReadPath::Through,
        );
        check(ReadPath::Past, 0, ReadPath::Past);
        check(ReadPath::Through, WINDOW_LOOKS, ReadPath::Through);
    }

    #[test]
    fn page_cache_probes_back_off_while_few_hit_and_resume_later() {
        let mut cache = PageCache::new(ReadPath::Past);
        let mut every = |found| {
            look(&mut cache, found, FULL);
            let reads = (1..).find(|_| cache.next() == ReadPath::Through);
            reads.expect("a look")
        };
        let nothing = share(RARER_BELOW_PERCENT) - 1;
        assert_eq!([every(0), every(nothing)], [128, 256]);
        assert_eq!([every(0), every(0)], [LOOK_EVERY_MAX; 2]);
        // what is found now and then makes them frequent again
        assert_eq!(every(share(RARER_BELOW_PERCENT)), LOOK_EVERY);
        assert_eq!(every(0), 128);
    }

    #[test]
    fn reads_past_the_page_cache_probe_it_once_per_interval() {
        let mut cache = PageCache::new(ReadPath::Past);
        let mut paths = || (0..LOOK_EVERY).map(|_| cache.next()).collect::<Vec<_>>();
        for _ in 0..3 {
            let looks = paths()
                .iter()
                .filter(|read_path| **read_path == ReadPath::Through)
                .count();
            assert_eq!(looks, 1);
        }
        let mut cache = PageCache::default();
        assert!((0..100).all(|_| cache.next() == ReadPath::Through));
    }

    /// A page cache that keeps the last `room` of what it was given, and reads as chance has it
    /// from `all` responses.
    fn settle(room: usize, all: usize) -> ReadPath {
        let mut cache = PageCache::default();
        let mut kept: std::collections::VecDeque<usize> = std::collections::VecDeque::new();
        let (mut passed, mut state) = (0, 7_usize);
        for _ in 0..200_000 {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let asked = (state >> 33) % all;
            if cache.next() == ReadPath::Past {
                continue;
            }
            let was_there = kept.contains(&asked);
            if !was_there {
                passed += 1;
                kept.push_back(asked);
                if kept.len() > room {
                    kept.pop_front();
                }
            }
            cache.looked(was_there, || Volumes {
                passed_bytes: passed,
                stored_bytes: all as u64,
            });
        }
        cache.read_path()
    }

    #[test]
    fn page_cache_is_used_only_if_it_holds_most_of_the_store() {
        assert_eq!(settle(200, 200), ReadPath::Through);
        assert_eq!(settle(160, 200), ReadPath::Through);
        assert_eq!(settle(60, 200), ReadPath::Past);
        assert_eq!(settle(10, 200), ReadPath::Past);
    }
}
