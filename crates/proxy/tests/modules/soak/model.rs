//! The naive model: what a request may end with under one configuration, all content at once.

use super::cascade::{Deed, Generation, How, Step};
use super::request::{Kind, Request, USERS};
use std::collections::BTreeSet;
use std::sync::Arc;

/// What is in force: modules, and which of them are disabled.
#[derive(Clone, Debug)]
pub(super) struct State {
    pub(super) generation: Arc<Generation>,
    pub(super) disabled: BTreeSet<usize>,
}

/// How a response ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Whole,
    /// It shows that it is not whole; its content is a beginning.
    Cut,
    /// The proxy answers 502.
    Refused,
}

/// Fields that modules have set.
pub(super) type Names = BTreeSet<String>;

/// What a client may get.
#[derive(Clone, Debug)]
pub(super) struct Outcome {
    pub(super) end: End,
    pub(super) status: u16,
    pub(super) content: Vec<u8>,
    /// It is changed for this client: there are no parts of it.
    pub(super) is_transformed: bool,
    /// It ends behind its first bytes, whatever stops what follows.
    pub(super) ends_early: bool,
    /// Set on the way to the next hop.
    pub(super) asked: Names,
    /// Set in what came from the next hop.
    pub(super) fetched: Names,
    /// Set for this client.
    pub(super) sent: Names,
}

/// Why the modules behind one are not called.
#[derive(Clone, Copy)]
enum Stop {
    Refused,
    Answered(usize),
}

/// A response on its way to a client.
#[derive(Clone, Default)]
struct Made {
    status: u16,
    content: Vec<u8>,
    is_head: bool,
    is_transformed: bool,
    ends_early: bool,
    /// The tag that a module may give it.
    tag: &'static str,
    asked: Names,
    fetched: Names,
}

impl State {
    fn step(&self, at: usize) -> &Step {
        &self.generation.steps[at]
    }

    /// What a request may end with: forwarded, or answered from the store or by what is fetched for
    /// another one. What is shared is what its own modules would have made of it.
    pub(super) fn outcomes(&self, request: &Request, is_shared: bool) -> Vec<Outcome> {
        let covers = |at: &usize| request.path.starts_with(self.step(*at).scope);
        let all = 0..self.generation.steps.len();
        let mut visible: Vec<usize> = all
            .filter(covers)
            .filter(|at| !self.disabled.contains(at))
            .collect();
        let mut made = Made {
            status: 200,
            is_head: request.is_head,
            tag: USERS[request.user],
            ..Made::default()
        };
        let chain = match self.call("request-received", &mut visible, &mut made.asked) {
            Ok(chain) => chain,
            Err(stop) => return self.stopped(stop, &visible, &made),
        };
        let transforms = |at: &usize| {
            let step = self.step(*at);
            step.hook == "response-sent" && matches!(step.deed, Deed::Content(_))
        };
        made.is_transformed = visible.iter().any(transforms);
        let mut outcomes = Vec::new();
        made.content = request.origin_content();
        if !is_shared && let Err(stop) = self.call("request-sent", &mut visible, &mut made.asked) {
            return self.stopped(stop, &visible, &made);
        }
        if request.kind == Kind::Echo && !request.content.is_empty() {
            let (content, stops, may_be_whole) = self.pass(&chain, request.content.clone(), "");
            for stop in stops {
                outcomes.extend(self.stopped(stop, &visible, &made));
            }
            if !may_be_whole {
                return outcomes;
            }
            made.content = content;
        }
        match self.call("response-received", &mut visible, &mut made.fetched) {
            Err(stop) => {
                outcomes.extend(self.stopped(stop, &visible, &made));
                return outcomes;
            }
            Ok(chain) => {
                let (content, stops, may_be_whole) = self.pass_unless_head(&chain, &made);
                made.content = content;
                for stop in &stops {
                    outcomes.extend(self.stopped(*stop, &visible, &made));
                }
                let delivered = self.deliver(made, visible);
                outcomes.extend(cut(&delivered, !stops.is_empty()));
                // what is called when it is sent may be the first to fail, or to answer
                let is_earlier =
                    |it: &Outcome| it.end == End::Refused || it.status == 451 || it.ends_early;
                let delivered = delivered.into_iter();
                outcomes.extend(delivered.filter(|it| may_be_whole || is_earlier(it)));
            }
        }
        outcomes
    }

