//! A response that arrives: from its first byte on, or at several places out of order, perhaps
//! never whole.

use crate::comparison::RULES;
use crate::reference::{Fields, RuleNumber};
use crate::support::{NOW, Random, content, digest, numbers, true_part};
use std::sync::Arc;
use weir_policy::Digest;
use weir_policy::catalog::Refusal;
use weir_policy::fetch::{ByteSpan, ByteSpans};
use weir_store::{
    InFlightContent, MemoryStore, Reservation, StoredResponse, VaryRule, WritePositionId,
};

pub(crate) struct Transfer {
    reservation: Reservation,
    /// Its target was forgotten since it began.
    pub(crate) outdated: bool,
    pub(crate) key: u64,
    pub(crate) id: u64,
    pub(crate) vary: Option<(RuleNumber, Fields)>,
    seed: u64,
    length: u64,
    in_flight: InFlightContent,
    /// Where the next bytes of each fetch belong, and where it ends.
    fronts: Vec<(WritePositionId, ByteSpan)>,
    /// What should be present.
    present: ByteSpans,
}

/// What came.
pub(crate) enum Arrived {
    /// More will.
    More,
    /// All that will.
    All,
}

impl Transfer {
    pub(crate) fn new(
        store: &Arc<MemoryStore>,
        random: &mut Random,
        (key, id): (u64, u64),
    ) -> Result<Self, Refusal> {
        let length = match random.below(20) {
            0 => random.below(300_000),
            1 => 65_519 + random.below(3),
            2 => 0,
            _ => random.below(4000),
        };
        let spans = spans(random, length);
        let is_known = !random.one_in(3);
        let in_flight = InFlightContent::new(is_known.then_some(length), None);
        Self::begin(store, random, (key, id), (id, length), in_flight, &spans)
    }

    /// What is missing of `former`, or some of it.
    pub(crate) fn resumed(
        store: &Arc<MemoryStore>,
        random: &mut Random,
        (key, id): (u64, u64),
        former: &StoredResponse,
    ) -> Result<Self, Refusal> {
        let [_, seed, length] = numbers(former);
        let in_flight = InFlightContent::new(former.complete_length(), Some(&former.body));
        let (mut present, mut spans) = (in_flight.present(), Vec::new());
        let all = ByteSpan {
            from: 0,
            to: length,
        };
        while let Some(gap) = present.first_missing(all) {
            present.insert(gap);
            if !random.one_in(5) {
                spans.push(gap);
            }
        }
        Self::begin(store, random, (key, id), (seed, length), in_flight, &spans)
    }

    fn begin(
        store: &Arc<MemoryStore>,
        random: &mut Random,
        (key, id): (u64, u64),
        (seed, length): (u64, u64),
        mut in_flight: InFlightContent,
        spans: &[ByteSpan],
    ) -> Result<Self, Refusal> {
        let wanted = spans.iter().map(|span| span.to - span.from).sum();
        let known = in_flight.complete_length().map(|_| wanted);
        let mut reservation = store.expect(digest(key)).begin(20, known)?;
        reservation.reserve_held(in_flight.held_bytes())?;
        let fields = std::array::from_fn(|_| random.below(4));
        let present = in_flight.present();
        let mut open = |span: &ByteSpan| {
            let to = if random.one_in(3) { u64::MAX } else { span.to };
            let from = span.from;
            (in_flight.open(ByteSpan { from, to }), *span)
        };
        let fronts = spans.iter().map(&mut open).collect();
        Ok(Self {
            reservation,
            outdated: false,
            key,
            id,
            vary: (!random.one_in(4)).then(|| (random.length(RULES.len()), fields)),
            seed,
            length,
            in_flight,
            fronts,
            present,
        })
    }

    /// The next bytes of one of its fetches, or the end of one.
    pub(crate) fn push(&mut self, random: &mut Random) -> Result<Arrived, Refusal> {
        if self.fronts.is_empty() || random.one_in(50) {
            return Ok(Arrived::All);
        }
        let index = random.length(self.fronts.len());
        let (place, span) = &mut self.fronts[index];
        let end = (span.from + 1 + random.below(60_000)).min(span.to);
        let bytes = content(self.seed, span.from..end);
        self.reservation
            .reserve_push(&mut self.in_flight, *place, bytes.len())?;
        let foreseen = self.in_flight.held_after(*place, bytes.len());
        let taken = self.in_flight.push(*place, bytes);
        assert_eq!(
            self.in_flight.held_bytes(),
            foreseen,
            "held is not as foreseen"
        );
        let pushed = ByteSpan {
            from: span.from,
            to: end,
        };
        assert_eq!(taken, self.present.insert(pushed), "of {pushed:?}");
        span.from = end;
        if span.from == span.to {
            let (place, _) = self.fronts.swap_remove(index);
            self.in_flight.close(place);
        }
        self.check(random);
        Ok(Arrived::More)
    }

    fn check(&self, random: &mut Random) {
        assert_eq!(self.in_flight.present(), self.present);
        assert_eq!(self.in_flight.present_bytes(), self.present.total());
        let at = random.below(self.length + 1);
        let read = self.in_flight.read(at);
        let one = ByteSpan {
            from: at,
            to: at + 1,
        };
        assert_eq!(read.is_some(), self.present.contains(one), "at {at}");
        if let Some(slice) = read {
            let end = at + slice.bytes().len() as u64;
            assert!(slice.bytes() == content(self.seed, at..end), "from {at}");
        }
    }

    /// Commits what has come; says what that is.
    pub(crate) fn commit(
        mut self,
        vary: Option<(VaryRule, Digest)>,
    ) -> (Result<(), Refusal>, ByteSpans) {
        assert_eq!(self.reservation.is_outdated(), self.outdated);
        if self.present.total() == self.length {
            self.in_flight.set_complete_length(self.length);
        }
        let body = self.in_flight.finish();
        let is_whole = self.in_flight.is_whole();
        assert_eq!(
            (body.is_whole(), is_whole),
            (is_whole, self.present.total() == self.length)
        );
        let response = true_part(self.id, self.seed, self.length, body);
        let committed = self.reservation.commit(NOW, vary, response);
        // those who read it lose nothing, whatever became of it
        assert_eq!(self.in_flight.present(), self.present);
        (committed, self.present)
    }
}

/// All of a content, or spans of it: out of order, some overlapping, some missing.
fn spans(random: &mut Random, length: u64) -> Vec<ByteSpan> {
    if length == 0 {
        return Vec::new();
    }
    if length < 4 || random.one_in(2) {
        return vec![ByteSpan {
            from: 0,
            to: length,
        }];
    }
    let mut cuts: Vec<u64> = (0..random.below(4)).map(|_| random.below(length)).collect();
    cuts.extend([0, length]);
    cuts.sort_unstable();
    cuts.dedup();
    let mut spans: Vec<ByteSpan> = cuts
        .windows(2)
        .map(|cut| ByteSpan {
            from: cut[0],
            to: cut[1],
        })
        .filter(|_| !random.one_in(8))
        .collect();
    for index in (1..spans.len()).rev() {
        spans.swap(index, random.length(index + 1));
    }
    for span in &mut spans {
        if random.one_in(4) {
            span.to = (span.to + random.below(length)).min(length);
        }
    }
    spans
}
