//! The books of both sides, held against each other.
//!
//! A request that reached the origin must be found at the clients: as a response that bears its own
//! mark, or as one whose end the client did not see (an error, an abort, a connection that closed
//! and was tried again). What remains are requests whose response came from the store although the
//! origin was asked: refreshes in the background (RFC 5861), or two fetches of one target that met.
//! There can be no more of these than responses from the store.

use crate::client::ClientResult;
use crate::origin::{OriginCounts, PhaseCounts};
use crate::tally::PhaseTally;

/// What the comparison says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Audit {
    /// One sentence for each account that does not balance.
    pub(super) imbalances: Vec<String>,
    /// What balances and is worth a sentence.
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
            "The accounts do not balance: the origin counted {beyond} marks of phases that the clients know nothing of."
        ));
    }
    audit
}

impl Audit {
    fn phase(&mut self, tally: &PhaseTally, origin: &PhaseCounts) {
        let (name, accounts) = (&tally.name, &tally.accounts);
        if !accounts.balance() {
            self.imbalances.push(format!(
                "The accounts do not balance in {name}: clients began {} requests and ended {}.",
                accounts.requests,
                accounts.ended()
            ));
        }
        let own = accounts.forwarded + accounts.validated + accounts.not_modified_forwarded;
        let Some(unseen) = origin.distinct.checked_sub(own) else {
            self.imbalances.push(format!(
                "The accounts do not balance in {name}: {own} responses bear the mark of their own request, and {} requests reached the \
                 origin.",
                origin.distinct
            ));
            return;
        };
        // requests that the origin may have seen and that brought no response
        let unfinished = accounts.errors.sum() + accounts.aborted + accounts.repeated;
        let background = unseen.saturating_sub(unfinished);
        let from_store = accounts.hits + (accounts.not_modified - accounts.not_modified_forwarded);
        if background > from_store {
            self.imbalances.push(format!(
                "The accounts do not balance in {name}: of {} requests that reached the origin {own} came back as responses; {unfinished} may \
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
    use crate::tally::{Accounts, ErrorKind, Outcome};

    fn check(accounts: &Accounts, distinct: u64, imbalance: Option<&str>, note: Option<&str>) {
        let mut tally = PhaseTally::new("phase-1", true);
        tally.accounts = accounts.clone();
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
    fn accounts() -> Accounts {
        let mut accounts = Accounts::default();
        let mut enter = |outcome, times| {
            for _ in 0..times {
                accounts.requests += 1;
                accounts.enter(outcome, 1);
            }
        };
        enter(Outcome::Hit, 2);
        enter(Outcome::Forwarded, 3);
        enter(Outcome::Validated, 1);
        enter(Outcome::NotModified { by_origin: true }, 1);
        enter(Outcome::NotModified { by_origin: false }, 1);
        enter(Outcome::Error(ErrorKind::Reset), 1);
        enter(Outcome::Aborted, 1);
        accounts
    }

    #[test]
    fn origin_requests_balance_with_client_outcomes_or_are_reported() {
        let accounts = accounts();
        check(&accounts, 4, Some("5 responses bear"), None);
        check(&accounts, 5, None, None);
        check(&accounts, 7, None, None);
        check(&accounts, 8, None, Some("asked 1 times"));
        check(&accounts, 10, None, Some("asked 3 times"));
        check(&accounts, 11, Some("1 are nowhere"), None);
    }

    #[test]
    fn request_without_an_outcome_is_reported_as_imbalance() {
        let mut accounts = accounts();
        accounts.requests += 1;
        check(&accounts, 5, Some("began 11 requests and ended 10"), None);
    }

    #[test]
    fn request_retried_on_a_fresh_connection_is_no_imbalance() {
        let mut accounts = accounts();
        accounts.repeated = 4;
        check(&accounts, 11, None, None);
    }
}
