//! Which paths a rule is for: a prefix in whole segments, or a glob.
//!
//! A glob is matched as a set of places in it, one step for each byte of the path: at most its
//! length times that of the path, whatever a client sends. No place is visited twice for a byte, so
//! no path makes it try its stars in all ways.

use crate::route::is_prefix;
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;
use core::str::FromStr;

/// Most bytes of a glob: the places in one fit in a word of 128 bits.
pub const GLOB_BYTES_MAX: usize = 120;

/// Most stars of a glob, `**` as one.
pub const GLOB_STARS_MAX: usize = 8;

/// Most stars of the globs of all rules: a step for each of them may be made for each byte of a
/// path, in one pass that nothing else of the worker interrupts.
pub const STARS_MAX: usize = 512;

/// Most bytes of a prefix.
pub const PREFIX_BYTES_MAX: usize = 1024;

/// Which paths a rule is for, as they were received, without query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathPattern {
    /// This path and those below it.
    Prefix(Box<str>),
    /// The paths that a glob matches.
    Glob(Glob),
}

/// A path with stars: `*` stands for any bytes within a segment, `**` for any bytes, and `/**/` for
/// a slash, or for any number of segments between two.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Glob {
    text: Box<str>,
    tokens: Box<[Token]>,
    /// Bytes before the first star.
    head_bytes: usize,
    /// Bytes behind the last star.
    tail_bytes: usize,
    /// The only star is `**`, and is no `/**/`: head and tail decide.
    is_plain: bool,
}

/// A place of a glob.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token {
    /// This byte.
    Byte(u8),
    /// Any bytes but slashes.
    Star,
    /// Any bytes.
    Stars,
    /// Behind a slash: nothing, or any bytes and a slash.
    Segments,
    /// Within the bytes of [`Token::Segments`]. Only that leads here.
    InSegments,
}

/// Why a text is no path of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathError {
    /// It does not begin with a slash or with `**`.
    Relative,
    /// No path has this character.
    Character(char),
    /// It is longer than [`PREFIX_BYTES_MAX`], as a glob than [`GLOB_BYTES_MAX`].
    TooLong,
    /// It has more than [`GLOB_STARS_MAX`] stars.
    TooManyStars,
    /// Three or more stars stand together.
    Stars,
}

impl fmt::Display for PathError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Relative => f.write_str("a path begins with `/`"),
            Self::Character('?') => f.write_str("a path of a rule has no query"),
            Self::Character(character) => write!(f, "a path has no `{character}`"),
            Self::TooLong => write!(
                f,
                "it is longer than {PREFIX_BYTES_MAX} bytes, with `*` than {GLOB_BYTES_MAX}"
            ),
            Self::TooManyStars => write!(f, "it has more than {GLOB_STARS_MAX} stars"),
            Self::Stars => f.write_str("there is `*` and `**`, and nothing longer"),
        }
    }
}

impl core::error::Error for PathError {}

impl FromStr for PathPattern {
    type Err = PathError;

    fn from_str(text: &str) -> Result<Self, PathError> {
        if !text.starts_with('/') {
            return Err(PathError::Relative);
        }
        let fits = |c: char| c.is_ascii_graphic() && !matches!(c, '?' | '#' | '{' | '}');
        if let Some(character) = text.chars().find(|c| !fits(*c)) {
            return Err(PathError::Character(character));
        }
        if text.contains('*') {
            return Glob::parse(text).map(Self::Glob);
        }
        if text.len() > PREFIX_BYTES_MAX {
            return Err(PathError::TooLong);
        }
        Ok(Self::Prefix(text.into()))
    }
}

impl fmt::Display for PathPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Prefix(prefix) => f.write_str(prefix),
            Self::Glob(glob) => f.write_str(&glob.text),
        }
    }
}

impl PathPattern {
    /// Whether it is for a path without query.
    #[must_use]
    pub fn matches(&self, path: &str) -> bool {
        match self {
            Self::Prefix(prefix) => is_prefix(prefix, path),
            Self::Glob(glob) => glob.matches(path.as_bytes()),
        }
    }

    /// How many stars there are in it.
    pub(super) fn stars(&self) -> usize {
        let Self::Glob(glob) = self else { return 0 };
        let is_star =
            |token: &&Token| matches!(token, Token::Star | Token::Stars | Token::Segments);
        glob.tokens.iter().filter(is_star).count()
    }

