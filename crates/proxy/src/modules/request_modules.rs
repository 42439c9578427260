//! What the modules have of one request: their exchanges, and how far it has come among them.

use super::hosts::ModuleHosts;
use super::loaded::{LoadedModule, LoadedModules};
use super::module_answer::{ModuleAnswer, ModuleRefusal};
use super::module_content::{ContentAnswer, ModuleContent, ModuleTransform};
use super::reached::{Deferred, LeftHook, Reached};
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Instant;
use tokio::time::timeout_at;
use weir_extend::{
    Answer, Call, Exchange, Hook, LocalResponse, RequestHead, ResponseHead, Transform,
};
use weir_measure::{Counters, Metric};
use weir_net::clock::Clock;
use weir_policy::Now;
use weir_policy::extension::{
    Cascade, FailurePolicy, ModuleFailure, ModuleId, ModuleSet, Permit, Step,
};
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
    transforms: Vec<ModuleTransform>,
    /// What the content of the request passes, until that is sent.
    request_content: Option<Box<ModuleContent>>,
    /// What a module has answered for content.
    answer: ContentAnswer,
    /// The hook at which the request has left the fast path.
    left: Option<Box<LeftHook>>,
}

/// What one module has of the request.
enum Slot {
    /// It was not called yet.
    Vacant,
    /// It was, and its breaker had permitted that.
    Begun(Box<dyn Exchange>, Permit),
    /// It failed.
    Failed,
}

/// The head that a hook is about.
pub(crate) enum Head<'c, 'h> {
    Request(&'c mut RequestHead<'h>),
    Response(&'c mut ResponseHead<'h>),
    /// There is none: the exchange is over.
    None,
}

/// A head as it was before a call.
pub(super) enum SavedHead<'h> {
    Request(RequestHead<'h>),
    Response(ResponseHead<'h>),
    None,
}

impl SavedHead<'_> {
    /// The same, which holds all that it is made of.
    pub(super) fn into_owned(self) -> SavedHead<'static> {
        match self {
            Self::Request(head) => SavedHead::Request(head.into_owned()),
            Self::Response(head) => SavedHead::Response(head.into_owned()),
            Self::None => SavedHead::None,
        }
    }
}

impl<'h> Head<'_, 'h> {
    fn saved(&self) -> SavedHead<'h> {
        match self {
            Self::Request(head) => SavedHead::Request(head.saved()),
            Self::Response(head) => SavedHead::Response(head.saved()),
            Self::None => SavedHead::None,
        }
    }

    fn take_transform(&mut self) -> Option<Box<dyn Transform>> {
        match self {
            Self::Request(head) => head.take_transform(),
            Self::Response(head) => head.take_transform().map(|(_, transform)| transform),
            Self::None => None,
        }
    }

    fn restore(&mut self, saved: SavedHead<'h>) {
        match (self, saved) {
            (Self::Request(head), SavedHead::Request(saved)) => **head = saved,
            (Self::Response(head), SavedHead::Response(saved)) => **head = saved,
            _ => {}
        }
    }
}

/// What came of a hook.
pub(crate) enum HookResult {
    /// The request continues.
    Continue,
    /// A module answers it.
    Respond(LocalResponse),
    /// It is refused.
    Refuse(ModuleRefusal),
}

/// Who is called, and for whom.
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
}

