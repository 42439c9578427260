//! The process of a module, as this program: `weir icap` with a config of that module alone.

use crate::messages::tell;
use std::io;
use std::path::Path;
use std::process::Command;
use weir_adaptation::process::Launch;
use weir_extend::{OptionValue, Options};
use weir_proxy::config::{ByteSize, Config, Module, ModuleOption, Span};

/// The name of the config file in the directory of the process.
const CONFIG: &str = "weir.toml";

/// Starts this program, also after another one was put in its place.
pub(crate) struct LaunchThisProgram;

impl Launch for LaunchThisProgram {
    fn command(
        &self,
        kind: &str,
        options: &Options,
        directory: &Path,
        socket: &Path,
    ) -> io::Result<Command> {
        let file = directory.join(CONFIG);
        std::fs::write(&file, config_text(kind, options)?)?;
        let mut command = Command::new("/proc/self/exe");
        command
            .args(["icap", "--of-proxy", "--config"])
            .arg(&file)
            .arg("--listen")
            .arg(format!("unix:{}", socket.display()));
        Ok(command)
    }

    fn log(&self, line: &str) {
        tell(&format!("note: {line}"));
    }
}

/// A config with this module alone.
fn config_text(kind: &str, options: &Options) -> io::Result<String> {
    let settings = options.settings();
    let values = options.values().iter();
    let module = Module {
        deadline: Span::from_millis(millis(settings.deadline)),
        wait: Span::from_millis(millis(settings.wait)),
        hold: ByteSize::from_bytes(settings.hold_bytes as u64),
        options: values
            .map(|(name, value)| (name.clone(), option(value)))
            .collect(),
        ..Module::new(&settings.name, kind)
    };
    let config = Config {
        modules: vec![module],
        ..Config::default()
    };
    toml::to_string(&config).map_err(io::Error::other)
}

fn millis(time: std::time::Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

fn option(value: &OptionValue) -> ModuleOption {
    match value {
        OptionValue::Flag(flag) => ModuleOption::Flag(*flag),
        OptionValue::Number(number) => ModuleOption::Number(*number),
        OptionValue::Text(text) => ModuleOption::Text(text.clone()),
        OptionValue::List(values) => ModuleOption::List(values.iter().map(option).collect()),
        OptionValue::Table(values) => {
            let values = values.iter();
            let values = values.map(|(name, value)| (name.clone(), option(value)));
            ModuleOption::Table(values.collect())
        }
    }
}
