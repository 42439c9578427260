//! Chains of modules against reference models: whatever the pieces, every byte is the right one.

use super::*;
use crate::modules::message_memory::UNCHARGED_BYTES_MAX;
use crate::modules::message_memory::tests::Limited;
use proptest::prelude::*;
use std::sync::{Arc, Mutex};
use std::task::Waker;
use weir_extend::Detached;

const LIMITS: StageLimits = StageLimits {
    deadline: Duration::from_secs(60),
    wait: Duration::from_secs(60),
    hold_bytes: 1000,
    is_copied: false,
};

/// What a module of these tests does with content.
#[derive(Clone, Copy, Debug)]
enum Kind {
    /// Passes it on.
    Same,
    /// Puts each byte out so often.
    Repeat(usize),
    /// Leaves out each second byte.
    Half,
    /// Turns around each block of so many bytes, and the rest.
    Blocks(usize),
    /// Puts something in front and behind.
    Wrapped,
    /// Ends behind so many bytes.
    First(usize),
}

impl Kind {
    /// The same, all at once.
    fn reference(self, content: &[u8]) -> Vec<u8> {
        match self {
            Self::Same => content.to_vec(),
            Self::Repeat(times) => {
                let repeated = content.iter().map(|byte| vec![*byte; times]);
                repeated.collect::<Vec<_>>().concat()
            }
            Self::Half => content.iter().copied().step_by(2).collect(),
            Self::Blocks(bytes) => {
                let turned = content.chunks(bytes).map(|block| {
                    let mut block = block.to_vec();
                    block.reverse();
                    block
                });
                turned.collect::<Vec<_>>().concat()
            }
            Self::Wrapped => [b"<", content, b">"].concat(),
            Self::First(bytes) => content[..bytes.min(content.len())].to_vec(),
        }
    }
}

/// A module that defers at each `defers`-th call, and moves one byte or block at a call as often as
/// all that it can.
struct Piecewise {
    kind: Kind,
    defers: usize,
    calls: usize,
    /// Bytes taken, and of those that are to be put out for the last of them the rest.
    taken: usize,
    rest: Vec<u8>,
    has_ended: bool,
}

impl Transform for Piecewise {
    fn transform(&mut self, piece: &mut Piece<'_>) -> Progress {
        self.calls += 1;
        let most = if self.calls.is_multiple_of(2) { 1 } else { 64 };
        let mut steps = 0;
        // what ends is put out at once
        while steps < most || self.has_ended {
            steps += 1;
            let put = piece.put(&self.rest);
            self.rest.drain(..put);
            if !self.rest.is_empty() {
                return Progress::Continue;
            }
            if self.has_ended {
                return Progress::Done;
            }
            if !self.step(piece) {
                break;
            }
        }
        let has_moved = piece.taken() > 0;
        if has_moved && self.defers > 0 && self.calls.is_multiple_of(self.defers) {
            return Progress::Defer;
        }
        Progress::Continue
    }
}

impl Piecewise {
    /// Takes what makes one unit of output; whether it did.
    fn step(&mut self, piece: &mut Piece<'_>) -> bool {
        let input = piece.input();
        let wanted = match self.kind {
            Kind::Blocks(bytes) => bytes,
            _ => 1,
        };
        if let Kind::First(bytes) = self.kind
            && self.taken >= bytes
        {
            self.has_ended = true;
            return true;
        }
        if matches!(self.kind, Kind::Wrapped) && self.taken == 0 && !input.is_empty() {
            self.rest.push(b'<');
        }
        if input.len() < wanted && !piece.is_last() {
            self.rest.clear();
            return false;
        }
        let unit = &input[..wanted.min(input.len())];
        if unit.is_empty() {
            self.has_ended = true;
            match self.kind {
                Kind::Wrapped if self.taken == 0 => self.rest.extend_from_slice(b"<>"),
                Kind::Wrapped => self.rest.push(b'>'),
                _ => {}
            }
            return true;
        }
        match self.kind {
            Kind::Same | Kind::First(_) | Kind::Wrapped => self.rest.extend_from_slice(unit),
            Kind::Repeat(times) => self.rest.extend(vec![unit[0]; times]),
            Kind::Half if self.taken.is_multiple_of(2) => self.rest.push(unit[0]),
            Kind::Half => {}
            Kind::Blocks(_) => self.rest.extend(unit.iter().rev()),
        }
        self.taken += unit.len();
        piece.take(unit.len());
        true
    }
}

