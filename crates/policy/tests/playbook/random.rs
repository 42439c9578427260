//! Random conversations.
//!
//! The invariants in words:
//! * Whatever is told in whatever order: no panic, and at most `Commands::MAX` commands.
//! * Told in order, a transaction ends with exactly one of Serve, Relay and Answer, and its verdict says which:
//!   a hit was served without Forward; a refusal was answered; what was forwarded was relayed, or freshened and served,
//!   or is said to be stale instead.
//! * Serve after Forward is only for a 304 to our own validators, for a next hop that failed, and for an answer that
//!   RFC 5861 calls an error.
//! * A stored response that forbids serving stale is not served without freshness left, unless a 304 came to our
//!   validators in this transaction.
//! * `only-if-cached` is not forwarded once the cache was looked in.
//! * The verdict says stored where Store or Freshen was commanded and held, and nowhere else; it has a ttl where Serve was
//!   commanded, and nowhere else.

use crate::script::{RULES, at, command_text};
use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use weir_policy::catalog::Refusal;
use weir_policy::{
    Command, Commands, Event, Failure, Handling, Missing, Profile, Rules, StoredFacts, Storing,
    Transaction,
};
use weir_semantics::{DeltaSeconds, FieldLine, Method, RequestFacts, ResponseFacts, Timestamp};

/// What the world holds ready for one transaction.
#[derive(Clone, Debug)]
struct World {
    request: RequestFacts,
    rules: Rules,
    unshared: bool,
    stored: Option<StoredFacts>,
    answer: Answer,
    updated: StoredFacts,
    ends: Ends,
    steps_s: [u64; 3],
}

#[derive(Clone, Debug)]
enum Answer {
    Response(ResponseFacts),
    Failed(Failure),
}

#[derive(Clone, Copy, Debug)]
enum Ends {
    Whole,
    Incomplete,
    NotAdmitted,
}

fn request() -> impl Strategy<Value = RequestFacts> {
    let directives = [
        "no-cache",
        "no-store",
        "only-if-cached",
        "max-age=40",
        "min-fresh=30",
        "max-stale",
        "max-stale=10",
    ];
    let methods = [
        Method::Get,
        Method::Get,
        Method::Get,
        Method::Head,
        Method::Post,
        Method::Options,
        Method::Other,
    ];
    let fields = [
        ("Cookie", "a"),
        ("Authorization", "a"),
        ("Pragma", "no-cache"),
    ];
    (
        select(methods.to_vec()),
        subsequence(directives.to_vec(), 0..3),
        subsequence(fields.to_vec(), 0..2),
        select(&["/", "/?a", "/cgi-bin/"][..]),
    )
        .prop_map(|(method, directives, fields, target)| {
            let control = directives.join(", ");
            let mut lines: Vec<FieldLine<'_>> = fields
                .iter()
                .map(|(name, value)| FieldLine::new(name, value.as_bytes()))
                .collect();
            if !control.is_empty() {
                lines.push(FieldLine::new("Cache-Control", control.as_bytes()));
            }
            RequestFacts::gather(method, target, &lines)
        })
}

fn response() -> impl Strategy<Value = ResponseFacts> {
    let directives = [
        "max-age=60",
        "max-age=0",
        "s-maxage=30",
        "no-store",
        "no-cache",
        "private",
        "public",
        "must-revalidate",
        "stale-if-error=20",
        "stale-while-revalidate=20",
    ];
    let statuses = [
        200, 200, 200, 204, 206, 301, 304, 304, 304, 404, 500, 501, 502, 503, 504,
    ];
    let fields = [
        ("ETag", "\"a\""),
        ("Last-Modified", "Sun, 06 Nov 1994 08:40:00 GMT"),
        ("Set-Cookie", "a=b"),
        ("Vary", "*"),
        ("Age", "50"),
        ("Expires", "0"),
    ];
    (
        select(statuses.to_vec()),
        subsequence(directives.to_vec(), 0..4),
        subsequence(fields.to_vec(), 0..3),
    )
        .prop_map(|(status, directives, fields)| {
            let control = directives.join(", ");
            let mut lines: Vec<FieldLine<'_>> = fields
                .iter()
                .map(|(name, value)| FieldLine::new(name, value.as_bytes()))
                .collect();
            if !control.is_empty() {
                lines.push(FieldLine::new("Cache-Control", control.as_bytes()));
            }
            ResponseFacts::gather(status, &lines, Timestamp(784_111_777))
        })
}

