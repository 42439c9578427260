//! A whole number followed by its unit: the shared grammar of sizes and durations.

use crate::config::values::text::{BadValue, unknown};

/// One unit of a kind of quantity.
pub(super) struct Unit {
    /// How it is written, such as `KiB`.
    pub(super) name: &'static str,
    /// How many of the smallest unit it holds.
    pub(super) scale: u64,
    /// Other spellings people try; refused, with the right one suggested.
    pub(super) slips: &'static [&'static str],
}

/// Reads `text` as a whole number and one of `units`, into the smallest unit.
///
/// # Errors
///
/// When there is no number, no unit, an unknown unit, a fraction, or more than `u64` holds.
pub(super) fn parse(text: &str, kind: &str, units: &[Unit]) -> Result<u64, BadValue> {
    let digits_end = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let (digits, unit_text) = text.split_at(digits_end);
    if digits.is_empty() || unit_text.starts_with(['.', ',']) {
        return Err(BadValue::new(format!(
            "`{text}` is not a {kind}: a whole number and its unit are expected"
        )));
    }
    let unit = find(digits, unit_text.trim_start_matches(' '), text, kind, units)?;
    digits
        .parse::<u64>()
        .ok()
        .and_then(|number| number.checked_mul(unit.scale))
        .ok_or_else(|| BadValue::new(format!("`{text}` is larger than any {kind} can be")))
}

/// Writes `amount` in the largest unit that divides it; zero in the smallest listed as `zero`.
pub(super) fn write(
    f: &mut std::fmt::Formatter<'_>,
    amount: u64,
    units: &[Unit],
    zero: &str,
) -> std::fmt::Result {
    if amount == 0 {
        return write!(f, "0{zero}");
    }
    match units
        .iter()
        .filter(|unit| amount.is_multiple_of(unit.scale))
        .max_by_key(|unit| unit.scale)
    {
        Some(unit) => write!(f, "{}{}", amount / unit.scale, unit.name),
        None => write!(f, "{amount}"),
    }
}

fn find<'u>(
    digits: &str,
    unit_text: &str,
    text: &str,
    kind: &str,
    units: &'u [Unit],
) -> Result<&'u Unit, BadValue> {
    if let Some(unit) = units.iter().find(|unit| unit.name == unit_text) {
        return Ok(unit);
    }
    let names: Vec<&str> = units.iter().map(|unit| unit.name).collect();
    if unit_text.is_empty() {
        return Err(BadValue::new(format!(
            "`{text}` is not a {kind}: its unit is missing ({})",
            names.join(", ")
        )));
    }
    let meant = units
        .iter()
        .find(|unit| unit.slips.contains(&unit_text) || unit.name.eq_ignore_ascii_case(unit_text));
    let refusal = unknown("unit", unit_text, &names);
    Err(match meant {
        Some(unit) => refusal.suggesting(format!("{digits}{}", unit.name)),
        None => refusal,
    })
}
