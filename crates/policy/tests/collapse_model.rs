//! Collapsed requests against a reference model: random requests, leaders that fail and clients
//! that disconnect, for a few targets under a virtual clock.
//!
//! The model keeps one list of groups in the order in which they are offered, and looks through all
//! of it at every event. It is compared with the policy command by command; beside that
//!
//! * a follower waits only while its group has a leader that asks, and is told once how that ended;
//! * when the last owner of a group is gone, nothing of the group is left.
//!
//! `WEIR_SEEDS` is the number of seeds (20 000 by default, some seconds), `WEIR_SEED` plays one
//! alone.

#![expect(
    clippy::cast_possible_truncation,
    clippy::unwrap_used,
    reason = "small numbers, and a model that panics has failed"
)]

#[path = "fetch_model/chance.rs"]
mod chance;
#[path = "collapse_model/reference.rs"]
mod reference;

use chance::Chance;
use reference::{Answer, Reference};
use std::any::Any;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use weir_policy::collapse::{
    Collapse, Command, FollowerId, GroupId, PASSES_MAX, Passes, Selection, Terms, UNCOLLAPSIBLE_MAX,
};
use weir_policy::{Now, Tick};
use weir_semantics::Timestamp;

const STEPS: usize = 120;

/// Hit-for-miss targets that fit the table; there is one more target.
const TARGETS_REMEMBERED: usize = 3;
const TARGETS: u64 = TARGETS_REMEMBERED as u64 + 1;

#[test]
fn random_requests_and_leaders_match_the_reference_model() {
    let number = |name: &str| {
        let value = std::env::var(name).ok()?;
        value.parse::<u64>().ok()
    };
    if let Some(seed) = number("WEIR_SEED") {
        World::new(seed).play();
        return;
    }
    let mut happened: BTreeMap<&str, u64> = BTreeMap::new();
    let seeds = number("WEIR_SEEDS").unwrap_or(5_000);
    for seed in 0..seeds {
        match catch_unwind(AssertUnwindSafe(|| World::new(seed).play())) {
            Ok(words) => words
                .into_iter()
                .for_each(|word| *happened.entry(word).or_default() += 1),
            Err(panic) => panic!("again with WEIR_SEED={seed}: {}", told(&*panic)),
        }
    }
    // a model in which something never happens has not tested it
    let all = [
        "bypass",
        "idle",
        "lead",
        "look-up",
        "not-awaited",
        "read",
        "take-over",
        "wait",
    ];
    if seeds >= 1000 {
        assert_eq!(
            happened.keys().copied().collect::<Vec<_>>(),
            all,
            "{happened:?}"
        );
    }
}

/// What a panic says.
fn told(panic: &(dyn Any + Send)) -> &str {
    let owned = panic.downcast_ref::<String>().map(String::as_str);
    owned
        .or(panic.downcast_ref::<&str>().copied())
        .unwrap_or("?")
}

/// What the driver knows: its requests, and the owners of the groups.
struct World {
    chance: Chance,
    collapse: Collapse<u64, u32, u32, u32>,
    reference: Reference,
    at_ms: u64,
    /// Groups as both sides name them: by their order.
    groups: Vec<GroupId>,
    requests: u32,
    responses: u32,
    asking: Vec<usize>,
    in_flight: Vec<usize>,
    /// Those that wait or are about to read.
    followers: Vec<(u32, FollowerId)>,
    passes: BTreeMap<u32, (Vec<usize>, Option<u32>)>,
    happened: Vec<&'static str>,
}

impl World {
    fn new(seed: u64) -> Self {
        Self {
            chance: Chance::new(seed),
            collapse: Collapse::part_of(UNCOLLAPSIBLE_MAX / TARGETS_REMEMBERED),
            reference: Reference::new(TARGETS_REMEMBERED),
            at_ms: 0,
            groups: Vec::new(),
            requests: 0,
            responses: 0,
            asking: Vec::new(),
            in_flight: Vec::new(),
            followers: Vec::new(),
            passes: BTreeMap::new(),
            happened: Vec::new(),
        }
    }

