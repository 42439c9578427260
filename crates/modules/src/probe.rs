//! `probe`: is called at every hook and does nothing there, to measure what modules cost. As it is
//! told, it adds a field at the hooks that have a head, and takes the content of responses and puts
//! it out again: the three modules that the paper's Table 5 was measured with (Pai, Cox, Pai,
//! Zwaenepoel: A Flexible and Efficient Application Programming Interface for a Customizable Proxy
//! Cache. USITS 2003).
//!
//! ```toml
//! [[module]]
//! name = "probe"
//! kind = "probe"
//! options.field = "X-Probe"
//! options.content = true
//! ```

use crate::options::{flag, text};
use std::rc::Rc;
use std::sync::Arc;
use weir_extend::{
    Answer, Call, Exchange, Fields, HeadFields, Hook, Hooks, Host, LoadError, Module, ModuleKind,
    Options, Piece, Progress, RequestHead, ResponseHead, Transform,
};

const OPTIONS: [&str; 2] = ["field", "content"];

pub(crate) struct Probe;

impl ModuleKind for Probe {
    fn name(&self) -> &'static str {
        "probe"
    }

    fn load(&self, mut options: Options) -> Result<Arc<dyn Module>, LoadError> {
        let field = text(&mut options, "field")?;
        let content = flag(&mut options, "content")?.unwrap_or(false);
        options.finish(&OPTIONS)?;
        if let Some(name) = &field {
            // what is refused of every head is refused here
            Fields::default().add(name, b"").map_err(|error| {
                let what = format!("`{name}`: {error}");
                LoadError::new("field", what, "give a name such as \"X-Probe\"")
            })?;
        }
        Ok(Arc::new(ProbeModule {
            field: field.map(Arc::from),
            content,
        }))
    }
}

struct ProbeModule {
    /// The name of the field that is added; its value is the name of the hook.
    field: Option<Arc<str>>,
    /// Whether content is taken and put out again.
    content: bool,
}

impl Module for ProbeModule {
    fn hooks(&self) -> Hooks {
        Hook::ALL.into_iter().collect()
    }

    fn may_transform(&self) -> bool {
        self.content
    }

    /// The field is the same for every request.
    fn changes_stored(&self) -> bool {
        self.field.is_some()
    }

    fn begin(&self, _: &Rc<dyn Host>) -> Box<dyn Exchange> {
        if self.field.is_none() && !self.content {
            return Box::new(Empty);
        }
        Box::new(ProbeExchange {
            field: self.field.clone(),
            content: self.content,
        })
    }
}

/// Does nothing, and takes no memory: what its calls cost is what the proxy does for them.
struct Empty;

impl Exchange for Empty {}

struct ProbeExchange {
    field: Option<Arc<str>>,
    content: bool,
}

impl ProbeExchange {
    fn add(&self, hook: Hook, fields: &mut HeadFields<'_>) -> Answer {
        let added = self
            .field
            .as_deref()
            .map_or(Ok(()), |name| fields.add(name, hook.as_str().as_bytes()));
        match added {
            Ok(()) => Answer::Continue,
            Err(_) => Answer::Fail,
        }
    }
}

impl Exchange for ProbeExchange {
    fn request_received(&mut self, head: &mut RequestHead<'_>, _: &Call) -> Answer {
        self.add(Hook::RequestReceived, &mut head.fields)
    }

    fn request_sent(&mut self, head: &mut RequestHead<'_>, _: &Call) -> Answer {
        self.add(Hook::RequestSent, &mut head.fields)
    }

    fn response_received(&mut self, head: &mut ResponseHead<'_>, _: &Call) -> Answer {
        self.add(Hook::ResponseReceived, &mut head.fields)
    }

    fn response_sent(&mut self, head: &mut ResponseHead<'_>, _: &Call) -> Answer {
        if self.content {
            // parts, and what has `no-transform`, pass as they are
            let _ = head.transform(Box::new(Overwrite));
        }
        self.add(Hook::ResponseSent, &mut head.fields)
    }

    fn done(&mut self, _: &Call) {}
}

/// Puts out every byte that it takes.
struct Overwrite;

