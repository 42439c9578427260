//! The head that modules are called with, as it was before a call, and what they do to it.

use crate::modules::loaded::LoadedModule;
use weir_extend::{Codings, HeadFields, Hook, RequestHead, ResponseHead, Transform};

/// The head that a hook is about.
pub(crate) enum Head<'c, 'h> {
    Request(&'c mut RequestHead<'h>),
    Response(&'c mut ResponseHead<'h>),
    /// There is none: the exchange is over.
    None,
}

/// A head as it was before a call.
pub(crate) enum SavedHead<'h> {
    Request(RequestHead<'h>),
    Response(ResponseHead<'h>),
    None,
}

impl SavedHead<'_> {
    /// The same, which holds all that it is made of.
    pub(crate) fn into_owned(self) -> SavedHead<'static> {
        match self {
            Self::Request(head) => SavedHead::Request(head.into_owned()),
            Self::Response(head) => SavedHead::Response(head.into_owned()),
            Self::None => SavedHead::None,
        }
    }
}

impl<'h> Head<'_, 'h> {
    pub(super) fn saved(&self) -> SavedHead<'h> {
        match self {
            Self::Request(head) => SavedHead::Request(head.saved()),
            Self::Response(head) => SavedHead::Response(head.saved()),
            Self::None => SavedHead::None,
        }
    }

    /// Whether a call has left nothing in it to be taken: no target, variant,
    /// status or transform.
    pub(super) fn is_settled(&self) -> bool {
        match self {
            Self::Request(head) => {
                !head.target_is_changed() && !head.is_transformed() && !head.has_variant()
            }
            Self::Response(head) => !head.is_transformed() && !head.status_is_changed(),
            Self::None => true,
        }
    }

    pub(super) fn take_transform(&mut self) -> Option<(Codings, Box<dyn Transform>)> {
        match self {
            Self::Request(head) => Some((Codings::none(), head.take_transform()?)),
            Self::Response(head) => head.take_transform(),
            Self::None => None,
        }
    }

    pub(super) fn inspect(&mut self, inspector: Box<dyn Transform>) {
        match self {
            Self::Request(head) => head.inspect(inspector),
            Self::Response(head) => head.inspect(inspector),
            Self::None => {}
        }
    }

    pub(super) fn restore(&mut self, saved: SavedHead<'h>) {
        match (self, saved) {
            (Self::Request(head), SavedHead::Request(saved)) => **head = saved,
            (Self::Response(head), SavedHead::Response(saved)) => **head = saved,
            _ => {}
        }
    }
}

/// The status and fields of a head before a call.
pub(crate) type ComparedHead<'h> = (u16, HeadFields<'h>);

/// What modules have done to a head, beside its fields.
#[derive(Clone, Copy, Default)]
pub(crate) struct Changes {
    /// Its content is changed, and not only inspected.
    changes_content: bool,
    /// A module whose changes may not be stored has changed it.
    is_unstored: bool,
}

impl<'h> Head<'_, 'h> {
    /// The status and fields of a response that has come, before a module is called whose changes
    /// may not be stored.
    pub(super) fn to_compare(&self, hook: Hook, module: &LoadedModule) -> Option<ComparedHead<'h>> {
        match self {
            Self::Response(head) if hook == Hook::ResponseReceived => {
                (!module.module.changes_stored()).then(|| (head.status(), head.fields.clone()))
            }
            _ => None,
        }
    }
}

impl Changes {
    /// Whether content is changed, and not only inspected.
    pub(super) fn changes_content(self) -> bool {
        self.changes_content
    }

    /// Whether a module whose changes may not be stored has changed the response.
    pub(super) fn is_unstored(self) -> bool {
        self.is_unstored
    }

    /// A module has content pass, and changes it if it `changes_content`.
    pub(super) fn note_content(&mut self, changes_content: bool, module: Option<&LoadedModule>) {
        let is_stored = module.is_some_and(|module| module.module.changes_stored());
        self.changes_content |= changes_content;
        self.is_unstored |= changes_content && !is_stored;
    }

    /// A module was called for `head`, which was `before`, if that is to be compared.
    pub(super) fn note(&mut self, before: Option<&ComparedHead<'_>>, head: &ResponseHead<'_>) {
        let Some((status, before)) = before else {
            return;
        };
        // one that only inspects content takes away its length
        let is_compared = |line: &(&str, &[u8])| !line.0.eq_ignore_ascii_case("content-length");
        let before = before.iter().filter(is_compared);
        let is_same = before.eq(head.fields.iter().filter(is_compared));
        self.is_unstored |= !is_same || head.status() != *status;
    }
}
