//! What the modules have of one request: their exchanges, and how far it has come among them.

mod background;
mod begun_exchange;
mod deferral;
mod head;
pub(crate) mod reached;
mod variant;

pub(crate) use self::head::{ComparedHead, Head, SavedHead};

use self::begun_exchange::{BegunExchange, call_hook, call_thread};
use self::deferral::Deferral;
use self::head::Changes;
use self::reached::{Deferred, Reached, UnfinishedHook};
use self::variant::RequestVariant;
use super::call_time::CallTime;
use super::content_source::ContentSource;
use super::hosts::ModuleHosts;
use super::loaded::{LoadedModule, LoadedModules};
use super::module_answer::{ModuleAnswer, ModuleRefusal};
use super::module_content::{ContentAnswer, FeedEnd, ModuleContent};
use super::threads::call::ThreadExchange;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use weir_extend::{Answer, Call, Hook, LocalResponse, Piece, Progress, Transform};
use weir_measure::{Counters, Metric};
use weir_net::Deadline;
use weir_net::clock::Clock;
use weir_policy::extension::{
    Cascade, FailurePolicy, ModuleFailure, ModuleId, ModuleSet, Permit, Step, Variant,
};
use weir_policy::{Now, Secret};
use weir_semantics::Authority;

/// Calls of one module at one hook that it may defer: one that always defers would never end.
const DEFERRALS_MAX: usize = 64;

/// The modules' part of one request.
pub(crate) struct RequestModules {
    loaded: Arc<LoadedModules>,
    cascade: Cascade,
    /// Those that were enabled when it began.
    enabled: ModuleSet,
    /// By the numbers of the modules.
    slots: Vec<Slot>,
    /// What changes the content behind the head that modules were called for last.
    content: Option<Box<ModuleContent>>,
    /// What the content of the request passes, until that is sent.
    request_content: Option<Box<ModuleContent>>,
    /// What a module has answered for content.
    answer: ContentAnswer,
    /// The hook at which the request has left the fast path.
    left: Option<Box<UnfinishedHook>>,
    variant: RequestVariant,
    /// What modules have done to the response whose head they were called for last.
    changes: Changes,
    /// Whether a breaker permitted one call to find out whether its module works again.
    has_trials: bool,
}

/// What one module has of the request.
enum Slot {
    /// It was not called yet.
    Vacant,
    /// It was, and its breaker had permitted that.
    Begun(BegunExchange, Permit),
    /// It failed.
    Failed,
}

/// What came of a hook.
pub(crate) enum HookResult {
    /// The request continues.
    Continue,
    /// A module answers it.
    Respond(LocalResponse),
    /// It is refused.
    Refuse(ModuleRefusal),
    /// The content that modules decide by has ended before it was whole.
    SourceEnded,
}

impl From<ModuleAnswer> for HookResult {
    fn from(answer: ModuleAnswer) -> Self {
        match answer {
            ModuleAnswer::Respond(response) => Self::Respond(response),
            ModuleAnswer::Refuse(refusal) => Self::Refuse(refusal),
        }
    }
}

/// Why a call of a module has no answer.
enum CallEnd {
    /// It failed.
    Failed(ModuleFailure),
    /// No more content can be handed to it.
    Feed(FeedEnd),
}

impl From<ModuleFailure> for CallEnd {
    fn from(failure: ModuleFailure) -> Self {
        Self::Failed(failure)
    }
}

impl From<FeedEnd> for CallEnd {
    fn from(end: FeedEnd) -> Self {
        match end {
            FeedEnd::Failed(failure) => Self::Failed(failure),
            end => Self::Feed(end),
        }
    }
}

/// Passes content as it came: in the place of a module that has failed without having touched it.
struct Same;

impl Transform for Same {
    fn transform(&mut self, piece: &mut Piece<'_>) -> Progress {
        piece.pass(usize::MAX);
        match piece.is_last() && piece.input().is_empty() {
            true => Progress::Done,
            false => Progress::Continue,
        }
    }
}

