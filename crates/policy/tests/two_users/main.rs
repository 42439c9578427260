//! Two users and one cache: what one of them sees never depends on what is the other's alone.
//!
//! Each seed is a sequence of up to five exchanges (`generator.rs`), played on the decisions of
//! `policy` and `semantics` with a plain store and no sockets (`cache.rs`), half of them under
//! rules of the operator (`ruled.rs`). Two things are asked of it:
//!
//! * **Non-interference.** It is played again with one user's secrets changed: what is in that
//!   one's cookies, credentials, and the responses that are for that one alone. Whatever the other
//!   sees, and whatever is asked of the origin for the other, stays the same to the byte.
//! * **The specification** (`specification.rs`), which knows nothing of the cache: which earlier
//!   answers may be in a response, and which of their fields.
//!
//! `WEIR_TWO_USERS_SEQUENCES` is the number of sequences, `WEIR_TWO_USERS_SEED` the first seed. A
//! failure prints, for each rule that was broken, a seed and its sequence made as short as it can
//! be.

#![expect(clippy::cast_possible_truncation, reason = "small numbers")]

mod cache;
mod chance;
mod generator;
mod good;
mod origin;
#[path = "../reference_store/mod.rs"]
mod reference_store;
mod ruled;
mod sequence;
mod shrinking;
mod specification;
mod stored;
mod turn;

use cache::{PlayResult, play};
use origin::Secrets;
use ruled::Ruled;
use sequence::{Role, Sequence, User};
use specification::Violation;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::panic::resume_unwind;
use std::thread::{available_parallelism, scope};

/// Sequences without more being said.
const SEQUENCES: u64 = 40_000;

const CHANGED_NOTHING: Secrets = Secrets { changed: None };

#[test]
fn responses_to_one_user_do_not_depend_on_secrets_of_another() {
    let number = |name: &str| {
        let value = std::env::var(name).ok()?;
        value.parse::<u64>().ok()
    };
    let first = number("WEIR_TWO_USERS_SEED").unwrap_or(0);
    let sequences = number("WEIR_TWO_USERS_SEQUENCES").unwrap_or(SEQUENCES);
    let threads = available_parallelism().map_or(1, std::num::NonZero::get);
    let share = |offset: usize| {
        let mut result = (BTreeMap::new(), Tally::default());
        for seed in (first..first + sequences).skip(offset).step_by(threads) {
            let sequence = generator::sequence(seed);
            let ruled = Ruled::of(seed);
            result.1.add(&play(&sequence, CHANGED_NOTHING, ruled));
            for Violation { rule, .. } in check(&sequence, ruled) {
                result.0.entry(rule).or_insert(seed);
            }
        }
        result
    };
    let (mut broken, mut tally) = (BTreeMap::new(), Tally::default());
    scope(|scope| {
        let shares: Vec<_> = (0..threads)
            .map(|offset| scope.spawn(move || share(offset)))
            .collect();
        for played in shares {
            let (rules, counts) = played.join().unwrap_or_else(|panic| resume_unwind(panic));
            broken.extend(rules);
            tally.join(&counts);
        }
    });
    assert!(broken.is_empty(), "{}", explain(&broken));
    // a model in which something never happens has not tested it
    if sequences >= 10_000 {
        assert_eq!(tally.never_happened(), Vec::<&str>::new(), "{tally:?}");
    }
}

/// Every rule that a sequence breaks.
fn check(sequence: &Sequence, ruled: Ruled) -> Vec<Violation> {
    let played = play(sequence, CHANGED_NOTHING, ruled);
    let mut broken = specification::check(sequence, &played, ruled);
    for (changed, other) in [(User::Ann, User::Ben), (User::Ben, User::Ann)] {
        let again = play(
            sequence,
            Secrets {
                changed: Some(changed),
            },
            ruled,
        );
        if let Some(place) = difference(&played, &again, other) {
            let rule = "what one user sees does not depend on the other's secrets";
            broken.push(Violation { rule, place });
        }
    }
    broken
}