impl Transform for Overwrite {
    fn transform(&mut self, piece: &mut Piece<'_>) -> Progress {
        piece.pass(piece.room());
        if piece.is_last() && piece.input().is_empty() {
            Progress::Done
        } else {
            Progress::Continue
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use weir_extend::{Detached, ListenerMode, OptionValue};

    fn load(options: &[(&str, OptionValue)]) -> Result<Arc<dyn Module>, LoadError> {
        let options = options.iter().cloned();
        let options = options.map(|(name, value)| (name.to_owned(), value));
        Probe.load(Options::new(options.collect::<BTreeMap<_, _>>()))
    }

    fn name(value: &str) -> OptionValue {
        OptionValue::Text(value.to_owned())
    }

    const CALL: Call = Call {
        client: std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST),
        mode: ListenerMode::Gateway,
        now_ms: 0,
    };

    /// The heads after a call at each hook.
    fn heads(
        options: &[(&str, OptionValue)],
    ) -> (RequestHead<'static>, [ResponseHead<'static>; 2]) {
        let module = load(options).expect("a module");
        let mut exchange = module.begin(&Detached::host());
        let mut request = RequestHead::new("GET", "a.example", "/", Fields::default());
        let response = || ResponseHead::new(200, Fields::received([("Content-Length", &b"1"[..])]));
        let mut responses = [response(), response()];
        let [received, sent] = &mut responses;
        let answers = [
            exchange.request_received(&mut request, &CALL),
            exchange.request_sent(&mut request, &CALL),
            exchange.response_received(received, &CALL),
            exchange.response_sent(sent, &CALL),
        ];
        exchange.done(&CALL);
        assert!(answers.iter().all(|answer| *answer == Answer::Continue));
        (request, responses)
    }

    #[test]
    fn probe_without_options_is_called_at_every_hook_and_changes_nothing() {
        let module = load(&[]).expect("a module");
        assert!(Hook::ALL.iter().all(|hook| module.hooks().contains(*hook)));
        assert!(!module.may_transform() && !module.changes_stored());
        let (request, responses) = heads(&[]);
        assert!(!request.is_changed());
        for response in responses {
            assert!(!response.fields.is_changed() && !response.is_transformed());
        }
    }

    #[test]
    fn field_is_added_on_all_four_paths_and_stored_and_names_the_hook() {
        let module = load(&[("field", name("X-Probe"))]).expect("a module");
        assert!(module.changes_stored());
        let (request, [received, sent]) = heads(&[("field", name("X-Probe"))]);
        let of = |fields: &Fields| {
            let values = fields.all("x-probe");
            let texts = values.map(|value| String::from_utf8_lossy(value).into_owned());
            texts.collect::<Vec<_>>()
        };
        assert_eq!(of(&request.fields), ["request-received", "request-sent"]);
        assert_eq!(of(&received.fields), ["response-received"]);
        assert_eq!(of(&sent.fields), ["response-sent"]);
    }

    #[test]
    fn content_is_put_out_as_it_was_for_each_client_whatever_the_pieces() {
        let (_, [received, mut sent]) = heads(&[("content", OptionValue::Flag(true))]);
        assert!(!received.is_transformed());
        let content: Vec<u8> = (0..=255).cycle().take(10_000).collect();
        let (_, mut transform) = sent.take_transform().expect("a transform");
        let (mut rest, mut out) = (&content[..], Vec::new());
        loop {
            let count = rest.len().min(300);
            let mut piece = Piece::new(&rest[..count], count == rest.len(), &mut out, 100);
            let progress = transform.transform(&mut piece);
            rest = &rest[piece.taken()..];
            if progress == Progress::Done {
                break;
            }
            assert_eq!(progress, Progress::Continue);
        }
        assert!(rest.is_empty() && out == content);
    }

    #[test]
    fn field_that_no_module_may_write_and_other_options_are_refused() {
        for (options, option) in [
            (("field", name("Via")), "field"),
            (("field", name("X Probe")), "field"),
            (("field", OptionValue::Flag(true)), "field"),
            (("content", name("yes")), "content"),
            (("hooks", name("done")), "hooks"),
        ] {
            assert_eq!(load(&[options]).err().expect("refused").option, option);
        }
    }
}
