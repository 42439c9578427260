//! How long a choice among nodes takes, without sockets: the example `route_speed` of `weir-sim`.

use crate::process::guarded;
use serde::{Deserialize, Serialize};
use std::time::Duration;
use xtask::failure::{During, Failure};
use xtask::program;

const LIFE: Duration = Duration::from_secs(300);

/// A choice of one policy, nanoseconds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::cluster) struct ChoiceTime {
    pub(in crate::cluster) policy: String,
    pub(in crate::cluster) ns_of_16_nodes: u64,
    pub(in crate::cluster) ns_of_64_nodes: u64,
}

/// All policies, on one core.
pub(in crate::cluster) fn measure(core: usize) -> Result<Vec<ChoiceTime>, Failure> {
    let what = ["-p", "weir-sim", "--example", "route_speed"];
    let program = program::build(&what, "route_speed")?;
    let (text, _) = guarded::output(core, &[program], LIFE)?;
    let times = parse(&text).ok_or_else(|| format!("it said: {text}"));
    times.during("read what route_speed prints")
}

/// A line for each policy below a title: its name, then numbers.
fn parse(text: &str) -> Option<Vec<ChoiceTime>> {
    let lines = text.lines().skip(1).map(|line| {
        let mut words = line.split_whitespace();
        Some(ChoiceTime {
            policy: words.next()?.to_owned(),
            ns_of_16_nodes: words.next()?.parse().ok()?,
            ns_of_64_nodes: words.next()?.parse().ok()?,
        })
    });
    lines.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_by_policy() {
        let text = "ns a choice      16 nodes  64 nodes  16 weighted  64 weighted\n\
                    hash                   32       125           40          160\n";
        let expected = ChoiceTime {
            policy: "hash".to_owned(),
            ns_of_16_nodes: 32,
            ns_of_64_nodes: 125,
        };
        assert_eq!(parse(text), Some(vec![expected]));
        assert_eq!(parse("title\nhash many\n"), None);
    }
}
