//! Leads packets of single connections to other machines, as they arrive and before this machine's
//! TCP sees them; what those machines send goes to the client without passing here.
//!
//! A table of nftables at the ingress of a device has two sets of *flows*, the client's ends of
//! connections to the service: packets of *held* ones are dropped, so that the client sends them
//! again, and those of *steered* ones are forwarded to a machine's address, as they are. The other
//! machine has the address of the service, too, and answers from it. A segment with SYN ends the
//! steering of its flow: the client has ended that connection, and opens another one from the same
//! port. Who knows the port of a client, and can send packets from its address, can so have its
//! connection reset.
//!
//! A held flow is changed only if it was held without a break ([`Steering::steer_held`],
//! [`Steering::steer_on`]), and meanwhile its segments with SYN are dropped, too. So a connection
//! that begins from the port of another one is never led to the machine of that.
//!
//! The table is made by `nft`, once ([`Steering::install`]). Flows are changed by netlink, many in
//! one transaction. IPv4 only.

mod change;
mod netlink;
mod table;
mod worker;

pub use table::{FLOWS_MAX, HELD_FOR, HELD_MAX, STEERED_FOR};
pub use worker::{CHANGES_WAITING_MAX, Steering};
