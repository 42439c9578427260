//! What a node of a cluster tells another one to purge or invalidate, and the answer to that: the
//! content of a `POST` on a peer listener and of its response. No RFC has them.
//!
//! Both are lines of words. The first line has the version of the format, the session of the
//! node that is told, and the number of the message in it: so a copy of a message that arrives
//! later, or at another process, is recognised. The second line of a message names the members that
//! have not been told all yet. The last line may be a proof of all lines before it.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Write as _;

use crate::fields::field::is_token;

/// The most bytes of a message: room for the longest target of a request, 1 MiB, and words around
/// it.
pub const PURGE_MESSAGE_BYTES_MAX: usize = (1 << 20) + 4096;

/// The most orders of a message.
pub const PURGE_ORDERS_MAX: usize = 1024;

/// The longest that an order may have requests to other nodes held back, milliseconds.
pub const PURGE_HOLD_MS_MAX: u32 = 15 * 60 * 1000;

/// The most members that a message names as behind; of more it says that all are.
pub const BEHIND_NAMES_MAX: usize = 32;

/// The first word of a message, with the version of the format.
const MESSAGE: &str = "purges 1";

/// The first word of the second line of a message.
const BEHIND: &str = "behind";

/// All members, in the place of their names.
const EVERY_MEMBER: &str = "*";

/// The first word of an answer.
const ANSWER: &str = "purged 1";

/// The session of a process that the sender does not know.
pub const UNKNOWN_SESSION: &str = "-";

/// Where in the sequence of messages to one process of a node a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PurgeSequence<'a> {
    /// What the process that is told calls itself, in base64; [`UNKNOWN_SESSION`] if the sender
    /// does not know that.
    pub session: &'a str,
    /// Greater in each message of a sender; in an answer, the greatest that was received.
    pub number: u64,
}

/// One purge or invalidation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PurgeOrder<'a> {
    /// So long the node fetches what is purged from the origin alone, milliseconds.
    pub hold_ms: u32,
    /// What is purged.
    pub what: PurgedTarget<'a>,
}

/// What is purged or invalidated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PurgedTarget<'a> {
    /// A target of the listeners of one mode, invalidated by an unsafe request (RFC 9111 §4.4).
    Invalidated {
        /// The mode, a token.
        mode: &'a str,
        /// The URL.
        url: &'a str,
    },
    /// A URL at listeners of all modes, purged by the operator.
    Url(&'a str),
    /// All that is stored.
    All,
    /// Nothing is dropped: what was stored before is validated at its next use, since the node
    /// that tells it does not know any more what there is to purge.
    Validate,
}

/// The members that a node has not told all of its purges: they may have what was purged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MembersBehind<'a> {
    /// What the process that says this calls itself: another one does not know what members have
    /// missed before.
    pub process: &'a str,
    /// Their names; `None`: all members may be.
    pub names: Option<Vec<&'a str>>,
}

/// What became of one order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PurgeOutcome {
    /// Stored responses that were dropped, as far as that is known.
    pub removed: u64,
    /// It survives a crash of the node.
    pub is_durable: bool,
}

/// It is written into a field, too.
fn is_session(word: &str) -> bool {
    let is_of_base64 = |byte: u8| byte.is_ascii_alphanumeric() || b"+/=".contains(&byte);
    word == UNKNOWN_SESSION || !word.is_empty() && word.bytes().all(is_of_base64)
}

impl<'a> PurgeSequence<'a> {
    fn read(line: &'a str, word: &str) -> Option<Self> {
        let rest = line.strip_prefix(word)?.strip_prefix(' ')?;
        let (session, number) = rest.split_once(' ')?;
        Some(Self {
            session: Some(session).filter(|session| is_session(session))?,
            number: decimal(number)?,
        })
    }

    fn write(&self, word: &str, out: &mut String) {
        debug_assert!(is_session(self.session));
        let _infallible = writeln!(out, "{word} {} {}", self.session, self.number);
    }
}

