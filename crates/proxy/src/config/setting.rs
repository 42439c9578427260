//! One declaration a setting: its documentation, default and range are written once, and the
//! struct, the range check and the reference page (`weir settings`) are made from it.

pub(super) mod invalid;
pub(super) mod mistakes;

use super::values::text::Form;
use invalid::Invalid;

/// What the reference page says of one setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// The path in a file, such as `limits.connect` or `listener[].address`.
    pub path: String,
    /// How a value is written, with its unit.
    pub form: &'static str,
    /// The default, as TOML; none where a value must be given.
    pub default: Option<String>,
    /// The minimum value allowed, as TOML.
    pub minimum: Option<String>,
    /// The maximum value allowed, as TOML.
    pub maximum: Option<String>,
    /// What it does and why the default is what it is.
    pub reason: String,
}

impl Setting {
    /// A setting with a value of type `T`.
    #[must_use]
    pub fn new<T: Form>(path: impl Into<String>, reason: &[&str]) -> Self {
        let lines: Vec<&str> = reason.iter().map(|line| line.trim()).collect();
        Self {
            path: path.into(),
            form: T::FORM,
            default: None,
            minimum: None,
            maximum: None,
            reason: lines.join(" "),
        }
    }

    /// The same setting with its default.
    #[must_use]
    pub fn by_default<T: serde::Serialize>(self, value: &T) -> Self {
        Self {
            default: Some(as_toml(value)),
            ..self
        }
    }

    /// The same setting with its range, both ends included.
    #[must_use]
    pub fn within<T: serde::Serialize>(self, minimum: &T, maximum: &T) -> Self {
        Self {
            minimum: Some(as_toml(minimum)),
            maximum: Some(as_toml(maximum)),
            ..self
        }
    }
}

/// A kind of values that may have a range.
pub(super) trait Ranged: PartialOrd + std::fmt::Display {
    /// The value within this range that a smaller one was meant to be, if its unit was left out.
    fn with_unit(&self, _minimum: &Self, _maximum: &Self) -> Option<String> {
        None
    }
}

impl Ranged for u8 {}
impl Ranged for u16 {}
impl Ranged for u32 {}

/// Refuses a value outside its range, both ends included.
pub(super) fn check_range<T: Ranged>(
    path: &str,
    value: &T,
    minimum: &T,
    maximum: &T,
) -> Result<(), Invalid> {
    let comparison = if value < minimum {
        format!("less than the minimum, {minimum}")
    } else if value > maximum {
        format!("more than the maximum, {maximum}")
    } else {
        return Ok(());
    };
    let hint = format!("use a value from {minimum} to {maximum}");
    let hint = match value.with_unit(minimum, maximum) {
        Some(meant) => format!("{hint}; {}", unit_hint(&meant)),
        None => hint,
    };
    Err(Invalid::new(path, format!("{value} is {comparison}"), hint))
}

/// What to do about a size whose unit was left out.
pub(super) fn unit_hint(meant: &str) -> String {
    format!("a number without a unit is bytes: did you mean \"{meant}\"?")
}

/// Declares a table of settings: `name: Type = default, from minimum, to maximum;`, the range where
/// there is one.
macro_rules! table {
    (
        $(#[$meta:meta])*
        pub struct $Table:ident in $table:literal {
            $(
                $(#[doc = $reason:literal])+
                $name:ident: $Type:ty = $default:expr $(, from $minimum:expr, to $maximum:expr)?;
            )+
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
        #[serde(deny_unknown_fields, default)]
        pub struct $Table {
            $(
                $(#[doc = $reason])+
                #[doc = concat!(
                    "\n\nDefault `", stringify!($default), "`"
                    $(, ", from `", stringify!($minimum), "` to `", stringify!($maximum), "`")?, "."
                )]
                pub $name: $Type,
            )+
        }

        impl Default for $Table {
            fn default() -> Self {
                Self { $( $name: $default, )+ }
            }
        }

        impl $Table {
            /// Refuses values outside their ranges.
            pub(in crate::config) fn check_ranges(&self, mistakes: &mut $crate::config::Mistakes) {
                $( $(
                    mistakes.note($crate::config::setting::check_range(
                        concat!($table, ".", stringify!($name)), &self.$name, &$minimum, &$maximum,
                    ));
                )? )+
                // a table may have no range
                let _ = mistakes;
            }

            /// This table's part of the reference page.
            pub(in crate::config) fn settings() -> Vec<$crate::config::Setting> {
                vec![ $(
                    $crate::config::Setting::new::<$Type>(
                        concat!($table, ".", stringify!($name)), &[$($reason),+],
                    )
                    .by_default::<$Type>(&$default)
                    $( .within::<$Type>(&$minimum, &$maximum) )?
                ),+ ]
            }
        }
    };
}
pub(super) use table;

/// JSON and TOML write strings, integers and lists of them alike.
fn as_toml(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value)
        .expect("a setting's value is a string, an integer or a list of them")
}
