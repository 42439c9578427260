//! Scripts: a conversation with the groups of collapsed requests as text.
//!
//! ```text
//! 0 want r0                     => lead g0             at this millisecond, this request; groups
//! 0 want r1                     => wait g0             are numbered as they begin
//! 5 head g0 page                => r1 read g0 page     commands to others, in their order
//! 5 leave r1                    => idle page           no other request is about to read it
//! 9 close g0                    => page
//! ```
//!
//! A request wants the target `/`, may lead and wait, and has place behind 100 others, unless the
//! words behind it say otherwise: `/b`, `cannot-lead`, `cannot-wait`, `followers=2`. It takes an
//! in-flight response without a variant, and with `de` that of this variant, `page.de`.

use std::collections::BTreeMap;
use weir_policy::collapse::{Collapse, Command, FollowerId, GroupId, Passes, Selection, Terms};
use weir_policy::{Now, Tick};
use weir_semantics::Timestamp;

/// Plays `script`, and fails with the difference if the conversation goes otherwise.
#[track_caller]
pub(crate) fn check(script: &str) {
    let mut conversation = Conversation::new();
    let mut difference = String::new();
    for line in script.lines().map(squeezed).filter(|line| !line.is_empty()) {
        let event = line.split(" => ").next().unwrap_or_default();
        let played = match conversation.play(event) {
            answer if answer.is_empty() => event.to_owned(),
            answer => format!("{event} => {answer}"),
        };
        difference += &if played == line {
            format!("    {line}\n")
        } else {
            format!("  - {line}\n  + {played}\n")
        };
    }
    assert!(
        !difference.lines().any(|line| line.starts_with("  -")),
        "expected (-) and played (+) differ:\n{difference}"
    );
}

/// A request, by its number.
type Request = u32;
type Commands = Vec<(Request, Command<String>)>;

struct Conversation {
    collapse: Collapse<char, Request, String, u8>,
    groups: Vec<GroupId>,
    followers: BTreeMap<Request, FollowerId>,
    passes: BTreeMap<Request, Passes<u8>>,
}

impl Conversation {
    fn new() -> Self {
        Self {
            collapse: Collapse::part_of(32_768),
            groups: Vec::new(),
            followers: BTreeMap::new(),
            passes: BTreeMap::new(),
        }
    }

    /// The answer to an event; empty if it has none.
    fn play(&mut self, event: &str) -> String {
        let words: Vec<&str> = event.split_whitespace().collect();
        let now = at(words[0].parse().expect("milliseconds"));
        let mut commands = Commands::new();
        let collapse = &mut self.collapse;
        match words[1..] {
            ["want", request, ref with @ ..] => return self.want(now, number(request), with),
            ["publish", response, key] => {
                return match collapse.publish(target(key), response.to_owned()) {
                    Some(group) => self.name(group),
                    None => "none".to_owned(),
                };
            }
            ["leave", request] => {
                let follower = self.followers[&number(request)];
                if let Some(response) = collapse.leave(follower, &mut commands) {
                    return format!("idle {response}");
                }
            }
            ["pass", request, group] => {
                let group = self.group(group);
                self.passes.entry(number(request)).or_default().pass(group);
            }
            ["forget", key] => collapse.forget(target(key)),
            ["forget-all"] => collapse.forget_all(),
            ["shared", key] => collapse.shared(target(key)),
            ["is-empty"] => return collapse.is_empty().to_string(),
            [event, group, ref with @ ..] => {
                let group = self.group(group);
                return self.of_group(now, event, group, with);
            }
            _ => panic!("no event: {event}"),
        }
        self.spell_all(commands)
    }

