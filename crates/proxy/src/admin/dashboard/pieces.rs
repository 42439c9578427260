//! Large answers in pieces: few at a time, none of which keeps others out by not being read.

use axum::body::{Body, Bytes};
use futures_core::Stream;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

/// Bytes of a piece: the next one is given when the connection has room for it.
const PIECE_BYTES: usize = 64 << 10;

/// How long an answer may wait for its client before another one may take its place.
const UNREAD_MAX: Duration = Duration::from_secs(1);

/// The answers that are under way, and how many there may be.
#[derive(Debug)]
pub(super) struct LargeAnswers {
    max: usize,
    taken: Mutex<Vec<Arc<Mutex<Answer>>>>,
}

/// An answer under way.
#[derive(Debug)]
struct Answer {
    /// What is still to be sent; `None` once the place is another one's.
    rest: Option<Bytes>,
    /// When a piece was taken last.
    taken: Instant,
}

impl LargeAnswers {
    pub(super) fn new(max: usize) -> Self {
        Self {
            max,
            taken: Mutex::default(),
        }
    }

    /// Room for one more answer; `None` if all places are taken, and those who have them read. One
    /// that has not been read for a second ends, and its memory is free.
    pub(super) fn place(&self, now: Instant) -> Option<LargeAnswer> {
        let mut taken = lock(&self.taken);
        // the others have been sent, or their clients have gone
        taken.retain(|answer| Arc::strong_count(answer) > 1);
        if taken.len() >= self.max {
            let times = taken.iter().map(|answer| lock(answer).taken);
            let (at, unread_since) = times.enumerate().min_by_key(|(_, since)| *since)?;
            if now.saturating_duration_since(unread_since) < UNREAD_MAX {
                return None;
            }
            let ended = taken.swap_remove(at);
            lock(&ended).rest = None;
        }
        let answer = Arc::new(Mutex::new(Answer {
            rest: Some(Bytes::new()),
            taken: now,
        }));
        taken.push(Arc::clone(&answer));
        Some(LargeAnswer(answer))
    }
}

/// The place of one answer, until it is sent, or its client has gone.
#[derive(Debug)]
pub(super) struct LargeAnswer(Arc<Mutex<Answer>>);

impl LargeAnswer {
    /// The answer as content.
    pub(super) fn in_pieces(self, text: String) -> Body {
        // it may have lost its place while it was made
        if let Some(rest) = &mut lock(&self.0).rest {
            *rest = text.into();
        }
        Body::from_stream(self)
    }
}

impl Stream for LargeAnswer {
    type Item = io::Result<Bytes>;

    fn poll_next(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let mut answer = lock(&self.0);
        let Some(rest) = &mut answer.rest else {
            return Poll::Ready(Some(Err(io::ErrorKind::TimedOut.into())));
        };
        let bytes = rest.len().min(PIECE_BYTES);
        let piece = rest.split_to(bytes);
        answer.taken = Instant::now();
        Poll::Ready((!piece.is_empty()).then_some(Ok(piece)))
    }
}

/// Every operation completes its change before anything that can fail.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn next(answer: &mut LargeAnswer) -> Option<Result<usize, io::ErrorKind>> {
        let cx = &mut Context::from_waker(std::task::Waker::noop());
        match Pin::new(answer).poll_next(cx) {
            Poll::Ready(piece) => piece.map(|piece| match piece {
                Ok(bytes) => Ok(bytes.len()),
                Err(error) => Err(error.kind()),
            }),
            Poll::Pending => panic!("it waits for nothing"),
        }
    }

    fn with_content(answer: &LargeAnswer) {
        lock(&answer.0).rest = Some(vec![0; 3 * PIECE_BYTES].into());
    }

    #[test]
    fn answer_that_is_not_read_makes_room_for_another_after_a_second() {
        let answers = LargeAnswers::new(2);
        let before = Instant::now();
        let mut unread = answers.place(before).expect("room");
        let mut read = answers.place(before).expect("room");
        with_content(&unread);
        with_content(&read);
        assert!(answers.place(before).is_none());
        assert_eq!(next(&mut read), Some(Ok(PIECE_BYTES)));
        let later = before + UNREAD_MAX;
        let _third = answers.place(later).expect("the place of the unread one");
        assert_eq!(next(&mut unread), Some(Err(io::ErrorKind::TimedOut)));
        assert!(lock(&unread.0).rest.is_none());
        assert_eq!(next(&mut read), Some(Ok(PIECE_BYTES)));
        assert!(answers.place(later).is_none());
    }

    #[test]
    fn place_is_free_once_its_answer_is_over() {
        let answers = LargeAnswers::new(1);
        let now = Instant::now();
        let mut one = answers.place(now).expect("room");
        assert_eq!(next(&mut one), None);
        assert!(answers.place(now).is_none());
        drop(one);
        assert!(answers.place(now).is_some());
    }
}
