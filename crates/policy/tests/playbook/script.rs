//! Scripts: a conversation with a transaction as text.
//!
//! ```text
//! profile http-1998                                        settings, if any
//! GET / | Cache-Control: max-stale                         the request
//! 0 request => look-up                                     at this second, this event => these commands
//! 61 found 200 | Cache-Control: max-age=60 => serve age=61    a response that was stored at second 0
//! 61 found-part lacking 200 | ETag: "a" => forward complete   the same of a part; `joined waited 200`
//! 61 found transformed 200 | ETag: "a" => ...              the same of one whose content modules changed
//! 61 update same 304 | ETag: "a" => ...                       it fits, and is merged into what was found last
//! = hit max-stale ttl=-1                                   the verdict
//! ```

use weir_policy::catalog::Refusal;
use weir_policy::{
    Command, Commands, Covers, Event, Failure, Forwarding, Handling, JoinKind, Missing, Now,
    Profile, Rules, SetCookieRule, StoredFacts, Storing, Tick, Transaction, Update, Verdict,
};
use weir_semantics::{
    DeltaSeconds, FieldLine, Fits, Heuristic, Method, RequestFacts, ResponseFacts, Timestamp,
};

/// Second 0: Sun, 06 Nov 1994 08:49:37 GMT.
const START: Timestamp = Timestamp(784_111_777);

/// Before a stored response whose content modules have changed.
const TRANSFORMED: &str = "transformed ";

/// Plays `script`, and fails with the difference if the conversation goes otherwise.
#[track_caller]
pub(crate) fn check(script: &str) {
    let expected: Vec<&str> = script
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect();
    let played = play(&expected);
    if played != expected {
        let mut difference = String::new();
        for number in 0..expected.len().max(played.len()) {
            let (before, after) = (expected.get(number), played.get(number));
            if before.copied() == after.map(String::as_str) {
                difference.push_str(&format!("    {}\n", expected[number]));
            } else {
                let lines = [
                    before.map(|line| format!("  - {line}\n")),
                    after.map(|line| format!("  + {line}\n")),
                ];
                difference.extend(lines.into_iter().flatten());
            }
        }
        panic!("expected (-) and played (+) differ:\n{difference}");
    }
}

/// The moment `at_s` seconds after the start.
pub(crate) fn at(at_s: u64) -> Now {
    Now {
        wall: START.plus(DeltaSeconds::from_secs(at_s)),
        tick: Tick(at_s * 1000),
    }
}

/// Rules as they are by default, and a limit for being disconnected.
pub(crate) const RULES: Rules = Rules {
    profile: Profile::Rfc9111,
    heuristic: Heuristic {
        fraction_percent: 10,
        max: DeltaSeconds(86_400),
        assigned: None,
    },
    disconnected_stale_max: DeltaSeconds(100),
    set_cookie: SetCookieRule::Permitted,
    reuse: weir_policy::rule::Reuse::NONE,
};

fn play(script: &[&str]) -> Vec<String> {
    let mut rules = RULES;
    let (mut played, mut found) = (Vec::new(), "");
    let mut lines = script.iter().copied();
    let mut transaction = loop {
        let line = lines.next().expect("a script has a request");
        played.push(line.to_owned());
        match line.split_once(' ').expect("two words at least") {
            ("profile", name) => rules.profile = name.parse().expect("a profile"),
            ("set-cookie", "rfc9111") => rules.set_cookie = SetCookieRule::Rfc9111,
            ("disconnected-max", seconds) => {
                rules.disconnected_stale_max = DeltaSeconds(seconds.parse().expect("seconds"));
            }
            (method, rest) => {
                let (target, fields) = rest.split_once(" | ").unwrap_or((rest, ""));
                let facts = RequestFacts::gather(Method::parse(method), target, &split(fields));
                break Transaction::new(facts, at(0));
            }
        }
    };
    for line in lines {
        if line.starts_with('=') {
            played.push(format!("= {}", verdict_text(transaction.verdict())));
            continue;
        }
        let event = line
            .split_once("=>")
            .map_or(line, |(event, _)| event)
            .trim();
        let answer = tell(&mut transaction, &rules, event, &mut found);
        played.push(format!("{event} => {answer}"));
    }
    played
}