/// A call of a hook: which hook, for which request, and with which configuration and counters.
pub(crate) struct HookCall<'a> {
    pub(crate) hook: Hook,
    pub(crate) call: Call,
    pub(crate) now: Now,
    /// The modules that the request began with.
    pub(crate) modules: &'a LoadedModules,
    pub(crate) hosts: &'a ModuleHosts,
    pub(crate) counters: &'a Counters,
    /// Whether each call is timed by itself.
    pub(crate) is_timed: bool,
    /// What content is counted by, and its clock: it may pass on another worker.
    pub(crate) account: (&'a Arc<Counters>, &'a Clock),
}

impl RequestModules {
    /// Of a request for `path` of `host` that begins under a configuration with these modules;
    /// `None` if none of them is enabled and for such requests.
    pub(crate) fn of(modules: &Arc<LoadedModules>, host: &[u8], path: &str) -> Option<Box<Self>> {
        let (enabled, called) = (modules.enabled(), modules.called(host, path));
        (!called.is_empty()).then(|| Self::begin(None, modules, (enabled, called)))
    }

    /// Of a request that begins under a configuration with these modules, of which some are
    /// enabled, and some of these are called. `spare` is what another request has left.
    pub(crate) fn begin(
        spare: Option<Box<Self>>,
        modules: &Arc<LoadedModules>,
        (enabled, called): (ModuleSet, ModuleSet),
    ) -> Box<Self> {
        match spare.filter(|spare| spare.is_of(modules)) {
            Some(mut spare) => {
                (spare.enabled, spare.cascade) = (enabled, Cascade::new(called));
                spare.variant.begin(modules, called);
                spare.changes = Changes::default();
                spare.has_trials = false;
                spare
            }
            None => Box::new(Self {
                cascade: Cascade::new(called),
                variant: RequestVariant::of(modules, called),
                changes: Changes::default(),
                has_trials: false,
                enabled,
                slots: (0..modules.len()).map(|_| Slot::Vacant).collect(),
                loaded: Arc::clone(modules),
                content: None,
                request_content: None,
                answer: ContentAnswer::default(),
                left: None,
            }),
        }
    }

    /// What the next request may begin with, of a request that was answered at once.
    pub(crate) fn emptied(mut self: Box<Self>) -> Box<Self> {
        self.slots.fill_with(|| Slot::Vacant);
        self.content = None;
        debug_assert!(self.left.is_none() && self.request_content.is_none());
        self
    }

    /// Whether it began under the configuration with these modules.
    pub(crate) fn is_of(&self, modules: &Arc<LoadedModules>) -> bool {
        Arc::ptr_eq(&self.loaded, modules)
    }

    /// The request leaves the fast path with a hook that was begun there.
    pub(crate) fn leave(&mut self, at: Box<UnfinishedHook>) {
        self.left = Some(at);
    }

    /// Where it has left the fast path, if that was in the middle of a hook. It is taken once.
    pub(crate) fn take_left(&mut self) -> Option<UnfinishedHook> {
        self.left.take().map(|left| *left)
    }

    /// Whether content is to be changed behind the head that modules were called for last.
    pub(crate) fn is_transforming(&self) -> bool {
        self.content.is_some()
    }

    fn loaded(&self) -> &LoadedModules {
        &self.loaded
    }

    /// The request was sent to another target, which is judged now: from here on its modules are
    /// called. What is stored depends on the target, and not on how a request came to it.
    pub(crate) fn retarget(&mut self, host: &[u8], path: &str) {
        let modules = self.callable(host, path);
        self.cascade.retarget(modules);
        let covering = self.loaded.covering(host, path);
        let called = self.enabled.intersection(covering);
        self.variant.retarget(&self.loaded, called);
    }

    /// The variant of stored responses that the request gets: `None` if no module changes responses
    /// before they are stored.
    pub(crate) fn variant(&mut self, secret: &Secret, keeps_content: bool) -> Option<Variant> {
        let (slots, variant) = (&self.slots, &mut self.variant);
        let has_failed = |id: ModuleId| matches!(slots[id.index()], Slot::Failed);
        variant.find(&self.loaded, secret, keeps_content, has_failed)
    }

    /// The same by the states that the modules have now.
    pub(crate) fn variant_now(&mut self, secret: &Secret, keeps_content: bool) -> Option<Variant> {
        self.variant.forget_states();
        self.variant(secret, keeps_content)
    }

