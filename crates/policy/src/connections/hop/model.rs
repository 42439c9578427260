//! One next hop with random requests, set-ups, exchanges, ends and departures, beside a plain list
//! of its connections.

use super::*;
use proptest::prelude::*;
use std::collections::VecDeque;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Connection {
    Opening,
    OpeningUnassigned,
    Busy,
    Idle,
    Tunnel,
}

impl Connection {
    fn place(self) -> ConnectionState {
        match self {
            Self::Opening => ConnectionState::Opening,
            Self::OpeningUnassigned => ConnectionState::OpeningUnassigned,
            Self::Busy | Self::Idle => ConnectionState::Pooled,
            Self::Tunnel => ConnectionState::Tunnel,
        }
    }
}

/// What the driver would hold.
#[derive(Debug)]
struct World {
    hop: Hop,
    rules: OpenRules,
    connections: Vec<Connection>,
    /// Requests that wait, the first to be served in front.
    queue: VecDeque<WaitReason>,
    elsewhere: usize,
    busy_us: Option<u64>,
}

impl World {
    fn count(&self, of: Connection) -> usize {
        self.connections.iter().filter(|c| **c == of).count()
    }

    /// Turns one connection of a kind into another; whether there was one.
    fn turn(&mut self, from: Connection, to: Connection) -> bool {
        let found = self.connections.iter_mut().find(|c| **c == from);
        found.map(|connection| *connection = to).is_some()
    }

    /// A request is made, and its command carried out.
    fn ask(&mut self, fresh: bool, patient: bool) -> Result<(), TestCaseError> {
        let demand = Demand {
            idle: self.count(Connection::Idle),
            open_in_all: self.connections.len() + self.elsewhere,
            fresh,
            can_close: self.count(Connection::Idle) > 0,
            patient,
            busy_us: self.busy_us,
        };
        let choice = self.hop.choose(&self.rules, &demand);
        self.check(&demand, choice)?;
        match choice {
            Choice::Reuse => {
                prop_assert!(self.turn(Connection::Idle, Connection::Busy));
            }
            Choice::Open(_) => self.open(Connection::Opening),
            Choice::Race => {
                self.open(Connection::OpeningUnassigned);
                self.wait(WaitReason::Race);
            }
            Choice::Wait { why, .. } => self.wait(why),
            Choice::Close(_) => {
                let at = self.connections.iter().position(|c| *c == Connection::Idle);
                prop_assert!(at.is_some(), "there is none to close");
                self.connections.remove(at.unwrap_or(0));
                self.hop.closed(ConnectionState::Pooled);
                // and it asks again
                return self.ask(fresh, patient);
            }
        }
        Ok(())
    }

    fn open(&mut self, connection: Connection) {
        self.connections.push(connection);
        self.hop.begin(connection.place());
    }

    fn wait(&mut self, why: WaitReason) {
        self.queue.push_back(why);
        self.hop.wait_begins();
    }

    /// The rules in plain words.
    fn check(&self, demand: &Demand, choice: Choice) -> Result<(), TestCaseError> {
        let open = self.connections.len();
        let pooled = self.count(Connection::Busy) + demand.idle;
        let full = open >= self.rules.per_hop_max || demand.open_in_all >= self.rules.total_max;
        match choice {
            Choice::Reuse => prop_assert!(demand.idle > 0 && !demand.fresh),
            Choice::Open(_) | Choice::Race => {
                prop_assert!(!full, "a limit is exceeded");
                prop_assert!(demand.idle == 0 || demand.fresh, "an idle one was left");
            }
            Choice::Close(_) => prop_assert!(full, "one is closed for nothing"),
            Choice::Wait { why, at_most_us } => {
                match why {
                    WaitReason::PerHopMax | WaitReason::TotalMax => {
                        prop_assert!(full, "it waits for a place that is there");
                        return Ok(());
                    }
                    WaitReason::UnderWay => {
                        prop_assert_ne!(self.rules.when_busy, WhenBusy::Open);
                        prop_assert!(self.count(Connection::OpeningUnassigned) > self.queue.len());
                    }
                    WaitReason::Sooner => {
                        prop_assert_eq!(self.rules.when_busy, WhenBusy::WaitIfSooner);
                        let (busy_us, at_most_us) =
                            (demand.busy_us.unwrap_or(0), at_most_us.unwrap_or(0));
                        // one comes back every busy / pooled
                        let turns = self.queue.len() as u64 + 1;
                        prop_assert!(pooled > 0);
                        prop_assert!(turns * busy_us / pooled as u64 <= at_most_us);
                    }
                    WaitReason::Race => prop_assert!(false, "a race is a choice of its own"),
                }
                prop_assert!(!full && demand.idle == 0 && !demand.fresh && demand.patient);
            }
        }
        Ok(())
    }

