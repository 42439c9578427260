//! A filter for tests: the path of a request says what it does with it and with its response.

use log::{info, warn};
use proxy_wasm::hostcalls;
use proxy_wasm::traits::{Context, HttpContext, RootContext};
use proxy_wasm::types::{Action, ContextType, LogLevel, MetricType};
use std::time::Duration;

proxy_wasm::main! {{
    proxy_wasm::set_log_level(LogLevel::Info);
    proxy_wasm::set_root_context(|_| Box::new(Root { requests: 0, ticks: 0 }));
}}

/// The plugin: numbers of metrics.
struct Root {
    requests: u32,
    ticks: u32,
}

impl Context for Root {}

impl RootContext for Root {
    fn on_configure(&mut self, _size: usize) -> bool {
        let text = self.get_plugin_configuration().unwrap_or_default();
        if text == b"refuse" {
            warn!("the configuration is `refuse`");
            return false;
        }
        self.requests = metric(MetricType::Counter, "requests");
        self.ticks = metric(MetricType::Counter, "ticks");
        self.set_tick_period(Duration::from_millis(20));
        true
    }

    fn on_tick(&mut self) {
        increment(self.ticks);
    }

    fn get_type(&self) -> Option<ContextType> {
        Some(ContextType::HttpContext)
    }

    fn create_http_context(&self, _id: u32) -> Option<Box<dyn HttpContext>> {
        Some(Box::new(Exercise {
            requests: self.requests,
            path: String::new(),
        }))
    }
}

fn metric(kind: MetricType, name: &str) -> u32 {
    hostcalls::define_metric(kind, name).unwrap_or_default()
}

fn increment(metric: u32) {
    let _ = hostcalls::increment_metric(metric, 1);
}

/// One stream.
struct Exercise {
    requests: u32,
    path: String,
}

impl Exercise {
    fn does(&self, what: &str) -> bool {
        self.path.starts_with(what)
    }

    fn respond(&self, status: u32, text: &str) -> Action {
        let fields = vec![("x-by", "filter"), ("content-type", "text/plain")];
        self.send_http_response(status, fields, Some(text.as_bytes()));
        Action::Pause
    }

    /// How often this was called in all instances.
    fn visit(&self) -> u64 {
        loop {
            let (value, cas) = self.get_shared_data("visits");
            let count = value.map_or(0, |value| value.try_into().map_or(0, u64::from_le_bytes));
            let next = (count + 1).to_le_bytes();
            if self.set_shared_data("visits", Some(&next), cas).is_ok() {
                return count + 1;
            }
        }
    }

    fn properties(&self) -> String {
        let paths: [&[&str]; 5] = [
            &["request", "path"],
            &["request", "headers", "x-a"],
            &["source", "address"],
            &["plugin_name"],
            &["no", "such"],
        ];
        let value = |path: &&[&str]| {
            let value = self.get_property(path.to_vec());
            value.map_or("-".to_owned(), |it| {
                String::from_utf8_lossy(&it).into_owned()
            })
        };
        paths.iter().map(value).collect::<Vec<_>>().join(" ")
    }
}

impl Context for Exercise {
    fn on_http_call_response(&mut self, _: u32, _: usize, size: usize, _: usize) {
        let body = self
            .get_http_call_response_body(0, size)
            .unwrap_or_default();
        let status = self.get_http_call_response_header(":status");
        if status.as_deref() != Some("200") {
            self.respond(401, "not allowed");
            return;
        }
        let user = String::from_utf8_lossy(&body).into_owned();
        self.set_http_request_header("x-user", Some(&user));
        self.resume_http_request();
    }
}

impl HttpContext for Exercise {
    fn on_http_request_headers(&mut self, _count: usize, _end: bool) -> Action {
        increment(self.requests);
        self.path = self.get_http_request_header(":path").unwrap_or_default();
        if self.does("/headers") {
            self.set_http_request_header("x-secret", None);
            self.add_http_request_header("x-filter", "request");
            self.set_http_request_header("transfer-encoding", Some("gzip"));
        }
        if self.does("/moved") {
            self.set_http_request_header(":path", Some("/target"));
        }
        if self.does("/deny") {
            return self.respond(403, "denied");
        }
        if self.does("/call") {
            let fields = vec![
                (":method", "GET"),
                (":path", "/check"),
                (":authority", "auth"),
                ("x-token", "t"),
            ];
            let timeout = Duration::from_secs(5);
            if self
                .dispatch_http_call("auth", fields, None, vec![], timeout)
                .is_err()
            {
                return self.respond(500, "no call");
            }
            return Action::Pause;
        }
        if self.does("/visits") {
            return self.respond(200, &self.visit().to_string());
        }
        if self.does("/properties") {
            return self.respond(200, &self.properties());
        }
        if self.does("/reset") {
            self.reset_http_request();
            return Action::Pause;
        }
        if self.does("/trap") {
            info!("about to trap");
            panic!("as the path says");
        }
        Action::Continue
    }

    fn on_http_request_body(&mut self, size: usize, end: bool) -> Action {
        if self.does("/shout") {
            if let Some(body) = self.get_http_request_body(0, size) {
                self.set_http_request_body(0, size, &body.to_ascii_uppercase());
            }
        }
        if self.does("/whole") {
            if !end {
                return Action::Pause;
            }
            let mut body = self.get_http_request_body(0, size).unwrap_or_default();
            body.reverse();
            self.set_http_request_body(0, size, &body);
        }
        if self.does("/block") {
            let body = self.get_http_request_body(0, size).unwrap_or_default();
            if body.windows(4).any(|window| window == b"evil") {
                return self.respond(403, "evil content");
            }
        }
        Action::Continue
    }

    fn on_http_response_headers(&mut self, _count: usize, _end: bool) -> Action {
        self.add_http_response_header("x-filter", "response");
        if self.does("/shout") || self.does("/whole") {
            self.set_http_response_header("content-length", None);
        }
        if self.does("/late") {
            return self.respond(403, "late");
        }
        Action::Continue
    }

    fn on_http_response_body(&mut self, size: usize, end: bool) -> Action {
        if self.does("/shout") {
            if let Some(body) = self.get_http_response_body(0, size) {
                self.set_http_response_body(0, size, &body.to_ascii_uppercase());
            }
        }
        if self.does("/whole") {
            if !end {
                return Action::Pause;
            }
            let body = self.get_http_response_body(0, size).unwrap_or_default();
            let text = format!("{} bytes", body.len());
            self.set_http_response_body(0, size, text.as_bytes());
        }
        Action::Continue
    }
}
