//! The costs by name, as flags set them.

use super::micros::Micros;
use super::setting::BackEndsSetting;

weir_policy::choice! {
    /// A cost that can be set.
    #[derive(PartialOrd, Ord)]
    pub enum CostName {
        /// A connection at its node: set-up.
        SetUp = "set-up",
        /// A connection at its node: tear-down.
        TearDown = "tear-down",
        /// A request.
        Request = "request",
        /// Each 512 bytes begun that are sent.
        Send = "send-512",
        /// A connection that is handed over again.
        HandOff = "hand-off",
        /// A forwarded request, for the node that handles the connection.
        Forward = "forward",
        /// Each 512 bytes begun of its response.
        ForwardUnit = "forward-512",
        /// A request, for a relaying front end.
        Relay = "relay",
        /// Each 512 bytes begun of its response.
        RelayUnit = "relay-512",
        /// A read: the first bytes.
        DiskFirst = "disk-first",
        /// A read: each 4 KB begun.
        DiskBlock = "disk-4k",
        /// A read: each 44 KB begun beyond the first.
        DiskRun = "disk-44k",
    }
}

impl CostName {
    /// Sets it.
    pub const fn set(self, setting: &mut BackEndsSetting, cost: Micros) {
        let place = match self {
            Self::SetUp => &mut setting.server.set_up_us,
            Self::TearDown => &mut setting.server.tear_down_us,
            Self::Request => &mut setting.server.request_us,
            Self::Send => &mut setting.server.send_512_us,
            Self::HandOff => &mut setting.costs.hand_off_us,
            Self::Forward => &mut setting.costs.forward_us,
            Self::ForwardUnit => &mut setting.costs.forward_512_us,
            Self::Relay => &mut setting.costs.relay_us,
            Self::RelayUnit => &mut setting.costs.relay_512_us,
            Self::DiskFirst => &mut setting.disk.first_us,
            Self::DiskBlock => &mut setting.disk.per_4k_us,
            Self::DiskRun => &mut setting.disk.further_44k_us,
        };
        *place = cost;
    }
}

#[cfg(test)]
mod tests {
    use super::super::mechanism_costs::MechanismCosts;
    use super::super::server_costs::ServerCosts;
    use super::*;
    use std::num::NonZero;

    #[test]
    fn every_cost_is_set_by_its_own_name() {
        let server = ServerCosts::APACHE;
        let costs = MechanismCosts::at_crossover(&server, 0.5).unwrap();
        let before = BackEndsSetting::of(NonZero::<u16>::MIN, server, costs);
        let mut all = before;
        for (us, name) in (1..).zip(CostName::ALL) {
            let mut one = before;
            let cost = Micros::of_us(f64::from(us)).unwrap();
            name.set(&mut one, cost);
            assert_ne!(one, before, "{name}");
            assert_ne!(one, all, "{name} sets what another one has set");
            name.set(&mut all, cost);
        }
        assert_eq!(all.disk.further_44k_us, Micros::of_us(12.0).unwrap());
        assert_eq!(all.server.set_up_us, Micros::of_us(1.0).unwrap());
    }
}
