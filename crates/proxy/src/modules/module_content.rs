//! The content of a message that modules change, as a filter of its stream.

use super::content_chain::{ContentChain, StageEnd, StageLimits};
use super::content_source::{ContentSource, FedContent, SourceEnded};
use super::hosts::ModuleHosts;
use super::loaded::LoadedModules;
use super::module_answer::{ModuleAnswer, ModuleRefusal};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use weir_codings::Decoder;
use weir_extend::{Codings, Piece, Progress, Transform};
use weir_measure::{Counters, Metric};
use weir_net::clock::Clock;
use weir_net::filter::{ContentFilter, FilterFailed, Filtered};
use weir_policy::extension::{ModuleFailure, ModuleId};

/// Where a filter reports the module that ended the message before its time.
pub(crate) type ContentAnswer = Rc<RefCell<Option<(ModuleId, ModuleAnswer)>>>;

/// The content of one message.
pub(crate) struct ModuleContent {
    counters: Arc<Counters>,
    clock: Clock,
    modules: Arc<LoadedModules>,
    answer: ContentAnswer,
    chain: ContentChain,
    /// The modules of the chain.
    ids: Vec<ModuleId>,
    /// What was received while modules decided on the head.
    fed: FedContent,
}

/// Fails at its first call.
struct Failing;

impl Transform for Failing {
    fn transform(&mut self, _: &mut Piece<'_>) -> Progress {
        Progress::Fail
    }
}

/// Why no more content is handed to modules that decide on a head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FeedEnd {
    /// The module that decides has failed. What it was handed is still there, if it has not touched
    /// it.
    Failed(ModuleFailure),
    /// A module has answered, or another one has failed.
    Answered,
    /// The source has ended.
    Source,
}

/// What modules that decide on a head wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Feed {
    /// Content was handed to them since the last call.
    Moved,
    /// Content from the source.
    Source,
    /// Nothing but themselves: they have all of it, or as much as is held for them.
    Modules,
}

impl ModuleContent {
    /// The content of a message, which no module changes yet. Its memory is that of the host of the
    /// module `first`.
    pub(crate) fn new(
        ((counters, clock), hosts): ((&Arc<Counters>, &Clock), &ModuleHosts),
        modules: &Arc<LoadedModules>,
        first: ModuleId,
        answer: &ContentAnswer,
    ) -> Self {
        Self {
            counters: Arc::clone(counters),
            clock: clock.clone(),
            modules: Arc::clone(modules),
            answer: Rc::clone(answer),
            chain: ContentChain::new(hosts.of(modules, first)),
            ids: Vec::new(),
            fed: FedContent::default(),
        }
    }

    /// Has the content pass `transform` of the module `id`, behind those of others, with `codings`
    /// undone in front of it. One that the module has set for the same head is replaced; if that
    /// has taken coded content, these cannot be undone any more, and the message fails.
    pub(crate) fn set(&mut self, id: ModuleId, codings: &Codings, transform: Box<dyn Transform>) {
        let Some(module) = self.modules.get(id) else {
            return;
        };
        let limits = StageLimits {
            deadline: module.deadline,
            wait: module.wait,
            hold_bytes: module.hold_bytes,
            is_copied: module.threads.is_some(),
        };
        if !self.is_last_of(id) {
            return self.push(id, codings, (transform, limits));
        }
        if codings.is_empty() {
            return self.chain.replace_last(transform);
        }
        let Some((given, is_last)) = self.chain.pop_untouched() else {
            return self.chain.replace_last(Box::new(Failing));
        };
        self.ids.pop();
        let first = self.ids.len();
        self.push(id, codings, (transform, limits));
        if self.chain.give_again(first, (&given, is_last)).is_err() {
            self.chain.replace_last(Box::new(Failing));
        }
    }

    fn push(
        &mut self,
        id: ModuleId,
        codings: &Codings,
        (transform, limits): (Box<dyn Transform>, StageLimits),
    ) {
        let decoder_limits = StageLimits {
            is_copied: false,
            ..limits
        };
        for coding in codings.iter() {
            self.chain
                .push_decoder(Decoder::gauged_stage(coding), decoder_limits);
            self.ids.push(id);
        }
        self.chain.push(transform, limits);
        self.ids.push(id);
    }