impl<'a> PurgeOrder<'a> {
    /// Reads a line without its end; `None` if it is none.
    #[must_use]
    pub fn read(line: &'a str) -> Option<Self> {
        let (word, rest) = line.split_once(' ')?;
        let (hold, rest) = match rest.split_once(' ') {
            Some((hold, rest)) => (hold, Some(rest)),
            None => (rest, None),
        };
        let hold_ms = u32::try_from(decimal(hold)?).ok()?;
        let what = match (word, rest) {
            ("invalidate", Some(rest)) => {
                let (mode, url) = rest.split_once(' ')?;
                Some(mode).filter(|mode| is_token(mode.as_bytes()))?;
                PurgedTarget::Invalidated {
                    mode,
                    url: Some(url).filter(|url| is_word(url))?,
                }
            }
            ("purge", Some(url)) => PurgedTarget::Url(Some(url).filter(|url| is_word(url))?),
            ("purge-all", None) => PurgedTarget::All,
            ("validate", None) => PurgedTarget::Validate,
            _ => return None,
        };
        (hold_ms <= PURGE_HOLD_MS_MAX).then_some(Self { hold_ms, what })
    }

    /// Appends its line.
    pub fn write(&self, out: &mut String) {
        let hold_ms = self.hold_ms.min(PURGE_HOLD_MS_MAX);
        let _infallible = match self.what {
            PurgedTarget::Invalidated { mode, url } => {
                writeln!(out, "invalidate {hold_ms} {mode} {url}")
            }
            PurgedTarget::Url(url) => writeln!(out, "purge {hold_ms} {url}"),
            PurgedTarget::All => writeln!(out, "purge-all {hold_ms}"),
            PurgedTarget::Validate => writeln!(out, "validate {hold_ms}"),
        };
    }
}

impl<'a> MembersBehind<'a> {
    fn read(line: &'a str) -> Option<Self> {
        let mut words = line.split(' ');
        let (Some(BEHIND), Some(process)) = (words.next(), words.next()) else {
            return None;
        };
        let names: Vec<&str> = words.take(BEHIND_NAMES_MAX + 1).collect();
        let are_words = names.iter().chain([&process]).all(|word| is_word(word));
        if !are_words || names.len() > BEHIND_NAMES_MAX {
            return None;
        }
        let names = (names != [EVERY_MEMBER]).then_some(names);
        Some(Self { process, names })
    }

    fn write(&self, out: &mut String) {
        let _infallible = write!(out, "{BEHIND} {}", self.process);
        let names = self.names.as_deref().unwrap_or(&[EVERY_MEMBER]);
        debug_assert!(names.len() <= BEHIND_NAMES_MAX);
        for name in names {
            let _infallible = write!(out, " {name}");
        }
        out.push('\n');
    }
}

/// A message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PurgeMessage<'a> {
    /// Which one it is.
    pub sequence: PurgeSequence<'a>,
    /// Which members the sender has not told all of its purges.
    pub behind: MembersBehind<'a>,
    /// What it says, at most [`PURGE_ORDERS_MAX`].
    pub orders: Vec<PurgeOrder<'a>>,
}

impl<'a> PurgeMessage<'a> {
    /// Reads a message without its proof; `None` if it is none. URLs are words without white space
    /// here, and no more.
    #[must_use]
    pub fn read(text: &'a str) -> Option<Self> {
        let mut lines = lines(text)?;
        let sequence = PurgeSequence::read(lines.next()?, MESSAGE)?;
        let behind = MembersBehind::read(lines.next()?)?;
        let mut orders = Vec::new();
        for line in lines {
            if orders.len() == PURGE_ORDERS_MAX {
                return None;
            }
            orders.push(PurgeOrder::read(line)?);
        }
        Some(Self {
            sequence,
            behind,
            orders,
        })
    }

    /// Appends the first two lines of a message.
    pub fn begin(sequence: PurgeSequence<'_>, behind: &MembersBehind<'_>, out: &mut String) {
        sequence.write(MESSAGE, out);
        behind.write(out);
    }
}

/// The answer to a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PurgeAnswer<'a> {
    /// The session of the node that answers, and the greatest number that it has received.
    pub sequence: PurgeSequence<'a>,
    /// What became of the orders, in their order; none if the message was not the next one.
    pub outcomes: Vec<PurgeOutcome>,
}

