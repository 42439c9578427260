//! The conformance vectors against the decisions alone: no socket, no clock, a naive store.
//!
//! What is compared: whether the origin is asked and with which validators, which response is
//! served in which form, its age, and the words of the verdict. Field lines of what a client sees
//! are the driver's work and left to the live run.

mod cache;
mod content;
#[path = "../reference_store/mod.rs"]
mod reference_store;
mod rules;
mod store;
mod turn;

use std::io::Write;
use weir_vectors::{Collection, FieldContext, Runner, Tally, Vector, folder, judge};

#[test]
fn policy_decisions_match_the_conformance_vectors() {
    let collection = Collection::load(folder()).unwrap_or_else(|error| panic!("{error}"));
    let tally = Tally::of(Runner::Policy, &collection, run);
    write!(std::io::stdout(), "{tally}").unwrap();
    assert_eq!(
        tally.ran() + tally.left_out(),
        collection.vectors().count(),
        "a vector was lost"
    );
    assert!(tally.failed().is_empty(), "{}", tally.failed().join("\n"));
}

fn run(vector: &Vector) -> Vec<String> {
    let mut cache = cache::Cache::new(vector);
    let mut differences = Vec::new();
    for step in &vector.steps {
        let host = step.request.host.as_deref().unwrap_or("vectors.test");
        let context = FieldContext {
            at_s: step.at_s,
            host,
        };
        let observation = cache.take(step, context);
        differences.extend(
            judge(step, context, &observation).iter().map(|difference| {
                format!("step {} (line {}): {difference}", step.number, step.line)
            }),
        );
    }
    differences
}

/// What a gateway reads beside Cache-Control.
fn targeted() -> weir_semantics::TargetedFields {
    weir_semantics::TargetedFields::new(["CDN-Cache-Control"])
}
