//! HTTP calls of filters, and their ticks: tasks beside the requests of a worker.

use super::refused::{self, Refused};
use super::{Slot, WeakSlot};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};
use weir_extend::{FETCH_TIMEOUT_MAX, FieldError, Fields, Host, OwnRequest, OwnResponse};
use weir_wasm::{HttpCall, HttpCallId, HttpCallResponse, Pairs};

/// The most content of a response to an HTTP call, bytes.
pub(crate) const CALL_CONTENT_BYTES_MAX: usize = 1024 * 1024;

/// The shortest timeout of an HTTP call: filters give zero for none.
const TIMEOUT_MIN: Duration = Duration::from_millis(1);

/// Starts an HTTP call. Its response is given to the instance that made it, in a later turn.
pub(crate) fn start(slot: &Arc<Slot>, host: &Rc<dyn Host>, generation: u64, call: HttpCall) {
    let (id, begun) = (call.id, Instant::now());
    let pending = request(slot, &call).map(|request| host.fetch(request));
    let (weak, own) = (Arc::downgrade(slot), Rc::clone(host));
    let is_spawned = host.spawn(Box::pin(async move {
        let response = match pending {
            Some(pending) => pending.await.ok().and_then(answer),
            None => None,
        };
        if response.is_none() {
            refused::pause(&*own, begun).await;
        }
        respond(&weak, &own, generation, (id, response));
    }));
    if !is_spawned {
        slot.refuse(generation, Refused::Call(id));
    }
}

/// Completes a call; one that failed has no response.
pub(super) fn respond(
    slot: &WeakSlot,
    host: &Rc<dyn Host>,
    generation: u64,
    (id, response): (HttpCallId, Option<HttpCallResponse>),
) {
    let Some(slot) = slot.upgrade() else {
        return;
    };
    let response = response.unwrap_or_default();
    let _ = slot.call(host, generation, |instance| {
        instance.host_mut().end_call(id.number());
        instance.http_call_response(id, response)
    });
}

/// The request of a call; `None` if it is none that can be sent.
fn request(slot: &Slot, call: &HttpCall) -> Option<OwnRequest> {
    let server = slot.setup().upstreams.get(&call.upstream)?;
    let text = |name: &[u8]| str::from_utf8(call.fields.get(name)?).ok();
    let path = text(b":path").filter(|path| path.starts_with('/'))?;
    let mut fields = Fields::default();
    for (name, value) in call
        .fields
        .iter()
        .filter(|field| !field.0.starts_with(b":"))
    {
        match fields.add(str::from_utf8(name).ok()?, value.trim_ascii()) {
            // the proxy frames the request, and names its host by the server's URL
            Ok(()) | Err(FieldError::Reserved) => {}
            Err(_) => return None,
        }
    }
    Some(OwnRequest {
        method: text(b":method")?.to_owned(),
        url: format!("{server}{path}"),
        fields,
        content: call.body.clone(),
        timeout: call.timeout.clamp(TIMEOUT_MIN, FETCH_TIMEOUT_MAX),
        content_bytes_max: CALL_CONTENT_BYTES_MAX,
    })
}

/// A response as a filter sees it; `None` if its head is too large for that.
fn answer(response: OwnResponse) -> Option<HttpCallResponse> {
    let mut fields = Pairs::new();
    fields
        .add(b":status", response.status.to_string().as_bytes())
        .ok()?;
    for (name, value) in response.fields.iter() {
        fields
            .add(name.to_ascii_lowercase().as_bytes(), value)
            .ok()?;
    }
    Some(HttpCallResponse {
        fields,
        body: response.content,
        trailers: Pairs::new(),
    })
}

/// Ticks an instance as often as it says, as long as it says so.
pub(crate) fn tick(slot: &Arc<Slot>, host: &Rc<dyn Host>, generation: u64) {
    let (weak, own) = (Arc::downgrade(slot), Rc::clone(host));
    // without a task it is not ticked: so many tasks are a failure of the module itself
    let _ = host.spawn(Box::pin(async move {
        loop {
            let period = weak.upgrade().and_then(|slot| slot.stop_ticks(generation));
            let Some(period) = period else {
                return;
            };
            own.sleep(period).await;
            let Some(slot) = weak.upgrade() else {
                return;
            };
            if slot
                .call(&own, generation, |instance| instance.tick())
                .is_err()
            {
                return;
            }
        }
    }));
}
