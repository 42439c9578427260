//! One ICAP request and its answer on a connection.

use super::connections::Lease;
use super::failure::Failure;
use std::ops::ControlFlow;
use std::task::{Context, Poll};
use weir_icap::{ClientEvent, Transaction};

/// One request and its answer.
#[derive(Debug)]
pub(crate) struct Conversation {
    lease: Lease,
    /// What is said.
    pub(crate) transaction: Transaction,
    /// Received and not read yet: at most what is received at once.
    input: Vec<u8>,
    /// A byte of the answer has come.
    is_answered: bool,
    /// The server takes nothing more.
    is_deaf: bool,
    is_over: bool,
}

impl Conversation {
    /// What `transaction` says, on a connection.
    pub(crate) const fn new(lease: Lease, transaction: Transaction) -> Self {
        Self {
            lease,
            transaction,
            input: Vec::new(),
            is_answered: false,
            is_deaf: false,
            is_over: false,
        }
    }

    /// Whether the connection was idle before, and the server closed it before a byte of its
    /// answer: it may not have seen the request.
    pub(crate) const fn may_repeat(&self) -> bool {
        self.lease.was_idle() && !self.is_answered
    }

    /// Whether the answer is over.
    pub(crate) const fn is_over(&self) -> bool {
        self.is_over
    }

    /// The connection may be used for another message.
    pub(crate) fn end(self) {
        if self.is_over && self.transaction.is_reusable() && self.input.is_empty() {
            self.lease.check_in();
        }
    }

    /// Sends what there is to send, and receives until `take`, which is given each event, breaks
    /// off or the answer is over. Pending if the server has to do something first.
    pub(crate) fn poll(
        &mut self,
        cx: &mut Context<'_>,
        mut take: impl FnMut(ClientEvent<'_>) -> ControlFlow<()>,
    ) -> Poll<Result<(), Failure>> {
        loop {
            self.send(cx);
            if self.is_over {
                return Poll::Ready(Ok(()));
            }
            let step = self.transaction.receive(&self.input);
            let step = step.map_err(Failure::Answer)?;
            let consumed = step.consumed;
            let flow = match step.event {
                ClientEvent::NeedMore => None,
                ClientEvent::End => {
                    self.is_over = true;
                    Some(ControlFlow::Continue(()))
                }
                event => Some(take(event)),
            };
            self.input.drain(..consumed);
            match flow {
                Some(ControlFlow::Break(())) => return Poll::Ready(Ok(())),
                Some(ControlFlow::Continue(())) => continue,
                None => {}
            }
            match self.receive(cx) {
                Poll::Ready(received) => received?,
                Poll::Pending => return Poll::Pending,
            }
        }
    }

    /// Sends what it can now.
    fn send(&mut self, cx: &mut Context<'_>) {
        while !self.is_deaf && !self.transaction.unsent().is_empty() {
            let unsent = self.transaction.unsent();
            match self.lease.socket().poll_write(cx, unsent) {
                Poll::Pending => return,
                Poll::Ready(Ok(sent)) => self.transaction.sent(sent),
                // what it has answered before may still be read
                Poll::Ready(Err(_)) => self.is_deaf = true,
            }
        }
    }

    fn receive(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Failure>> {
        match self.lease.socket().poll_receive(cx, &mut self.input) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Ok(1..)) => {
                self.is_answered = true;
                Poll::Ready(Ok(()))
            }
            Poll::Ready(Ok(0) | Err(_)) => match self.transaction.at_eof() {
                Ok(()) => Poll::Ready(Ok(())),
                Err(weir_icap::ClientError::Incomplete) => Poll::Ready(Err(Failure::Closed)),
                Err(error) => Poll::Ready(Err(Failure::Answer(error))),
            },
        }
    }
}
