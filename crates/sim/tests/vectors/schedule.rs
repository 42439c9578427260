//! One vector, step by step.

use crate::{rows, rules};
use std::sync::Arc;
use weir_policy::{Handling, Profile, RefuseReason, Verdict};
use weir_sim::link::LinkRate;
use weir_sim::tcp::Tcp;
use weir_sim::{Keep, Network, Outcome, Settings, Simulator};
use weir_trace::Row;
use weir_vectors::{
    ClientResponse, Fault, FieldContext, Observation, Origin, OriginRequest, Parameters, Step,
    Vector, judge,
};

/// What was not as the vector says.
pub(crate) fn run(vector: &Vector) -> Vec<String> {
    let rows = rows::of(vector);
    let settings = Settings {
        operator_rules: Some(Arc::new(rules::set(&vector.rules))),
        ..settings(vector.profile)
    };
    let mut before = simulate(&settings, &[]).0;
    let mut differences = Vec::new();
    for step in &vector.steps {
        // all over again with one row more: what is added is this step's
        let (after, verdict) = simulate(&settings, &rows[..step.number]);
        let verdict = verdict.expect("each request has a verdict");
        let mut wrong = judge(step, CONTEXT, &observation(step, &before, &after, &verdict));
        wrong.extend(bytes(vector, step, &before, &after));
        differences.extend(
            wrong.iter().map(|difference| {
                format!("step {} (line {}): {difference}", step.number, step.line)
            }),
        );
        before = after;
    }
    differences
}

/// No field that is compared here has a time or a host in it.
const CONTEXT: FieldContext<'_> = FieldContext { at_s: 0, host: "" };

fn settings(profile: weir_vectors::Profile) -> Settings {
    let network = Network {
        client_link: LinkRate::of(0),
        client_rtt_us: 2,
        internet: LinkRate::of(0),
        tcp: Tcp::LINUX,
        ..Network::MODEM
    };
    let profile = match profile {
        weir_vectors::Profile::Rfc9111 => Profile::Rfc9111,
        weir_vectors::Profile::Http1998 => Profile::Http1998,
    };
    Settings {
        // who closes a connection that was used before is asked once more (RFC 9112 §9.3.1), and no
        // vector is about that
        server_connections: Keep::Never,
        ..Settings::of(network, profile)
    }
}

/// What the rows come to, and the verdict of the last.
fn simulate(settings: &Settings, rows: &[Row]) -> (Outcome, Option<Verdict>) {
    let mut simulator = Simulator::new(settings.clone()).expect("the settings can be run");
    simulator.record_verdicts();
    for row in rows {
        simulator.push(row);
    }
    simulator.settle_all();
    let verdicts = simulator.take_verdicts();
    let last = rows.len().checked_sub(1).map(|last| last as u64);
    let verdict = verdicts.iter().find(|(number, _)| Some(*number) == last);
    let verdict = verdict.map(|(_, verdict)| *verdict);
    (simulator.finish(), verdict)
}

/// What the judge is told. What a simulation has no field lines for is told as it should be, and so
/// not judged.
fn observation(step: &Step, before: &Outcome, after: &Outcome, verdict: &Verdict) -> Observation {
    let asks = after.server_connections.requests - before.server_connections.requests;
    let request = match &step.origin {
        Origin::None => OriginRequest {
            method: step.request.method.clone(),
            target: step.request.target.clone(),
            fields: Vec::new(),
        },
        Origin::Asked(answer) => OriginRequest {
            method: answer
                .method
                .as_ref()
                .unwrap_or(&step.request.method)
                .clone(),
            target: step.request.target.clone(),
            fields: answer.has.iter().map(wanted).collect(),
        },
    };
    Observation {
        requests: (0..asks).map(|_| request.clone()).collect(),
        response: ClientResponse {
            status: match verdict.handling {
                Handling::Refused(RefuseReason::OnlyIfCached | RefuseReason::MustRevalidate) => 504,
                Handling::Refused(RefuseReason::NextHop) => 502,
                _ => step.client.status[0],
            },
            body: None,
            age_s: None,
            fields: None,
            cache_status: words(verdict),
            cut: step.client.cut,
        },
    }
}

fn wanted(wanted: &weir_vectors::FieldPattern) -> (String, String) {
    match wanted {
        weir_vectors::FieldPattern::Named(name) => (name.clone(), String::new()),
        weir_vectors::FieldPattern::Line(field) => (field.name.clone(), field.value(CONTEXT)),
    }
}

/// Content on both sides, by its length.
fn bytes(vector: &Vector, step: &Step, before: &Outcome, after: &Outcome) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut check = |what: &str, found: u64, expected: u64| {
        if found != expected {
            wrong.push(format!(
                "{found} bytes of content {what}, expected {expected}"
            ));
        }
    };
    let sent = after.traffic.to_clients_bytes - before.traffic.to_clients_bytes;
    let fetched = after.traffic.from_servers_bytes - before.traffic.from_servers_bytes;
    if let (Some(body), false) = (&step.client.body, step.client.cut) {
        check("to the client", sent, rows::length(vector, body));
    }
    match &step.origin {
        Origin::None => check("from the origin", fetched, 0),
        Origin::Asked(answer) => {
            let has_content = answer.method.as_ref().unwrap_or(&step.request.method) != "HEAD"
                && !matches!(answer.response.status, 204 | 304)
                && answer.fault.is_none();
            let expected = if has_content {
                rows::length(vector, &answer.response.body)
            } else {
                0
            };
            if answer.fault != Some(Fault::Cut) {
                check("from the origin", fetched, expected);
            }
        }
    }
    wrong
}

/// The verdict as Cache-Status has it (RFC 9211).
fn words(verdict: &Verdict) -> Parameters {
    let mut line = Vec::new();
    verdict.cache_status("simulated").write(&mut line);
    Parameters::of_last_member(std::str::from_utf8(&line).expect("a field is text"))
}
