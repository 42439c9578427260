//! The filter that `cargo xtask extend` measures: it does what its configuration says. `empty` is
//! called and does nothing, `fields` adds a field to requests and responses, `content` also takes
//! the content of each response and puts it out again.

use proxy_wasm::traits::{Context, HttpContext, RootContext};
use proxy_wasm::types::{Action, ContextType};

proxy_wasm::main! {{
    proxy_wasm::set_root_context(|_| Box::new(Root { work: Work::Empty }));
}}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Work {
    Empty,
    Fields,
    Content,
}

struct Root {
    work: Work,
}

impl Context for Root {}

impl RootContext for Root {
    fn on_configure(&mut self, _size: usize) -> bool {
        self.work = match self.get_plugin_configuration().as_deref() {
            Some(b"empty") => Work::Empty,
            Some(b"fields") => Work::Fields,
            Some(b"content") => Work::Content,
            _ => return false,
        };
        true
    }

    fn get_type(&self) -> Option<ContextType> {
        Some(ContextType::HttpContext)
    }

    fn create_http_context(&self, _id: u32) -> Option<Box<dyn HttpContext>> {
        Some(Box::new(Probe { work: self.work }))
    }
}

/// One stream.
struct Probe {
    work: Work,
}

impl Context for Probe {}

impl HttpContext for Probe {
    fn on_http_request_headers(&mut self, _count: usize, _end: bool) -> Action {
        if self.work != Work::Empty {
            self.add_http_request_header("x-probe", "request");
        }
        Action::Continue
    }

    fn on_http_response_headers(&mut self, _count: usize, _end: bool) -> Action {
        if self.work != Work::Empty {
            self.add_http_response_header("x-probe", "response");
        }
        Action::Continue
    }

    fn on_http_response_body(&mut self, size: usize, _end: bool) -> Action {
        if self.work == Work::Content
            && let Some(content) = self.get_http_response_body(0, size)
        {
            self.set_http_response_body(0, size, &content);
        }
        Action::Continue
    }
}
