//! What a next hop is chosen for, and where the requests of a client's connection went before.

use crate::route::RouteId;
use crate::route::cluster::NodeKey;
use alloc::vec::Vec;

crate::choice! {
    /// What the policy of a route chooses a next hop for.
    #[derive(Default)]
    pub enum ChoiceFor {
        /// Each request.
        #[default]
        Request = "request",
        /// Each connection of a client: its requests go where the first one went, for as long as
        /// that next hop takes requests.
        Connection = "connection",
    }
}

/// The next hops that the requests of one connection of a client went to last, by their routes.
///
/// A next hop is known by its key, so that a reload which renumbers next hops changes nothing. A
/// reload may renumber routes: then a connection may be taken to have been where another route has
/// sent it, if both have that next hop.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConnectionHops {
    /// The least recently noted route first.
    hops: Vec<(RouteId, NodeKey)>,
}

impl ConnectionHops {
    /// The most routes that are remembered; a connection of a child proxy is for many. Of others,
    /// the least recently used is forgotten.
    pub const ROUTES_MAX: usize = 8;

    /// Where the last request of `route` went.
    pub(super) fn of(&self, route: RouteId) -> Option<NodeKey> {
        let known = self.hops.iter().find(|(known, _)| *known == route);
        known.map(|(_, hop)| *hop)
    }

