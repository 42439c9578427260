//! Every transition that a driver can cause.

use std::collections::BTreeSet;

use weir_policy::catalog::Refusal;
use weir_policy::{
    Command, Commands, Covers, Event, Failure, Forwarding, JoinKind, Missing, Now, Profile, Rules,
    SetCookieRule, StoredFacts, Tick, Transaction, Update,
};
use weir_semantics::{
    DeltaSeconds, FieldLine, Fits, Heuristic, Method, RequestFacts, ResponseFacts, Timestamp,
};

/// One answer of a transaction to one event in one state.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Transition {
    /// The command whose outcome the driver tells.
    pub(crate) state: String,
    /// What the driver tells.
    pub(crate) event: String,
    /// What it is told to do, joined by ` + `.
    pub(crate) commands: String,
}

/// The names of a closed enum, as a list and as a function that the compiler keeps complete.
macro_rules! names {
    ($list:ident, $function:ident($type:ty): $enum:ident { $($variant:ident),+ $(,)? }) => {
        pub(crate) const $list: &[&str] = &[$( stringify!($variant) ),+];

        fn $function(value: &$type) -> &'static str {
            match value { $( $enum::$variant { .. } => stringify!($variant), )+ }
        }
    };
}

names!(EVENTS, event_name(Event<'_>): Event {
    Request, Found, FoundPart, Missing, Response, Update, Failed, NotAdmitted, Incomplete,
});
names!(COMMANDS, command_name(Command): Command {
    LookUp, Serve, Forward, RefreshInBackground, Answer, Relay, Store, Combine, KeepPart, ForwardAgain,
    Freshen, ServeMerged, Invalidate, Drop,
});

const RULES: Rules = Rules {
    profile: Profile::Rfc9111,
    heuristic: Heuristic {
        fraction_percent: 10,
        max: DeltaSeconds(86_400),
        assigned: None,
    },
    disconnected_stale_max: DeltaSeconds(3600),
    set_cookie: SetCookieRule::Permitted,
    reuse: weir_policy::rule::Reuse::NONE,
};

/// What is stored was received at this time, seconds.
const STORED_S: i64 = 1000;
/// The requests come at this time, seconds.
const NOW_S: i64 = 1100;

const REQUESTS: &[(Method, &[(&str, &str)])] = &[
    (Method::Get, &[]),
    (Method::Head, &[]),
    (Method::Post, &[]),
    (Method::Get, &[("Range", "bytes=0-9")]),
    (Method::Get, &[("Range", "bytes=0-9,20-29")]),
    (Method::Get, &[("If-None-Match", "\"a\"")]),
    (Method::Get, &[("Cache-Control", "no-cache")]),
    (Method::Get, &[("Cache-Control", "no-store")]),
    (Method::Get, &[("Cache-Control", "only-if-cached")]),
    (Method::Get, &[("Authorization", "Basic YQ==")]),
];

/// Cache-Control of what is stored, and whether it has a strong entity tag.
const STORED: &[(&str, bool)] = &[
    ("max-age=1000", true),
    ("max-age=1000", false),
    ("max-age=10", true),
    ("max-age=10", false),
    ("max-age=10, must-revalidate", true),
    ("max-age=10, stale-while-revalidate=1000", true),
    ("max-age=10, stale-while-revalidate=1000", false),
    ("max-age=10, stale-if-error=1000", true),
    ("max-age=10, stale-if-error=1000", false),
    ("max-age=1000, no-cache", true),
];

const STATUSES: [u16; 7] = [200, 206, 301, 304, 404, 416, 503];

/// Of responses from the next hop, and of what an update makes of a stored response.
const CACHE_CONTROL: [&str; 4] = ["max-age=1000", "no-store", "max-age=0", "public"];

/// Every transition, from the request on.
pub(crate) fn transitions() -> BTreeSet<Transition> {
    let mut walk = Walk::default();
    for (method, fields) in REQUESTS {
        let request = RequestFacts::gather(*method, "/", &lines(fields));
        for unshared in [false, true] {
            let transaction = Transaction::new(request, now(NOW_S));
            walk.tell("start", transaction, Event::Request { unshared }, "");
        }
    }
    walk.found
}

#[derive(Default)]
struct Walk {
    found: BTreeSet<Transition>,
}

impl Walk {
    /// Tells `event` in `state`, and goes on with what is commanded. `kind` is what matters of the
    /// event beside its name.
    fn tell(&mut self, state: &str, mut transaction: Transaction, event: Event<'_>, kind: &str) {
        let name = event_name(&event);
        let commands = transaction.handle(now(NOW_S), &RULES, event);
        let event = format!("{name} {kind}").trim_end().to_owned();
        self.continue_unread(state, event, transaction, &commands);
    }

