//! Modules that tests serve.

use std::future::ready;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use weir_extend::{
    Answer, Call, Exchange, Hook, Hooks, Host, Larger, LocalResponse, Module, Pending, Piece,
    Progress, RequestHead, ResponseHead, Transform, UnchargedMemory, Whole, WholeHandle, Worked,
};

/// What a module does, at the hooks of received heads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Does {
    /// Nothing.
    Nothing,
    /// Content becomes upper case, and the head has a field more.
    Upper,
    /// The same of responses alone, without their content codings.
    PlainUpper,
    /// The same, once it has waited with a transform that takes nothing.
    LatePlainUpper,
    /// The same of responses that are collected before their head is decided on.
    WholeUpper,
    /// Responses, and requests with `block` in their path, are refused.
    Block,
    /// Content with `EICAR` in it is refused with 403, however it is cut.
    Scan,
    /// Each call panics.
    Panics,
}

/// A module that does something, and counts its exchanges.
#[derive(Debug)]
pub(super) struct Scripted {
    does: Does,
    pub(super) begun: AtomicU64,
    pub(super) state: Mutex<String>,
}

impl Scripted {
    pub(super) fn new(does: Does) -> Arc<Self> {
        Arc::new(Self {
            does,
            begun: AtomicU64::new(0),
            state: Mutex::default(),
        })
    }
}

impl Module for Scripted {
    fn hooks(&self) -> Hooks {
        [Hook::RequestReceived, Hook::ResponseReceived]
            .into_iter()
            .collect()
    }

    fn may_transform(&self) -> bool {
        true
    }

    fn state(&self) -> String {
        self.state.lock().unwrap().clone()
    }

    fn begin(&self, _: &Rc<dyn Host>) -> Box<dyn Exchange> {
        self.begun.fetch_add(1, Ordering::Relaxed);
        Box::new(Player {
            does: self.does,
            whole: None,
            has_waited: false,
        })
    }
}

struct Player {
    does: Does,
    whole: Option<WholeHandle>,
    has_waited: bool,
}

fn refusal() -> Answer {
    let response = LocalResponse::new(403, "refused by the test").expect("a response");
    let response = response.with("X-Refused", b"yes").expect("a field");
    Answer::Respond(response)
}

impl Exchange for Player {
    fn request_received(&mut self, head: &mut RequestHead<'_>, _: &Call) -> Answer {
        match self.does {
            Does::Block if head.path_and_query().contains("block") => return refusal(),
            Does::Upper => {
                head.fields.set("X-Upper", b"yes").expect("a field");
                // where it is not permitted it passes as it is
                let _ = head.transform(Box::new(Upper));
            }
            Does::Scan => head.inspect(Box::new(Scan)),
            Does::Panics => panic!("as the test has it"),
            Does::Nothing
            | Does::Block
            | Does::PlainUpper
            | Does::LatePlainUpper
            | Does::WholeUpper => {}
        }
        Answer::Continue
    }

    fn response_received(&mut self, head: &mut ResponseHead<'_>, _: &Call) -> Answer {
        match self.does {
            Does::Block => return refusal(),
            Does::Upper => {
                head.fields.set("X-Upper", b"yes").expect("a field");
                // where it is not permitted it passes as it is
                let _ = head.transform(Box::new(Upper));
            }
            Does::LatePlainUpper if !self.has_waited => {
                self.has_waited = true;
                return match head.transform(Box::new(Waiting)) {
                    Ok(()) => Answer::Defer,
                    Err(_) => Answer::Continue,
                };
            }
            Does::PlainUpper | Does::LatePlainUpper => {
                let _ = head.transform_plain(Box::new(Upper));
            }
            Does::WholeUpper if self.whole.is_none() => {
                let whole = whole_upper();
                self.whole = Some(whole.handle());
                return match head.transform_plain(Box::new(whole)) {
                    Ok(()) => Answer::Defer,
                    Err(_) => Answer::Continue,
                };
            }
            Does::WholeUpper => {
                head.fields.set("X-Whole", b"yes").expect("a field");
            }
            Does::Scan => head.inspect(Box::new(Scan)),
            Does::Panics => panic!("as the test has it"),
            Does::Nothing => {}
        }
        Answer::Continue
    }

    fn poll_deferred(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        match &self.whole {
            Some(whole) => whole.poll(cx).map(drop),
            None => Poll::Ready(()),
        }
    }
}

/// Collects a mebibyte at most, and fails with more.
fn whole_upper() -> Whole {
    let work = |content: Vec<u8>| -> Pending<Worked> {
        Box::pin(ready(Worked::Content(content.to_ascii_uppercase())))
    };
    let memory = Box::new(UnchargedMemory);
    Whole::new(1024 * 1024, Larger::Fail, memory, Box::new(work))
}

/// Takes nothing.
struct Waiting;

impl Transform for Waiting {
    fn transform(&mut self, _: &mut Piece<'_>) -> Progress {
        Progress::Continue
    }
}

struct Upper;

impl Transform for Upper {
    fn transform(&mut self, piece: &mut Piece<'_>) -> Progress {
        let count = piece.put(&piece.input().to_ascii_uppercase());
        piece.take(count);
        match piece.is_last() && piece.input().is_empty() {
            true => Progress::Done,
            false => Progress::Continue,
        }
    }
}

/// Lets content pass unless it has a word in it: holds what may be the beginning of it.
struct Scan;

const WORD: &[u8] = b"EICAR";

impl Transform for Scan {
    fn transform(&mut self, piece: &mut Piece<'_>) -> Progress {
        let input = piece.input();
        if input.windows(WORD.len()).any(|part| part == WORD) {
            return match refusal() {
                Answer::Respond(response) => Progress::Respond(Box::new(response)),
                _ => Progress::Fail,
            };
        }
        let kept = if piece.is_last() { 0 } else { WORD.len() - 1 };
        piece.pass(input.len().saturating_sub(kept));
        match piece.is_last() && piece.input().is_empty() {
            true => Progress::Done,
            false => Progress::Continue,
        }
    }
}
