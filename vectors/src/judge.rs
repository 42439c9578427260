//! Compares what a runner observed with what the step expects.

use crate::field::FieldContext;
use crate::observation::{ClientResponse, Observation, OriginRequest};
use crate::vector::{Answer, ExpectedResponse, FieldPattern, Origin, Step};

/// What was not as the step says, each as a line; empty if everything was.
#[must_use]
pub fn judge(step: &Step, context: FieldContext<'_>, observation: &Observation) -> Vec<String> {
    let mut differences = Vec::new();
    let first = match &step.origin {
        Origin::None => None,
        Origin::Asked(answer) => Some(answer),
    };
    let answers = std::iter::successors(first, |answer| answer.again.as_deref());
    let expected_asks = answers.clone().count();
    if observation.requests.len() != expected_asks {
        differences.push(format!(
            "the origin was asked {} times, expected {expected_asks}",
            observation.requests.len()
        ));
    }
    for (answer, request) in answers.zip(&observation.requests) {
        judge_request(step, answer, context, request, &mut differences);
    }
    judge_response(
        &step.client,
        context,
        &observation.response,
        &mut differences,
    );
    differences
}

fn judge_request(
    step: &Step,
    answer: &Answer,
    context: FieldContext<'_>,
    request: &OriginRequest,
    differences: &mut Vec<String>,
) {
    let method = answer.method.as_ref().unwrap_or(&step.request.method);
    if request.method != *method {
        differences.push(format!(
            "the origin saw {}, expected {method}",
            request.method
        ));
    }
    let target = answer.target.as_ref().unwrap_or(&step.request.target);
    if request.target != *target {
        differences.push(format!(
            "the origin saw {}, expected {target}",
            request.target
        ));
    }
    let fields = &request.fields;
    judge_fields(
        "the origin saw",
        fields,
        &answer.has,
        &answer.has_not,
        context,
        differences,
    );
}

fn judge_response(
    expected: &ExpectedResponse,
    context: FieldContext<'_>,
    response: &ClientResponse,
    differences: &mut Vec<String>,
) {
    if !expected.status.contains(&response.status) {
        differences.push(format!(
            "status {}, expected {:?}",
            response.status, expected.status
        ));
    }
    if let (Some(body), Some(found)) = (&expected.body, &response.body)
        && body != found
        && !expected.cut
    {
        differences.push(format!(
            "body `{}`, expected `{}`",
            short(found),
            short(body)
        ));
    }
    if let (Some(age), Some(found)) = (expected.age_s, response.age_s)
        && found != Some(age)
    {
        let found = found.map_or("no age".to_owned(), |found| format!("age {found}"));
        differences.push(format!("{found}, expected age {age}"));
    }
    if response.cut != expected.cut {
        let is = |cut| if cut { "cut" } else { "whole" };
        differences.push(format!(
            "{}, expected {}",
            is(response.cut),
            is(expected.cut)
        ));
    }
    if let Some(pattern) = &expected.cache_status {
        differences.extend(pattern.differences(&response.cache_status));
    }
    if let Some(fields) = &response.fields {
        let (has, has_not) = (&expected.has, &expected.has_not);
        judge_fields("the client saw", fields, has, has_not, context, differences);
    }
}

fn judge_fields(
    observer: &str,
    fields: &[(String, String)],
    has: &[FieldPattern],
    has_not: &[String],
    context: FieldContext<'_>,
    differences: &mut Vec<String>,
) {
    let values = |name: &str| -> Vec<&str> {
        let named = fields
            .iter()
            .filter(|line| line.0.eq_ignore_ascii_case(name));
        named.map(|line| line.1.as_str()).collect()
    };
    for pattern in has {
        match pattern {
            FieldPattern::Named(name) if values(name).is_empty() => {
                differences.push(format!("{observer} no {name}"));
            }
            FieldPattern::Named(_) => {}
            FieldPattern::Line(field) => {
                let (found, value) = (values(&field.name), field.value(context));
                if !found.contains(&value.as_str()) {
                    let name = &field.name;
                    differences.push(format!("{observer} {name} {found:?}, expected `{value}`"));
                }
            }
        }
    }
    for name in has_not {
        let found = values(name);
        if !found.is_empty() {
            differences.push(format!("{observer} {name} {found:?}, expected none"));
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
