//! Compares the counts of clients and origin.
//!
//! A request that reached the origin must be found at the clients: as a response that bears its own
//! mark, or as one without an outcome there (an error, an abort, a connection that closed and was
//! tried again). The rest are requests that the store answered although the origin received them:
//! refreshes in the background (RFC 5861), or two fetches of one target that met. There can be no
//! more of these than responses from the store.

use crate::client::ClientResult;
use crate::origin::{OriginCounts, PhaseCounts};
use crate::tally::PhaseTally;

/// The result of the comparison.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Audit {
    /// One sentence for each count that does not agree.
    pub(super) imbalances: Vec<String>,
    /// Agreeing counts that are worth a sentence.
    pub(super) notes: Vec<String>,
}

/// Compares every phase.
pub(super) fn audit(clients: &ClientResult, origin: &OriginCounts) -> Audit {
    let mut audit = Audit::default();
    let nothing = PhaseCounts::default();
    for (place, tally) in clients.phases.iter().enumerate() {
        audit.phase(tally, origin.phases.get(place).unwrap_or(&nothing));
    }
    let beyond = origin.phases.iter().skip(clients.phases.len());
    let beyond: u64 = beyond.map(|phase| phase.distinct).sum();
    if beyond > 0 {
        audit.imbalances.push(format!(
            "Client and origin counts do not agree: the origin counted {beyond} marks of phases that the clients know nothing of."
        ));
    }
    audit
}

impl Audit {
    fn phase(&mut self, tally: &PhaseTally, origin: &PhaseCounts) {
        let (name, counts) = (&tally.name, &tally.counts);
        if !counts.is_balanced() {
            self.imbalances.push(format!(
                "The counts do not agree in {name}: clients began {} requests and ended {}.",
                counts.client.requests,
                counts.ended()
            ));
        }
        let client = &counts.client;
        let not_modified_forwarded = client.not_modified_forwarded.unwrap_or_default();
        let own = client.forwarded + client.validated + not_modified_forwarded;
        let Some(unseen) = origin.distinct.checked_sub(own) else {
            self.imbalances.push(format!(
                "Client and origin counts do not agree in {name}: {own} responses bear the mark of their own request, and {} requests reached the \
                 origin.",
                origin.distinct
            ));
            return;
        };
        // requests that the origin may have seen and that brought no response
        let unfinished = client.error_count() + client.aborted + counts.repeated;
        let background = unseen.saturating_sub(unfinished);
        let from_store = client.hits + (client.not_modified - not_modified_forwarded);
        if background > from_store {
            self.imbalances.push(format!(
                "Client and origin counts do not agree in {name}: of {} requests that reached the origin {own} came back as responses; {unfinished} may \
                 be errors, aborts or repetitions, {from_store} refreshes in the background, and {} are nowhere.",
                origin.distinct,
                background - from_store
            ));
        } else if background > 0 {
            self.notes.push(format!(
                "In {name} the origin was asked {background} times for responses that came from the store: refreshes in the background, or \
                 fetches of one target at the same time."
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tally::{ErrorKind, Outcome, RequestCounts};

    fn check(counts: &RequestCounts, distinct: u64, imbalance: Option<&str>, note: Option<&str>) {
        let mut tally = PhaseTally::new("phase-1", true);
        tally.counts = counts.clone();
        let clients = ClientResult {
            phases: vec![tally],
            ..ClientResult::default()
        };
        let origin = OriginCounts {
            phases: vec![PhaseCounts {
                distinct,
                ..PhaseCounts::default()
            }],
            ..OriginCounts::default()
        };
        let audit = audit(&clients, &origin);
        let holds = |sentences: &[String], part: Option<&str>| match part {
            None => sentences.is_empty(),
            Some(part) => sentences.len() == 1 && sentences[0].contains(part),
        };
        assert!(holds(&audit.imbalances, imbalance), "{distinct}: {audit:?}");
        assert!(holds(&audit.notes, note), "{distinct}: {audit:?}");
    }

    /// Two hits, three forwarded, one validated, 304 of each kind, one error, one abort.
    fn counts() -> RequestCounts {
        let mut counts = RequestCounts::default();
        let mut enter = |outcome, times| {
            for _ in 0..times {
                counts.client.requests += 1;
                counts.enter(outcome, 1);
            }
        };
        enter(Outcome::Hit, 2);
        enter(Outcome::Forwarded, 3);
        enter(Outcome::Validated, 1);
        enter(Outcome::NotModified { by_origin: true }, 1);
        enter(Outcome::NotModified { by_origin: false }, 1);
        enter(Outcome::Error(ErrorKind::Reset), 1);
        enter(Outcome::Aborted, 1);
        counts
    }

    #[test]
    fn origin_requests_balance_with_client_outcomes_or_are_reported() {
        let counts = counts();
        check(&counts, 4, Some("5 responses bear"), None);
        check(&counts, 5, None, None);
        check(&counts, 7, None, None);
        check(&counts, 8, None, Some("asked 1 times"));
        check(&counts, 10, None, Some("asked 3 times"));
        check(&counts, 11, Some("1 are nowhere"), None);
    }

    #[test]
    fn request_without_an_outcome_is_reported_as_imbalance() {
        let mut counts = counts();
        counts.client.requests += 1;
        check(&counts, 5, Some("began 11 requests and ended 10"), None);
    }

    #[test]
    fn request_retried_on_a_fresh_connection_is_no_imbalance() {
        let mut counts = counts();
        counts.repeated = 4;
        check(&counts, 11, None, None);
    }
}
