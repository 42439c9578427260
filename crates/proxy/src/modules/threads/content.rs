//! The worker's side of a transform on a thread.

use super::message::{PieceProgress, PieceReply, SentPiece};
use super::pool::{Busy, ThreadPool};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::sync::{mpsc, oneshot};
use weir_extend::{Piece, Progress, Transform};

/// A transform on a thread. It defers with each piece, until the thread has answered.
pub(super) struct ThreadContent {
    pool: Arc<ThreadPool>,
    busy: Arc<Busy>,
    pieces: mpsc::Sender<SentPiece>,
    state: State,
}

enum State {
    /// No piece is on the thread.
    Idle,
    Called(oneshot::Receiver<PieceReply>, SentSize),
    Answered(Result<PieceReply, oneshot::error::RecvError>, SentSize),
    /// It has put out more than there is room for now: the rest, and what comes behind it.
    Puts(Vec<u8>, PieceProgress),
}

/// What a module was called with: bytes of input and of room, and whether nothing follows.
#[derive(Clone, Copy, PartialEq, Eq)]
struct SentSize(usize, usize, bool);

impl SentSize {
    fn of(piece: &Piece<'_>) -> Self {
        Self(piece.input().len(), piece.room(), piece.is_last())
    }
}

impl ThreadContent {
    pub(super) fn new(
        pool: &Arc<ThreadPool>,
        busy: &Arc<Busy>,
        pieces: mpsc::Sender<SentPiece>,
    ) -> Self {
        Self {
            pool: Arc::clone(pool),
            busy: Arc::clone(busy),
            pieces,
            state: State::Idle,
        }
    }

    fn send(&mut self, piece: &Piece<'_>) -> Progress {
        let (reply, answer) = oneshot::channel();
        let sent = self.pieces.try_send(SentPiece {
            input: piece.input().to_vec(),
            is_last: piece.is_last(),
            room: piece.room(),
            reply,
        });
        match sent {
            Ok(()) => {
                self.state = State::Called(answer, SentSize::of(piece));
                Progress::Defer
            }
            Err(_) => Progress::Unavailable,
        }
    }

    fn put(&mut self, mut output: Vec<u8>, end: PieceProgress, piece: &mut Piece<'_>) -> Progress {
        let put = piece.put(&output);
        if put < output.len() {
            output.drain(..put);
            self.state = State::Puts(output, end);
            return Progress::Continue;
        }
        match end {
            PieceProgress::Continue => Progress::Continue,
            PieceProgress::Done => Progress::Done,
            PieceProgress::Fail => Progress::Fail,
            PieceProgress::Unavailable => Progress::Unavailable,
            PieceProgress::Respond(local) => Progress::Respond(local),
            PieceProgress::Crashed => panic!("a module has failed on its thread"),
        }
    }
}

impl Transform for ThreadContent {
    fn transform(&mut self, piece: &mut Piece<'_>) -> Progress {
        match std::mem::replace(&mut self.state, State::Idle) {
            State::Puts(output, end) => self.put(output, end, piece),
            State::Answered(Ok(reply), sent) if reply.is_idle() && sent != SentSize::of(piece) => {
                // it needs more, and there is more now
                self.send(piece)
            }
            State::Answered(Ok(reply), _) => {
                piece.take(reply.taken);
                self.put(reply.output, reply.progress, piece)
            }
            State::Answered(Err(_), _) => Progress::Unavailable,
            State::Idle | State::Called(..) => self.send(piece),
        }
    }

    fn poll_deferred(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if let State::Called(answer, sent) = &mut self.state {
            match Pin::new(answer).poll(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(answer) => self.state = State::Answered(answer, *sent),
            }
        }
        Poll::Ready(())
    }
}

impl Drop for ThreadContent {
    fn drop(&mut self) {
        if matches!(self.state, State::Called(..)) {
            self.pool.suspect(&self.busy);
        }
    }
}
