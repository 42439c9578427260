//! How a request reaches the node that keeps its target.

use crate::config::values::text::choice;

choice! {
    /// The mechanisms of LARD's papers (Aron, Druschel, Zwaenepoel, USENIX 1999, section 3).
    pub enum Mechanism {
        /// The node, or front end, whose client asks fetches from the other one and sends it on.
        Forwarding = "forwarding",
        /// A front end hands the client's connection over to the node, which answers by itself.
        HandOff = "hand-off",
    }
}