fn stored() -> impl Strategy<Value = StoredFacts> {
    let seconds = || prop::option::of((0..40_u32).prop_map(DeltaSeconds));
    (
        any::<[bool; 3]>(),
        0..60_u32,
        0..60_u32,
        seconds(),
        seconds(),
    )
        .prop_map(
            |([has_validator, no_cache, must_revalidate], lifetime, age, swr, sie)| StoredFacts {
                status: 200,
                has_validator,
                no_cache,
                must_revalidate,
                freshness_lifetime: DeltaSeconds(lifetime),
                corrected_initial_age: DeltaSeconds(age),
                response_tick: at(0).tick,
                stale_while_revalidate: swr,
                stale_if_error: sie,
            },
        )
}

fn failure() -> impl Strategy<Value = Failure> {
    select(&[Failure::Disconnected, Failure::Protocol, Failure::Ours][..])
}

fn world() -> impl Strategy<Value = World> {
    let rules = (any::<bool>(), 0..40_u32).prop_map(|(is_1998, limit)| Rules {
        profile: if is_1998 {
            Profile::Http1998
        } else {
            Profile::Rfc9111
        },
        disconnected_stale_max: DeltaSeconds(limit),
        ..RULES
    });
    let answer = prop_oneof![
        3 => response().prop_map(Answer::Response),
        1 => failure().prop_map(Answer::Failed),
    ];
    let ends = select(&[Ends::Whole, Ends::Incomplete, Ends::NotAdmitted][..]);
    let unshared = prop::bool::weighted(0.1);
    let found = prop::option::weighted(0.8, stored());
    let steps = prop::array::uniform3(0..40_u64);
    (
        request(),
        rules,
        unshared,
        found,
        answer,
        stored(),
        ends,
        steps,
    )
        .prop_map(
            |(request, rules, unshared, stored, answer, updated, ends, steps_s)| World {
                request,
                rules,
                unshared,
                stored,
                answer,
                updated,
                ends,
                steps_s,
            },
        )
}

/// Every command in order, each with the second it came.
type Record = Vec<(u64, Command)>;

/// Drives a transaction through `world` as a driver would.
fn drive(world: &World) -> (Record, Transaction) {
    let mut record = Record::new();
    let mut now_s = 0;
    let mut tx = Transaction::new(world.request, at(0));
    let take = |record: &mut Record, now_s, commands: Commands| {
        record.extend(commands.iter().map(|command| (now_s, command)));
        commands.first()
    };
    let rules = &world.rules;
    let unshared = world.unshared;
    let mut next = take(
        &mut record,
        now_s,
        tx.handle(at(now_s), rules, Event::Request { unshared }),
    );
    if next == Some(Command::LookUp) {
        now_s += world.steps_s[0];
        let event = match &world.stored {
            Some(stored) => Event::Found(stored),
            None => Event::Missing(Missing::Target),
        };
        next = take(&mut record, now_s, tx.handle(at(now_s), rules, event));
    }
    if matches!(next, Some(Command::Forward(_))) {
        now_s += world.steps_s[1];
        let event = match &world.answer {
            Answer::Response(response) => Event::Response(response),
            Answer::Failed(failure) => Event::Failed(*failure),
        };
        let commands = tx.handle(at(now_s), rules, event);
        next = take(&mut record, now_s, commands);
        let stores = |command| matches!(command, Command::Store(_));
        if next == Some(Command::Freshen) {
            take(&mut record, now_s, tx.freshened(at(now_s), &world.updated));
        } else if commands.iter().any(stores) {
            now_s += world.steps_s[2];
            let event = match world.ends {
                Ends::Whole => None,
                Ends::Incomplete => Some(Event::Incomplete),
                Ends::NotAdmitted => Some(Event::NotAdmitted(Refusal::NotResident)),
            };
            let commands = event.map(|event| tx.handle(at(now_s), rules, event));
            assert_eq!(commands.and_then(|commands| commands.first()), None);
        }
    }
    (record, tx)
}

