//! What it takes to serve a request of a connection at another node than the one that handles it.

use super::micros::{CostError, Micros};
use super::server_costs::{ServerCosts, units};
use crate::world::Nanos;
use serde::Serialize;

weir_policy::choice! {
    /// How a request reaches the node that is chosen for it (USENIX'99 §5, with the relay of its
    /// §2).
    #[derive(Default, PartialOrd, Ord)]
    pub enum Mechanism {
        /// A connection is handed over once, to the node that its first request is given to.
        HandOff = "hand-off",
        /// A connection is handed over again whenever a request is given to another node.
        MultipleHandOff = "multiple-hand-off",
        /// The node that handles the connection asks the other one and passes its response on.
        #[default]
        Forwarding = "forwarding",
        /// As multiple hand-off, for nothing: the ideal that the others are compared with.
        ZeroCost = "zero-cost",
        /// The front end has the connection and passes requests and responses on.
        Relay = "relay",
    }
}

impl Mechanism {
    /// Whether a node is chosen for each request, and not for a connection.
    #[must_use]
    pub const fn chooses_each_request(self) -> bool {
        !matches!(self, Self::HandOff)
    }
}

/// CPU time of the mechanisms. USENIX'99 has no numbers for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct MechanismCosts {
    /// For the node that a connection is handed over to again.
    pub hand_off_us: Micros,
    /// For the node that handles a connection: a request that another node serves.
    pub forward_us: Micros,
    /// For the same: each 512 bytes begun that it receives from the other one and sends.
    pub forward_512_us: Micros,
    /// For a relaying front end: a request.
    pub relay_us: Micros,
    /// For the same: each 512 bytes begun that it passes on.
    pub relay_512_us: Micros,
}

/// Response sizes for which USENIX'99 (figures 5 and 6) has hand-off and forwarding cost the same:
/// 12 KB with Apache's costs, 6 KB with Flash's.
pub const CROSSOVER_BYTES: [(ServerCosts, u64); 2] = [
    (ServerCosts::APACHE, 12 * 1024),
    (ServerCosts::FLASH, 6 * 1024),
];

impl MechanismCosts {
    /// The part of a send that forwarding 512 bytes takes, unless another one is given: with it,
    /// both mechanisms stay within the 8 % of zero cost that USENIX'99 has (docs/lard.md).
    pub const SCALE: f64 = 0.5;

    /// Costs with the published crossovers, if forwarding 512 bytes takes `scale` of a send.
    ///
    /// Three costs of each server are wanted and two equations known. Two assumptions give the
    /// rest: handing over is in proportion `k` to set-up and tear-down, forwarding a request in
    /// proportion `p` to serving one. Then, at `u` units of the crossover, k (set-up + tear-down) =
    /// p request + u scale send, once for each server. A relay costs the front end what forwarding
    /// costs a node.
    ///
    /// # Errors
    /// A cost of 0 or less, or one that is too large.
    pub fn at_crossover(server: &ServerCosts, scale: f64) -> Result<Self, CostError> {
        let [apache, flash] = CROSSOVER_BYTES.map(|(costs, bytes)| {
            let set_up = costs.set_up_us.us() + costs.tear_down_us.us();
            let forwarded = units(bytes) as f64 * scale * costs.send_512_us.us();
            (set_up, costs.request_us.us(), forwarded)
        });
        // k s - p r = f, twice
        let det = apache.1 * flash.0 - apache.0 * flash.1;
        let k = (apache.1 * flash.2 - flash.1 * apache.2) / det;
        let p = (apache.0 * flash.2 - flash.0 * apache.2) / det;
        let forward_us = server.request_us.scaled(p)?;
        let forward_512_us = server.send_512_us.scaled(scale)?;
        Ok(Self {
            hand_off_us: Micros::of_us(k * (server.set_up_us.us() + server.tear_down_us.us()))?,
            forward_us,
            forward_512_us,
            relay_us: forward_us,
            relay_512_us: forward_512_us,
        })
    }

    /// What it takes to pass on a response of so many bytes that another node sends.
    pub(super) const fn forward(&self, bytes: u64) -> Nanos {
        self.forward_us.nanos() + units(bytes) * self.forward_512_us.nanos()
    }

    /// The same for the front end.
    pub(super) const fn relay(&self, bytes: u64) -> Nanos {
        self.relay_us.nanos() + units(bytes) * self.relay_512_us.nanos()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hand_off_and_forwarding_cost_the_same_at_the_crossover() {
        for scale in [0.25, 0.5, 1.0] {
            for (server, bytes) in CROSSOVER_BYTES {
                let costs = MechanismCosts::at_crossover(&server, scale).unwrap();
                let forwarded = costs.forward(bytes);
                assert!(
                    costs.hand_off_us.nanos().abs_diff(forwarded) <= 30,
                    "{scale}"
                );
            }
        }
        let costs = MechanismCosts::at_crossover(&ServerCosts::APACHE, 1.0).unwrap();
        assert!((costs.hand_off_us.us() - 703.6).abs() < 0.1, "{costs:?}");
        assert!((costs.forward_us.us() - 127.6).abs() < 0.1, "{costs:?}");
        let costs = MechanismCosts::at_crossover(&ServerCosts::FLASH, 0.5).unwrap();
        assert!((costs.hand_off_us.us() - 163.3).abs() < 0.1, "{costs:?}");
        assert!((costs.forward_us.us() - 19.3).abs() < 0.1, "{costs:?}");
    }

    #[test]
    fn scale_of_zero_or_less_is_refused() {
        for scale in [0.0, -0.5, f64::NAN, f64::INFINITY] {
            let costs = MechanismCosts::at_crossover(&ServerCosts::APACHE, scale);
            assert!(costs.is_err(), "{scale}");
        }
    }
}
