//! Random conversations.
//!
//! The invariants in words:
//! * Whatever is told in whatever order: no panic, and at most `Commands::MAX` commands.
//! * Given events in order, a transaction ends with exactly one of Serve, Relay and Answer, and its
//!   verdict says which: a hit was served without Forward; a refusal was answered; what was
//!   forwarded was relayed, or freshened and served, or is said to be stale instead.
//! * A part that lacks what is wanted is never served.
//! * What is joined was asked for as the rest of a stored part, came as a 206, and fits. The next
//!   hop is asked again once at most, and only where the rest was asked for, or a validation was.
//! * A part is kept only of what was being stored, and held; never in the place of what is fresh.
//! * Serve after Forward is only for a next hop that failed, and for an answer that RFC 5861 calls
//!   an error; ServeMerged only for a 304 to our own validators that is about the stored response.
//! * A stored response that forbids serving stale is not served without freshness left, unless a
//!   304 came to our validators in this transaction.
//! * `only-if-cached` is not forwarded once the cache was looked in.
//! * The verdict says stored where Store, Combine or Freshen was commanded and held, or KeepPart
//!   was, and nowhere else; it has a ttl where Serve was commanded, and nowhere else.

use crate::script::{RULES, at, command_text};
use crate::world::{Answer, Ends, World, failure, fits, request, response, stored, world};
use proptest::prelude::*;
use proptest::sample::select;
use weir_policy::catalog::Refusal;
use weir_policy::{
    Command, Commands, Covers, Event, Failure, Handling, JoinKind, Missing, StoredFacts, Storing,
    Transaction, Update,
};
use weir_semantics::{Fits, ResponseFacts};

/// Every command in order, each with the second it came.
type Record = Vec<(u64, Command)>;

/// Drives a transaction through `world` as a driver would.
fn drive(world: &World) -> (Record, Transaction) {
    let mut run = Run {
        world,
        record: Record::new(),
        now_s: 0,
        tx: Transaction::new(world.request, at(0)),
    };
    let unshared = world.unshared;
    let mut next = run.tell(Event::Request { unshared }).first();
    if next == Some(Command::LookUp) {
        run.now_s += world.steps_s[0];
        let event = match (&world.stored, world.part) {
            (Some(stored), None) => Event::Found(stored),
            (Some(stored), Some(covers)) => Event::FoundPart(stored, covers),
            (None, _) => Event::Missing(Missing::Target),
        };
        next = run.tell(event).first();
    }
    if let Some(Command::Forward(_)) = next {
        run.now_s += world.steps_s[1];
        let commands = run.answer(&world.answer);
        if commands
            .iter()
            .any(|command| command == Command::ForwardAgain)
        {
            run.now_s += world.steps_s[2];
            let commands = run.answer(&world.second_answer);
            let asks = commands
                .iter()
                .any(|command| command == Command::ForwardAgain);
            assert!(!asks, "asked a third time");
            run.end(commands);
        } else {
            run.end(commands);
        }
    }
    (run.record, run.tx)
}

/// A conversation under way.
struct Run<'a> {
    world: &'a World,
    record: Record,
    now_s: u64,
    tx: Transaction,
}

impl Run<'_> {
    fn note(&mut self, commands: Commands) -> Commands {
        let at_s = self.now_s;
        self.record
            .extend(commands.iter().map(|command| (at_s, command)));
        commands
    }

    fn tell(&mut self, event: Event<'_>) -> Commands {
        let commands = self.tx.handle(at(self.now_s), &self.world.rules, event);
        self.note(commands)
    }

    fn answer(&mut self, answer: &Answer) -> Commands {
        match answer {
            Answer::Response(response) if self.tx.may_update(response.status) => {
                let (fits, merged) = (self.world.fits, &self.world.merged);
                self.tell(Event::Update(Update {
                    response,
                    merged,
                    fits,
                    changes_vary: self.world.changes_vary,
                }))
            }
            Answer::Response(response) => self.tell(Event::Response(response)),
            Answer::Failed(failure) => self.tell(Event::Failed(*failure)),
        }
    }

    /// Carries out what the last head brought.
    fn end(&mut self, commands: Commands) {
        let kept = commands.iter().find_map(|command| match command {
            Command::Store(facts) | Command::Combine(facts) => Some(facts),
            _ => None,
        });
        let Some(facts) = kept else { return };
        let spared = self.may_spare_stored();
        self.now_s += self.world.steps_s[2];
        let part = Some(Command::KeepPart).filter(|_| facts.can_be_part());
        let expected = match self.world.ends {
            Ends::Whole => return,
            Ends::Incomplete => part.filter(|_| spared != Some(true)),
            Ends::NotAdmitted => None,
        };
        let commands = match self.world.ends {
            Ends::NotAdmitted => self.tell(Event::NotAdmitted(Refusal::NotResident)),
            Ends::Whole | Ends::Incomplete => self.tell(Event::Incomplete),
        };
        let is_expected =
            commands.first() == expected || spared.is_none() && commands.first().is_none();
        assert!(is_expected, "{:?} and not {expected:?}", commands.first());
    }

    /// Whether what was found stays in the place of a part: it is fresh. `None` where it is stale,
    /// and may be used if the next hop fails.
    fn may_spare_stored(&self) -> Option<bool> {
        let forwarded_again = |(_, command): &(u64, Command)| *command == Command::ForwardAgain;
        let looked_up = |(_, command): &(u64, Command)| *command == Command::LookUp;
        let is_found = self.world.part != Some(Covers::Lacking)
            && self.record.iter().any(looked_up)
            && !self.record.iter().any(forwarded_again);
        match self.world.stored.filter(|_| is_found) {
            None => Some(false),
            Some(stored) if stored.no_cache => Some(false),
            Some(stored) if stored.ttl(at(self.now_s)) > 0 => Some(true),
            Some(stored) if stored.stale_if_error.is_some() => None,
            Some(_) => Some(false),
        }
    }
}

