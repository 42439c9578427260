//! The wait for a module that has deferred.

use super::CallEnd;
use super::begun_exchange::BegunExchange;
use crate::modules::content_source::ContentSource;
use crate::modules::module_content::{Feed, ModuleContent};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::{Context, Poll};
use std::time::Duration;
use weir_net::Deadline;
use weir_policy::extension::ModuleFailure;

/// The wait for a module that has deferred.
pub(super) struct Deferral<'a> {
    pub(super) exchange: &'a mut BegunExchange,
    /// What it is handed meanwhile.
    pub(super) content: Option<&'a mut ModuleContent>,
    pub(super) wait: &'a mut Deadline,
    pub(super) limit: Duration,
}

impl Deferral<'_> {
    /// Ready when the module is. While content is awaited, its source has a limit, and the module
    /// is not to blame: that does not count as its wait.
    pub(super) fn poll(
        &mut self,
        cx: &mut Context<'_>,
        source: &mut Option<&mut dyn ContentSource>,
    ) -> Poll<Result<(), CallEnd>> {
        loop {
            if self.poll_exchange(cx)?.is_ready() {
                return Poll::Ready(Ok(()));
            }
            let fed = match (&mut self.content, &mut *source) {
                (Some(content), Some(source)) => content.poll_feed(cx, &mut **source),
                _ => Ok(Feed::Modules),
            };
            match fed.map_err(CallEnd::from)? {
                Feed::Moved => self.wait.set(self.limit),
                Feed::Source => {
                    self.wait.set(self.limit);
                    break;
                }
                Feed::Modules => break,
            }
        }
        // what it was handed may be what it waited for
        if self.poll_exchange(cx)?.is_ready() {
            return Poll::Ready(Ok(()));
        }
        let passed = self.wait.poll_passed(cx);
        passed.map(|()| Err(ModuleFailure::Deadline.into()))
    }

    fn poll_exchange(&mut self, cx: &mut Context<'_>) -> Result<Poll<()>, CallEnd> {
        let exchange = match &mut self.exchange {
            BegunExchange::Here(exchange) => exchange,
            BegunExchange::Threaded(exchange) => {
                let answered = exchange.poll_answered(cx);
                return match answered {
                    Poll::Pending => Ok(Poll::Pending),
                    Poll::Ready(answered) => Ok(Poll::Ready(answered?)),
                };
            }
        };
        let polled = catch_unwind(AssertUnwindSafe(|| exchange.poll_deferred(cx)));
        polled.map_err(|_| ModuleFailure::Crashed.into())
    }
}