fn check_end(world: &World, record: &Record, tx: &Transaction) {
    let has = |wanted: fn(&Command) -> bool| record.iter().any(|(_, command)| wanted(command));
    let serves = has(|command| matches!(command, Command::Serve(_)));
    let relays = has(|command| *command == Command::Relay);
    let answers = has(|command| matches!(command, Command::Answer(_)));
    let forwards = has(|command| matches!(command, Command::Forward(_)));
    let freshens = has(|command| *command == Command::Freshen);
    let stores = has(|command| matches!(command, Command::Store(_)));
    let count = [serves, relays, answers].iter().filter(|did| **did).count();
    assert_eq!(count, 1, "not one end");
    let verdict = tx.verdict();
    match verdict.handling {
        Handling::Hit(_) => assert!(serves && !forwards, "hit"),
        Handling::Forward(_) => assert!(forwards && (relays || (freshens && serves)), "forward"),
        Handling::StaleInstead(_) => assert!(forwards && serves && !freshens, "stale instead"),
        Handling::Refused(_) => assert!(answers, "refused"),
        Handling::Tunnel => panic!("nobody asked for a tunnel"),
    }
    assert_eq!(verdict.ttl.is_some(), serves, "ttl");
    let kept = freshens || (stores && matches!(world.ends, Ends::Whole));
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
    assert!(!(drops && stores), "dropped and stored");
}

fn check_serve(world: &World, record: &Record) {
    let Some(place) = record
        .iter()
        .position(|(_, command)| matches!(command, Command::Serve(_)))
    else {
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
        let excused = match &world.answer {
            Answer::Response(response) => matches!(response.status, 500 | 502 | 503 | 504),
            Answer::Failed(failure) => *failure != Failure::Ours,
        };
        assert!(validated || excused, "served after forward");
    }
    if !validated {
        let stored = world.stored.expect("nothing is stored, and served");
        let ttl = stored.ttl(at(record[place].0));
        assert!(
            ttl > 0 || !stored.forbids_stale(),
            "served stale with {ttl} s left"
        );
    }
}

fn texts(record: &Record) -> Vec<String> {
    let text = |(second, command): &(u64, Command)| format!("{second} {}", command_text(*command));
    record.iter().map(text).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn conversation_in_order_breaks_an_invariant(world in world()) {
        let (record, tx) = drive(&world);
        let checked = std::panic::catch_unwind(|| {
            check_end(&world, &record, &tx);
            check_serve(&world, &record);
        });
        prop_assert!(checked.is_ok(), "{:#?} ended as {:?}", texts(&record), tx.verdict());
    }
}

/// What is told in any order.
#[derive(Clone, Debug)]
enum Told {
    Request(bool),
    Found(StoredFacts),
    Missing,
    Response(ResponseFacts),
    Failed(Failure),
    NotAdmitted,
    Incomplete,
    Freshened(StoredFacts),
}

fn told() -> impl Strategy<Value = Told> {
    prop_oneof![
        any::<bool>().prop_map(Told::Request),
        stored().prop_map(Told::Found),
        Just(Told::Missing),
        response().prop_map(Told::Response),
        failure().prop_map(Told::Failed),
        Just(Told::NotAdmitted),
        Just(Told::Incomplete),
        stored().prop_map(Told::Freshened),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn events_in_any_order_panic_or_give_too_many_commands(
        request in request(),
        events in prop::collection::vec((0..1_u64 << 40, told()), 0..12),
    ) {
        let mut tx = Transaction::new(request, at(0));
        for (second, told) in events {
            // also a clock that goes back
            let now = at(second);
            let commands = match told {
                Told::Request(unshared) => tx.handle(now, &RULES, Event::Request { unshared }),
                Told::Found(stored) => tx.handle(now, &RULES, Event::Found(&stored)),
                Told::Missing => tx.handle(now, &RULES, Event::Missing(Missing::Variant)),
                Told::Response(response) => tx.handle(now, &RULES, Event::Response(&response)),
                Told::Failed(failure) => tx.handle(now, &RULES, Event::Failed(failure)),
                Told::NotAdmitted => tx.handle(now, &RULES, Event::NotAdmitted(Refusal::NoSlot)),
                Told::Incomplete => tx.handle(now, &RULES, Event::Incomplete),
                Told::Freshened(stored) => tx.freshened(now, &stored),
            };
            prop_assert!(commands.iter().count() <= Commands::MAX);
            prop_assert_eq!(commands.first(), commands.to_vec().first().copied());
            prop_assert!(!tx.verdict().handling.as_str().is_empty());
        }
    }
}