    /// Whether modules change responses before they are stored.
    pub(crate) fn changes_stored(&self) -> bool {
        !self.variant.is_empty()
    }

    /// Whether content of the response whose head modules were called for last is changed, and not
    /// only inspected.
    pub(crate) fn changes_content(&self) -> bool {
        self.changes.changes_content()
    }

    /// Whether a module whose changes may not be stored has changed that response.
    pub(crate) fn is_unstored(&self) -> bool {
        self.changes.is_unstored()
    }

    /// Those that may still be called for a target: enabled when the request began, and not failed
    /// since.
    fn callable(&self, host: &[u8], path: &str) -> ModuleSet {
        let slots = self.slots.iter().enumerate();
        let failed = slots.filter(|(_, slot)| matches!(slot, Slot::Failed));
        let failed = failed.filter_map(|(index, _)| ModuleId::new(index));
        let covering = self.loaded.covering(host, path);
        failed.fold(self.enabled.intersection(covering), ModuleSet::without)
    }

    /// Whether a module may change the content of the response at `hook`.
    pub(crate) fn may_transform(&self, hook: Hook) -> bool {
        let transforming = self.loaded.transforming(hook);
        !transforming.intersection(self.cascade.modules()).is_empty()
    }

    /// The filter that modules have made of the content behind the head that they were called for
    /// last; `None` if they leave it as it is.
    pub(crate) fn take_content(&mut self) -> Option<Box<ModuleContent>> {
        self.content.take()
    }

    /// Has the content pass what the module `id` has set at `head`, if it has.
    fn set_content(&mut self, id: ModuleId, head: &mut Head<'_, '_>, hooked: &HookCall<'_>) {
        let changes_content = matches!(&*head, Head::Response(head) if head.changes_content());
        if let Some((codings, transform)) = head.take_transform() {
            let module = hooked.modules.get(id);
            self.changes.note_content(changes_content, module);
            let by = (hooked.account, hooked.hosts);
            let new = || ModuleContent::new(by, &self.loaded, id, &self.answer);
            let content = self.content.get_or_insert_with(|| Box::new(new()));
            content.set(id, &codings, transform);
        }
    }

    /// Keeps what the content of the request is to pass.
    pub(crate) fn keep_request_content(&mut self, content: Option<Box<ModuleContent>>) {
        self.request_content = content;
    }

    /// What the content of the request is to pass. It is taken once.
    pub(crate) fn take_request_content(&mut self) -> Option<Box<ModuleContent>> {
        self.request_content.take()
    }

    /// What a module has answered for content, since the last call: it failed, or has a response of
    /// its own, which the modules before it see.
    pub(crate) fn take_answer(&mut self) -> Option<ModuleAnswer> {
        let (id, answer) = self.answer.take()?;
        self.cascade.content_answered(id);
        Some(answer)
    }

    /// Whether a module may be called at `hook`.
    pub(crate) fn is_hooked(&self, hook: Hook) -> bool {
        !self.loaded().hooked(hook).is_empty()
    }

    /// Whether what was changed at `hook` may have more stored than the rules allow: each of the
    /// modules that were called there has permission, as any of them may have changed it.
    pub(crate) fn may_store(&self, hook: Hook) -> bool {
        let hooked = self.loaded.hooked(hook);
        let slots = self.slots.iter().enumerate();
        let mut called = slots.filter_map(|(index, slot)| {
            let id = ModuleId::new(index).filter(|id| hooked.contains(*id))?;
            matches!(slot, Slot::Begun(..)).then(|| self.loaded.get(id))?
        });
        called.all(|module| module.may_store)
    }

