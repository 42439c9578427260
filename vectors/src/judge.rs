//! Comparing what was observed with what is expected.

use crate::field::Moment;
use crate::observed::{Asked, Observed, Seen};
use crate::vector::{Answer, Expected, Origin, Step, Wanted};

/// What was not as the step says, each as a line; empty if everything was.
#[must_use]
pub fn judge(step: &Step, moment: Moment<'_>, observed: &Observed) -> Vec<String> {
    let mut differences = Vec::new();
    let first = match &step.origin {
        Origin::None => None,
        Origin::Asked(answer) => Some(answer),
    };
    let answers = std::iter::successors(first, |answer| answer.again.as_deref());
    let expected_asks = answers.clone().count();
    if observed.asked.len() != expected_asks {
        differences.push(format!(
            "the origin was asked {} times, expected {expected_asks}",
            observed.asked.len()
        ));
    }
    for (answer, asked) in answers.zip(&observed.asked) {
        judge_asked(step, answer, moment, asked, &mut differences);
    }
    judge_seen(&step.client, moment, &observed.seen, &mut differences);
    differences
}

fn judge_asked(
    step: &Step,
    answer: &Answer,
    moment: Moment<'_>,
    asked: &Asked,
    differences: &mut Vec<String>,
) {
    let method = answer.method.as_ref().unwrap_or(&step.request.method);
    if asked.method != *method {
        differences.push(format!(
            "the origin saw {}, expected {method}",
            asked.method
        ));
    }
    if asked.target != step.request.target {
        let target = &step.request.target;
        differences.push(format!(
            "the origin saw {}, expected {target}",
            asked.target
        ));
    }
    let fields = &asked.fields;
    judge_fields(
        "the origin saw",
        fields,
        &answer.has,
        &answer.has_not,
        moment,
        differences,
    );
}

fn judge_seen(expected: &Expected, moment: Moment<'_>, seen: &Seen, differences: &mut Vec<String>) {
    if !expected.status.contains(&seen.status) {
        differences.push(format!(
            "status {}, expected {:?}",
            seen.status, expected.status
        ));
    }
    if let (Some(body), Some(found)) = (&expected.body, &seen.body)
        && body != found
        && !expected.cut
    {
        differences.push(format!(
            "body `{}`, expected `{}`",
            short(found),
            short(body)
        ));
    }
    if let (Some(age), Some(found)) = (expected.age_s, seen.age_s)
        && found != Some(age)
    {
        let found = found.map_or("no age".to_owned(), |found| format!("age {found}"));
        differences.push(format!("{found}, expected age {age}"));
    }
    if seen.cut != expected.cut {
        let is = |cut| if cut { "cut" } else { "whole" };
        differences.push(format!("{}, expected {}", is(seen.cut), is(expected.cut)));
    }
    if let Some(pattern) = &expected.cache_status {
        differences.extend(pattern.differences(&seen.cache_status));
    }
    if let Some(fields) = &seen.fields {
        let (has, has_not) = (&expected.has, &expected.has_not);
        judge_fields("the client saw", fields, has, has_not, moment, differences);
    }
}

fn judge_fields(
    who: &str,
    fields: &[(String, String)],
    has: &[Wanted],
    has_not: &[String],
    moment: Moment<'_>,
    differences: &mut Vec<String>,
) {
    let values = |name: &str| -> Vec<&str> {
        let named = fields
            .iter()
            .filter(|line| line.0.eq_ignore_ascii_case(name));
        named.map(|line| line.1.as_str()).collect()
    };
    for wanted in has {
        match wanted {
            Wanted::Named(name) if values(name).is_empty() => {
                differences.push(format!("{who} no {name}"));
            }
            Wanted::Named(_) => {}
            Wanted::Line(field) => {
                let (found, value) = (values(&field.name), field.value(moment));
                if !found.contains(&value.as_str()) {
                    let name = &field.name;
                    differences.push(format!("{who} {name} {found:?}, expected `{value}`"));
                }
            }
        }
    }
    for name in has_not {
        let found = values(name);
        if !found.is_empty() {
            differences.push(format!("{who} {name} {found:?}, expected none"));
        }
    }
}

/// A body that is long is told by its beginning and its length.
fn short(body: &str) -> String {
    const SHOWN_CHARS: usize = 60;
    if body.len() <= SHOWN_CHARS {
        return body.to_owned();
    }
    let start: String = body.chars().take(SHOWN_CHARS).collect();
    format!("{start}... ({} bytes)", body.len())
}
