//! The origin: answers what it is asked by the script, and remembers it.
//!
//! What it sends tells where it came from: every answer has a number, a field of that name
//! (`X-Only-3: 3`), and content whose bytes are that number. What is meant for one user alone (RFC
//! 9111 §3, §3.5, §5.2.2.5, §5.2.2.7) also has that user's secret in it: in a field, in cookies,
//! and in a bit of every byte.

use crate::reference_store::Lines;
use crate::sequence::{Ask, Exchange, Fault, Request, Role, Say, User, Verb};

/// Bytes of every representation.
pub(crate) const LENGTH: usize = 8;

/// In bytes of content for one user alone, if that one's secret was changed.
const CHANGED: u8 = 0x40;

/// The secrets of the two: as they are, or one of them changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Secrets {
    pub(crate) changed: Option<User>,
}

impl Secrets {
    pub(crate) fn of(self, user: User) -> &'static str {
        match (user, self.changed == Some(user)) {
            (User::Ann, false) => "ann",
            (User::Ann, true) => "another-ann",
            (User::Ben, false) => "ben",
            (User::Ben, true) => "another-ben",
        }
    }
}

/// A question and its answer.
#[derive(Clone, Debug)]
pub(crate) struct OriginExchange {
    pub(crate) number: usize,
    pub(crate) exchange: usize,
    pub(crate) role: Role,
    pub(crate) at_s: u32,
    /// The request that the cache asked for.
    pub(crate) request: Request,
    /// Its method and fields as the cache sent them on.
    pub(crate) method: Verb,
    pub(crate) asked: Lines,
    pub(crate) status: u16,
    pub(crate) says: Vec<Say>,
    pub(crate) fault: Option<Fault>,
    pub(crate) lines: Lines,
    /// Where in the whole representation the content begins, and the content.
    pub(crate) first: usize,
    pub(crate) content: Vec<u8>,
}

pub(crate) struct Origin {
    secrets: Secrets,
    pub(crate) told: Vec<OriginExchange>,
}

/// Who asks, and for what.
#[derive(Clone, Copy)]
pub(crate) struct Question<'a> {
    pub(crate) index: usize,
    pub(crate) exchange: &'a Exchange,
    pub(crate) role: Role,
    pub(crate) request: &'a Request,
    pub(crate) at_s: u32,
}

impl OriginExchange {
    /// The number of the answer that a byte of content is of.
    pub(crate) fn number_of(byte: u8) -> usize {
        usize::from(byte & !CHANGED)
    }

    /// It brings fields and no content: what it sets is for its own client.
    pub(crate) fn is_update(&self) -> bool {
        self.status == 304 || self.method == Verb::Head
    }

    pub(crate) fn has(&self, say: Say) -> bool {
        self.says.contains(&say)
    }

    /// The entity tag: its version, and whether it is strong.
    pub(crate) fn tag(&self) -> Option<(u8, bool)> {
        self.says.iter().find_map(|say| match say {
            Say::Tag(version) => Some((*version, true)),
            Say::WeakTag(version) => Some((*version, false)),
            _ => None,
        })
    }

    /// Whether it says something in `Cache-Control`.
    pub(crate) fn has_directives(&self) -> bool {
        self.says.iter().any(|say| say.directive().is_some())
    }
}

impl Origin {
    pub(crate) fn new(secrets: Secrets) -> Self {
        Self {
            secrets,
            told: Vec::new(),
        }
    }

    pub(crate) fn secrets(&self) -> Secrets {
        self.secrets
    }

    /// Answers the request that the cache sent with `method` and the fields `asked`.
    pub(crate) fn answer(
        &mut self,
        question: Question<'_>,
        method: Verb,
        asked: Lines,
    ) -> &OriginExchange {
        let asked_before = self
            .told
            .iter()
            .filter(|told| told.exchange == question.index)
            .count();
        let answers = &question.exchange.answers;
        let script = &answers[asked_before.min(answers.len() - 1)];
        let field = |name: &str| {
            let line = asked.iter().find(|line| line.0.eq_ignore_ascii_case(name));
            line.map(|line| line.1.as_str())
        };
        let mut told = OriginExchange {
            number: self.told.len(),
            exchange: question.index,
            role: question.role,
            at_s: question.at_s,
            request: question.request.clone(),
            method,
            status: script.status,
            says: script.says.clone(),
            fault: script.fault,
            lines: Vec::new(),
            first: 0,
            content: Vec::new(),
            asked: Vec::new(),
        };
        let own_tag = told.says.iter().find_map(|say| match say {
            Say::Tag(_) | Say::WeakTag(_) => say.line(0, ""),
            _ => None,
        });
        let if_range = field("if-range").filter(|_| !told.has(Say::IgnoresIfRange));
        let holds = if_range.is_none_or(|tag| own_tag.as_ref().is_some_and(|own| own.1 == tag));
        let range = field("range").filter(|_| holds && method == Verb::Get);
        let range = range.and_then(place);
        told.status = match told.status {
            304 if field("if-none-match").is_some() => 304,
            206 if range.is_some() => 206,
            304 | 206 => 200,
            status => status,
        };
        let (first, last) = match (told.status, range) {
            (206, Some(range)) => range,
            _ => (0, LENGTH - 1),
        };
        told.asked = asked;
        self.write(&mut told, first, last);
        self.told.push(told);
        &self.told[self.told.len() - 1]
    }