/// Tells one event, and returns what is to be done about it.
fn tell<'a>(
    transaction: &mut Transaction,
    rules: &Rules,
    line: &'a str,
    found: &mut &'a str,
) -> String {
    let (second, rest) = line.split_once(' ').expect("a second and an event");
    let now = at(second.parse().expect("a second"));
    let (name, what) = rest.split_once(' ').unwrap_or((rest, ""));
    let commands = match name {
        "request" => {
            let unshared = what == "unshared";
            transaction.handle(now, rules, Event::Request { unshared })
        }
        "found" => {
            *found = what;
            transaction.handle(now, rules, Event::Found(&stored(what, at(0))))
        }
        "found-part" => {
            let (covers, what) = what.split_once(' ').expect("what it covers");
            *found = what;
            let (covers, stored) = (read_covers(covers), stored(what, at(0)));
            transaction.handle(now, rules, Event::FoundPart(&stored, covers))
        }
        "missing" => transaction.handle(now, rules, Event::Missing(missing(what))),
        "response" => transaction.handle(now, rules, Event::Response(&response(what))),
        "update" => {
            let (fits, what) = what.split_once(' ').expect("whether it fits");
            let (response, stored) = (&response(what), response(found));
            let merged = &stored.updated_by(response, now.wall);
            let update = Update {
                response,
                merged,
                fits: read_fits(fits),
                changes_vary: stored.vary != merged.vary,
            };
            transaction.handle(now, rules, Event::Update(update))
        }
        "joined" => {
            let (joined, what) = what.split_once(' ').expect("when it came");
            transaction.joined(now, &stored(what, at(0)), read_joined(joined))
        }
        "fetch-whole" => {
            transaction.fetch_whole();
            Commands::default()
        }
        "forbid-storing" => {
            transaction.forbid_storing();
            Commands::default()
        }
        "keep-stored" => {
            transaction.keep_stored();
            Commands::default()
        }
        "transformed" => {
            transaction.transformed(true);
            Commands::default()
        }
        "unasked" => {
            transaction.unasked(now, rules);
            Commands::default()
        }
        "follows" => return yes_or_no(transaction.follows()),
        "leads" => return yes_or_no(transaction.leads()),
        "failed" => transaction.handle(now, rules, Event::Failed(failure(what))),
        "not-admitted" => transaction.handle(now, rules, Event::NotAdmitted(Refusal::NoSlot)),
        "incomplete" => transaction.handle(now, rules, Event::Incomplete),
        "tunnel" => {
            transaction.tunnel();
            Commands::default()
        }
        "refresh" => {
            *found = what;
            let (refresh, forwarding) =
                Transaction::refresh(*transaction.request(), &stored(what, at(0)), now);
            *transaction = refresh;
            return command_text(Command::Forward(forwarding));
        }
        _ => panic!("no event: {line}"),
    };
    let texts: Vec<String> = commands.iter().map(command_text).collect();
    if texts.is_empty() {
        "nothing".to_owned()
    } else {
        texts.join(", ")
    }
}

fn yes_or_no(answer: bool) -> String {
    if answer { "yes" } else { "no" }.to_owned()
}

fn read_covers(name: &str) -> Covers {
    match name {
        "wanted" => Covers::Wanted,
        "lacking" => Covers::Lacking,
        _ => panic!("nothing is covered as {name}"),
    }
}

fn read_fits(name: &str) -> Fits {
    match name {
        "same" => Fits::Same,
        "other" => Fits::Other,
        _ => panic!("nothing fits as {name}"),
    }
}

fn read_joined(name: &str) -> JoinKind {
    match name {
        "waited" => JoinKind::Waited,
        "in-flight" => JoinKind::InFlight,
        _ => panic!("nothing is joined as {name}"),
    }
}

