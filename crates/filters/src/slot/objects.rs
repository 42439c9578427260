//! Functions of the host about stored responses, which filters call as foreign functions.
//!
//! The arguments are lines of text: the target URI, what the function takes beside it, and fields
//! of the request that selects the response. The result is a number of 4 bytes, little-endian; when
//! the call is complete, `proxy_on_foreign_function` has that number as its function, and lines of
//! text as its arguments: `ok` or `error` and the reason, and what is known of the response.

use super::refused::{self, Refused};
use super::{Slot, WeakSlot};
use crate::effects::FunctionCall;
use std::fmt::Write as _;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};
use weir_extend::{
    Fields, Host, InjectedHead, ListenerMode, Pending, StoredError, StoredInfo, StoredTarget,
    Validation,
};

/// The most content that is handed to a filter, bytes: the arguments of a callback have a limit.
const READ_BYTES_MAX: usize = 60 * 1024;

/// How the lines of a call that has failed begin.
const ERROR: &[u8] = b"error: ";

/// Starts a call. Its completion is given to the instance that made it, in a later turn.
pub(crate) fn start(slot: &Arc<Slot>, host: &Rc<dyn Host>, generation: u64, call: FunctionCall) {
    let (token, begun) = (call.token, Instant::now());
    let pending = begin(&**host, &call);
    let (weak, own) = (Arc::downgrade(slot), Rc::clone(host));
    let is_spawned = host.spawn(Box::pin(async move {
        let result = pending.await;
        if result.starts_with(ERROR) {
            refused::pause(&*own, begun).await;
        }
        complete(&weak, &own, generation, (token, result));
    }));
    if !is_spawned {
        slot.refuse(generation, Refused::Function(token));
    }
}

/// Completes a call that was not started.
pub(super) fn complete_refused(slot: &WeakSlot, host: &Rc<dyn Host>, generation: u64, token: u32) {
    let result = failed(StoredError::TooMany);
    complete(slot, host, generation, (token, result));
}

fn complete(
    slot: &WeakSlot,
    host: &Rc<dyn Host>,
    generation: u64,
    (token, result): (u32, Vec<u8>),
) {
    let Some(slot) = slot.upgrade() else {
        return;
    };
    let _ = slot.call(host, generation, |instance| {
        instance.host_mut().functions_under_way -= 1;
        instance.foreign_function(token, result)
    });
}

/// Begins a call; ready with the lines of its completion.
fn begin(host: &dyn Host, call: &FunctionCall) -> Pending<Vec<u8>> {
    let Some(request) = Request::parse(&call.arguments, &call.name) else {
        return Box::pin(std::future::ready(failed(StoredError::BadTarget)));
    };
    let (stored, target) = (host.stored(), request.target);
    match call.name.as_str() {
        "weir_object_query" => lines(stored.query(target), |info| described(&info)),
        "weir_object_fetch" => lines(stored.fetch(target), |info| described(&info)),
        "weir_object_validate" => lines(stored.validate(target), |came| {
            let word = match came {
                Validation::Valid => "valid",
                Validation::Replaced => "replaced",
                Validation::Dropped => "dropped",
            };
            format!("result: {word}\n").into_bytes()
        }),
        "weir_object_set_expiry" => {
            let fresh_for = Duration::from_millis(request.number);
            lines(stored.set_expiry(target, fresh_for), |()| Vec::new())
        }
        "weir_object_delete" => lines(stored.delete(target), |count| {
            format!("deleted: {count}\n").into_bytes()
        }),
        "weir_object_inject" => {
            let Ok(status) = u16::try_from(request.number) else {
                return Box::pin(std::future::ready(failed(StoredError::BadResponse)));
            };
            let head = InjectedHead {
                target,
                status,
                fields: request.response,
            };
            let injected = stored.inject(head, request.content);
            lines(injected, |info| described(&info))
        }
        _ => lines(stored.read(target, READ_BYTES_MAX), |read| {
            [&described(&read.info)[..], b"\n", &read.content].concat()
        }),
    }
}

fn lines<T: 'static>(
    pending: Pending<Result<T, StoredError>>,
    describe: impl FnOnce(T) -> Vec<u8> + 'static,
) -> Pending<Vec<u8>> {
    Box::pin(async move {
        match pending.await {
            Ok(value) => [&b"ok\n"[..], &describe(value)].concat(),
            Err(error) => failed(error),
        }
    })
}

fn failed(error: StoredError) -> Vec<u8> {
    [ERROR, error.to_string().as_bytes(), b"\n"].concat()
}

fn described(info: &StoredInfo) -> Vec<u8> {
    let mut text = String::new();
    let StoredInfo {
        status,
        stored_bytes,
        age,
        fresh_for,
        ..
    } = info;
    // writing to a string does not fail
    let _ = write!(
        text,
        "status: {status}\nstored-bytes: {stored_bytes}\nage-ms: {}\nfresh-for-ms: {}\n",
        age.as_millis(),
        fresh_for.as_millis()
    );
    text.into_bytes()
}

/// The arguments of a call.
#[derive(Debug, PartialEq)]
struct Request {
    target: StoredTarget,
    number: u64,
    response: Fields,
    content: Vec<u8>,
}

impl Request {
    fn parse(arguments: &[u8], name: &str) -> Option<Self> {
        let is_injected = name == "weir_object_inject";
        let (head, content) = match arguments.windows(2).position(|pair| pair == b"\n\n") {
            Some(end) if is_injected => (&arguments[..end], &arguments[end + 2..]),
            _ => (arguments, &b""[..]),
        };
        let mut lines = str::from_utf8(head).ok()?.lines();
        let (mode, url) = lines.next()?.split_once(' ')?;
        let mode = match mode {
            "forward" => ListenerMode::Forward,
            "gateway" => ListenerMode::Gateway,
            _ => return None,
        };
        let mut target = StoredTarget::new(mode, url);
        let number = match name {
            "weir_object_set_expiry" | "weir_object_inject" => lines.next()?.parse().ok()?,
            _ => 0,
        };
        let mut fields = Fields::default();
        for line in lines.filter(|line| !line.is_empty()) {
            let (name, value) = line.split_once(':')?;
            fields.add(name, value.trim().as_bytes()).ok()?;
        }
        let response = match is_injected {
            true => fields,
            false => {
                target.fields = fields;
                Fields::default()
            }
        };
        Some(Self {
            target,
            number,
            response,
            content: content.to_vec(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_a_target_a_number_and_fields() {
        let parse = |name: &str, text: &str| Request::parse(text.as_bytes(), name);
        let query = parse(
            "weir_object_query",
            "gateway http://a.example/\nAccept: text/html\n",
        );
        let query = query.expect("a target");
        assert_eq!(query.target.url, "http://a.example/");
        assert_eq!(query.target.fields.get("accept"), Some(&b"text/html"[..]));
        let text = "forward http://a.example/\n200\nContent-Type: text/plain\n\nline\n\nline";
        let inject = parse("weir_object_inject", text).expect("a response");
        assert_eq!(
            (inject.number, &*inject.content),
            (200, &b"line\n\nline"[..])
        );
        assert_eq!(
            inject.response.get("content-type"),
            Some(&b"text/plain"[..])
        );
        for text in [
            "",
            "http://a.example/",
            "both http://a.example/",
            "gateway http://a\nx",
        ] {
            assert_eq!(parse("weir_object_query", text), None, "{text}");
        }
        assert_eq!(
            parse("weir_object_set_expiry", "gateway http://a\nsoon"),
            None
        );
    }
}