    /// A connection is idle: the first waiting request gets it.
    fn falls_idle(&mut self) {
        if let Some(why) = self.queue.pop_front() {
            self.hop.wait_ends(why, WaitEnd::Returned);
        } else {
            self.turn(Connection::Busy, Connection::Idle);
        }
    }

    fn step(&mut self, step: &Step) -> Result<(), TestCaseError> {
        match *step {
            Step::Ask { fresh, patient } => self.ask(fresh, patient)?,
            Step::Opened(ms) => {
                if self.turn(Connection::Opening, Connection::Busy) {
                    self.hop.opened(ConnectionState::Opening, ms);
                }
            }
            Step::Came(ms) => {
                if self.turn(Connection::OpeningUnassigned, Connection::Busy) {
                    self.hop.opened(ConnectionState::OpeningUnassigned, ms);
                    self.falls_idle();
                }
            }
            Step::Done(us) => {
                if self.count(Connection::Busy) > 0 {
                    self.busy_us = Some(us);
                    self.falls_idle();
                }
            }
            Step::Closed => {
                if let Some(closed) = self.connections.pop() {
                    self.hop.closed(closed.place());
                }
            }
            Step::Tunnel => {
                if self.turn(Connection::Busy, Connection::Tunnel) {
                    self.hop.became_tunnel(ConnectionState::Pooled);
                }
            }
            Step::WaitEnds(end) => {
                if let Some(why) = self.queue.pop_back() {
                    self.hop.wait_ends(why, end);
                }
            }
            Step::Elsewhere(open) => self.elsewhere = open,
        }
        prop_assert_eq!(self.hop.open(), self.connections.len());
        prop_assert_eq!(
            self.hop.opening_unassigned(),
            self.count(Connection::OpeningUnassigned)
        );
        let pooled = self.count(Connection::Busy) + self.count(Connection::Idle);
        prop_assert_eq!(self.hop.pooled(), pooled);
        prop_assert_eq!(self.hop.waiting(), self.queue.len());
        Ok(())
    }
}

#[derive(Clone, Debug)]
enum Step {
    Ask { fresh: bool, patient: bool },
    Opened(u64),
    Came(u64),
    Done(u64),
    Closed,
    Tunnel,
    WaitEnds(WaitEnd),
    Elsewhere(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (prop::bool::weighted(0.1), prop::bool::weighted(0.9))
            .prop_map(|(fresh, patient)| Step::Ask { fresh, patient }),
        4 => (0..100_u64).prop_map(Step::Opened),
        2 => (0..100_u64).prop_map(Step::Came),
        4 => (0..200_000_u64).prop_map(Step::Done),
        1 => Just(Step::Closed),
        1 => Just(Step::Tunnel),
        1 => prop::sample::select(WaitEnd::ALL.to_vec()).prop_map(Step::WaitEnds),
        1 => (0..8_usize).prop_map(Step::Elsewhere),
    ]
}

fn rules() -> impl Strategy<Value = OpenRules> {
    let when = prop_oneof![
        1 => Just(WhenBusy::Open),
        3 => Just(WhenBusy::WaitIfSooner),
        3 => Just(WhenBusy::Race),
    ];
    (when, 1..12_usize, 1..16_usize).prop_map(|(when_busy, per_hop_max, total_max)| OpenRules {
        per_hop_max,
        total_max,
        when_busy,
    })
}

proptest! {
    #[test]
    fn random_next_hop_operations_obey_limits_and_wait_rules(
        rules in rules(),
        steps in prop::collection::vec(step(), 0..120),
    ) {
        let mut world = World {
            hop: Hop::default(),
            rules,
            connections: Vec::new(),
            queue: VecDeque::new(),
            elsewhere: 0,
            busy_us: None,
        };
        for step in &steps {
            world.step(step)?;
        }
    }
}
