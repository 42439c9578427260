//! Responses of mixed sizes on their way into a store, several at a time.

use crate::support::{NOW, Random, digest, response};
use std::sync::Arc;
use weir_policy::Digest;
use weir_store::{ContentBuilder, LookupResult, MemoryStore, Reservation, VaryRule};

/// What arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mix {
    /// As PolyMix: mostly images and pages, some downloads.
    Web,
    /// Some hundred bytes each.
    Small,
    /// Downloads only.
    Downloads,
    /// Downloads only, more at a time than there is room for.
    ManyDownloads,
    /// Small ones that each vary on a thousand fields.
    LongVary,
}

/// A response that is in flight.
struct Transfer {
    reservation: Reservation,
    content: ContentBuilder,
    head: Box<[u8]>,
    entity_tag: Option<Box<[u8]>>,
    vary: Option<(VaryRule, Digest)>,
    left: usize,
}

/// The responses that are in flight, and what decides about the next.
pub(crate) struct Traffic {
    random: Random,
    transfers: Vec<Transfer>,
}

/// Bytes of one part: what one read from a socket brings.
const PART_BYTES: usize = 16 * 1024;

/// Targets there are: more than fit.
const KEYS: u64 = 60_000;

static CONTENT: [u8; PART_BYTES] = [b'x'; PART_BYTES];

/// Most that arrive at a time.
const ARRIVALS_MAX: usize = 200;

impl Traffic {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            random: Random::new(seed),
            // the places are there before the bytes are counted
            transfers: Vec::with_capacity(ARRIVALS_MAX),
        }
    }

    pub(crate) fn in_flight(&self) -> usize {
        self.transfers.len()
    }

    /// One part arrives, or a response begins or ends; the bytes that came.
    pub(crate) fn step(&mut self, store: &Arc<MemoryStore>, mix: Mix) -> u64 {
        self.look_up(store);
        let arrivals_max = if mix == Mix::ManyDownloads {
            ARRIVALS_MAX
        } else {
            8
        };
        if self.transfers.is_empty() || self.transfers.len() < arrivals_max && self.random.one_in(2)
        {
            return self.begin(store, mix);
        }
        let at = self.random.length(self.transfers.len());
        let part = 1 + self.random.length(PART_BYTES);
        let transfer = &mut self.transfers[at];
        let part = part.min(transfer.left);
        let reserved = transfer
            .reservation
            .reserve_next(&mut transfer.content, part);
        if reserved.is_err() {
            self.transfers.swap_remove(at);
            return part as u64;
        }
        transfer.content.push(&CONTENT[..part]);
        transfer.left -= part;
        if transfer.left == 0 {
            let transfer = self.transfers.swap_remove(at);
            if !self.random.one_in(50) {
                transfer.commit();
            }
        }
        part as u64
    }

    pub(crate) fn abandon_all(&mut self) {
        self.transfers.clear();
    }

    /// A response begins; the bytes that came with its head.
    fn begin(&mut self, store: &Arc<MemoryStore>, mix: Mix) -> u64 {
        let random = &mut self.random;
        let primary = digest(random.below(KEYS));
        let bytes = mix.length(random);
        let head = filled(300 + random.length(600));
        let known = (!random.one_in(4)).then_some(bytes as u64);
        let vary = mix.vary(random);
        let rule_bytes = vary.as_ref().map_or(0, |(rule, _)| rule.charged_bytes());
        let head_bytes = head.len() + rule_bytes;
        let Ok(reservation) = store.expect(primary).begin(head_bytes, known) else {
            return 0;
        };
        self.transfers.push(Transfer {
            reservation,
            content: ContentBuilder::new(known),
            head,
            entity_tag: random.one_in(2).then(|| filled(4 + random.length(60))),
            vary,
            left: bytes,
        });
        head_bytes as u64
    }

    /// Hits, freshenings, invalidations: whatever else happens to a store.
    fn look_up(&mut self, store: &Arc<MemoryStore>) {
        let random = &mut self.random;
        let primary = digest(random.below(KEYS));
        let selecting = digest(random.below(8));
        let LookupResult::Found(found) = store.find(primary, &|_| selecting) else {
            return;
        };
        if random.one_in(20) {
            let old = &found;
            let head = filled(300 + random.length(600));
            let fresh = response(head, old.entity_tag.clone(), old.body.clone());
            store.replace(primary, old, Arc::new(fresh));
        } else if random.one_in(3) {
            let _ = store.move_to_file(primary, &found);
        } else if random.one_in(50) {
            store.drop_one(primary, &found);
        } else if random.one_in(100) {
            store.remove(primary);
        }
    }
}

impl Transfer {
    fn commit(self) {
        let response = response(self.head, self.entity_tag, self.content.finish());
        let _ = self.reservation.commit(NOW, self.vary, response);
    }
}

impl Mix {
    /// The least part of the budget that is live on the mean once it is full, percent.
    pub(crate) fn live_percent_min(self) -> u64 {
        match self {
            Self::Web | Self::Small | Self::LongVary => 80,
            // the tables of the many that were there before keep their slack
            Self::Downloads => 70,
            // room is taken for what has yet to arrive
            Self::ManyDownloads => 0,
        }
    }

    /// Bytes of content.
    fn length(self, random: &mut Random) -> usize {
        match self {
            Self::Web => match random.below(1000) {
                0..650 => exponential(random, 4500.0),
                650..800 => exponential(random, 8500.0),
                800..805 => download(random),
                _ => exponential(random, 15_000.0),
            },
            Self::Small | Self::LongVary => random.length(400),
            Self::Downloads | Self::ManyDownloads => download(random),
        }
    }

    fn vary(self, random: &mut Random) -> Option<(VaryRule, Digest)> {
        let names = match self {
            Self::LongVary => 1000,
            _ if random.one_in(10) => 1 + random.length(3),
            _ => return None,
        };
        let first = random.length(3);
        let rule: Vec<Box<str>> = (first..first + names)
            .map(|number| format!("x-{number}").into())
            .collect();
        Some((VaryRule(rule.into()), digest(random.below(8))))
    }
}

/// Stores a response of a few bytes, and says what it takes without any index.
pub(crate) fn put_small(store: &Arc<MemoryStore>, primary: Digest) -> u64 {
    let mut content = ContentBuilder::new(Some(100));
    content.push(&CONTENT[..100]);
    let response = response(filled(400), None, content.finish());
    let bytes = response.charged_bytes();
    let reservation = store
        .expect(primary)
        .begin(400, Some(100))
        .expect("room enough");
    reservation
        .commit(NOW, None, response)
        .expect("room enough");
    bytes as u64
}

fn filled(bytes: usize) -> Box<[u8]> {
    vec![b'h'; bytes].into_boxed_slice()
}

fn exponential(random: &mut Random, mean: f64) -> usize {
    whole(-mean * unit(random).ln())
}

/// Lognormal with a mean of 300 KB.
fn download(random: &mut Random) -> usize {
    let normal = (-2.0 * unit(random).ln()).sqrt() * (std::f64::consts::TAU * unit(random)).cos();
    whole(300_000.0 * (normal - 0.5).exp())
}

/// A number in (0, 1].
fn unit(random: &mut Random) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "53 bits fit")]
    let number = (random.below(1 << 53) + 1) as f64;
    number / 9_007_199_254_740_992.0
}

fn whole(number: f64) -> usize {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a length drawn at random"
    )]
    let whole = number.clamp(0.0, 4_000_000.0) as usize;
    whole
}
