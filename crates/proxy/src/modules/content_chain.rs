//! The content of a message on its way through modules, one after the other.
//!
//! Each module has the content before it that it did not take yet: what it holds, at most its
//! `hold`, and one piece. What the last one puts out is used at once, and nothing is received
//! meanwhile. What is held, and what decoders take, is charged to the memory of responses that
//! arrive.

use super::call_time::CallTime;
use super::message_memory::{MessageMemory, NoMemory};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;
use weir_codings::{MemoryGauge, is_excessive};
use weir_extend::{Host, LocalResponse, PIECE_BYTES_MAX, Piece, Progress, Transform};
use weir_net::Deadline;
use weir_net::filter::Filtered;
use weir_policy::extension::ModuleFailure;

/// Calls that a module may defer without being given content, taking some or putting some out: one
/// that always defers would never end.
const DEFERRALS_MAX: usize = 64;

/// A module is not called with less room than that, bytes: it may put out units of several bytes,
/// and could not go on. Later there is more.
const ROOM_BYTES_MIN: usize = 4 * 1024;

/// The limits of one module.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StageLimits {
    /// How long a call may take.
    pub(crate) deadline: Duration,
    /// How long it may defer.
    pub(crate) wait: Duration,
    /// Bytes of content that it may leave for a later call.
    pub(crate) hold_bytes: usize,
    /// It works on a copy of the content, on a thread of its own.
    pub(crate) is_copied: bool,
}

/// The modules that change the content of one message.
pub(crate) struct ContentChain {
    /// In the direction of the content.
    stages: Vec<Stage>,
    /// Calls since they were counted.
    pub(crate) calls: u64,
    /// Stages with a call that took too long since these were counted, once for each.
    pub(crate) late: Vec<usize>,
    memory: MessageMemory,
}

/// One module among them.
struct Stage {
    transform: Box<dyn Transform>,
    limits: StageLimits,
    /// The content that it did not take yet.
    held: Vec<u8>,
    /// What it takes beside that, if it is a decoder.
    gauge: Option<MemoryGauge>,
    /// Bytes of that which were charged.
    charged_bytes: usize,
    given_bytes: u64,
    put_bytes: u64,
    /// Nothing follows what is held.
    is_last: bool,
    /// To be called: there is content that it was not called with, or it may have more to put out.
    is_due: bool,
    /// It has put out all.
    is_done: bool,
    /// It has deferred, and may wait for so long.
    waits: Option<Deadline>,
    /// How often it has deferred since it was given content, took some or put some out.
    deferrals: usize,
    /// It has taken content, or put some out.
    has_moved: bool,
}

/// How a stage ends a message before its time.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum StageEnd {
    /// Its module has failed.
    Failed(ModuleFailure),
    /// Its module answers the request by itself.
    Responds(Box<LocalResponse>),
}

impl From<ModuleFailure> for StageEnd {
    fn from(failure: ModuleFailure) -> Self {
        Self::Failed(failure)
    }
}

impl From<NoMemory> for StageEnd {
    fn from(NoMemory: NoMemory) -> Self {
        Self::Failed(ModuleFailure::NoMemory)
    }
}

/// The room behind the last stage.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Room {
    /// As much as makes one piece.
    Piece,
    /// None: it is handed content before its head is decided on.
    None,
}

/// What a turn of a stage came to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Turn {
    /// It took content, put out some, or ended.
    Moved,
    /// It needs content, or room behind it.
    Idle,
    /// It has deferred.
    Waits,
}

impl ContentChain {
    /// Without a module yet, of a message whose memory is that of `host`.
    pub(crate) fn new(host: Rc<dyn Host>) -> Self {
        Self {
            stages: Vec::new(),
            calls: 0,
            late: Vec::new(),
            memory: MessageMemory::new(host),
        }
    }

    /// Puts a decoder behind the others, which shows the memory that it takes.
    pub(super) fn push_decoder(
        &mut self,
        (decoder, gauge): (Box<dyn Transform>, MemoryGauge),
        limits: StageLimits,
    ) {
        self.push(decoder, limits);
        if let Some(last) = self.stages.last_mut() {
            last.gauge = Some(gauge);
        }
    }

