//! Parts that arrive at several places at a time, overlap, inherit from what is stored, and are
//! joined or cut.

use crate::support::{NOW, Random, digest, response};
use std::sync::Arc;
use weir_policy::catalog::Refusal;
use weir_policy::fetch::ByteSpan;
use weir_store::{
    BLOCK_BYTES, InFlightContent, LookupResult, MemoryStore, Reservation, WritePositionId,
};

/// Most that one push brings.
const PUSH_BYTES: usize = 40_000;

/// Targets there are: several times what fits.
const KEYS: u64 = 200;

/// Most that arrive at a time.
const ARRIVALS_MAX: usize = 60;

static CONTENT: [u8; PUSH_BYTES] = [b'x'; PUSH_BYTES];

/// The complete length of a target's content: some bytes to some blocks.
fn length(key: u64) -> u64 {
    match key % 4 {
        0 => 1 + key * 37,
        1 => BLOCK_BYTES as u64 * (key % 3) + key,
        _ => key * 4000 + 1,
    }
}

struct Transfer {
    reservation: Reservation,
    in_flight: InFlightContent,
    head: Box<[u8]>,
    fronts: Vec<(WritePositionId, ByteSpan)>,
}

/// The parts that are in flight, and what decides about the next.
pub(crate) struct Parts {
    random: Random,
    transfers: Vec<Transfer>,
    /// How many inherited something, were refused room, and ended whole or as a part.
    pub(crate) inherited: u64,
    pub(crate) refused: u64,
    pub(crate) whole: u64,
    pub(crate) parts: u64,
}

impl Parts {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            random: Random::new(seed),
            // the places are there before the bytes are counted
            transfers: Vec::with_capacity(ARRIVALS_MAX),
            inherited: 0,
            refused: 0,
            whole: 0,
            parts: 0,
        }
    }

    /// One push, or the begin or end of a response; the bytes that came.
    pub(crate) fn step(&mut self, store: &Arc<MemoryStore>) -> u64 {
        let random = &mut self.random;
        if random.one_in(300) {
            store.remove(digest(random.below(KEYS)));
        }
        let is_full = self.transfers.len() == ARRIVALS_MAX;
        if self.transfers.is_empty() || !is_full && random.one_in(4) {
            match self.begin(store) {
                Ok(transfer) => self.transfers.push(transfer),
                Err(_) => self.refused += 1,
            }
            return 0;
        }
        let at = random.length(self.transfers.len());
        match self.transfers[at].push(random) {
            Ok(0) => {
                let transfer = self.transfers.swap_remove(at);
                self.end(transfer);
                0
            }
            Ok(bytes) => bytes,
            Err(_) => {
                self.refused += 1;
                // what has come is kept, or not
                let transfer = self.transfers.swap_remove(at);
                if self.random.one_in(2) {
                    self.end(transfer);
                }
                0
            }
        }
    }

    pub(crate) fn in_flight(&self) -> usize {
        self.transfers.len()
    }

    pub(crate) fn abandon_all(&mut self) {
        self.transfers.clear();
    }

    fn begin(&mut self, store: &Arc<MemoryStore>) -> Result<Transfer, Refusal> {
        let random = &mut self.random;
        let key = random.below(KEYS);
        let complete = length(key);
        let known = (!random.one_in(4)).then_some(complete);
        let mut in_flight = match store.find(digest(key), &|_| digest(0)) {
            LookupResult::Found(found) if found.is_part() => {
                self.inherited += 1;
                InFlightContent::new(known, Some(&found.body))
            }
            _ => InFlightContent::new(known, None),
        };
        let head = vec![b'h'; 300 + random.length(600)].into_boxed_slice();
        let expected = random
            .one_in(2)
            .then(|| complete - in_flight.present_bytes());
        let mut reservation = store.expect(digest(key)).begin(head.len(), expected)?;
        reservation.reserve_held(in_flight.held_bytes())?;
        let fronts = spans(random, &in_flight, complete)
            .into_iter()
            .map(|span| {
                let to = if random.one_in(3) { u64::MAX } else { span.to };
                let from = span.from;
                (in_flight.open(ByteSpan { from, to }), span)
            })
            .collect();
        reservation.reserve_held(in_flight.held_bytes())?;
        Ok(Transfer {
            reservation,
            in_flight,
            head,
            fronts,
        })
    }

    fn end(&mut self, mut transfer: Transfer) {
        let body = transfer.in_flight.finish();
        if body.is_whole() {
            self.whole += 1;
        } else {
            self.parts += 1;
        }
        let response = response(transfer.head, None, body);
        let _ = transfer.reservation.commit(NOW, None, response);
    }
}

/// What is missing, or a few spans that may overlap each other and what is there.
fn spans(random: &mut Random, in_flight: &InFlightContent, complete: u64) -> Vec<ByteSpan> {
    if random.one_in(2) {
        let (mut present, mut spans) = (in_flight.present(), Vec::new());
        let all = ByteSpan {
            from: 0,
            to: complete,
        };
        while let Some(gap) = present.first_missing(all) {
            present.insert(gap);
            spans.push(gap);
        }
        return spans;
    }
    let span = |_| {
        let from = random.below(complete);
        let to = from + 1 + random.below(complete - from);
        ByteSpan { from, to }
    };
    (0..4).map(span).collect()
}

impl Transfer {
    /// The next bytes at one of its places, or 0 if they have all come.
    fn push(&mut self, random: &mut Random) -> Result<u64, Refusal> {
        while let Some(index) = self
            .fronts
            .iter()
            .position(|front| front.1.from == front.1.to)
        {
            let (place, _) = self.fronts.swap_remove(index);
            self.in_flight.close(place);
        }
        if self.fronts.is_empty() {
            return Ok(0);
        }
        let (place, span) = {
            let index = random.length(self.fronts.len());
            &mut self.fronts[index]
        };
        let left = usize::try_from(span.to - span.from).unwrap_or(usize::MAX);
        let bytes = &CONTENT[..left.min(1 + random.length(PUSH_BYTES))];
        self.reservation
            .reserve_push(&mut self.in_flight, *place, bytes.len())?;
        self.in_flight.push(*place, bytes);
        span.from += bytes.len() as u64;
        Ok(bytes.len() as u64)
    }
}
