//! Content that is changed on its way through a stream.

use std::fmt;
use std::task::{Context, Poll, ready};

/// Changes the content of a message between a stream and its user.
pub trait ContentFilter {
    /// Takes from `input`, the next content (`None`: there is no more), and puts content into
    /// `out`, which is empty: at most as much as its user should hold at once.
    ///
    /// Called again with what was not taken, once `out` is used. It must take something, put
    /// something or end, unless `input` is empty: else it has failed.
    ///
    /// # Errors
    ///
    /// The content cannot be changed: the message is not whole.
    fn poll_filter(
        &mut self,
        cx: &mut Context<'_>,
        input: Option<&[u8]>,
        out: &mut Vec<u8>,
    ) -> Poll<Result<Filtered, FilterFailed>>;
}

/// What a filter did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Filtered {
    /// Bytes of the input that it took.
    pub taken: usize,
    /// With what it has put out the content is whole, whatever may still come.
    pub is_whole: bool,
}

/// A filter has failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FilterFailed;

impl fmt::Display for FilterFailed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the content cannot be changed as a module should")
    }
}

impl std::error::Error for FilterFailed {}

/// A filter, and what it has put out.
pub(crate) struct Filtering {
    filter: Box<dyn ContentFilter>,
    out: Vec<u8>,
    used: usize,
    is_whole: bool,
    has_failed: bool,
}

impl Filtering {
    pub(crate) fn new(filter: Box<dyn ContentFilter>) -> Self {
        Self {
            filter,
            out: Vec::new(),
            used: 0,
            is_whole: false,
            has_failed: false,
        }
    }

    /// What was put out and not used.
    pub(crate) fn rest(&self) -> &[u8] {
        &self.out[self.used..]
    }

    /// So many bytes of it were used.
    pub(crate) fn advance(&mut self, bytes: usize) {
        self.used += bytes;
        if self.used == self.out.len() {
            self.out.clear();
            self.used = 0;
        }
    }

    /// Takes what was put out, and puts `spare`, which is empty, in its place.
    pub(super) fn replace_out(&mut self, spare: Vec<u8>) -> Vec<u8> {
        debug_assert!(self.used == 0, "some of it was used");
        std::mem::replace(&mut self.out, spare)
    }

    /// Whether nothing more will be put out.
    pub(crate) const fn is_whole(&self) -> bool {
        self.is_whole
    }

    /// Has the filter work, if nothing of what it put out is left. How many bytes it took.
    pub(crate) fn poll_fill(
        &mut self,
        cx: &mut Context<'_>,
        input: Option<&[u8]>,
    ) -> Poll<Result<usize, FilterFailed>> {
        if self.has_failed {
            return Poll::Ready(Err(FilterFailed));
        }
        if self.is_whole || !self.rest().is_empty() {
            return Poll::Ready(Ok(0));
        }
        let filtered = ready!(self.filter.poll_filter(cx, input, &mut self.out));
        let filtered = filtered.and_then(|filtered| {
            let is_idle = filtered.taken == 0 && !filtered.is_whole && self.out.is_empty();
            let may_be_idle = input.is_some_and(<[u8]>::is_empty);
            if is_idle && !may_be_idle {
                Err(FilterFailed)
            } else {
                Ok(filtered)
            }
        });
        self.has_failed = filtered.is_err();
        if self.has_failed {
            self.out.clear();
        }
        let filtered = filtered?;
        self.is_whole = filtered.is_whole;
        Poll::Ready(Ok(filtered.taken))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::task::Waker;

    /// Does always the same.
    struct Always {
        takes: bool,
        puts: bool,
        is_whole: bool,
    }

    impl ContentFilter for Always {
        fn poll_filter(
            &mut self,
            _: &mut Context<'_>,
            input: Option<&[u8]>,
            out: &mut Vec<u8>,
        ) -> Poll<Result<Filtered, FilterFailed>> {
            if self.puts {
                out.extend_from_slice(b"out");
            }
            let taken = if self.takes {
                input.map_or(0, <[u8]>::len)
            } else {
                0
            };
            Poll::Ready(Ok(Filtered {
                taken,
                is_whole: self.is_whole,
            }))
        }
    }

    fn fill(filtering: &mut Filtering, input: Option<&[u8]>) -> Result<usize, FilterFailed> {
        let mut cx = Context::from_waker(Waker::noop());
        match filtering.poll_fill(&mut cx, input) {
            Poll::Ready(filled) => filled,
            Poll::Pending => panic!("it is ready"),
        }
    }

    #[test]
    fn filter_that_neither_takes_nor_puts_nor_ends_has_failed_unless_it_needs_content() {
        let idle = || {
            Filtering::new(Box::new(Always {
                takes: false,
                puts: false,
                is_whole: false,
            }))
        };
        let mut needs_content = idle();
        assert_eq!(fill(&mut needs_content, Some(b"")), Ok(0));
        for input in [Some(&b"in"[..]), None] {
            let mut filtering = idle();
            assert_eq!(fill(&mut filtering, input), Err(FilterFailed));
            assert_eq!(fill(&mut filtering, Some(b"")), Err(FilterFailed), "again");
        }
    }

    #[test]
    fn filter_is_not_called_while_what_it_put_out_is_not_used() {
        let mut filtering = Filtering::new(Box::new(Always {
            takes: true,
            puts: true,
            is_whole: false,
        }));
        assert_eq!(fill(&mut filtering, Some(b"in")), Ok(2));
        filtering.advance(1);
        assert_eq!(fill(&mut filtering, Some(b"in")), Ok(0));
        assert_eq!(filtering.rest(), b"ut");
        filtering.advance(2);
        assert_eq!(fill(&mut filtering, Some(b"in")), Ok(2));
    }

    #[test]
    fn filter_that_has_ended_takes_nothing_more() {
        let mut filtering = Filtering::new(Box::new(Always {
            takes: false,
            puts: false,
            is_whole: true,
        }));
        assert_eq!(fill(&mut filtering, Some(b"in")), Ok(0));
        assert!(filtering.is_whole());
        assert_eq!(fill(&mut filtering, Some(b"more")), Ok(0));
    }
}
