//! Other processes, each on a core of its own.

use std::io::{self, BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use serde::{Deserialize, Serialize};

/// What a process took.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Usage {
    /// CPU time in the program, in seconds.
    pub(crate) user_s: f64,
    /// CPU time in the kernel, in seconds.
    pub(crate) system_s: f64,
}

/// A command that stays on this core.
pub(crate) fn on_core(core: u32, program: &str) -> Command {
    let mut command = Command::new("taskset");
    command.args(["-c", &core.to_string(), program]);
    command
}

/// This program's other parts.
pub(crate) fn part(core: u32, name: &str) -> io::Result<Command> {
    let program = std::env::current_exe()?;
    let mut command = on_core(core, &program.display().to_string());
    command.arg(name);
    Ok(command)
}

/// Runs it to its end; what it printed, and what it took.
pub(crate) fn run(mut command: Command) -> Result<(String, Usage), Box<dyn std::error::Error>> {
    let before = children()?;
    let output = command.stderr(Stdio::inherit()).output()?;
    let after = children()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if !output.status.success() {
        return Err(format!("{command:?} ended with {}: {text}", output.status).into());
    }
    let usage = Usage {
        user_s: after.user_s - before.user_s,
        system_s: after.system_s - before.system_s,
    };
    Ok((text, usage))
}

/// A part that serves until it is dropped.
#[derive(Debug)]
pub(crate) struct Serving {
    child: Child,
    /// What it said on its first line.
    pub(crate) said: String,
}

impl Serving {
    pub(crate) fn start(mut command: Command) -> Result<Self, Box<dyn std::error::Error>> {
        let mut child = command.stdout(Stdio::piped()).spawn()?;
        let stdout = child.stdout.take().ok_or("no output to read")?;
        let mut said = String::new();
        BufReader::new(stdout).read_line(&mut said)?;
        Ok(Self {
            child,
            said: said.trim().to_owned(),
        })
    }

    /// What it has taken so far.
    pub(crate) fn usage(&self) -> Result<Usage, Box<dyn std::error::Error>> {
        // utime, stime
        usage(&format!("/proc/{}/stat", self.child.id()), 11)
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        // it may have ended already
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// CPU time of children that have ended and were waited for (proc(5): cutime, cstime).
fn children() -> Result<Usage, Box<dyn std::error::Error>> {
    usage("/proc/self/stat", 13)
}

/// Two times of this file (proc_pid_stat(5)), the first of them in this place behind the name.
fn usage(file: &str, place: usize) -> Result<Usage, Box<dyn std::error::Error>> {
    let text = std::fs::read_to_string(file)?;
    // the name in brackets may hold spaces
    let (_, rest) = text.rsplit_once(')').ok_or("no name before the numbers")?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let ticks = |place: usize| -> Result<f64, Box<dyn std::error::Error>> {
        Ok(fields.get(place).ok_or("a short line")?.parse::<f64>()?)
    };
    Ok(Usage {
        user_s: ticks(place)? / TICKS_PER_S,
        system_s: ticks(place + 1)? / TICKS_PER_S,
    })
}

/// `USER_HZ`: 100 on every Linux that is not built otherwise.
const TICKS_PER_S: f64 = 100.0;

/// The most memory this process had, in bytes (proc(5): `VmHWM`).
pub(crate) fn memory_max_bytes() -> io::Result<u64> {
    let text = std::fs::read_to_string("/proc/self/status")?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok());
    kib.map(|kib| kib * 1024)
        .ok_or_else(|| io::Error::other("no VmHWM in /proc/self/status"))
}
