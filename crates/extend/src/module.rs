//! Modules, and what one does with one request.

use crate::answer::Answer;
use crate::call::Call;
use crate::head::{RequestHead, ResponseHead};
use crate::hook::{Hook, Hooks};
use crate::host::Host;
use crate::options::{LoadError, Options};
use crate::pending::Pending;
use alloc::boxed::Box;
use alloc::rc::Rc;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::task::{Context, Poll};
use core::time::Duration;

/// The shortest [`Module::period`]; a shorter one means this.
pub const PERIOD_MIN: Duration = Duration::from_millis(100);

/// A kind of module: what `kind` in a `[[module]]` table names.
pub trait ModuleKind: Send + Sync {
    /// Its name.
    fn name(&self) -> &'static str;

    /// Makes a module of this kind with `options`. Called when a configuration is loaded, on a
    /// thread that serves no requests.
    ///
    /// # Errors
    ///
    /// The options are not right: the configuration is refused, and the one in force stays.
    fn load(&self, options: Options) -> Result<Arc<dyn Module>, LoadError>;

    /// Makes one that works in a process of its own, where the operator wants that. A kind need not
    /// do this itself: a program that can start processes puts its own kind around each.
    ///
    /// # Errors
    ///
    /// As of [`load`](Self::load); or this program starts no processes.
    fn load_in_process(&self, options: Options) -> Result<Arc<dyn Module>, LoadError> {
        drop(options);
        Err(LoadError::new(
            "",
            "this program cannot run modules in processes of their own",
            "write `run = \"threads\"`, or leave `run` out",
        ))
    }
}

/// A module that was loaded. It lives as long as the configuration, and the requests that began
/// under it.
pub trait Module: Send + Sync {
    /// The hooks that it is called at. They do not change.
    fn hooks(&self) -> Hooks;

    /// Whether it may change the content of responses by
    /// [`ResponseHead::transform`]. Ranges are not requested then: a part of the changed content is
    /// made from the whole.
    fn may_transform(&self) -> bool {
        false
    }

    /// Whether it may do so at [`Hook::ResponseSent`](crate::Hook::ResponseSent): ranges of stored
    /// responses are not sent then, as they are ranges of other content.
    fn may_transform_sent(&self) -> bool {
        self.may_transform() && self.hooks().contains(Hook::ResponseSent)
    }

    /// Whether what it changes at [`Hook::ResponseReceived`](crate::Hook::ResponseReceived) may be
    /// stored. Such a response is stored under the target, the [variant](RequestHead::set_variant)
    /// and a digest of this module's kind, options and [state](Self::state): requests for which
    /// these differ do not get it. So nothing else may decide on the change: no field of the
    /// request but by the variant, and neither client nor time.
    ///
    /// What other modules change there is not stored. Before a stored response is validated without
    /// a client, the request is shown to this module again as its client sent it.
    fn changes_stored(&self) -> bool {
        false
    }

    /// Whether it decides on a head by the content behind it: it sets a transform and defers at the
    /// same hook, until it has been handed enough. Such a module cannot run on threads of its own.
    fn decides_by_content(&self) -> bool {
        false
    }

    /// What its work depends on beside its options, such as the version of a list that it reads.
    /// Read for each request, before [`Self::begin`] and when its response has come: what was
    /// stored in another state is not used, and the response to a request in whose time the state
    /// changes is not stored. While it is empty, it is read again behind
    /// [`Hook::RequestReceived`](crate::Hook::RequestReceived): a module that learns its state from
    /// elsewhere can do so there.
    fn state(&self) -> String {
        String::new()
    }

    /// How often [`tick`](Self::tick) is called on each worker, if at all, while the configuration
    /// is in force; at least [`PERIOD_MIN`]. It does not change.
    fn period(&self) -> Option<Duration> {
        None
    }

    /// The period has passed on a worker. It must not block; the proxy completes what is returned
    /// before it calls this again there.
    fn tick(&self, host: &Rc<dyn Host>) -> Option<Pending<()>> {
        let _ = host;
        None
    }

    /// What an operator should know of it, a line each, such as calls of it that do nothing here.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }

    /// What is wrong outside of the configuration, with what to do, such as a server that does not
    /// answer. It may block for up to five seconds, on a thread that serves no requests: an
    /// operator has a configuration checked. The configuration is not refused for that.
    fn warnings(&self) -> Vec<String> {
        Vec::new()
    }

    /// What it counts by itself, for the metrics of the proxy. At most 256 are shown.
    fn metrics(&self) -> Vec<ModuleMetric> {
        Vec::new()
    }

    /// Begins a request. The exchange stays on the thread that serves the request.
    fn begin(&self, host: &Rc<dyn Host>) -> Box<dyn Exchange>;
}

/// A number that a module counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModuleMetric {
    /// Its name within the module.
    pub name: String,
    /// Its value now.
    pub value: u64,
}

/// One request, as a module sees it. A method is called at its hook, if the module has named that;
/// it must not block. After a call that failed the exchange is dropped.
pub trait Exchange {
    /// [`Hook::RequestReceived`](crate::Hook::RequestReceived).
    fn request_received(&mut self, head: &mut RequestHead<'_>, call: &Call) -> Answer {
        let _ = (head, call);
        Answer::Continue
    }

    /// [`Hook::RequestSent`](crate::Hook::RequestSent). The target cannot be changed any more.
    fn request_sent(&mut self, head: &mut RequestHead<'_>, call: &Call) -> Answer {
        let _ = (head, call);
        Answer::Continue
    }

    /// [`Hook::ResponseReceived`](crate::Hook::ResponseReceived).
    fn response_received(&mut self, head: &mut ResponseHead<'_>, call: &Call) -> Answer {
        let _ = (head, call);
        Answer::Continue
    }

    /// [`Hook::ResponseSent`](crate::Hook::ResponseSent).
    fn response_sent(&mut self, head: &mut ResponseHead<'_>, call: &Call) -> Answer {
        let _ = (head, call);
        Answer::Continue
    }

    /// [`Hook::Done`](crate::Hook::Done).
    fn done(&mut self, call: &Call) {
        let _ = call;
    }

    /// Ready when what the exchange deferred for is there. Polled only after [`Answer::Defer`].
    ///
    /// If the call has set a transform, at [`Hook::RequestReceived`](crate::Hook::RequestReceived)
    /// or [`Hook::ResponseReceived`](crate::Hook::ResponseReceived), that is handed the content
    /// meanwhile, with no room to put some: so a module can decide on a head by its content. What
    /// it has taken it puts out once the head is decided on; to set another transform replaces it.
    /// The time in which the client or the next hop sends no content does not count as its wait.
    fn poll_deferred(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let _ = cx;
        Poll::Ready(())
    }
}
