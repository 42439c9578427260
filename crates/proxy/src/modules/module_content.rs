//! The content of a message that modules change, as a filter of its stream.

use super::content_chain::{ContentChain, StageEnd, StageLimits};
use super::loaded::LoadedModules;
use super::module_answer::{ModuleAnswer, ModuleRefusal};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use weir_extend::Transform;
use weir_measure::{Counters, Metric};
use weir_net::clock::Clock;
use weir_net::filter::{ContentFilter, FilterFailed, Filtered};
use weir_policy::extension::{ModuleFailure, ModuleId};

/// Where a filter reports the module that ended the message before its time.
pub(crate) type ContentAnswer = Rc<RefCell<Option<(ModuleId, ModuleAnswer)>>>;

/// A transform, and the module that has set it.
pub(crate) type ModuleTransform = (ModuleId, Box<dyn Transform>);

/// The content of one message.
pub(crate) struct ModuleContent {
    counters: Arc<Counters>,
    clock: Clock,
    modules: Arc<LoadedModules>,
    answer: ContentAnswer,
    chain: ContentChain,
    /// The modules of the chain.
    ids: Vec<ModuleId>,
}

impl ModuleContent {
    /// The filter that `transforms` make, in the direction of the content.
    pub(crate) fn new(
        (counters, clock): (&Arc<Counters>, &Clock),
        modules: &Arc<LoadedModules>,
        answer: &ContentAnswer,
        transforms: Vec<ModuleTransform>,
    ) -> Self {
        let (mut chain, mut ids) = (ContentChain::default(), Vec::new());
        for (id, transform) in transforms {
            let Some(module) = modules.get(id) else {
                continue;
            };
            let limits = StageLimits {
                deadline: module.deadline,
                wait: module.wait,
                hold_bytes: module.hold_bytes,
            };
            chain.push(transform, limits);
            ids.push(id);
        }
        Self {
            counters: Arc::clone(counters),
            clock: clock.clone(),
            modules: Arc::clone(modules),
            answer: Rc::clone(answer),
            chain,
            ids,
        }
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