    /// Calls the modules at a hook, one after the other, and waits for those that defer. The hook
    /// may have been `begun` before. A module that changes the content is handed it from `source`
    /// while it defers.
    pub(crate) async fn reach<'h>(
        &mut self,
        hooked: &HookCall<'_>,
        mut head: Head<'_, 'h>,
        begun: Option<Reached<'h>>,
        mut source: Option<&mut dyn ContentSource>,
    ) -> HookResult {
        let mut reached = match begun {
            Some(begun) => begun,
            None => self.begin_hook(hooked, &mut head),
        };
        loop {
            reached = match reached {
                Reached::End(result) => return result,
                Reached::Deferred(mut deferred) => {
                    let waited = (&mut *deferred, &mut source);
                    let ready = match self.ready(waited, hooked, &mut head).await {
                        Ok(()) => Ok(()),
                        Err(CallEnd::Failed(failure)) => Err(failure),
                        Err(CallEnd::Feed(end)) => return self.feed_ended(end),
                    };
                    self.resume(*deferred, ready, hooked, &mut head)
                }
            };
        }
    }

    /// Calls the modules at a hook, one after the other, until one defers.
    pub(crate) fn begin_hook<'h>(
        &mut self,
        hooked: &HookCall<'_>,
        head: &mut Head<'_, 'h>,
    ) -> Reached<'h> {
        self.content = None;
        self.changes = Changes::default();
        let modules = hooked.modules.hooked(hooked.hook);
        let step = self.cascade.reach(hooked.hook, modules);
        self.advance(step, hooked, head)
    }

    fn advance<'h>(
        &mut self,
        mut step: Step,
        hooked: &HookCall<'_>,
        head: &mut Head<'_, 'h>,
    ) -> Reached<'h> {
        loop {
            let id = match step {
                Step::Call(id) | Step::Wait(id) => id,
                Step::Continue | Step::Respond(_) => return Reached::End(HookResult::Continue),
                Step::Refuse(id, failure) => {
                    let name = hooked.modules.get(id).map(|module| module.name.clone());
                    let name = name.unwrap_or_default();
                    let refusal = ModuleRefusal { name, failure };
                    return Reached::End(HookResult::Refuse(refusal));
                }
            };
            let Some(module) = hooked.modules.get(id) else {
                return Reached::End(HookResult::Continue);
            };
            // what a module changed before it failed does not hold
            let saved = (module.on_failure == FailurePolicy::Pass).then(|| head.saved());
            let compared = head.to_compare(hooked.hook, module);
            let answer = self.call((id, module), hooked, head);
            // most calls: nothing to settle
            if matches!(answer, Ok(Answer::Continue)) && compared.is_none() && head.is_settled() {
                step = self.cascade.continued(id);
                continue;
            }
            let answer = answer.and_then(|answer| check((id, answer), hooked, head));
            if let Ok(Answer::Defer) = answer {
                return Reached::Deferred(Box::new(Deferred {
                    id,
                    wait: Deadline::new(module.wait),
                    count: 1,
                    saved,
                    compared,
                }));
            }
            let before = (saved, compared);
            step = match self.settle((id, module), answer, before, hooked, head) {
                Ok(step) => step,
                Err(local) => return Reached::End(HookResult::Respond(local)),
            };
        }
    }

    /// Ready when what a module deferred for is there. If it changes the content, it is handed that
    /// meanwhile.
    async fn ready(
        &mut self,
        (deferred, source): (&mut Deferred<'_>, &mut Option<&mut dyn ContentSource>),
        hooked: &HookCall<'_>,
        head: &mut Head<'_, '_>,
    ) -> Result<(), CallEnd> {
        let id = deferred.id;
        if source.is_some() {
            self.set_content(id, head, hooked);
        }
        let (Slot::Begun(exchange, _), Some(module)) =
            (&mut self.slots[id.index()], hooked.modules.get(id))
        else {
            return Err(ModuleFailure::Crashed.into());
        };
        let mut deferral = Deferral {
            exchange,
            content: self.content.as_deref_mut().filter(|it| it.is_last_of(id)),
            wait: &mut deferred.wait,
            limit: module.wait,
        };
        poll_fn(|cx| deferral.poll(cx, source)).await
    }

    /// No more content can be handed to a module that has deferred: what becomes of the hook.
    fn feed_ended(&mut self, end: FeedEnd) -> HookResult {
        self.content = None;
        match end {
            FeedEnd::Source => HookResult::SourceEnded,
            FeedEnd::Answered | FeedEnd::Failed(_) => {
                self.take_answer().map_or(HookResult::Continue, Into::into)
            }
        }
    }

    /// A module had deferred, and is called again if it is `ready`.
    fn resume<'h>(
        &mut self,
        deferred: Deferred<'h>,
        ready: Result<(), ModuleFailure>,
        hooked: &HookCall<'_>,
        head: &mut Head<'_, 'h>,
    ) -> Reached<'h> {
        let id = deferred.id;
        let Some(module) = hooked.modules.get(id) else {
            return Reached::End(HookResult::Continue);
        };
        let answer = match ready {
            Ok(()) if deferred.count >= DEFERRALS_MAX => Err(ModuleFailure::BadAnswer),
            Ok(()) => {
                let answer = self.call((id, module), hooked, head);
                answer.and_then(|answer| check((id, answer), hooked, head))
            }
            Err(failure) => Err(failure),
        };
        if let Ok(Answer::Defer) = answer {
            return Reached::Deferred(Box::new(Deferred {
                count: deferred.count + 1,
                ..deferred
            }));
        }
        let before = (deferred.saved, deferred.compared);
        match self.settle((id, module), answer, before, hooked, head) {
            Ok(step) => self.advance(step, hooked, head),
            Err(local) => Reached::End(HookResult::Respond(local)),
        }
    }

    /// A module has answered, and does not defer: what to do next.
    ///
    /// # Errors
    ///
    /// It answers the request with this.
    fn settle<'h>(
        &mut self,
        (id, module): (ModuleId, &LoadedModule),
        answer: Result<Answer, ModuleFailure>,
        (saved, compared): (Option<SavedHead<'h>>, Option<ComparedHead<'h>>),
        hooked: &HookCall<'_>,
        head: &mut Head<'_, 'h>,
    ) -> Result<Step, LocalResponse> {
        match answer {
            Ok(Answer::Respond(local)) => {
                // what was to come from the next hop does not
                self.content = None;
                match self.cascade.responded(id, module.on_failure) {
                    Step::Respond(_) => Err(local),
                    step => Ok(step),
                }
            }
            Ok(_) => {
                if let Head::Request(head) = head
                    && let Some(tag) = head.take_variant()
                    && hooked.hook == Hook::RequestReceived
                {
                    self.variant.set_tag(id, tag);
                }
                if let Head::Response(head) = head {
                    self.changes.note(compared.as_ref(), head);
                }
                self.set_content(id, head, hooked);
                Ok(self.continued(id, head))
            }
            Err(failure) => {
                let mut policy = module.on_failure;
                if let Some(saved) = saved {
                    head.restore(saved);
                    policy = self.give_back(id, head);
                    self.set_content(id, head, hooked);
                }
                self.slots[id.index()] = Slot::Failed;
                let metric = module.note_failure(failure, hooked.now.tick);
                hooked.counters.inc(metric);
                Ok(self.cascade.failed(id, failure, policy))
            }
        }
    }

    /// The module `id`, without which the request may continue, has failed. If it was handed
    /// content and has not touched it, that passes as it came; if it has, there is nothing to
    /// continue with.
    fn give_back(&self, id: ModuleId, head: &mut Head<'_, '_>) -> FailurePolicy {
        match &self.content {
            Some(content) if content.is_last_of(id) && content.is_untouched_by(id) => {
                head.inspect(Box::new(Same));
                FailurePolicy::Pass
            }
            Some(content) if content.is_last_of(id) => FailurePolicy::Refuse,
            _ => FailurePolicy::Pass,
        }
    }

    /// A module has answered that the request continues, perhaps to another target. One that is no
    /// target is refused once it is judged.
    fn continued(&mut self, id: ModuleId, head: &Head<'_, '_>) -> Step {
        if let Head::Request(head) = head
            && head.target_is_changed()
            && let Ok(authority) = Authority::parse(head.authority())
        {
            let modules = self.callable(authority.host.as_bytes(), head.path_and_query());
            return self.cascade.retargeted(id, modules);
        }
        self.cascade.continued(id)
    }

    /// Calls one module once. What it answers is to be checked. Inlined, as it is part of the way
    /// of every hit that a module sees.
    #[inline(always)]
    fn call(
        &mut self,
        (id, module): (ModuleId, &LoadedModule),
        hooked: &HookCall<'_>,
        head: &mut Head<'_, '_>,
    ) -> Result<Answer, ModuleFailure> {
        if !matches!(self.slots[id.index()], Slot::Begun(..)) {
            self.begin_exchange((id, module), hooked)?;
        }
        let exchange = match &mut self.slots[id.index()] {
            Slot::Begun(exchange, _) => exchange,
            Slot::Vacant | Slot::Failed => return Err(ModuleFailure::Crashed),
        };
        let begun = hooked.is_timed.then(|| CallTime::begin(module.deadline));
        let answer = match exchange {
            BegunExchange::Here(exchange) => {
                hooked.counters.inc(Metric::ModuleCalls);
                let answer = catch_unwind(AssertUnwindSafe(|| {
                    call_hook(exchange, hooked.hook, head, &hooked.call)
                }));
                answer.map_err(|_| ModuleFailure::Crashed)?
            }
            BegunExchange::Threaded(exchange) => {
                hooked.counters.add(Metric::ModuleCalls, exchange.calls());
                call_thread(exchange, hooked, head)?
            }
        };
        if begun.is_some_and(|begun| begun.is_late()) {
            // it cannot be stopped, and has ended: what it answered holds
            let metric = module.note_failure(ModuleFailure::Deadline, hooked.now.tick);
            hooked.counters.inc(metric);
        }
        Ok(answer)
    }

    /// Begins the exchange of a module that was not called yet.
    #[inline(never)]
    fn begin_exchange(
        &mut self,
        (id, module): (ModuleId, &LoadedModule),
        hooked: &HookCall<'_>,
    ) -> Result<(), ModuleFailure> {
        if matches!(self.slots[id.index()], Slot::Failed) {
            return Err(ModuleFailure::Crashed);
        }
        let permit = module.permit(hooked.now.tick);
        if permit == Permit::Open {
            return Err(ModuleFailure::BreakerOpen);
        }
        self.variant.note_state(id, module);
        let host = hooked.hosts.of(&self.loaded, id);
        let begun = match &module.threads {
            None => {
                let begin = || module.module.begin(&host);
                let begun = catch_unwind(AssertUnwindSafe(begin));
                BegunExchange::Here(begun.map_err(|_| ModuleFailure::Crashed)?)
            }
            Some(pool) => {
                for _ in 0..pool.take_failed_ends() {
                    let metric = module.note_failure(ModuleFailure::Crashed, hooked.now.tick);
                    hooked.counters.inc(metric);
                }
                BegunExchange::Threaded(Box::new(ThreadExchange::begin(pool, &host)?))
            }
        };
        self.has_trials |= permit == Permit::Trial;
        self.slots[id.index()] = Slot::Begun(begun, permit);
        Ok(())
    }

    /// The exchange is over: modules that did not fail did well.
    pub(crate) fn succeeded(&self) {
        if !self.has_trials {
            return;
        }
        for (index, slot) in self.slots.iter().enumerate() {
            let module = ModuleId::new(index).and_then(|id| self.loaded().get(id));
            if let (Slot::Begun(_, permit @ Permit::Trial), Some(module)) = (slot, module) {
                module.note_success(*permit);
            }
        }
    }
}

/// What a module has answered, unless it has done what it may not do at its hook.
fn check(
    (id, answer): (ModuleId, Answer),
    hooked: &HookCall<'_>,
    head: &Head<'_, '_>,
) -> Result<Answer, ModuleFailure> {
    let hook = hooked.hook;
    let is_refused = match head {
        Head::Request(head) => {
            hook != Hook::RequestReceived && (head.target_is_changed() || head.is_transformed())
        }
        Head::Response(head) => {
            (hook != Hook::ResponseReceived && head.status_is_changed())
                || (head.is_transformed() && !hooked.modules.transforming(hook).contains(id))
        }
        Head::None => false,
    };
    let is_misplaced = match &answer {
        Answer::Respond(response) => !hook.may_respond() || response.is_too_long(),
        _ => false,
    };
    if is_refused || is_misplaced {
        return Err(ModuleFailure::BadAnswer);
    }
    match answer {
        Answer::Fail => Err(ModuleFailure::GaveUp),
        Answer::Unavailable => Err(ModuleFailure::Unavailable),
        Answer::Continue | Answer::Respond(_) | Answer::Defer => Ok(answer),
    }
}
