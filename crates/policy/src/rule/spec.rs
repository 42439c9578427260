//! One rule as it is configured.

use super::client_rates::ByteRate;
use super::fields::FieldRules;
use super::key::KeyRule;
use super::matchers::Matchers;
use crate::fetch::{AbortKind, ReadAhead};
use crate::stored::ignored::{RequestIgnored, StoringIgnored};
use alloc::boxed::Box;
use weir_semantics::{DeltaSeconds, words};

/// Most bytes of the text with which a request is denied.
pub const DENY_BYTES_MAX: usize = 512;

/// One rule: what it is for, and what it does.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RuleSpec {
    /// What messages call it.
    pub name: Box<str>,
    /// What it is for.
    pub matchers: Matchers,
    /// What it does.
    pub actions: Actions,
}

/// What a rule does. Of the rules that are for a request, the first that has an action decides that
/// action.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Actions {
    /// Answer with 403; the text is for the client.
    pub deny: Option<Denial>,
    /// Send the request past the cache: nothing is looked up, and nothing is stored.
    pub bypass: Option<bool>,
    /// Directives of the request that are ignored when a response is chosen.
    pub ignore: Option<RequestIgnored>,
    /// Directives that are ignored when a response is stored.
    pub ignore_storing: Option<StoringIgnored>,
    /// Whether it is written out that one user may see by that what is for another.
    pub shares: bool,
    /// How long a response is fresh. Without statuses among the matchers, of responses below 400
    /// alone: an error is not kept because successes are.
    pub lifetime: Option<RuleLifetime>,
    /// How long past its freshness a response may be served, seconds.
    pub stale_for: Option<DeltaSeconds>,
    /// What of the target and of preferences is in the cache key.
    pub key: Option<KeyRule>,
    /// Changes of the request, before anything is decided by its fields.
    pub request: Option<FieldRules>,
    /// Changes of the response for its client, behind the store and all modules.
    pub response: Option<FieldRules>,
    /// How fast its client is sent it.
    pub rate: Option<RuleRate>,
    /// How far a fetch may run ahead of its fastest reader.
    pub read_ahead: Option<ReadAhead>,
    /// What decides whether a fetch without readers continues.
    pub abort: Option<AbortKind>,
}

/// The freshness lifetime of responses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuleLifetime {
    /// Of those that do not give one, but permit the cache to (RFC 9111 §4.2.2).
    Default(DeltaSeconds),
    /// Of all that are stored, whatever they say.
    Forced(DeltaSeconds),
}

/// How fast clients are sent responses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuleRate {
    /// Each client so fast, over all its responses.
    Limited(ByteRate),
    /// As fast as they take it, whatever a later rule says.
    Off,
}

/// Whether requests are denied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Denial {
    /// They are, with this text for the client.
    Text(Box<str>),
    /// They are not, whatever a later rule says.
    Off,
}

words! {
    /// What a rule can do, by the keys of the configuration.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum Action {
        /// The request is answered with 403.
        Deny = "deny",
        /// The request is sent past the cache.
        Bypass = "bypass",
        /// Directives are ignored when a response is chosen.
        Ignore = "ignore",
        /// Directives are ignored when a response is stored.
        IgnoreStoring = "ignore-storing",
        /// A response is fresh for a time.
        Lifetime = "lifetime",
        /// A response may be served past its freshness.
        StaleFor = "stale_for",
        /// The cache key is changed, and the request.
        Key = "key",
        /// The request is changed.
        Request = "request",
        /// The response is changed for its client.
        Response = "response",
        /// The response is sent no faster than this.
        Rate = "rate",
        /// A fetch runs ahead no further than this.
        ReadAhead = "read_ahead",
        /// A fetch without readers continues, or does not.
        Abort = "abort",
    }
}

impl Action {
    /// Whether it decides what is stored, for all clients.
    #[must_use]
    pub const fn is_of_storing(self) -> bool {
        matches!(self, Self::IgnoreStoring | Self::Lifetime | Self::StaleFor)
    }

    /// The key of the configuration that it is of.
    #[must_use]
    pub const fn key(self) -> &'static str {
        match self {
            Self::IgnoreStoring => Self::Ignore.as_str(),
            action => action.as_str(),
        }
    }

    /// Whether it is the same for all clients: what is stored is for all of them, and a purge finds
    /// it.
    #[must_use]
    pub const fn is_for_all(self) -> bool {
        self.is_of_storing() || matches!(self, Self::Key)
    }

    /// Whether it decides how a response is fetched, which may have readers of any client.
    #[must_use]
    pub const fn is_of_fetch(self) -> bool {
        matches!(self, Self::ReadAhead | Self::Abort)
    }

    /// Whether it is decided before there is a response.
    #[must_use]
    pub const fn is_of_request(self) -> bool {
        !self.is_of_storing() && !matches!(self, Self::Response | Self::Rate)
    }
}

impl Actions {
    /// Whether there is such an action.
    #[must_use]
    pub const fn has(&self, action: Action) -> bool {
        match action {
            Action::Deny => self.deny.is_some(),
            Action::Bypass => self.bypass.is_some(),
            Action::Ignore => self.ignore.is_some(),
            Action::IgnoreStoring => self.ignore_storing.is_some(),
            Action::Lifetime => self.lifetime.is_some(),
            Action::StaleFor => self.stale_for.is_some(),
            Action::Key => self.key.is_some(),
            Action::Request => self.request.is_some(),
            Action::Response => self.response.is_some(),
            Action::Rate => self.rate.is_some(),
            Action::ReadAhead => self.read_ahead.is_some(),
            Action::Abort => self.abort.is_some(),
        }
    }

    /// The actions that there are.
    pub fn iter(&self) -> impl Iterator<Item = Action> {
        Action::ALL.into_iter().filter(|action| self.has(*action))
    }
}