fn kind() -> impl Strategy<Value = Kind> {
    prop_oneof![
        Just(Kind::Same),
        (0_usize..60).prop_map(Kind::Repeat),
        Just(Kind::Half),
        (1_usize..900).prop_map(Kind::Blocks),
        Just(Kind::Wrapped),
        (0_usize..3000).prop_map(Kind::First),
    ]
}

fn piecewise(kind: Kind, defers: usize) -> Box<dyn Transform> {
    Box::new(Piecewise {
        kind,
        defers,
        calls: 0,
        taken: 0,
        rest: Vec::new(),
        has_ended: false,
    })
}

fn chain(kinds: &[(Kind, usize)], limits: StageLimits) -> ContentChain {
    let mut chain = ContentChain::new(Detached::host());
    for (kind, defers) in kinds {
        chain.push(piecewise(*kind, *defers), limits);
    }
    chain
}

/// What comes out if `content` is offered in pieces of these sizes.
fn run(
    chain: &mut ContentChain,
    content: &[u8],
    sizes: &[usize],
) -> Result<Vec<u8>, (usize, StageEnd)> {
    run_from(chain, content, sizes, 0)
}

/// The same with the first `at` bytes handed over already.
fn run_from(
    chain: &mut ContentChain,
    content: &[u8],
    sizes: &[usize],
    mut at: usize,
) -> Result<Vec<u8>, (usize, StageEnd)> {
    let mut cx = Context::from_waker(Waker::noop());
    let (mut turn, mut all) = (0, Vec::new());
    loop {
        let size = sizes[turn % sizes.len()].min(content.len() - at);
        turn += 1;
        let input = (at < content.len()).then(|| &content[at..at + size]);
        let mut out = Vec::new();
        let filtered = match chain.poll(&mut cx, input, &mut out) {
            Poll::Pending => panic!("these modules are ready when they have deferred"),
            Poll::Ready(filtered) => filtered?,
        };
        assert!(out.len() <= PIECE_BYTES_MAX, "{} bytes at once", out.len());
        for stage in &chain.stages {
            let most = stage.limits.hold_bytes + PIECE_BYTES_MAX;
            assert!(stage.held.len() <= most, "{} bytes held", stage.held.len());
        }
        let moves = filtered.taken > 0 || !out.is_empty() || filtered.is_whole;
        assert!(moves || input.is_some_and(<[u8]>::is_empty), "it is stuck");
        at += filtered.taken;
        all.extend_from_slice(&out);
        if filtered.is_whole {
            return Ok(all);
        }
    }
}

proptest! {
    #[test]
    fn content_that_passes_a_chain_is_that_of_its_reference_model(
        kinds in prop::collection::vec((kind(), 0_usize..4), 1..4),
        bytes in 0_usize..5000,
        sizes in prop::collection::vec(1_usize..3000, 1..6),
    ) {
        let content: Vec<u8> = (0..bytes).map(|at| b'a' + u8::try_from(at % 26).unwrap_or(0)).collect();
        let mut expected = content.clone();
        for (kind, _) in &kinds {
            expected = kind.reference(&expected);
        }
        let out = run(&mut chain(&kinds, LIMITS), &content, &sizes);
        prop_assert!(out == Ok(expected));
    }
}

