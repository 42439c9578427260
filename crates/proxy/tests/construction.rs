//! Responses under construction, as an adversary would have them: next hops that stop or change their mind, clients that
//! stop, leave, or want what is not theirs to share.

mod support;

#[path = "construction/leaving.rs"]
mod leaving;

use support::{Running, ScriptedOrigin};
use weir_proxy::config::Config;

/// A gateway, and what it is before.
fn gateway(change: impl FnOnce(&mut Config)) -> (Running, ScriptedOrigin) {
    let origin = ScriptedOrigin::new();
    let proxy = Running::gateway_with(origin.address(), change);
    (proxy, origin)
}

/// A request for the one target of all these tests.
fn get(fields: &str) -> String {
    format!("GET /x HTTP/1.1\r\nHost: a.example\r\n{fields}\r\n")
}

/// The head of a whole response of `length` bytes that may be stored, with a strong entity tag.
fn whole(length: usize) -> String {
    format!(
        "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nETag: \"a\"\r\nContent-Length: {length}\r\n\r\n"
    )
}