impl RequestModules {
    /// Of a request for `path` of `host` that begins under a configuration with these modules;
    /// `None` if none of them is enabled and for such requests.
    pub(crate) fn of(modules: &Arc<LoadedModules>, host: &str, path: &str) -> Option<Box<Self>> {
        let (enabled, called) = modules.callable(host, path);
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
                spare
            }
            None => Box::new(Self {
                cascade: Cascade::new(called),
                enabled,
                slots: (0..modules.len()).map(|_| Slot::Vacant).collect(),
                loaded: Arc::clone(modules),
                transforms: Vec::new(),
                request_content: None,
                answer: ContentAnswer::default(),
                left: None,
            }),
        }
    }

    /// What the next request may begin with, of a request that was answered at once.
    pub(crate) fn emptied(mut self: Box<Self>) -> Box<Self> {
        self.slots.fill_with(|| Slot::Vacant);
        self.transforms.clear();
        debug_assert!(self.left.is_none() && self.request_content.is_none());
        self
    }

    /// Whether it began under the configuration with these modules.
    pub(crate) fn is_of(&self, modules: &Arc<LoadedModules>) -> bool {
        Arc::ptr_eq(&self.loaded, modules)
    }

    /// The request leaves the fast path with a hook that was begun there.
    pub(crate) fn leave(&mut self, at: Box<LeftHook>) {
        self.left = Some(at);
    }

    /// Where it has left the fast path, if that was in the middle of a hook. It is taken once.
    pub(crate) fn take_left(&mut self) -> Option<LeftHook> {
        self.left.take().map(|left| *left)
    }

    /// Whether content is to be changed behind the head that modules were called for last.
    pub(crate) fn is_transforming(&self) -> bool {
        !self.transforms.is_empty()
    }

    fn loaded(&self) -> &LoadedModules {
        &self.loaded
    }

    /// The request was sent to another target, which is judged now: from here on its modules are
    /// called. What is stored depends on the target, and not on how a request came to it.
    pub(crate) fn retarget(&mut self, host: &str, path: &str) {
        let modules = self.callable(host, path);
        self.cascade.retarget(modules);
    }

    /// Those that may still be called for a target: enabled when the request began, and not failed
    /// since.
    fn callable(&self, host: &str, path: &str) -> ModuleSet {
        let slots = self.slots.iter().enumerate();
        let failed = slots.filter(|(_, slot)| matches!(slot, Slot::Failed));
        let failed = failed.filter_map(|(index, _)| ModuleId::new(index));
        let covering = self.loaded.covering(host, path);
        failed.fold(self.enabled.intersection(covering), ModuleSet::without)
    }

    /// Whether a module may change the content of the response.
    pub(crate) fn may_transform(&self) -> bool {
        let modules = self.cascade.modules();
        !modules.intersection(self.loaded.transforming()).is_empty()
    }

    /// The filter that modules have made of the content behind the head that they were called for
    /// last; `None` if they leave it as it is.
    pub(crate) fn take_content(
        &mut self,
        counters: &Arc<Counters>,
        clock: &Clock,
    ) -> Option<Box<ModuleContent>> {
        let transforms = std::mem::take(&mut self.transforms);
        if transforms.is_empty() {
            return None;
        }
        let account = (counters, clock);
        let content = ModuleContent::new(account, &self.loaded, &self.answer, transforms);
        Some(Box::new(content))
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
    /// may have been `begun` before.
    pub(crate) async fn reach<'h>(
        &mut self,
        hooked: &HookCall<'_>,
        mut head: Head<'_, 'h>,
        begun: Option<Reached<'h>>,
    ) -> HookResult {
        let mut reached = match begun {
            Some(begun) => begun,
            None => self.begin_hook(hooked, &mut head),
        };
        loop {
            reached = match reached {
                Reached::End(result) => return result,
                Reached::Deferred(deferred) => {
                    let ready = self.ready(&deferred).await;
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
        self.transforms.clear();
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
            let answer = self.call((id, module), hooked, head);
            if let Ok(Answer::Defer) = answer {
                let until = tokio::time::Instant::now() + module.wait;
                return Reached::Deferred(Box::new(Deferred {
                    id,
                    until,
                    count: 1,
                    saved,
                }));
            }
            step = match self.settle((id, module), answer, saved, hooked, head) {
                Ok(step) => step,
                Err(local) => return Reached::End(HookResult::Respond(local)),
            };
        }
    }

    /// Ready when what a module deferred for is there.
    async fn ready(&mut self, deferred: &Deferred<'_>) -> Result<(), ModuleFailure> {
        let Slot::Begun(exchange, _) = &mut self.slots[deferred.id.index()] else {
            return Err(ModuleFailure::Crashed);
        };
        let ready = poll_fn(|cx| {
            let polled = catch_unwind(AssertUnwindSafe(|| exchange.poll_deferred(cx)));
            match polled {
                Ok(polled) => polled.map(Ok),
                Err(_) => std::task::Poll::Ready(Err(ModuleFailure::Crashed)),
            }
        });
        let ready = timeout_at(deferred.until, ready).await;
        ready.unwrap_or(Err(ModuleFailure::Deadline))
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
            Ok(()) => self.call((id, module), hooked, head),
            Err(failure) => Err(failure),
        };
        if let Ok(Answer::Defer) = answer {
            return Reached::Deferred(Box::new(Deferred {
                count: deferred.count + 1,
                ..deferred
            }));
        }
        match self.settle((id, module), answer, deferred.saved, hooked, head) {
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
        saved: Option<SavedHead<'h>>,
        hooked: &HookCall<'_>,
        head: &mut Head<'_, 'h>,
    ) -> Result<Step, LocalResponse> {
        match answer {
            Ok(Answer::Respond(local)) => {
                // what was to come from the next hop does not
                self.transforms.clear();
                match self.cascade.responded(id, module.on_failure) {
                    Step::Respond(_) => Err(local),
                    step => Ok(step),
                }
            }
            Ok(_) => {
                let transform = head.take_transform();
                self.transforms.extend(transform.map(|it| (id, it)));
                Ok(self.continued(id, head))
            }
            Err(failure) => {
                if let Some(saved) = saved {
                    head.restore(saved);
                }
                self.slots[id.index()] = Slot::Failed;
                let metric = module.note_failure(failure, hooked.now.tick);
                hooked.counters.inc(metric);
                Ok(self.cascade.failed(id, failure, module.on_failure))
            }
        }
    }

    /// A module has answered that the request continues, perhaps to another target. One that is no
    /// target is refused once it is judged.
    fn continued(&mut self, id: ModuleId, head: &Head<'_, '_>) -> Step {
        if let Head::Request(head) = head
            && head.target_is_changed()
            && let Ok(authority) = Authority::parse(head.authority())
        {
            let modules = self.callable(authority.host.as_str(), head.path_and_query());
            return self.cascade.retargeted(id, modules);
        }
        self.cascade.continued(id)
    }

    /// Calls one module once.
    fn call(
        &mut self,
        (id, module): (ModuleId, &LoadedModule),
        hooked: &HookCall<'_>,
        head: &mut Head<'_, '_>,
    ) -> Result<Answer, ModuleFailure> {
        let exchange = self.exchange(id, module, hooked)?;
        hooked.counters.inc(Metric::ModuleCalls);
        let begun = hooked.is_timed.then(Instant::now);
        let answer = catch_unwind(AssertUnwindSafe(|| {
            call_hook(exchange, hooked.hook, head, &hooked.call)
        }));
        let answer = answer.map_err(|_| ModuleFailure::Crashed)?;
        if begun.is_some_and(|begun| begun.elapsed() > module.deadline) {
            // it cannot be stopped, and has ended: what it answered holds
            let metric = module.note_failure(ModuleFailure::Deadline, hooked.now.tick);
            hooked.counters.inc(metric);
        }
        check(hooked.hook, head, &answer)?;
        if let Head::Response(head) = head
            && head.is_transformed()
            && !module.module.may_transform()
        {
            return Err(ModuleFailure::BadAnswer);
        }
        match answer {
            Answer::Fail => Err(ModuleFailure::GaveUp),
            Answer::Unavailable => Err(ModuleFailure::Unavailable),
            Answer::Continue | Answer::Respond(_) | Answer::Defer => Ok(answer),
        }
    }

    /// The exchange of a module, begun if it was not yet.
    fn exchange(
        &mut self,
        id: ModuleId,
        module: &LoadedModule,
        hooked: &HookCall<'_>,
    ) -> Result<&mut Box<dyn Exchange>, ModuleFailure> {
        let slot = &mut self.slots[id.index()];
        if matches!(slot, Slot::Vacant) {
            let permit = module.permit(hooked.now.tick);
            if permit == Permit::Open {
                return Err(ModuleFailure::BreakerOpen);
            }
            let begun = catch_unwind(AssertUnwindSafe(|| {
                module.module.begin(&hooked.hosts.of(&self.loaded, id))
            }));
            let begun = begun.map_err(|_| ModuleFailure::Crashed)?;
            *slot = Slot::Begun(begun, permit);
        }
        match slot {
            Slot::Begun(exchange, _) => Ok(exchange),
            Slot::Vacant | Slot::Failed => Err(ModuleFailure::Crashed),
        }
    }

    /// The exchange is over: modules that did not fail did well.
    pub(crate) fn succeeded(&self) {
        for (index, slot) in self.slots.iter().enumerate() {
            let module = ModuleId::new(index).and_then(|id| self.loaded().get(id));
            if let (Slot::Begun(_, permit @ Permit::Trial), Some(module)) = (slot, module) {
                module.note_success(*permit);
            }
        }
    }
}

fn call_hook(
    exchange: &mut Box<dyn Exchange>,
    hook: Hook,
    head: &mut Head<'_, '_>,
    call: &Call,
) -> Answer {
    match (hook, head) {
        (Hook::RequestReceived, Head::Request(head)) => exchange.request_received(head, call),
        (Hook::RequestSent, Head::Request(head)) => exchange.request_sent(head, call),
        (Hook::ResponseReceived, Head::Response(head)) => exchange.response_received(head, call),
        (Hook::ResponseSent, Head::Response(head)) => exchange.response_sent(head, call),
        (Hook::Done, _) => {
            exchange.done(call);
            Answer::Continue
        }
        _ => {
            debug_assert!(false, "{hook:?} with another head");
            Answer::Continue
        }
    }
}

/// Refuses what a module may not do at `hook`.
fn check(hook: Hook, head: &Head<'_, '_>, answer: &Answer) -> Result<(), ModuleFailure> {
    let is_late = match head {
        Head::Request(head) => {
            hook != Hook::RequestReceived && (head.target_is_changed() || head.is_transformed())
        }
        Head::Response(head) => hook != Hook::ResponseReceived && head.status_is_changed(),
        Head::None => false,
    };
    let is_misplaced = matches!(answer, Answer::Respond(_)) && !hook.may_respond();
    if is_late || is_misplaced {
        return Err(ModuleFailure::BadAnswer);
    }
    Ok(())
}