proptest! {
    #[test]
    fn content_handed_over_before_its_head_is_decided_on_is_that_of_the_reference_model(
        kinds in prop::collection::vec((kind(), 0_usize..4), 1..4),
        bytes in 0_usize..5000,
        sizes in prop::collection::vec(1_usize..3000, 1..6),
        fed in 0_usize..8,
    ) {
        let content: Vec<u8> = (0..bytes).map(|at| b'a' + u8::try_from(at % 26).unwrap_or(0)).collect();
        let mut cx = Context::from_waker(Waker::noop());
        let mut expected = content.clone();
        let (mut chain, mut at) = (ContentChain::new(Detached::host()), 0);
        // each module decides before the next one is called
        for (place, (kind, defers)) in kinds.iter().enumerate() {
            chain.push(piecewise(*kind, *defers), LIMITS);
            for turn in 0..fed {
                let size = sizes[(place + turn) % sizes.len()].min(content.len() - at);
                let input = (at < content.len()).then(|| &content[at..at + size]);
                let mut taken = 0;
                let fed = chain.poll_feed(&mut cx, input, &mut taken);
                fed.expect("none of them fails");
                at += taken;
                for stage in &chain.stages {
                    let most = stage.limits.hold_bytes + PIECE_BYTES_MAX;
                    prop_assert!(stage.held.len() <= most, "{} bytes held", stage.held.len());
                }
            }
            expected = kind.reference(&expected);
        }
        chain.make_room();
        prop_assert!(run_from(&mut chain, &content, &sizes, at) == Ok(expected));
    }
}

#[test]
fn module_that_holds_more_than_it_may_fails() {
    let content = vec![b'x'; 200_000];
    let kinds = [(Kind::Same, 0), (Kind::Blocks(150_000), 0)];
    let out = run(&mut chain(&kinds, LIMITS), &content, &[7000]);
    assert_eq!(out, Err((1, ModuleFailure::BadAnswer.into())));
    let limits = StageLimits {
        hold_bytes: 150_000,
        ..LIMITS
    };
    let out = run(&mut chain(&kinds, limits), &content, &[7000]);
    assert_eq!(out, Ok(content));
}

#[test]
fn module_that_puts_out_a_hundred_times_what_it_was_given_fails_beyond_a_mebibyte() {
    let growing = [(Kind::Repeat(101), 0)];
    let small = run(&mut chain(&growing, LIMITS), &[b'x'; 10_000], &[1000]);
    assert_eq!(small.map(|out| out.len()), Ok(1_010_000));
    let large = run(&mut chain(&growing, LIMITS), &[b'x'; 2_000_000], &[1000]);
    assert_eq!(large, Err((0, ModuleFailure::BadAnswer.into())));
}

/// Answers always so.
struct Always(Progress);

impl Transform for Always {
    fn transform(&mut self, _: &mut Piece<'_>) -> Progress {
        self.0.clone()
    }

    fn poll_deferred(&mut self, _: &mut Context<'_>) -> Poll<()> {
        Poll::Pending
    }
}

/// Defers, and is ready at once.
struct Defers;

impl Transform for Defers {
    fn transform(&mut self, _: &mut Piece<'_>) -> Progress {
        Progress::Defer
    }
}

struct Panics;

impl Transform for Panics {
    fn transform(&mut self, _: &mut Piece<'_>) -> Progress {
        panic!("as this test has it")
    }
}

#[test]
fn module_that_never_ends_gives_up_or_panics_fails() {
    let transforms: [(Box<dyn Transform>, ModuleFailure); 5] = [
        (
            Box::new(Always(Progress::Continue)),
            ModuleFailure::BadAnswer,
        ),
        (Box::new(Always(Progress::Fail)), ModuleFailure::GaveUp),
        (
            Box::new(Always(Progress::Unavailable)),
            ModuleFailure::Unavailable,
        ),
        (Box::new(Defers), ModuleFailure::BadAnswer),
        (Box::new(Panics), ModuleFailure::Crashed),
    ];
    for (transform, failure) in transforms {
        let mut chain = ContentChain::new(Detached::host());
        chain.push(transform, LIMITS);
        assert_eq!(run(&mut chain, b"text", &[4]), Err((0, failure.into())));
    }
}

#[tokio::test(start_paused = true)]
async fn module_that_defers_longer_than_it_may_fails() {
    let mut chain = ContentChain::new(Detached::host());
    chain.push(Box::new(Always(Progress::Defer)), LIMITS);
    let mut out = Vec::new();
    let mut at = 0;
    let begun = tokio::time::Instant::now();
    let failed = std::future::poll_fn(|cx| {
        loop {
            let rest = &b"text"[at..];
            match chain.poll(cx, Some(rest), &mut out) {
                Poll::Ready(Ok(filtered)) if filtered.taken > 0 => at += filtered.taken,
                polled => return polled,
            }
        }
    });
    assert_eq!(failed.await, Err((0, ModuleFailure::Deadline.into())));
    assert_eq!(begun.elapsed(), LIMITS.wait);
}

