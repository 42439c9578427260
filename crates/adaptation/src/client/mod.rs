//! The client: the module kind `icap`.
//!
//! [`kind`] reads its options, [`module`] is the module and its exchanges, [`service`] what all of
//! them know of the service, [`connections`] the connections to it. One message is an
//! [`adaptation`], which both the exchange and its transform poll; [`conversation`] is its request
//! on a connection.

mod adaptation;
pub(crate) mod address;
pub(crate) mod connections;
mod conversation;
mod failure;
mod kind;
mod message;
mod module;
pub(crate) mod served;
pub(crate) mod service;

pub use kind::Icap;
