//! Calls of the operator about stored responses, on a worker.

use super::stored::calls::{Caller, StoredCalls};
use super::stored::explain::ExplainCall;
use super::stored::explain::report::Explanation;
use crate::admin::{StoredCall, StoredReply};
use crate::worker::core::Worker;
use std::rc::Rc;
use tokio::sync::oneshot;
use weir_extend::{StoredError, StoredResponses as _, WHOLE_CONTENT_BYTES_MAX};

/// Begins `call` on `worker`; `reply` gets what comes of it. It ends when that is not waited for
/// any more.
pub(crate) fn begin(
    worker: &Rc<Worker>,
    call: StoredCall,
    mut reply: oneshot::Sender<Result<StoredReply, StoredError>>,
) {
    let calls = StoredCalls::new(Rc::downgrade(worker), Caller::Operator);
    tokio::task::spawn_local(async move {
        let result = tokio::select! {
            result = run(&calls, call) => result,
            () = reply.closed() => return,
        };
        let _ = reply.send(result);
    });
}

/// Begins to find out what would become of a request, as [`begin`] does.
pub(crate) fn explain(
    worker: &Rc<Worker>,
    call: ExplainCall,
    mut reply: oneshot::Sender<Result<Explanation, StoredError>>,
) {
    let calls = StoredCalls::new(Rc::downgrade(worker), Caller::Operator);
    tokio::task::spawn_local(async move {
        let result = tokio::select! {
            result = calls.explain(call) => result,
            () = reply.closed() => return,
        };
        let _ = reply.send(result);
    });
}

async fn run(calls: &StoredCalls, call: StoredCall) -> Result<StoredReply, StoredError> {
    Ok(match call {
        StoredCall::Query(target) => {
            let (info, lacks_rule) = calls.describe(target).await?;
            StoredReply::Described { info, lacks_rule }
        }
        StoredCall::List(target) => StoredReply::Variants(calls.list(target).await?),
        StoredCall::Fetch(target) => StoredReply::Info(calls.fetch(target).await?),
        StoredCall::Validate(target) => StoredReply::Validation(calls.validate(target).await?),
        StoredCall::Expire(target, fresh_for) => {
            calls.set_expiry(target, fresh_for).await?;
            StoredReply::Expires(fresh_for)
        }
        StoredCall::Delete(target) => StoredReply::Deleted(calls.delete(target).await?),
        StoredCall::Inject(head, content) => StoredReply::Info(calls.inject(head, content).await?),
        StoredCall::Read(target) => {
            let read = calls.read(target, WHOLE_CONTENT_BYTES_MAX).await?;
            StoredReply::Content(read.content)
        }
        StoredCall::ReadLackingRule(target) => {
            let read = calls.read_lacking_rule(target, WHOLE_CONTENT_BYTES_MAX);
            StoredReply::Content(read.await?.content)
        }
    })
}
