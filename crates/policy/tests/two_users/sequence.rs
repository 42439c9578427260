//! What is played: exchanges of two users with one origin, by way of one cache.
//!
//! Everything is a list of small items, so that a sequence that fails can be shortened by leaving
//! items out, and printed on one line an exchange.

use std::fmt::{self, Display, Formatter};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum User {
    Ann,
    Ben,
}

/// Who of an exchange asks the origin, or sees a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Client,
    /// Sends its request while the client's is on its way.
    Follower,
    /// The cache itself, after it served a stale response.
    Background,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sequence(pub(crate) Vec<Exchange>);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Exchange {
    /// Seconds since the exchange before.
    pub(crate) pause_s: u32,
    pub(crate) client: Request,
    pub(crate) follower: Option<Request>,
    /// What the origin answers to the first, second, ... request of this exchange, from either
    /// user; the last one to all others.
    pub(crate) answers: Vec<Answer>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) user: User,
    pub(crate) method: Verb,
    pub(crate) asks: Vec<Ask>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    Get,
    Head,
    Post,
}

/// A field of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ask {
    /// `Cookie` with the user's secret.
    Cookie,
    /// `Authorization` with the user's secret.
    Authorization,
    /// `X-Name`.
    Name(char),
    /// `X-Other`.
    Other(char),
    /// `Connection: X-Name`: the origin does not get that field.
    HidesName,
    NoCache,
    NoStore,
    MaxAge0,
    MaxStale,
    OnlyIfCached,
    /// The first half, the second half, the last two bytes, or beyond the end.
    Range(u8),
    IfNoneMatch(u8),
}

/// What the origin answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    /// A 304 is sent if there is an `If-None-Match`, else a 200; a 206 if there is a `Range` and
    /// `If-Range` holds, else a 200.
    pub(crate) status: u16,
    pub(crate) says: Vec<Say>,
    pub(crate) fault: Option<Fault>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The connection ends without a response.
    Closed,
    /// What comes is no HTTP.
    Broken,
    /// Half the content comes.
    Cut,
}

/// A field of a response, or a directive of its `Cache-Control`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Say {
    MaxAge(u32),
    SMaxAge(u32),
    Public,
    Private,
    NoStore,
    NoCache,
    MustRevalidate,
    /// `stale-while-revalidate=100`
    WhileRevalidate,
    /// `stale-if-error=100`
    IfError,
    VaryName,
    VaryOther,
    VaryCookie,
    VaryStar,
    SetCookie,
    SetCookie2,
    ClearSiteData,
    /// A strong entity tag.
    Tag(u8),
    WeakTag(u8),
    /// `Connection: X-Hop` and `X-Hop`.
    Hop,
    /// Nothing: the origin does not heed `If-Range`.
    IgnoresIfRange,
}

impl Request {
    pub(crate) fn has(&self, ask: Ask) -> bool {
        self.asks.contains(&ask)
    }

    /// Nothing but a GET, perhaps with what does not matter to a cache.
    pub(crate) fn is_plain(&self) -> bool {
        let harmless = |ask: &Ask| {
            matches!(
                ask,
                Ask::Cookie | Ask::Name(_) | Ask::Other(_) | Ask::HidesName
            )
        };
        self.method == Verb::Get && self.asks.iter().all(harmless)
    }
}

impl Verb {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Head => "HEAD",
            Self::Post => "POST",
        }
    }
}

impl Ask {
    /// The field: its name and value, `secret` being the user's.
    pub(crate) fn line(self, secret: &str) -> (&'static str, String) {
        match self {
            Self::Cookie => ("Cookie", format!("sid={secret}")),
            Self::Authorization => ("Authorization", format!("Bearer {secret}")),
            Self::Name(value) => ("X-Name", value.into()),
            Self::Other(value) => ("X-Other", value.into()),
            Self::HidesName => ("Connection", "X-Name".into()),
            Self::NoCache => ("Cache-Control", "no-cache".into()),
            Self::NoStore => ("Cache-Control", "no-store".into()),
            Self::MaxAge0 => ("Cache-Control", "max-age=0".into()),
            Self::MaxStale => ("Cache-Control", "max-stale".into()),
            Self::OnlyIfCached => ("Cache-Control", "only-if-cached".into()),
            Self::Range(which) => (
                "Range",
                ["bytes=0-3", "bytes=4-7", "bytes=-2", "bytes=20-"][usize::from(which)].into(),
            ),
            Self::IfNoneMatch(version) => ("If-None-Match", format!("\"v{version}\"")),
        }
    }
}

impl Say {
    /// The field and its value; `number` is the response's, `secret` is its user's or nothing. None
    /// for a directive.
    pub(crate) fn line(self, number: usize, secret: &str) -> Option<(&'static str, String)> {
        Some(match self {
            Self::VaryName => ("Vary", "X-Name".into()),
            Self::VaryOther => ("Vary", "X-Other".into()),
            Self::VaryCookie => ("Vary", "Cookie".into()),
            Self::VaryStar => ("Vary", "*".into()),
            Self::SetCookie => ("Set-Cookie", format!("sid={number}.{secret}")),
            Self::SetCookie2 => ("Set-Cookie2", format!("sid={number}.{secret}")),
            Self::ClearSiteData => ("Clear-Site-Data", format!("\"{number}.{secret}\"")),
            Self::Tag(version) => ("ETag", format!("\"v{version}\"")),
            Self::WeakTag(version) => ("ETag", format!("W/\"v{version}\"")),
            Self::Hop => ("X-Hop", secret.into()),
            _ => return None,
        })
    }

    /// The directive of `Cache-Control`; None for a field.
    pub(crate) fn directive(self) -> Option<String> {
        Some(match self {
            Self::MaxAge(seconds) => format!("max-age={seconds}"),
            Self::SMaxAge(seconds) => format!("s-maxage={seconds}"),
            Self::Public => "public".into(),
            Self::Private => "private".into(),
            Self::NoStore => "no-store".into(),
            Self::NoCache => "no-cache".into(),
            Self::MustRevalidate => "must-revalidate".into(),
            Self::WhileRevalidate => "stale-while-revalidate=100".into(),
            Self::IfError => "stale-if-error=100".into(),
            _ => return None,
        })
    }
}

impl Display for Sequence {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for (at, exchange) in self.0.iter().enumerate() {
            writeln!(f, "  {at}: {exchange}")?;
        }
        Ok(())
    }
}

impl Display for Exchange {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "after {} s, {}", self.pause_s, self.client)?;
        if let Some(follower) = &self.follower {
            write!(f, ", meanwhile {follower}")?;
        }
        for answer in &self.answers {
            write!(f, " -> {} {:?}", answer.status, answer.says)?;
            if let Some(fault) = answer.fault {
                write!(f, " {fault:?}")?;
            }
        }
        Ok(())
    }
}

impl Display for Request {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:?} {} {:?}",
            self.user,
            self.method.as_str(),
            self.asks
        )
    }
}