impl<'a> PurgeAnswer<'a> {
    /// Reads an answer without its proof; `None` if it is none.
    #[must_use]
    pub fn read(text: &'a str) -> Option<Self> {
        let mut lines = lines(text)?;
        let sequence = PurgeSequence::read(lines.next()?, ANSWER)?;
        let mut outcomes = Vec::new();
        for line in lines {
            if outcomes.len() == PURGE_ORDERS_MAX {
                return None;
            }
            let (word, removed) = line.split_once(' ')?;
            outcomes.push(PurgeOutcome {
                removed: decimal(removed)?,
                is_durable: match word {
                    "durable" => true,
                    "in-force" => false,
                    _ => return None,
                },
            });
        }
        Some(Self { sequence, outcomes })
    }

    /// Appends it.
    pub fn write(&self, out: &mut String) {
        self.sequence.write(ANSWER, out);
        for outcome in &self.outcomes {
            let word = if outcome.is_durable {
                "durable"
            } else {
                "in-force"
            };
            let _infallible = writeln!(out, "{word} {}", outcome.removed);
        }
    }
}

/// Appends the last line: the proof of what is in `out`, base64. Without one, nothing.
pub fn write_purge_proof(proof: &str, out: &mut String) {
    if !proof.is_empty() {
        let _infallible = writeln!(out, "proof {proof}");
    }
}

/// The lines that are proved, and their proof; that is empty if there is none.
#[must_use]
pub fn split_purge_proof(text: &str) -> (&str, &str) {
    let last = text.strip_suffix('\n').unwrap_or(text);
    let begin = last.rfind('\n').map_or(0, |at| at + 1);
    match last[begin..].strip_prefix("proof ") {
        Some(proof) => (&text[..begin], proof),
        None => (text, ""),
    }
}

/// The lines of a text whose last one ends, too.
fn lines(text: &str) -> Option<impl Iterator<Item = &str>> {
    let text = text.strip_suffix('\n')?;
    Some(text.split('\n'))
}

/// Whether `text` is a word: it has neither white space nor control characters of ASCII.
fn is_word(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte > b' ' && byte != 0x7f)
}

