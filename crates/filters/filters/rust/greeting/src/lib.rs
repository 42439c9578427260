//! The filter of `docs/extend.md`: adds a field to each response.

use proxy_wasm::traits::{Context, HttpContext, RootContext};
use proxy_wasm::types::{Action, ContextType, LogLevel};

proxy_wasm::main! {{
    proxy_wasm::set_log_level(LogLevel::Info);
    proxy_wasm::set_root_context(|_| Box::new(Root { greeting: String::new() }));
}}

struct Root {
    greeting: String,
}

impl Context for Root {}

impl RootContext for Root {
    fn on_configure(&mut self, _size: usize) -> bool {
        let text = self.get_plugin_configuration().unwrap_or_default();
        self.greeting = String::from_utf8(text).unwrap_or_default();
        !self.greeting.is_empty()
    }

    fn get_type(&self) -> Option<ContextType> {
        Some(ContextType::HttpContext)
    }

    fn create_http_context(&self, _id: u32) -> Option<Box<dyn HttpContext>> {
        Some(Box::new(Greeting(self.greeting.clone())))
    }
}

struct Greeting(String);

impl Context for Greeting {}

impl HttpContext for Greeting {
    fn on_http_response_headers(&mut self, _count: usize, _end: bool) -> Action {
        self.set_http_response_header("x-greeting", Some(&self.0));
        Action::Continue
    }
}
