//! A limit on how fast a client is sent content.

use std::task::{Context, Poll};

/// Says how much content of one response may leave, and when.
pub trait SendRate {
    /// How many of `wanted` bytes, which is not 0, may leave now: at least one. Not ready while
    /// there are none; the waker is kept.
    fn poll_permit(&mut self, cx: &mut Context<'_>, wanted: usize) -> Poll<usize>;

    /// So many of them have left.
    fn sent(&mut self, bytes: usize);
}

/// The limit of one response, if it has one.
pub(crate) struct Pacing {
    rate: Option<Box<dyn SendRate>>,
    /// Content waits for the rate, and for nothing else.
    is_held_back: bool,
}

impl Pacing {
    /// No limit.
    pub(crate) const NONE: Self = Self {
        rate: None,
        is_held_back: false,
    };

    pub(crate) fn set(&mut self, rate: Box<dyn SendRate>) {
        self.rate = Some(rate);
    }

    pub(crate) fn lift(&mut self) {
        *self = Self::NONE;
    }

    pub(crate) const fn is_held_back(&self) -> bool {
        self.is_held_back
    }

    /// How many of `wanted` bytes may leave now; all, if there is no limit.
    pub(crate) fn poll_permit(&mut self, cx: &mut Context<'_>, wanted: usize) -> Poll<usize> {
        let permit = match &mut self.rate {
            Some(rate) if wanted > 0 => rate.poll_permit(cx, wanted),
            _ => Poll::Ready(wanted),
        };
        self.is_held_back = permit.is_pending();
        permit
    }

    pub(crate) fn sent(&mut self, bytes: usize) {
        if let Some(rate) = &mut self.rate {
            rate.sent(bytes);
        }
    }

    pub(crate) const fn is_unlimited(&self) -> bool {
        self.rate.is_none()
    }
}
