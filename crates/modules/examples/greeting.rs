//! `greeting`: adds a field to each response.

use std::rc::Rc;
use std::sync::Arc;
use weir_extend::{
    Answer, Call, Exchange, Hook, Hooks, Host, LoadError, Module, ModuleKind, OptionValue, Options,
    ResponseHead,
};

pub(crate) struct Greeting;

impl ModuleKind for Greeting {
    fn name(&self) -> &'static str {
        "greeting"
    }

    fn load(&self, mut options: Options) -> Result<Arc<dyn Module>, LoadError> {
        let Some(OptionValue::Text(text)) = options.take("text") else {
            return Err(LoadError::new("text", "there is no text", "give a string"));
        };
        options.finish(&["text"])?;
        Ok(Arc::new(Greeter(text)))
    }
}

struct Greeter(String);

impl Module for Greeter {
    fn hooks(&self) -> Hooks {
        Hooks::NONE.with(Hook::ResponseSent)
    }

    fn begin(&self, _: &Rc<dyn Host>) -> Box<dyn Exchange> {
        Box::new(Reply(self.0.clone()))
    }
}

struct Reply(String);

impl Exchange for Reply {
    fn response_sent(&mut self, head: &mut ResponseHead<'_>, _: &Call) -> Answer {
        match head.fields.set("X-Greeting", self.0.as_bytes()) {
            Ok(()) => Answer::Continue,
            Err(_) => Answer::Fail,
        }
    }
}

/// Calls the module without a proxy. In a module of `weir` this is left out.
fn main() -> Result<(), Box<dyn std::error::Error>> {
    use std::collections::BTreeMap;
    use std::net::{IpAddr, Ipv4Addr};
    use weir_extend::{Detached, Fields, ListenerMode};

    let text = OptionValue::Text("hello".into());
    let options = Options::new(BTreeMap::from([("text".to_owned(), text)]));
    let module = Greeting.load(options)?;
    let mut head = ResponseHead::new(200, Fields::default());
    let call = Call {
        client: IpAddr::V4(Ipv4Addr::LOCALHOST),
        mode: ListenerMode::Gateway,
        now_ms: 0,
    };
    let mut exchange = module.begin(&Detached::host());
    let answer = exchange.response_sent(&mut head, &call);
    println!("{answer:?}: {head:?}");
    Ok(())
}