/// A chain with so many bytes of memory beside what each message may take.
fn limited(bytes_max: usize) -> (ContentChain, Arc<Mutex<Vec<usize>>>) {
    let asked = Arc::<Mutex<Vec<usize>>>::default();
    let host = Limited {
        bytes_max,
        asked: Arc::clone(&asked),
    };
    (ContentChain::new(Rc::new(host)), asked)
}

#[test]
fn content_that_is_held_without_memory_for_it_is_the_end_of_the_message() {
    let limits = StageLimits {
        hold_bytes: 256 * 1024,
        ..LIMITS
    };
    let content = vec![b'x'; 300_000];
    // of two modules the second one holds 200000 bytes of each block
    let holds = |room: usize| {
        let (mut chain, asked) = limited(room);
        chain.push(piecewise(Kind::Same, 0), limits);
        chain.push(piecewise(Kind::Blocks(200_000), 0), limits);
        let out = run(&mut chain, &content, &[7000]);
        (out, asked.lock().expect("no panic").last().copied())
    };
    let (out, most) = holds(1024 * 1024);
    assert_eq!(out, Ok(content.clone()));
    let most = most.expect("it was charged");
    assert!(most >= 200_000 - UNCHARGED_BYTES_MAX, "{most}");
    assert!(most <= 2 * (limits.hold_bytes + PIECE_BYTES_MAX), "{most}");
    let (out, _) = holds(most - 1);
    assert_eq!(out, Err((1, ModuleFailure::NoMemory.into())));
}

#[test]
fn module_on_a_thread_is_charged_for_its_copy_too() {
    let most = |is_copied| {
        let (mut chain, asked) = limited(usize::MAX);
        let limits = StageLimits {
            hold_bytes: 256 * 1024,
            is_copied,
            ..LIMITS
        };
        chain.push(piecewise(Kind::Blocks(200_000), 0), limits);
        let out = run(&mut chain, &[b'x'; 200_000], &[200_000]);
        assert!(out.is_ok(), "{out:?}");
        *asked.lock().expect("no panic").last().expect("a charge")
    };
    // it is rounded up
    assert_eq!(most(true), most(false) + 192 * 1024);
}

#[test]
fn short_content_is_not_charged() {
    let (mut chain, asked) = limited(0);
    chain.push(piecewise(Kind::Blocks(900), 0), LIMITS);
    chain.push(piecewise(Kind::Same, 0), LIMITS);
    let content = [b'x'; 20_000];
    assert_eq!(run(&mut chain, &content, &[7000]), Ok(content.to_vec()));
    assert_eq!(*asked.lock().expect("no panic"), [0; 0]);
}

/// Looks at all that it holds each time, and waits for what comes of that, as a module on a thread
/// does; then it holds `block` bytes before it passes them.
struct Looks {
    block: usize,
    looked_bytes: usize,
}

impl Transform for Looks {
    fn transform(&mut self, piece: &mut Piece<'_>) -> Progress {
        let held = piece.input().len();
        if held > self.looked_bytes {
            self.looked_bytes = held;
            return Progress::Defer;
        }
        if held >= self.block || piece.is_last() {
            self.looked_bytes = held - piece.pass(usize::MAX);
        }
        match piece.is_last() && piece.input().is_empty() {
            true => Progress::Done,
            false => Progress::Continue,
        }
    }
}

#[test]
fn module_may_defer_for_each_of_many_pieces_that_it_holds() {
    let mut chain = ContentChain::new(Detached::host());
    let looks = Looks {
        block: 900,
        looked_bytes: 0,
    };
    chain.push(Box::new(looks), LIMITS);
    let content = [b'x'; 1000];
    assert!(run(&mut chain, &content, &[1]) == Ok(content.to_vec()));
}

/// Puts each byte out twice, both or none.
struct Pairs;

impl Transform for Pairs {
    fn transform(&mut self, piece: &mut Piece<'_>) -> Progress {
        let count = piece.input().len().min(piece.room() / 2);
        let pairs = piece.input()[..count].iter().flat_map(|byte| [*byte; 2]);
        let pairs: Vec<u8> = pairs.collect();
        piece.put(&pairs);
        piece.take(count);
        match piece.is_last() && piece.input().is_empty() {
            true => Progress::Done,
            false => Progress::Continue,
        }
    }
}

