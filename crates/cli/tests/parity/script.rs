//! What the simulator makes of a trace: happenings in order, verdicts, and what there is at the
//! end.

use crate::difference::Difference;
use crate::trace::Trace;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use weir_policy::Verdict;
use weir_sim::journal::{Happening, What};
use weir_sim::{Outcome, Simulator};

/// A simulated run.
pub(crate) struct Script {
    pub(crate) happenings: Vec<Happening>,
    pub(crate) outcome: Outcome,
}

impl Script {
    /// Simulates a trace.
    pub(crate) fn of(trace: &Trace) -> Result<Self, Difference> {
        let run = catch_unwind(AssertUnwindSafe(|| Self::run(trace)));
        run.map_err(|panic| {
            let message = panic
                .downcast_ref::<String>()
                .cloned()
                .or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
            let message = message.unwrap_or_default();
            Difference::new(None, format!("the simulator panics: {message}"))
        })
    }

    fn run(trace: &Trace) -> Self {
        let mut simulator =
            Simulator::new(trace.conditions.settings()).expect("settings that can be run");
        simulator.record_journal();
        for row in &trace.rows {
            simulator.push(row);
        }
        simulator.settle_all();
        let happenings = without_what_is_overtaken(&simulator.take_journal());
        Self {
            happenings,
            outcome: simulator.finish(),
        }
    }

    /// Every request's verdict, in the order in which they came to their end, and when.
    pub(crate) fn verdicts(&self) -> impl Iterator<Item = (u64, u64, Verdict)> + '_ {
        self.happenings.iter().filter_map(|it| match it.what {
            What::Done { row, verdict, .. } => Some((it.at_ms, row, verdict)),
            _ => None,
        })
    }

    /// How much content comes together with the head at `place`.
    pub(crate) fn content_with_head(&self, place: usize) -> Option<u64> {
        let head = self.happenings[place];
        let What::Head { transfer, .. } = head.what else {
            return None;
        };
        let is_elsewhere = |what: What| {
            matches!(
                what,
                What::Request { .. } | What::Head { .. } | What::Broken { .. } | What::Left { .. }
            )
        };
        let mut with = self.happenings[place + 1..]
            .iter()
            .take_while(|next| next.at_ms == head.at_ms && !is_elsewhere(next.what));
        with.find_map(|next| match next.what {
            What::Content {
                transfer: other,
                bytes,
                ..
            } if other == transfer => Some(bytes),
            _ => None,
        })
    }
}

/// Content comes packet by packet: where nothing else happens in between, all of it is sent at
/// once, and then looked for.
fn without_what_is_overtaken(happenings: &[Happening]) -> Vec<Happening> {
    let mut kept = Vec::with_capacity(happenings.len());
    let (mut sent, mut given) = (BTreeMap::new(), BTreeMap::new());
    for happening in happenings {
        match happening.what {
            What::Content { transfer, .. } => {
                sent.insert(transfer, *happening);
            }
            What::Given { row, .. } => {
                given.insert(row, *happening);
            }
            _ => {
                kept.extend(std::mem::take(&mut sent).into_values());
                kept.extend(std::mem::take(&mut given).into_values());
                kept.push(*happening);
            }
        }
    }
    kept.extend(sent.into_values().chain(given.into_values()));
    kept
}
