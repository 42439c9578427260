//! Content that a module needs at once, such as an image: it is collected up to a limit.

use crate::answer::LocalResponse;
use crate::content::{Piece, Progress, Transform};
use crate::pending::Pending;
use alloc::boxed::Box;
use alloc::rc::Rc;
use alloc::vec::Vec;
use core::cell::RefCell;
use core::mem;
use core::task::{Context, Poll, Waker};

/// Memory of the proxy for content that a module collects. It is charged to what is arriving, so
/// that the proxy keeps within its budget at any load. It is given back when this is dropped.
pub trait ContentMemory: Send {
    /// Makes sure that there is room for `bytes` in all; `false` if there is not.
    fn hold(&mut self, bytes: usize) -> bool;

    /// Memory of the same budget, of which nothing is held yet.
    fn another(&self) -> Box<dyn ContentMemory>;
}

/// Memory without a limit, for a module that is tried without a proxy.
#[derive(Clone, Copy, Debug, Default)]
pub struct UnchargedMemory;

impl ContentMemory for UnchargedMemory {
    fn hold(&mut self, _: usize) -> bool {
        true
    }

    fn another(&self) -> Box<dyn ContentMemory> {
        Box::new(Self)
    }
}

/// What becomes of content that is larger than the limit, or for which there is no memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Larger {
    /// It passes as it is.
    Pass,
    /// The module gives it up.
    Fail,
}

/// What a module has made of whole content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Worked {
    /// This, perhaps what it was.
    Content(Vec<u8>),
    /// Nothing: it cannot do its work on it.
    Fail,
    /// Nothing: what it works with is not there.
    Unavailable,
    /// The module answers by itself.
    Respond(Box<LocalResponse>),
}

/// How far content was collected and worked on, for the head in front of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WholeState {
    /// It is collected, or worked on.
    UnderWay,
    /// It was worked on: what was made of it follows.
    Worked,
    /// It is larger than the limit, or there is no memory for it.
    Larger,
}

/// Collects content, and hands it to the module at once.
///
/// A module that decides on the head by what it makes of the content sets this as transform,
/// defers, and is ready when its [`WholeHandle`] is.
pub struct Whole {
    step: Step,
    limit_bytes: usize,
    larger: Larger,
    memory: Box<dyn ContentMemory>,
    handle: WholeHandle,
}

/// What is called with the whole content.
pub type Work = Box<dyn FnOnce(Vec<u8>) -> Pending<Worked>>;

enum Step {
    Collect(Vec<u8>, Work),
    Work(Pending<Worked>),
    /// So many bytes of it were put out.
    Put(Vec<u8>, usize),
    /// What is in front is put out, so many bytes of it were; then all follows as it is.
    Pass(Vec<u8>, usize),
    End(Progress),
}

/// Shows how far a [`Whole`] has come.
#[derive(Clone)]
pub struct WholeHandle(Rc<RefCell<(WholeState, Option<Waker>)>>);

impl WholeHandle {
    /// How far it has come.
    #[must_use]
    pub fn state(&self) -> WholeState {
        self.0.borrow().0
    }

    /// Ready when the content is not under way any more.
    pub fn poll(&self, cx: &mut Context<'_>) -> Poll<WholeState> {
        let mut shared = self.0.borrow_mut();
        if shared.0 != WholeState::UnderWay {
            return Poll::Ready(shared.0);
        }
        shared.1 = Some(cx.waker().clone());
        Poll::Pending
    }

    fn set(&self, state: WholeState) {
        let mut shared = self.0.borrow_mut();
        shared.0 = state;
        if let Some(waker) = shared.1.take() {
            waker.wake();
        }
    }
}

impl Whole {
    /// Collects at most `limit_bytes`, which [`Host::memory`](crate::Host::memory) has room for,
    /// and hands them to `work`.
    #[must_use]
    pub fn new(
        limit_bytes: usize,
        larger: Larger,
        memory: Box<dyn ContentMemory>,
        work: Work,
    ) -> Self {
        let state = (WholeState::UnderWay, None);
        Self {
            step: Step::Collect(Vec::new(), work),
            limit_bytes,
            larger,
            memory,
            handle: WholeHandle(Rc::new(RefCell::new(state))),
        }
    }

    /// Shows how far it has come.
    #[must_use]
    pub fn handle(&self) -> WholeHandle {
        self.handle.clone()
    }

    /// Collects what is there. The next step; `None` if more has to come.
    fn collect(&mut self, piece: &mut Piece<'_>) -> Option<Step> {
        let Step::Collect(content, _) = &mut self.step else {
            return None;
        };
        let input = piece.input();
        let bytes = content.len() + input.len();
        if bytes > self.limit_bytes || !grow(content, bytes, self.limit_bytes, &mut self.memory) {
            let content = mem::take(content);
            self.handle.set(WholeState::Larger);
            return Some(match self.larger {
                Larger::Pass => Step::Pass(content, 0),
                Larger::Fail => Step::End(Progress::Fail),
            });
        }
        content.extend_from_slice(input);
        piece.take(input.len());
        if !piece.is_last() {
            return None;
        }
        let end = Step::End(Progress::Fail);
        match mem::replace(&mut self.step, end) {
            Step::Collect(content, work) => Some(Step::Work(work(content))),
            other => Some(other),
        }
    }