    /// Puts a module behind the others.
    pub(crate) fn push(&mut self, transform: Box<dyn Transform>, limits: StageLimits) {
        self.make_room();
        let has_ended = self.stages.last().is_some_and(|stage| stage.is_done);
        self.stages.push(Stage {
            transform,
            limits,
            held: Vec::new(),
            gauge: None,
            charged_bytes: 0,
            given_bytes: 0,
            put_bytes: 0,
            is_last: has_ended,
            is_due: has_ended,
            is_done: false,
            waits: None,
            deferrals: 0,
            has_moved: false,
        });
    }

    /// Has `transform` take the place of that of the last module, and get what that one did not
    /// take.
    pub(crate) fn replace_last(&mut self, transform: Box<dyn Transform>) {
        if let Some(stage) = self.stages.last_mut() {
            stage.transform = transform;
            stage.is_done = false;
            stage.waits = None;
        }
    }

    /// Takes out the last module, which has taken no content: what it was given, and whether that
    /// is all. `None` if it has taken some.
    pub(super) fn pop_untouched(&mut self) -> Option<(Vec<u8>, bool)> {
        let stage = self.stages.pop_if(|stage| !stage.has_moved)?;
        let memory_bytes = stage.limits.memory_of(stage.held.capacity());
        self.memory.give_back(memory_bytes);
        Some((stage.held, stage.is_last))
    }

    /// Gives the stage at this place what another one was given before.
    ///
    /// # Errors
    ///
    /// There is no memory for it.
    pub(super) fn give_again(
        &mut self,
        at: usize,
        (content, is_last): (&[u8], bool),
    ) -> Result<(), NoMemory> {
        match self.stages.get_mut(at) {
            Some(stage) => stage.give(content, is_last, &mut self.memory).map(drop),
            None => Ok(()),
        }
    }

    /// Whether the last module has taken content, or put some out.
    pub(crate) fn has_last_moved(&self) -> bool {
        self.stages.last().is_some_and(|stage| stage.has_moved)
    }

    /// Hands `input` to the modules, of which the last has no room to put something. Adds the bytes
    /// of it that they were given to `taken`.
    ///
    /// # Errors
    ///
    /// As [`Self::poll`]. Without its last module, if that has not moved, the chain can go on.
    pub(crate) fn poll_feed(
        &mut self,
        cx: &mut Context<'_>,
        input: Option<&[u8]>,
        taken: &mut usize,
    ) -> Result<(), (usize, StageEnd)> {
        let mut out = Vec::new();
        loop {
            if self.turn(cx, &mut out, Room::None)? == Turn::Moved {
                continue;
            }
            let Some(first) = self.stages.first_mut() else {
                return Ok(());
            };
            let rest = &input.unwrap_or_default()[*taken..];
            let count = rest.len().min(first.room());
            let given = first.give(&rest[..count], input.is_none(), &mut self.memory);
            let is_given = given.map_err(|end| (0, end.into()))?;
            *taken += count;
            if !is_given {
                return Ok(());
            }
        }
    }

    /// From here on the last module has room: it is called with what it did not take.
    pub(crate) fn make_room(&mut self) {
        if let Some(last) = self.stages.last_mut() {
            last.is_due |= !last.is_done && (!last.held.is_empty() || last.is_last);
        }
    }

