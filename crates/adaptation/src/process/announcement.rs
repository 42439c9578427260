//! What a process says once on its standard output: that it serves its module, or why not.

use crate::client::served::Abilities;
use weir_extend::{Hook, LoadError};

/// Most bytes of an announcement.
pub(super) const ANNOUNCEMENT_BYTES_MAX: usize = 16 * 1024;

/// Most bytes of each text in one.
const TEXT_BYTES_MAX: usize = 4 * 1024;

/// What a process says: a line of words between tabs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Announcement {
    /// It serves the module.
    Ready(Abilities),
    /// The module is not loaded.
    Refused(LoadError),
}

impl Announcement {
    /// As it is written, with the end of the line.
    pub(super) fn line(&self) -> String {
        match self {
            Self::Ready(abilities) => {
                let hooks = Hook::ALL.into_iter();
                let hooks = hooks.filter(|hook| abilities.hooks.contains(*hook));
                let hooks: Vec<&str> = hooks.map(Hook::as_str).collect();
                format!(
                    "ready\t{}\t{}\t{}\t{}\n",
                    hooks.join(","),
                    abilities.may_transform,
                    abilities.may_transform_sent,
                    abilities.changes_stored,
                )
            }
            Self::Refused(error) => format!(
                "refused\t{}\t{}\t{}\n",
                plain(&error.option),
                plain(&error.what),
                plain(&error.hint)
            ),
        }
    }

    /// Reads a line without its end.
    pub(super) fn read(line: &str) -> Option<Self> {
        let words: Vec<&str> = line.split('\t').collect();
        match words.as_slice() {
            ["ready", hooks, transforms, transforms_sent, stored] => {
                let hooks = hooks.split(',').filter(|word| !word.is_empty());
                let hooks =
                    hooks.map(|word| Hook::ALL.into_iter().find(|hook| hook.as_str() == word));
                Some(Self::Ready(Abilities {
                    hooks: hooks.collect::<Option<_>>()?,
                    may_transform: transforms.parse().ok()?,
                    may_transform_sent: transforms_sent.parse().ok()?,
                    changes_stored: stored.parse().ok()?,
                }))
            }
            ["refused", option, what, hint] => {
                Some(Self::Refused(LoadError::new(*option, *what, *hint)))
            }
            _ => None,
        }
    }
}

/// A text without tabs and ends of lines, and not too long.
fn plain(text: &str) -> String {
    let mut end = text.len().min(TEXT_BYTES_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text[..end].replace(char::is_control, " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn announcement_is_read_as_it_is_written() {
        let ready = Announcement::Ready(Abilities {
            hooks: [Hook::RequestSent, Hook::ResponseSent]
                .into_iter()
                .collect(),
            may_transform: true,
            may_transform_sent: true,
            changes_stored: false,
        });
        let refused = Announcement::Refused(LoadError::new("lists", "no\tfile\n", "give one"));
        for (announcement, line) in [
            (
                &ready,
                "ready\trequest-sent,response-sent\ttrue\ttrue\tfalse\n",
            ),
            (&refused, "refused\tlists\tno\\tfile\\n\tgive one\n"),
        ] {
            assert_eq!(announcement.line(), line);
        }
        let line = ready.line();
        assert_eq!(Announcement::read(line.trim_end()), Some(ready));
        for line in ["", "ready", "ready\tnowhere\ttrue\ttrue\ttrue", "hello\ta"] {
            assert_eq!(Announcement::read(line), None, "{line:?}");
        }
    }

    #[test]
    fn announcement_is_never_longer_than_is_read() {
        let long = "\u{20ac}".repeat(ANNOUNCEMENT_BYTES_MAX);
        let error = LoadError::new(long.clone(), long.clone(), long);
        let line = Announcement::Refused(error).line();
        assert!(line.len() <= ANNOUNCEMENT_BYTES_MAX);
        assert!(Announcement::read(line.trim_end()).is_some());
    }
}
