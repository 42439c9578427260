//! Sequences by chance: mostly what a cache may use, mixed with what it may not.

use crate::chance::Chance;
use crate::sequence::{Answer, Ask, Exchange, Fault, Request, Say, Sequence, User, Verb};

/// Exchanges of the longest sequence.
const EXCHANGES_MAX: usize = 5;

pub(crate) fn sequence(seed: u64) -> Sequence {
    let mut chance = Chance::new(seed);
    let terms = Terms {
        versions: chance.pick(&[1, 1, 2]),
        rarer: chance.pick(&[1, 1, 4]),
        ranges: chance.percent(25),
    };
    let exchanges = 2 + chance.below(EXCHANGES_MAX - 1);
    Sequence(
        (0..exchanges)
            .map(|_| exchange(&mut chance, terms))
            .collect(),
    )
}

/// What kind of sequence it is.
#[derive(Clone, Copy)]
struct Terms {
    /// Few representations, so that tags meet.
    versions: u8,
    /// What is unusual is so many times rarer, so that long stretches of the usual are played too.
    rarer: usize,
    /// Parts of one representation, asked for one after the other.
    ranges: bool,
}

fn exchange(chance: &mut Chance, terms: Terms) -> Exchange {
    Exchange {
        pause_s: chance.pick(&[0, 0, 1, 5, 20, 150]),
        client: request(chance, terms),
        follower: chance.percent(25).then(|| request(chance, terms)),
        answers: (0..1 + chance.below(3))
            .map(|_| answer(chance, terms))
            .collect(),
    }
}

fn request(chance: &mut Chance, terms: Terms) -> Request {
    let mut asks = Vec::new();
    for (percent, ask) in [
        (30, Ask::Cookie),
        (20, Ask::Authorization),
        (30, Ask::Name(chance.pick(&['p', 'q']))),
        (10, Ask::Other(chance.pick(&['p', 'q']))),
        (10, Ask::HidesName),
        (12, Ask::Range(chance.pick(&[0, 1, 2, 3]))),
        (8, Ask::IfNoneMatch(version(chance, terms.versions))),
    ] {
        if chance.percent(percent / terms.rarer) {
            asks.push(ask);
        }
    }
    if terms.ranges && chance.percent(60) {
        asks.retain(|ask| !matches!(ask, Ask::Range(_)));
        asks.push(Ask::Range(chance.pick(&[0, 1, 2])));
    }
    if chance.percent(30) {
        asks.push(chance.pick(&[
            Ask::NoCache,
            Ask::NoCache,
            Ask::NoStore,
            Ask::MaxAge0,
            Ask::MaxStale,
            Ask::OnlyIfCached,
        ]));
    }
    Request {
        user: chance.pick(&[User::Ann, User::Ben]),
        method: chance.pick(&[
            Verb::Get,
            Verb::Get,
            Verb::Get,
            Verb::Get,
            Verb::Get,
            Verb::Get,
            Verb::Get,
            Verb::Get,
            Verb::Head,
            Verb::Post,
        ]),
        asks,
    }
}

fn answer(chance: &mut Chance, terms: Terms) -> Answer {
    let usual = [
        200, 200, 200, 200, 304, 304, 304, 304, 206, 206, 302, 404, 403, 503,
    ];
    let status = if terms.ranges {
        chance.pick(&[206, 206, 206, 206, 200, 304, 503])
    } else {
        chance.pick(&usual)
    };
    let mut says = Vec::new();
    for (percent, say) in [
        (60, Say::MaxAge(chance.pick(&[0, 10, 10, 100]))),
        (12, Say::SMaxAge(chance.pick(&[0, 10, 100]))),
        (30, Say::Public),
        (12, Say::Private),
        (6, Say::NoStore),
        (6, Say::NoCache),
        (8, Say::MustRevalidate),
        (20, Say::WhileRevalidate),
        (15, Say::IfError),
        (20, Say::VaryName),
        (10, Say::VaryOther),
        (8, Say::VaryCookie),
        (4, Say::VaryStar),
        (20, Say::SetCookie),
        (4, Say::SetCookie2),
        (4, Say::ClearSiteData),
        (5, Say::Hop),
        (15, Say::IgnoresIfRange),
    ] {
        if percent >= 30 && chance.percent(percent) || chance.percent(percent / terms.rarer) {
            says.push(say);
        }
    }
    if chance.percent(75) {
        let version = version(chance, terms.versions);
        let tag = [Say::Tag(version), Say::Tag(version), Say::WeakTag(version)];
        says.push(if terms.ranges {
            tag[0]
        } else {
            chance.pick(&tag)
        });
    }
    // a 304 that says nothing of caching leaves what was said
    if status == 304 && chance.percent(40) {
        says.retain(|say| say.directive().is_none());
    }
    let fault = chance
        .percent(10 / terms.rarer)
        .then(|| chance.pick(&[Fault::Closed, Fault::Broken, Fault::Cut]));
    Answer {
        status,
        says,
        fault,
    }
}

fn version(chance: &mut Chance, versions: u8) -> u8 {
    if versions > 1 && chance.percent(30) {
        2
    } else {
        1
    }
}
