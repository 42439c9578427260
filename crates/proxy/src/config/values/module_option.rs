//! The value of an option of a module, whose meaning only its kind knows.

use crate::config::values::text::Form;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use weir_extend::OptionValue;

/// A value of any form that a file can have, but no date and no fraction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum ModuleOption {
    /// `true` or `false`.
    Flag(bool),
    /// A whole number.
    Number(i64),
    /// A string.
    Text(String),
    /// Several values.
    List(Vec<ModuleOption>),
    /// Values by name.
    Table(BTreeMap<String, ModuleOption>),
}

impl ModuleOption {
    /// The same as a module gets it.
    #[must_use]
    pub fn to_value(&self) -> OptionValue {
        match self {
            Self::Flag(flag) => OptionValue::Flag(*flag),
            Self::Number(number) => OptionValue::Number(*number),
            Self::Text(text) => OptionValue::Text(text.clone()),
            Self::List(values) => OptionValue::List(values.iter().map(Self::to_value).collect()),
            Self::Table(values) => {
                let values = values.iter();
                let values = values.map(|(name, value)| (name.clone(), value.to_value()));
                OptionValue::Table(values.collect())
            }
        }
    }
}

impl Form for BTreeMap<String, ModuleOption> {
    const FORM: &'static str = "a table";
}
