//! What a decision looks at, in the words of the RFC.

use super::report::InputReport;
use std::net::IpAddr;
use weir_policy::judge::{Judgement, Test, judge_noting};
use weir_policy::{Now, StoredFacts};
use weir_semantics::{DeltaSeconds, RequestDirectives};

/// The inputs of a decision, in the order in which it looks at them.
#[derive(Debug, Default)]
pub(super) struct Inputs {
    all: Vec<InputReport>,
    /// The place of the last one that is no note.
    deciding: Option<usize>,
}

/// Seconds of a directive.
fn stated(seconds: Option<DeltaSeconds>) -> String {
    match seconds {
        None => "absent".into(),
        Some(DeltaSeconds::MAX) => "present, for any time".into(),
        Some(seconds) => format!("{} s", seconds.0),
    }
}

fn present(is_present: bool) -> String {
    if is_present { "present" } else { "absent" }.into()
}

impl Inputs {
    pub(super) fn add(
        &mut self,
        name: &'static str,
        value: impl Into<String>,
        section: &'static str,
    ) {
        self.deciding = Some(self.all.len());
        self.note(name, value, section);
    }

    /// Adds what is looked at and leaves the decision as it is.
    pub(super) fn note(
        &mut self,
        name: &'static str,
        value: impl Into<String>,
        section: &'static str,
    ) {
        self.all.push(InputReport {
            name,
            value: value.into(),
            section,
            decides: false,
        });
    }

    /// The last one that is no note decides.
    pub(super) fn finish(mut self) -> Vec<InputReport> {
        if let Some(deciding) = self.deciding.and_then(|place| self.all.get_mut(place)) {
            deciding.decides = true;
        }
        self.all
    }

    /// The client of a forward proxy.
    pub(super) fn add_client(&mut self, client: IpAddr) {
        let value = format!("{client} may use this listener");
        self.add("client", value, "access.clients");
    }

    /// What the judgement of a stored response looks at: `sent` are the directives of the request
    /// before rules had some ignored, `left` the others; `used` the facts of the response by which
    /// it is used.
    pub(super) fn add_judgement(
        &mut self,
        now: Now,
        (sent, left): (&RequestDirectives, &RequestDirectives),
        used: &StoredFacts,
        may_be_purged: bool,
    ) -> Judgement {
        let mut tests = Vec::new();
        let judgement = judge_noting(now, left, used, |test| {
            // a test that is made again has the later place
            tests.retain(|earlier| *earlier != test);
            tests.push(test);
        });
        let (ttl, age) = (used.ttl(now), used.current_age(now));
        for test in tests {
            let ignored = |is_sent: bool, is_left: bool| {
                if is_sent && !is_left {
                    ", ignored by a rule"
                } else {
                    ""
                }
            };
            let (name, value) = match test {
                Test::RequestNoCache => {
                    let ignored = ignored(sent.no_cache, left.no_cache);
                    ("no-cache of the request", present(sent.no_cache) + ignored)
                }
                Test::ResponseNoCache if may_be_purged => {
                    let value = "it may have been purged, and is validated first";
                    ("no-cache of the response", value.into())
                }
                Test::ResponseNoCache => ("no-cache of the response", present(used.no_cache)),
                Test::RequestMaxAge => {
                    let ignored = ignored(sent.max_age.is_some(), left.max_age.is_some());
                    let value =
                        format!("{}{ignored}; current_age {} s", stated(sent.max_age), age.0);
                    ("max-age of the request", value)
                }
                Test::RequestMinFresh => {
                    let ignored = ignored(sent.min_fresh.is_some(), left.min_fresh.is_some());
                    let value = format!("{}{ignored}; fresh for {ttl} s", stated(sent.min_fresh));
                    ("min-fresh of the request", value)
                }
                Test::Freshness => {
                    let lifetime = used.freshness_lifetime.0;
                    let (sign, means) = if ttl > 0 {
                        (">", "fresh")
                    } else {
                        ("<=", "stale")
                    };
                    let value = format!(
                        "freshness_lifetime {lifetime} s {sign} current_age {} s: {means}",
                        age.0
                    );
                    ("freshness", value)
                }
                Test::RequestMaxStale => {
                    let ignored = ignored(sent.max_stale.is_some(), left.max_stale.is_some());
                    let forbidden = match used.must_revalidate {
                        true => "; must-revalidate, proxy-revalidate or s-maxage forbids it",
                        false => "",
                    };
                    let stale = format!("; stale for {} s", -ttl);
                    let value = stated(sent.max_stale) + ignored + &stale + forbidden;
                    ("max-stale of the request", value)
                }
                Test::WhileRevalidate => {
                    let window = stated(used.stale_while_revalidate);
                    let value = format!("{window}; stale for {} s", -ttl);
                    ("stale-while-revalidate", value)
                }
                Test::Stale => {
                    let value = "not without validation, while a next hop can be asked";
                    ("serving stale responses", value.into())
                }
            };
            self.add(name, value, test.section());
        }
        judgement
    }
}
