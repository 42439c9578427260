//! What the origin answers: by the kind of the URL, by the one who asks, and by chance.

use super::random::{PRIVATE, VARYING};
use crate::support::Head;
use std::fmt::Write;

/// Bytes of a line of content.
pub(crate) const LINE_BYTES: usize = 32;

/// The version that a whole line of content tells, without its end.
pub(crate) fn version(line: &[u8]) -> Option<u64> {
    if line.len() != LINE_BYTES - 1 {
        return None;
    }
    let mut words = str::from_utf8(line).ok()?.trim_end_matches('-').split(' ');
    // behind the version is a space
    words.nth_back(1)?.parse().ok()
}

/// What paths begin with that a module is for, which gives requests a tag (`X-Variant`) and puts it
/// before what is stored for them.
pub(crate) const TAGGED: &str = "/tagged";

/// Whether the module is for a URL: for half of each kind.
pub(crate) fn is_tagged(path: u64) -> bool {
    (path + path / Kind::ALL.len() as u64) % 2 == 1
}

/// The path of a URL, as it is requested.
pub(crate) fn written(path: u64) -> String {
    match is_tagged(path) {
        true => format!("{TAGGED}/{path}"),
        false => format!("/{path}"),
    }
}

/// What a URL has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// The same for all; a 304 may bring cookies or say that it is private.
    Shared,
    /// Private, and the same entity tag for all.
    Private,
    /// Private for those who are known, shared for the others.
    Mixed,
    /// A cookie, and a lifetime.
    CookieWithLifetime,
    /// Answers credentials without permission to share.
    Authorized,
    VaryCookie,
    /// Varies on a field that may be removed on its way.
    VaryGroup,
    VaryStar,
    /// Served stale while it is validated, for another user's request.
    WhileRevalidate,
    NoStore,
    /// With ranges.
    Large,
    /// Often an error, with the user's name in it.
    Failing,
    /// Says which host it was asked for.
    Host,
    /// Comes late, so that others wait for it; then it is private or not.
    Slow,
}

impl Kind {
    pub(crate) const ALL: [Self; 14] = [
        Self::Slow,
        Self::Shared,
        Self::WhileRevalidate,
        Self::Mixed,
        Self::Large,
        Self::Private,
        Self::CookieWithLifetime,
        Self::Authorized,
        Self::VaryCookie,
        Self::VaryGroup,
        Self::VaryStar,
        Self::NoStore,
        Self::Failing,
        Self::Host,
    ];

    /// That of a URL.
    pub(crate) fn of(path: u64) -> Self {
        Self::ALL[usize::try_from(path).expect("small") % Self::ALL.len()]
    }

    /// Whether head and content come late, so that others wait for them.
    pub(crate) fn is_slow(self) -> bool {
        matches!(self, Self::Slow | Self::VaryCookie | Self::VaryGroup)
    }
}

/// An answer.
pub(crate) struct Reply {
    pub(crate) status: u16,
    /// Field lines, each with its CRLF.
    pub(crate) fields: String,
    pub(crate) content: Vec<u8>,
    /// In chunks.
    pub(crate) chunked: bool,
}

/// A request, as the origin sees it.
pub(crate) struct Asked<'a> {
    pub(crate) head: &'a Head,
    pub(crate) method: &'a str,
    pub(crate) path: u64,
    /// How often the URL was changed.
    pub(crate) version: u64,
    /// What chance says.
    pub(crate) die: u64,
}

