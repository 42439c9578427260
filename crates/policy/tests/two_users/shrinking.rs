//! A sequence that fails, made as short as it can be and still fail in the same way.

use crate::sequence::{Exchange, Sequence};

/// Leaves out whatever can be left out so that `fails` stays true.
pub(crate) fn shortest(sequence: Sequence, fails: impl Fn(&Sequence) -> bool) -> Sequence {
    let mut shortest = sequence;
    while let Some(shorter) = shorter(&shortest).into_iter().find(&fails) {
        shortest = shorter;
    }
    shortest
}

/// All sequences with one thing less.
fn shorter(sequence: &Sequence) -> Vec<Sequence> {
    let exchanges = &sequence.0;
    let mut all = Vec::new();
    for at in 0..exchanges.len() {
        let mut without = sequence.clone();
        without.0.remove(at);
        all.push(without);
    }
    for (at, exchange) in exchanges.iter().enumerate() {
        for simpler in simpler(exchange) {
            let mut with = sequence.clone();
            with.0[at] = simpler;
            all.push(with);
        }
    }
    all
}

fn simpler(exchange: &Exchange) -> Vec<Exchange> {
    let mut all = Vec::new();
    let mut add = |change: &dyn Fn(&mut Exchange)| {
        let mut simpler = exchange.clone();
        change(&mut simpler);
        all.push(simpler);
    };
    if exchange.follower.is_some() {
        add(&|simpler| simpler.follower = None);
    }
    if exchange.pause_s > 0 {
        add(&|simpler| simpler.pause_s = 0);
    }
    for item in 0..exchange.client.asks.len() {
        add(&|simpler| {
            simpler.client.asks.remove(item);
        });
    }
    if let Some(follower) = &exchange.follower {
        for item in 0..follower.asks.len() {
            add(&|simpler| {
                if let Some(follower) = &mut simpler.follower {
                    follower.asks.remove(item);
                }
            });
        }
    }
    for place in 0..exchange.answers.len() {
        if exchange.answers.len() > 1 {
            add(&|simpler| drop(simpler.answers.remove(place)));
        }
        let answer = &exchange.answers[place];
        if answer.fault.is_some() {
            add(&|simpler| simpler.answers[place].fault = None);
        }
        if answer.status != 200 {
            add(&|simpler| simpler.answers[place].status = 200);
        }
        for item in 0..answer.says.len() {
            add(&|simpler| {
                simpler.answers[place].says.remove(item);
            });
        }
    }
    all
}