    /// Calls the modules at a hook; those that set a transform, in their order.
    fn call(
        &self,
        hook: &str,
        visible: &mut Vec<usize>,
        fields: &mut Names,
    ) -> Result<Vec<usize>, Stop> {
        let mut chain = Vec::new();
        let mut due: Vec<usize> = visible.clone();
        due.retain(|at| self.step(*at).hook == hook);
        if hook.starts_with("response") {
            due.reverse();
        }
        for at in due {
            let step = self.step(at);
            match step.deed {
                Deed::Set => drop(fields.insert(step.field(at))),
                Deed::Defer => drop(fields.insert("x-deferred".to_owned())),
                Deed::Respond => return Err(Stop::Answered(at)),
                Deed::Fail | Deed::Panic if step.may_fail => visible.retain(|other| *other != at),
                Deed::Fail | Deed::Panic => return Err(Stop::Refused),
                Deed::Content(_) => {
                    fields.insert("content".to_owned());
                    chain.push(at);
                }
            }
        }
        Ok(chain)
    }

    /// What comes out of transforms, which of them may stop the message, and whether it may pass
    /// all the same.
    fn pass(&self, chain: &[usize], mut content: Vec<u8>, tag: &str) -> (Vec<u8>, Vec<Stop>, bool) {
        let (mut stops, mut may_be_whole) = (Vec::new(), true);
        for &at in chain {
            let Deed::Content(how) = self.step(at).deed else {
                continue;
            };
            let is_long = content.len() > 100_000;
            match how {
                How::Upper => content.make_ascii_uppercase(),
                How::Twice => content = content.iter().flat_map(|byte| [*byte; 2]).collect(),
                How::First => {
                    content.truncate(2);
                    // it may have its bytes before one in front of it stops
                    may_be_whole = true;
                }
                How::Tag => content = [b"[", tag.as_bytes(), b"]", &content].concat(),
                How::Fail => (stops, may_be_whole) = (with(stops, Stop::Refused), false),
                How::Respond => (stops, may_be_whole) = (with(stops, Stop::Answered(at)), false),
                How::Cut if is_long => {
                    (stops, may_be_whole) = (with(stops, Stop::Refused), false);
                }
                How::RespondLate if is_long => {
                    (stops, may_be_whole) = (with(stops, Stop::Answered(at)), false);
                }
                How::Blocks | How::Cut | How::RespondLate => {}
            }
        }
        (content, stops, may_be_whole)
    }

    fn pass_unless_head(&self, chain: &[usize], made: &Made) -> (Vec<u8>, Vec<Stop>, bool) {
        match made.is_head {
            true => (Vec::new(), Vec::new(), true),
            false => self.pass(chain, made.content.clone(), made.tag),
        }
    }

    /// A module has failed, or answers.
    fn stopped(&self, stop: Stop, visible: &[usize], made: &Made) -> Vec<Outcome> {
        let Stop::Answered(by) = stop else {
            return vec![outcome(End::Refused, made, &Names::new())];
        };
        let content = match self.step(by).deed {
            Deed::Respond => "blocked",
            _ => "not this",
        };
        let made = Made {
            status: 451,
            content: content.into(),
            is_head: made.is_head,
            is_transformed: made.is_transformed,
            tag: made.tag,
            ..Made::default()
        };
        let before = visible.iter().copied().filter(|at| *at < by);
        self.deliver(made, before.collect())
    }

    /// A response is sent to its client.
    fn deliver(&self, mut made: Made, mut visible: Vec<usize>) -> Vec<Outcome> {
        let mut sent = Names::new();
        let chain = match self.call("response-sent", &mut visible, &mut sent) {
            Ok(chain) => chain,
            Err(stop) => return self.stopped(stop, &visible, &made),
        };
        let (content, stops, may_be_whole) = self.pass_unless_head(&chain, &made);
        made.content = content;
        let ends = |at: &usize| self.step(*at).deed == Deed::Content(How::First);
        made.ends_early = !made.is_head && chain.iter().any(ends);
        let mut outcomes = Vec::new();
        for stop in &stops {
            outcomes.extend(self.stopped(*stop, &visible, &made));
        }
        let whole = [outcome(End::Whole, &made, &sent)];
        outcomes.extend(cut(&whole, !stops.is_empty()));
        if may_be_whole {
            outcomes.extend(whole);
        }
        outcomes
    }
}

fn with(mut stops: Vec<Stop>, stop: Stop) -> Vec<Stop> {
    stops.push(stop);
    stops
}

fn outcome(end: End, made: &Made, sent: &Names) -> Outcome {
    Outcome {
        end,
        status: match end {
            End::Refused => 502,
            End::Whole | End::Cut => made.status,
        },
        content: made.content.clone(),
        is_transformed: made.is_transformed,
        ends_early: made.ends_early,
        asked: made.asked.clone(),
        fetched: made.fetched.clone(),
        sent: sent.clone(),
    }
}

/// The same, cut, if something stops what was begun.
fn cut(outcomes: &[Outcome], is_stopped: bool) -> Vec<Outcome> {
    let begun = |it: &&Outcome| is_stopped && it.end != End::Refused;
    let cut = outcomes.iter().filter(begun).map(|it| Outcome {
        end: End::Cut,
        ..it.clone()
    });
    cut.collect()
}
