//! Whether the URL that this node has among the members leads to this process.
//!
//! Two nodes with one name, or a node with the URL of another one, are one member for the others:
//! these ask and purge one of the two, and the other one serves what it has. The configuration of
//! one node does not show that. So a node sends a request to its own URL, and knows it by the nonce
//! when it receives it (`host::own_url_check`). A node that receives such a request of another
//! process says so, too.

use crate::cluster::Nonces;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// What is known of the URL of this node.
#[derive(Default)]
pub(crate) struct OwnUrl {
    nonces: Nonces,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    /// The request under way: its nonce, and whether this process has received it.
    asked: Option<(String, bool)>,
    lead: Lead,
    /// Requests in a row that had no response.
    unanswered: u32,
    /// When a namesake last sent a request, and when the log last had a line about one.
    namesake: Option<(Instant, Instant)>,
}

/// Where the URL leads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Lead {
    /// That was not tried yet.
    #[default]
    Unknown,
    /// To this process.
    Here,
    /// To another process, which has sent a response.
    Elsewhere {
        /// The URL.
        url: String,
    },
    /// To nothing that answers, as far as this node can reach it: the other nodes may reach it in
    /// another way.
    Nowhere {
        /// The URL.
        url: String,
        /// Why there was no response.
        why: String,
    },
}

/// What is wrong, and what to do.
impl fmt::Display for Lead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown => f.write_str("it is not known where the url of this node leads"),
            Self::Here => f.write_str("the url of this node leads to this process"),
            Self::Elsewhere { url } => write!(
                f,
                "{url}, the url of this node, leads to another process: the other nodes ask and purge that one, and not this one; give each node a name and a url of its own"
            ),
            Self::Nowhere { url, why } => write!(
                f,
                "{url}, the url of this node, cannot be reached from here: {why}; the other nodes may not reach this one"
            ),
        }
    }
}

/// Requests in a row without a response, after which the URL leads nowhere: the first one may come
/// before the listener is open.
const UNANSWERED_MAX: u32 = 2;

/// How often at most the log has a line about requests of a namesake, and how long one is known: it
/// asks more often than that.
const NAMESAKE_TIME: Duration = Duration::from_mins(1);

impl OwnUrl {
    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A request is about to be sent to the URL, with the nonce that is returned.
    pub(crate) fn begin(&self) -> String {
        let nonce = self.nonces.next();
        self.known().asked = Some((nonce.clone(), false));
        nonce
    }

    /// A request with `nonce`, proved in the name of this node, was received: whether this process
    /// has sent it.
    pub(crate) fn receive(&self, nonce: &str) -> bool {
        match &mut self.known().asked {
            Some((asked, is_received)) if asked == nonce => {
                *is_received = true;
                true
            }
            _ => false,
        }
    }

    /// The request to `url` has ended, with a response or without one for a reason. Returns where
    /// the URL leads, if that is news to an operator.
    pub(crate) fn end(&self, url: String, response: Result<(), String>) -> Option<Lead> {
        let mut known = self.known();
        let is_received = known.asked.take().is_some_and(|(_, received)| received);
        let lead = match response {
            _ if is_received => Lead::Here,
            Ok(()) => Lead::Elsewhere { url },
            Err(why) => {
                known.unanswered += 1;
                if known.unanswered < UNANSWERED_MAX {
                    return None;
                }
                Lead::Nowhere { url, why }
            }
        };
        known.unanswered = match &lead {
            Lead::Nowhere { .. } => UNANSWERED_MAX,
            _ => 0,
        };
        let is_news = match (&known.lead, &lead) {
            (Lead::Unknown, Lead::Here) => false,
            (before, lead) => before != lead,
        };
        known.lead = lead.clone();
        is_news.then_some(lead)
    }

    /// There is no URL, or another one.
    pub(crate) fn forget(&self) {
        let mut known = self.known();
        known.lead = Lead::Unknown;
        known.unanswered = 0;
    }

    /// Where it leads.
    pub(crate) fn lead(&self) -> Lead {
        self.known().lead.clone()
    }

    /// A namesake has sent a request, at `now`: whether the log is to have a line about it.
    pub(crate) fn note_namesake(&self, now: Instant) -> bool {
        let namesake = &mut self.known().namesake;
        let said = namesake.map(|(_, said)| said);
        let said = said.filter(|said| now.duration_since(*said) < NAMESAKE_TIME);
        *namesake = Some((now, said.unwrap_or(now)));
        said.is_none()
    }

    /// What is for an operator to mend, at `now`.
    pub(crate) fn problem(&self, now: Instant) -> Option<String> {
        let known = self.known();
        if known.lead.is_problem() {
            return Some(known.lead.to_string());
        }
        let (seen, _) = known.namesake?;
        let is_recent = now.duration_since(seen) < NAMESAKE_TIME;
        is_recent.then(|| NAMESAKE_PROBLEM.to_owned())
    }
}

/// What two processes with the name of this node lead to.
pub(crate) const NAMESAKE_PROBLEM: &str = "another process sends requests in the name of this node: purges may reach one of the two alone; give each node a name and a url of its own";

impl Lead {
    /// Whether it is for an operator to mend.
    const fn is_problem(&self) -> bool {
        matches!(self, Self::Elsewhere { .. } | Self::Nowhere { .. })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const URL: &str = "http://127.0.0.1:4001";

    fn ask(own: &OwnUrl, is_received: bool, response: Result<(), &str>) -> Option<Lead> {
        let nonce = own.begin();
        assert!(!own.receive("AAAA") && (!is_received || own.receive(&nonce)));
        own.end(URL.into(), response.map_err(str::to_owned))
    }

    #[test]
    fn url_leads_here_if_the_own_request_was_received_and_elsewhere_if_another_one_answers() {
        let own = OwnUrl::default();
        assert_eq!(ask(&own, true, Ok(())), None);
        assert_eq!(own.lead(), Lead::Here);
        let elsewhere = Lead::Elsewhere { url: URL.into() };
        assert_eq!(ask(&own, false, Ok(())), Some(elsewhere.clone()));
        assert_eq!(ask(&own, false, Ok(())), None, "it is said once");
        assert_eq!(own.lead(), elsewhere);
        // its response was lost, or comes too late
        let here = ask(&own, true, Err("it did not answer in time"));
        assert_eq!(here, Some(Lead::Here));
    }

    #[test]
    fn url_that_nothing_answers_at_twice_leads_nowhere() {
        let own = OwnUrl::default();
        assert_eq!(ask(&own, false, Err("it cannot be reached")), None);
        assert_eq!(own.lead(), Lead::Unknown);
        let nowhere = ask(&own, false, Err("it cannot be reached"));
        assert!(matches!(nowhere, Some(Lead::Nowhere { .. })), "{nowhere:?}");
        assert_eq!(ask(&own, false, Err("it cannot be reached")), None);
        assert!(own.problem(Instant::now()).is_some());
        own.forget();
        assert_eq!(own.problem(Instant::now()), None);
    }

    #[test]
    fn namesake_has_a_line_a_minute_and_is_a_problem_for_as_long() {
        let (own, now) = (OwnUrl::default(), Instant::now());
        let after = |seconds| own.note_namesake(now + Duration::from_secs(seconds));
        assert_eq!(
            [0, 1, 59, 60, 61].map(after),
            [true, false, false, true, false]
        );
        let problem = |seconds| own.problem(now + Duration::from_secs(seconds)).is_some();
        assert_eq!([61, 120, 121].map(problem), [true, true, false]);
    }
}
