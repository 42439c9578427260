//! The calls about stored responses, of one caller on one worker.

use super::injection::{self, Pieces};
use super::lookup::{self, find};
use super::reading::{self, LackingRule, Parts, Reading};
use super::{refetch, target};
use crate::cache::invalidate::DURABLE_WAIT;
use crate::fetch::storable_head::StorableHead;
use crate::host::own_task;
use crate::modules::own_work::OwnPlace;
use crate::modules::status::ModuleStatus;
use crate::send::heads::stored_fields;
use crate::settings::Settings;
use crate::worker::core::Worker;
use std::future::{Future, ready};
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;
use weir_extend::{
    InjectedHead, Injection, Pending, StoredContent, StoredError, StoredInfo, StoredReader,
    StoredResponses, StoredTarget, Validation, WHOLE_CONTENT_BYTES_MAX,
};
use weir_measure::Metric;
use weir_policy::StoredFacts;
use weir_semantics::DeltaSeconds;
use weir_store::Purge;
use weir_wire::LineBuffer;

/// How long a call may take: a response that is fetched for the store waits for its share of the
/// background bytes.
const CALL_TIME_MAX: Duration = Duration::from_secs(600);

/// The caller of these calls.
pub(crate) enum Caller {
    /// A module with this status, which may have so many calls under way.
    Module {
        status: Arc<ModuleStatus>,
        calls_max: usize,
        /// It may have stored what the rules would not store.
        may_store: bool,
    },
    /// The operator: may have any response stored, and has a share of calls that no module takes.
    Operator,
}

/// Stored responses as one caller has them.
pub(crate) struct StoredCalls {
    worker: Weak<Worker>,
    caller: Caller,
}

/// What one call works with.
pub(super) struct CallContext {
    pub(super) worker: Rc<Worker>,
    /// Those in force when it began.
    pub(super) settings: Arc<Settings>,
    pub(super) may_store: bool,
    /// The operator gets to know of responses that answer no request any more.
    pub(super) is_operator: bool,
    /// Given back when the call is over, and what it has begun.
    pub(super) place: OwnPlace,
}

impl StoredCalls {
    /// Those of `caller` on a worker.
    pub(crate) const fn new(worker: Weak<Worker>, caller: Caller) -> Self {
        Self { worker, caller }
    }

    pub(super) fn context(&self) -> Result<CallContext, StoredError> {
        let worker = self.worker.upgrade().ok_or(StoredError::Unavailable)?;
        let (module, may_store) = match &self.caller {
            Caller::Operator => (None, true),
            Caller::Module {
                status,
                calls_max,
                may_store,
            } => (Some((status, *calls_max)), *may_store),
        };
        let place = OwnPlace::take(&worker.shared.own_work, module);
        Ok(CallContext {
            settings: worker.settings(),
            may_store,
            is_operator: matches!(self.caller, Caller::Operator),
            place: place.ok_or(StoredError::TooMany)?,
            worker,
        })
    }

    /// Does `work` in a task of its own.
    pub(super) fn call<T: 'static, F>(
        &self,
        work: impl FnOnce(CallContext) -> F,
    ) -> Pending<Result<T, StoredError>>
    where
        F: Future<Output = Result<T, StoredError>> + 'static,
    {
        let context = match self.context() {
            Ok(context) => context,
            Err(error) => return Box::pin(ready(Err(error))),
        };
        let work = timeout(CALL_TIME_MAX, Box::pin(work(context)));
        let work = async move { work.await.unwrap_or(Err(StoredError::Timeout)) };
        own_task::run(work, || Err(StoredError::Unavailable))
    }
}

impl StoredCalls {
    /// What is stored, and whether it answers no request any more since a rule is gone: for the
    /// operator.
    pub(crate) fn describe(
        &self,
        target: StoredTarget,
    ) -> Pending<Result<(StoredInfo, bool), StoredError>> {
        self.call(async move |context: CallContext| {
            let mut exchange = target::selecting_variant(&context, &target).await?;
            let found = find(&mut exchange).await?;
            let (response, _) = found.ok_or(StoredError::NotStored)?;
            let info = lookup::info(&response, context.worker.now());
            Ok((info, lookup::lacks_rule(&exchange, &response)))
        })
    }

    /// Reads the content of a response, also if it answers no request any more: for the operator.
    pub(crate) fn read_lacking_rule(
        &self,
        target: StoredTarget,
        content_bytes_max: usize,
    ) -> Pending<Result<StoredContent, StoredError>> {
        self.call(async move |context: CallContext| {
            let reading = reading::begin(context, &target, LackingRule::Read).await?;
            read_whole(reading, content_bytes_max).await
        })
    }
}

impl StoredResponses for StoredCalls {
    fn query(&self, target: StoredTarget) -> Pending<Result<StoredInfo, StoredError>> {
        self.call(async move |context: CallContext| {
            let mut exchange = target::selecting_variant(&context, &target).await?;
            let found = find(&mut exchange).await?;
            let (response, _) = found.ok_or(StoredError::NotStored)?;
            if lookup::lacks_rule(&exchange, &response) {
                return Err(StoredError::NotStored);
            }
            Ok(lookup::info(&response, context.worker.now()))
        })
    }

    fn fetch(&self, target: StoredTarget) -> Pending<Result<StoredInfo, StoredError>> {
        self.call(async move |context: CallContext| refetch::fetch(&context, &target).await)
    }

    fn validate(&self, target: StoredTarget) -> Pending<Result<Validation, StoredError>> {
        self.call(async move |context: CallContext| refetch::validate(&context, &target).await)
    }

