//! Fields by which a proxy and the process of one of its modules say what ICAP has no words for.
//!
//! A server uses them only for a request that has [`CALLER`].

use weir_extend::ListenerMode;
use weir_icap::AnswerHead;

/// A request with this field is of a proxy that runs a module in a process of its own. Its value is
/// the mode of the listener. The proxy keeps the content behind the preview: it need not be sent
/// back if it stays as it was.
pub(crate) const CALLER: &str = "X-Weir-Caller";

/// The variant that the module has set for a request.
pub(crate) const VARIANT: &str = "X-Weir-Variant";

/// What the answer is, where ICAP does not tell: one of the words below.
pub(crate) const ANSWER: &str = "X-Weir-Answer";

/// The head is another one, and the content stays as it was.
pub(crate) const HEAD: &str = "head";

/// The module answers by itself.
pub(crate) const RESPONSE: &str = "response";

/// The value of [`CALLER`].
pub(crate) const fn word_of(mode: ListenerMode) -> &'static str {
    match mode {
        ListenerMode::Forward => "forward",
        ListenerMode::Gateway => "gateway",
    }
}

/// The mode that a value of [`CALLER`] says.
pub(crate) fn mode_of(word: &[u8]) -> ListenerMode {
    match word {
        b"gateway" => ListenerMode::Gateway,
        _ => ListenerMode::Forward,
    }
}

/// What an answer says by these fields.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct AnswerNotes {
    pub(crate) variant: Option<String>,
    /// The content stays as it was.
    pub(crate) is_head: bool,
    /// The module answers by itself.
    pub(crate) is_response: bool,
}

impl AnswerNotes {
    pub(crate) fn read(answer: &AnswerHead) -> Self {
        let text = |name| {
            let value = answer.fields().get(name)?;
            std::str::from_utf8(value).ok().map(str::to_owned)
        };
        let word = text(ANSWER);
        Self {
            variant: text(VARIANT),
            is_head: word.as_deref() == Some(HEAD),
            is_response: word.as_deref() == Some(RESPONSE),
        }
    }
}
