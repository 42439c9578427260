//! Modules on threads of their own (`module[].run = "threads"`): one that may block does not delay
//! the requests of a worker.
//!
//! A module has a [`pool`] of a few threads. An exchange and its transforms are made on one of them
//! and stay there; [`call`] is the worker's side of an exchange, [`content`] that of a transform,
//! and [`service`] is what a thread does for them. Heads and pieces go there and back as
//! [`message`]s, through queues that hold one for each side. The worker's side defers, so that its
//! deadline is real: a call that takes too long is given up. [`host`] sends what a module wants of
//! the proxy back to the worker that the request came from.

pub(crate) mod call;
mod content;
mod host;
mod message;
pub(crate) mod pool;
mod service;

#[cfg(test)]
mod tests;
