//! A module that decides on a head by its content.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use weir_extend::{
    Answer, Call, Exchange, Hook, Hooks, Host, LoadError, LocalResponse, Module, ModuleKind,
    OptionValue, Options, Piece, Progress, RequestHead, ResponseHead, Transform,
};
use weir_proxy::config::{Module as ModuleTable, ModuleOption};

/// A module called `name` that looks at the first `bytes` of content at `hook`, and keeps them
/// meanwhile. Then it does `what`: `pass`, `upper` (another transform takes the place of the first,
/// which has kept nothing), `plain` (the same of a response without its content codings),
/// `plain-late` (the first has kept some), `block` (if it has seen `bad`), `fail`, `fail-untouched`
/// (it has kept nothing), `never` (it waits for ever).
pub(crate) fn deciding(name: &str, hook: &str, bytes: usize, what: &str) -> ModuleTable {
    let mut table = super::scripted(name, &[("hook", hook), ("what", what)]);
    "deciding".clone_into(&mut table.kind);
    let bytes = ModuleOption::Text(bytes.to_string());
    table.options.insert("bytes".to_owned(), bytes);
    table
}

pub(crate) struct Deciding;

#[derive(Clone)]
struct Script {
    hook: Hook,
    bytes: usize,
    what: String,
}

impl ModuleKind for Deciding {
    fn name(&self) -> &'static str {
        "deciding"
    }

    fn load(&self, mut options: Options) -> Result<Arc<dyn Module>, LoadError> {
        let mut text = |name| match options.take(name) {
            Some(OptionValue::Text(text)) => text,
            other => panic!("{name}: {other:?}"),
        };
        let hook = text("hook");
        let hooks: BTreeMap<&str, Hook> = Hook::ALL.map(|hook| (hook.as_str(), hook)).into();
        Ok(Arc::new(Script {
            hook: hooks[&*hook],
            bytes: text("bytes").parse().expect("a number"),
            what: text("what"),
        }))
    }
}

impl Module for Script {
    fn hooks(&self) -> Hooks {
        Hooks::NONE.with(self.hook)
    }

    fn may_transform(&self) -> bool {
        true
    }

    fn decides_by_content(&self) -> bool {
        true
    }

    fn begin(&self, _: &Rc<dyn Host>) -> Box<dyn Exchange> {
        Box::new(Looker {
            script: self.clone(),
            seen: Rc::default(),
            has_deferred: false,
        })
    }
}

struct Looker {
    script: Script,
    seen: Rc<RefCell<Seen>>,
    has_deferred: bool,
}

/// What was seen of the content.
#[derive(Default)]
struct Seen {
    kept: Vec<u8>,
    is_last: bool,
    is_decided: bool,
    waker: Option<Waker>,
}

/// Looks at the beginning of content, and keeps it until the head is decided on.
struct Look {
    seen: Rc<RefCell<Seen>>,
    bytes: usize,
    /// It takes what it looks at.
    takes: bool,
}

impl Transform for Look {
    fn transform(&mut self, piece: &mut Piece<'_>) -> Progress {
        let mut seen = self.seen.borrow_mut();
        if !seen.is_decided {
            assert_eq!(piece.room(), 0, "the head is not decided on");
            let input = piece.input();
            if self.takes {
                let count = input.len().min(self.bytes - seen.kept.len());
                seen.kept.extend_from_slice(&input[..count]);
                piece.take(count);
            } else {
                seen.kept = input[..input.len().min(self.bytes)].to_vec();
            }
            seen.is_last |= piece.is_last() && (!self.takes || piece.input().is_empty());
            if let Some(waker) = seen.waker.take() {
                waker.wake();
            }
            return Progress::Continue;
        }
        let put = piece.put(&seen.kept);
        seen.kept.drain(..put);
        if seen.kept.is_empty() {
            piece.pass(usize::MAX);
        }
        match piece.is_last() && piece.input().is_empty() && seen.kept.is_empty() {
            true => Progress::Done,
            false => Progress::Continue,
        }
    }
}

/// In the place of the one that looked.
struct Upper;

impl Transform for Upper {
    fn transform(&mut self, piece: &mut Piece<'_>) -> Progress {
        let put = piece.put(&piece.input().to_ascii_uppercase());
        piece.take(put);
        match piece.is_last() && piece.input().is_empty() {
            true => Progress::Done,
            false => Progress::Continue,
        }
    }
}

impl Looker {
    /// What it does at its call; `set` sets a transform.
    fn decide(&mut self, mut set: impl FnMut(Box<dyn Transform>)) -> Answer {
        if !std::mem::replace(&mut self.has_deferred, true) {
            set(Box::new(Look {
                seen: Rc::clone(&self.seen),
                bytes: self.script.bytes,
                takes: !matches!(&*self.script.what, "upper" | "plain" | "fail-untouched"),
            }));
            return Answer::Defer;
        }
        let mut seen = self.seen.borrow_mut();
        seen.is_decided = true;
        match &*self.script.what {
            "upper" | "plain" | "plain-late" => {
                set(Box::new(Upper));
                Answer::Continue
            }
            "block" if seen.kept.windows(3).any(|window| window == b"bad") => {
                Answer::Respond(LocalResponse::new(403, "blocked").expect("a response"))
            }
            "fail" | "fail-untouched" => Answer::Fail,
            _ => Answer::Continue,
        }
    }
}

impl Exchange for Looker {
    fn request_received(&mut self, head: &mut RequestHead<'_>, _: &Call) -> Answer {
        if !head.has_content() {
            return Answer::Continue;
        }
        self.decide(|transform| head.transform(transform).expect("permitted"))
    }

    fn response_received(&mut self, head: &mut ResponseHead<'_>, _: &Call) -> Answer {
        let is_plain = self.has_deferred && self.script.what.starts_with("plain");
        self.decide(|transform| match is_plain {
            true => head.transform_plain(transform).expect("permitted"),
            false => head.transform(transform).expect("permitted"),
        })
    }

    fn poll_deferred(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let mut seen = self.seen.borrow_mut();
        let has_enough = seen.is_last || seen.kept.len() >= self.script.bytes;
        if has_enough && self.script.what != "never" {
            return Poll::Ready(());
        }
        seen.waker = Some(cx.waker().clone());
        Poll::Pending
    }
}