/// The first thing that is different for `user`.
fn difference(played: &PlayResult, again: &PlayResult, user: User) -> Option<String> {
    let seen = |played: &PlayResult| {
        let mine = played.seen.iter().filter(|seen| seen.user == user);
        mine.cloned().collect::<Vec<_>>()
    };
    for (seen, again) in seen(played).iter().zip(&seen(again)) {
        if seen != again {
            let (fields, others) = (cache::text(&seen.lines), cache::text(&again.lines));
            return Some(format!(
                "{user:?} sees in {} {fields} or {others}",
                seen.exchange
            ));
        }
    }
    let asked = |played: &PlayResult| {
        let mine = played.told.iter().filter(|told| told.request.user == user);
        mine.map(|told| (told.exchange, told.role, told.method, told.asked.clone()))
            .collect::<Vec<_>>()
    };
    let is_same = seen(played).len() == seen(again).len() && asked(played) == asked(again);
    (!is_same).then(|| format!("other questions are asked for {user:?}"))
}

/// A seed and the shortest sequence for each rule.
fn explain(broken: &BTreeMap<&str, u64>) -> String {
    let mut text = String::new();
    for (rule, seed) in broken {
        let ruled = Ruled::of(*seed);
        let fails = |sequence: &Sequence| {
            let mut broken = check(sequence, ruled).into_iter();
            broken.any(|broken| broken.rule == *rule)
        };
        let shortest = shrinking::shortest(generator::sequence(*seed), fails);
        let place = check(&shortest, ruled)
            .into_iter()
            .find(|broken| broken.rule == *rule)
            .map(|broken| broken.place);
        let _ = write!(
            text,
            "\nbroken: {rule} (WEIR_TWO_USERS_SEED={seed} WEIR_TWO_USERS_SEQUENCES=1, rules {ruled:?})\n{shortest}  {}\n",
            place.unwrap_or_default()
        );
    }
    text
}

/// How often what is of interest happened.
#[derive(Debug, Default)]
struct Tally {
    hits: u64,
    of_the_other: u64,
    updated: u64,
    joined: u64,
    followed: u64,
    in_background: u64,
    from_errors: u64,
}

impl Tally {
    fn add(&mut self, played: &PlayResult) {
        for seen in &played.seen {
            let mut numbers: Vec<_> = seen
                .content
                .iter()
                .map(|byte| origin::OriginExchange::number_of(*byte))
                .collect();
            numbers.dedup();
            let own = |role| {
                played
                    .told
                    .iter()
                    .any(|told| told.exchange == seen.exchange && told.role == role)
            };
            let is_hit = !numbers.is_empty() && !own(seen.role);
            let users = numbers
                .iter()
                .map(|number| played.told[*number].request.user);
            self.hits += u64::from(is_hit);
            self.of_the_other += u64::from(users.filter(|user| *user != seen.user).count() > 0);
            self.joined += u64::from(numbers.len() > 1);
            self.followed += u64::from(is_hit && seen.role == Role::Follower && own(Role::Client));
            let marks = seen
                .lines
                .iter()
                .filter(|line| line.0.starts_with("X-Only-"));
            self.updated += u64::from(marks.count() > 1);
            self.in_background += u64::from(own(Role::Background));
            let errors = played.told.iter().filter(|told| told.status >= 500);
            self.from_errors += u64::from(is_hit) * errors.count() as u64;
        }
    }

    fn join(&mut self, other: &Self) {
        self.hits += other.hits;
        self.of_the_other += other.of_the_other;
        self.updated += other.updated;
        self.joined += other.joined;
        self.followed += other.followed;
        self.in_background += other.in_background;
        self.from_errors += other.from_errors;
    }

    fn never_happened(&self) -> Vec<&'static str> {
        [
            ("hits", self.hits),
            ("of the other", self.of_the_other),
            ("updated", self.updated),
            ("joined", self.joined),
            ("followed", self.followed),
            ("in background", self.in_background),
            ("errors", self.from_errors),
        ]
        .into_iter()
        .filter(|(_, count)| *count < 100)
        .map(|(name, _)| name)
        .collect()
    }
}