fn check_end(world: &World, record: &Record, tx: &Transaction) {
    let has = |wanted: fn(&Command) -> bool| record.iter().any(|(_, command)| wanted(command));
    let serves = has(is_serve);
    let relays = has(|command| *command == Command::Relay);
    let answers = has(|command| matches!(command, Command::Answer(_)));
    let forwards = has(|command| matches!(command, Command::Forward(_)));
    let freshens = has(|command| matches!(command, Command::Freshen(_)));
    let merges = has(|command| matches!(command, Command::ServeMerged(_)));
    let stores = has(|command| matches!(command, Command::Store(_) | Command::Combine(_)));
    let keeps_part = has(|command| *command == Command::KeepPart);
    let count = [serves, relays, answers].iter().filter(|did| **did).count();
    assert_eq!(count, 1, "not one end");
    let verdict = tx.verdict();
    match verdict.handling {
        Handling::Hit(_) => assert!(serves && !forwards, "hit"),
        Handling::Forward(_) => assert!(forwards && (relays || merges), "forward"),
        Handling::Collapsed(_) => panic!("there was no other request"),
        Handling::StaleInstead(_) => assert!(forwards && serves && !freshens, "stale instead"),
        Handling::Refused(_) => assert!(answers, "refused"),
        Handling::Tunnel => panic!("nobody asked for a tunnel"),
    }
    assert_eq!(verdict.ttl.is_some(), serves, "ttl");
    let kept = freshens || keeps_part || (stores && matches!(world.ends, Ends::Whole));
    assert_eq!(verdict.storing == Some(Storing::Stored), kept, "stored");
    let looked = has(|command| *command == Command::LookUp);
    assert!(
        !(looked && forwards && world.request.directives.only_if_cached),
        "only-if-cached was forwarded"
    );
    let invalidates = has(|command| *command == Command::Invalidate);
    assert!(
        !invalidates || !world.request.method.is_safe(),
        "a safe method invalidates"
    );
    let drops = has(|command| *command == Command::Drop);
    assert!(!drops || world.stored.is_some(), "nothing is dropped");
    let asks_again = has(|command| *command == Command::ForwardAgain);
    let completes =
        has(|command| matches!(command, Command::Forward(forwarding) if forwarding.complete));
    assert!(
        !(drops && stores) || asks_again || completes,
        "dropped and stored"
    );
}

/// What was joined, and what was asked for again.
fn check_parts(world: &World, record: &Record) {
    let lacking = world.part == Some(Covers::Lacking);
    let has = |wanted: fn(&Command) -> bool| record.iter().any(|(_, command)| wanted(command));
    let completes =
        has(|command| matches!(command, Command::Forward(forwarding) if forwarding.complete));
    assert!(
        !completes || (lacking && world.stored.is_some_and(|stored| stored.strong_tag)),
        "the rest of nothing"
    );
    let validates =
        has(|command| matches!(command, Command::Forward(forwarding) if forwarding.validate));
    let is_206 = matches!(&world.answer, Answer::Response(response) if response.status == 206);
    let combines = has(|command| matches!(command, Command::Combine(_)));
    assert!(
        !combines || (completes && is_206 && world.fits == Fits::Same),
        "joined what does not fit"
    );
    assert!(
        !has(|command| *command == Command::ForwardAgain) || completes || validates,
        "asked again"
    );
    assert!(!(has(is_serve) && lacking), "a part is served for more");
    assert!(!(validates && completes), "validated and completed");
}