/// A decimal number without sign and leading zeros.
fn decimal(text: &str) -> Option<u64> {
    let is_written_so = text.bytes().all(|byte| byte.is_ascii_digit())
        && (text.len() == 1 || !text.starts_with('0'));
    is_written_so.then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SEQUENCE: PurgeSequence<'static> = PurgeSequence {
        session: "c2Vzc2lvbg==",
        number: 7,
    };

    #[test]
    fn message_has_a_line_for_each_order() {
        let text = "purges 1 c2Vzc2lvbg== 7\nbehind cHJvY2Vzcw== b c.example:80\ninvalidate 5000 gateway http://a/x?y\npurge 10000 https://b/\npurge-all 0\nvalidate 1\n";
        let orders = [
            PurgeOrder {
                hold_ms: 5000,
                what: PurgedTarget::Invalidated {
                    mode: "gateway",
                    url: "http://a/x?y",
                },
            },
            PurgeOrder {
                hold_ms: 10_000,
                what: PurgedTarget::Url("https://b/"),
            },
            PurgeOrder {
                hold_ms: 0,
                what: PurgedTarget::All,
            },
            PurgeOrder {
                hold_ms: 1,
                what: PurgedTarget::Validate,
            },
        ];
        let behind = MembersBehind {
            process: "cHJvY2Vzcw==",
            names: Some(vec!["b", "c.example:80"]),
        };
        let message = PurgeMessage::read(text).expect("a message");
        assert_eq!(
            (message.sequence, &message.behind, &*message.orders),
            (SEQUENCE, &behind, &orders[..])
        );
        let mut written = String::new();
        PurgeMessage::begin(SEQUENCE, &behind, &mut written);
        orders.iter().for_each(|order| order.write(&mut written));
        assert_eq!(written, text);
    }

    #[test]
    fn message_that_is_not_written_so_is_refused() {
        for text in [
            "",
            "purges 1 s 7",
            "purges 2 s 7\n",
            "purges 1 s\n",
            "purges 1  7\n",
            "purges 1 s -7\n",
            "purges 1 s 07\n",
            "purges 1 s 18446744073709551616\n",
            "purges 1 s 7 8\n",
            "purges 1 s 7\n",
            "purges 1 s 7\n\n",
            "purges 1 s 7\npurge-all 0\n",
            "purges 1 s 7\nbehind\n",
            "purges 1 s 7\nbehind \n",
            "purges 1 s 7\nbehind p \n",
            "purges 1 s 7\nbehind p b  c\n",
            "purges 1 s 7\nbehind p\nbehind p\n",
            "purges 1 s 7\r\n",
            "purges 1 s 7\nbehind p\npurge-all\n",
            "purges 1 s 7\nbehind p\npurge-all 900001\n",
            "purges 1 s 7\nbehind p\npurge-all 0 x\n",
            "purges 1 s 7\nbehind p\npurge 0\n",
            "purges 1 s 7\nbehind p\npurge 0 \n",
            "purges 1 s 7\nbehind p\npurge 0 http://a/ x\n",
            "purges 1 s 7\nbehind p\ninvalidate 0 http://a/\n",
            "purges 1 s 7\nbehind p\ninvalidate 0 gate:way http://a/\n",
            "purges 1 s 7\nbehind p\ninvalidate 0 gateway http://a/\t\n",
            "purges 1 s 7\nbehind p\nkeep 0 http://a/\n",
        ] {
            assert_eq!(PurgeMessage::read(text), None, "{text:?}");
        }
        let many = |count| {
            let text = String::from("purges 1 s 7\nbehind p\n") + &"purge-all 0\n".repeat(count);
            PurgeMessage::read(&text).is_some()
        };
        assert!(many(PURGE_ORDERS_MAX));
        assert!(!many(PURGE_ORDERS_MAX + 1));
    }

    #[test]
    fn message_names_members_that_are_behind_up_to_a_bound() {
        let names = |count: usize| {
            let text = String::from("purges 1 s 7\nbehind p") + &" b".repeat(count) + "\n";
            PurgeMessage::read(&text).map(|message| message.behind.names.map(|names| names.len()))
        };
        assert_eq!(names(0), Some(Some(0)));
        assert_eq!(names(BEHIND_NAMES_MAX), Some(Some(BEHIND_NAMES_MAX)));
        assert_eq!(names(BEHIND_NAMES_MAX + 1), None);
        let every = MembersBehind {
            process: "p",
            names: None,
        };
        let mut text = String::new();
        PurgeMessage::begin(SEQUENCE, &every, &mut text);
        assert_eq!(text, "purges 1 c2Vzc2lvbg== 7\nbehind p *\n");
        assert_eq!(PurgeMessage::read(&text).map(|it| it.behind), Some(every));
    }

    #[test]
    fn answer_has_an_outcome_for_each_order() {
        let text = "purged 1 c2Vzc2lvbg== 7\ndurable 3\nin-force 0\n";
        let answer = PurgeAnswer::read(text).expect("an answer");
        let outcome = |removed, is_durable| PurgeOutcome {
            removed,
            is_durable,
        };
        assert_eq!(answer.sequence, SEQUENCE);
        assert_eq!(answer.outcomes, [outcome(3, true), outcome(0, false)]);
        let mut written = String::new();
        answer.write(&mut written);
        assert_eq!(written, text);
        for text in [
            "purges 1 s 7\n",
            "purged 1 s 7\ndurable\n",
            "purged 1 s 7\nlost 1\n",
        ] {
            assert_eq!(PurgeAnswer::read(text), None, "{text:?}");
        }
    }

    #[test]
    fn proof_is_the_last_line_and_of_all_before_it() {
        let check =
            |text: &str, expected| assert_eq!(split_purge_proof(text), expected, "{text:?}");
        check("a\nb\nproof YQ==\n", ("a\nb\n", "YQ=="));
        check("a\nproof YQ==\nb\n", ("a\nproof YQ==\nb\n", ""));
        check("proof YQ==\n", ("", "YQ=="));
        check("a\n", ("a\n", ""));
        check("", ("", ""));
        let mut text = String::from("a\n");
        write_purge_proof("", &mut text);
        assert_eq!(text, "a\n");
        write_purge_proof("YQ==", &mut text);
        assert_eq!(split_purge_proof(&text), ("a\n", "YQ=="));
    }

    proptest! {
        #[test]
        fn no_text_makes_the_readers_fail(text in "(purge[sd] 1 [a-z-]{0,3} [0-9]{0,3}\n(behind [a-z *]{0,9}\n)?)?[a-z0-9 :/\n\u{e4}-]{0,200}") {
            let (signed, _) = split_purge_proof(&text);
            let _ = (PurgeMessage::read(signed), PurgeAnswer::read(signed));
        }
    }
}
