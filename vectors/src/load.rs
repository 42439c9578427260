//! Reading one file: what is wrong with it is said with file and line.

use crate::cache_status::Pattern;
use crate::field::{Field, check_name};
use crate::raw::{
    RawAnswer, RawBody, RawClient, RawFile, RawOrigin, RawStatus, RawStep, RawVector,
};
use crate::vector::{
    Answer, ExpectedResponse, Fault, FieldPattern, Need, Origin, Request, Response, Step, Vector,
    Word,
};
use std::fmt;
use std::ops::Range;
use toml::Spanned;

/// What is wrong with a file of vectors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadError {
    /// File name.
    pub file: String,
    /// Line, from 1; 0 for the file as a whole.
    pub line: usize,
    /// What is wrong.
    pub what: String,
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.file, self.line, self.what)
    }
}

impl std::error::Error for LoadError {}

/// What is wrong and where in the text.
struct Wrong {
    at: usize,
    what: String,
}

/// Reads the vectors of one file.
pub(crate) fn read(file: &str, text: &str) -> Result<Vec<Vector>, LoadError> {
    let error = |at: usize, what: String| LoadError {
        file: file.to_owned(),
        line: line_of(text, at),
        what,
    };
    let raw: RawFile = toml::from_str(text).map_err(|refusal| {
        let at = refusal.span().map_or(0, |span: Range<usize>| span.start);
        error(at, refusal.message().to_owned())
    })?;
    let filled = raw
        .vector
        .into_iter()
        .map(|vector| fill(file, text, vector));
    filled
        .collect::<Result<_, Wrong>>()
        .map_err(|wrong| error(wrong.at, wrong.what))
}

fn line_of(text: &str, at: usize) -> usize {
    1 + text.bytes().take(at).filter(|byte| *byte == b'\n').count()
}

fn fill(file: &str, text: &str, raw: RawVector) -> Result<Vector, Wrong> {
    let at = raw.id.span().start;
    let wrong = |what: String| Wrong { at, what };
    let id = raw.id.into_inner();
    check_id(&id).map_err(wrong)?;
    if raw.steps.is_empty() {
        return Err(wrong(format!("`{id}` has no steps")));
    }
    if !raw.why.ends_with('.') || !raw.spec.starts_with("RFC ") && !raw.spec.starts_with("PROXIM") {
        return Err(wrong(format!(
            "`{id}` wants a sentence in `why` and \"RFC ...\" in `spec`"
        )));
    }
    let needs = raw.needs.iter().map(|need| read_need(need));
    let needs = needs.collect::<Result<_, String>>().map_err(wrong)?;
    let mut steps: Vec<Step> = Vec::with_capacity(raw.steps.len());
    for step in raw.steps {
        let at = step.span().start;
        let line = line_of(text, at);
        let filled = fill_step(&id, &steps, step, line);
        steps.push(filled.map_err(|what| Wrong {
            at,
            what: format!("`{id}` step {}: {what}", steps.len() + 1),
        })?);
    }
    Ok(Vector {
        place: format!("{file}:{}", line_of(text, at)),
        id,
        spec: raw.spec,
        kind: raw.kind,
        why: raw.why,
        profile: raw.profile,
        rules: raw.rules,
        needs,
        steps,
    })
}

fn check_id(id: &str) -> Result<(), String> {
    let is_kebab = |word: &str| {
        !word.is_empty()
            && word
                .bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
    };
    if id.split('-').all(is_kebab) {
        return Ok(());
    }
    Err(format!("`{id}` is not in kebab-case"))
}

fn read_need(need: &str) -> Result<Need, String> {
    let (word, reason) = need
        .split_once(':')
        .ok_or_else(|| format!("need `{need}` has no reason: `word: reason` is expected"))?;
    let word = match word {
        "live" => Word::Live,
        "hosts" => Word::Hosts,
        "heads" => Word::Heads,
        "rules" => Word::Rules,
        "gateway" => Word::Gateway,
        _ => {
            return Err(format!(
                "`{word}` is no need: `live`, `hosts`, `heads`, `rules` or `gateway` is expected"
            ));
        }
    };
    let reason = reason.trim().to_owned();
    Ok(Need { word, reason })
}

fn fill_step(
    id: &str,
    before: &[Step],
    raw: Spanned<RawStep>,
    line: usize,
) -> Result<Step, String> {
    let raw = raw.into_inner();
    let number = before.len() + 1;
    let earliest_s = before.last().map_or(0, Step::end_s);
    let at_s = raw.at.unwrap_or(earliest_s);
    if at_s < earliest_s {
        return Err(format!(
            "at = {at_s} is before the step before ends ({earliest_s})"
        ));
    }
    let request = fill_request(&raw)?;
    let origin = match raw.origin {
        RawOrigin::None => Origin::None,
        RawOrigin::Asked(answer) => Origin::Asked(fill_answer(id, number, *answer)?),
    };
    let client = fill_client(before, &request, &origin, number, raw.client)?;
    Ok(Step {
        number,
        at_s,
        request,
        origin,
        client,
        line,
    })
}

