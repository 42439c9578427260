//! Children that cannot outlive their time.
//!
//! Each is started through `setpriv --pdeathsig` (it gets SIGTERM when this process ends, by Ctrl-C
//! too) and `timeout` (it ends by itself after its time). Only processes that descend from a child
//! of ours are ended, by their numbers.

use super::{affinity, usage};
use rustix::process::{Pid, Signal, kill_process};
use std::fs::File;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};
use xtask::failure::{During, Failure};

/// How long a server may take to end after SIGTERM.
const GRACE: Duration = Duration::from_secs(5);

/// How long a child may take to end after SIGTERM, whatever becomes of this process. callgrind
/// writes its files then, which takes some seconds where other programs run.
const KILL_AFTER_S: u32 = 60;

const POLL: Duration = Duration::from_millis(20);

/// A running child; ended when dropped.
#[derive(Debug)]
pub(crate) struct GuardedProcess {
    child: Child,
}

/// A command that will be guarded when it runs for at most `life`.
pub(crate) fn command(arguments: &[String], life: Duration) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "TERM", "timeout"]);
    command.args(["--foreground", &format!("--kill-after={KILL_AFTER_S}")]);
    command.arg(life.as_secs().max(1).to_string());
    command.args(arguments).stdin(Stdio::null());
    // daemons live where not every PATH looks
    let path = std::env::var("PATH").unwrap_or_default();
    command.env("PATH", format!("{path}:/usr/local/sbin:/usr/sbin:/sbin"));
    command
}

/// Runs a command on one core to its end: what it printed, and its CPU time, microseconds.
///
/// # Errors
/// It cannot be started, or failed.
pub(crate) fn output(
    core: usize,
    arguments: &[String],
    life: Duration,
) -> Result<(String, u64), Failure> {
    let before = usage::ended_children_us();
    let mut command = command(arguments, life);
    command.stdout(Stdio::piped()).stderr(Stdio::inherit());
    let child = affinity::spawn_on(core, &mut command)?;
    let name = arguments.first().map_or("", String::as_str);
    let output = child.wait_with_output();
    let output = output.during(format_args!("wait for `{name}`"))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() {
        return Ok((text, usage::ended_children_us() - before));
    }
    Err(Failure::Outside(format!(
        "`{name}` ended with {} and said: {text}",
        output.status
    )))
}

impl GuardedProcess {
    /// Starts it on one core, or on any.
    pub(crate) fn spawn(core: Option<usize>, command: &mut Command) -> Result<Self, Failure> {
        let child = match core {
            Some(core) => affinity::spawn_on(core, command)?,
            None => command
                .spawn()
                .during(format_args!("start `{}`", command.get_program().display()))?,
        };
        Ok(Self { child })
    }

    /// The same; what it prints goes to a file.
    pub(crate) fn spawn_logged(
        core: Option<usize>,
        command: &mut Command,
        log: &Path,
    ) -> Result<Self, Failure> {
        let file = File::create(log).during(format_args!("create `{}`", log.display()))?;
        let second = file.try_clone().during("share the output file")?;
        command.stdout(file).stderr(second);
        Self::spawn(core, command)
    }

    /// The root of the process tree.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// The way it ended, if it did.
    pub(crate) fn ended(&mut self) -> Option<String> {
        match self.child.try_wait() {
            Ok(None) => None,
            Ok(Some(status)) => Some(status.to_string()),
            Err(error) => Some(error.to_string()),
        }
    }

    /// Waits until it ends by itself, or its life is over.
    pub(crate) fn wait(&mut self) -> std::io::Result<ExitStatus> {
        self.child.wait()
    }

    /// Kills everything that descends from the child, all at once as a crash would; the child
    /// itself, which only watches them, ends by itself.
    pub(crate) fn kill(&mut self) {
        let tree = usage::tree(self.id());
        for &id in tree.iter().skip(1) {
            send(id, Signal::KILL);
        }
        self.wait_for(&tree, GRACE);
    }

    /// Stops everything that descends from the child, or has it go on.
    pub(crate) fn stop(&self, is_stopped: bool) {
        let signal = if is_stopped {
            Signal::STOP
        } else {
            Signal::CONT
        };
        for &id in usage::tree(self.id()).iter().skip(1) {
            send(id, signal);
        }
    }

    /// Sends SIGTERM to the child; kills it and its children after `grace`.
    pub(crate) fn end(&mut self, grace: Duration) {
        if self.ended().is_some() {
            return;
        }
        let tree = usage::tree(self.id());
        send(self.id(), Signal::TERM);
        self.wait_for(&tree, grace);
        // the rest of the tree that was read before; its process ids cannot have been reused in
        // this time
        for &id in tree.iter().filter(|&&id| usage::is_running(id)) {
            send(id, Signal::KILL);
        }
        self.wait_for(&tree, GRACE);
    }

    fn wait_for(&mut self, tree: &[u32], limit: Duration) {
        let deadline = Instant::now() + limit;
        while Instant::now() < deadline && tree.iter().any(|&id| usage::is_running(id)) {
            // takes notice of a child that ended, or it would stay in the process table
            let _ = self.ended();
            std::thread::sleep(POLL);
        }
        let _ = self.ended();
    }
}

impl Drop for GuardedProcess {
    fn drop(&mut self) {
        self.end(GRACE);
    }
}

fn send(id: u32, signal: Signal) {
    if let Some(pid) = i32::try_from(id).ok().and_then(Pid::from_raw) {
        // it may have ended by itself meanwhile
        let _ = kill_process(pid, signal);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ending_the_guard_ends_the_child_and_its_descendants() {
        let words = ["sh", "-c", "trap '' TERM; tail -f /dev/null & wait"].map(str::to_owned);
        let mut command = command(&words, Duration::from_secs(20));
        let child = command.spawn().expect("setpriv and timeout are there");
        let mut guarded = GuardedProcess { child };
        let deadline = Instant::now() + Duration::from_secs(10);
        while usage::tree(guarded.id()).len() < 3 && Instant::now() < deadline {
            std::thread::yield_now();
        }
        let tree = usage::tree(guarded.id());
        assert_eq!(tree.len(), 3, "timeout, sh, tail");
        guarded.end(Duration::from_millis(100));
        assert!(!tree.iter().any(|&id| usage::is_running(id)));
    }
}