fn missing(name: &str) -> Missing {
    match name {
        "target" => Missing::Target,
        "variant" => Missing::Variant,
        _ => panic!("nothing is missing as {name}"),
    }
}

fn failure(name: &str) -> Failure {
    match name {
        "disconnected" => Failure::Disconnected,
        "protocol" => Failure::Protocol,
        "ours" => Failure::Ours,
        "link-spent" => Failure::LinkSpent { stale_for: None },
        "link-spent-stale" => Failure::LinkSpent {
            stale_for: Some(DeltaSeconds(100)),
        },
        _ => panic!("nothing fails as {name}"),
    }
}

/// A response that was asked for and received at `received`.
fn stored(what: &str, received: Now) -> StoredFacts {
    StoredFacts::new(&response(what), received.wall, received, &RULES.heuristic)
        .transformed(what.starts_with(TRANSFORMED))
}

fn response(what: &str) -> ResponseFacts {
    let what = what.strip_prefix(TRANSFORMED).unwrap_or(what);
    let (status, fields) = what.split_once(" | ").unwrap_or((what, ""));
    ResponseFacts::gather(status.parse().expect("a status"), &split(fields), START)
}

fn split(fields: &str) -> Vec<FieldLine<'_>> {
    let lines = fields.split(" | ").filter(|line| !line.is_empty());
    lines
        .map(|line| {
            let (name, value) = line.split_once(": ").expect("a field line");
            FieldLine::new(name, value.as_bytes())
        })
        .collect()
}

/// A command as scripts write it.
pub(crate) fn command_text(command: Command) -> String {
    match command {
        Command::LookUp => "look-up".to_owned(),
        Command::Serve(serving) => format!("serve age={}", serving.age.0),
        Command::Forward(forwarding) => forward_text(forwarding).to_owned(),
        Command::RefreshInBackground => "refresh".to_owned(),
        Command::Answer(refused) => format!("answer {}", refused.as_str()),
        Command::Relay => "relay".to_owned(),
        Command::Store(facts) => format!("store {}", facts_text(&facts)),
        Command::Combine(facts) => format!("combine {}", facts_text(&facts)),
        Command::KeepPart => "keep-part".to_owned(),
        Command::ForwardAgain => "forward-again".to_owned(),
        Command::Freshen(facts) => format!("freshen {}", facts_text(&facts)),
        Command::ServeMerged(serving) => format!("serve-merged age={}", serving.age.0),
        Command::Invalidate => "invalidate".to_owned(),
        Command::Drop => "drop".to_owned(),
    }
}

fn forward_text(forwarding: Forwarding) -> &'static str {
    match (forwarding.validate, forwarding.complete) {
        (false, false) => "forward",
        (true, false) => "forward validate",
        (false, true) => "forward complete",
        (true, true) => "forward validate complete",
    }
}

fn facts_text(facts: &StoredFacts) -> String {
    let (lifetime, age) = (facts.freshness_lifetime, facts.corrected_initial_age);
    let transformed = if facts.is_transformed {
        " transformed"
    } else {
        ""
    };
    format!("lifetime={} age={}{transformed}", lifetime.0, age.0)
}

/// A verdict as scripts write it.
fn verdict_text(verdict: &Verdict) -> String {
    let (handling, collapsed) = match verdict.handling {
        Handling::Collapsed(fwd) => (Handling::Forward(fwd), true),
        handling => (handling, false),
    };
    let mut text = handling.as_str().to_owned();
    let mut add = |word: String| {
        text.push(' ');
        text.push_str(&word);
    };
    if let Some(detail) = handling.detail() {
        add(detail.to_owned());
    }
    if let Some(status) = verdict.fwd_status {
        add(format!("fwd-status={status}"));
    }
    match verdict.storing {
        Some(Storing::Stored) => add("stored".to_owned()),
        Some(Storing::NotStored(why)) => add(format!("not-stored={}", why.as_str())),
        None => {}
    }
    if let Some(ttl) = verdict.ttl {
        add(format!("ttl={ttl}"));
    }
    if collapsed {
        add("collapsed".to_owned());
    }
    text
}