impl Asked<'_> {
    fn cookie(&self) -> Option<&str> {
        self.known("cookie", "sid=tok-")
    }

    fn credentials(&self) -> Option<&str> {
        self.known("authorization", "Bearer tok-")
    }

    fn known(&self, field: &str, before: &str) -> Option<&str> {
        self.head.field(field)?.strip_prefix(before)
    }

    /// The user, if the request tells.
    fn user(&self) -> Option<&str> {
        self.cookie().or_else(|| self.credentials())
    }

    fn tag(&self) -> String {
        format!("\"{}.{}\"", self.path, self.version)
    }

    /// Asked whether what is stored is still right: it is.
    fn validates(&self, tag: &str) -> bool {
        self.head.field("if-none-match") == Some(tag)
    }

    fn shared(&self, fields: &str, lines: usize) -> Reply {
        let line = format!("pub {:05} ", self.path);
        let fields = format!("ETag: {}\r\n{fields}", self.tag());
        self.lines(fields, &line, lines)
    }

    /// So many lines that begin with `line`, and with the version then.
    fn lines(&self, fields: String, line: &str, lines: usize) -> Reply {
        Reply::new(fields, &format!("{line}{:06} ", self.version), lines)
    }

    /// For `user` alone, which `fields` say.
    fn private(&self, user: &str, fields: &str, lines: usize) -> Reply {
        let mine = format!("X-Account: {PRIVATE}{user}\r\n{fields}");
        self.lines(mine, &format!("{PRIVATE}{user} "), lines)
    }

    pub(crate) fn reply(&self) -> Reply {
        let mut reply = self.reply_to_get();
        if self.method == "POST" {
            let user = self.user().unwrap_or("nobody");
            reply = self.private(user, "Cache-Control: max-age=60\r\n", 3);
        }
        if self.method == "HEAD" {
            reply.content.clear();
            if let (200, Some(user)) = (reply.status, self.user()) {
                let _ = write!(reply.fields, "Set-Cookie: id={PRIVATE}{user}\r\n");
            }
        }
        reply
    }

    fn reply_to_get(&self) -> Reply {
        match (Kind::of(self.path), self.user()) {
            (Kind::Shared, user) => {
                // a cookie may be stored with it, if the origin puts it there
                self.validated(user, "Cache-Control: public, max-age=5\r\n")
            }
            (Kind::WhileRevalidate, user) => {
                let fields = "Cache-Control: max-age=1, stale-while-revalidate=600\r\n";
                self.validated(user, fields)
            }
            (Kind::Private, Some(user)) if self.validates("\"same\"") => {
                let fields = "ETag: \"same\"\r\nCache-Control: private\r\n";
                Reply {
                    status: 304,
                    ..self.private(user, fields, 0)
                }
            }
            (Kind::Private, Some(user)) => {
                let fields = "ETag: \"same\"\r\nCache-Control: private, max-age=60\r\n";
                self.private(user, fields, 9)
            }
            (Kind::Mixed | Kind::Slow, Some(user)) if !self.die.is_multiple_of(3) => {
                let fields = ["Cache-Control: private\r\n", "Cache-Control: no-store\r\n"];
                let fields = fields[usize::from(self.die % 3 == 1)];
                let mut reply = self.private(user, fields, 40);
                reply.chunked = self.die.is_multiple_of(2);
                reply
            }
            (Kind::CookieWithLifetime, Some(user)) => {
                let fields =
                    format!("Cache-Control: max-age=60\r\nSet-Cookie: id={PRIVATE}{user}\r\n");
                self.private(user, &fields, 9)
            }
            (Kind::Authorized, _) if self.credentials().is_some() => {
                let user = self.credentials().unwrap_or_default();
                self.private(user, "Cache-Control: max-age=60\r\n", 9)
            }
            (Kind::VaryStar, Some(user)) => {
                self.private(user, "Cache-Control: max-age=60\r\nVary: *\r\n", 9)
            }
            (Kind::NoStore, Some(user)) => {
                self.private(user, "Cache-Control: no-store, max-age=60\r\n", 9)
            }
            (Kind::VaryCookie, user) => {
                let line = self
                    .cookie()
                    .map(|_| format!("{VARYING}{} ", user.unwrap_or_default()));
                self.varying("Cookie", line)
            }
            (Kind::VaryGroup, _) => {
                let group = self.head.field("x-group");
                self.varying("X-Group", group.map(|group| format!("group {group} ")))
            }
            (Kind::Large, user) => self.large(user),
            (Kind::Failing, user) => self.failing(user),
            (Kind::Host, _) => {
                let host = self.head.field("host").unwrap_or_default();
                let fields = format!("Cache-Control: max-age=60\r\nX-Host: host={host};\r\n");
                let line = format!("host={host}; ");
                self.lines(fields, &line, 1)
            }
            _ => self.shared("Cache-Control: max-age=20\r\n", 30),
        }
    }

    /// The same for all; what says that it is still right may have something for its user.
    fn validated(&self, user: Option<&str>, fields: &str) -> Reply {
        if !self.validates(&self.tag()) {
            return match user {
                Some(user) if self.die.is_multiple_of(4) => {
                    self.private(user, "Cache-Control: private\r\n", 5)
                }
                _ => self.shared(fields, 20),
            };
        }
        let mut reply = self.shared("", 0);
        reply.status = 304;
        if let Some(user) = user {
            let mine = match self.die % 6 {
                0 => format!("Set-Cookie: id={PRIVATE}{user}\r\n"),
                1 => format!("Set-Cookie2: id={PRIVATE}{user}\r\n{fields}"),
                2 => format!("Cache-Control: private\r\nX-Account: {PRIVATE}{user}\r\n"),
                3 => format!("Cache-Control: no-store\r\nX-Account: {PRIVATE}{user}\r\n"),
                4 => format!("Vary: *\r\nX-Account: {PRIVATE}{user}\r\n"),
                _ => String::new(),
            };
            reply.fields.push_str(&mine);
        }
        reply
    }

    fn varying(&self, field: &str, line: Option<String>) -> Reply {
        let fields = format!("Cache-Control: max-age=60\r\nVary: {field}\r\n");
        match line {
            Some(line) => self.lines(fields, &line, 9),
            None => Reply {
                fields,
                ..self.shared("", 9)
            },
        }
    }

    fn large(&self, user: Option<&str>) -> Reply {
        let reply = match user {
            Some(user) if self.die.is_multiple_of(4) => {
                let fields = format!("ETag: {}\r\nCache-Control: private\r\n", self.tag());
                self.private(user, &fields, 3000)
            }
            _ => self.shared("Cache-Control: max-age=30\r\n", 3000),
        };
        let holds = self
            .head
            .field("if-range")
            .is_none_or(|tag| tag == self.tag());
        let range = self
            .head
            .field("range")
            .filter(|_| holds)
            .and_then(first_and_last);
        match range {
            Some((first, last)) if last < reply.content.len() => {
                let length = reply.content.len();
                let place = format!("Content-Range: bytes {first}-{last}/{length}\r\n");
                Reply {
                    status: 206,
                    fields: reply.fields + &place,
                    content: reply.content[first..=last].to_vec(),
                    ..reply
                }
            }
            _ => reply,
        }
    }

    fn failing(&self, user: Option<&str>) -> Reply {
        let user = user.unwrap_or("nobody");
        let status = match self.die % 9 {
            0 => 503,
            1 => 403,
            2 => 404,
            3 => 302,
            _ => return self.shared("Cache-Control: max-age=5, stale-if-error=600\r\n", 9),
        };
        let fields = format!("Cache-Control: private\r\nLocation: /{PRIVATE}{user}\r\n");
        Reply {
            status,
            ..self.private(user, &fields, 2)
        }
    }
}

impl Reply {
    /// With so many lines that begin with `line`.
    fn new(fields: String, line: &str, lines: usize) -> Self {
        let mut whole = line.as_bytes().to_vec();
        whole.resize(LINE_BYTES - 1, b'-');
        whole.push(b'\n');
        Self {
            status: 200,
            fields,
            content: whole.repeat(lines),
            chunked: false,
        }
    }
}

fn first_and_last(range: &str) -> Option<(usize, usize)> {
    let (first, last) = range.strip_prefix("bytes=")?.split_once('-')?;
    let (first, last) = (first.parse().ok()?, last.parse().ok()?);
    (first <= last).then_some((first, last))
}
