//! What a request's variant of stored responses is made of: the modules that change responses
//! before they are stored, their states, and the tags that they gave the request.

use crate::modules::loaded::{LoadedModule, LoadedModules};
use std::panic::{AssertUnwindSafe, catch_unwind};
use weir_policy::Secret;
use weir_policy::extension::{ModuleId, ModuleSet, Variant, VariantHasher};

/// What is known of it.
pub(crate) struct RequestVariant {
    /// The modules of the target that change responses before they are stored; those that failed
    /// too.
    modules: ModuleSet,
    /// By the numbers of the modules; empty if none of the configuration is such a module. One may
    /// be called, and give a tag, before the request is judged for the target that it is for.
    states: Vec<Option<ModuleState>>,
    tags: Vec<Option<String>>,
    /// The variant that was found last: most requests get the same as the one before them.
    last: Option<FoundVariant>,
}

/// A variant, and all that it was made of under one configuration.
struct FoundVariant {
    modules: ModuleSet,
    failed: ModuleSet,
    states: Vec<Option<ModuleState>>,
    tags: Vec<Option<String>>,
    keeps_content: bool,
    variant: Option<Variant>,
}

/// A module as it was before it began with the request.
#[derive(Clone, PartialEq, Eq)]
enum ModuleState {
    Named(String),
    /// It did not come to a name.
    Crashed,
}

impl ModuleState {
    /// Whether it is one: it may have none, or learn it while it waits at the request.
    fn is_known(&self) -> bool {
        !matches!(self, Self::Named(name) if name.is_empty())
    }
}

impl RequestVariant {
    /// Of a request that calls `called`, which is enabled and for its target.
    pub(crate) fn of(loaded: &LoadedModules, called: ModuleSet) -> Self {
        let mut variant = Self {
            modules: ModuleSet::NONE,
            states: Vec::new(),
            tags: Vec::new(),
            last: None,
        };
        variant.retarget(loaded, called);
        variant
    }

    /// Of another request that calls `called`, under the same configuration.
    pub(crate) fn begin(&mut self, loaded: &LoadedModules, called: ModuleSet) {
        // a state or tag of the request before would be another client's
        self.states.clear();
        self.tags.clear();
        self.retarget(loaded, called);
    }

    /// The request has another target.
    pub(crate) fn retarget(&mut self, loaded: &LoadedModules, called: ModuleSet) {
        self.modules = called.intersection(loaded.changing_stored());
        if !loaded.changing_stored().is_empty() && self.states.is_empty() {
            self.states.resize_with(loaded.len(), || None);
            self.tags.resize_with(loaded.len(), || None);
        }
    }

    /// Whether no module changes responses before they are stored.
    pub(crate) fn is_empty(&self) -> bool {
        self.modules.is_empty()
    }

    /// A module is about to begin with the request, or has begun: while its state is not known it
    /// is read again.
    pub(crate) fn note_state(&mut self, id: ModuleId, module: &LoadedModule) {
        if let Some(state) = self.states.get_mut(id.index())
            && module.module.changes_stored()
        {
            let is_known = state.as_ref().is_some_and(ModuleState::is_known);
            if !is_known {
                *state = Some(state_of(module));
            }
        }
    }

    /// A module has given the request a tag.
    pub(crate) fn set_tag(&mut self, id: ModuleId, tag: String) {
        if let Some(known) = self.tags.get_mut(id.index()) {
            *known = Some(tag);
        }
    }

    /// Forgets the states: they are read anew.
    pub(crate) fn forget_states(&mut self) {
        self.states.fill_with(|| None);
    }

    /// The variant; `None` without such modules. `has_failed` says it of a module.
    pub(crate) fn find(
        &mut self,
        loaded: &LoadedModules,
        secret: &Secret,
        keeps_content: bool,
        has_failed: impl Fn(ModuleId) -> bool,
    ) -> Option<Variant> {
        if self.modules.is_empty() {
            return None;
        }
        let mut failed = ModuleSet::NONE;
        for (id, module) in members(loaded, self.modules) {
            self.note_state(id, module);
            if has_failed(id) {
                failed = failed.with(id);
            }
        }
        if let Some(last) = &self.last
            && (last.modules, last.failed) == (self.modules, failed)
            && last.keeps_content == keeps_content
            && last.states == self.states
            && last.tags == self.tags
        {
            return last.variant;
        }
        let variant = self.make(loaded, secret, failed, keeps_content);
        self.last = Some(FoundVariant {
            modules: self.modules,
            failed,
            states: self.states.clone(),
            tags: self.tags.clone(),
            keeps_content,
            variant,
        });
        variant
    }

    /// Makes it of what is known of the modules.
    fn make(
        &self,
        loaded: &LoadedModules,
        secret: &Secret,
        failed: ModuleSet,
        keeps_content: bool,
    ) -> Option<Variant> {
        let mut hasher = VariantHasher::new(secret);
        for (id, module) in members(loaded, self.modules) {
            let state = self.states.get(id.index()).and_then(Option::as_ref);
            match state {
                Some(ModuleState::Named(state)) if !failed.contains(id) => {
                    let tag = self.tags.get(id.index()).and_then(Option::as_deref);
                    hasher.module(module.configuration, state, tag);
                }
                _ => hasher.failed(module.configuration),
            }
        }
        if keeps_content {
            hasher.keep_content();
        }
        hasher.finish()
    }
}

/// The modules of a set, in their order.
fn members(
    loaded: &LoadedModules,
    set: ModuleSet,
) -> impl Iterator<Item = (ModuleId, &LoadedModule)> {
    let ids = (0..loaded.len()).filter_map(ModuleId::new);
    let ids = ids.filter(move |id| set.contains(*id));
    ids.filter_map(|id| Some((id, loaded.get(id)?)))
}

fn state_of(module: &LoadedModule) -> ModuleState {
    let state = catch_unwind(AssertUnwindSafe(|| module.module.state()));
    state.map_or(ModuleState::Crashed, ModuleState::Named)
}