    fn continue_unread(
        &mut self,
        state: &str,
        event: String,
        transaction: Transaction,
        commands: &Commands,
    ) {
        let names: Vec<String> = commands.iter().map(|command| full_name(&command)).collect();
        let commands_text = if names.is_empty() {
            "nothing".to_owned()
        } else {
            names.join(" + ")
        };
        self.found.insert(Transition {
            state: state.to_owned(),
            event,
            commands: commands_text,
        });
        for command in commands.iter() {
            match command {
                Command::LookUp => self.looked_up(transaction),
                Command::Forward(_) | Command::ForwardAgain => {
                    self.forwarded(&full_name(&command), transaction);
                }
                Command::RefreshInBackground => self.refreshed(&transaction),
                Command::Store(_) | Command::Combine(_) => {
                    let state = command_name(&command);
                    self.tell(state, transaction, Event::Incomplete, "");
                    let refused = Event::NotAdmitted(Refusal::NoSlot);
                    self.tell(state, transaction, refused, "");
                }
                _ => {}
            }
        }
    }

    fn looked_up(&mut self, transaction: Transaction) {
        let state = "LookUp";
        for missing in [Missing::Target, Missing::Variant] {
            self.tell(state, transaction, Event::Missing(missing), "");
        }
        for stored in stored() {
            self.tell(state, transaction, Event::Found(&stored), "");
            for (covers, kind) in [(Covers::Wanted, "(Wanted)"), (Covers::Lacking, "(Lacking)")] {
                self.tell(state, transaction, Event::FoundPart(&stored, covers), kind);
            }
            if transaction.follows() {
                for joined in [JoinKind::Waited, JoinKind::InFlight] {
                    let mut follower = transaction;
                    let commands = follower.joined(now(NOW_S), &stored, joined);
                    self.continue_unread(state, "joined".to_owned(), follower, &commands);
                }
            }
        }
    }

    fn forwarded(&mut self, state: &str, transaction: Transaction) {
        for failure in [Failure::Disconnected, Failure::Protocol, Failure::Ours] {
            self.tell(state, transaction, Event::Failed(failure), "");
        }
        for status in STATUSES {
            let kind = status.to_string();
            for cache_control in CACHE_CONTROL {
                let response = response(status, cache_control);
                if !transaction.may_update(status) {
                    self.tell(state, transaction, Event::Response(&response), &kind);
                    let weak = ResponseFacts {
                        entity_tag: None,
                        ..response
                    };
                    self.tell(state, transaction, Event::Response(&weak), &kind);
                    continue;
                }
                let merged = self::response(200, cache_control);
                for fits in [Fits::Same, Fits::Other, Fits::Unknown] {
                    let update = Update {
                        response: &response,
                        merged: &merged,
                        fits,
                        changes_vary: false,
                    };
                    self.tell(state, transaction, Event::Update(update), &kind);
                }
            }
        }
    }

    /// What was served stale is validated by a transaction of its own.
    fn refreshed(&mut self, served: &Transaction) {
        for stored in stored() {
            let (refresh, forwarding) =
                Transaction::refresh(*served.request(), &stored, now(NOW_S));
            self.forwarded(&full_name(&Command::Forward(forwarding)), refresh);
        }
    }
}

/// The name, and of `Forward` what is asked.
fn full_name(command: &Command) -> String {
    let name = command_name(command);
    match command {
        Command::Forward(Forwarding { validate: true, .. }) => format!("{name}{{validate}}"),
        Command::Forward(Forwarding { complete: true, .. }) => format!("{name}{{complete}}"),
        _ => name.to_owned(),
    }
}

fn now(seconds: i64) -> Now {
    let ticks_ms = u64::try_from(seconds).expect("after the epoch") * 1000;
    Now {
        wall: Timestamp(seconds),
        tick: Tick(ticks_ms),
    }
}

fn lines<'a>(fields: &[(&'a str, &'a str)]) -> Vec<FieldLine<'a>> {
    let lines = fields.iter();
    lines
        .map(|(name, value)| FieldLine::new(name, value.as_bytes()))
        .collect()
}

fn response(status: u16, cache_control: &str) -> ResponseFacts {
    let mut fields = vec![("Cache-Control", cache_control), ("ETag", "\"a\"")];
    if status == 206 {
        fields.push(("Content-Range", "bytes 0-9/100"));
    }
    ResponseFacts::gather(status, &lines(&fields), Timestamp(NOW_S))
}

fn stored() -> impl Iterator<Item = StoredFacts> {
    STORED.iter().map(|(cache_control, has_tag)| {
        let mut fields = vec![("Cache-Control", *cache_control)];
        if *has_tag {
            fields.push(("ETag", "\"a\""));
        }
        let response = ResponseFacts::gather(200, &lines(&fields), Timestamp(STORED_S));
        StoredFacts::new(
            &response,
            Timestamp(STORED_S),
            now(STORED_S),
            &RULES.heuristic,
        )
    })
}
