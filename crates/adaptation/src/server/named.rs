//! A module as a service: its name, its methods and the tag of its state.

use siphasher::sip128::{Hasher128, SipHasher13};
use std::hash::Hasher;
use std::sync::Arc;
use std::time::Duration;
use weir_extend::{Hook, Hooks, Module};
use weir_icap::{IsTag, Method, OptionsAnswer, RequestHead};

/// How long an answer to OPTIONS is valid. A module may come to another state, and clients learn
/// that from answers, too.
const OPTIONS_TTL: Duration = Duration::from_secs(60);

/// The preview that is asked for: most short content is whole in it. A module that changes a head
/// alone gets it, too: the content goes back behind that, and an empty preview would cost another
/// turn.
const PREVIEW_BYTES: u32 = 4096;

/// The hooks of a request, in order.
const REQUEST_HOOKS: [Hook; 2] = [Hook::RequestReceived, Hook::RequestSent];

/// The hooks of a response.
const RESPONSE_HOOKS: [Hook; 2] = [Hook::ResponseReceived, Hook::ResponseSent];

/// A module as a service, `icap://HOST:PORT/NAME`.
#[derive(Clone)]
pub struct NamedModule {
    /// Its name, the path of the service.
    pub name: String,
    /// The name of its kind.
    pub kind: String,
    /// Its options as text: another text is another state.
    pub options: String,
    /// Bytes of content of one message that it may leave for a later call: `module[].hold`.
    pub hold_bytes: usize,
    /// The module.
    pub module: Arc<dyn Module>,
}

impl std::fmt::Debug for NamedModule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NamedModule")
            .field("name", &self.name)
            .field("kind", &self.kind)
            .finish_non_exhaustive()
    }
}

impl NamedModule {
    /// The hooks that a message by `method` passes, of those `wanted` by the client: of a request
    /// and of its response.
    pub(super) fn hooks(&self, method: Method, wanted: Option<Hook>) -> Vec<Hook> {
        let hooks = match method {
            Method::Reqmod => &REQUEST_HOOKS,
            _ => &RESPONSE_HOOKS,
        };
        let called = hooks.iter().copied();
        let called = called.filter(|hook| self.module.hooks().contains(*hook));
        called
            .filter(|hook| wanted.is_none_or(|wanted| wanted == *hook))
            .collect()
    }

    /// The hooks at which it sees the request of a response first.
    pub(super) fn hooks_before(&self) -> Vec<Hook> {
        self.hooks(Method::Reqmod, None)
    }

    /// The tag of its state: a digest of kind, options, state and `hold`.
    pub(super) fn istag(&self) -> Option<IsTag> {
        let mut hasher = SipHasher13::new();
        for part in [&self.kind, &self.options, &self.module.state()] {
            hasher.write_u64(part.len() as u64);
            hasher.write(part.as_bytes());
        }
        // what it cannot hold it may leave as it is
        hasher.write_u64(self.hold_bytes as u64);
        // 32 digits, the longest tag
        let digest = hasher.finish128().as_u128();
        IsTag::new(&format!("{digest:032x}")).ok()
    }

    pub(super) fn methods(&self) -> Vec<Method> {
        let methods = [Method::Reqmod, Method::Respmod].into_iter();
        methods
            .filter(|method| !self.hooks(*method, None).is_empty())
            .collect()
    }

    /// Has `write` answer OPTIONS.
    pub(super) fn describe<T>(
        &self,
        connections_max: usize,
        write: impl FnOnce(&OptionsAnswer<'_>) -> T,
    ) -> T {
        let service = format!("weir/{} {}", env!("CARGO_PKG_VERSION"), self.kind);
        write(&OptionsAnswer {
            methods: &self.methods(),
            service: &service,
            service_id: Some(&self.name),
            preview_bytes: Some(PREVIEW_BYTES),
            max_connections: u32::try_from(connections_max).ok(),
            ttl: Some(OPTIONS_TTL),
            allows_204: true,
            fields: &[],
        })
    }

    /// Whether it has hooks that a service can call.
    pub(super) fn is_service(&self) -> bool {
        self.module.hooks() != Hooks::NONE && !self.methods().is_empty()
    }
}

/// What a request is for: the name of a service, and the hook that the client wants, if it says.
pub(super) fn read_target(head: &RequestHead) -> (&str, Option<Hook>) {
    let (path, query) = match head.service().path_and_query().split_once('?') {
        Some((path, query)) => (path, query),
        None => (head.service().path_and_query(), ""),
    };
    let mut parameters = query.split('&').filter_map(|part| part.split_once('='));
    let hook = parameters.find(|(name, _)| *name == "hook");
    let hook = hook.and_then(|(_, name)| Hook::ALL.into_iter().find(|hook| hook.as_str() == name));
    (path.trim_matches('/'), hook)
}