    fn play(mut self) -> Vec<&'static str> {
        for _ in 0..STEPS {
            self.at_ms += self.chance.within(0, 4);
            self.step();
            self.check();
        }
        // all owners end
        while let Some(group) = self.asking.first().copied() {
            self.owner_fails(group);
            self.check();
        }
        for group in std::mem::take(&mut self.in_flight) {
            self.close(group);
        }
        assert!(self.collapse.is_empty(), "a group is left");
        self.happened
    }

    fn step(&mut self) {
        match self.chance.within(0, 17) {
            0..6 => self.want(),
            6 => {
                if let Some(group) = self.pick_asking() {
                    self.head(group);
                }
            }
            7 => {
                if let Some(group) = self.pick_asking() {
                    self.owner_fails(group);
                }
            }
            8 => {
                if let Some(group) = self.pick_asking() {
                    self.ends(group);
                }
            }
            9 => self.publish(),
            10 | 11 => self.leave(),
            12 => {
                if let Some(group) = self.pick_in_flight() {
                    self.collapse.withdraw(self.groups[group]);
                    self.reference.withdraw(group);
                }
            }
            13 => {
                if let Some(group) = self.pick_in_flight() {
                    self.in_flight.retain(|known| *known != group);
                    self.close(group);
                }
            }
            14 => {
                let key = self.key();
                self.collapse.shared(key);
                self.reference.shared(key);
            }
            15 => {
                if let Some(group) = self.pick_asking() {
                    self.sent(group);
                }
            }
            _ => self.forget(),
        }
    }

    fn sent(&mut self, group: usize) {
        let is_to_node = !self.chance.once_in(3);
        let mut commands = Vec::new();
        self.collapse
            .sent(self.groups[group], is_to_node, &mut commands);
        let expected = self.reference.sent(group, is_to_node);
        self.compare(commands, expected);
    }

    fn want(&mut self) {
        // a request that passed comes again
        let again = self.passes.keys().copied().collect::<Vec<_>>();
        let request = if again.is_empty() || self.chance.once_in(2) {
            self.requests += 1;
            self.requests
        } else {
            self.chance.one_of(&again)
        };
        let (passed, mut variant) = self.passes.remove(&request).unwrap_or_default();
        let mut passes = Passes::default();
        if let Some(variant) = variant {
            passes.wants_variant(variant);
        }
        for group in &passed {
            passes.pass(self.groups[*group]);
        }
        let terms = Terms {
            leads: !self.chance.once_in(3),
            waits: !self.chance.once_in(6),
            waits_for_nodes: !self.chance.once_in(3),
            followers_max: self.chance.one_of(&[0, 1, 2, 100, 100, 100]),
        };
        let key = self.key();
        let takes = self.chance.within(0, 3) as u32;
        let select = move |response: u32| match response % 3 != takes {
            true => Selection::Selected,
            false => Selection::Other(takes),
        };
        let now = at(self.at_ms);
        let collapse = &mut self.collapse;
        let command = collapse.want(now, key, request, terms, &mut passes, |it| select(*it));
        let is_full = passed.len() >= PASSES_MAX;
        let expected = if is_full {
            Answer::Bypass
        } else {
            let reference = &mut self.reference;
            reference.want(
                self.at_ms,
                key,
                request,
                terms,
                (&passed, &mut variant),
                select,
            )
        };
        match &command {
            Command::Lead(group) => {
                self.asking.push(self.groups.len());
                self.groups.push(*group);
            }
            Command::Wait(follower) => self.followers.push((request, *follower)),
            Command::Read(group, _) if self.chance.once_in(2) => {
                let group = self.number(*group);
                let passed = [passed, vec![group]].concat();
                self.passes.insert(request, (passed, variant));
            }
            _ => {}
        }
        assert_eq!(self.answer(&command), expected);
    }

    fn head(&mut self, group: usize) {
        let mut commands = Vec::new();
        self.responses += 1;
        self.collapse
            .head(self.groups[group], self.responses, &mut commands);
        let expected = self.reference.head(group, self.responses);
        self.asking.retain(|known| *known != group);
        self.in_flight.push(group);
        self.compare(commands, expected);
    }

    fn publish(&mut self) {
        let key = self.key();
        self.responses += 1;
        if let Some(group) = self.collapse.publish(key, self.responses) {
            self.reference.publish(key, self.responses);
            self.in_flight.push(self.groups.len());
            self.groups.push(group);
        }
    }

    /// The leader fails, or its client disconnects.
    fn owner_fails(&mut self, group: usize) {
        let mut commands = Vec::new();
        let id = self.groups[group];
        let expected = if self.chance.once_in(2) {
            self.collapse.failed(id, &mut commands);
            self.reference.failed(group)
        } else {
            self.collapse.disconnected(id, &mut commands);
            self.reference.disconnected(group)
        };
        let is_taken_over =
            |(_, command): &(u32, Command<u32>)| matches!(command, Command::TakeOver(_));
        if !commands.iter().any(is_taken_over) {
            self.asking.retain(|known| *known != group);
        }
        self.compare(commands, expected);
    }

    /// The leader has a response that is stored, or is not shared.
    fn ends(&mut self, group: usize) {
        let (mut commands, id) = (Vec::new(), self.groups[group]);
        self.asking.retain(|known| *known != group);
        let expected = if self.chance.once_in(2) {
            self.collapse.stored(id, &mut commands);
            self.reference.stored(group)
        } else {
            let until = self.at_ms + self.chance.within(0, 60);
            let until = (!self.chance.once_in(4)).then_some(until);
            let now = at(self.at_ms);
            self.collapse
                .refused(now, id, until.map(Tick), &mut commands);
            self.reference.refused(self.at_ms, group, until)
        };
        self.compare(commands, expected);
    }

    fn leave(&mut self) {
        if self.followers.is_empty() {
            return;
        }
        let place = self.chance.within(0, self.followers.len() as u64) as usize;
        let (request, follower) = self.followers.swap_remove(place);
        let mut commands = Vec::new();
        let idle = self.collapse.leave(follower, &mut commands);
        let (expected, expected_idle) = self.reference.leave(request);
        assert_eq!(idle, expected_idle);
        if idle.is_some() {
            self.happened.push("idle");
        }
        self.compare(commands, expected);
        // it has left
        assert_eq!(self.collapse.leave(follower, &mut Vec::new()), None);
    }

    fn close(&mut self, group: usize) {
        let response = self.collapse.close(self.groups[group]);
        assert_eq!(response, self.reference.close(group));
    }

    fn forget(&mut self) {
        if self.chance.once_in(3) {
            self.collapse.forget_all();
            self.reference.forget(None);
        } else {
            let key = self.key();
            self.collapse.forget(key);
            self.reference.forget(Some(key));
        }
    }

    fn compare(&mut self, commands: Vec<(u32, Command<u32>)>, expected: Vec<(u32, Answer)>) {
        let told: Vec<_> = commands
            .iter()
            .map(|(request, command)| (*request, self.answer(command)))
            .collect();
        assert_eq!(told, expected);
        for (request, answer) in told {
            // who is about to read is in the group until it leaves
            if !matches!(answer, Answer::Read(..) | Answer::NotAwaited) {
                self.followers.retain(|(follower, _)| *follower != request);
            }
        }
    }

    /// What holds between events.
    fn check(&self) {
        for (number, group) in self.groups.iter().enumerate() {
            let is_awaited = self.collapse.is_awaited(*group);
            assert_eq!(is_awaited, self.reference.is_awaited(number), "g{number}");
        }
        for (request, follower) in &self.followers {
            let group = self.number(follower.group);
            let has_owner = self.asking.contains(&group) || self.in_flight.contains(&group);
            let is_over = !self.reference.is_awaited(group);
            assert!(has_owner || is_over, "r{request} waits for nothing");
        }
        let has_owners = !self.asking.is_empty() || !self.in_flight.is_empty();
        assert_eq!(self.collapse.is_empty(), !has_owners);
    }

    fn answer(&mut self, command: &Command<u32>) -> Answer {
        let (word, answer) = match command {
            Command::Lead(group) => ("lead", Answer::Lead(self.number(*group))),
            Command::Wait(follower) => ("wait", Answer::Wait(self.number(follower.group))),
            Command::Read(group, it) => ("read", Answer::Read(self.number(*group), *it)),
            Command::LookUp(group) => ("look-up", Answer::LookUp(self.number(*group))),
            Command::TakeOver(group) => ("take-over", Answer::TakeOver(self.number(*group))),
            Command::Bypass => ("bypass", Answer::Bypass),
            Command::NotAwaited => ("not-awaited", Answer::NotAwaited),
        };
        self.happened.push(word);
        answer
    }

    fn number(&self, group: GroupId) -> usize {
        self.groups
            .iter()
            .position(|known| *known == group)
            .unwrap()
    }

    fn key(&mut self) -> u64 {
        self.chance.within(0, TARGETS)
    }

    fn pick_asking(&mut self) -> Option<usize> {
        (!self.asking.is_empty()).then(|| self.chance.one_of(&self.asking))
    }

    fn pick_in_flight(&mut self) -> Option<usize> {
        (!self.in_flight.is_empty()).then(|| self.chance.one_of(&self.in_flight))
    }
}

fn at(at_ms: u64) -> Now {
    Now {
        wall: Timestamp(784_111_777),
        tick: Tick(at_ms),
    }
}
