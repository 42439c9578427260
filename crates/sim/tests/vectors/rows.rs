//! The rows of a vector.

use crate::heads::{self, Exchange, Lines};
use weir_trace::{AbortedBy, Row};
use weir_vectors::{Answer, Fault, Field, FieldContext, Origin, START_S, Step, Vector};

/// Microseconds between two steps of one second: each is over before the next begins.
const STEP_US: i64 = 10_000;

/// The usual host.
const HOST: &str = "vectors.test";

/// A row for each step.
pub(crate) fn of(vector: &Vector) -> Vec<Row> {
    let exchanges: Vec<Exchange> = vector
        .steps
        .iter()
        .map(|step| exchange(vector, step))
        .collect();
    let mut rows = heads::rows(&exchanges);
    for (row, step) in rows.iter_mut().zip(&vector.steps) {
        row.client = Some(1);
        row.next_hop_setup_us = Some(RTT_US);
        row.next_hop_response_us = Some(RTT_US);
        row.aborted_by = Some(AbortedBy::Neither);
        let Origin::Asked(answer) = &step.origin else {
            continue;
        };
        row.next_hop_setup_us = Some(u64::from(answer.waits_s) * 1_000_000 + RTT_US);
        row.next_hop_response_us = Some(u64::from(answer.takes_s) * 1_000_000 + RTT_US);
        match answer.fault {
            None => {}
            Some(Fault::Cut) => {
                row.aborted_by = Some(AbortedBy::Server);
                // as the other runners have it: half of it comes
                row.received_bytes = row.declared_bytes.map(|bytes| bytes / 2);
            }
            Some(Fault::Closed | Fault::Broken) => {
                row.aborted_by = Some(AbortedBy::Server);
                row.status = None;
                (row.declared_bytes, row.received_bytes) = (None, Some(0));
            }
        }
    }
    rows
}

/// The origin is next door.
const RTT_US: u64 = 2;

fn host(step: &Step) -> &str {
    step.request.host.as_deref().unwrap_or(HOST)
}

fn exchange(vector: &Vector, step: &Step) -> Exchange {
    let request = &step.request;
    let mut fields = vec![("Host".to_owned(), host(step).to_owned())];
    fields.extend(render(&request.fields, step, step.at_s));
    let (status, mut response, content_bytes) = answered(vector, step);
    if status != 206 {
        // the cache asked for a part; the client had got the whole
        response.retain(|line| !line.0.eq_ignore_ascii_case("content-range"));
    }
    let order = i64::try_from(step.number).expect("a vector has a few steps");
    Exchange {
        arrival_us: (START_S + i64::from(step.at_s)) * 1_000_000 + order * STEP_US,
        method: request.method.clone(),
        uri: format!("http://{}{}", host(step), request.target),
        request: fields,
        status,
        response,
        content_bytes,
        request_content_bytes: request
            .content
            .as_ref()
            .map_or(0, |content| content.len() as u64),
    }
}

fn render(fields: &[Field], step: &Step, at_s: u32) -> Lines {
    let context = FieldContext {
        at_s,
        host: host(step),
    };
    let lines = fields.iter();
    lines
        .map(|field| (field.name.clone(), field.value(context)))
        .collect()
}

/// What the origin would have answered to the request as its client sent it: status, fields, length
/// of the content.
fn answered(vector: &Vector, step: &Step) -> (u16, Lines, u64) {
    let seen = step.client.status[0];
    let before = last_answer(vector, step);
    let Origin::Asked(answer) = &step.origin else {
        // it gets no request: it has what it had
        let lines = before.map_or_else(Lines::new, |(before, answer)| fields_of(answer, before));
        let body = before.map_or("", |(_, answer)| &answer.response.body);
        // what we answer ourselves it does not
        let status = if seen >= 500 { 200 } else { seen };
        return (
            status,
            held(lines),
            length(vector, step.client.body.as_deref().unwrap_or(body)),
        );
    };
    let mut lines = fields_of(answer, step);
    let own = answer.response.status;
    let is_in_part = matches!(own, 206 | 304);
    if own == 304
        && let Some((before, whole)) = before
    {
        // in full it would have said these too: the representation is the same
        let unsaid = |line: &(String, String)| {
            let name = line.0.to_ascii_lowercase();
            let is_of_it = ["vary", "etag", "last-modified"].contains(&name.as_str());
            is_of_it
                && !lines
                    .iter()
                    .any(|other| other.0.eq_ignore_ascii_case(&name))
        };
        let same: Lines = fields_of(whole, before)
            .into_iter()
            .filter(unsaid)
            .collect();
        lines.extend(same);
    }
    let body = match &step.client.body {
        Some(body) if is_in_part => body,
        _ => &answer.response.body,
    };
    (
        if is_in_part { seen } else { own },
        held(lines),
        length(vector, body),
    )
}

/// An archive has at least one field line where it has any.
fn held(mut lines: Lines) -> Lines {
    lines.push(("Server".to_owned(), "origin".to_owned()));
    lines
}

fn fields_of(answer: &Answer, step: &Step) -> Lines {
    render(&answer.response.fields, step, step.end_s())
}

/// The last response before `step` that the origin gave for the same target as what it has there.
fn last_answer<'a>(vector: &'a Vector, step: &Step) -> Option<(&'a Step, &'a Answer)> {
    let target = |step: &Step| (host(step).to_owned(), step.request.target.clone());
    let mut before = vector
        .steps
        .iter()
        .rev()
        .skip_while(|other| other.number >= step.number);
    before.find_map(|other| match &other.origin {
        Origin::Asked(answer) if target(other) == target(step) => {
            let is_whole = answer.fault.is_none_or(|fault| fault == Fault::Cut)
                && answer.response.status < 500
                && answer.response.status != 304;
            is_whole.then_some((other, answer))
        }
        _ => None,
    })
}

/// How long a content is in the simulation: no two of a vector are of the same length, unless parts
/// are cut from them.
pub(crate) fn length(vector: &Vector, body: &str) -> u64 {
    let bytes = body.len() as u64;
    if body.is_empty() || vector.steps.iter().any(deals_in_parts) {
        return bytes;
    }
    let its = vector.steps.iter().find(|step| match &step.origin {
        Origin::Asked(answer) => answer.response.body == body,
        Origin::None => false,
    });
    its.map_or(bytes, |step| step.number as u64 * 1000 + bytes)
}

fn deals_in_parts(step: &Step) -> bool {
    let asks = step
        .request
        .fields
        .iter()
        .any(|field| field.name.eq_ignore_ascii_case("range"));
    asks || step.client.status.contains(&206)
}