    /// The first segment of all paths that it is for; `None` if they differ in it.
    pub(super) fn first_segment(&self) -> Option<&str> {
        let literal = match self {
            Self::Prefix(prefix) => prefix,
            Self::Glob(glob) => &glob.text[..glob.head_bytes],
        };
        let is_glob = matches!(self, Self::Glob(_));
        let behind = literal.strip_prefix('/')?;
        match behind.find('/') {
            Some(end) => Some(&behind[..end]),
            // a star could go on in it
            None if is_glob || behind.is_empty() => None,
            None => Some(behind),
        }
    }

    /// Whether it is for all paths that `other` is for; where that is hard to say, it says no.
    pub(super) fn covers(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Prefix(prefix), Self::Prefix(other)) => is_prefix(prefix, other),
            // what follows the head of the glob could go on in its last segment
            (Self::Prefix(prefix), Self::Glob(glob)) => {
                let head = &glob.text[..glob.head_bytes];
                is_prefix(prefix, head) && (head.len() > prefix.len() || prefix.ends_with('/'))
            }
            _ => self == other,
        }
    }
}

impl Glob {
    fn parse(text: &str) -> Result<Self, PathError> {
        if text.len() > GLOB_BYTES_MAX {
            return Err(PathError::TooLong);
        }
        if text.contains("***") {
            return Err(PathError::Stars);
        }
        let mut tokens = Vec::with_capacity(text.len());
        let mut stars = 0;
        let mut rest = text.as_bytes();
        while let [first, behind @ ..] = rest {
            rest = match rest {
                [b'*', b'*', b'/', behind @ ..]
                    if matches!(tokens.last(), Some(Token::Byte(b'/') | Token::InSegments)) =>
                {
                    tokens.extend([Token::Segments, Token::InSegments]);
                    behind
                }
                [b'*', b'*', behind @ ..] => {
                    tokens.push(Token::Stars);
                    behind
                }
                [b'*', ..] => {
                    tokens.push(Token::Star);
                    behind
                }
                _ => {
                    tokens.push(Token::Byte(*first));
                    behind
                }
            };
            stars += usize::from(!matches!(tokens.last(), Some(Token::Byte(_))));
        }
        if stars > GLOB_STARS_MAX {
            return Err(PathError::TooManyStars);
        }
        let literal = |token: &&Token| matches!(token, Token::Byte(_));
        let head_bytes = tokens.iter().take_while(literal).count();
        let tail_bytes = tokens.iter().rev().take_while(literal).count();
        Ok(Self {
            text: text.into(),
            is_plain: stars == 1 && tokens[head_bytes] == Token::Stars,
            tokens: tokens.into(),
            head_bytes,
            tail_bytes,
        })
    }

    fn matches(&self, path: &[u8]) -> bool {
        let text = self.text.as_bytes();
        let (head, tail) = (
            &text[..self.head_bytes],
            &text[text.len() - self.tail_bytes..],
        );
        if !path.starts_with(head) || !path[head.len()..].ends_with(tail) {
            return false;
        }
        self.is_plain || self.walk(&path[head.len()..])
    }

    /// Walks the places behind the head, all at once, byte by byte.
    fn walk(&self, path: &[u8]) -> bool {
        let tokens = &self.tokens[self.head_bytes..];
        let mut places = entered(tokens, 0);
        for byte in path {
            let mut next = 0;
            let mut left = places;
            while left != 0 {
                let place = left.trailing_zeros() as usize;
                left &= left - 1;
                next |= step(tokens, place, *byte);
            }
            places = next;
            if places == 0 {
                return false;
            }
        }
        places & 1 << tokens.len() != 0
    }
}

/// The places that one is at who comes to `place`: stars may stand for nothing.
fn entered(tokens: &[Token], place: usize) -> u128 {
    let at = 1 << place;
    match tokens.get(place) {
        Some(Token::Star | Token::Stars) => at | entered(tokens, place + 1),
        Some(Token::Segments) => at | entered(tokens, place + 2),
        _ => at,
    }
}

/// The places that a byte leads to from `place`.
fn step(tokens: &[Token], place: usize, byte: u8) -> u128 {
    let slash = byte == b'/';
    match tokens.get(place) {
        Some(Token::Byte(expected)) if *expected == byte => entered(tokens, place + 1),
        Some(Token::Star) if !slash => entered(tokens, place),
        Some(Token::Stars) => entered(tokens, place),
        Some(Token::Segments) if slash => 1 << (place + 1) | entered(tokens, place + 2),
        Some(Token::Segments) => 1 << (place + 1),
        Some(Token::InSegments) if slash => 1 << place | entered(tokens, place + 1),
        Some(Token::InSegments) => 1 << place,
        Some(Token::Byte(_) | Token::Star) | None => 0,
    }
}

#[cfg(test)]
mod tests;
