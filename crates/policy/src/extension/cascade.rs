//! The way of one request through the modules of its route.
//!
//! Modules are called in the operator's order on the way of the request, and in the reverse order
//! on the way of the response: the module that is listed first stands nearest to the client. Where
//! one answers, those behind it do not see the request, and those before it see the response.

use weir_extend::Hook;
use weir_semantics::words;

/// Most modules of a configuration.
pub const MODULES_MAX: usize = 32;

/// The number of a module, its place in the operator's order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ModuleId(u8);

impl ModuleId {
    /// The module at `index`; `None` beyond [`MODULES_MAX`].
    #[must_use]
    pub fn new(index: usize) -> Option<Self> {
        let id = u8::try_from(index).ok()?;
        (index < MODULES_MAX).then_some(Self(id))
    }

    /// Its place in the operator's order.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Modules by their numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ModuleSet(u32);

impl ModuleSet {
    /// No module.
    pub const NONE: Self = Self(0);

    /// This set and `module`.
    #[must_use]
    pub const fn with(self, module: ModuleId) -> Self {
        Self(self.0 | 1 << module.0)
    }

    /// This set without `module`.
    #[must_use]
    pub const fn without(self, module: ModuleId) -> Self {
        Self(self.0 & !(1 << module.0))
    }

    /// The modules that are in one of the sets.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// The modules that are in both sets.
    #[must_use]
    pub const fn intersection(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Whether `module` is in the set.
    #[must_use]
    pub const fn contains(self, module: ModuleId) -> bool {
        self.0 & 1 << module.0 != 0
    }

    /// Whether the set is empty.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    const fn first(self) -> Option<ModuleId> {
        match self.0.trailing_zeros() {
            32 => None,
            #[expect(clippy::cast_possible_truncation, reason = "less than 32")]
            place => Some(ModuleId(place as u8)),
        }
    }

    const fn last(self) -> Option<ModuleId> {
        match self.0.checked_ilog2() {
            None => None,
            #[expect(clippy::cast_possible_truncation, reason = "less than 32")]
            Some(place) => Some(ModuleId(place as u8)),
        }
    }

    /// Those behind `module`.
    const fn behind(self, module: ModuleId) -> Self {
        Self(self.0 & !((2_u32 << module.0).wrapping_sub(1)))
    }

    /// Those before `module`.
    const fn before(self, module: ModuleId) -> Self {
        Self(self.0 & ((1 << module.0) - 1))
    }
}

words! {
    /// How a call of a module failed.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum ModuleFailure {
        /// The call, or what it deferred for, took longer than it may.
        Deadline = "deadline",
        /// The module panicked or trapped.
        Crashed = "crashed",
        /// It answered where it may not, or what the proxy refuses.
        BadAnswer = "bad-answer",
        /// It could not do its work on this message, and said so.
        GaveUp = "gave-up",
        /// What it works with, such as a server of its own, was not there or failed.
        Unavailable = "unavailable",
        /// The proxy had no memory for the content that it works on.
        NoMemory = "no-memory",
        /// It failed so often that it is not called for a while.
        BreakerOpen = "breaker-open",
    }
}

crate::choice! {
    /// What becomes of a request for which a module fails.
    #[derive(Default)]
    pub enum FailurePolicy {
        /// It is refused with 502: a module may be there to keep something out.
        #[default]
        Refuse = "refuse",
        /// It continues without the module.
        Pass = "pass",
    }
}

crate::choice! {
    /// Where a module is called.
    #[derive(Default)]
    pub enum ExecutionModel {
        /// On the thread of the worker that serves the request.
        #[default]
        Worker = "worker",
        /// On a thread of a pool that the module has.
        Threads = "threads",
        /// In a process that the module has.
        Process = "process",
    }
}