fn fill_request(raw: &RawStep) -> Result<Request, String> {
    let line = raw.request.as_deref().unwrap_or("GET /");
    let (method, target) = line
        .split_once(' ')
        .filter(|(_, target)| target.starts_with('/') && !target.contains(' '))
        .ok_or_else(|| format!("request `{line}`: a method and a path are expected"))?;
    Ok(Request {
        method: method.to_owned(),
        target: target.to_owned(),
        host: raw.host.clone(),
        fields: read_fields(&raw.fields)?,
        content: raw.content.clone(),
    })
}

fn fill_answer(id: &str, number: usize, raw: RawAnswer) -> Result<Answer, String> {
    let body = match (raw.body, raw.body_bytes) {
        (Some(_), Some(_)) => return Err("`body` and `body_bytes` are both said".into()),
        (Some(body), None) => body,
        (None, Some(bytes)) => (b'a'..=b'z').cycle().take(bytes).map(char::from).collect(),
        (None, None) if matches!(raw.status, 204 | 304) => String::new(),
        (None, None) => format!("{id}, step {number}"),
    };
    let again = raw.again.map(|mut again| {
        if again.again.is_some() {
            return Err("`again` within `again`: no request is sent three times".to_owned());
        }
        if again.body.is_none() && again.body_bytes.is_none() && !matches!(again.status, 204 | 304)
        {
            again.body = Some(format!("{id}, step {number} again"));
        }
        fill_answer(id, number, *again).map(Box::new)
    });
    // behind a 101 there is no other response of HTTP
    if raw.status != 101 && !(200..=599).contains(&raw.status) {
        return Err(format!("{} is no final status", raw.status));
    }
    Ok(Answer {
        background: raw.background,
        method: raw.method,
        target: raw.target,
        has: read_patterns(&raw.has)?,
        has_not: read_names(raw.has_not)?,
        waits_s: raw.waits,
        takes_s: raw.takes,
        response: Response {
            status: raw.status,
            fields: read_fields(&raw.fields)?,
            body,
        },
        fault: raw.fails,
        again: again.transpose()?,
    })
}

/// What the client sees where nothing is said: the answer relayed, or the response of the step that
/// is named.
fn fill_client(
    before: &[Step],
    request: &Request,
    origin: &Origin,
    number: usize,
    raw: RawClient,
) -> Result<ExpectedResponse, String> {
    let own = match origin {
        Origin::Asked(answer) => Some(answer.last()),
        Origin::None => None,
    };
    let relayed = own.filter(|answer| {
        !answer.background && !matches!(answer.fault, Some(Fault::Closed | Fault::Broken))
    });
    let response_of = |step: usize| -> Result<&Response, String> {
        let earlier = step.checked_sub(1).and_then(|at| before.get(at));
        let answer = match earlier.map(|step| &step.origin) {
            Some(Origin::Asked(answer)) => Some(answer.last()),
            Some(Origin::None) => None,
            None => own.filter(|_| step == number),
        };
        let answer = answer.ok_or_else(|| format!("step {step} has no response of the origin"))?;
        Ok(&answer.response)
    };
    let (status, body) = match raw.body {
        Some(RawBody::OfStep(step)) => {
            let response = response_of(step)?;
            (Some(response.status), Some(response.body.clone()))
        }
        Some(RawBody::Text(text)) => (relayed.map(|answer| answer.response.status), Some(text)),
        Some(RawBody::Part(part)) => {
            let whole = &response_of(part.step)?.body;
            let text = whole.get(part.first..=part.last);
            let text = text.ok_or_else(|| format!("step {} has no such part", part.step))?;
            (Some(206), Some(text.to_owned()))
        }
        None if raw.status.is_some() => (None, None),
        None => {
            let answer = relayed.ok_or("`client` says neither status nor body")?;
            (
                Some(answer.response.status),
                Some(answer.response.body.clone()),
            )
        }
    };
    let status = match (raw.status, status) {
        (Some(RawStatus::One(status)), _) => vec![status],
        (Some(RawStatus::OneOf(list)), _) => list,
        (None, Some(status)) => vec![status],
        (None, None) => return Err("`client` does not say the status".into()),
    };
    let is_empty = request.method == "HEAD" || status == [304] || status == [204];
    let pattern = raw.cache_status.as_deref().map(Pattern::parse);
    Ok(ExpectedResponse {
        body: if is_empty { Some(String::new()) } else { body },
        status,
        age_s: raw.age,
        has: read_patterns(&raw.has)?,
        has_not: read_names(raw.has_not)?,
        cache_status: pattern.transpose()?,
        cut: raw.cut,
    })
}

fn read_fields(lines: &[String]) -> Result<Vec<Field>, String> {
    lines.iter().map(|line| Field::parse(line)).collect()
}

fn read_patterns(lines: &[String]) -> Result<Vec<FieldPattern>, String> {
    let read = |line: &String| match line.contains(':') {
        true => Field::parse(line).map(FieldPattern::Line),
        false => check_name(line).map(|()| FieldPattern::Named(line.clone())),
    };
    lines.iter().map(read).collect()
}

fn read_names(names: Vec<String>) -> Result<Vec<String>, String> {
    names.iter().try_for_each(|name| check_name(name))?;
    Ok(names)
}

#[cfg(test)]
mod tests;
