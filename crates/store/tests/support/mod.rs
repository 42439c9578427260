//! What the store's tests share: numbers by seed, and responses whose every byte is known.
#![allow(dead_code, reason = "each test takes what it needs")]

use std::io::Write;
use weir_policy::fetch::ByteSpan;
use weir_policy::rule::StoringIgnored;
use weir_policy::{Digest, Now, StoredFacts, Tick};
use weir_semantics::{DeltaSeconds, Timestamp};
use weir_store::{BLOCK_BYTES, ContentBuilder, StoredContent, StoredResponse};

/// What was being tried, shown if that panics.
pub(crate) struct Shown(pub(crate) String);

impl Drop for Shown {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let _ = writeln!(std::io::stderr(), "with {}", self.0);
        }
    }
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
        mix(self.0)
    }

    /// A number in `0..end`.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    /// A length in `0..end`.
    pub(crate) fn length(&mut self, end: usize) -> usize {
        usize::try_from(self.below(end as u64)).expect("less than a length")
    }

    /// Whether one of `of` equal chances came.
    pub(crate) fn one_in(&mut self, of: u64) -> bool {
        self.below(of) == 0
    }
}

/// Spreads a number over all bits.
pub(crate) fn mix(number: u64) -> u64 {
    let mut z = number;
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// The digest of a key with this number.
pub(crate) fn digest(key: u64) -> Digest {
    Digest(mix(key + 1), mix(!key))
}

/// A time; these tests need no other.
pub(crate) const NOW: Now = Now {
    wall: Timestamp(1_000_000),
    tick: Tick(0),
};

/// A response that is fresh for an hour.
pub(crate) fn response(
    head: Box<[u8]>,
    entity_tag: Option<Box<[u8]>>,
    body: StoredContent,
) -> StoredResponse {
    StoredResponse {
        head,
        facts: StoredFacts {
            status: 200,
            has_validator: entity_tag.is_some(),
            strong_tag: entity_tag.is_some(),
            is_transformed: false,
            keeps_lifetime: false,
            ignored: StoringIgnored::NONE,
            is_permitted: false,
            no_cache: false,
            must_revalidate: false,
            freshness_lifetime: DeltaSeconds(3600),
            corrected_initial_age: DeltaSeconds::ZERO,
            response_tick: NOW.tick,
            stale_while_revalidate: None,
            stale_if_error: None,
        },
        entity_tag,
        last_modified: None,
        date: NOW.wall,
        body,
    }
}

/// The content of the response `id`, each byte a function of `id` and its place.
pub(crate) fn content(id: u64, range: std::ops::Range<u64>) -> &'static [u8] {
    let length = usize::try_from(range.end - range.start).expect("a length");
    let start = usize::try_from((id * 31 + range.start) % 251).expect("less than 251");
    &PATTERN[start..start + length]
}

/// Most that `content` gives at a time.
pub(crate) const CONTENT_MAX: u64 = BLOCK_BYTES as u64;

static PATTERN: [u8; BLOCK_BYTES + 251] = {
    let mut pattern = [0; BLOCK_BYTES + 251];
    let mut place = 0;
    while place < pattern.len() {
        #[expect(clippy::cast_possible_truncation, reason = "less than 251")]
        {
            pattern[place] = (place % 251) as u8;
        }
        place += 1;
    }
    pattern
};

/// The response `id` with `length` bytes of content, as `check_response` expects it.
pub(crate) fn true_response(id: u64, length: u64, content: ContentBuilder) -> StoredResponse {
    true_part(id, id, length, content.finish())
}

/// The response `id` with as much as is in `body` of the content of `seed`, of `length` bytes in
/// all.
pub(crate) fn true_part(id: u64, seed: u64, length: u64, body: StoredContent) -> StoredResponse {
    let head = format!("{id} {seed} {length}").into_bytes();
    response(head.into_boxed_slice(), None, body)
}

/// The number of `response`, the seed of its content and its complete length, as its head says.
pub(crate) fn numbers(response: &StoredResponse) -> [u64; 3] {
    let head = str::from_utf8(&response.head).expect("a head of these tests");
    let mut numbers = head.split(' ').map(|text| text.parse().expect("a number"));
    std::array::from_fn(|_| numbers.next().expect("three numbers"))
}

/// The number of `response`, after all its bytes were compared with what they should be, and what
/// is missing is not there.
pub(crate) fn check_response(response: &StoredResponse) -> u64 {
    let [id, seed, length] = numbers(response);
    let body = &response.body;
    let mut missing_from = 0;
    for run in body.present().iter() {
        assert!(run.to <= length, "{id} goes beyond its end");
        for missing in [missing_from, run.from].map(|at| at.max(1) - 1) {
            let is_missing = missing_from <= missing && missing < run.from;
            assert!(!is_missing || body.at(missing).is_empty());
        }
        check_run(body, seed, run);
        missing_from = run.to;
    }
    assert!(body.at(missing_from).is_empty());
    if response.is_part() {
        assert!(body.complete_length().is_none_or(|known| known == length));
    } else {
        assert_eq!(body.len(), length, "length of {id}");
        assert_eq!(body.present_bytes(), length, "bytes of {id} are missing");
    }
    id
}

fn check_run(body: &StoredContent, seed: u64, run: ByteSpan) {
    let mut offset = run.from;
    while offset < run.to {
        let bytes = body.at(offset);
        // what is in a file is in one piece
        let bytes = &bytes[..bytes.len().min(BLOCK_BYTES)];
        let end = offset + bytes.len() as u64;
        assert!(!bytes.is_empty(), "{seed} ends at {offset}");
        assert!(
            bytes == content(seed, offset..end),
            "bytes of {seed} from {offset}"
        );
        offset = end;
    }
    assert_eq!(
        offset, run.to,
        "there is more than what is said to be present"
    );
    assert!(body.holds(run));
}