    /// A request of `route` goes to `hop`.
    pub(super) fn note(&mut self, route: RouteId, hop: NodeKey) {
        self.hops.retain(|(known, _)| *known != route);
        if self.hops.len() == Self::ROUTES_MAX {
            self.hops.remove(0);
        }
        self.hops.push((route, hop));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connections::HopId;
    use crate::now::{Now, Tick};
    use crate::route::policy::PolicyKind;
    use crate::route::{
        AGREED, Balancing, EjectionRules, Outcome, RouteHop, RouteSpec, Routes, Weight, Why,
    };
    use alloc::string::ToString;
    use weir_semantics::Timestamp;

    fn at(ms: u64) -> Now {
        Now {
            wall: Timestamp(0),
            tick: Tick(ms),
        }
    }

    /// One route over these next hops.
    fn route(policy: PolicyKind, choice_for: ChoiceFor, hops: &[u32]) -> Routes {
        let hop = |hop: &u32| RouteHop {
            hop: HopId(*hop),
            key: NodeKey::of(&AGREED, &hop.to_string()),
            weight: Weight::ONE,
        };
        let spec = RouteSpec {
            host: None,
            path_prefix: "/".to_string(),
            hops: hops.iter().map(hop).collect(),
            balancing: Balancing {
                policy,
                ..Balancing::default()
            },
            choice_for,
        };
        Routes::new(vec![spec], EjectionRules::default(), 1).unwrap()
    }

    /// The next hop of a request for `path`, and why.
    fn choose(
        routes: &mut Routes,
        ms: u64,
        path: &str,
        connection: &mut ConnectionHops,
    ) -> (u32, Why) {
        let choice = routes
            .choose_for(at(ms), &|| "a", path, connection)
            .unwrap();
        (choice.hop.0, choice.why)
    }

    #[test]
    fn requests_of_a_connection_go_where_its_first_one_went() {
        let mut routes = route(PolicyKind::InTurn, ChoiceFor::Connection, &[1, 2, 3]);
        let [mut one, mut other] = [ConnectionHops::default(), ConnectionHops::default()];
        assert_eq!(choose(&mut routes, 0, "/a", &mut one), (1, Why::InTurn));
        assert_eq!(choose(&mut routes, 0, "/a", &mut other), (2, Why::InTurn));
        for path in ["/a", "/b", "/c"] {
            assert_eq!(choose(&mut routes, 1, path, &mut one), (1, Why::Connection));
            assert_eq!(
                choose(&mut routes, 1, path, &mut other),
                (2, Why::Connection)
            );
        }
        // it has passed no turns
        let mut third = ConnectionHops::default();
        assert_eq!(choose(&mut routes, 2, "/a", &mut third), (3, Why::InTurn));
    }

    #[test]
    fn next_hop_that_fails_is_kept_no_longer_not_even_for_its_probe() {
        let mut routes = route(PolicyKind::InTurn, ChoiceFor::Connection, &[1, 2]);
        let mut connection = ConnectionHops::default();
        assert_eq!(choose(&mut routes, 0, "/a", &mut connection).0, 1);
        routes.report(at(0), HopId(1), Outcome::ConnectFailed);
        assert_eq!(choose(&mut routes, 1, "/a", &mut connection).0, 2);
        routes.report(at(10_000), HopId(1), Outcome::Connected);
        let kept = choose(&mut routes, 10_001, "/a", &mut connection);
        assert_eq!(kept, (2, Why::Connection));
        routes.report(at(10_002), HopId(2), Outcome::ConnectFailed);
        // its ejection is over, and whether it answers is not known
        let mut next = |ms| choose(&mut routes, ms, "/a", &mut connection);
        assert_eq!(next(20_002).0, 1);
        assert_eq!(next(20_003), (1, Why::Connection));
    }

    #[test]
    fn next_hop_that_a_reload_removes_is_kept_no_longer_and_a_renumbered_one_is() {
        let mut before = route(PolicyKind::InTurn, ChoiceFor::Connection, &[1, 2]);
        let [mut one, mut two] = [ConnectionHops::default(), ConnectionHops::default()];
        assert_eq!(choose(&mut before, 0, "/", &mut one).0, 1);
        assert_eq!(choose(&mut before, 0, "/", &mut two).0, 2);
        let mut after = route(PolicyKind::InTurn, ChoiceFor::Connection, &[3, 2]);
        assert_eq!(choose(&mut after, 1, "/", &mut two), (2, Why::Connection));
        assert_eq!(choose(&mut after, 1, "/", &mut one), (3, Why::InTurn));
    }

    #[test]
    fn connection_is_remembered_only_where_that_is_looked_at() {
        let check = |policy, choice_for, expected: bool| {
            let mut routes = route(policy, choice_for, &[1, 2]);
            let mut connection = ConnectionHops::default();
            choose(&mut routes, 0, "/a", &mut connection);
            assert_eq!(connection != ConnectionHops::default(), expected);
            assert_eq!(routes.remembers_connections(), expected);
        };
        check(PolicyKind::InTurn, ChoiceFor::Request, false);
        check(PolicyKind::Lard, ChoiceFor::Request, false);
        check(PolicyKind::Lard, ChoiceFor::Connection, true);
        check(PolicyKind::ExtendedLard, ChoiceFor::Request, true);
        check(PolicyKind::ExtendedLard, ChoiceFor::Connection, true);
    }

    /// `extended-lard` of a front end that sends each request: the last next hop handles the
    /// connection.
    #[test]
    fn next_hop_of_the_last_request_gets_the_next_while_few_wait_there_and_then_the_mapped_one() {
        let mut routes = route(PolicyKind::ExtendedLard, ChoiceFor::Request, &[1, 2, 3]);
        let first = |routes: &mut Routes, path: &str| {
            choose(routes, 0, path, &mut ConnectionHops::default())
        };
        let paths = (0..).map(|number| format!("/{number}"));
        let mut of_one = paths.filter(|path| first(&mut routes, path) == (1, Why::NotMapped));
        let own = of_one.next().unwrap();
        drop(of_one);
        let paths = (1000..).map(|number| format!("/{number}"));
        let mut of_two = paths.filter(|path| first(&mut routes, path) == (2, Why::NotMapped));
        let [other, another] = [of_two.next().unwrap(), of_two.next().unwrap()];
        drop(of_two);
        let mut connection = ConnectionHops::default();
        let mut next = |routes: &mut Routes, path: &str| choose(routes, 1, path, &mut connection);
        assert_eq!(next(&mut routes, &own), (1, Why::Mapped));
        (0..4).for_each(|_| routes.await_head(HopId(1)));
        assert_eq!(next(&mut routes, &other), (1, Why::DiskIdle));
        routes.await_head(HopId(1));
        assert_eq!(next(&mut routes, &other), (1, Why::Mapped), "it has it now");
        assert_eq!(next(&mut routes, &another), (2, Why::Lateral));
        // that one handles the connection from then on
        assert_eq!(next(&mut routes, &own), (2, Why::DiskIdle));
        routes.head_ended(HopId(1));
    }

    #[test]
    fn least_recently_used_route_is_forgotten() {
        let mut hops = ConnectionHops::default();
        let max = u32::try_from(ConnectionHops::ROUTES_MAX).unwrap();
        for route in 0..max {
            hops.note(RouteId(route), NodeKey(u64::from(route)));
        }
        hops.note(RouteId(0), NodeKey(100));
        assert_eq!(hops.of(RouteId(1)), Some(NodeKey(1)));
        hops.note(RouteId(max), NodeKey(200));
        assert_eq!(hops.of(RouteId(0)), Some(NodeKey(100)));
        assert_eq!(hops.of(RouteId(1)), None);
        assert_eq!(hops.of(RouteId(max)), Some(NodeKey(200)));
        assert_eq!(hops.hops.len(), ConnectionHops::ROUTES_MAX);
    }
}
