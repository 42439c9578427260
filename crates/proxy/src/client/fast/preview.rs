//! A request of which nothing comes: it is judged, and the rules for it are found, as when it is
//! received. No counter, policy or module notes it.

use super::Receiver;
use super::with_rules::{ChangedHead, rules_for};
use crate::exchange::state::{Plan, RequestState};
use crate::log::request_log::RequestLog;
use crate::request::answer::Answer;
use crate::request::facts::Request;
use crate::request::judge::ReceivedRequest;
use crate::request::who_asked::without_claims;
use weir_policy::Transaction;
use weir_policy::rule::{Bits, Values};
use weir_semantics::HostName;
use weir_wire::RequestHead;

/// A request that is answered by the proxy before anything is looked up.
pub(crate) struct RefusedPreview {
    /// The answer.
    pub(crate) answer: Answer,
    /// The rules of the operator that are for it.
    pub(crate) rules: Bits,
}

impl Receiver<'_> {
    /// The state of a request with this head, up to where a response is chosen for it; the
    /// directives that rules have ignored are still there.
    ///
    /// # Errors
    ///
    /// The answer that a client would get.
    pub(crate) fn preview(
        &self,
        head: &RequestHead<'_, '_>,
    ) -> Result<Box<RequestState>, Box<RefusedPreview>> {
        if let Some(lines) = without_claims(self.settings, &self.client, head.fields) {
            let head = RequestHead {
                fields: &lines,
                ..*head
            };
            return self.preview_believed(&head);
        }
        self.preview_believed(head)
    }

    /// The same of a head that was left without what its client must not say.
    fn preview_believed(
        &self,
        head: &RequestHead<'_, '_>,
    ) -> Result<Box<RequestState>, Box<RefusedPreview>> {
        let refused = |answer, rules| Box::new(RefusedPreview { answer, rules });
        let mut host = HostName::EMPTY;
        let request = self.judge(head, &mut host);
        let mut request = request.map_err(|answer| refused(answer, Bits::NONE))?;
        let rules = rules_for(self, &mut request);
        let outcome = self.settings.operator_rules.outcome(rules);
        if let Some(text) = outcome.deny {
            return Err(refused(Answer::denied_by_rule(text, false), rules));
        }
        let target = &request.target;
        let client = self.client.peer.ip();
        let values = Values::new(Some(client), target.host.as_str(), target.path_and_query);
        let changed = ChangedHead::of(&outcome, head, &request, &values);
        let changed = changed.map_err(|error| refused(Answer::unchanged_by_rule(error), rules))?;
        let Some(changed) = changed else {
            return Ok(self.previewed(&request, head, (rules, false)));
        };
        let lines = changed.lines();
        let head = changed.head(head, &lines);
        let mut host = HostName::EMPTY;
        let request = self.judge(&head, &mut host);
        let request = request.map_err(|answer| refused(answer, rules))?;
        Ok(self.previewed(&request, &head, (rules, changed.is_rekeyed())))
    }

    fn previewed(
        &self,
        request: &ReceivedRequest<'_>,
        head: &RequestHead<'_, '_>,
        (rules, is_rekeyed): (Bits, bool),
    ) -> Box<RequestState> {
        let key = request.key(self.worker.shared.store.secret());
        let tx = Transaction::new(request.facts, self.worker.now());
        let request = Request::new(request, head);
        let mut exchange = self.exchange(request, (tx, Plan::Judge, key), RequestLog::unread());
        exchange.operator_rules = rules;
        exchange.is_rekeyed = is_rekeyed;
        exchange
    }
}
