//! The points of a sweep.

use super::job::Parameter;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// An axis with its values, as given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Axis {
    /// A name that the job knows.
    pub name: String,
    /// In the order in which they were given, none twice.
    pub values: Vec<String>,
}

/// All combinations of the values of some axes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grid {
    /// One for each parameter of the job, in its order.
    axes: Vec<Axis>,
}

/// A value for each parameter, by name.
pub type Point = BTreeMap<String, String>;

/// Points of a grid.
pub const POINTS_MAX: usize = 100_000;

/// What is wrong with a grid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GridError {
    /// What is wrong.
    pub what: String,
    /// What was probably meant, or what there is.
    pub hint: String,
}

impl fmt::Display for GridError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

impl std::error::Error for GridError {}

impl Grid {
    /// The grid of axes such as `size=1%,10%` and `policy=lru,s3-fifo`; parameters that are not
    /// named have their default.
    ///
    /// # Errors
    /// A name or a value that the job does not know, an axis that comes twice, or too many points.
    pub fn new(parameters: &[Parameter], axes: &[String]) -> Result<Self, GridError> {
        let named: Vec<Axis> = axes
            .iter()
            .map(|text| axis(text))
            .collect::<Result<_, _>>()?;
        for (index, axis) in named.iter().enumerate() {
            let Some(parameter) = parameters.iter().find(|it| it.name == axis.name) else {
                return Err(unknown(&axis.name, parameters));
            };
            if named[..index].iter().any(|other| other.name == axis.name) {
                return Err(wrong(
                    format!("the axis `{}` comes twice", axis.name),
                    "give all its values at once, with commas between".to_owned(),
                ));
            }
            for value in &axis.values {
                (parameter.check)(value).map_err(|what| {
                    wrong(
                        what,
                        format!("`{}` is {}", parameter.name, parameter.meaning),
                    )
                })?;
            }
        }
        let grid = Self {
            axes: parameters
                .iter()
                .map(|parameter| {
                    let given = named.iter().find(|axis| axis.name == parameter.name);
                    given.cloned().unwrap_or_else(|| Axis {
                        name: parameter.name.to_owned(),
                        values: vec![parameter.default.to_owned()],
                    })
                })
                .collect(),
        };
        // counted before they are written down
        let points = grid.axes.iter().try_fold(1_usize, |points, axis| {
            points.checked_mul(axis.values.len())
        });
        match points {
            Some(points) if points <= POINTS_MAX => Ok(grid),
            _ => Err(wrong(
                format!("the grid has more than {POINTS_MAX} points"),
                "make several sweeps of it".to_owned(),
            )),
        }
    }

    /// Names of the axes, in the order of the job's parameters.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        self.axes.iter().map(|axis| axis.name.clone()).collect()
    }

    /// The values of an axis; none if there is no such axis.
    #[must_use]
    pub fn values(&self, name: &str) -> &[String] {
        let axis = self.axes.iter().find(|axis| axis.name == name);
        axis.map_or(&[], |axis| &axis.values)
    }

    /// All points; the last axis changes fastest.
    #[must_use]
    pub fn points(&self) -> Vec<Point> {
        self.axes.iter().fold(vec![Point::new()], |points, axis| {
            let with = |point: &Point| -> Vec<Point> {
                let one = |value: &String| {
                    let mut point = point.clone();
                    point.insert(axis.name.clone(), value.clone());
                    point
                };
                axis.values.iter().map(one).collect()
            };
            points.iter().flat_map(with).collect()
        })
    }
}

fn axis(text: &str) -> Result<Axis, GridError> {
    let form = || "an axis is such as `policy=lru,s3-fifo`".to_owned();
    let Some((name, values)) = text.split_once('=') else {
        return Err(wrong(format!("`{text}` is no axis"), form()));
    };
    let mut all: Vec<String> = Vec::new();
    let mut seen = BTreeSet::new();
    for value in values.split(',').map(str::trim) {
        if value.is_empty() {
            return Err(wrong(format!("`{text}` has an empty value"), form()));
        }
        if seen.insert(value) {
            all.push(value.to_owned());
        }
    }
    Ok(Axis {
        // as a flag has it, or as a column has it
        name: name.trim().replace('-', "_"),
        values: all,
    })
}

fn unknown(name: &str, parameters: &[Parameter]) -> GridError {
    let nearest = parameters
        .iter()
        .map(|parameter| (strsim::jaro_winkler(name, parameter.name), parameter.name))
        .filter(|(alike, _)| *alike >= ALIKE_MIN)
        .max_by(|(one, _), (other, _)| one.total_cmp(other));
    let all: Vec<&str> = parameters.iter().map(|parameter| parameter.name).collect();
    let hint = match nearest {
        Some((_, name)) => format!("did you mean `{name}`?"),
        None => format!("the axes are {}", all.join(", ")),
    };
    wrong(format!("unknown axis `{name}`"), hint)
}

/// How alike two words must be for one to be suggested.
const ALIKE_MIN: f64 = 0.8;

fn wrong(what: String, hint: String) -> GridError {
    GridError { what, hint }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARAMETERS: [Parameter; 2] = [
        Parameter {
            name: "size",
            meaning: "a number",
            default: "1",
            check: |value| {
                value
                    .parse::<u8>()
                    .map(drop)
                    .map_err(|_| format!("`{value}` is no number"))
            },
        },
        Parameter {
            name: "policy",
            meaning: "a word",
            default: "lru",
            check: |_| Ok(()),
        },
    ];

    fn grid(axes: &[&str]) -> Result<Grid, GridError> {
        let axes: Vec<String> = axes.iter().map(|axis| (*axis).to_owned()).collect();
        Grid::new(&PARAMETERS, &axes)
    }

    #[test]
    fn grid_contains_every_point_exactly_once() {
        let points: Vec<String> = grid(&["policy = a,b", "size=1,2, 1"])
            .unwrap()
            .points()
            .iter()
            .map(|point| format!("{}{}", point["size"], point["policy"]))
            .collect();
        assert_eq!(points, ["1a", "1b", "2a", "2b"]);
        let points = grid(&[]).unwrap().points();
        assert_eq!((points.len(), points[0]["policy"].as_str()), (1, "lru"));
    }

    #[test]
    fn invalid_axis_is_refused_with_a_hint() {
        let check = |axes: &[&str], what: &str, hint: &str| {
            let error = grid(axes).unwrap_err();
            assert!(error.what.contains(what), "{error:?}");
            assert!(error.hint.contains(hint), "{error:?}");
        };
        check(
            &["polciy=a"],
            "unknown axis `polciy`",
            "did you mean `policy`?",
        );
        check(&["zzz=a"], "unknown axis `zzz`", "size, policy");
        check(&["size=x"], "`x` is no number", "`size` is a number");
        check(&["size=1", "size=2"], "comes twice", "commas");
        check(&["size"], "no axis", "policy=lru");
        check(&["size="], "empty value", "policy=lru");
        let many: Vec<String> = (0..POINTS_MAX + 1).map(|value| value.to_string()).collect();
        check(
            &[&format!("policy={}", many.join(","))],
            "more than 100000",
            "several",
        );
    }
}