    /// Fields and content.
    fn write(&self, told: &mut OriginExchange, first: usize, last: usize) {
        let user = told.request.user;
        let secret = self.secrets.of(user);
        let (is_private, is_update) = (self.is_private(told), told.is_update());
        let number = told.number;
        let mut add = |name: &str, value: String| told.lines.push((name.to_owned(), value));
        add("Date", date(told.at_s));
        add(&format!("X-Only-{number}"), number.to_string());
        if is_private {
            add("X-Account", secret.to_owned());
        }
        let directives: Vec<_> = told.says.iter().filter_map(|say| say.directive()).collect();
        if !directives.is_empty() {
            add("Cache-Control", directives.join(", "));
        }
        for say in &told.says {
            // a cookie that everybody may have is no secret; that of a 304 is for one user
            let secret = if is_private || is_update || *say == Say::Hop {
                secret
            } else {
                ""
            };
            if let Some((name, value)) = say.line(number, secret) {
                add(name, value);
            }
            if *say == Say::Hop {
                add("Connection", "X-Hop".to_owned());
            }
        }
        if told.status == 206 {
            add("Content-Range", format!("bytes {first}-{last}/{LENGTH}"));
        }
        if told.status == 304 || told.method == Verb::Head {
            return;
        }
        told.first = first;
        let byte = u8::try_from(number).expect("few answers");
        let changed = is_private && self.secrets.changed == Some(user);
        let byte = if changed { byte | CHANGED } else { byte };
        told.content = vec![byte; last + 1 - first];
        if told.fault == Some(Fault::Cut) {
            told.content.truncate((last + 1 - first) / 2);
        }
    }

    /// Whether the answer is for its user alone, whatever the cache has stored.
    fn is_private(&self, told: &OriginExchange) -> bool {
        let request = &told.request;
        let has = |say| told.has(say);
        let names_shared = |told: &OriginExchange| {
            let mut says = told.says.iter();
            says.any(|say| matches!(say, Say::Public | Say::SMaxAge(_)))
        };
        let permits = |told: &OriginExchange| told.has(Say::MustRevalidate) || names_shared(told);
        // a cookie that was permitted for what is stored is still permitted after a 304 or 206 that
        // says nothing of it
        let inherits = matches!(told.status, 304 | 206) && !told.has_directives();
        let cookie_is_public = names_shared(told) || inherits && self.told.iter().any(names_shared);
        told.method == Verb::Post
            || request.has(Ask::NoStore)
            || has(Say::Private)
            || has(Say::NoStore)
            || has(Say::VaryStar)
            || has(Say::VaryCookie) && request.has(Ask::Cookie)
            || request.has(Ask::Authorization) && !permits(told)
            || told.status != 304 && has(Say::SetCookie) && !cookie_is_public
    }
}

/// The bytes that a range names, as far as there are any.
fn place(range: &str) -> Option<(usize, usize)> {
    let (first, last) = range.strip_prefix("bytes=")?.split_once('-')?;
    if first.is_empty() {
        return Some((LENGTH - last.parse::<usize>().ok()?, LENGTH - 1));
    }
    let first: usize = first.parse().ok()?;
    let last = last.parse().unwrap_or(LENGTH - 1).min(LENGTH - 1);
    (first < LENGTH).then_some((first, last))
}

/// 1994-11-06 08:49:37, so many seconds later.
fn date(at_s: u32) -> String {
    let seconds = 8 * 3600 + 49 * 60 + 37 + at_s;
    format!(
        "Sun, 06 Nov 1994 {:02}:{:02}:{:02} GMT",
        seconds / 3600,
        seconds / 60 % 60,
        seconds % 60
    )
}