    /// Whether the last transform is one of the module `id`.
    pub(crate) fn is_last_of(&self, id: ModuleId) -> bool {
        self.ids.last() == Some(&id)
    }

    /// Whether what the module `id`, the last one, was handed is as it came.
    pub(crate) fn is_untouched_by(&self, id: ModuleId) -> bool {
        let stages = self.ids.iter().filter(|other| **other == id);
        stages.count() == 1 && !self.chain.has_last_moved()
    }

    /// Hands content from `source` to the modules, while they decide on its head.
    ///
    /// # Errors
    ///
    /// No more can be handed to them.
    pub(crate) fn poll_feed(
        &mut self,
        cx: &mut Context<'_>,
        source: &mut dyn ContentSource,
    ) -> Result<Feed, FeedEnd> {
        let input = match &self.fed.bytes[..] {
            [] if self.fed.is_last => None,
            bytes => Some(bytes),
        };
        let mut taken = 0;
        let fed = self.chain.poll_feed(cx, input, &mut taken);
        self.count();
        self.fed.bytes.drain(..taken);
        source.consumed(taken);
        fed.map_err(|(at, end)| match end {
            StageEnd::Failed(failure) if at + 1 == self.ids.len() => FeedEnd::Failed(failure),
            end => {
                self.report(at, end);
                FeedEnd::Answered
            }
        })?;
        if taken > 0 {
            return Ok(Feed::Moved);
        }
        if !self.fed.bytes.is_empty() || self.fed.is_last {
            return Ok(Feed::Modules);
        }
        match source.poll_receive(cx, &mut self.fed.bytes) {
            Poll::Pending => Ok(Feed::Source),
            Poll::Ready(Err(SourceEnded)) => Err(FeedEnd::Source),
            Poll::Ready(Ok(is_last)) => {
                self.fed.is_last = is_last;
                Ok(Feed::Moved)
            }
        }
    }

    /// The head is decided on: what was received and not taken is taken out, to be filtered with
    /// what follows.
    pub(crate) fn take_fed(&mut self) -> FedContent {
        self.chain.make_room();
        std::mem::take(&mut self.fed)
    }

    /// Counts the calls since the last time.
    fn count(&mut self) {
        let calls = std::mem::take(&mut self.chain.calls);
        self.counters.add_shared(Metric::ModuleCalls, calls);
        for at in std::mem::take(&mut self.chain.late) {
            // it cannot be stopped, and has ended: what it put out holds
            self.note_failure(at, ModuleFailure::Deadline);
        }
    }

    /// The module at this place of the chain has ended the message before its time.
    fn report(&mut self, at: usize, end: StageEnd) {
        let Some(id) = self.ids.get(at).copied() else {
            return;
        };
        let answer = match end {
            StageEnd::Responds(response) => ModuleAnswer::Respond(*response),
            StageEnd::Failed(failure) => {
                let name = self.note_failure(at, failure).unwrap_or_default();
                let name = name.to_owned();
                ModuleAnswer::Refuse(ModuleRefusal { name, failure })
            }
        };
        *self.answer.borrow_mut() = Some((id, answer));
    }

    /// The module at this place of the chain has failed. Its name.
    fn note_failure(&self, at: usize, failure: ModuleFailure) -> Option<&str> {
        let module = self.modules.get(*self.ids.get(at)?)?;
        let metric = module.note_failure(failure, self.clock.tick());
        self.counters.add_shared(metric, 1);
        Some(&module.name)
    }
}

impl ContentFilter for ModuleContent {
    fn poll_filter(
        &mut self,
        cx: &mut Context<'_>,
        input: Option<&[u8]>,
        out: &mut Vec<u8>,
    ) -> Poll<Result<Filtered, FilterFailed>> {
        let polled = self.chain.poll(cx, input, out);
        self.count();
        polled.map_err(|(at, end)| {
            self.report(at, end);
            FilterFailed
        })
    }
}
