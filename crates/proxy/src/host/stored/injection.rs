//! Responses that are put into the store without a next hop.

use super::calls::CallContext;
use super::lookup::{find, info_of_head};
use super::target;
use crate::exchange::state::RequestState;
use crate::fetch::store_writer::StoreWriter;
use crate::host::own_request::end_to_end;
use crate::request::answer::reason_phrase;
use std::cell::RefCell;
use std::future::ready;
use std::rc::Rc;
use std::time::Duration;
use tokio::time::sleep;
use weir_extend::{
    InjectedHead, Injection, Pending, STORED_PIECE_BYTES_MAX, StoredError, StoredInfo,
};
use weir_policy::catalog::Refusal;
use weir_policy::verdict::{NotStored, Storing};
use weir_policy::{Command, Event, Missing, StoredFacts, Transaction};
use weir_semantics::{FieldLine, ResponseFacts, line_named};
use weir_wire::{BodyLength, ResponseHead, Version};

/// How long an injection may take: it holds room of the store that others would use.
const INJECTION_TIME_MAX: Duration = Duration::from_secs(600);

/// A response on its way into the store.
pub(super) struct Open {
    context: CallContext,
    writer: StoreWriter,
    info: StoredInfo,
    /// Bytes of content that were announced.
    announced: Option<u64>,
}

/// Begins to store a response.
pub(super) async fn begin(
    context: CallContext,
    head: &InjectedHead,
    announced: Option<u64>,
) -> Result<Open, StoredError> {
    if !context.settings.config.cache.enabled {
        return Err(StoredError::Unavailable);
    }
    let fields = end_to_end(&head.fields).ok_or(StoredError::BadResponse)?;
    // a part, or what only a request's condition makes sense of
    if !(200..600).contains(&head.status) || matches!(head.status, 206 | 304) {
        return Err(StoredError::BadResponse);
    }
    let mut exchange = target::selecting_variant(&context, &head.target).await?;
    // what the disk knows of its variants
    find(&mut exchange).await?;
    let length = announced.map(|bytes| bytes.to_string());
    let length = length.as_deref().filter(|_| head.status != 204);
    let lines = fields
        .iter()
        .map(|(name, value)| FieldLine::new(name, value));
    let length_line = length.map(|text| FieldLine::new("Content-Length", text.as_bytes()));
    let lines: Vec<FieldLine<'_>> = lines.chain(length_line).collect();
    let response = ResponseHead {
        version: Version::Http11,
        status: head.status,
        reason: reason_phrase(head.status),
        fields: &lines,
    };
    let facts = judge(&context, &mut exchange, &response)?;
    let body = match announced {
        Some(bytes) => BodyLength::Exact(bytes),
        None => BodyLength::Chunked,
    };
    let writer = StoreWriter::begin(&context.worker, &mut exchange, &response, body, facts);
    let Some(writer) = writer else {
        return Err(refusal_of(&exchange));
    };
    let info = info_of_head(writer.head_lines(), &facts, context.worker.now());
    Ok(Open {
        context,
        writer,
        info,
        announced,
    })
}

/// The facts of a response that may be stored, which is expected from now on.
fn judge(
    context: &CallContext,
    exchange: &mut RequestState,
    response: &ResponseHead<'_, '_>,
) -> Result<StoredFacts, StoredError> {
    let (worker, settings) = (&context.worker, &context.settings);
    let now = worker.now();
    let content_type = line_named(response.fields, "content-type");
    let rules = &exchange.storing_rules(response.status, content_type);
    let targeted = settings.targeted(exchange.request.mode);
    let facts = ResponseFacts::gather(response.status, response.fields, now.wall)
        .targeted(response.fields, targeted);
    let mut tx = Transaction::new(*exchange.tx.request(), now);
    let _ = tx.handle(now, rules, Event::Request { unshared: false });
    let _ = tx.handle(now, rules, Event::Missing(Missing::Target));
    exchange.tx = tx;
    exchange.expect(worker);
    let commands = exchange.tx.handle(now, rules, Event::Response(&facts));
    let storable = commands.iter().find_map(|command| match command {
        Command::Store(facts) => Some(facts),
        _ => None,
    });
    if let Some(facts) = storable {
        return Ok(facts);
    }
    let facts = StoredFacts::new(&facts, now.wall, now, &rules.heuristic);
    // it could never answer a request, whatever is permitted
    if !context.may_store || facts.is_useless() {
        return Err(refusal_of(exchange));
    }
    Ok(facts)
}

/// Why a response is not stored, as the transaction has it.
fn refusal_of(exchange: &RequestState) -> StoredError {
    match exchange.tx.verdict().storing {
        Some(Storing::NotStored(why)) => StoredError::Refused(why.as_str(), None),
        Some(Storing::Stored) | None => StoredError::Unavailable,
    }
}

impl Open {
    /// Adds content of any length.
    pub(super) fn push(&mut self, content: &[u8]) -> Result<(), StoredError> {
        let stored = self.info.stored_bytes + content.len() as u64;
        if self.announced.is_some_and(|bytes| stored > bytes)
            || self.info.status == 204 && stored > 0
        {
            return Err(StoredError::BadResponse);
        }
        self.info.stored_bytes = stored;
        let worker = &self.context.worker;
        for piece in content.chunks(STORED_PIECE_BYTES_MAX) {
            self.writer.push(worker, piece).map_err(refused)?;
        }
        Ok(())
    }

    /// The content is whole: stores it.
    pub(super) fn finish(mut self) -> Result<StoredInfo, StoredError> {
        let stored = self.info.stored_bytes;
        if self.announced.is_some_and(|bytes| stored != bytes) {
            return Err(StoredError::BadResponse);
        }
        self.writer.finish(&self.context.worker).map_err(refused)?;
        self.info.complete_bytes = Some(stored);
        Ok(self.info)
    }
}

fn refused(refusal: Refusal) -> StoredError {
    match refusal {
        // purged meanwhile, or a more recent one is stored
        Refusal::NotResident => StoredError::Outdated,
        refusal => StoredError::Refused(NotStored::Catalog(refusal).as_str(), None),
    }
}

/// A response that comes in pieces.
pub(super) struct Pieces(Rc<RefCell<Result<Open, StoredError>>>);

impl Pieces {
    /// Of what was begun. After [`INJECTION_TIME_MAX`] it is given up.
    pub(super) fn new(open: Open) -> Self {
        let open = Rc::new(RefCell::new(Ok(open)));
        let late = Rc::downgrade(&open);
        tokio::task::spawn_local(async move {
            sleep(INJECTION_TIME_MAX).await;
            if let Some(open) = late.upgrade() {
                *open.borrow_mut() = Err(StoredError::Timeout);
            }
        });
        Self(open)
    }

    fn add(&self, content: &[u8]) -> Result<(), StoredError> {
        let mut state = self.0.borrow_mut();
        let open = state.as_mut().map_err(|error| *error)?;
        let pushed = match content.len() {
            ..=STORED_PIECE_BYTES_MAX => open.push(content),
            _ => Err(StoredError::TooLarge),
        };
        if let Err(error) = pushed {
            *state = Err(error);
        }
        pushed
    }
}

impl Injection for Pieces {
    fn piece(&mut self, content: Vec<u8>) -> Pending<Result<(), StoredError>> {
        Box::pin(ready(self.add(&content)))
    }

    fn done(self: Box<Self>) -> Pending<Result<StoredInfo, StoredError>> {
        let ended = Err(StoredError::Outdated);
        let open = std::mem::replace(&mut *self.0.borrow_mut(), ended);
        Box::pin(ready(open.and_then(Open::finish)))
    }
}
