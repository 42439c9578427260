//! The reference model: one list of groups, looked through at every event.

use weir_policy::collapse::{LEADERS_MAX, Selection, Terms};

/// What a request is to do; groups are named by the order in which they began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Lead(usize),
    Wait(usize),
    Read(usize, u32),
    LookUp(usize),
    TakeOver(usize),
    Bypass,
    NotAwaited,
}

type Answers = Vec<(u32, Answer)>;

#[derive(Debug)]
struct Group {
    number: usize,
    key: u64,
    takes_newcomers: bool,
    leader: u32,
    leaders: u32,
    /// Once there is a head.
    response: Option<u32>,
    /// The variant that the leader wants, if that is known.
    variant: Option<u32>,
    is_at_node: bool,
    /// With whether it may lead, the variant that it wants, and whether it may wait for a node.
    followers: Vec<Follower>,
}

type Follower = (u32, bool, Option<u32>, bool);

/// All groups, as they are offered.
#[derive(Debug)]
pub(crate) struct Reference {
    groups: Vec<Group>,
    made: usize,
    /// As they end.
    uncollapsible: Vec<(u64, u64)>,
    targets_max: usize,
}

impl Reference {
    pub(crate) fn new(targets_max: usize) -> Self {
        Self {
            groups: Vec::new(),
            made: 0,
            uncollapsible: Vec::new(),
            targets_max,
        }
    }

    pub(crate) fn want(
        &mut self,
        at_ms: u64,
        key: u64,
        request: u32,
        terms: Terms,
        (passed, wanted): (&[usize], &mut Option<u32>),
        select: impl Fn(u32) -> Selection<u32>,
    ) -> Answer {
        let of_key = |group: &&mut Group| group.key == key && group.takes_newcomers;
        for group in self.groups.iter_mut().filter(of_key) {
            if passed.contains(&group.number) {
                continue;
            }
            match group.response {
                Some(response) => match select(response) {
                    Selection::Selected => return Answer::Read(group.number, response),
                    Selection::Other(variant) => *wanted = Some(variant),
                },
                None if group.followers.len() < terms.followers_max => {
                    if group.is_at_node && !terms.waits_for_nodes {
                        continue;
                    }
                    if matches!((group.variant, *wanted), (Some(its), Some(ours)) if its != ours) {
                        continue;
                    }
                    if !terms.waits {
                        return Answer::Bypass;
                    }
                    let waits = terms.waits_for_nodes;
                    group.followers.push((request, terms.leads, *wanted, waits));
                    return Answer::Wait(group.number);
                }
                None => {}
            }
        }
        let is_uncollapsible = |(known, until): &(u64, u64)| *known == key && *until > at_ms;
        if !terms.leads || self.uncollapsible.iter().any(is_uncollapsible) {
            return Answer::Bypass;
        }
        let mut group = self.group(key, request, None);
        group.variant = *wanted;
        let number = group.number;
        self.groups.push(group);
        Answer::Lead(number)
    }

    pub(crate) fn publish(&mut self, key: u64, response: u32) {
        self.shared(key);
        let group = self.group(key, 0, Some(response));
        self.groups.insert(0, group);
    }

    fn group(&mut self, key: u64, leader: u32, response: Option<u32>) -> Group {
        self.made += 1;
        Group {
            number: self.made - 1,
            key,
            takes_newcomers: true,
            leader,
            leaders: 1,
            response,
            variant: None,
            is_at_node: false,
            followers: Vec::new(),
        }
    }

    pub(crate) fn sent(&mut self, number: usize, is_to_node: bool) -> Answers {
        let group = self.at(number);
        group.is_at_node = is_to_node;
        if !is_to_node || group.followers.is_empty() {
            return Vec::new();
        }
        let (stay, go) = std::mem::take(&mut group.followers)
            .into_iter()
            .partition(|(.., waits_for_nodes)| *waits_for_nodes);
        group.followers = stay;
        let go: Vec<Follower> = go;
        let go = go.into_iter();
        let mut answers: Answers = go
            .map(|(request, ..)| (request, Answer::LookUp(number)))
            .collect();
        if group.followers.is_empty() {
            answers.push((group.leader, Answer::NotAwaited));
        }
        answers
    }

