//! What no cache can do better: the optimum for responses of one size, and a bound where sizes
//! vary.
//!
//! Both know the future. With one size for all, L. A. Belady's MIN (IBM Systems Journal 5(2), 1966)
//! is optimal, and exact here. With sizes that vary the optimum is NP-hard; the bound PFOO-L of D.
//! S. Berger, N. Beckmann, M. Harchol-Balter, "Practical bounds on optimal caching with variable
//! object sizes" (Proc. ACM Meas. Anal. Comput. Syst. 2(2), 2018) is a hit ratio that is not below
//! it.

mod flow;
mod optimum;

#[cfg(test)]
mod tests;

pub use flow::FlowBound;
pub use optimum::{Optimum, REQUESTS_MAX, TooManyRequests};