    fn want(&mut self, now: Now, request: Request, with: &[&str]) -> String {
        let (mut key, mut variant) = ('/', None);
        let mut terms = Terms {
            leads: true,
            waits: true,
            waits_for_nodes: true,
            followers_max: 100,
        };
        for word in with {
            match word.split_once('=').unwrap_or((word, "")) {
                ("cannot-lead", _) => terms.leads = false,
                ("cannot-wait", _) => terms.waits = false,
                ("of-node", _) => terms.waits_for_nodes = false,
                ("followers", max) => terms.followers_max = max.parse().expect("a number"),
                (path, _) if path.starts_with('/') => key = target(path),
                (value, _) => variant = Some(value),
            }
        }
        let passes = self.passes.entry(request).or_default();
        // by its first letter; of a request that names none another one than of all that do
        let wanted = variant.map_or(0, |variant| variant.as_bytes()[0]);
        let select = |response: &String| {
            let (_, of) = response.split_once('.').unzip();
            if of.is_none_or(|of| variant == Some(of)) {
                Selection::Selected
            } else {
                Selection::Other(wanted)
            }
        };
        let collapse = &mut self.collapse;
        let command = collapse.want(now, key, request, terms, passes, select);
        if let Command::Wait(follower) = command {
            self.followers.insert(request, follower);
        }
        self.spell(command)
    }

    fn of_group(&mut self, now: Now, event: &str, group: GroupId, with: &[&str]) -> String {
        let mut commands = Commands::new();
        let collapse = &mut self.collapse;
        match (event, with) {
            ("head", [response]) => collapse.head(group, (*response).to_owned(), &mut commands),
            ("sent-to-node", []) => collapse.sent(group, true, &mut commands),
            ("sent-to-origin", []) => collapse.sent(group, false, &mut commands),
            ("stored", []) => collapse.stored(group, &mut commands),
            ("refused", []) => collapse.refused(now, group, None, &mut commands),
            ("refused", [until]) => {
                let until = Tick(until.parse().expect("milliseconds"));
                collapse.refused(now, group, Some(until), &mut commands);
            }
            ("failed", []) => collapse.failed(group, &mut commands),
            ("disconnected", []) => collapse.disconnected(group, &mut commands),
            ("withdraw", []) => collapse.withdraw(group),
            ("close", []) => return collapse.close(group).unwrap_or_default(),
            ("is-awaited", []) => return collapse.is_awaited(group).to_string(),
            _ => panic!("no event: {event}"),
        }
        self.spell_all(commands)
    }

    fn spell_all(&mut self, commands: Commands) -> String {
        let spelt = commands
            .into_iter()
            .map(|(request, command)| format!("r{request} {}", self.spell(command)));
        spelt.collect::<Vec<_>>().join(", ")
    }

    fn spell(&mut self, command: Command<String>) -> String {
        match command {
            Command::Lead(group) => format!("lead {}", self.name(group)),
            Command::Wait(follower) => format!("wait {}", self.name(follower.group)),
            Command::Read(group, response) => format!("read {} {response}", self.name(group)),
            Command::LookUp(group) => format!("look-up {}", self.name(group)),
            Command::TakeOver(group) => format!("take-over {}", self.name(group)),
            Command::Bypass => "bypass".to_owned(),
            Command::NotAwaited => "not-awaited".to_owned(),
        }
    }

    /// A group as scripts name it.
    fn name(&mut self, group: GroupId) -> String {
        let known = self.groups.iter().position(|known| *known == group);
        let number = known.unwrap_or_else(|| {
            self.groups.push(group);
            self.groups.len() - 1
        });
        format!("g{number}")
    }

    fn group(&self, name: &str) -> GroupId {
        self.groups[name[1..].parse::<usize>().expect("a group")]
    }
}

/// `/`, or what stands behind it.
fn target(path: &str) -> char {
    path.chars().last().expect("a target")
}

fn number(request: &str) -> Request {
    request[1..].parse().expect("a request")
}

fn at(at_ms: u64) -> Now {
    Now {
        wall: Timestamp(784_111_777),
        tick: Tick(at_ms),
    }
}

/// How far apart event and answer stand is for the eye.
fn squeezed(line: &str) -> String {
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}