    /// As [`weir_net::filter::ContentFilter::poll_filter`].
    ///
    /// # Errors
    ///
    /// The place of the stage that ended the message, and how. The chain is of no use then.
    pub(crate) fn poll(
        &mut self,
        cx: &mut Context<'_>,
        input: Option<&[u8]>,
        out: &mut Vec<u8>,
    ) -> Poll<Result<Filtered, (usize, StageEnd)>> {
        let mut taken = 0;
        loop {
            let turn = match self.turn(cx, out, Room::Piece) {
                Ok(turn) => turn,
                Err(failed) => return Poll::Ready(Err(failed)),
            };
            let is_whole = self.stages.last().is_none_or(|stage| stage.is_done);
            let is_over = is_whole || out.len() >= PIECE_BYTES_MAX;
            if turn == Turn::Moved && !is_over {
                continue;
            }
            if !is_over && let Some(first) = self.stages.first_mut() {
                let rest = &input.unwrap_or_default()[taken..];
                let piece = &rest[..rest.len().min(PIECE_BYTES_MAX)];
                if !piece.is_empty() && first.may_be_offered() {
                    match self.offer(out, piece) {
                        Ok(true) => {
                            taken += piece.len();
                            continue;
                        }
                        Ok(false) => {}
                        Err(failed) => return Poll::Ready(Err(failed)),
                    }
                }
                if let Some(first) = self.stages.first_mut() {
                    let count = rest.len().min(first.room());
                    taken += count;
                    match first.give(&rest[..count], input.is_none(), &mut self.memory) {
                        Ok(true) => continue,
                        Ok(false) => {}
                        Err(end) => return Poll::Ready(Err((0, end.into()))),
                    }
                }
            }
            if turn == Turn::Waits && taken == 0 && out.is_empty() {
                return Poll::Pending;
            }
            return Poll::Ready(Ok(Filtered { taken, is_whole }));
        }
    }

    /// Calls the last stage that can do something, once.
    fn turn(
        &mut self,
        cx: &mut Context<'_>,
        out: &mut Vec<u8>,
        behind: Room,
    ) -> Result<Turn, (usize, StageEnd)> {
        let mut last = Turn::Idle;
        for at in (0..self.stages.len()).rev() {
            match self.turn_of(cx, at, (out, behind))? {
                Turn::Moved => return Ok(Turn::Moved),
                Turn::Waits => last = Turn::Waits,
                Turn::Idle => {}
            }
        }
        Ok(last)
    }

    fn turn_of(
        &mut self,
        cx: &mut Context<'_>,
        at: usize,
        (out, room): (&mut Vec<u8>, Room),
    ) -> Result<Turn, (usize, StageEnd)> {
        let (before, behind) = self.stages.split_at_mut(at + 1);
        let (Some(stage), next) = (before.last_mut(), behind.first_mut()) else {
            return Ok(Turn::Idle);
        };
        if stage.is_done {
            return Ok(Turn::Idle);
        }
        if !stage.is_due {
            let polled = stage.poll_put(cx);
            if polled.map_err(|failure| (at, failure.into()))?.is_pending() {
                return Ok(Turn::Idle);
            }
        }
        let waits = stage.poll_waits(cx);
        if waits.map_err(|failure| (at, failure.into()))?.is_pending() {
            return Ok(Turn::Waits);
        }
        let is_fed = next.is_none() && room == Room::None;
        let bytes = room_behind(next.as_deref(), out, room);
        if bytes < ROOM_BYTES_MIN && !is_fed {
            return Ok(Turn::Idle);
        }
        self.call(at, (out, bytes), None)
    }

    /// Calls the first stage with content that it is not given to hold: what it does not take is
    /// copied, and no more. Whether it was called.
    fn offer(&mut self, out: &mut Vec<u8>, content: &[u8]) -> Result<bool, (usize, StageEnd)> {
        let bytes = room_behind(self.stages.get(1), out, Room::Piece);
        if bytes < ROOM_BYTES_MIN {
            return Ok(false);
        }
        self.call(0, (out, bytes), Some(content))?;
        Ok(true)
    }