    fn set_expiry(
        &self,
        target: StoredTarget,
        fresh_for: Duration,
    ) -> Pending<Result<(), StoredError>> {
        self.call(async move |context: CallContext| set_expiry(&context, &target, fresh_for).await)
    }

    fn delete(&self, target: StoredTarget) -> Pending<Result<u64, StoredError>> {
        self.call(async move |context: CallContext| {
            let exchange = target::exchange(&context, &target)?;
            let shared = &context.worker.shared;
            // the store first: a request between the two finds neither
            let purge = shared.store.purge(exchange.key);
            shared.collapsed.forget(exchange.key);
            let count = purge.removed as u64;
            shared.common_counters().add_shared(Metric::Purged, count);
            durable(&context.worker, purge).await?;
            Ok(count)
        })
    }

    fn inject(
        &self,
        head: InjectedHead,
        content: Vec<u8>,
    ) -> Pending<Result<StoredInfo, StoredError>> {
        self.call(async move |mut context: CallContext| {
            if content.len() > WHOLE_CONTENT_BYTES_MAX {
                return Err(StoredError::TooLarge);
            }
            if !context.place.hold(content.len()) {
                return Err(StoredError::TooMany);
            }
            let length = content.len() as u64;
            let mut open = injection::begin(context, &head, Some(length)).await?;
            open.push(&content)?;
            open.finish()
        })
    }

    fn start_injection(
        &self,
        head: InjectedHead,
        content_bytes: Option<u64>,
    ) -> Pending<Result<Box<dyn Injection>, StoredError>> {
        self.call(async move |context: CallContext| {
            let open = injection::begin(context, &head, content_bytes).await?;
            Ok(Box::new(Pieces::new(open)) as Box<dyn Injection>)
        })
    }

    fn read(
        &self,
        target: StoredTarget,
        content_bytes_max: usize,
    ) -> Pending<Result<StoredContent, StoredError>> {
        self.call(async move |context: CallContext| {
            let reading = reading::begin(context, &target, LackingRule::Refused).await?;
            read_whole(reading, content_bytes_max).await
        })
    }

    fn start_read(
        &self,
        target: StoredTarget,
    ) -> Pending<Result<Box<dyn StoredReader>, StoredError>> {
        self.call(async move |context: CallContext| {
            let reading = reading::begin(context, &target, LackingRule::Refused).await?;
            Ok(Box::new(Parts::new(reading)) as Box<dyn StoredReader>)
        })
    }
}

/// Reads all of a response, at most so many bytes.
async fn read_whole(
    (mut reading, info): (Reading, StoredInfo),
    content_bytes_max: usize,
) -> Result<StoredContent, StoredError> {
    let most = content_bytes_max.min(WHOLE_CONTENT_BYTES_MAX);
    let length = usize::try_from(reading.length()).ok();
    let length = length.filter(|length| *length <= most);
    let length = length.ok_or(StoredError::TooLarge)?;
    if !reading.hold(length) {
        return Err(StoredError::TooMany);
    }
    let mut content = Vec::with_capacity(length);
    loop {
        let part = reading.part().await?;
        if part.is_empty() {
            return Ok(StoredContent { info, content });
        }
        content.extend_from_slice(&part);
    }
}

async fn set_expiry(
    context: &CallContext,
    target: &StoredTarget,
    fresh_for: Duration,
) -> Result<(), StoredError> {
    let mut exchange = match target::selecting_variant(context, target).await {
        // all variants are meant, also where modules let no request come to one
        Err(StoredError::Refused(..)) => target::exchange(context, target)?,
        exchange => exchange?,
    };
    let found = find(&mut exchange).await?;
    let worker = &context.worker;
    let now = worker.now();
    if let Some((response, _)) = &found
        && !context.may_store
        && lookup::fresh_for(&response.facts, now) < fresh_for
    {
        return Err(StoredError::Forbidden);
    }
    let found = found.map(|(response, expected)| {
        let mut lines = LineBuffer::new();
        let fields = stored_fields(&response.head, &mut lines);
        let vary = StorableHead::vary_of(worker, &exchange, fields);
        ((vary, response), expected)
    });
    let seconds = DeltaSeconds::from_secs(fresh_for.as_secs());
    let may_extend = context.may_store;
    let change = move |facts: &StoredFacts| {
        let wanted = facts.current_age(now).saturating_add(seconds);
        StoredFacts {
            freshness_lifetime: match may_extend {
                true => wanted,
                false => wanted.min(facts.freshness_lifetime),
            },
            // it would be served without a validation
            stale_while_revalidate: facts.stale_while_revalidate.filter(|_| seconds.0 > 0),
            ..*facts
        }
    };
    let (shared, url) = (&worker.shared, exchange.request.target_uri());
    let purge = shared
        .store
        .restate(now, exchange.key, found, &url, &change);
    shared.collapsed.forget(exchange.key);
    let count = purge.removed;
    durable(worker, purge).await?;
    match count {
        0 => Err(StoredError::NotStored),
        _ => Ok(()),
    }
}

/// Waits until a purge survives a crash, as long as an operator would.
async fn durable(worker: &Worker, purge: Purge) -> Result<(), StoredError> {
    let durable = timeout(DURABLE_WAIT, purge.durable()).await;
    if matches!(durable, Ok(Ok(()))) {
        return Ok(());
    }
    worker.counters().inc(Metric::PurgesNotDurable);
    Err(StoredError::NotDurable)
}