/// Takes one byte, then waits until something is handed to it or it is polled again.
struct Slow {
    has_taken: bool,
    polls: usize,
}

impl Transform for Slow {
    fn transform(&mut self, piece: &mut Piece<'_>) -> Progress {
        if !self.has_taken {
            self.has_taken = true;
            piece.pass(1);
            return Progress::Defer;
        }
        piece.pass(usize::MAX);
        match piece.is_last() && piece.input().is_empty() {
            true => Progress::Done,
            false => Progress::Continue,
        }
    }

    fn poll_deferred(&mut self, _: &mut Context<'_>) -> Poll<()> {
        self.polls += 1;
        match self.polls {
            ..4 => Poll::Pending,
            _ => Poll::Ready(()),
        }
    }
}

#[tokio::test]
async fn module_is_not_called_with_less_room_than_it_can_use() {
    let mut chain = ContentChain::new(Detached::host());
    chain.push(Box::new(Pairs), LIMITS);
    let slow = Slow {
        has_taken: false,
        polls: 0,
    };
    chain.push(Box::new(slow), LIMITS);
    let content = vec![b'x'; 65_000];
    let mut cx = Context::from_waker(Waker::noop());
    let (mut at, mut all, mut turns) = (0, Vec::new(), 0);
    loop {
        turns += 1;
        assert!(turns < 1000, "it does not end");
        let input = (at < content.len()).then(|| &content[at..]);
        let mut out = Vec::new();
        let Poll::Ready(filtered) = chain.poll(&mut cx, input, &mut out) else {
            continue;
        };
        let filtered = filtered.expect("no module fails");
        at += filtered.taken;
        all.extend_from_slice(&out);
        if filtered.is_whole {
            break;
        }
    }
    assert_eq!(all.len(), 130_000);
}

/// Takes all but the last `leaves` bytes, and keeps where it was handed them.
struct Seen {
    leaves: usize,
    inputs: Arc<Mutex<Vec<(usize, usize)>>>,
}

impl Transform for Seen {
    fn transform(&mut self, piece: &mut Piece<'_>) -> Progress {
        let input = piece.input();
        let seen = (input.as_ptr() as usize, input.len());
        self.inputs.lock().expect("no panic").push(seen);
        let leaves = if piece.is_last() { 0 } else { self.leaves };
        piece.pass(input.len().saturating_sub(leaves));
        match piece.is_last() && piece.input().is_empty() {
            true => Progress::Done,
            false => Progress::Continue,
        }
    }
}

#[test]
fn module_is_called_with_content_where_it_was_received_unless_it_holds_some() {
    let content = b"0123456789".repeat(10);
    for (leaves, is_copied, is_in_place) in [
        (0, false, [true, true]),
        (3, false, [true, false]),
        (0, true, [false, false]),
    ] {
        let inputs = Arc::default();
        let seen = Seen {
            leaves,
            inputs: Arc::clone(&inputs),
        };
        let mut chain = ContentChain::new(Detached::host());
        let limits = StageLimits {
            is_copied,
            ..LIMITS
        };
        chain.push(Box::new(seen), limits);
        let mut out = Vec::new();
        let mut cx = Context::from_waker(Waker::noop());
        let pieces = [&content[..50], &content[50..]];
        for (piece, is_in_place) in pieces.into_iter().zip(is_in_place) {
            inputs.lock().expect("no panic").clear();
            let polled = chain.poll(&mut cx, Some(piece), &mut out);
            let taken = matches!(polled, Poll::Ready(Ok(Filtered { taken: 50, .. })));
            assert!(taken, "{leaves}: {polled:?}");
            let places = inputs.lock().expect("no panic");
            let first = places.first().map(|(at, _)| *at);
            assert_eq!(
                first == Some(piece.as_ptr() as usize),
                is_in_place,
                "{leaves}"
            );
        }
        let polled = chain.poll(&mut cx, None, &mut out);
        assert!(matches!(
            polled,
            Poll::Ready(Ok(Filtered { is_whole: true, .. }))
        ));
        assert_eq!(out, content);
    }
}