/// What to do next at a hook.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Call this module.
    Call(ModuleId),
    /// Wait until this module is ready, and call it again.
    Wait(ModuleId),
    /// All modules have been called: the request continues.
    Continue,
    /// Send the response of this module.
    Respond(ModuleId),
    /// Refuse the request, as this module failed.
    Refuse(ModuleId, ModuleFailure),
}

/// The way of one request.
#[derive(Clone, Copy, Debug)]
pub struct Cascade {
    /// The modules that see it.
    modules: ModuleSet,
    hook: Hook,
    /// Those that are called at `hook`.
    hooked: ModuleSet,
    /// Those that are to be called at `hook`.
    due: ModuleSet,
    /// Those that were called at any hook, and have not failed.
    called: ModuleSet,
}

impl Cascade {
    /// A request that `modules` see.
    #[must_use]
    pub const fn new(modules: ModuleSet) -> Self {
        Self {
            modules,
            hook: Hook::RequestReceived,
            hooked: ModuleSet::NONE,
            due: ModuleSet::NONE,
            called: ModuleSet::NONE,
        }
    }

    /// The modules that see the request from now on.
    #[must_use]
    pub const fn modules(&self) -> ModuleSet {
        self.modules
    }

    /// The target is judged: from here on `modules` see the request. Those that have failed may not
    /// be among them.
    pub const fn retarget(&mut self, modules: ModuleSet) {
        self.modules = modules;
    }

    /// The request has reached `hook`, at which `hooked` are called. At [`Hook::Done`] those are
    /// called that have seen the request, also if they or others have answered it.
    pub fn reach(&mut self, hook: Hook, hooked: ModuleSet) -> Step {
        let modules = match hook {
            Hook::Done => self.called.union(self.modules),
            _ => self.modules,
        };
        self.hook = hook;
        self.hooked = hooked;
        self.due = modules.intersection(hooked);
        self.next()
    }

    /// `module` has answered that the request continues.
    pub fn continued(&mut self, module: ModuleId) -> Step {
        self.due = self.due.without(module);
        self.next()
    }

    /// `module` has answered that the request continues, to another target: from here on `modules`
    /// see it, those behind `module` at this hook, too. Those that have failed may not be among
    /// them.
    pub fn retargeted(&mut self, module: ModuleId, modules: ModuleSet) -> Step {
        self.modules = modules;
        self.due = modules.intersection(self.hooked).behind(module);
        self.next()
    }

    /// `module` has deferred.
    #[must_use]
    pub const fn deferred(&self, module: ModuleId) -> Step {
        Step::Wait(module)
    }

    /// `module` has answered with a response.
    pub fn responded(&mut self, module: ModuleId, policy: FailurePolicy) -> Step {
        if !self.hook.may_respond() {
            return self.failed(module, ModuleFailure::BadAnswer, policy);
        }
        self.modules = self.modules.before(module);
        self.due = ModuleSet::NONE;
        Step::Respond(module)
    }

    /// `module` has put a response of its own in the place of content, or has failed to change
    /// that: modules before it see what is sent then.
    pub const fn content_answered(&mut self, module: ModuleId) {
        self.modules = self.modules.before(module);
    }

    /// A call of `module` failed. It is not called for this request any more.
    pub fn failed(
        &mut self,
        module: ModuleId,
        failure: ModuleFailure,
        policy: FailurePolicy,
    ) -> Step {
        self.modules = self.modules.without(module);
        self.called = self.called.without(module);
        self.due = self.due.without(module);
        match policy {
            FailurePolicy::Refuse if self.hook != Hook::Done => {
                self.modules = self.modules.before(module);
                self.due = ModuleSet::NONE;
                Step::Refuse(module, failure)
            }
            FailurePolicy::Refuse | FailurePolicy::Pass => self.next(),
        }
    }

    fn next(&mut self) -> Step {
        let module = if self.hook.is_toward_client() {
            self.due.last()
        } else {
            self.due.first()
        };
        match module {
            Some(module) => {
                self.called = self.called.with(module);
                Step::Call(module)
            }
            None => Step::Continue,
        }
    }
}
