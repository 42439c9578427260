//! One declaration a knob: its documentation, default and range are written once, and the struct,
//! the range check and the reference page (`weir knobs`) are made from it.

use super::invalid::Invalid;
use super::value::Form;

/// What the reference page says of one knob.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Knob {
    /// The path in a file, such as `limits.connect` or `listener[].address`.
    pub path: String,
    /// How a value is written, with its unit.
    pub form: &'static str,
    /// The default, as TOML; none where a value must be given.
    pub default: Option<String>,
    /// The least value allowed, as TOML.
    pub least: Option<String>,
    /// The greatest value allowed, as TOML.
    pub most: Option<String>,
    /// What it does and why the default is what it is.
    pub reason: String,
}

impl Knob {
    /// A knob whose value is of type `T`.
    #[must_use]
    pub fn new<T: Form>(path: impl Into<String>, reason: &[&str]) -> Self {
        let lines: Vec<&str> = reason.iter().map(|line| line.trim()).collect();
        Self {
            path: path.into(),
            form: T::FORM,
            default: None,
            least: None,
            most: None,
            reason: lines.join(" "),
        }
    }

    /// The same knob with its default.
    #[must_use]
    pub fn by_default<T: serde::Serialize>(self, value: &T) -> Self {
        Self {
            default: Some(as_toml(value)),
            ..self
        }
    }

    /// The same knob with its range, both ends included.
    #[must_use]
    pub fn within<T: serde::Serialize>(self, least: &T, most: &T) -> Self {
        Self {
            least: Some(as_toml(least)),
            most: Some(as_toml(most)),
            ..self
        }
    }
}

/// Refuses a value outside its range, both ends included.
pub(super) fn check_range<T>(path: &str, value: &T, least: &T, most: &T) -> Result<(), Invalid>
where
    T: PartialOrd + std::fmt::Display,
{
    let comparison = if value < least {
        format!("less than the minimum, {least}")
    } else if value > most {
        format!("more than the maximum, {most}")
    } else {
        return Ok(());
    };
    Err(Invalid::new(
        path,
        format!("{value} is {comparison}"),
        format!("use a value from {least} to {most}"),
    ))
}

/// Declares a table of knobs: `name: Type = default, from least, to most;`, the range where there
/// is one.
macro_rules! table {
    (
        $(#[$meta:meta])*
        pub struct $Table:ident in $table:literal {
            $(
                $(#[doc = $reason:literal])+
                $name:ident: $Type:ty = $default:expr $(, from $least:expr, to $most:expr)?;
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
                    $(, ", from `", stringify!($least), "` to `", stringify!($most), "`")?, "."
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
            /// Refuses the first value outside its range.
            pub(super) fn check_ranges(&self) -> Result<(), $crate::config::Invalid> {
                $( $(
                    $crate::config::knob::check_range(
                        concat!($table, ".", stringify!($name)), &self.$name, &$least, &$most,
                    )?;
                )? )+
                Ok(())
            }

            /// This table's part of the reference page.
            pub(super) fn knobs() -> Vec<$crate::config::Knob> {
                vec![ $(
                    $crate::config::Knob::new::<$Type>(
                        concat!($table, ".", stringify!($name)), &[$($reason),+],
                    )
                    .by_default::<$Type>(&$default)
                    $( .within::<$Type>(&$least, &$most) )?
                ),+ ]
            }
        }
    };
}
pub(super) use table;

/// JSON and TOML write strings, integers and lists of them alike.
fn as_toml(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).expect("a knob's value is a string, an integer or a list of them")
}