    /// The step behind the work.
    fn worked(&mut self, worked: Worked) -> Step {
        let step = match worked {
            // there may be less than was collected
            Worked::Content(content) if self.memory.hold(content.capacity()) => {
                Step::Put(content, 0)
            }
            Worked::Content(_) | Worked::Fail => Step::End(Progress::Fail),
            Worked::Unavailable => Step::End(Progress::Unavailable),
            Worked::Respond(response) => Step::End(Progress::Respond(response)),
        };
        self.handle.set(WholeState::Worked);
        step
    }
}

impl Transform for Whole {
    fn transform(&mut self, piece: &mut Piece<'_>) -> Progress {
        loop {
            let next = match &mut self.step {
                Step::Collect(..) => match self.collect(piece) {
                    Some(next) => next,
                    None => return Progress::Continue,
                },
                Step::Work(_) => return Progress::Defer,
                Step::Put(content, at) => {
                    *at += piece.put(&content[*at..]);
                    if *at == content.len() {
                        return Progress::Done;
                    }
                    return Progress::Continue;
                }
                Step::Pass(content, at) => {
                    *at += piece.put(&content[*at..]);
                    if *at == content.len() {
                        piece.pass(usize::MAX);
                    }
                    let is_over = *at == content.len() && piece.input().is_empty();
                    return match is_over && piece.is_last() {
                        true => Progress::Done,
                        false => Progress::Continue,
                    };
                }
                Step::End(progress) => return progress.clone(),
            };
            self.step = next;
        }
    }

    fn poll_deferred(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if let Step::Work(work) = &mut self.step {
            let worked = match work.as_mut().poll(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(worked) => worked,
            };
            self.step = self.worked(worked);
        }
        Poll::Ready(())
    }
}

/// Makes room for `bytes` in all, if they are granted. It grows by halves at least, so that it is
/// not copied for each piece.
fn grow(
    content: &mut Vec<u8>,
    bytes: usize,
    limit_bytes: usize,
    memory: &mut Box<dyn ContentMemory>,
) -> bool {
    if bytes <= content.capacity() {
        return true;
    }
    let room = (content.capacity() + content.capacity() / 2)
        .min(limit_bytes)
        .max(bytes);
    if !memory.hold(room) {
        return false;
    }
    content.reserve_exact(room - content.len());
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Room for so many bytes.
    struct Room(usize);

    impl ContentMemory for Room {
        fn hold(&mut self, bytes: usize) -> bool {
            bytes <= self.0
        }

        fn another(&self) -> Box<dyn ContentMemory> {
            Box::new(Self(self.0))
        }
    }

    fn reverse(mut content: Vec<u8>) -> Pending<Worked> {
        content.reverse();
        Box::pin(core::future::ready(Worked::Content(content)))
    }

    /// What comes out of `content` in pieces of seven bytes, with room for five; `None` if it is
    /// given up.
    fn run(whole: &mut Whole, content: &[u8]) -> Option<Vec<u8>> {
        let mut cx = Context::from_waker(Waker::noop());
        let (mut held, mut at, mut all) = (Vec::new(), 0, Vec::new());
        for _ in 0..1000 {
            let count = 7.min(content.len() - at);
            held.extend_from_slice(&content[at..at + count]);
            at += count;
            let mut piece = Piece::new(&held, at == content.len(), &mut all, 5);
            let progress = whole.transform(&mut piece);
            let taken = piece.taken();
            held.drain(..taken);
            match progress {
                Progress::Done => return Some(all),
                Progress::Fail => return None,
                Progress::Continue => {}
                Progress::Defer => assert!(whole.poll_deferred(&mut cx).is_ready()),
                other => panic!("{other:?}"),
            }
        }
        panic!("it does not end");
    }

    #[track_caller]
    fn check(
        (limit, larger, room): (usize, Larger, usize),
        content: &[u8],
        expected: (Option<&[u8]>, WholeState),
    ) {
        let mut whole = Whole::new(limit, larger, Box::new(Room(room)), Box::new(reverse));
        let handle = whole.handle();
        let out = run(&mut whole, content);
        assert_eq!((out.as_deref(), handle.state()), expected);
    }

    #[test]
    fn whole_content_is_worked_on_at_once_up_to_the_limit() {
        let worked = WholeState::Worked;
        for content in [&b""[..], b"short", b"exactly twenty bytes"] {
            let mut reversed = content.to_vec();
            reversed.reverse();
            check((20, Larger::Fail, 100), content, (Some(&reversed), worked));
        }
    }

    #[test]
    fn larger_content_passes_as_it_is_or_is_given_up() {
        let content = b"it is one byte longer";
        assert_eq!(content.len(), 21);
        let larger = WholeState::Larger;
        check((20, Larger::Pass, 100), content, (Some(content), larger));
        check((20, Larger::Fail, 100), content, (None, larger));
    }

    #[test]
    fn content_without_memory_is_larger_content() {
        let content = b"exactly twenty bytes";
        let larger = WholeState::Larger;
        check((100, Larger::Pass, 19), content, (Some(content), larger));
        check((100, Larger::Fail, 19), content, (None, larger));
    }

    #[test]
    fn result_without_memory_is_given_up() {
        let grows = |_| -> Pending<Worked> {
            Box::pin(core::future::ready(Worked::Content(alloc::vec![0; 50])))
        };
        let mut whole = Whole::new(20, Larger::Pass, Box::new(Room(49)), Box::new(grows));
        assert_eq!(run(&mut whole, b"text"), None);
    }
}