    /// Calls a stage once, with what it holds, or with content that is `offered` to it.
    fn call(
        &mut self,
        at: usize,
        (out, room): (&mut Vec<u8>, usize),
        offered: Option<&[u8]>,
    ) -> Result<Turn, (usize, StageEnd)> {
        let (before, behind) = self.stages.split_at_mut(at + 1);
        let (Some(stage), next) = (before.last_mut(), behind.first_mut()) else {
            return Ok(Turn::Idle);
        };
        let (mut between, begun) = (Vec::new(), CallTime::begin(stage.limits.deadline));
        let output = if next.is_some() { &mut between } else { out };
        self.calls += 1;
        let turn = stage.call((output, room), offered, &mut self.memory);
        let turn = turn.map_err(|end| (at, end))?;
        let charged = stage.charge(&mut self.memory);
        charged.map_err(|end| (at, end.into()))?;
        if begun.is_late() && !self.late.contains(&at) {
            self.late.push(at);
        }
        if let Some(next) = next {
            let given = next.give(&between, stage.is_done, &mut self.memory);
            given.map_err(|end| (at + 1, end.into()))?;
        }
        Ok(turn)
    }
}

/// The bytes that a stage in front of `next`, or the last one, may put out at once.
fn room_behind(next: Option<&Stage>, out: &[u8], room: Room) -> usize {
    match (next, room) {
        (Some(next), _) => next.room(),
        (None, Room::Piece) => PIECE_BYTES_MAX.saturating_sub(out.len()),
        (None, Room::None) => 0,
    }
}

impl StageLimits {
    /// The memory that so many bytes of content take.
    const fn memory_of(&self, held_bytes: usize) -> usize {
        match self.is_copied {
            true => held_bytes.saturating_mul(2),
            false => held_bytes,
        }
    }
}

impl Stage {
    /// Bytes of content that it can be given now: one piece that it was not called with, beside
    /// what it may hold. One that has ended drops them.
    fn room(&self) -> usize {
        let hold = if self.is_due {
            0
        } else {
            self.limits.hold_bytes
        };
        (hold + PIECE_BYTES_MAX).saturating_sub(self.held.len())
    }

    /// Whether it may be called with content that it does not hold: it holds none, and works on
    /// none elsewhere.
    fn may_be_offered(&self) -> bool {
        let is_busy = self.is_due || self.is_done || self.waits.is_some();
        !is_busy && self.held.is_empty() && !self.limits.is_copied
    }

    /// Content comes, and nothing behind it if it `is_last`. Whether there was something to come.
    ///
    /// # Errors
    ///
    /// There is no memory for it.
    fn give(
        &mut self,
        content: &[u8],
        is_last: bool,
        memory: &mut MessageMemory,
    ) -> Result<bool, NoMemory> {
        let ends = is_last && !self.is_last;
        self.is_last |= is_last;
        let is_given = !content.is_empty() || ends;
        if !self.is_done {
            self.make_room_for(content.len(), memory)?;
            // a module on a thread defers for each piece that it looks at, also to hold it
            if !content.is_empty() {
                self.deferrals = 0;
            }
            self.held.extend_from_slice(content);
            self.given_bytes += content.len() as u64;
            self.is_due |= is_given;
        }
        Ok(is_given)
    }

    /// Makes room for `more` bytes of content. It grows by halves at least, so that it is not
    /// copied for each piece.
    fn make_room_for(&mut self, more: usize, memory: &mut MessageMemory) -> Result<(), NoMemory> {
        let (bytes, capacity) = (self.held.len() + more, self.held.capacity());
        if bytes <= capacity {
            return Ok(());
        }
        let most = self.limits.hold_bytes + PIECE_BYTES_MAX;
        let wanted = (capacity + capacity / 2).min(most).max(bytes);
        memory.take(self.limits.memory_of(wanted) - self.limits.memory_of(capacity))?;
        self.held.reserve_exact(wanted - self.held.len());
        Ok(())
    }

    /// Charges what a decoder takes now, which it shows once it has it: it writes to little of it
    /// within one call.
    fn charge(&mut self, memory: &mut MessageMemory) -> Result<(), NoMemory> {
        let Some(gauge) = &self.gauge else {
            return Ok(());
        };
        let bytes = gauge.bytes();
        match bytes.checked_sub(self.charged_bytes) {
            Some(more) => memory.take(more)?,
            None => memory.give_back(self.charged_bytes - bytes),
        }
        self.charged_bytes = bytes;
        Ok(())
    }

