//! The file of a scenario: TOML, with every unknown key refused.

use super::check;
use super::{Clients, Origin, Scenario, ScenarioError, Workload};
use crate::toml_text::{self, Advice};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

pub(super) fn read(file: &str, text: &str) -> Result<Scenario, ScenarioError> {
    let scenario = read_unchecked(file, text)?;
    check::check(&scenario).map_err(|invalid| {
        let place = DeTable::parse(text)
            .ok()
            .and_then(|document| toml_text::find_nearest(document.get_ref(), &invalid.key_path));
        invalid.into_error(file).at(text, place)
    })?;
    Ok(scenario)
}

/// Values are each of their kind; whether they make sense is not looked at.
pub(super) fn read_unchecked(file: &str, text: &str) -> Result<Scenario, ScenarioError> {
    if text.len() > TEXT_BYTES_MAX {
        let what = format!("it is longer than {TEXT_BYTES_MAX} bytes");
        return Err(ScenarioError::new(file, what));
    }
    let mut document = DeTable::parse(text).map_err(|error| refusal(file, text, &error))?;
    check_format(file, text, document.get_ref())?;
    let kind = take_kind(file, text, document.get_mut())?;
    match kind {
        "wpb" => typed(document, Workload::Wpb),
        "polymix" => typed(document, Workload::PolyMix),
        "web" => typed(document, Workload::Web),
        _ => typed(document, Workload::Hits),
    }
    .map_err(|error| refusal(file, text, &error))
}

pub(super) fn write(scenario: &Scenario) -> String {
    toml::to_string(scenario).expect("numbers, texts and tables with text keys are what TOML has")
}

/// The longest scenario read, in bytes: a hundred times the longest that comes with the program.
const TEXT_BYTES_MAX: usize = 1 << 20;

const KINDS: [&str; 4] = ["wpb", "polymix", "web", "hits"];

/// What stands in a file, without `workload.kind`, which is taken out before: so each kind of
/// workload is one plain struct, and messages keep their place.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Contents<W> {
    format: u32,
    name: String,
    about: String,
    sources: Vec<String>,
    #[serde(default = "unscaled")]
    scale: f64,
    workload: W,
    origin: Origin,
    clients: Clients,
}

fn unscaled() -> f64 {
    1.0
}

fn typed<W: DeserializeOwned>(
    document: Spanned<DeTable<'_>>,
    workload: fn(W) -> Workload,
) -> Result<Scenario, toml::de::Error> {
    let contents = Contents::<W>::deserialize(toml::Deserializer::from(document))?;
    Ok(Scenario {
        format: contents.format,
        name: contents.name,
        about: contents.about,
        sources: contents.sources,
        scale: contents.scale,
        workload: workload(contents.workload),
        origin: contents.origin,
        clients: contents.clients,
    })
}

/// Before anything else, so that a file of tomorrow is not blamed for its keys.
fn check_format(file: &str, text: &str, document: &DeTable<'_>) -> Result<(), ScenarioError> {
    let place = toml_text::find(document, "format");
    let found = document.get("format").map(Spanned::get_ref);
    let number = found.and_then(DeValue::as_integer);
    match number.map(|number| number.as_str().parse()) {
        Some(Ok(Scenario::FORMAT)) => Ok(()),
        Some(Ok(other)) => Err(ScenarioError::new(file, format!("unknown format {other}"))
            .at(text, place)
            .hint(format!("this program reads format {}", Scenario::FORMAT))),
        _ => Err(ScenarioError::new(file, "no `format` of a scenario")
            .at(text, place)
            .hint(format!(
                "a scenario begins with `format = {}`",
                Scenario::FORMAT
            ))),
    }
}

fn take_kind(
    file: &str,
    text: &str,
    document: &mut DeTable<'_>,
) -> Result<&'static str, ScenarioError> {
    let known = format!("a workload has a kind: {}", KINDS.join(", "));
    let workload = document
        .get_mut("workload")
        .ok_or_else(|| ScenarioError::new(file, "missing table `workload`").hint(known.clone()))?;
    let place = workload.span();
    let DeValue::Table(table) = workload.get_mut() else {
        return Err(ScenarioError::new(file, "`workload` is no table")
            .at(text, Some(place))
            .hint(known));
    };
    let kind = table.remove("kind").ok_or_else(|| {
        ScenarioError::new(file, "missing key `kind` of the workload")
            .at(text, Some(place))
            .hint(known.clone())
    })?;
    let found = kind.get_ref().as_str().unwrap_or("");
    if let Some(kind) = KINDS.into_iter().find(|kind| *kind == found) {
        return Ok(kind);
    }
    let hint =
        toml_text::nearest(found, &KINDS).map_or(known, |word| format!("did you mean `{word}`?"));
    Err(
        ScenarioError::new(file, format!("unknown kind `{found}` of workload"))
            .at(text, Some(kind.span()))
            .hint(hint),
    )
}

fn refusal(file: &str, text: &str, error: &toml::de::Error) -> ScenarioError {
    let Advice { message, hint } = toml_text::advise(error.message(), |_| None);
    let is_missing = message.starts_with("missing key");
    let all_keys =
        || "`weir bench scenarios NAME` prints a built-in scenario with every key explained";
    let error = ScenarioError::new(file, message).at(text, error.span());
    ScenarioError {
        hint: hint.or_else(|| is_missing.then(|| all_keys().to_owned())),
        ..error
    }
}
