//! Fetching what is missing of a response under construction, for a reader that has come to a gap.
//!
//! The request is the reader's own, with Range for the gap and If-Range for the validator of what is there (RFC 9110
//! §13.1.5): it brings the part, or shows that the response has changed. Then nothing is mixed: who needs more than
//! is there is cut.

use crate::arriving::Arriving;
use crate::client::Client;
use crate::config::Mode;
use crate::deadline::Deadline;
use crate::destination::Destination;
use crate::download::{self, Downloaded};
use crate::exchange::{Exchange, Plan};
use crate::fetch;
use crate::sink::Sink;
use crate::upload::Sending;
use crate::worker::Worker;
use crate::{next_hop, outbound, report, upload};
use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;
use weir_policy::fetch::{ByteSpan, FetchEnd, FetchId};
use weir_policy::transaction::Covers;
use weir_policy::{Command, Event, Forwarding, Transaction};
use weir_semantics::{
    AskedPart, ByteRange, ContentRange, FieldLine, Fits, ResponseFacts, combines,
};
use weir_store::StoredResponse;
use weir_wire::BodyLength;

/// What a request to the next hop is to bring.
#[derive(Clone, Debug)]
pub(crate) struct Gap {
    /// The bytes that are missing; `to` is `u64::MAX` if the end is not known.
    pub(crate) span: ByteSpan,
    /// What they are missing in, if it is under construction.
    pub(crate) into: Option<(Arc<Arriving>, FetchId)>,
}

impl Gap {
    /// Whether a 206 is what was asked for, and of the same representation as `stored` (RFC 9111 §3.4).
    pub(crate) fn fits(
        &self,
        stored: &StoredResponse,
        facts: &ResponseFacts,
        fields: &[FieldLine<'_>],
        body: BodyLength,
    ) -> Fits {
        if !is_as_long_as_it_says(facts, body) {
            return Fits::Other;
        }
        let asked = AskedPart {
            entity_tag: stored.validators().entity_tag,
            complete_length: stored.complete_length(),
            asked: ByteRange {
                first: self.span.from,
                last: match self.span.to {
                    u64::MAX => u64::MAX,
                    to => to - 1,
                },
            },
        };
        combines(&asked, facts, fields)
    }
}

/// Whether the content of a 206 has the length that its Content-Range says, as far as its head tells.
pub(crate) fn is_as_long_as_it_says(facts: &ResponseFacts, body: BodyLength) -> bool {
    match (facts.content_range, body) {
        (Some(ContentRange::Part { range, .. }), BodyLength::Exact(bytes)) => {
            bytes == range.length()
        }
        _ => true,
    }
}

/// Starts fetching `span` of `arriving`, which counts as begun.
pub(crate) fn spawn(
    client: &Client,
    exchange: &Exchange,
    arriving: &Arc<Arriving>,
    fetch: FetchId,
    span: ByteSpan,
) {
    let worker = Rc::clone(&client.worker);
    let mode = client.door.mode;
    let pending = Pending {
        worker: Rc::clone(&worker),
        arriving: Arc::clone(arriving),
        fetch,
        begun: false,
    };
    let (tx, forwarding) = completing(&worker, exchange, arriving);
    let plan = Plan::Forward {
        forwarding,
        stored: None,
    };
    let mut exchange = exchange.in_background(tx, plan, Instant::now());
    exchange.gap = Some(Gap {
        span,
        into: Some((Arc::clone(arriving), fetch)),
    });
    tokio::task::spawn_local(async move {
        // boxed: the task's memory is held only while it runs
        Box::pin(run(pending, mode, exchange, forwarding)).await;
    });
}

/// A transaction that completes what is arriving.
fn completing(
    worker: &Worker,
    exchange: &Exchange,
    arriving: &Arriving,
) -> (Transaction, Forwarding) {
    let now = worker.now();
    let rules = &exchange.settings.rules;
    let mut tx = Transaction::new(*exchange.tx.request(), now);
    let _ = tx.handle(now, rules, Event::Request { unshared: false });
    let part = Event::FoundPart(&arriving.response.facts, Covers::Lacking);
    let forwarding = match tx.handle(now, rules, part).first() {
        Some(Command::Forward(forwarding)) => forwarding,
        _ => Forwarding {
            validate: false,
            complete: true,
        },
    };
    (tx, forwarding)
}

async fn run(mut pending: Pending, mode: Mode, mut exchange: Exchange, forwarding: Forwarding) {
    let worker = Rc::clone(&pending.worker);
    let settings = Arc::clone(&exchange.settings);
    let Ok(destination) = Destination::of(&exchange, mode, &worker) else {
        return;
    };
    let Ok(mut connection) = next_hop::obtain(&worker, &settings, &destination, false).await else {
        return;
    };
    let response = Arc::clone(&pending.arriving.response);
    let request = outbound::request_head(&exchange, forwarding, Some(&response));
    let downloaded = {
        let (from_hop, mut to_hop) = connection.stream.split();
        let sent = upload::send_head(&mut to_hop, &request, &mut exchange, &worker).await;
        if sent.is_err() {
            return;
        }
        let silence = settings.config.limits.next_hop_silence.as_duration();
        let mut deadline = Deadline::new(silence);
        download::run(download::Parties {
            sending: &Cell::new(Sending::Done),
            from_hop,
            to_client: Sink::Nobody,
            exchange: &mut exchange,
            worker: &worker,
            deadline: &mut deadline,
            stored: Some(&response),
        })
        .await
    };
    report::background(&worker, &exchange);
    match downloaded {
        Downloaded::Begun(arrived) => {
            pending.begun = true;
            fetch::begin(&worker, &settings, connection, arrived.begun).spawn();
        }
        Downloaded::AskAgain | Downloaded::Relayed { .. } => pending.end(FetchEnd::Changed),
        _ => pending.end(FetchEnd::Cut),
    }
}

/// A fetch that counts as begun, and has not.
struct Pending {
    worker: Rc<Worker>,
    arriving: Arc<Arriving>,
    fetch: FetchId,
    begun: bool,
}

impl Pending {
    fn end(&mut self, end: FetchEnd) {
        self.begun = true;
        self.arriving.end(&self.worker, self.fetch, end, &[]);
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        if !self.begun {
            self.end(FetchEnd::Cut);
        }
    }
}
