//! The worker's side of an exchange on a thread.

use super::content::ThreadContent;
use super::message::{Message, Reply, SentHead, TransformKind};
use super::pool::{Place, ThreadPool};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::sync::oneshot;
use tokio::time::{Instant, Sleep};
use weir_extend::{Answer, Call, Hook, Host, RequestHead, ResponseHead};
use weir_policy::extension::ModuleFailure;

/// An exchange on a thread. At a hook it defers, until the thread has answered.
pub(crate) struct ThreadExchange {
    pool: Arc<ThreadPool>,
    place: Place,
    state: State,
}

enum State {
    /// No call is under way.
    Idle,
    /// The thread has the call; the time at which it is looked at whether it is stuck.
    Called(oneshot::Receiver<Reply>, Pin<Box<Sleep>>),
    /// It has answered.
    Answered(Box<Reply>),
}

impl ThreadExchange {
    /// Begins one.
    ///
    /// # Errors
    ///
    /// No thread takes it.
    pub(crate) fn begin(
        pool: &Arc<ThreadPool>,
        host: &Rc<dyn Host>,
    ) -> Result<Self, ModuleFailure> {
        Ok(Self {
            place: pool.begin(host)?,
            pool: Arc::clone(pool),
            state: State::Idle,
        })
    }

    /// Calls it at a hook with a request head.
    ///
    /// # Errors
    ///
    /// The call has failed.
    pub(crate) fn call_request(
        &mut self,
        hook: Hook,
        head: &mut RequestHead<'_>,
        at: &Call,
    ) -> Result<Answer, ModuleFailure> {
        let Some(reply) = self.answered() else {
            return self.send(hook, SentHead::of_request(head), at);
        };
        let answer = reply.answer?;
        if let SentHead::Request {
            authority,
            path_and_query,
            target_is_changed,
            fields,
            ..
        } = reply.head
        {
            let is_set = |result: Result<(), _>| result.map_err(|_| ModuleFailure::BadAnswer);
            if target_is_changed {
                is_set(head.set_authority(&authority))?;
                is_set(head.set_path_and_query(&path_and_query))?;
            }
            if let Some(tag) = reply.variant {
                let is_set = head.set_variant(&tag);
                is_set.map_err(|_| ModuleFailure::BadAnswer)?;
            }
            if let Some((_, pieces)) = reply.transform {
                let content = ThreadContent::new(&self.pool, &self.place.busy, pieces);
                // on its thread it was checked whether the content may be changed
                head.inspect(Box::new(content));
            }
            *head.fields = fields;
        }
        Ok(answer)
    }

    /// Calls it at a hook with a response head.
    ///
    /// # Errors
    ///
    /// The call has failed.
    pub(crate) fn call_response(
        &mut self,
        hook: Hook,
        head: &mut ResponseHead<'_>,
        at: &Call,
    ) -> Result<Answer, ModuleFailure> {
        let Some(reply) = self.answered() else {
            return self.send(hook, SentHead::of_response(head), at);
        };
        let answer = reply.answer?;
        if let SentHead::Response {
            status,
            status_is_changed,
            fields,
            ..
        } = reply.head
        {
            if let Some((kind, pieces)) = reply.transform {
                let content = Box::new(ThreadContent::new(&self.pool, &self.place.busy, pieces));
                let is_set = match kind {
                    TransformKind::Inspect => {
                        head.inspect(content);
                        Ok(())
                    }
                    TransformKind::Change => head.transform(content),
                    TransformKind::ChangePlain => head.transform_plain(content),
                };
                is_set.map_err(|_| ModuleFailure::BadAnswer)?;
            }
            if status_is_changed {
                let is_set = head.set_status(status);
                is_set.map_err(|_| ModuleFailure::BadAnswer)?;
            }
            *head.fields = fields;
        }
        Ok(answer)
    }

    /// Tells it that the exchange is over. Nothing waits for that.
    pub(crate) fn done(&mut self, at: &Call) {
        // a thread that is stuck does not get it
        let _ = self.place.messages.try_send(Message::Done(*at));
    }

    /// What the next call adds to the calls of the module: its thread called it more than once if
    /// it had deferred.
    pub(crate) fn calls(&self) -> u64 {
        match &self.state {
            State::Answered(reply) => reply.calls,
            State::Idle | State::Called(..) => 1,
        }
    }

    fn answered(&mut self) -> Option<Box<Reply>> {
        match std::mem::replace(&mut self.state, State::Idle) {
            State::Answered(reply) => Some(reply),
            State::Idle | State::Called(..) => None,
        }
    }

    fn send(&mut self, hook: Hook, head: SentHead, at: &Call) -> Result<Answer, ModuleFailure> {
        let (reply, answer) = oneshot::channel();
        let message = Message::Call(hook, head, *at, reply);
        let sent = self.place.messages.try_send(message);
        sent.map_err(|_| ModuleFailure::Unavailable)?;
        let look = tokio::time::sleep(self.pool.deadline());
        self.state = State::Called(answer, Box::pin(look));
        Ok(Answer::Defer)
    }

    /// Ready when the thread has answered.
    ///
    /// # Errors
    ///
    /// It is stuck in a call for longer than one may take, or has ended.
    pub(crate) fn poll_answered(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), ModuleFailure>> {
        let State::Called(answer, look) = &mut self.state else {
            return Poll::Ready(Ok(()));
        };
        if let Poll::Ready(reply) = Pin::new(answer).poll(cx) {
            self.state = State::Idle;
            return Poll::Ready(match reply {
                Ok(reply) => {
                    self.state = State::Answered(Box::new(reply));
                    Ok(())
                }
                Err(_) => Err(ModuleFailure::Crashed),
            });
        }
        let deadline = self.pool.deadline();
        while look.as_mut().poll(cx).is_ready() {
            let time = self.place.busy.time().unwrap_or_default();
            if time >= deadline {
                return Poll::Ready(Err(ModuleFailure::Deadline));
            }
            look.as_mut().reset(Instant::now() + (deadline - time));
        }
        Poll::Pending
    }
}

impl Drop for ThreadExchange {
    fn drop(&mut self) {
        if matches!(self.state, State::Called(..)) {
            self.pool.suspect(&self.place.busy);
        }
    }
}