    pub(crate) fn head(&mut self, number: usize, response: u32) -> Answers {
        let group = self.at(number);
        group.response = Some(response);
        let key = group.key;
        let read = |(request, ..): &Follower| (*request, Answer::Read(number, response));
        let answers = group.followers.iter().map(read).collect();
        self.shared(key);
        answers
    }

    pub(crate) fn stored(&mut self, number: usize) -> Answers {
        let group = self.take(number);
        self.shared(group.key);
        all(&group, Answer::LookUp(number))
    }

    pub(crate) fn refused(&mut self, at_ms: u64, number: usize, until: Option<u64>) -> Answers {
        let group = self.take(number);
        if let Some(until) = until {
            self.shared(group.key);
            if until > at_ms {
                self.uncollapsible.retain(|(_, until)| *until > at_ms);
                if self.uncollapsible.len() >= self.targets_max {
                    self.uncollapsible.remove(0);
                }
                self.uncollapsible.push((group.key, until));
                self.uncollapsible
                    .sort_by_key(|(key, until)| (*until, *key));
            }
        }
        all(&group, Answer::Bypass)
    }

    pub(crate) fn failed(&mut self, number: usize) -> Answers {
        let group = self.at(number);
        let next = group.followers.iter().position(|(_, leads, ..)| *leads);
        match next.filter(|_| group.leaders < LEADERS_MAX) {
            Some(next) => {
                let rest = group.followers.split_off(next + 1);
                let before = std::mem::replace(&mut group.followers, rest);
                group.leader = before[next].0;
                group.variant = before[next].2;
                group.is_at_node = false;
                group.leaders += 1;
                let mut answers: Answers = before
                    .into_iter()
                    .map(|(request, ..)| (request, Answer::Bypass))
                    .collect();
                answers[next].1 = Answer::TakeOver(number);
                answers
            }
            None => all(&self.take(number), Answer::Bypass),
        }
    }

    pub(crate) fn disconnected(&mut self, number: usize) -> Answers {
        self.at(number).leaders -= 1;
        self.failed(number)
    }

    /// What the leader is told, and the response that no follower is about to read any more.
    pub(crate) fn leave(&mut self, request: u32) -> (Answers, Option<u32>) {
        for group in &mut self.groups {
            let before = group.followers.len();
            group.followers.retain(|(known, ..)| *known != request);
            if group.followers.len() == before || !group.followers.is_empty() {
                continue;
            }
            return match group.response {
                Some(response) => (Vec::new(), Some(response)),
                None => (vec![(group.leader, Answer::NotAwaited)], None),
            };
        }
        (Vec::new(), None)
    }

    pub(crate) fn withdraw(&mut self, number: usize) {
        self.at(number).takes_newcomers = false;
    }

    pub(crate) fn close(&mut self, number: usize) -> Option<u32> {
        self.take(number).response
    }

    /// All targets if none is named.
    pub(crate) fn forget(&mut self, key: Option<u64>) {
        for group in &mut self.groups {
            group.takes_newcomers &= key.is_some_and(|key| group.key != key);
        }
    }

    pub(crate) fn shared(&mut self, key: u64) {
        self.uncollapsible.retain(|(known, _)| *known != key);
    }

    pub(crate) fn is_awaited(&self, number: usize) -> bool {
        let mut groups = self.groups.iter();
        groups.any(|group| group.number == number && !group.followers.is_empty())
    }

    fn at(&mut self, number: usize) -> &mut Group {
        let mut groups = self.groups.iter_mut();
        groups.find(|group| group.number == number).unwrap()
    }

    fn take(&mut self, number: usize) -> Group {
        let mut groups = self.groups.iter();
        let at = groups.position(|group| group.number == number).unwrap();
        self.groups.remove(at)
    }
}

fn all(group: &Group, answer: Answer) -> Answers {
    let followers = group.followers.iter();
    followers.map(|(request, ..)| (*request, answer)).collect()
}
