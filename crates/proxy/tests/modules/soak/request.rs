//! Random requests of two users, and the content that the origin has for them.

use crate::content::random::Chance;

/// Users.
pub(super) const USERS: [&str; 2] = ["tok-ann", "tok-bob"];

/// What a request is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Stored, for all.
    Shared,
    /// For one user, and never stored.
    Private,
    /// Stored, for those who send the same field.
    Vary,
    /// The content of the request comes back.
    Echo,
}

/// How a client treats its request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Manner {
    Waits,
    /// It disconnects behind the response head.
    LeavesAtHead,
    /// It sends half of the content and disconnects.
    LeavesInContent,
}

/// A request.
#[derive(Clone, Debug)]
pub(super) struct Request {
    pub(super) kind: Kind,
    pub(super) user: usize,
    pub(super) path: String,
    pub(super) is_head: bool,
    /// First and last byte.
    pub(super) range: Option<(usize, usize)>,
    pub(super) manner: Manner,
    pub(super) content: Vec<u8>,
    pub(super) is_chunked: bool,
}

impl Request {
    pub(super) fn random(chance: &mut Chance) -> Self {
        let kind = [Kind::Shared, Kind::Private, Kind::Vary, Kind::Echo][chance.below(4)];
        let letter = ["s", "p", "v", "e"][kind as usize];
        let sizes = [0, 1, 40, 40, 70_001, 250_000];
        let bytes = sizes[chance.below(sizes.len())];
        let path = format!("/{letter}/{}/{bytes}", chance.below(2));
        let user = chance.below(2);
        let is_echo = kind == Kind::Echo;
        let first = chance.below(20);
        let last = first + chance.below(20);
        let is_part = !is_echo && bytes >= 40 && chance.below(4) == 0;
        let manner = match chance.below(8) {
            0 if is_echo && bytes > 1 => Manner::LeavesInContent,
            0 | 1 => Manner::LeavesAtHead,
            _ => Manner::Waits,
        };
        Self {
            kind,
            user,
            is_head: !is_echo && !is_part && chance.below(8) == 0,
            range: is_part.then_some((first, last)),
            manner,
            content: match is_echo {
                true => content(&path, USERS[user], bytes),
                false => Vec::new(),
            },
            path,
            is_chunked: chance.below(2) == 0,
        }
    }

    /// What the origin sends if no module changes what it is sent.
    pub(super) fn origin_content(&self) -> Vec<u8> {
        match self.kind {
            Kind::Echo => self.content.clone(),
            kind => content(
                &self.path,
                owner(kind, USERS[self.user]),
                bytes_of(&self.path),
            ),
        }
    }

    /// Its bytes; behind some of them it may be broken off.
    pub(super) fn written(&self) -> (Vec<u8>, Vec<u8>) {
        let method = match self.kind {
            Kind::Echo => "POST",
            _ if self.is_head => "HEAD",
            _ => "GET",
        };
        let user = USERS[self.user];
        let mut head = format!("{method} {} HTTP/1.1\r\nHost: a.example\r\n", self.path);
        head += &format!("Cookie: sid={user}\r\nX-Group: {user}\r\n");
        if let Some((first, last)) = self.range {
            head += &format!("Range: bytes={first}-{last}\r\n");
        }
        let bytes = self.content.len();
        let content = match self.kind {
            Kind::Echo if self.is_chunked && bytes > 0 => {
                head += "Transfer-Encoding: chunked\r\n";
                let line = format!("{bytes:x}\r\n");
                [line.as_bytes(), &self.content, b"\r\n0\r\n\r\n"].concat()
            }
            Kind::Echo => {
                head += &format!("Content-Length: {bytes}\r\n");
                self.content.clone()
            }
            _ => Vec::new(),
        };
        (format!("{head}\r\n").into_bytes(), content)
    }
}

/// Whom content of this kind is for.
pub(super) fn owner(kind: Kind, user: &str) -> &str {
    match kind {
        Kind::Shared => "all",
        Kind::Private | Kind::Vary | Kind::Echo => user,
    }
}

pub(super) fn bytes_of(path: &str) -> usize {
    let last = path.rsplit('/').next().expect("a part");
    last.parse().expect("a number")
}

/// So many bytes, which say where they stand and for whom they are.
pub(super) fn content(path: &str, owner: &str, bytes: usize) -> Vec<u8> {
    let mut content = Vec::with_capacity(bytes + 64);
    while content.len() < bytes {
        let line = format!("{owner} {path} {}\n", content.len());
        content.extend_from_slice(line.as_bytes());
    }
    content.truncate(bytes);
    content
}
