//! What must not be lost: a good response that is fresh stays, whatever error one client brings
//! about.

use crate::cache::PlayResult;
use crate::origin::OriginExchange;
use crate::sequence::{Ask, Exchange, Role, Say, Sequence, Verb};
use crate::specification::Violation;

/// A response that is stored for certain: the number of the answer, and until when it is fresh.
#[derive(Clone, Copy)]
struct Good {
    number: usize,
    until_s: u32,
}

pub(crate) fn check(sequence: &Sequence, played: &PlayResult) -> Vec<Violation> {
    let mut broken = Vec::new();
    let mut good: Option<Good> = None;
    let mut at_s = 0;
    for (index, exchange) in sequence.0.iter().enumerate() {
        at_s += exchange.pause_s;
        let told: Vec<_> = played
            .told
            .iter()
            .filter(|told| told.exchange == index)
            .collect();
        good = good.filter(|good| at_s < good.until_s);
        if let Some(good) = good
            && exchange.client.is_plain()
            && told.iter().any(|told| told.role == Role::Client)
        {
            let place = format!("answer {} is asked for again in {index}", good.number);
            let rule = "a fresh response stays when one client gets an error";
            broken.push(Violation { rule, place });
        }
        good = good.filter(|_| told.iter().all(|told| is_error(told)));
        good = good.or_else(|| stored(exchange, &told, at_s));
    }
    broken
}

/// An error, or a redirect without a lifetime, to a client that asked to bypass the cache.
fn is_error(told: &OriginExchange) -> bool {
    let asked = told.request.has(Ask::NoCache) || told.request.has(Ask::MaxAge0);
    let has_lifetime = told
        .says
        .iter()
        .any(|say| matches!(say, Say::MaxAge(_) | Say::SMaxAge(_)));
    asked && told.method == Verb::Get && (told.status >= 400 || told.status == 302 && !has_lifetime)
}

/// A response that a shared cache stores if it stores anything.
fn stored(exchange: &Exchange, told: &[&OriginExchange], at_s: u32) -> Option<Good> {
    let [told] = told else { return None };
    let mut lifetime_s = 0;
    for say in &told.says {
        match say {
            Say::MaxAge(seconds) => lifetime_s = *seconds,
            Say::Public | Say::MustRevalidate | Say::Tag(_) | Say::WeakTag(_) => {}
            Say::WhileRevalidate | Say::IfError => {}
            _ => return None,
        }
    }
    let is_good = exchange.client.is_plain()
        && told.status == 200
        && told.fault.is_none()
        && told.has(Say::Public);
    (is_good && told.role == Role::Client).then_some(Good {
        number: told.number,
        until_s: at_s + lifetime_s,
    })
}