fn check_serve(world: &World, record: &Record) {
    let Some(place) = record.iter().position(|(_, command)| is_serve(command)) else {
        return;
    };
    let before = &record[..place];
    let forward = before.iter().find_map(|(_, command)| match command {
        Command::Forward(forwarding) => Some(*forwarding),
        _ => None,
    });
    let not_modified =
        matches!(&world.answer, Answer::Response(response) if response.status == 304);
    let validated = not_modified && forward.is_some_and(|forwarding| forwarding.validate);
    if forward.is_some() {
        let forwarded_again = before
            .iter()
            .any(|(_, command)| *command == Command::ForwardAgain);
        assert!(!(validated && forwarded_again), "served what is another's");
        let excused = match &world.answer {
            Answer::Response(response) => matches!(response.status, 500 | 502 | 503 | 504),
            Answer::Failed(failure) => *failure != Failure::Ours,
        };
        assert!(validated || excused, "served after forward");
    }
    if !validated {
        let stored = world.stored.expect("nothing is stored, and served");
        let ttl = stored.ttl(at(record[place].0));
        let has_window = stored.stale_if_error.is_some() || stored.stale_while_revalidate.is_some();
        assert!(
            ttl > 0 || !stored.no_cache && (!stored.must_revalidate || has_window),
            "served stale with {ttl} s left"
        );
    }
}

fn is_serve(command: &Command) -> bool {
    matches!(command, Command::Serve(_) | Command::ServeMerged(_))
}

fn texts(record: &Record) -> Vec<String> {
    let text = |(second, command): &(u64, Command)| format!("{second} {}", command_text(*command));
    record.iter().map(text).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_conversation_in_order_obeys_every_invariant(world in world()) {
        let (record, tx) = drive(&world);
        let checked = std::panic::catch_unwind(|| {
            check_end(&world, &record, &tx);
            check_serve(&world, &record);
            check_parts(&world, &record);
        });
        prop_assert!(checked.is_ok(), "{:#?} ended as {:?}", texts(&record), tx.verdict());
    }
}

/// What is told in any order.
#[derive(Clone, Debug)]
enum RandomInput {
    Request(bool),
    Found(StoredFacts),
    FoundPart(StoredFacts, Covers),
    JoinKind(StoredFacts, JoinKind),
    Missing,
    Response(ResponseFacts),
    Update(ResponseFacts, ResponseFacts, Fits, bool),
    Failed(Failure),
    NotAdmitted,
    Incomplete,
}

fn told() -> impl Strategy<Value = RandomInput> {
    prop_oneof![
        any::<bool>().prop_map(RandomInput::Request),
        stored().prop_map(RandomInput::Found),
        (stored(), select(&[Covers::Wanted, Covers::Lacking][..]))
            .prop_map(|(stored, covers)| RandomInput::FoundPart(stored, covers)),
        (
            stored(),
            select(&[JoinKind::Waited, JoinKind::InFlight][..])
        )
            .prop_map(|(stored, joined)| RandomInput::JoinKind(stored, joined)),
        (response(), response(), fits(), any::<bool>()).prop_map(
            |(response, merged, fits, vary)| RandomInput::Update(response, merged, fits, vary)
        ),
        Just(RandomInput::Missing),
        response().prop_map(RandomInput::Response),
        failure().prop_map(RandomInput::Failed),
        Just(RandomInput::NotAdmitted),
        Just(RandomInput::Incomplete),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn events_in_any_order_neither_panic_nor_exceed_the_command_limit(
        request in request(),
        events in prop::collection::vec((0..1_u64 << 40, told()), 0..12),
    ) {
        let mut tx = Transaction::new(request, at(0));
        for (second, told) in events {
            // also a clock that goes back
            let now = at(second);
            let commands = match told {
                RandomInput::Request(unshared) => tx.handle(now, &RULES, Event::Request { unshared }),
                RandomInput::Found(stored) => tx.handle(now, &RULES, Event::Found(&stored)),
                RandomInput::FoundPart(stored, covers) => {
                    tx.handle(now, &RULES, Event::FoundPart(&stored, covers))
                }
                RandomInput::JoinKind(stored, joined) => tx.joined(now, &stored, joined),
                RandomInput::Update(response, merged, fits, changes_vary) => {
                    let (response, merged) = (&response, &merged);
                    let update = Update {
                        response,
                        merged,
                        fits,
                        changes_vary,
                    };
                    tx.handle(now, &RULES, Event::Update(update))
                }
                RandomInput::Missing => tx.handle(now, &RULES, Event::Missing(Missing::Variant)),
                RandomInput::Response(response) => tx.handle(now, &RULES, Event::Response(&response)),
                RandomInput::Failed(failure) => tx.handle(now, &RULES, Event::Failed(failure)),
                RandomInput::NotAdmitted => tx.handle(now, &RULES, Event::NotAdmitted(Refusal::NoSlot)),
                RandomInput::Incomplete => tx.handle(now, &RULES, Event::Incomplete),
            };
            prop_assert!(commands.iter().count() <= Commands::MAX);
            prop_assert_eq!(commands.first(), commands.to_vec().first().copied());
            prop_assert!(!tx.verdict().handling.as_str().is_empty());
        }
    }
}
