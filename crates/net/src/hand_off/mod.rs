//! Connections that move from one machine to another while they are open, unnoticed by the client:
//! the hand-off of LARD's papers (Pai et al., ASPLOS'98), which took a changed kernel then.
//!
//! * [`repair`]: a connection is taken out of one kernel and given to another (`TCP_REPAIR`, made
//!   for the checkpoints of CRIU).
//! * [`steering`]: packets of the client are led to the machine that has the connection (nftables).
//! * [`moving`]: both together, in the steps that the policy decides.
//!
//! All take `CAP_NET_ADMIN`.

mod mtu;

pub mod moving;
pub mod repair;
pub mod steering;

pub use mtu::mtu_toward;
