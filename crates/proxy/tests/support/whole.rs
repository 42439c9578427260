//! A module that works on whole content.

use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use weir_extend::{
    Answer, Call, Exchange, Hook, Hooks, Host, Larger, LoadError, Module, ModuleKind, OptionValue,
    Options, ResponseHead, Whole, WholeHandle, WholeState, Worked,
};
use weir_proxy::config::{Module as ModuleTable, ModuleOption};

/// A module called `name` that turns around whole responses of at most `bytes`, at
/// `response-received`, once it has them, and says so in the field `X-Turned`. Larger ones pass, or
/// are given up if `larger` says `fail`.
pub(crate) fn turning(name: &str, bytes: usize, larger: &str) -> ModuleTable {
    let mut table = super::scripted(name, &[("larger", larger)]);
    "turning".clone_into(&mut table.kind);
    let bytes = ModuleOption::Text(bytes.to_string());
    table.options.insert("bytes".to_owned(), bytes);
    table
}

pub(crate) struct Turning;

#[derive(Clone)]
struct Limits {
    bytes: usize,
    larger: Larger,
}

impl ModuleKind for Turning {
    fn name(&self) -> &'static str {
        "turning"
    }

    fn load(&self, mut options: Options) -> Result<Arc<dyn Module>, LoadError> {
        let mut text = |name| match options.take(name) {
            Some(OptionValue::Text(text)) => text,
            other => panic!("{name}: {other:?}"),
        };
        let larger = match &*text("larger") {
            "fail" => Larger::Fail,
            _ => Larger::Pass,
        };
        let bytes = text("bytes").parse().expect("a number");
        Ok(Arc::new(Limits { bytes, larger }))
    }
}

impl Module for Limits {
    fn hooks(&self) -> Hooks {
        Hooks::NONE.with(Hook::ResponseReceived)
    }

    fn may_transform(&self) -> bool {
        true
    }

    fn begin(&self, host: &Rc<dyn Host>) -> Box<dyn Exchange> {
        Box::new(Turner {
            limits: self.clone(),
            host: Rc::clone(host),
            handle: None,
        })
    }
}

struct Turner {
    limits: Limits,
    host: Rc<dyn Host>,
    handle: Option<WholeHandle>,
}

impl Exchange for Turner {
    fn response_received(&mut self, head: &mut ResponseHead<'_>, _: &Call) -> Answer {
        let Some(handle) = &self.handle else {
            let work = Box::new(
                move |mut content: Vec<u8>| -> weir_extend::Pending<Worked> {
                    content.reverse();
                    let mut has_waited = false;
                    Box::pin(async move {
                        // it is not ready at once, as work in another process is not
                        std::future::poll_fn(|cx| {
                            cx.waker().wake_by_ref();
                            match std::mem::replace(&mut has_waited, true) {
                                true => Poll::Ready(()),
                                false => Poll::Pending,
                            }
                        })
                        .await;
                        Worked::Content(content)
                    })
                },
            );
            let (bytes, larger) = (self.limits.bytes, self.limits.larger);
            let whole = Whole::new(bytes, larger, self.host.memory(), work);
            self.handle = Some(whole.handle());
            head.transform_plain(Box::new(whole)).expect("permitted");
            return Answer::Defer;
        };
        if handle.state() == WholeState::Worked {
            head.fields.set("X-Turned", b"yes").expect("a field");
        }
        Answer::Continue
    }

    fn poll_deferred(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let handle = self.handle.as_ref().expect("it has deferred");
        handle.poll(cx).map(|_| ())
    }
}
