//! One key changed from the command line.

use super::{Scenario, ScenarioError, check, file};
use crate::toml_text::{Step, steps};
use toml::{Table, Value};

pub(super) fn with<'a>(
    scenario: &Scenario,
    assignments: impl IntoIterator<Item = &'a str>,
) -> Result<Scenario, ScenarioError> {
    let mut changed = scenario.clone();
    for assignment in assignments {
        changed = with_one(&changed, assignment)?;
    }
    check::check(&changed).map_err(|invalid| invalid.into_error(PLACE))?;
    Ok(changed)
}

/// Where a message says that it comes from.
const PLACE: &str = "--set";

fn with_one(scenario: &Scenario, assignment: &str) -> Result<Scenario, ScenarioError> {
    let usage = "an assignment is KEY=VALUE, such as `clients.keep_alive=true`";
    let refuse = |what: String| ScenarioError::new(PLACE, what).hint(usage);
    let (path, value) = assignment
        .split_once('=')
        .ok_or_else(|| refuse(format!("`{assignment}` has no `=`")))?;
    let path = path.trim();
    let steps = steps(path).ok_or_else(|| refuse(format!("`{path}` is no path of keys")))?;
    let [as_toml, as_text] = readings(value.trim()).map(|value| {
        let text = text_with(scenario, &steps, value)
            .map_err(|what| refuse(format!("`{path}`: {what}")))?;
        file::read_unchecked(PLACE, &text).map_err(|error| ScenarioError {
            // the place is one of a text that the user has not seen
            place: None,
            what: format!("`{assignment}`: {}", error.what),
            ..error
        })
    });
    // of two refusals the first: the second takes for a text what is a number
    as_toml.or_else(|error| as_text.map_err(|_| error))
}

/// The two ways to read a value: as TOML has it, and as a text without its quotes (so `1.0` is a
/// version of HTTP too). Nothing for `none`; twice the text where it is no TOML.
fn readings(text: &str) -> [Option<Value>; 2] {
    if text == "none" {
        return [None, None];
    }
    let as_text = Value::String(text.to_owned());
    let document = format!("value = {text}").parse::<Table>();
    let as_toml = document.ok().and_then(|mut table| {
        let value = table.remove("value");
        value.filter(|value| table.is_empty() && !value.is_datetime())
    });
    [
        Some(as_toml.unwrap_or_else(|| as_text.clone())),
        Some(as_text),
    ]
}

fn text_with(scenario: &Scenario, steps: &[Step], value: Option<Value>) -> Result<String, String> {
    let mut table: Table = scenario
        .to_toml()
        .parse()
        .expect("a scenario's own text is TOML");
    put(&mut table, steps, value)?;
    Ok(toml::to_string(&table).expect("what was TOML before"))
}

fn put(table: &mut Table, steps: &[Step], value: Option<Value>) -> Result<(), String> {
    let (Step::Key(first), rest) = steps.split_first().ok_or("it is empty")? else {
        return Err("it begins with a number".to_owned());
    };
    if rest.is_empty() {
        match value {
            Some(value) => drop(table.insert(first.clone(), value)),
            None => drop(table.remove(first)),
        }
        return Ok(());
    }
    let inner = table
        .entry(first.clone())
        .or_insert_with(|| Value::Table(Table::new()));
    put_inside(inner, first, rest, value)
}

fn put_inside(
    place: &mut Value,
    name: &str,
    steps: &[Step],
    value: Option<Value>,
) -> Result<(), String> {
    match (place, &steps[0]) {
        (Value::Table(table), Step::Key(_)) => put(table, steps, value),
        (Value::Array(array), Step::Index(index)) => {
            let length = array.len();
            let item = array
                .get_mut(*index)
                .ok_or_else(|| format!("`{name}` has {length} entries, counted from 0"))?;
            if steps.len() > 1 {
                return put_inside(item, name, &steps[1..], value);
            }
            match value {
                Some(value) => *item = value,
                None => drop(array.remove(*index)),
            }
            Ok(())
        }
        (Value::Array(array), Step::Key(key)) => Err(format!(
            "`{name}` is a list of {}, `{key}` is no number",
            array.len()
        )),
        (Value::Table(_), Step::Index(_)) => Err(format!("`{name}` is no list")),
        _ => Err(format!("`{name}` has no keys in it")),
    }
}