    /// Ready if it has not deferred, or need not wait any longer.
    fn poll_waits(&mut self, cx: &mut Context<'_>) -> Result<Poll<()>, ModuleFailure> {
        let Some(waits) = &mut self.waits else {
            return Ok(Poll::Ready(()));
        };
        let transform = &mut self.transform;
        let polled = catch_unwind(AssertUnwindSafe(|| transform.poll_deferred(cx)));
        if polled.map_err(|_| ModuleFailure::Crashed)?.is_ready() {
            self.waits = None;
            return Ok(Poll::Ready(()));
        }
        match waits.poll_passed(cx) {
            Poll::Ready(()) => Err(ModuleFailure::Deadline),
            Poll::Pending => Ok(Poll::Pending),
        }
    }

    /// Ready if it has something to put out although it was called with all its content.
    fn poll_put(&mut self, cx: &mut Context<'_>) -> Result<Poll<()>, ModuleFailure> {
        let transform = &mut self.transform;
        let polled = catch_unwind(AssertUnwindSafe(|| transform.poll_put(cx)));
        let polled = polled.map_err(|_| ModuleFailure::Crashed)?;
        self.is_due |= polled.is_ready();
        Ok(polled)
    }

    /// Calls the module once, with what it holds, or with content that is `offered` to it: what it
    /// does not take of that it holds then.
    fn call(
        &mut self,
        (output, room): (&mut Vec<u8>, usize),
        offered: Option<&[u8]>,
        memory: &mut MessageMemory,
    ) -> Result<Turn, StageEnd> {
        let before = output.len();
        if let Some(content) = offered {
            self.deferrals = 0;
            self.given_bytes += content.len() as u64;
            self.is_due = true;
        }
        let input = offered.unwrap_or(&self.held);
        let mut piece = Piece::new(input, self.is_last, output, room);
        let transform = &mut self.transform;
        let progress = catch_unwind(AssertUnwindSafe(|| transform.transform(&mut piece)));
        let progress = progress.map_err(|_| ModuleFailure::Crashed)?;
        let taken = piece.taken();
        let put = output.len() - before;
        match offered {
            None => drop(self.held.drain(..taken)),
            Some(_) if progress == Progress::Done => {}
            Some(content) => {
                let rest = &content[taken..];
                self.make_room_for(rest.len(), memory)?;
                self.held.extend_from_slice(rest);
            }
        }
        self.put_bytes += put as u64;
        if is_excessive(self.given_bytes, self.put_bytes) {
            return Err(ModuleFailure::BadAnswer.into());
        }
        let has_moved = taken > 0 || put > 0;
        if has_moved {
            self.deferrals = 0;
            self.has_moved = true;
        }
        match progress {
            Progress::Fail => Err(ModuleFailure::GaveUp.into()),
            Progress::Respond(response) if response.is_too_long() => {
                Err(ModuleFailure::BadAnswer.into())
            }
            Progress::Respond(response) => Err(StageEnd::Responds(response)),
            Progress::Unavailable => Err(ModuleFailure::Unavailable.into()),
            Progress::Done => {
                self.is_done = true;
                self.held = Vec::new();
                Ok(Turn::Moved)
            }
            Progress::Defer if self.deferrals >= DEFERRALS_MAX => {
                Err(ModuleFailure::BadAnswer.into())
            }
            Progress::Defer => {
                self.deferrals += 1;
                self.waits = Some(Deadline::new(self.limits.wait));
                Ok(Turn::Moved)
            }
            Progress::Continue if has_moved => Ok(Turn::Moved),
            Progress::Continue if room == 0 => {
                self.is_due = false;
                Ok(Turn::Idle)
            }
            // it would never end, or it holds more than it may
            Progress::Continue if self.is_last || self.held.len() > self.limits.hold_bytes => {
                Err(ModuleFailure::BadAnswer.into())
            }
            Progress::Continue => {
                self.is_due = false;
                Ok(Turn::Idle)
            }
        }
    }
}

#[cfg(test)]
#[path = "content_chain_tests.rs"]
mod tests;
