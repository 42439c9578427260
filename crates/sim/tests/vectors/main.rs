//! The conformance vectors through the simulator: each step becomes a row of a trace, each vector a
//! run.
//!
//! A row has what the origin would have answered to the client's own request, had there been no
//! cache; what the origin is asked instead, and what it answers then, the simulator has to find
//! out. What is compared: whether the origin is asked, how much content comes from it (nothing with
//! a 304, the rest of a part) and how much goes to the client, and the words of the verdict. Bodies
//! are numbers: each has a length of its own.

#[path = "../heads/mod.rs"]
mod heads;
mod rows;
#[path = "../../../policy/tests/vectors/rules.rs"]
mod rules;
mod schedule;

use std::io::Write;
use weir_vectors::{Collection, Runner, Tally, folder};

#[test]
fn simulation_agrees_with_every_vector() {
    let collection = Collection::load(folder()).unwrap_or_else(|error| panic!("{error}"));
    let tally = Tally::of(Runner::Simulator, &collection, schedule::run);
    write!(std::io::stdout(), "{tally}").unwrap();
    assert_eq!(
        tally.ran() + tally.left_out(),
        collection.vectors().count(),
        "a vector was lost"
    );
    assert!(tally.failed().is_empty(), "{}", tally.failed().join("\n"));
}

#[test]
fn vector_is_left_out_only_if_the_simulation_cannot_pass_it() {
    let collection = Collection::load(folder()).unwrap_or_else(|error| panic!("{error}"));
    let mut needless = collection.vectors().filter(|vector| {
        let needs = &vector.needs;
        let is_ours = needs
            .iter()
            .any(|need| need.word == weir_vectors::Word::Heads);
        is_ours && schedule::run(vector).is_empty()
    });
    let first = needless.next().map(|vector| &vector.id);
    assert_eq!(first, None, "it need not say that it needs heads");
}
