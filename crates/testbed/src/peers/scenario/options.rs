//! The command line of `cargo xtask peers --scenario NAME`.

use super::peer::CONTENDERS;
use super::plan::{PLANS, Plan};
use crate::failure::Failure;
use crate::options::{self, Given, Said, Task};

/// What is asked for.
#[derive(Debug, PartialEq)]
pub(crate) struct Options {
    pub(crate) scenario: &'static Plan,
    pub(crate) install: bool,
    /// Names; empty means all.
    pub(crate) peers: Vec<String>,
    pub(crate) length: Length,
    /// Room of each store; `None` is the scenario's.
    pub(crate) cache_mib: Option<u32>,
    pub(crate) seed: u64,
    /// All proxies at the same time; `None` is as the scenario has it.
    pub(crate) is_together: Option<bool>,
    /// Numbers of clients; empty means the scenario's.
    pub(crate) clients: Vec<u32>,
    /// Handed on: keys of the scenario.
    pub(crate) set: Vec<String>,
    /// The directory of records and report.
    pub(crate) out: Option<String>,
}

/// How long it may take.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Length {
    /// As the scenario has it.
    Usual,
    Scale(f64),
    /// The whole course.
    Minutes(u32),
}

impl Default for Options {
    fn default() -> Self {
        Self {
            scenario: &PLANS[0],
            install: false,
            peers: Vec::new(),
            length: Length::Usual,
            cache_mib: None,
            seed: 1,
            is_together: None,
            clients: Vec::new(),
            set: Vec::new(),
            out: None,
        }
    }
}

impl Said for Options {
    fn install(&mut self) {
        self.install = true;
    }

    fn set(&mut self, option: Given<'_>) -> Result<bool, Failure> {
        match option.name {
            "--scenario" => self.scenario = scenario(option.value)?,
            "--peers" => option.contenders(&mut self.peers, &CONTENDERS)?,
            "--scale" => self.length = Length::Scale(scale(option.value)?),
            "--minutes" => {
                let mut minutes = 0;
                option.number(&mut minutes, 1..=10_000)?;
                self.length = Length::Minutes(minutes);
            }
            "--cache" => {
                let mut mib = 0;
                option.number(&mut mib, 16..=1 << 20)?;
                self.cache_mib = Some(mib);
            }
            "--seed" => option.number(&mut self.seed, 0..=u64::MAX)?,
            "--clients" => self.clients = clients(option)?,
            "--together" => self.is_together = Some(yes_or_no(option)?),
            "--set" => self.set.push(option.value.to_owned()),
            "--out" => option.file(&mut self.out),
            _ => return Ok(false),
        }
        Ok(true)
    }
}

/// # Errors
/// An option that nobody knows, without a value, or with one that cannot be meant.
pub(crate) fn parse(arguments: &[String]) -> Result<Options, Failure> {
    match options::parse(arguments)? {
        Task::Measure(options) => Ok(options),
        Task::Show(file) => Err(Failure::Usage(format!(
            "`--show {file}` has no meaning with `--scenario`\nhint: `weir bench report` makes a report of records"
        ))),
    }
}

impl Options {
    /// All proxies run at the same time.
    pub(crate) fn is_together(&self) -> bool {
        self.is_together_in(self.scenario)
    }

    /// The same for a plan that follows the scenario's. Where proxies are kept busy they never run
    /// at the same time.
    pub(crate) fn is_together_in(&self, plan: &Plan) -> bool {
        let wanted = self.is_together.unwrap_or(plan.is_together);
        wanted && (plan.is_together || plan.name == self.scenario.name)
    }

    /// The scale of every run, when there are `turns` runs one after the other.
    pub(crate) fn scale(&self, turns: usize) -> f64 {
        match self.length {
            Length::Usual => self.scenario.scale,
            Length::Scale(scale) => scale,
            Length::Minutes(minutes) => {
                let turns = f64::from(u32::try_from(turns.max(1)).unwrap_or(u32::MAX));
                let each = f64::from(minutes) * 60.0 / turns;
                // three digits are enough for a scale, and are read more easily
                let scale = (each / self.scenario.seconds).min(1.0);
                (scale * 1000.0).round().max(1.0) / 1000.0
            }
        }
    }
}

fn scenario(name: &str) -> Result<&'static Plan, Failure> {
    Plan::named(name).ok_or_else(|| {
        let names: Vec<&str> = PLANS.iter().map(|plan| plan.name).collect();
        Failure::Usage(format!("`{name}` is none of {}", names.join(", ")))
    })
}

fn clients(option: Given<'_>) -> Result<Vec<u32>, Failure> {
    let numbers = option.value.split(',').map(|value| {
        let mut number = 0;
        let one = Given {
            value: value.trim(),
            ..option
        };
        one.number(&mut number, 1..=10_000).map(|()| number)
    });
    numbers.collect()
}

fn yes_or_no(option: Given<'_>) -> Result<bool, Failure> {
    match option.value {
        "yes" => Ok(true),
        "no" => Ok(false),
        other => Err(Failure::Usage(format!(
            "`{} {other}` is neither `yes` nor `no`",
            option.name
        ))),
    }
}

fn scale(value: &str) -> Result<f64, Failure> {
    let scale = value.parse().ok();
    scale
        .filter(|scale| *scale > 0.0 && *scale <= 1.0)
        .ok_or_else(|| {
            Failure::Usage(format!(
                "`--scale {value}` is not a number above 0 and up to 1"
            ))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Options, Failure> {
        let arguments: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        parse(&arguments)
    }

    #[test]
    fn all_options_are_parsed() {
        let line = "--scenario wpb --peers weir,apache --scale 0.1 --cache 75 --seed 7 --clients 8,96 --together no \
                    --set origin.latency=constant(1s) --out /d --install";
        let options = parsed(line).expect("a command line");
        assert_eq!(options.scenario.name, "wpb");
        assert_eq!(options.peers, ["weir", "apache"]);
        assert_eq!(options.length, Length::Scale(0.1));
        assert_eq!((options.cache_mib, options.seed), (Some(75), 7));
        assert_eq!(options.clients, [8, 96]);
        assert_eq!(options.set, ["origin.latency=constant(1s)"]);
        assert_eq!(options.out.as_deref(), Some("/d"));
        assert!(options.install && !options.is_together());
    }

    #[test]
    fn invalid_options_are_refused() {
        for line in [
            "--scenario",
            "--scenario wbp",
            "--scenario wpb --scale 0",
            "--scenario wpb --scale 1.5",
            "--scenario wpb --peers haproxy",
            "--scenario wpb --minutes 0",
            "--scenario wpb --seconds 2",
            "--scenario wpb --clients 8,,9",
            "--scenario wpb --together maybe",
            "--scenario wpb --show r.json",
        ] {
            assert!(parsed(line).is_err(), "{line}");
        }
    }

    #[test]
    fn minutes_cover_all_runs_together_and_the_scale_is_at_most_one() {
        let options = parsed("--scenario wpb --minutes 25").expect("a command line");
        assert!((options.scale(6) - 0.2).abs() < 1e-9);
        assert!((options.scale(600) - 0.002).abs() < 1e-9);
        let options = parsed("--scenario hits --minutes 100").expect("a command line");
        assert!((options.scale(1) - 1.0).abs() < 1e-9);
    }
}
